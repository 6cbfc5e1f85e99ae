// core/storage.cpp - storage: small blocks from the pool, large ones from the device.
#include "core/storage.h"

#include <memory>
#include <new>

#include "core/context.h"

namespace kassette {

Ref<Storage> Storage::allocate_large(std::int64_t bytes, Device device) {
  Context& c = context();
  DeviceApi& api = device_api(device);
  void* data = bytes ? api.allocate(bytes) : nullptr;
  void* block;
  try {
    block = pool_allocate(c, sizeof(Storage));
  } catch (...) {
    if (data) api.release(data, bytes);
    throw;
  }
  c.live_bytes.add(bytes);
  return Ref<Storage>::adopt(new (block) Storage{1, device, kDevice, bytes, data});
}

Ref<Storage> Storage::borrow(const void* data, std::int64_t bytes, Owner owner) {
  auto kept = std::make_unique<Owner>(owner);
  void* block = pool_allocate(context(), sizeof(Storage));
  auto* s = new (block) Storage{1, cpu, kBorrowed, bytes, const_cast<void*>(data)};
  s->owner = kept.release();
  return Ref<Storage>::adopt(s);
}

void Storage::destroy(Storage* s) noexcept {
  Context& c = context();
  if (s->kind == kPooled) {
    free_small(c, s);
    return;
  }
  if (s->kind == kBorrowed) {
    s->owner->release(s->owner->state);
    delete s->owner;
  } else {
    c.live_bytes.add(-s->bytes);
    if (s->data) device_api(s->device).release(s->data, s->bytes);
  }
  pool_free(c, s, sizeof(Storage));
}

}  // namespace kassette

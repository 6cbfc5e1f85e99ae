// core/storage.cpp - storage: small blocks from the pool, large ones from the device.
#include "core/storage.h"

#include <memory>
#include <new>

#include "core/context.h"

namespace kassette {
namespace {

constexpr std::int64_t kMaxSmall = 4096;   // bytes of data in a pooled block
// Larger pooled blocks start on a cache line, and so does their data: a vector that straddles two lines costs double.
constexpr std::size_t header_bytes(std::int64_t bytes) { return bytes > 960 ? 64 : sizeof(Storage); }

}  // namespace

Ref<Storage> Storage::allocate(std::int64_t bytes, Device device) {
  Context& c = context();
  if (device.type() == Device::kCpu && bytes <= kMaxSmall) {
    std::size_t header = header_bytes(bytes);
    void* block = pool_allocate(c, header + static_cast<std::size_t>(bytes));
    auto* s = new (block) Storage{1, device, kPooled, bytes, static_cast<char*>(block) + header};
    c.live_bytes.add(bytes);
    return Ref<Storage>::adopt(s);
  }
  Backend& backend = backend_of(device);
  void* data = bytes ? backend.allocate(bytes) : nullptr;
  void* block;
  try {
    block = pool_allocate(c, sizeof(Storage));
  } catch (...) {
    if (data) backend.release(data, bytes);
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
    c.live_bytes.add(-s->bytes);
    pool_free(c, s, header_bytes(s->bytes) + static_cast<std::size_t>(s->bytes));
    return;
  }
  if (s->kind == kBorrowed) {
    s->owner->release(s->owner->state);
    delete s->owner;
  } else {
    c.live_bytes.add(-s->bytes);
    if (s->data) backend_of(s->device).release(s->data, s->bytes);
  }
  pool_free(c, s, sizeof(Storage));
}

}  // namespace kassette

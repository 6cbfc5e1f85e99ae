// devices/backend.cpp - the devices there are.
#include <cstdlib>
#include <cstring>

#include "core/storage.h"
#include "core/text.h"

namespace kassette {
namespace {

class CpuBackend final : public Backend {
 public:
  void* allocate(std::int64_t bytes) override {
    void* p = std::aligned_alloc(64, static_cast<std::size_t>((bytes + 63) / 64 * 64));
    if (!p) fail<MemoryError>("out of memory: ", bytes, " bytes asked for");
    return p;
  }
  void release(void* data, std::int64_t) noexcept override { std::free(data); }
  void copy_from_host(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes); }
  void copy_to_host(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void synchronize() override {}
  void* stream() override { return nullptr; }
};

}  // namespace

Backend& backend_of(Device device) {
  if (device.type() == Device::kCuda) fail<DeviceError>(device, " is not available");
  static CpuBackend* backend = new CpuBackend;   // never destroyed: tensors may outlive every static object
  return *backend;
}

}  // namespace kassette

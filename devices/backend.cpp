// devices/backend.cpp - the devices there are.
#include <cstring>

#include "core/storage.h"
#include "core/text.h"
#include "devices/cpu/allocator.h"

namespace kassette {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend() : cache_(cpu, cpu_memory) {}
  void* allocate(std::int64_t bytes) override { return cache_.allocate(bytes); }
  void release(void* data, std::int64_t bytes) noexcept override { cache_.release(data, bytes); }
  void copy_from_host(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes); }
  void copy_to_host(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    if (bytes) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void synchronize() override {}
  void* stream() override { return nullptr; }
  MemoryStats memory_stats() override { return cache_.stats(); }
  void reset_peak_memory() override { cache_.reset_peak(); }
  void set_memory_limit(std::int64_t bytes) override { cache_.set_limit(bytes); }
  void empty_cache() override { cache_.trim(); }

 private:
  BlockCache cache_;
};

}  // namespace

Backend& backend_of(Device device) {
  if (device.type() == Device::kCuda) fail<DeviceError>(device, " is not available");
  static CpuBackend* backend = new CpuBackend;   // never destroyed: tensors may outlive every static object
  return *backend;
}

const char* device_absent(Device device) { return device.type() == Device::kCuda ? "this build has no CUDA" : nullptr; }

}  // namespace kassette

// devices/registry.cpp - the devices: the CPU, and those of libkassette_cuda.so, which is loaded at first use.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "core/log.h"
#include "core/storage.h"
#include "core/text.h"
#include "devices/cpu/allocator.h"
#include "devices/plugin.h"
#include "devices/plugin_file.h"

namespace kassette::devices {
namespace {

class CpuDeviceApi final : public DeviceApi {
 public:
  CpuDeviceApi() : cache_(cpu, cpu_memory) {}
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

constexpr const char* kPluginFile = "libkassette_cuda.so";
constexpr int kMaxDevices = 256;

/// The device library, the devices that were opened, and the reasons why others could not be.
struct Cuda {
  std::mutex mutex;
  bool asked = false;
  std::string stand_in;  // tests: the library to load instead
  const DevicePlugin* plugin = nullptr;
  HostServices services = {};
  std::string absent;            // why there is no library
  std::string why[kMaxDevices];  // why a device could not be opened
  std::atomic<CudaDeviceApi*> opened[kMaxDevices] = {};
};
Cuda& cuda_state() {
  static Cuda* state = new Cuda;  // never destroyed: tensors may outlive every static object
  return *state;
}

void* open_device_library(const std::string& stand_in, std::string* why) {
  if (stand_in.empty()) return open_next_to_library(kPluginFile, why);
  return devices::open_library(stand_in, RTLD_NOW, why);
}

void load_plugin(Cuda& c) {
  if (c.asked) return;
  c.asked = true;
  void* library = open_device_library(c.stand_in, &c.absent);
  if (!library) return;
  using Entry = const DevicePlugin* (*)();
  auto entry = reinterpret_cast<Entry>(dlsym(library, "kassette_cuda_plugin"));
  const DevicePlugin* plugin = entry ? entry() : nullptr;
  if (!plugin || plugin->abi != kPluginAbi || !ops::connect_plugin(*plugin, &c.services)) {
    c.absent = text(kPluginFile, " is of another version of kassette; build or install both together");
    return;
  }
  c.plugin = plugin;
  log_debug(text(kPluginFile, " loaded, with ", plugin->n_kernels, " kernels"));
}

/// Returns null, with the reason in `why`, if the device is absent.
CudaDeviceApi* open_cuda(int index, const char** why) {
  Cuda& c = cuda_state();
  if (CudaDeviceApi* open = c.opened[index].load(std::memory_order_acquire)) return open;
  std::lock_guard<std::mutex> lock(c.mutex);
  if (CudaDeviceApi* open = c.opened[index].load(std::memory_order_relaxed)) return open;
  load_plugin(c);
  *why = c.plugin ? c.why[index].c_str() : c.absent.c_str();
  if (!c.plugin || !c.why[index].empty()) return nullptr;
  char reason[256] = "it does not open";
  CudaDeviceApi* made = c.plugin->open(index, c.services, reason, sizeof reason);
  if (!made) c.why[index] = reason;
  *why = c.why[index].c_str();
  c.opened[index].store(made, std::memory_order_release);
  return made;
}

}  // namespace

CudaDeviceApi& cuda_device_api(Device device) { return static_cast<CudaDeviceApi&>(device_api(device)); }

const DevicePlugin* device_library() {
  Cuda& c = cuda_state();
  std::lock_guard<std::mutex> lock(c.mutex);
  load_plugin(c);
  return c.plugin;
}

void use_device_library(const char* file) {
  Cuda& c = cuda_state();
  std::lock_guard<std::mutex> lock(c.mutex);
  c.stand_in = file;
}

bool device_in_use(Device device) {
  return device.type() != Device::kCuda || cuda_state().opened[device.index()].load(std::memory_order_acquire);
}

}  // namespace kassette::devices

namespace kassette {
using namespace devices;

DeviceApi& device_api(Device device) {
  if (device.type() == Device::kCuda) {
    const char* why = nullptr;
    if (DeviceApi* api = open_cuda(device.index(), &why)) return *api;
    fail<DeviceError>({}, device, " is not available: ", why);
  }
  static CpuDeviceApi* api = new CpuDeviceApi;  // never destroyed: tensors may outlive every static object
  return *api;
}

const char* device_absent(Device device) {
  const char* why = nullptr;
  return device.type() == Device::kCuda && !open_cuda(device.index(), &why) ? why : nullptr;
}

}  // namespace kassette

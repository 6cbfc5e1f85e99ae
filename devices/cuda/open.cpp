// devices/cuda/open.cpp - counting and opening CUDA devices, and pinned host memory.
#include <cstdio>
#include <cstring>

#include <kassette/error.h>

#include "devices/cuda/architectures.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/driver.h"

namespace kassette::cuda {
using namespace devices;
namespace {

constexpr int kMaxDevices = 256;

CudaDevice* devices[kMaxDevices];  // written once each, under the registry's lock, before the device is visible
std::atomic<CudaDevice*> first_opened{nullptr};
HostServices services;

/// The number of devices; if it is 0, `why` has the reason.
int count(char* why, std::size_t room) {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess && n > 0) return n;
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0) std::snprintf(why, room, "there is no CUDA driver");
    else
      std::snprintf(why, room, "the CUDA driver is for CUDA %d.%d, and this library needs one for %d.%d", driver / 1000,
                    driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  } else if (error != cudaSuccess && error != cudaErrorNoDevice) {
    std::snprintf(why, room, "CUDA says: %s", cudaGetErrorString(error));
  } else {
    std::snprintf(why, room, "there is no CUDA device");
  }
  cudaGetLastError();
  return 0;
}

const MemorySource pinned_memory{[](void*, std::int64_t bytes) noexcept -> void* {
                                   try {
                                     // Some context has to be current; this avoids creating one.
                                     DeviceGuard now(*first_opened.load());
                                     const RelaxedCapture allowed;
                                     void* p = nullptr;
                                     if (cudaMallocHost(&p, static_cast<std::size_t>(bytes)) == cudaSuccess) return p;
                                     cudaGetLastError();
                                   } catch (const Error&) {  // the device is lost
                                   }
                                   return nullptr;
                                 },
                                 [](void*, void* block, std::int64_t) noexcept { cudaFreeHost(block); }};
BlockCache& pinned_cache() {
  static BlockCache* cache = new BlockCache(cpu, pinned_memory, CachePolicy::keep_all);
  return *cache;
}

}  // namespace

void* allocate_pinned(std::int64_t bytes) {
  try {
    return pinned_cache().allocate(bytes);
  } catch (const Error&) {
    return nullptr;
  }
}
void release_pinned(void* data, std::int64_t bytes) { pinned_cache().release(data, bytes); }
void trim_pinned() { pinned_cache().trim(); }

CudaDevice& device_of(Device device) { return *devices[device.index()]; }
const HostServices& host_services() { return services; }

int count_devices() {
  char why[256];
  return count(why, sizeof why);
}
bool describe_device(int index, DeviceFacts* facts) {
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, index) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  *facts = {{}, static_cast<std::int64_t>(p.totalGlobalMem), p.major, p.minor};
  std::snprintf(facts->name, sizeof facts->name, "%s", p.name);
  return true;
}

CudaDeviceApi* open_device(int index, const HostServices& given, char* why, int why_bytes) {
  const auto room = static_cast<std::size_t>(why_bytes);
  const int n = count(why, room);
  if (n == 0) return nullptr;
  if (index >= n) {
    std::snprintf(why, room, n == 1 ? "there is %d CUDA device, cuda:0" : "there are %d CUDA devices, from cuda:0 on",
                  n);
    return nullptr;
  }
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) == cudaSuccess &&
      !has_code_for(KASSETTE_CUDA_ARCHITECTURES, major, minor)) {
    std::snprintf(why, room, "its compute capability is %d.%d, and this library has code for %s", major, minor,
                  KASSETTE_CUDA_ARCHITECTURES);
    return nullptr;
  }
  const bool first = !first_opened.load();  // only one thread at a time opens devices; others use open ones
  if (first) services = given;
  if (first && !find_driver()) {
    std::snprintf(why, room, "the CUDA driver lacks functions that this library needs");
    return nullptr;
  }
  try {
    devices[index] = new CudaDevice(index);
    if (first) first_opened.store(devices[index]);
    return devices[index];
  } catch (const Error& e) {
    std::snprintf(why, room, "%s", e.what());
    return nullptr;
  }
}

}  // namespace kassette::cuda

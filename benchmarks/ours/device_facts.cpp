// Asks the CUDA driver, which is all that every GPU machine has, what a device is.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "../timer.h"
#include "rows.h"

namespace {

/// The driver's library; null without one. It is not closed: the process uses it until its end.
void* driver() {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

/// A call of the driver API by its name; an answer that is not 0 is an error, as is a driver without it.
template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = driver() ? reinterpret_cast<Function>(dlsym(driver(), name)) : nullptr;
  return function ? function(arguments...) : -1;
}

/// Numbers of enum CUdevice_attribute, which NVIDIA keeps from version to version.
constexpr std::pair<const char*, int> kAttributes[] = {
    {"compute_major", 75},
    {"compute_minor", 76},
    {"multiprocessors", 16},
    {"clock_khz", 13},
    {"memory_clock_khz", 36},
    {"memory_bus_bits", 37},
    {"l2_bytes", 38},
    {"ecc", 32},
    {"threads_per_block", 1},
    {"threads_per_multiprocessor", 39},
    {"registers_per_multiprocessor", 82},
    {"shared_bytes_per_multiprocessor", 81},
    {"shared_bytes_per_block_at_most", 97},
};

}  // namespace

std::string device_facts(const std::string& device) {
  int index = std::atoi(device.c_str() + device.find(':') + 1), handle = 0, version = 0, value = 0;
  if (call("cuInit", 0u) || call("cuDeviceGet", &handle, index)) return ", \"emulated\": true";
  char name[200] = "";
  std::size_t memory = 0;
  call("cuDeviceGetName", name, static_cast<int>(sizeof name), handle);
  call("cuDeviceTotalMem_v2", &memory, handle);
  call("cuDriverGetVersion", &version);
  std::string facts = ", \"name\": \"" + bench::plain(name) + "\", \"driver_cuda\": \"" +
                      std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) +
                      "\", \"memory_bytes\": " + std::to_string(memory);
  for (auto [what, attribute] : kAttributes)
    if (!call("cuDeviceGetAttribute", &value, attribute, handle))
      facts += std::string(", \"") + what + "\": " + std::to_string(value);
  return facts;
}

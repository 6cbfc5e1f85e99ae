// devices/runtime.cpp - the functions of <kassette/runtime.h> that no other file defines.
#include <kassette/runtime.h>

#include "core/context.h"
#include "core/storage.h"
#include "core/text.h"

namespace kassette {

MemoryStats memory_stats(Device device) { return device_api(device).memory_stats(); }
void reset_peak_memory(Device device) { device_api(device).reset_peak_memory(); }
void set_memory_limit(std::int64_t bytes, Device device) {
  if (bytes < 0)
    fail<ValueError>({"set_memory_limit", "bytes"}, "is ", bytes, kExpected,
                     "it must not be negative, and 0 is no limit");
  device_api(device).set_memory_limit(bytes);
}
void empty_cache(Device device) { device_api(device).empty_cache(); }

DeviceScope::DeviceScope(Device device) : before_(context().default_device) {
  if (!device.given())
    fail<DeviceError>({"DeviceScope", "device"}, "is None", kExpected, "there are 'cpu' and 'cuda:N'");
  device_api(device);
  context().default_device = device;
}
DeviceScope::~DeviceScope() { context().default_device = before_; }

std::int64_t live_nodes() { return totals().live_nodes; }
std::int64_t saved_bytes() { return totals().saved_bytes; }

}  // namespace kassette

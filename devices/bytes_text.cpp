// devices/bytes_text.cpp - byte counts in readable units, and the error for failed allocations.
#include "devices/bytes_text.h"

#include <cstdio>
#include <ostream>

#include <kassette/error.h>

namespace kassette::devices {

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double n = static_cast<double>(bytes);
  int unit = 0;
  for (; n >= 1024 && unit < 5; ++unit) n /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", n, kUnits[unit]);
  return text;
}

void fail_memory(Device device, std::int64_t asked, const MemoryStats& held) {
  char name[16] = "cpu";
  if (device.type() == Device::kCuda) std::snprintf(name, sizeof name, "cuda:%d", device.index());
  std::string line = std::string("out of memory on ") + name + ": " + bytes_text(asked) + " asked for, " +
                     bytes_text(held.live) + " held by tensors, " + bytes_text(held.cached) + " cached, ";
  line += held.limit ? "limit " + bytes_text(held.limit) + " (set_memory_limit)" : "and the system gives no more";
  throw MemoryError(line.c_str());
}

}  // namespace kassette::devices

namespace kassette {
using namespace devices;

std::ostream& operator<<(std::ostream& os, const MemoryStats& s) {
  os << bytes_text(s.live) << " live, " << bytes_text(s.cached) << " cached, peak " << bytes_text(s.peak) << ", ";
  if (s.limit) os << "limit " << bytes_text(s.limit);
  else os << "no limit";
  return os << ", " << s.allocations << " blocks taken from the system";
}

}  // namespace kassette

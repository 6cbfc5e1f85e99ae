// devices/bytes_text.cpp - byte counts in readable units, and the error for failed allocations.
#include "devices/bytes_text.h"

#include <ostream>

#include <kassette/error.h>

#include "core/print/decimal.h"
#include "core/text.h"

namespace kassette::devices {

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double n = static_cast<double>(bytes);
  int unit = 0;
  for (; n >= 1024 && unit < 5; ++unit) n /= 1024;
  return fixed_text(n, unit ? 1 : 0) + ' ' + kUnits[unit];
}

void fail_memory(Device device, std::int64_t asked, const MemoryStats& held) {
  const std::string name = device.type() == Device::kCuda ? "cuda:" + std::to_string(device.index()) : "cpu";
  std::string line = "out of memory on " + name + ": " + bytes_text(asked) + " asked for, " + bytes_text(held.live) +
                     " held by tensors, " + bytes_text(held.cached) + " cached, ";
  line += held.limit ? "limit " + bytes_text(held.limit) + " (set_memory_limit)" : "and the system gives no more";
  throw MemoryError(line.c_str());
}

}  // namespace kassette::devices

namespace kassette {
using namespace devices;

std::ostream& operator<<(std::ostream& os, const MemoryStats& s) {
  return os << text(bytes_text(s.live), " live, ", bytes_text(s.cached), " cached, peak ", bytes_text(s.peak), ", ",
                    s.limit ? "limit " + bytes_text(s.limit) : "no limit", ", ", s.allocations,
                    " blocks taken from the system");
}

}  // namespace kassette

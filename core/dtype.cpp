// core/dtype.cpp - dtype and device names.
#include <cstdlib>
#include <cstring>
#include <ostream>

#include <kassette/device.h>
#include <kassette/dtype.h>

#include "core/text.h"

namespace kassette {
namespace {

constexpr const char* kNames[DType::kCount] = {"none",  "bool",    "uint8",    "uint16",  "int8",   "int16",
                                               "int32", "int64",   "float16",  "bfloat16", "float32", "float64"};

}  // namespace

const char* DType::name() const { return kNames[code_]; }

DType DType::parse(Name name) {
  if (!name.text()) return DType();
  for (int i = 1; i < kCount; ++i)
    if (!std::strcmp(name.text(), kNames[i])) return DType(static_cast<Code>(i));
  fail<TypeError>("dtype '", name.text(),
                  "' is unknown; there are bool, uint8, uint16, int8, int16, int32, int64, float16, bfloat16, "
                  "float32, float64");
}

std::ostream& operator<<(std::ostream& os, DType dtype) { return os << dtype.name(); }

Device Device::parse(Name name) {
  const char* t = name.text();
  if (!t) return Device();
  if (!std::strcmp(t, "cpu")) return cpu;
  if (!std::strcmp(t, "cuda")) return Device(kCuda, 0);
  if (!std::strncmp(t, "cuda:", 5) && t[5]) {
    char* end;
    long index = std::strtol(t + 5, &end, 10);
    if (!*end && index >= 0 && index < 256) return Device(kCuda, static_cast<std::uint8_t>(index));
  }
  fail<DeviceError>("device '", t, "' is unknown; there are 'cpu' and 'cuda:N'");
}

std::ostream& operator<<(std::ostream& os, Device device) {
  if (device.type() == Device::kNone) return os << "none";
  if (device.type() == Device::kCpu) return os << "cpu";
  return os << "cuda:" << device.index();
}

}  // namespace kassette

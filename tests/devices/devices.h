// tests/devices/devices.h - running a test on every device there is.
#pragma once
#include <string>

#include "core/storage.h"
#include "tests/catch.h"

namespace kassette::test {

/// True for "cpu" and for a CUDA device that is there; else says `skipped: no CUDA device (reason)`.
inline bool has_device(const std::string& name) {
  const char* why = device_absent(Device(name));
  if (why) skip("no CUDA device (" + std::string(why) + ")");
  return !why;
}

}  // namespace kassette::test

// tests/ranks/device.h - the device of a rank's tensors.
#pragma once
#include <kassette/distributed.h>
#include <kassette/runtime.h>

#include <cstdlib>
#include <string>

namespace kassette::test {

/// The device named by KASSETTE_RANKS_DEVICE, by default the CPU; "cuda" gives each rank its own GPU.
inline Device rank_device() {
  const char* set = std::getenv("KASSETTE_RANKS_DEVICE");
  if (!set || !*set) return cpu;
  const std::string name = set;
  return Device(name == "cuda" ? "cuda:" + std::to_string(distributed::World().local_rank()) : name);
}

}  // namespace kassette::test

// tests/ranks/device.h - where a rank's tensors are.
#pragma once
#include <kassette/distributed.h>
#include <kassette/runtime.h>

#include <cstdlib>
#include <string>

namespace kassette::test {

/// KASSETTE_RANKS_DEVICE: "cuda" for a GPU of its own for each rank, or a device; the CPU without it.
inline Device rank_device() {
  const char* set = std::getenv("KASSETTE_RANKS_DEVICE");
  if (!set || !*set) return cpu;
  const std::string name = set;
  return Device(name == "cuda" ? "cuda:" + std::to_string(distributed::World().local_rank()) : name);
}

}  // namespace kassette::test

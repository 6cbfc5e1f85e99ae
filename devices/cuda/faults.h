// devices/cuda/faults.h - how kernels report bad values, such as an index out of range, and the host turns them into
// errors.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "devices/plugin.h"

namespace kassette::cuda {

// Note [Errors of values]
// An index out of range is an error of the op that it was passed to, but only the device sees the index, and the host
// does not wait for each op to find out. The kernel skips the bad value without reading or writing out of bounds, and
// leaves a refusal (ops/engine/refusals.h) in the fault word of its device. The next wait for the device reads and
// clears the word, and throws. Only the first op that reports counts, and of its reports the one that the CPU would
// have come to first.
//
// The word is in pinned host memory, which the device can write, so that a wait costs one more read of host memory and
// no copy. A word in device memory would need a copy with each wait, which takes as long as waiting for a small kernel.
// Only kernels that report pay for this: each of their accesses to the word goes over the bus.
//
// The host clears the word when its own stream has finished. A report that another thread's kernel makes at that moment
// may be lost, as it would have been a moment earlier, when an error was already in the word.

/// The report itself, in pinned memory.
struct FaultWord {
  int lock;              // 1 while a thread writes
  std::uint32_t launch;  // the launch that reports; 0: no report
  std::int32_t refusal;
  std::int64_t position;  // in the CPU's order; the lowest report of a launch is kept
  std::int64_t numbers[devices::kFaultNumbers];
};

/// The argument by which a kernel reports (devices/cuda/faults.cuh).
struct Faults {
  FaultWord* word;
  std::uint32_t launch;
};

/// The fault word of one device, as the host uses it.
class FaultBox {
 public:
  /// Allocates the word. Throws DeviceError if there is no pinned memory.
  void open();
  /// The argument of the next launch.
  Faults next();
  /// Throws the reported error, if there is one, and clears it. Call after waiting. `asynchronous`: the op that
  /// reported it was called earlier, and is not the one that throws.
  void throw_reported(bool asynchronous);

 private:
  FaultWord* word_ = nullptr;
  std::atomic<std::uint32_t> launches_{0};
  std::mutex mutex_;
};

}  // namespace kassette::cuda

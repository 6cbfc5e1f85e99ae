// devices/cuda/faults.h - what kernels find wrong with the values that they are given, and where it is said.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "devices/plugin.h"

namespace kassette::cuda {

// Note [Errors of values]
// An index out of range is an error of the op that was given it, and only the device sees the index. Nobody waits for that: the kernel takes
// another way around the value, which reads and writes nothing outside, and leaves a refusal (ops/refusals.h) in the fault word of its device.
// Whoever waits for the device next reads and clears the word, and throws. Of the ops that found something the first counts, and of what
// that op found what the CPU would have come to first.
//    The word is in pinned memory of the host, which the device writes to. So a wait costs one read more, of its own memory, and no copy:
// a word in memory of the device would have to be brought here with each wait, by a copy that takes as long as the wait for a small kernel.
// The price is paid by kernels that find something, for which each access goes over the bus.
//    The host clears the word when its own stream has done its work. A kernel of another thread that finds something just then may be missed,
// as it would be a moment earlier, when there was a first error before it.

struct FaultWord {
  int lock;              // 1 while a thread writes
  std::uint32_t launch;  // 0: nothing is wrong
  std::int32_t refusal;
  std::int64_t rank;  // of what one launch finds the lowest is kept
  std::int64_t numbers[kFaultNumbers];
};

/// A kernel's argument: where it may say that something is wrong (devices/cuda/faults.cuh).
struct Faults {
  FaultWord* word;
  std::uint32_t launch;
};

/// The word of one device.
class FaultBox {
 public:
  /// Throws DeviceError where there is no pinned memory.
  void open();
  /// The argument of the next launch.
  Faults next();
  /// Throws what was found, and forgets it. Call after waiting. `late`: of an op that was called before.
  void say(bool late);

 private:
  FaultWord* word_ = nullptr;
  std::atomic<std::uint32_t> launches_{0};
  std::mutex mutex_;
};

}  // namespace kassette::cuda

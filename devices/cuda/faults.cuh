// devices/cuda/faults.cuh - how a kernel reports a bad value.
#pragma once
#include "devices/cuda/cuda.h"

namespace kassette::cuda {

/// Writes a refusal to the fault word unless an earlier one is there. `position`: that of the value in the CPU's
/// order.
template <class Refusal, class... Numbers>
__device__ void report(const Faults& faults, Refusal refusal, std::int64_t position, Numbers... numbers) {
  volatile FaultWord* w = faults.word;
  auto is_known = [&] { return w->launch != 0 && (w->launch != faults.launch || w->position <= position); };
  while (!is_known()) {
    // From compute capability 7.0 on, threads of a warp progress independently.
    if (atomicCAS(&faults.word->lock, 0, 1) != 0) continue;
    __threadfence();
    if (!is_known()) {
      const std::int64_t all[devices::kFaultNumbers] = {static_cast<std::int64_t>(numbers)...};
      w->launch = 0;  // so that the host does not read a half-written report
      __threadfence_system();
      for (int i = 0; i < devices::kFaultNumbers; ++i) w->numbers[i] = all[i];
      w->refusal = static_cast<std::int32_t>(refusal);
      w->position = position;
      __threadfence_system();
      w->launch = faults.launch;
    }
    __threadfence();
    atomicExch(&faults.word->lock, 0);
  }
}

}  // namespace kassette::cuda

// ops/shape/repeat.h - repeating elements along axes: broadcasting as a copy.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

/// Repeats `from`, whose shape is the unmarked runs, along the marked runs. All sizes are at least 1.
void repeat_runs(const std::byte* from, std::byte* to, int element_size, const CoalescedAxes& runs);

}  // namespace kassette::ops

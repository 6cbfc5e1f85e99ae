// ops/repeat.h - repeating elements along runs of axes: broadcasting as a copy.
#pragma once
#include "ops/axes.h"

namespace kassette {

/// Writes the elements of `from`, which has the runs that are not marked, repeated along the marked ones. All sizes >= 1.
void repeat_runs(const std::byte* from, std::byte* to, int element_size, const CoalescedAxes& runs);

}  // namespace kassette

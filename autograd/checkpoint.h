// autograd/checkpoint.h - how often the loops that a thread makes keep their states for the way back.
#pragma once
#include <cstdint>

namespace kassette {

// Note [Checkpoints]
// A loop keeps for its way back what its adjoint reads of every step. With checkpoints it keeps the states before every n-th
// step alone; on the way back the n steps are played again from there, then rewound, segment by segment. Keys of draws are a
// function of the loop's key and of the step, so a step that is played again draws the same numbers; it prints nothing.
// It is for first gradients: where the gradient is differentiated, the steps are recorded.

/// Steps from one kept state to the next: kNoCheckpoints, or kRootOfSteps for about the root of their number.
inline constexpr std::int64_t kNoCheckpoints = -1, kRootOfSteps = 0;
/// The setting of this thread. Whoever makes the node of a loop asks when it is made.
std::int64_t checkpoint_steps();
void set_checkpoint_steps(std::int64_t steps);
/// The length of a segment for LoopCall: 0 for none.
std::int64_t segment_of(std::int64_t checkpoint, std::int64_t steps);

}  // namespace kassette

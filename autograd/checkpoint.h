// autograd/checkpoint.h - gradient checkpointing of loops: how many steps the backward pass recomputes at a time.
#pragma once
#include <cstdint>

namespace kassette::autograd {

// Note [Checkpoints]
// A loop saves the residuals of every step for its backward pass. With checkpoints it saves only the states before
// every n-th step; the backward pass recomputes the residuals of n steps from there, interval by interval, from the
// last to the first. The key of a random draw is a function of the loop's key and the step, so a recomputed step draws
// the same numbers. It prints nothing. This serves first derivatives: if the gradient is itself differentiated, all
// steps are recorded.

/// Steps per interval: n > 0, kNoCheckpoints, or kRootOfSteps for about the square root of their number.
inline constexpr std::int64_t kNoCheckpoints = -1, kRootOfSteps = 0;
/// The setting of this thread, which a loop's node takes when it is made.
std::int64_t checkpoint_steps();
void set_checkpoint_steps(std::int64_t steps);
/// LoopCall::interval for a setting: the steps per interval, or 0 without checkpoints.
std::int64_t interval_of(std::int64_t checkpoint, std::int64_t steps);

}  // namespace kassette::autograd

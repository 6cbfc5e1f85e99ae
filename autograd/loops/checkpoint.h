// autograd/loops/checkpoint.h - gradient checkpointing of loops: how many steps the backward pass recomputes at a time.
#pragma once
#include <cstdint>

namespace kassette::autograd {

// Note [Checkpoints]
// A loop saves the residuals of every step for its backward pass. With checkpoints it saves only the states before
// every n-th step, and an interval is the n steps from one such state to the next. The backward pass goes through the
// intervals from the last to the first; it runs the steps of each forward again, from the saved states, to get their
// residuals. The key of a random draw is a function of the loop's key and the step, so a recomputed step draws the same
// numbers. It prints nothing. This serves first derivatives: if the gradient is itself differentiated, all steps are
// recorded.

/// Steps per interval: n > 0, kNoCheckpoints, or kRootOfSteps for about the square root of their number.
inline constexpr std::int64_t kNoCheckpoints = -1, kRootOfSteps = 0;
/// The setting of this thread, which a loop's node takes when it is made.
std::int64_t checkpoint_steps();
void set_checkpoint_steps(std::int64_t steps);
/// Returns the number of steps per interval, given the setting and the number of steps of the loop: LoopCall::interval.
/// 0 without checkpoints.
std::int64_t interval_of(std::int64_t checkpoint, std::int64_t steps);

}  // namespace kassette::autograd

// autograd/loops/checkpoint.cpp - gradient checkpointing of loops: how many steps the backward pass recomputes at a
// time.
#include "autograd/loops/checkpoint.h"

#include <cmath>

#include "core/context.h"

namespace kassette::autograd {

static_assert(ScopeState().checkpoint_steps == kNoCheckpoints);

std::int64_t checkpoint_steps() { return context().checkpoint_steps; }
void set_checkpoint_steps(std::int64_t steps) { context().checkpoint_steps = steps; }

std::int64_t interval_of(std::int64_t checkpoint, std::int64_t steps) {
  if (checkpoint == kNoCheckpoints) return 0;
  return checkpoint > 0 ? checkpoint : static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(steps))));
}

}  // namespace kassette::autograd

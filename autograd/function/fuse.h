// autograd/function/fuse.h - fusion in plans: elementwise instructions as chains (Note [Chains]), and products with a
// bias.
#pragma once
#include "autograd/function/frame.h"

namespace kassette::autograd {

/// True if an instruction may sum the result of a chain before it, see Note [Sums of chains].
inline bool sums(const Instruction& s) { return s.op->pattern == Pattern::sum || s.op->pattern == Pattern::mean; }
/// The group that begins at `begin`. Afterwards its slots have their shapes, and if it is not fused, splats among its
/// inputs are materialized.
FusionGroup form_group(Frame& f, int begin, int end);
/// Allocates the results that are read after the group. A slot that has storage keeps it: an update in place writes to
/// the variable's.
void allocate_results(Frame& f, const FusionGroup& group);
/// Builds the chain of a fused group whose results are allocated, and makes room for the threads that will run it.
void build_chain(Frame& f, const FusionGroup& group, Chain& chain);
/// Runs a fused group: a chain, and the sum of its result if group.sums.
void run_group(Frame& f, const FusionGroup& group, const Chain& chain);
/// Runs an instruction whose results are allocated.
void run_unfused(Frame& f, const Instruction& s);
/// Runs instruction k (an op that takes a bias), instruction k + 1 if it adds one to k's result, and on the CPU a relu
/// after that, as one kernel. Returns the number of instructions that it ran, or 0 if it did nothing. Results that are
/// skipped have their shape, which adjoints read.
int run_with_bias(Frame& f, int k, int end);

}  // namespace kassette::autograd

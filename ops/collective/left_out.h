// ops/collective/left_out.h - ops of many ranks that a function does not get to, since it has failed: Note [Ops of many
// ranks], ops/collective/collective.cpp.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// Whether an op waits until all ranks of a group run it, so that an error that it throws is thrown on all of them.
bool runs_together(const OpDef& op);
/// To be called in a catch block, for the first of these ops that will not run on this rank. The other ranks, which are
/// about to wait there, throw an error that contains the text of this one. If not `behind` the instruction that failed,
/// the op is that instruction: unless it was interrupted before it began, the others know. Inputs of the call that were
/// not computed have no data.
void leave_out(const OpCall& call, bool behind);

}  // namespace kassette::ops

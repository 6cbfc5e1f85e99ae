// autograd/splat.h - results that are one number, repeated.
#pragma once
#include "ops/op.h"

namespace kassette {

// Note [Splats]
// The gradient of a sum is one number in the shape of what was summed. Where elementwise steps alone read it, that number is kept
// alone: a splat has the shape of the whole and the storage of one element. Plans and backward passes make them and read them; a reader
// that is not elementwise (or float16 in a plan, broadcasting, an accelerator) has them written out first, and no tensor of a user is one.

inline bool is_splat(const Body& b) { return b.storage && b.storage->bytes < b.bytes(); }
/// Runs a row that has `repeated` into `out`, whose shape is known, where its input is one number and the output more; else returns false.
bool run_as_splat(const OpCall& call, Body& out);
/// Gives a splat the storage of its shape.
void write_out(Body& b);

}  // namespace kassette

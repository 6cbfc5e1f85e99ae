// autograd/update.h - changing variables: at once, or when a plan commits.
#pragma once
#include "autograd/plan.h"

namespace kassette {

extern const OpDef update_op;
struct UpdateAttrs {
  static constexpr const char* attrs_name = "update";
  Effect::Mode mode;
  bool moving_average;  // of K::moving_average_update
};
/// The function's name.
const char* update_name(const Attrs& attrs);

/// x <- value, x + value or x - value. At once, and returns x, where the scope is eager and the value is concrete; else a
/// recorded op, pure in value, whose effect a plan applies.
Tensor update(const Tensor& x, const Tensor& value, Effect::Mode mode, bool moving_average = false);

/// Of two tensors, the second of which may be a scalar, in the storage of `out`, which may be that of the first.
void run_binary(const OpDef& row, const InputView* in, Body& out);
/// a + b or a - b: what changes a variable in that mode.
const OpDef& op_of(Effect::Mode mode);
/// cell <- cell +- increment, in place where the cell alone owns its bytes, else in `room` if it is given. The shapes agree.
void accumulate(Cell& cell, const Body& increment, bool subtract, Ref<Storage> room = {});

}  // namespace kassette

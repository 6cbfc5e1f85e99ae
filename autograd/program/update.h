// autograd/program/update.h - updates of variables: immediate, or recorded and applied when a plan commits.
#pragma once
#include "autograd/program/program.h"

namespace kassette::autograd {

extern const OpDef update_op;
/// The attributes of update_op.
struct UpdateAttrs {
  static constexpr const char* attrs_name = "update";
  Effect::Mode mode;
  bool moving_average;  // the call was K::moving_average_update
};
/// The K function that the user called.
const char* update_name(const Attrs& attrs);

/// x <- value, x + value or x - value. In an eager scope with a concrete value: updates x now and returns it. Else:
/// records an op whose result is the new value, and a plan applies the update.
Tensor update(const Tensor& x, const Tensor& value, Effect::Mode mode, bool moving_average = false);

/// The op of an increment: add, or subtract for any other mode than kAdd.
const OpDef& op_of(Effect::Mode mode);
/// cell <- cell +- increment: in place if nothing else refers to its bytes, else into `room`, or into new memory if
/// that is null. Shapes must agree.
void accumulate(Cell& cell, const TensorDesc& increment, bool subtract, Ref<Storage> room = {});

}  // namespace kassette::autograd

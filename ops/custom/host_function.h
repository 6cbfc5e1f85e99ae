// ops/custom/host_function.h - ops made of functions of the user: an adjoint in place of that of the ops, and a
// function of the host on the values.
#pragma once
#include <memory>

#include "ops/engine/op.h"

namespace kassette::ops {

/// Functions of the user behind an op.
class UserFunctions {
 public:
  virtual ~UserFunctions() = default;
  /// The result from the values of the arguments, and its shape from theirs: of host_call.
  virtual Tensor value(const Tensors& x) const = 0;
  virtual Shape shape(const Shape* x) const = 0;
  /// The cotangents of the arguments, of which some may be empty, from (x..., y, dy).
  virtual Tensors vjp(const Tensors& list) const = 0;
  virtual bool has_gradient() const = 0;
};

extern const OpDef custom_gradient_op, host_call_op;
/// y, which was computed from x, with a gradient of the user's: no cotangent reaches x but by user.vjp.
Tensor custom_gradient(const Tensor& y, const Tensors& x, std::unique_ptr<UserFunctions> user);
/// A function of the host as one op: it runs when the values are there. dtype: that of the result; that of the first
/// argument unless given. Throws ValueError if the result has another shape than user.shape said.
Tensor host_call(std::unique_ptr<UserFunctions> user, DType dtype, const Tensors& x);

}  // namespace kassette::ops

// nn_backend/numpy/arguments.h - the arguments of np functions: containers keep their dtype, dtypes of one kind are
// promoted.
#pragma once
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette::numpy {

/// The dtype that an argument brings along: that of a tensor, of a container or of an array of another library. Numbers
/// and lists of numbers have none.
DType own_dtype(const Operand& x);
/// The smallest dtype of the same kind that holds both. Throws TypeError in the name of `what` if their kinds differ.
DType promoted(DType a, DType b, const char* what);
/// The dtype of results that count or add integers: the widest of their kind, int64 for bool.
DType widest(DType dtype);

/// A tensor argument; numbers and lists of numbers get `weak`, or floatx if that is not given.
class ArrayArg : public ops::Arg {
 public:
  ArrayArg(const Operand& x, const At& at, DType weak = {})
      : Arg(x, ops::is_tensor_operand(x) ? DType() : own_or(x, weak), at) {
    if (!tensor().defined()) fail_empty(at);
  }

 private:
  static DType own_or(const Operand& x, DType weak) {
    const DType own = own_dtype(x);
    return own.given() ? own : weak;
  }
};

/// Two arguments that are promoted to one dtype, as operands: a number stays one, and takes the dtype of the other.
class Pair {
 public:
  Pair(const Operand& x, const Operand& y, const char* what);
  const Operand& x() const { return x_; }
  const Operand& y() const { return y_; }

 private:
  struct Side {
    Tensor tensor;
    Operand operand = None;
  };
  const Operand& converted(const Operand& x, DType dtype, const At& at, Side& side);
  Side sides_[2];
  const Operand &x_, &y_;
};

}  // namespace kassette::numpy

/// Defines the np function of one tensor that is an op.
#define KASSETTE_NUMPY_UNARY(function, op) \
  Tensor function(const Operand& x) { \
    return ops::attribute_errors(#function, [&] { return ops::op(ArrayArg(x, {#function, "x"})); }); \
  }
/// Defines the np function of two tensors that is an op.
#define KASSETTE_NUMPY_BINARY(function, op) \
  Tensor function(const Operand& x, const Operand& y) { \
    return ops::attribute_errors(#function, [&] { \
      const Pair both(x, y, #function); \
      return ops::op(both.x(), both.y()); \
    }); \
  }

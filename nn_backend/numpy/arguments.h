// nn_backend/numpy/arguments.h - the arguments of np functions: containers keep their dtype, dtypes of one kind are
// promoted.
#pragma once
#include <initializer_list>
#include <memory>
#include <vector>

#include "ops/elementwise/arithmetic.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette::numpy {

/// The dtype that an argument brings along: that of a tensor, of a container or of an array of another library. Numbers
/// and lists of numbers have none.
DType own_dtype(const Operand& x);
/// The smallest dtype of the same kind that holds both. Throws TypeError in the name of `what` if their kinds differ;
/// `first` and `second` are the names of the arguments.
DType promoted(DType a, DType b, const char* what, const char* first = "x", const char* second = "y");
/// The dtype in which integers are added: int64 or uint64, int64 for bool. Floats keep theirs.
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
  Pair(const Operand& x, const Operand& y, const char* what, const char* first = "x", const char* second = "y");
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  const Operand& x() const { return x_; }
  const Operand& y() const { return y_; }

 private:
  Tensor made_x_, made_y_;  // what the operands point to where an argument had to be converted
  Operand x_, y_;
};

/// Returns f(the argument as a tensor), whose errors name the function `what`.
template <class F>
auto of_array(const char* what, const Operand& x, F&& f) {
  return ops::attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    return f(array.tensor());
  });
}

/// The numbers of an argument that lists integers, and its shape. Throws TypeError for other dtypes, ValueError if they
/// are not known before a function is called.
struct Integers {
  std::vector<std::int64_t> values;
  Shape shape;
};
Integers integers_of(const Operand& x, const At& at);
/// The rank of x. Throws ValueError if it is not known.
int known_rank(const Tensor& x, const At& at);
/// The size of x along an axis that is not negative. Throws ValueError if it is not known.
std::int64_t known_size(const Tensor& x, int axis, const At& at);
/// Returns `axis`, which is one axis or None. Throws ValueError otherwise.
const Axes& one_axis(const At& at, const Axes& axis);
/// The one axis of an argument; None flattens x, and is then axis 0.
int one_axis_of(const char* what, Tensor& x, const Axes& axis);
/// The axes counted from the front, of a tensor of that rank; None: all. Throws ValueError if one is out of range or
/// given twice.
std::vector<int> places_of(const At& at, const Axes& axes, int rank);
/// The elements start, start + step, ... of an axis, as in Python's slices.
Tensor slice_along(const Tensor& x, int axis, Scalar start, Scalar stop, std::int64_t step = 1);

/// A shape argument whose sizes are numbers where they are known, and else tensors.
class SizesOf {
 public:
  /// Appends the size of an axis of x that is not negative.
  void push_size(const Tensor& x, int axis);
  void push(std::int64_t n) { dims_.push_back(n); }
  /// Appends a size that is a scalar int64 tensor on the host.
  void push(const Tensor& n);
  operator Dims() const { return dims_; }

 private:
  std::vector<Dim> dims_;
  std::vector<std::unique_ptr<Tensor>> kept_;
};
/// The size of an axis, which may be negative, as a scalar int64 tensor on the host.
Tensor size_along(const Tensor& x, int axis);

/// An argument and its name.
struct NamedOperand {
  const char* name;
  const Operand& value;
};
/// Arguments that are promoted to one dtype, as tensors. Numbers become scalars on the device of the first tensor.
Tensors promoted_tensors(const char* what, std::initializer_list<NamedOperand> arguments);
/// The same, converted to `dtype`.
Tensors tensors_as(const char* what, std::initializer_list<NamedOperand> arguments, DType dtype);
/// The same, promoted, but bool and integers become floatx.
Tensors float_tensors(const char* what, std::initializer_list<NamedOperand> arguments);
/// The tensors of a list, of the dtype that theirs are promoted to. Throws ValueError if there is none.
Tensors of_one_dtype(const char* what, const Tensors& x);
/// Throws DeviceError unless both are on one device.
void check_device(const Tensor& x, const Tensor& other, const At& at);
/// `array`, which was made of an argument, on the device of x: numbers, lists and containers are brought there. Throws
/// DeviceError if the argument is a tensor on another device.
Tensor beside(const Tensor& x, const Operand& argument, const Tensor& array, const At& at);
/// Throws TypeError unless the tensor has a float dtype.
void check_float(const Tensor& x, const At& at);
/// x, in float32 if it is of a half type.
inline Tensor wide(const Tensor& x) { return x.dtype().size() < 4 ? ops::cast(x, float32) : x; }

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

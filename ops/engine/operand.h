// ops/engine/operand.h - conversion of the user's arguments (tensors, numbers, lists, containers) to tensors.
#pragma once
#include "core/text.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// floatx as a DType: the dtype of literals that are not combined with a tensor. Set by nn_backend/config.
DType default_float();
void set_default_float(DType dtype);

/// What happens to a fraction where an integer dtype is expected: `reject` throws (numbers combined with a tensor),
/// `truncate` converts as a cast does (values that are fed or assigned).
enum class Fractions : std::uint8_t { reject, truncate };
/// Converts an operand to a tensor. A number, list or container gets `dtype`, or floatx if that is not given.
Tensor as_tensor(const Operand& x, DType dtype, const At& where, Fractions fractions = Fractions::reject);
/// True if the operand is a Tensor already.
inline bool is_tensor_operand(const Operand& x) { return Access::kind(x) == Scalar::kTensor; }
inline const Tensor& tensor_of(const Operand& x) { return *static_cast<const Tensor*>(Access::pointer(x)); }

/// A tensor argument: borrowed if the operand is a tensor, else converted and owned.
class Arg {
 public:
  Arg(const Operand& x, DType dtype, const At& where)
      : made_(is_tensor_operand(x) ? Tensor() : as_tensor(x, dtype, where)),
        tensor_(is_tensor_operand(x) ? &tensor_of(x) : &made_) {}
  Arg(const Arg&) = delete;
  Arg& operator=(const Arg&) = delete;
  operator const Tensor&() const { return *tensor_; }
  operator In() const { return In(*tensor_); }
  const Tensor& tensor() const { return *tensor_; }
  const TensorDesc& desc() const { return Access::desc(*tensor_); }

 private:
  Tensor made_;
  const Tensor* tensor_;
};

/// The dtype of the numbers and lists among these operands: that of the first one that is a tensor, else none.
DType dtype_for_numbers(const Operand& a, const Operand& b);

/// A new concrete tensor with uninitialised elements.
Tensor empty_tensor(const TensorSpec& spec, const char* what = "tensor", Device device = cpu);
template <class T>
T* mutable_data(const Tensor& t) {
  return reinterpret_cast<T*>(Access::desc(t).data());
}
/// A rank-0 tensor that holds `value`.
Tensor scalar_tensor(const Scalar& value, DType dtype, const At& where = "constant");

}  // namespace kassette::ops

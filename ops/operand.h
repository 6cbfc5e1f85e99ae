// ops/operand.h - what the user wrote where a tensor is expected, as a tensor.
#pragma once
#include "ops/op.h"

namespace kassette {

/// floatx as a DType: what literals become when no tensor beside them says otherwise. Set by nn_backend/config.
DType default_float();
void set_default_float(DType dtype);

/// What a number with a fraction does where integers are wanted: beside a tensor it is an error; what is fed or assigned is
/// converted as a cast does it.
enum class Fractions : std::uint8_t { refuse, cut };
/// The tensor that an operand stands for. A number, list or container takes `dtype`; where that is not given, floatx.
/// `what` is the name of the function for messages.
Tensor as_tensor(const Operand& x, DType dtype, const char* what, Fractions fractions = Fractions::refuse);
/// True where the operand is a Tensor already.
inline bool is_tensor_operand(const Operand& x) { return Access::kind(x) == Scalar::kTensor; }
inline const Tensor& tensor_of(const Operand& x) { return *static_cast<const Tensor*>(Access::pointer(x)); }

/// An array of another library as ArrayOf makes it a tensor, which may lie in that array's memory.
Tensor foreign_array(const Operand& x);

/// A tensor argument, borrowed if the user gave a tensor, made if not.
class Arg {
 public:
  Arg(const Operand& x, DType dtype, const char* what)
      : made_(is_tensor_operand(x) ? Tensor() : as_tensor(x, dtype, what)),
        tensor_(is_tensor_operand(x) ? &tensor_of(x) : &made_) {}
  Arg(const Arg&) = delete;
  Arg& operator=(const Arg&) = delete;
  operator const Tensor&() const { return *tensor_; }
  operator In() const { return In(*tensor_); }
  const Tensor& tensor() const { return *tensor_; }
  const Body& body() const { return Access::body(*tensor_); }

 private:
  Tensor made_;
  const Tensor* tensor_;
};

/// The dtype that numbers beside these operands take: that of the first that is a tensor, else none.
DType dtype_beside(const Operand& a, const Operand& b);

/// A new concrete tensor, its elements not yet written.
Tensor empty_tensor(const TensorSpec& spec, const char* what = "tensor", Device device = cpu);
template <class T>
T* mutable_data(const Tensor& t) {
  return reinterpret_cast<T*>(Access::body(t).data());
}
/// A rank-0 tensor with that number.
Tensor scalar_tensor(const Scalar& value, DType dtype, const char* what = "constant");

}  // namespace kassette

// nn_backend/introspection.h - asking tensors what they are.
#ifndef KASSETTE_BACKEND_INTROSPECTION_H
#define KASSETTE_BACKEND_INTROSPECTION_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// True for what `variable`, `zeros` and the like made.
KASSETTE_API bool is_variable(const Operand& x);
/// True for what `placeholder` made.
KASSETTE_API bool is_placeholder(const Operand& x);
/// True for a Tensor, false for numbers and lists.
KASSETTE_API bool is_tensor(const Operand& x);
/// True for what mark_keras_tensor gave, and for nothing else. Throws ValueError for what is no tensor.
KASSETTE_API bool is_keras_tensor(const Operand& x);
/// x, for which is_keras_tensor is true: for libraries of layers, where Keras sets _keras_history on inputs and
/// outputs. What is computed from it is not marked.
KASSETTE_API Tensor mark_keras_tensor(const Tensor& x);

/// The run-time shape as an int32 tensor, and the number of elements as an int32 scalar; both on the CPU. Of a
/// placeholder they are symbolic, and K::eval gives them where all sizes are known. Both go wherever a shape is taken,
/// as in zeros({K::shape(x)[0], 5}). No gradient.
KASSETTE_API Tensor shape(const Operand& x);
KASSETTE_API Tensor size(const Operand& x, Name name = None);
/// The static shape; unknown sizes compare equal to None, and so does the whole where the rank is unknown.
KASSETTE_API Shape int_shape(const Operand& x);
/// The same; Keras has it under this name too.
KASSETTE_API Shape get_variable_shape(const Operand& x);
/// The static rank, or None.
KASSETTE_API Extent ndim(const Operand& x);
/// The dtype; numbers and lists have floatx.
KASSETTE_API DType dtype(const Operand& x);
/// x with another dtype; x itself where it has it, the value of a variable. Floats to integers truncate towards 0 and
/// saturate, NaN gives 0; to bool: what is not 0, NaN too, is true; integers to integers wrap. Of a sparse tensor the
/// values. Gradients flow between float dtypes only.
KASSETTE_API Tensor cast(const Operand& x, DType dtype);
/// The number of elements. Throws ValueError where a size is unknown.
KASSETTE_API std::int64_t count_params(const Operand& x);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_INTROSPECTION_H

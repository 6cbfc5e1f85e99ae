// include/kassette/backend/introspection.h - asking tensors what they are.
#ifndef KASSETTE_BACKEND_INTROSPECTION_H
#define KASSETTE_BACKEND_INTROSPECTION_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// True for a tensor that `variable`, `zeros` or the like made.
KASSETTE_API bool is_variable(const Operand& x);
/// True for a tensor that `placeholder` made.
KASSETTE_API bool is_placeholder(const Operand& x);
/// True for a Tensor, false for numbers and lists.
KASSETTE_API bool is_tensor(const Operand& x);
/// True for a tensor that mark_keras_tensor returned, and for no other. Throws ValueError if x is not a tensor.
KASSETTE_API bool is_keras_tensor(const Operand& x);
/// x, marked so that is_keras_tensor is true for it: for libraries of layers, in the places where Keras sets
/// _keras_history on inputs and outputs. Tensors computed from it are not marked.
KASSETTE_API Tensor mark_keras_tensor(const Tensor& x);

/// The run-time shape as an int32 tensor, and the number of elements as an int32 scalar; both on the CPU. For a
/// placeholder they are symbolic, and K::eval returns them if all sizes are known. Both can be used wherever a shape is
/// an argument, as in zeros({K::shape(x)[0], 5}). No gradient.
KASSETTE_API Tensor shape(const Operand& x);
KASSETTE_API Tensor size(const Operand& x, Name name = None);
/// The static shape; unknown sizes compare equal to None, and so does the whole shape if the rank is unknown.
KASSETTE_API Shape int_shape(const Operand& x);
/// The same; Keras has it under this name too.
KASSETTE_API Shape get_variable_shape(const Operand& x);
/// The static rank, or None.
KASSETTE_API Extent ndim(const Operand& x);
/// The dtype; numbers and lists have floatx.
KASSETTE_API DType dtype(const Operand& x);
/// x converted to a dtype; x itself if it has that dtype (for a variable, its value). From floats to integers, numbers
/// are truncated towards 0 and saturate, and NaN gives 0. As bool, everything that is not 0 is true, NaN too. From
/// integers to integers, numbers wrap around. For a sparse tensor, its values are converted. Gradients flow between
/// float dtypes only.
KASSETTE_API Tensor cast(const Operand& x, DType dtype);
/// The number of elements. Throws ValueError if a size is unknown.
KASSETTE_API std::int64_t count_params(const Operand& x);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_INTROSPECTION_H

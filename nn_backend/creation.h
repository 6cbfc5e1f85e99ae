// nn_backend/creation.h - making tensors: variables, placeholders, constants (specification section 2.2).
#ifndef KASSETTE_BACKEND_CREATION_H
#define KASSETTE_BACKEND_CREATION_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// A tensor that K::update can change, with that initial value: floatx unless dtype is given, the shape of the value. A
/// tensor of another dtype is cast. Throws ValueError where the value is symbolic. Specification 2.2.
KASSETTE_API Tensor variable(const Operand& value, DType dtype = None, Name name = None);
/// A tensor with that value and no history: floatx unless dtype is given. With a shape, a number fills it and a list or
/// tensor is reshaped; throws ValueError where the counts differ. Specification 2.2.
KASSETTE_API Tensor constant(const Operand& value, DType dtype = None, const Dims& shape = None, Name name = None);
/// A tensor without a value, to be fed to a function: of `shape`, whose unknown sizes are None, or of rank `ndim`, or of
/// unknown rank; floatx unless dtype is given. Throws NotImplementedError for sparse. Specification 2.2.
KASSETTE_API Tensor placeholder(const Dims& shape = None, Scalar ndim = None, DType dtype = None, bool sparse = false,
                                Name name = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CREATION_H

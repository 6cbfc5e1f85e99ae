// include/kassette/backend/creation.h - making tensors: variables, placeholders, constants.
#ifndef KASSETTE_BACKEND_CREATION_H
#define KASSETTE_BACKEND_CREATION_H
#include <kassette/none.h>
#include <kassette/print.h>

namespace kassette {

/// A function that an optimizer applies to a variable after each update: weights -> constrained weights.
using Constraint = KeptCallable<Tensor(const Tensor& w)>;
/// The constraint that a variable was made with, as Keras' attribute `constraint`. Throws TypeError if it is not a
/// variable.
KASSETTE_API Constraint constraint_of(const Tensor& variable);
/// The name that a variable or a placeholder was made with, after the names of the name scopes around it; empty for
/// other tensors, and if no name was given. Throws ValueError for an empty Tensor.
KASSETTE_API Text name_of(const Tensor& x);

namespace backend {

/// A tensor that K::update can change, with that initial value and its shape. Its dtype is floatx unless one is given.
/// A tensor of another dtype is cast. The constraint is kept for optimizers (constraint_of), never applied here. Throws
/// ValueError if the value is symbolic. For a sparse value it returns a sparse tensor of the same dtype, which is not a
/// variable.
KASSETTE_API Tensor variable(const Operand& value, DType dtype = None, Name name = None,
                             const Constraint& constraint = None);
/// A tensor with that value and no history: floatx unless dtype is given. With a shape, a number fills it and a list or
/// tensor is reshaped; throws ValueError if the numbers of elements differ.
KASSETTE_API Tensor constant(const Operand& value, DType dtype = None, const Dims& shape = None, Name name = None);
/// A tensor without a value, to be fed to a function: of `shape`, whose unknown sizes are None, or of rank `ndim`, or
/// of unknown rank; floatx unless dtype is given. A sparse placeholder can have any known rank, and is fed sparse
/// tensors.
KASSETTE_API Tensor placeholder(const Dims& shape = None, Scalar ndim = None, DType dtype = None, bool sparse = false,
                                Name name = None);
/// Variables of zeros and of ones; plain tensors if the shape depends on a placeholder. floatx unless dtype is given.
KASSETTE_API Tensor zeros(const Dims& shape, DType dtype = None, Name name = None);
KASSETTE_API Tensor ones(const Dims& shape, DType dtype = None, Name name = None);
/// A variable, (n, n) or (n, m), with ones on the main diagonal.
KASSETTE_API Tensor eye(const Dims& size, DType dtype = None, Name name = None);
/// Zeros and ones with the shape that x has at run time; floatx unless dtype is given.
KASSETTE_API Tensor zeros_like(const Operand& x, DType dtype = None, Name name = None);
KASSETTE_API Tensor ones_like(const Operand& x, DType dtype = None, Name name = None);
/// A tensor with the value of x; for a variable, its current value. The gradient passes through.
KASSETTE_API Tensor identity(const Operand& x, Name name = None);
/// start, start + step, ... before stop; with one argument, 0 to start - 1. Empty if step points away from stop. int32
/// unless dtype is given, float32 if an argument is a float. Arguments must be scalars. A stop that is a multiple of
/// step away, but for rounding, is left out: arange(1, 1.6, 0.1) ends at 1.5. Throws ValueError for a step of 0.
KASSETTE_API Tensor arange(const Operand& start, const Operand& stop = None, const Operand& step = 1,
                           DType dtype = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CREATION_H

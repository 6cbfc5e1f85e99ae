// nn_backend/numpy/numbers.h - numbers of options and of tensors, for solvers that decide by them on the host.
#pragma once
#include <kassette/api.h>

#include "core/text.h"

namespace kassette::numpy {

/// A start value as a float tensor, with its history. Throws ValueError if it depends on a placeholder.
Tensor float_value_of(const At& at, const Operand& x);
/// The same without its history. Throws ValueError while gradients are off, which what starts there needs.
Tensor start_of(const At& at, const Operand& x);
/// The distance from 1 to the next number of a float dtype.
double unit_of(DType dtype);
/// The number of an option. Throws TypeError if it is none.
double number_of(const At& at, const Scalar& x);
/// The sum of the products of the elements, its root for one tensor, and the largest absolute value.
double dot_of(const Tensor& x, const Tensor& y);
double norm_of(const Tensor& x);
double largest_of(const Tensor& x);

}  // namespace kassette::numpy

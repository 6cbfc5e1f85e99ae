// ops/arithmetic.h - elementwise ops as functions of tensors, for adjoints and compositions. Numbers beside tensors are
// operands of operator+ and so on.
#pragma once
#include "ops/op.h"

namespace kassette {

Tensor exp(const Tensor& x);
Tensor square(const Tensor& x);
/// a * b, but 0 wherever a is 0, whatever b is: cotangents that are zero stay zero beside inf and nan.
Tensor mul_no_nan(const Tensor& a, const Tensor& b);

}  // namespace kassette

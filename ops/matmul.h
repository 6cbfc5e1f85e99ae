// ops/matmul.h - matrix products.
#pragma once
#include "ops/op.h"

namespace kassette {

/// a x b over the last two axes, each transposed by flag; leading axes are batches and broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

}  // namespace kassette

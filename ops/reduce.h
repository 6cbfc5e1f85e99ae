// ops/reduce.h - reductions and scans as functions of tensors.
#pragma once
#include "ops/op.h"

namespace kassette {

/// Sum over axes (None: all).
Tensor sum(const Tensor& x, const Axes& axes = None, bool keepdims = false);

}  // namespace kassette

// ops/dims.h - shape arguments as tensors, and shapes out of tensors.
#pragma once
#include "ops/op.h"

namespace kassette {

/// A shape argument as ops take it: a 1-D int64 tensor on the host. Numbers only: concrete. Scalar tensors among them: packed,
/// symbolic if one is. One integer tensor: itself. An entry None becomes -1. Throws in the name of `what`.
Tensor dims_tensor(const Dims& dims, const char* what);
/// For rules: rank and dims of `out` from input i, a 1-D integer tensor on the host. Values where they are known; else looks
/// through packed numbers and shape(y)[j], so that static dims stay static; the rest is unknown.
void dims_from(const Call& call, int i, Spec* out);

}  // namespace kassette

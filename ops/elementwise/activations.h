// ops/elementwise/activations.h - the ops of activation_ops.h as functions of tensors.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// x * sigmoid(x)
Tensor silu(const Tensor& x);
/// x times the normal distribution function, and its approximation by a tanh.
Tensor gelu(const Tensor& x);
Tensor gelu_tanh(const Tensor& x);

}  // namespace kassette::ops

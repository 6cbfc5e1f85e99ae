// ops/normalization/normalization.h - batch normalisation as functions of tensors. An empty Tensor stands for "no
// gamma" and "no beta".
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

/// The results of normalize_batch. mean and variance have the axes that are not reduced; they are float32 if x is
/// float16 or bfloat16.
struct Normalized {
  Tensor y, mean, variance;
};

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and the biased variance of x over `axes`.
/// gamma and beta broadcast to the shape of x without these.
Normalized normalize_batch(const Tensor& x, const Tensor& gamma, const Tensor& beta, AxisSet axes, double epsilon);
/// (x - mean) * scale + shift; the parameters broadcast to x, and are float32 if x is float16 or bfloat16.
Tensor center_scale(const Tensor& x, const Tensor& mean, const Tensor& scale, const Tensor& shift);

/// normalize_batch_op has a fourth output, what the rounding of the mean took: Note [The rounding of a mean].
extern const OpDef normalize_batch_op, normalize_batch_grad_op, center_scale_op;

}  // namespace kassette::ops

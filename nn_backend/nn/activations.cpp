// nn_backend/nn/activations.cpp - activation functions as Keras 3 has them, and classes as zeros and ones.
#include <kassette/nn/activations.h>

#include <cmath>
#include <vector>

#include "core/rank.h"
#include "nn_backend/nn/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/unary.h"
#include "ops/engine/expr.h"
#include "ops/engine/stop.h"
#include "ops/order/order.h"
#include "ops/shape/checked.h"

namespace kassette::nn {

using namespace ops;

namespace {

/// 1.0507 and 1.6733 of selu.
constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;
/// Below it silu, mish and their like are zero; -inf, which times 0 would be NaN, becomes it.
constexpr double kLowest = -800;

/// log(softmax(x)) over several axes.
Tensor log_softmax_over(const Tensor& x, const Axes& axis) {
  const Tensor z = x - ops::stop_gradient(ops::max(x, axis, /*keepdims=*/true));
  return z - ops::logsumexp(z, axis, /*keepdims=*/true);
}

}  // namespace

Tensor relu(const Operand& x) {
  return of_floats("relu", x, [](const Tensor& t) { return ops::relu(t); });
}
Tensor relu6(const Operand& x) {
  return of_floats("relu6", x, [](const Tensor& t) { return general_relu(t, 0, 6, 0); });
}
Tensor leaky_relu(const Operand& x, double negative_slope) {
  return of_floats("leaky_relu", x, [&](const Tensor& t) { return ops::leaky_relu(t, negative_slope); });
}
Tensor elu(const Operand& x, double alpha) {
  return of_floats("elu", x, [&](const Tensor& t) { return ops::elu(t, alpha); });
}
Tensor selu(const Operand& x) {
  return of_floats("selu", x, [](const Tensor& t) { return ops::elu(t, kSeluAlpha) * kSeluScale; });
}
Tensor celu(const Operand& x, double alpha) {
  return of_floats("celu", x, [&](const Tensor& t) {
    const Tensor positive = greater(t, 0.0);
    return where(positive, t, expm1(where(positive, 0.0, t) / alpha) * alpha);
  });
}
Tensor gelu(const Operand& x, bool approximate) {
  return of_floats("gelu", x, [&](const Tensor& t) { return approximate ? gelu_tanh(t) : ops::gelu(t); });
}
Tensor silu(const Operand& x) {
  return of_floats("silu", x, [](const Tensor& t) { return ops::silu(t); });
}
Tensor mish(const Operand& x) {
  return of_floats("mish", x, [](const Tensor& t) {
    const Tensor c = maximum(t, kLowest);
    return c * ops::tanh(ops::softplus(c));
  });
}
Tensor glu(const Operand& x, int axis) {
  return of_floats("glu", x, [&](const Tensor& given) {
    const int rank = numpy::known_rank(given, {"glu", "x"}), along = place_axis("glu", axis, Access::desc(given));
    const Tensor t = checked(given, [=](const TensorSpec& d) {
      if (d.rank >= 0 && d.dims[along] >= 0 && d.dims[along] % 2)
        fail<ValueError>({"glu", "x"}, "of shape ", d, " has ", d.dims[along], " elements along axis ", axis, kExpected,
                         "it must have an even number");
    });
    const TensorDesc& d = Access::desc(t);
    std::vector<Dim> shape;
    std::vector<Tensor> unknown(static_cast<std::size_t>(rank));
    for (int i = 0; i < rank; ++i) {
      const std::int64_t parts = i == along ? 2 : 1;
      if (i == along) shape.push_back(2);
      Tensor& size = unknown[static_cast<std::size_t>(i)];
      if (d.dims[i] < 0) size = kassette::floor_divide(numpy::size_along(t, i), parts);
      shape.push_back(d.dims[i] < 0 ? Dim(size) : Dim(d.dims[i] / parts));
    }
    const Tensors halves = unstack(reshape(t, shape), 2, along);
    return halves[0] * ops::sigmoid(halves[1]);
  });
}

Tensor sigmoid(const Operand& x) {
  return of_floats("sigmoid", x, [](const Tensor& t) { return ops::sigmoid(t); });
}
Tensor hard_sigmoid(const Operand& x) {
  return of_floats("hard_sigmoid", x, [](const Tensor& t) { return clip(t + 3.0, 0, 6) / 6.0; });
}
Tensor sparse_sigmoid(const Operand& x) {
  return of_floats("sparse_sigmoid", x, [](const Tensor& t) { return clip(t * 0.5 + 0.5, 0, 1); });
}
Tensor log_sigmoid(const Operand& x) {
  return of_floats("log_sigmoid", x, [](const Tensor& t) { return -ops::softplus(-t); });
}
Tensor hard_silu(const Operand& x) {
  return of_floats("hard_silu", x, [](const Tensor& t) {
    const Tensor c = maximum(t, -3.0);
    return c * (clip(c + 3.0, 0, 6) / 6.0);
  });
}

Tensor softplus(const Operand& x) {
  return of_floats("softplus", x, [](const Tensor& t) { return ops::softplus(t); });
}
Tensor squareplus(const Operand& x, double b) {
  return of_floats("squareplus", x, [&](const Tensor& t) {
    if (!(b >= 0)) fail<ValueError>({"squareplus", "b"}, "is ", b, kExpected, "it must not be negative");
    const Tensor root = hypot(t, std::sqrt(b)), positive = greater_equal(t, 0.0);
    return where(positive, t * 0.5 + root * 0.5,
                 b / 4 / (where(positive, 1.0, root) * 0.5 - where(positive, 0.0, t) * 0.5));
  });
}
Tensor sparse_plus(const Operand& x) {
  return of_floats("sparse_plus", x, [](const Tensor& t) {
    return where(greater_equal(t, 1.0), t, square(clip(t, -1, 1) + 1.0) * 0.25);
  });
}

Tensor softsign(const Operand& x) {
  return of_floats("softsign", x, [](const Tensor& t) { return unary<Softsign>(t); });
}
Tensor tanh(const Operand& x) {
  return of_floats("tanh", x, [](const Tensor& t) { return ops::tanh(t); });
}
Tensor hard_tanh(const Operand& x) {
  return of_floats("hard_tanh", x, [](const Tensor& t) { return clip(t, -1, 1); });
}
Tensor tanh_shrink(const Operand& x) {
  return of_floats("tanh_shrink", x, [](const Tensor& t) { return t - ops::tanh(t); });
}
Tensor hard_shrink(const Operand& x, double threshold) {
  return of_floats("hard_shrink", x, [&](const Tensor& t) { return where(less_equal(abs(t), threshold), 0.0, t); });
}
Tensor soft_shrink(const Operand& x, double threshold) {
  return of_floats("soft_shrink", x, [&](const Tensor& t) { return t - clip(t, -threshold, threshold); });
}
Tensor threshold(const Operand& x, double threshold, double default_value) {
  return of_floats("threshold", x, [&](const Tensor& t) { return where(less_equal(t, threshold), default_value, t); });
}

Tensor softmax(const Operand& x, const Axes& axis) {
  if (axis.size_ == 1) return of_floats("softmax", x, [&](const Tensor& t) { return ops::softmax(t, axis.axes_[0]); });
  return of_wide_floats("softmax", x, [&](const Tensor& t) { return exp(log_softmax_over(t, axis)); });
}
Tensor log_softmax(const Operand& x, const Axes& axis) {
  if (axis.size_ == 1)
    return of_floats("log_softmax", x, [&](const Tensor& t) { return ops::log_softmax(t, axis.axes_[0]); });
  return of_wide_floats("log_softmax", x, [&](const Tensor& t) { return log_softmax_over(t, axis); });
}
Tensor sparsemax(const Operand& x, int axis) {
  return of_wide_floats("sparsemax", x, [&](const Tensor& t) {
    const Axes along(axis);
    const Tensor z = t - ops::stop_gradient(ops::max(t, along, /*keepdims=*/true));
    // The support: the k largest, for the largest k with 1 + k z_k > the sum of the k largest.
    const Tensor sorted = sort(ops::stop_gradient(z), axis, /*descending=*/true);
    const Tensor place = cumsum(zeros_of(sorted) + 1.0, axis);
    const Tensor inside = greater(place * sorted + 1.0, cumsum(sorted, axis));
    const Tensor count = ops::sum(cast(inside, z.dtype()), along, /*keepdims=*/true);
    const Tensor least = ops::min(where(inside, sorted, 0.0), along, /*keepdims=*/true);
    const Tensor total = ops::sum(where(greater_equal(z, least), z, 0.0), along, /*keepdims=*/true);
    return ops::relu(z - (total - 1.0) / count);
  });
}

Tensor one_hot(const Operand& x, int num_classes, int axis, DType dtype) {
  return attribute_errors("one_hot", [&] {
    const ArrayArg ids(x, {"one_hot", "x"}, int32);
    Tensor last = ops::cast(ops::one_hot(ids, num_classes), dtype.given() ? dtype : default_float());
    if (axis == -1) return last;
    (void)numpy::known_rank(last, {"one_hot", "x"});
    return numpy::with_last_at(last, place_axis("one_hot", axis, Access::desc(last)));
  });
}
Tensor multi_hot(const Operand& x, int num_classes, int axis, DType dtype) {
  return attribute_errors("multi_hot", [&] {
    const ArrayArg ids(x, {"multi_hot", "x"}, int32);
    const Tensor any = any_of(ops::one_hot(ids, num_classes), -2);
    Tensor last = ops::cast(any, dtype.given() ? dtype : default_float());
    if (axis == -1) return last;
    (void)numpy::known_rank(last, {"multi_hot", "x"});
    return numpy::with_last_at(last, place_axis("multi_hot", axis, Access::desc(last)));
  });
}

}  // namespace kassette::nn

// nn_backend/nn/normalization.cpp - normalisation as Keras 3 has it.
#include <kassette/nn/normalization.h>

#include <kassette/backend/normalization.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rank.h"
#include "nn_backend/nn/arguments.h"
#include "ops/engine/axes.h"
#include "ops/engine/expr.h"
#include "ops/shape/checked.h"

namespace kassette::nn {

using namespace ops;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A parameter of those sizes of x that `axes` name, as a tensor that broadcasts to x; empty for None.
Tensor along_axes(const char* what, const char* name, const Operand& parameter, const Tensor& x, const Axes& axes) {
  if (parameter.is_none()) return Tensor();
  const ArrayArg given(parameter, {what, name}, Access::desc(x).dtype);
  check_floats(given, {what, name});
  Tensor p = cast(given, Access::desc(x).dtype);
  if (axes.size_ < 0 || (axes.size_ == 1 && axes.axes_[0] == -1) || Access::desc(p).rank == 0) return p;
  const int rank = numpy::known_rank(x, {what, "x"});
  const std::vector<int> places = numpy::places_of({what, "axis"}, axes, rank);
  const int own = Access::desc(p).rank;
  if (own >= 0 && own != static_cast<int>(places.size()))
    fail<ValueError>({what, name}, "has shape ", p.shape(), kExpected, "it must have as many axes as `axis` lists");
  // Size 1 where x has other axes, from the first of these axes on.
  unsigned mask = 0;
  for (int i : places) mask |= 1u << i;
  const int first = places.empty() ? rank : *std::min_element(places.begin(), places.end());
  for (int i = first; i < rank; ++i)
    if (!(mask >> i & 1)) p = expand_dims(p, i - first);
  return p;
}
/// y times gamma plus beta, either of which may be empty.
Tensor scaled(Tensor y, const Tensor& gamma, const Tensor& beta) {
  if (gamma.defined()) y = y * gamma;
  return beta.defined() ? y + beta : y;
}
/// x with mean 0 and variance 1 along the axes.
Tensor centered(const char* what, const Tensor& x, const Axes& axis, double epsilon) {
  return normalize_batch(x, Tensor(), Tensor(), checked_axes(what, x, axis, /*keepdims=*/false), epsilon).y;
}

/// Channels in `groups` groups, or each by itself if that is 0.
Tensor normalized_groups(const char* what, const Operand& x, int groups, const Operand& gamma, const Operand& beta,
                         int axis, double epsilon) {
  return of_floats(what, x, [&](Tensor t) {
    const int rank = numpy::known_rank(t, {what, "x"}), along = place_axis(what, axis, Access::desc(t));
    if (rank < 2 || along == 0)
      fail<ValueError>({what, "x"}, "has shape ", t.shape(), " and its channels axis ", axis, kExpected,
                       "there must be an axis of samples before that of channels");
    const Tensor by = along_axes(what, "gamma", gamma, t, along), plus = along_axes(what, "beta", beta, t, along);
    Axes axes(None);
    axes.size_ = 0;
    for (int i = 1; i < rank; ++i)
      if (i != along) axes.axes_[axes.size_++] = groups && i > along ? i + 1 : i;
    if (!groups) return scaled(centered(what, t, axes, epsilon), by, plus);
    t = checked(t, [=](const TensorSpec& d) {
      const std::int64_t channels = d.rank < 0 ? -1 : d.dims[along];
      if (groups < 1 || (channels >= 0 && channels % groups))
        fail<ValueError>({what, "groups"}, "is ", groups, " and there are ", channels, " channels", kExpected,
                         "it must divide their number");
    });
    const std::int64_t channels = Access::desc(t).dims[along];
    const Tensor each = channels < 0 ? kassette::floor_divide(numpy::size_along(t, along), groups) : Tensor();
    numpy::SizesOf shape;
    for (int i = 0; i < rank; ++i) {
      if (i == along) shape.push(groups);
      if (i == along && each.defined()) shape.push(each);
      else if (i == along) shape.push(channels / groups);
      else shape.push_size(t, i);
    }
    axes.axes_[axes.size_++] = along + 1;
    return scaled(reshape_like(centered(what, reshape(t, shape), axes, epsilon), t), by, plus);
  });
}

}  // namespace

Moments moments(const Operand& x, const Axes& axes, bool keepdims) {
  return of_floats("moments", x, [&](const Tensor& t) {
    return Moments{ops::mean(t, axes, keepdims), ops::var(t, axes, keepdims)};
  });
}
Tensor normalize(const Operand& x, const Axes& axis, double order, Scalar epsilon) {
  return of_wide_floats("normalize", x, [&](const Tensor& t) {
    const double least = epsilon_of("normalize", epsilon);
    if (!(order > 0)) fail<ValueError>({"normalize", "order"}, "is ", order, kExpected, "it must be above 0");
    const AxisSet axes = checked_axes("normalize", t, axis, /*keepdims=*/true);
    if (order == 2) return t / sqrt(clip(sum_by(square(t), axes), least * least, kInfinity));
    const Tensor size = abs(t);
    const Tensor norm = order == kInfinity ? ops::max(size, axis, /*keepdims=*/true)
                        : order == 1       ? sum_by(size, axes)
                                           : pow(sum_by(pow(size, order), axes), 1 / order);
    return t / clip(norm, least, kInfinity);
  });
}
Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& variance, int axis,
                           const Operand& offset, const Operand& scale, double epsilon) {
  return of_floats("batch_normalization", x, [&](const Tensor& t) {
    return backend::batch_normalization(t, mean, variance, offset, scale, axis, epsilon);
  });
}
Tensor layer_normalization(const Operand& x, const Operand& gamma, const Operand& beta, const Axes& axis,
                           Scalar epsilon) {
  const char* what = "layer_normalization";
  return of_floats(what, x, [&](const Tensor& t) {
    const Tensor y = centered(what, t, axis, epsilon_of(what, epsilon));
    return scaled(y, along_axes(what, "gamma", gamma, t, axis), along_axes(what, "beta", beta, t, axis));
  });
}
Tensor rms_normalization(const Operand& x, const Operand& scale, const Axes& axis, Scalar epsilon) {
  const char* what = "rms_normalization";
  return of_wide_floats(what, x, [&](const Tensor& t) {
    (void)checked_axes(what, t, axis, /*keepdims=*/true);
    const Tensor y = t * rsqrt(ops::mean(square(t), axis, /*keepdims=*/true), epsilon_of(what, epsilon));
    return scaled(y, along_axes(what, "scale", scale, t, axis), Tensor());
  });
}
Tensor group_normalization(const Operand& x, int groups, const Operand& gamma, const Operand& beta, int axis,
                           double epsilon) {
  const char* what = "group_normalization";
  if (groups < 1)
    return attribute_errors(what, [&]() -> Tensor {
      fail<ValueError>({what, "groups"}, "is ", groups, kExpected, "it must be at least 1");
    });
  return normalized_groups(what, x, groups, gamma, beta, axis, epsilon);
}
Tensor instance_normalization(const Operand& x, const Operand& gamma, const Operand& beta, int axis, double epsilon) {
  return normalized_groups("instance_normalization", x, 0, gamma, beta, axis, epsilon);
}
Tensor psnr(const Operand& x1, const Operand& x2, double max_val) {
  return attribute_errors("psnr", [&] {
    const numpy::Pair both(x1, x2, "psnr");
    const ArrayArg a(both.x(), {"psnr", "x1"}), b(both.y(), {"psnr", "x2"}, a.tensor().dtype());
    check_floats(a, {"psnr", "x1"});
    if (!(max_val > 0)) fail<ValueError>({"psnr", "max_val"}, "is ", max_val, kExpected, "it must be above 0");
    return 20 * std::log10(max_val) - log10(ops::mean(square(a.tensor() - b.tensor()))) * 10.0;
  });
}

}  // namespace kassette::nn

// nn_backend/nn/losses.cpp - losses as Keras 3 has them, and two of PyTorch's.
#include <kassette/nn/losses.h>

#include <kassette/backend/losses.h>

#include <limits>

#include "core/rank.h"
#include "nn_backend/nn/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/engine/axes.h"
#include "ops/engine/expr.h"
#include "ops/shape/checked.h"

namespace kassette::nn {

using namespace ops;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// x, which must have the shape of y.
Tensor of_same_shape(const char* what, const char* name, const Tensor& x, const char* other, const Tensor& y) {
  return checked(x, y, [=](const TensorSpec& a, const TensorSpec& b) {
    if (!a.compatible(b))
      fail<ValueError>({what, name}, "has shape ", a, " and ", other, " ", b, kExpected,
                       "both must have the same shape");
  });
}

/// f of what is compared, as the dtype of y_pred.
template <class F>
Tensor loss(const char* what, const Operand& y_true, const Operand& y_pred, F&& f) {
  return attribute_errors(what, [&] {
    const ArrayArg output(y_pred, {what, "y_pred"});
    const DType dtype = Access::desc(output.tensor()).dtype;
    check_floats(output, {what, "y_pred"});
    const ArrayArg target(y_true, {what, "y_true"}, dtype);
    const Tensor t = of_same_shape(what, "y_true", target, "y_pred", output), o = wide(output);
    return cast(f(cast(t, Access::desc(o).dtype), o), dtype);
  });
}
Tensor mean_of(const Tensor& x) { return ops::mean(x, -1); }

/// max(1 - target * output, 0); labels that are all 0 or 1 count as -1 and 1.
Tensor margin_of(const Tensor& target, const Tensor& output) {
  const Tensor product = target * output;
  const Tensor of_two = all_of(logical_or(equal(target, 0.0), equal(target, 1.0)));
  return ops::relu(1.0 - where(of_two, product * 2.0 - output, product));
}

/// x along the axis with a norm of 1, or of less where that is below epsilon.
Tensor unit_vectors(const Tensor& x, int axis) {
  const double least = backend::epsilon();
  return x / sqrt(clip(ops::sum(square(x), axis, /*keepdims=*/true), least * least, kInfinity));
}
/// The p-norm along the last axis of x - y + 1e-6.
Tensor distance(const Tensor& x, const Tensor& y, double p) {
  const Tensor apart = abs(x - y + 1e-6);
  if (p == kInfinity) return ops::max(apart, -1);
  if (p == 1) return ops::sum(apart, -1);
  if (p == 2) return sqrt(ops::sum(square(apart), -1));
  return pow(ops::sum(pow(apart, p), -1), 1 / p);
}

}  // namespace

Tensor mean_squared_error(const Operand& y_true, const Operand& y_pred) {
  return loss("mean_squared_error", y_true, y_pred,
              [](const Tensor& t, const Tensor& o) { return mean_of(square(t - o)); });
}
Tensor mean_absolute_error(const Operand& y_true, const Operand& y_pred) {
  return loss("mean_absolute_error", y_true, y_pred,
              [](const Tensor& t, const Tensor& o) { return mean_of(abs(t - o)); });
}
Tensor huber(const Operand& y_true, const Operand& y_pred, double delta) {
  return loss("huber", y_true, y_pred, [&](const Tensor& t, const Tensor& o) {
    if (!(delta > 0)) fail<ValueError>({"huber", "delta"}, "is ", delta, kExpected, "it must be above 0");
    // delta |d| - c^2 / 2 with c = d clipped to [-delta, delta] is c (d - c / 2).
    const Tensor d = o - t, c = clip(d, -delta, delta);
    return mean_of(c * (d - c * 0.5));
  });
}
Tensor log_cosh(const Operand& y_true, const Operand& y_pred) {
  return loss("log_cosh", y_true, y_pred, [](const Tensor& t, const Tensor& o) {
    const Tensor d = o - t, near = less(abs(d), 1.0), small = where(near, d, 0.0);
    // log cosh d is log(1 + 2 sinh^2(d / 2)) too, of which nothing cancels for small d.
    return mean_of(
        where(near, log1p(square(sinh(small * 0.5)) * 2.0), d + ops::softplus(d * -2.0) - 0.6931471805599453));
  });
}
Tensor kl_divergence(const Operand& y_true, const Operand& y_pred) {
  return loss("kl_divergence", y_true, y_pred, [](const Tensor& t, const Tensor& o) {
    const double least = backend::epsilon();
    const Tensor p = clip(t, least, 1), q = clip(o, least, 1);
    return ops::sum(p * log(p / q), -1);
  });
}
Tensor poisson(const Operand& y_true, const Operand& y_pred) {
  return loss("poisson", y_true, y_pred,
              [](const Tensor& t, const Tensor& o) { return mean_of(o - t * log(o + backend::epsilon())); });
}
Tensor cosine_similarity(const Operand& y_true, const Operand& y_pred, int axis) {
  return loss("cosine_similarity", y_true, y_pred, [&](const Tensor& t, const Tensor& o) {
    checked_axes("cosine_similarity", o, axis, /*keepdims=*/false);
    return -ops::sum(unit_vectors(t, axis) * unit_vectors(o, axis), axis);
  });
}
Tensor hinge(const Operand& y_true, const Operand& y_pred) {
  return loss("hinge", y_true, y_pred, [](const Tensor& t, const Tensor& o) { return mean_of(margin_of(t, o)); });
}
Tensor squared_hinge(const Operand& y_true, const Operand& y_pred) {
  return loss("squared_hinge", y_true, y_pred,
              [](const Tensor& t, const Tensor& o) { return mean_of(square(margin_of(t, o))); });
}
Tensor categorical_hinge(const Operand& y_true, const Operand& y_pred) {
  return loss("categorical_hinge", y_true, y_pred, [](const Tensor& t, const Tensor& o) {
    // Before the rest, since compilers choose the order of operands: this refuses operands on two devices, by name.
    const Tensor right = ops::sum(t * o, -1);
    return ops::relu(ops::max((1.0 - t) * o, -1) - right + 1.0);
  });
}

Tensor binary_crossentropy(const Operand& target, const Operand& output, bool from_logits) {
  return attribute_errors("binary_crossentropy", [&] {
    const ArrayArg o(output, {"binary_crossentropy", "output"});
    const ArrayArg t(target, {"binary_crossentropy", "target"}, Access::desc(o.tensor()).dtype);
    check_floats(o, {"binary_crossentropy", "output"});
    return backend::binary_crossentropy(cast(t, o.tensor().dtype()), o.tensor(), from_logits);
  });
}
Tensor categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits, int axis) {
  return attribute_errors("categorical_crossentropy", [&] {
    const ArrayArg o(output, {"categorical_crossentropy", "output"});
    const ArrayArg t(target, {"categorical_crossentropy", "target"}, Access::desc(o.tensor()).dtype);
    check_floats(o, {"categorical_crossentropy", "output"});
    return backend::categorical_crossentropy(cast(t, o.tensor().dtype()), o.tensor(), from_logits, axis);
  });
}
Tensor sparse_categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits, int axis) {
  return attribute_errors("sparse_categorical_crossentropy", [&] {
    const ArrayArg o(output, {"sparse_categorical_crossentropy", "output"});
    const ArrayArg t(target, {"sparse_categorical_crossentropy", "target"}, int64);
    return backend::sparse_categorical_crossentropy(t.tensor(), o.tensor(), from_logits, axis);
  });
}
Tensor nll_loss(const Operand& target, const Operand& log_probabilities, int axis) {
  return attribute_errors("nll_loss", [&] {
    const ArrayArg logs(log_probabilities, {"nll_loss", "log_probabilities"});
    check_floats(logs, {"nll_loss", "log_probabilities"});
    const ArrayArg ids(target, {"nll_loss", "target"}, int64);
    if (!ids.tensor().dtype().is_integer())
      fail<TypeError>({"nll_loss", "target"}, "is ", ids.tensor().dtype(), kExpected, "it must hold integers");
    Tensor x = logs;
    if (axis != -1) {
      (void)numpy::known_rank(x, {"nll_loss", "log_probabilities"});
      x = numpy::with_last(x, place_axis("nll_loss", axis, Access::desc(x)));
    }
    return -take_along_axis(x, cast(ids, int64));
  });
}
Tensor triplet_margin_loss(const Operand& anchor, const Operand& positive, const Operand& negative, double margin,
                           double p) {
  const char* what = "triplet_margin_loss";
  return attribute_errors(what, [&] {
    const ArrayArg a(anchor, {what, "anchor"});
    check_floats(a, {what, "anchor"});
    if (!(p > 0)) fail<ValueError>({what, "p"}, "is ", p, kExpected, "it must be above 0");
    const DType dtype = a.tensor().dtype();
    const ArrayArg b(positive, {what, "positive"}, dtype), c(negative, {what, "negative"}, dtype);
    check_floats(b, {what, "positive"});
    check_floats(c, {what, "negative"});
    const DType both = numpy::promoted(numpy::promoted(dtype, b.tensor().dtype(), what), c.tensor().dtype(), what);
    auto as = [&](const Tensor& t) { return wide(cast(t, both)); };
    const Tensor near = as(of_same_shape(what, "positive", b, "anchor", a)),
                 far = as(of_same_shape(what, "negative", c, "anchor", a));
    return cast(ops::relu(distance(as(a), near, p) - distance(as(a), far, p) + margin), both);
  });
}

}  // namespace kassette::nn

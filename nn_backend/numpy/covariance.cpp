// nn_backend/numpy/covariance.cpp - covariances and correlations.
#include <kassette/numpy/selection.h>
#include <kassette/numpy/statistics.h>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/variance.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// The variables as rows.
Tensor as_rows(const Tensor& x, bool rowvar, const At& at) {
  const int rank = known_rank(x, at);
  if (rank > 2) fail<ValueError>(at, "has shape ", Access::desc(x), kExpected, "the rank must be at most 2");
  const Tensor t = rank == 0 ? ops::expand_dims(x, 0) : x;
  if (rank < 2) return ops::expand_dims(t, 0);
  return rowvar ? t : ops::transpose(t);
}
/// One weight for each observation.
Tensor weights_of(const Operand& given, const Tensor& rows, const At& at) {
  const ArrayArg array(given, at, rows.dtype());
  const Tensor fitting =
      ops::checked(beside(rows, given, array, at), rows, [at](const TensorSpec& w, const TensorSpec& d) {
        if (differ(w.rank, 1) || (w.rank == 1 && differ(w.dims[0], d.dims[1])))
          fail<ValueError>(at, "have shape ", w, kExpected, "there must be one for each observation");
      });
  return ops::cast(fitting, rows.dtype());
}

/// The covariances, and the dtype that they are to have: half types are computed in float32.
struct Covariance {
  Tensor value;
  DType dtype;
};
Covariance covariance(const char* what, const Operand& x, const CovarianceOptions& options) {
  const ArrayArg array(x, {what, "x"});
  Tensor rows = as_rows(as_float(array), options.rowvar, {what, "x"});
  bool scalar = array.desc().rank < 2 && options.y.is_none();
  if (!options.y.is_none()) {
    const ArrayArg other(options.y, {what, "y"});
    const Tensors both =
        promoted_tensors(what, {{"x", as_float(array)}, {"y", beside(array, options.y, as_float(other), {what, "y"})}});
    rows = ops::concatenate(
        {as_rows(both[0], options.rowvar, {what, "x"}), as_rows(both[1], options.rowvar, {what, "y"})}, 0);
  }
  const DType dtype = rows.dtype();
  rows = wide(rows);
  const double freedom =
      options.ddof.is_none() ? (options.bias ? 0 : 1) : ops::scalar_tensor(options.ddof, float64).item<double>();
  const bool weighted = !options.fweights.is_none() || !options.aweights.is_none();
  Tensor often, weight, lost;
  if (!options.fweights.is_none()) often = weights_of(options.fweights, rows, {what, "fweights"});
  if (!options.aweights.is_none()) weight = weights_of(options.aweights, rows, {what, "aweights"});
  Tensor w = ops::zeros_of(rows)[0] + 1;
  if (often.defined()) w = w * often;
  if (weight.defined()) {
    w = w * weight;
    lost = ops::sum(w * weight) * freedom / ops::sum(w);
  }
  const Tensor total = ops::sum(w);
  auto without_mean = [&](const Tensor& v) { return v - ops::sum(v * w, 1, /*keepdims=*/true) / total; };
  // Without what the rounding of the mean leaves: Note [The rounding of a mean].
  const Tensor apart =
      weighted ? without_mean(without_mean(rows)) : ops::center(rows, ops::axis_set(what, rows, 1, /*keepdims=*/true));
  // No more observations than are lost: NaN or infinite.
  const Tensor divisor = ops::maximum(lost.defined() ? total - lost : total - freedom, 0);
  const Tensor c = ops::matmul(apart, apart * w, /*transpose_a=*/false, /*transpose_b=*/true) / divisor;
  return {scalar ? c(0, 0) : c, dtype};
}

}  // namespace

Tensor cov(const Operand& x, const CovarianceOptions& options) {
  return attribute_errors("cov", [&] {
    const Covariance c = covariance("cov", x, options);
    return ops::cast(c.value, c.dtype);
  });
}
Tensor corrcoef(const Operand& x, const CorrelationOptions& options) {
  return attribute_errors("corrcoef", [&] {
    const auto [c, dtype] = covariance("corrcoef", x, {.y = options.y, .rowvar = options.rowvar});
    if (Access::desc(c).rank == 0) return ops::cast(c / c, dtype);
    const Tensor spread = ops::sqrt(diagonal(c));
    return ops::cast(ops::clip(c / ops::expand_dims(spread, 1) / ops::expand_dims(spread, 0), -1, 1), dtype);
  });
}

}  // namespace numpy
}  // namespace kassette

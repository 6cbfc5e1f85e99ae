// nn_backend/numpy/reductions.cpp - NumPy's reductions and running sums.
#include <kassette/numpy/reductions.h>

#include <vector>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/engine/dims.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/reduce/scan.h"
#include "ops/shape/shaping.h"
#include "ops/softmax/softmax.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// x as `dtype`; if that is not given, integers and bool as `instead`.
Tensor as_dtype(const Tensor& x, DType dtype, DType instead) {
  if (!dtype.given()) dtype = x.dtype().is_float() ? x.dtype() : instead;
  return ops::cast(x, dtype);
}

/// n / (n - correction), with which y, the variance of x, is multiplied; n elements of x make one of y.
Tensor correction_factor(const Tensor& x, const Tensor& y, double correction) {
  const Tensor n = (ops::cast(ops::size_of(x), float64) / ops::cast(ops::size_of(y), float64));
  return ops::cast(n / ops::maximum(n - correction, 0), y.dtype()).to(y.device());
}

using Reduction = Tensor (*)(const Tensor&, const Axes&, bool);
/// A sum or product, of integers and bool in the widest dtype of their kind.
Tensor widened(const char* what, Reduction op, const Operand& x, const SumOptions& options) {
  return of_array(what, x, [&](const Tensor& t) {
    return op(as_dtype(t, options.dtype, widest(t.dtype())), options.axis, options.keepdims);
  });
}
/// The largest or smallest element; of bool by another op.
Tensor extreme(const char* what, Reduction op, Reduction of_bool, const Operand& x, const ReduceOptions& options) {
  return of_array(what, x, [&](const Tensor& t) {
    return (t.dtype().is_bool() ? of_bool : op)(t, options.axis, options.keepdims);
  });
}
/// Positions along an axis, which stays with size 1 if asked.
Tensor positions(const char* what, Tensor (*op)(const Tensor&, const Axes&), const Operand& x,
                 const ArgOptions& options) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    const Axes& axis = one_axis({what, "axis"}, options.axis);
    Tensor at = op(array, axis);
    if (!options.keepdims) return at;
    if (axis.size_ == 1) return ops::expand_dims(at, axis.axes_[0]);
    return ops::reshape(at, std::vector<int>(static_cast<std::size_t>(array.tensor().ndim()), 1));
  });
}

/// A running sum or product. `first` is what it begins with if the options say so.
Tensor running(const char* what, Tensor (*op)(const Tensor&, int), int first, const Operand& x,
               const ScanOptions& options) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    const Axes& axis = one_axis({what, "axis"}, options.axis);
    Tensor t = as_dtype(array, options.dtype, widest(array.tensor().dtype()));
    if (axis.size_ < 0) t = ops::flatten(t, 0);
    const int along = axis.size_ < 0 ? 0 : axis.axes_[0];
    Tensor y = op(t, along);
    if (!options.include_initial) return y;
    const Tensor initial = ops::zeros_of(ops::sum(t, along, /*keepdims=*/true));
    return ops::concatenate({first ? initial + first : initial, y}, along);
  });
}

}  // namespace

Tensor sum(const Operand& x, const SumOptions& options) { return widened("sum", ops::sum, x, options); }
Tensor prod(const Operand& x, const SumOptions& options) { return widened("prod", ops::prod, x, options); }
Tensor max(const Operand& x, const ReduceOptions& options) { return extreme("max", ops::max, ops::any_of, x, options); }
Tensor min(const Operand& x, const ReduceOptions& options) { return extreme("min", ops::min, ops::all_of, x, options); }
Tensor ptp(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("ptp", [&] {
    const ArrayArg array(x, {"ptp", "x"});
    return ops::max(array, options.axis, options.keepdims) - ops::min(array, options.axis, options.keepdims);
  });
}
Tensor mean(const Operand& x, const SumOptions& options) {
  return attribute_errors("mean", [&] {
    const ArrayArg array(x, {"mean", "x"});
    return ops::mean(as_dtype(array, options.dtype, ops::default_float()), options.axis, options.keepdims);
  });
}
Tensor var(const Operand& x, const VarOptions& options) {
  return attribute_errors("var", [&] {
    const ArrayArg array(x, {"var", "x"});
    const Tensor t = as_dtype(array, None, ops::default_float());
    const Tensor y = ops::var(t, options.axis, options.keepdims);
    return options.correction == 0 ? y : y * correction_factor(t, y, options.correction);
  });
}
Tensor std(const Operand& x, const VarOptions& options) {
  return attribute_errors("std", [&] {
    const ArrayArg array(x, {"std", "x"});
    const Tensor t = as_dtype(array, None, ops::default_float());
    const Tensor y = ops::stddev(t, options.axis, options.keepdims);
    return options.correction == 0 ? y : y * ops::sqrt(correction_factor(t, y, options.correction));
  });
}
Tensor any(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("any", [&] {
    return ops::any_of(ArrayArg(x, {"any", "x"}), options.axis, options.keepdims);
  });
}
Tensor all(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("all", [&] {
    return ops::all_of(ArrayArg(x, {"all", "x"}), options.axis, options.keepdims);
  });
}
Tensor count_nonzero(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("count_nonzero", [&] {
    const ArrayArg array(x, {"count_nonzero", "x"});
    return ops::sum(ops::cast(ops::cast(array, bool_), int64), options.axis, options.keepdims);
  });
}
Tensor argmax(const Operand& x, const ArgOptions& options) { return positions("argmax", ops::argmax, x, options); }
Tensor argmin(const Operand& x, const ArgOptions& options) { return positions("argmin", ops::argmin, x, options); }
Tensor apply_over_axes(Callable<Tensor(const Tensor&, int)> f, const Operand& x, const Axes& axes) {
  constexpr const char* kWhat = "apply_over_axes";
  const ArrayArg array(x, {kWhat, "x"});
  Tensor y = array;
  const int rank = known_rank(y, {kWhat, "x"});
  for (int axis : places_of({kWhat, "axes"}, axes, rank)) {
    y = f(y, axis);
    const int now = known_rank(y, {kWhat, "f"});
    if (now == rank - 1) y = ops::expand_dims(y, axis);
    else if (now != rank)
      fail<ValueError>({kWhat, "f"}, "made a tensor of rank ", now, " of one of rank ", rank, kExpected,
                       "it must reduce one axis");
  }
  return y;
}
Tensor logsumexp(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("logsumexp", [&] {
    return ops::logsumexp(ArrayArg(x, {"logsumexp", "x"}), options.axis, options.keepdims);
  });
}
Tensor cumulative_sum(const Operand& x, const ScanOptions& options) {
  return running("cumulative_sum", ops::cumsum, 0, x, options);
}
Tensor cumulative_prod(const Operand& x, const ScanOptions& options) {
  return running("cumulative_prod", ops::cumprod, 1, x, options);
}

/// The overload without options.
#define KASSETTE_NUMPY_ALONG(function, Options) \
  template <int> \
  Tensor function(const Operand& x, const Axes& axis) { \
    return function(x, Options{.axis = axis}); \
  } \
  template Tensor function<0>(const Operand&, const Axes&);
KASSETTE_NUMPY_ALONG(sum, SumOptions)
KASSETTE_NUMPY_ALONG(prod, SumOptions)
KASSETTE_NUMPY_ALONG(max, ReduceOptions)
KASSETTE_NUMPY_ALONG(min, ReduceOptions)
KASSETTE_NUMPY_ALONG(ptp, ReduceOptions)
KASSETTE_NUMPY_ALONG(mean, SumOptions)
KASSETTE_NUMPY_ALONG(var, VarOptions)
KASSETTE_NUMPY_ALONG(std, VarOptions)
KASSETTE_NUMPY_ALONG(any, ReduceOptions)
KASSETTE_NUMPY_ALONG(all, ReduceOptions)
KASSETTE_NUMPY_ALONG(count_nonzero, ReduceOptions)
KASSETTE_NUMPY_ALONG(argmax, ArgOptions)
KASSETTE_NUMPY_ALONG(argmin, ArgOptions)
KASSETTE_NUMPY_ALONG(logsumexp, ReduceOptions)
KASSETTE_NUMPY_ALONG(cumulative_sum, ScanOptions)
KASSETTE_NUMPY_ALONG(cumulative_prod, ScanOptions)
#undef KASSETTE_NUMPY_ALONG

}  // namespace numpy
}  // namespace kassette

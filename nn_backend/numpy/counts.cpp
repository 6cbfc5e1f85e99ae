// nn_backend/numpy/counts.cpp - histograms, and how often integers occur.
#include <kassette/numpy/statistics.h>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/segments.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// n + 1 edges at equal distances over the range, or over that of x.
Tensor equal_edges(const Tensor& x, std::int64_t n, const Operand& range) {
  if (n < 1) fail<ValueError>({"histogram", "bins"}, "is ", n, kExpected, "it must be at least 1");
  Tensor low, high;
  if (range.is_none()) {
    // Without elements, the smallest is larger than the largest.
    const Tensor least = ops::min(x), most = ops::max(x), none = ops::greater(least, most);
    low = ops::where(none, 0, least);
    high = ops::where(none, 1, most);
  } else {
    const ArrayArg ends(range, {"histogram", "range"}, x.dtype());
    const TensorDesc& d = ends.desc();
    if (differ(d.rank, 1) || (d.rank == 1 && differ(d.dims[0], 2)))
      fail<ValueError>({"histogram", "range"}, "has shape ", d, kExpected, "it must be two numbers");
    const Tensor both = ops::cast(ends, x.dtype()).to(x.device());
    low = both[0];
    high = both[1];
  }
  const Tensor equal = ops::equal(low, high), half = ops::where(equal, ops::zeros_of(low) + 0.5, ops::zeros_of(low));
  low = low - half;
  high = high + half;
  const Tensor number = places_below(ops::scalar_tensor(n + 1, int64), x.device());
  const Tensor edges = ops::cast(number, x.dtype()) * ((high - low) / static_cast<double>(n)) + low;
  return ops::where(ops::equal(number, n), high, edges);
}

/// Weights in the shape of x; integers and bool as the widest integers.
Tensor weights_of(const Tensor& x, const Operand& given, const char* what) {
  const ArrayArg weights(given, {what, "weights"});
  const TensorDesc &w = weights.desc(), &d = Access::desc(x);
  if (!w.compatible(d))
    fail<ValueError>({what, "weights"}, "have shape ", w, " and x ", d, kExpected, "the shapes must be the same");
  return ops::cast(beside(x, given, weights, {what, "weights"}), widest(w.dtype));
}

bool is_integer(const Operand& x) { return Access::kind(x) == Scalar::kInt || Access::kind(x) == Scalar::kUint; }

}  // namespace

Histogram histogram(const Operand& x, const Operand& bins, const HistogramOptions& options) {
  return attribute_errors("histogram", [&] {
    const ArrayArg array(x, {"histogram", "x"});
    Tensor weights;
    if (!options.weights.is_none()) weights = ops::flatten(weights_of(array, options.weights, "histogram"), 0);
    Tensor flat = ops::flatten(as_float(array), 0), edges;
    // In half types the edges would be rounded too coarsely to count by.
    const DType dtype = flat.dtype();
    if (dtype.size() < 4) flat = ops::cast(flat, float32);
    if (is_integer(bins)) {
      edges = equal_edges(flat, ops::scalar_tensor(bins, int64).item<std::int64_t>(), options.range);
    } else {
      const ArrayArg given(bins, {"histogram", "bins"}, flat.dtype());
      if (differ(given.desc().rank, 1))
        fail<ValueError>({"histogram", "bins"}, "has shape ", given.desc(), kExpected,
                         "it must be a number or a vector");
      const Tensors both = promoted_tensors(
          "histogram", {{"x", flat}, {"bins", beside(flat, bins, as_float(given), {"histogram", "bins"})}});
      flat = both[0];
      edges = both[1];
    }
    const Tensor widths = slice_along(edges, 0, 1, None) - slice_along(edges, 0, None, -1);
    // The last bin has its right edge too.
    const Tensor bin = ops::searchsorted(edges, flat, ops::Side::right) - 1, n = size_along(widths, 0);
    const Tensor last = ops::equal(flat, edges[-1]), at = ops::where(last, n - 1, bin);
    const Tensor there = ops::logical_and(ops::greater_equal(at, 0), ops::less(at, n));
    Tensor each = ops::cast(there, int64);
    if (weights.defined()) each = ops::where(there, weights, ops::zeros_of(weights));
    const Tensor counts = add_at(each, ops::where(there, at, ops::zeros_of(at)), n);
    const Tensor shown = dtype.size() < 4 ? ops::cast(edges, dtype) : edges;
    if (!options.density) return Histogram{counts, shown};
    const Tensor parts = ops::cast(counts, edges.dtype());
    return Histogram{ops::cast(parts / widths / ops::sum(parts), shown.dtype()), shown};
  });
}

Tensor bincount(const Operand& x, const BincountOptions& options) {
  return attribute_errors("bincount", [&] {
    const ArrayArg array(x, {"bincount", "x"}, int64);
    if (known_rank(array, {"bincount", "x"}) != 1)
      fail<ValueError>({"bincount", "x"}, "has shape ", array.desc(), kExpected, "the rank must be 1");
    if (options.minlength < 0)
      fail<ValueError>({"bincount", "minlength"}, "is ", options.minlength, kExpected, "it must not be negative");
    Tensor each;
    if (!options.weights.is_none()) each = weights_of(array, options.weights, "bincount");
    const Tensor places = as_indices(array, "bincount", "x");
    const Tensor n = ops::maximum(number_of_places(places, None, "bincount"), options.minlength);
    if (!each.defined()) each = ops::cast(ops::equal(places, places), int64);
    return add_at(each, places, n);
  });
}

}  // namespace numpy
}  // namespace kassette

// nn_backend/numpy/counts.cpp - histograms, and how often integers occur.
#include <kassette/numpy/statistics.h>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/segments.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// n + 1 edges at equal distances over the range, or over that of x.
Tensor equal_edges(const char* what, const Tensor& x, std::int64_t n, const Operand& range) {
  if (n < 1) fail<ValueError>({what, "bins"}, "is ", n, kExpected, "it must be at least 1");
  Tensor low, high;
  if (range.is_none()) {
    // Without elements, the smallest is larger than the largest.
    const Tensor least = ops::min(x), most = ops::max(x), none = ops::greater(least, most);
    low = ops::where(none, 0, least);
    high = ops::where(none, 1, most);
  } else {
    const Tensor ends = ops::checked(ArrayArg(range, {what, "range"}, x.dtype()), [what](const TensorSpec& d) {
      if (differ(d.rank, 1) || (d.rank == 1 && differ(d.dims[0], 2)))
        fail<ValueError>({what, "range"}, "has shape ", d, kExpected, "it must be two numbers");
    });
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
  const Tensor fitting =
      ops::checked(beside(x, given, weights, {what, "weights"}), x, [what](const TensorSpec& w, const TensorSpec& d) {
        if (!w.compatible(d))
          fail<ValueError>({what, "weights"}, "have shape ", w, " and x ", d, kExpected, "the shapes must be the same");
      });
  return ops::cast(fitting, widest(fitting.dtype()));
}

bool is_integer(const Operand& x) { return Access::kind(x) == Scalar::kInt || Access::kind(x) == Scalar::kUint; }

/// The bin of each element of the flattened x.
struct Binned {
  DType dtype;        // of the edges in results
  Tensor edges;       // in half types they would be rounded too coarsely to count by: float32
  Tensor widths, n;   // n is the number of bins, an int64 scalar on the host
  Tensor at, within;  // the bin, and whether there is one; 0 else

  Binned(const char* what, const Tensor& x, const Operand& bins, const Operand& range) {
    Tensor flat = ops::flatten(as_float(x), 0);
    dtype = flat.dtype();
    if (dtype.size() < 4) flat = ops::cast(flat, float32);
    if (is_integer(bins)) {
      edges = equal_edges(what, flat, ops::scalar_tensor(bins, int64).item<std::int64_t>(), range);
    } else {
      const Tensor given = ops::checked(ArrayArg(bins, {what, "bins"}, flat.dtype()), [what](const TensorSpec& d) {
        if (differ(d.rank, 1))
          fail<ValueError>({what, "bins"}, "has shape ", d, kExpected, "it must be a number or a vector");
      });
      const Tensors both =
          promoted_tensors(what, {{"x", flat}, {"bins", beside(flat, bins, as_float(given), {what, "bins"})}});
      flat = both[0];
      edges = both[1];
    }
    widths = slice_along(edges, 0, 1, None) - slice_along(edges, 0, None, -1);
    n = size_along(widths, 0);
    // The last bin has its right edge too.
    const Tensor bin = ops::searchsorted(edges, flat, ops::Side::right) - 1;
    const Tensor found = ops::where(ops::equal(flat, edges[-1]), n - 1, bin);
    within = ops::logical_and(ops::greater_equal(found, 0), ops::less(found, n));
    at = ops::where(within, found, ops::zeros_of(found));
  }
  Tensor shown_edges() const { return dtype.size() < 4 ? ops::cast(edges, dtype) : edges; }
};
/// How many are in each of n bins, or the sums of their weights.
Tensor counted(const Tensor& within, const Tensor& at, const Tensor& n, const Tensor& weights) {
  return add_at(weights.defined() ? ops::where(within, weights, ops::zeros_of(weights)) : ops::cast(within, int64), at,
                n);
}

/// The entry of the i-th of n axes in a list of n; what is no such list is for all.
const Operand& entry(const Operand& given, std::size_t i, std::size_t n) {
  if (Access::kind(given) != Scalar::kList || Access::count(given) != n) return given;
  return static_cast<const Operand*>(Access::pointer(given))[i];
}
/// Points, a tensor for each axis, in bins.
HistogramDd counted_points(const char* what, const Tensors& points, const Operand& bins,
                           const HistogramOptions& options) {
  Tensor weights, ranges;
  if (!options.weights.is_none()) weights = ops::flatten(weights_of(points[0], options.weights, what), 0);
  if (!options.range.is_none()) ranges = ArrayArg(options.range, {what, "range"}, points[0].dtype());
  Tensor within, at, n, areas;
  HistogramDd result;
  SizesOf shape;
  const auto axes = static_cast<std::size_t>(points.size());
  for (std::size_t i = 0; i < axes; ++i) {
    const auto k = static_cast<std::int64_t>(i);
    const Tensor range = ranges.defined() ? ranges[k] : Tensor();
    const Binned b(what, points[k], entry(bins, i, axes), range.defined() ? Operand(range) : Operand(None));
    within = i ? ops::logical_and(within, b.within) : b.within;
    at = i ? at * b.n + b.at : b.at;
    n = i ? n * b.n : b.n;
    areas = i ? ops::expand_dims(areas, -1) * b.widths : b.widths;
    shape.push_size(b.widths, 0);
    result.edges.push_back(b.shown_edges());
  }
  const Tensor counts = counted(within, ops::where(within, at, ops::zeros_of(at)), n, weights);
  result.counts = ops::reshape(counts, shape);
  if (!options.density) return result;
  const Tensor parts = ops::cast(result.counts, areas.dtype());
  result.counts = ops::cast(parts / areas / ops::sum(parts), result.edges[0].dtype());
  return result;
}

}  // namespace

Histogram histogram(const Operand& x, const Operand& bins, const HistogramOptions& options) {
  return attribute_errors("histogram", [&] {
    const ArrayArg array(x, {"histogram", "x"});
    Tensor weights;
    if (!options.weights.is_none()) weights = ops::flatten(weights_of(array, options.weights, "histogram"), 0);
    const Binned b("histogram", array, bins, options.range);
    const Tensor counts = counted(b.within, b.at, b.n, weights), edges = b.shown_edges();
    if (!options.density) return Histogram{counts, edges};
    const Tensor parts = ops::cast(counts, b.edges.dtype());
    return Histogram{ops::cast(parts / b.widths / ops::sum(parts), edges.dtype()), edges};
  });
}
Tensor histogram_bin_edges(const Operand& x, const Operand& bins, const BinEdgesOptions& options) {
  return of_array("histogram_bin_edges", x,
                  [&](const Tensor& t) { return Binned("histogram_bin_edges", t, bins, options.range).shown_edges(); });
}
Histogram2d histogram2d(const Operand& x, const Operand& y, const Operand& bins, const HistogramOptions& options) {
  constexpr const char* kWhat = "histogram2d";
  return attribute_errors(kWhat, [&] {
    Tensors points = float_tensors(kWhat, {{"x", x}, {"y", y}});
    points[1] = ops::checked(points[1], points[0], [=](const TensorSpec& of_y, const TensorSpec& of_x) {
      if (!of_x.compatible(of_y))
        fail<ValueError>({kWhat, "y"}, "has shape ", of_y, " and x ", of_x, kExpected, "the shapes must be the same");
    });
    HistogramDd found = counted_points(kWhat, points, bins, options);
    return Histogram2d{found.counts, found.edges[0], found.edges[1]};
  });
}
HistogramDd histogramdd(const Operand& sample, const Operand& bins, const HistogramOptions& options) {
  constexpr const char* kWhat = "histogramdd";
  return attribute_errors(kWhat, [&] {
    const ArrayArg given(sample, {kWhat, "sample"});
    const Tensor t = as_float(given);
    if (known_rank(t, {kWhat, "sample"}) != 2)
      fail<ValueError>({kWhat, "sample"}, "has shape ", t.shape(), kExpected, "it must have a row for each point");
    const std::int64_t axes = known_size(t, 1, {kWhat, "sample"});
    if (axes < 1 || axes > kMaxRank)
      fail<ValueError>({kWhat, "sample"}, "has shape ", t.shape(), kExpected, "points have 1 to ", kMaxRank,
                       " coordinates");
    return counted_points(kWhat, ops::unstack(t, static_cast<int>(axes), 1), bins, options);
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

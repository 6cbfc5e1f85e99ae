// nn_backend/numpy/padding.cpp - np::pad. Where an element of x is repeated, the result gathers from x; the other modes
// join blocks to it.
#include <kassette/numpy/shaping.h>

#include <string>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "ops/engine/dims.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

/// How many elements are added along an axis.
struct Width {
  std::int64_t before, after;
};

/// Numbers that are given once, as a pair, or as a pair for each axis: where number `side` of an axis is among n.
std::size_t pair_at(std::size_t n, const Shape& shape, int axis, int side, int rank, const At& at) {
  const int axes = shape.rank();
  if (n == 1) return 0;
  if (n == 2 && (axes == 1 || (axes == 2 && std::int64_t(shape[0]) == 1))) return static_cast<std::size_t>(side);
  if (axes == 2 && std::int64_t(shape[1]) == 2 && std::int64_t(shape[0]) == rank)
    return static_cast<std::size_t>(2 * axis + side);
  fail<ValueError>(at, "has shape ", shape, kExpected, "it must be a number, a pair, or a pair for each of ", rank,
                   " axes");
}
std::vector<Width> widths_of(const Operand& width, int rank) {
  const At at{"pad", "width"};
  const Integers given = integers_of(width, at);
  std::vector<Width> all;
  for (int i = 0; i < rank; ++i) {
    Width w{given.values[pair_at(given.values.size(), given.shape, i, 0, rank, at)],
            given.values[pair_at(given.values.size(), given.shape, i, 1, rank, at)]};
    for (std::int64_t n : {w.before, w.after})
      if (n < 0) fail<ValueError>(at, "holds ", n, kExpected, "it must not be negative");
    all.push_back(w);
  }
  return all;
}
/// The numbers of an option, in the dtype of x.
class Numbers {
 public:
  Numbers(const Operand& x, DType dtype, const char* name, int rank)
      : tensor_(ops::cast(ArrayArg(x, {"pad", name}, dtype), dtype)), name_(name), rank_(rank) {
    if (tensor_.symbolic()) fail<ValueError>({"pad", name}, "depends on a placeholder", kExpected, "it must be known");
  }
  Tensor at(int axis, int side) const {
    const std::size_t i =
        pair_at(static_cast<std::size_t>(tensor_.size()), tensor_.shape(), axis, side, rank_, {"pad", name_});
    return ops::reshape(
        slice_along(ops::flatten(tensor_, 0), 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1), {});
  }

 private:
  Tensor tensor_;
  const char* name_;
  int rank_;
};

/// The positions from `before` before the first to `after` behind the last element of an axis, folded into it.
Tensor folded(const std::string& mode, const Tensor& x, int axis, const Width& w) {
  auto number = [](std::int64_t v) { return ops::scalar_tensor(v, int64); };
  const Tensor n = size_along(x, axis);
  const Tensor i = ops::arange(number(-w.before), n + w.after, number(1), int64);
  if (mode == "edge") return ops::minimum(ops::maximum(i, 0), n - 1);
  if (mode == "wrap") return i % n;
  if (mode == "symmetric") {
    const Tensor k = i % (n * 2);
    return ops::minimum(k, n * 2 - 1 - k);
  }
  const Tensor period = ops::maximum(n * 2 - 2, 1), k = i % period;
  return ops::minimum(k, period - k) % n;
}

/// A block of `count` elements along an axis, all equal to `one`, which has size 1 there.
Tensor repeated(const Tensor& one, std::int64_t count, int axis) {
  return count ? ops::repeat_elements(one, count, axis) : slice_along(one, axis, 0, 0);
}
/// Size 1 along the axis: the mean, the largest, ... of the elements that count.
Tensor statistic(const std::string& mode, const Tensor& x, int axis) {
  if (mode == "maximum") return ops::max(x, axis, /*keepdims=*/true);
  if (mode == "minimum") return ops::min(x, axis, /*keepdims=*/true);
  const DType dtype = x.dtype();
  const Tensor wide = dtype.is_float() ? x : ops::cast(x, float64);
  Tensor y;
  if (mode == "mean") {
    y = ops::mean(wide, axis, /*keepdims=*/true);
  } else {
    const std::int64_t n = known_size(x, axis, {"pad", "x"});
    const Tensor sorted = ops::sort(wide, axis);
    y = slice_along(sorted, axis, (n - 1) / 2, (n - 1) / 2 + 1);
    if (n % 2 == 0) y = y * 0.5 + slice_along(sorted, axis, n / 2, n / 2 + 1) * 0.5;
    const Tensor last = slice_along(sorted, axis, -1, None);
    y = ops::where(ops::not_equal(last, last), last, y);  // NaN, which is sorted last
  }
  return dtype.is_float() ? y : ops::cast(ops::rint(y), dtype);
}
/// From `end` at the outer end towards the element at the edge, which has size 1 along the axis.
Tensor ramp(const Tensor& end, const Tensor& edge, std::int64_t count, int axis, bool before) {
  if (count == 0) return slice_along(edge, axis, 0, 0);
  const DType dtype = edge.dtype(), in = dtype.is_float() ? dtype : float64;
  auto number = [](std::int64_t v) { return ops::scalar_tensor(v, int64); };
  Tensor k = ops::arange(number(0), number(count), number(1), in);  // 0 at the outer end
  if (!before) k = ops::reverse(k, 0);
  const int rank = Access::desc(edge).rank;
  for (int i = axis + 1; i < rank; ++i) k = ops::expand_dims(k, -1);
  k = k.to(edge.device());
  const Tensor from = ops::cast(end, in).to(edge.device()), to = ops::cast(edge, in);
  const Tensor y = from + (to - from) * (k / count);
  // NumPy rounds integers towards the outer end's side, as its linspace does.
  return dtype.is_float() ? y : ops::cast(ops::floor(y), dtype);
}

}  // namespace

Tensor pad(const Operand& x, const Operand& width, Name mode_name, const PadOptions& options) {
  return ops::attribute_errors("pad", [&] {
    const ArrayArg array(x, {"pad", "x"});
    Tensor t = array.tensor();
    const int rank = known_rank(t, {"pad", "x"});
    const std::vector<Width> widths = widths_of(width, rank);
    const std::string mode(mode_name.data() ? mode_name.data() : "", mode_name.size());
    const bool folds = mode == "edge" || mode == "wrap" || mode == "symmetric" || mode == "reflect";
    const bool counts = mode == "mean" || mode == "median" || mode == "maximum" || mode == "minimum";
    if (!folds && !counts && mode != "constant" && mode != "linear_ramp")
      fail<ValueError>(
          {"pad", "mode"}, "is '", mode, "'", kExpected,
          "it must be constant, edge, reflect, symmetric, wrap, linear_ramp, mean, median, maximum or minimum");
    if (t.dtype().is_bool() && (counts || mode == "linear_ramp"))
      fail<TypeError>({"pad", "x"}, "is bool", kExpected, "mode '", mode, "' takes numbers");
    const bool zero = mode == "constant" && Access::kind(options.constant_values) == Scalar::kInt &&
                      Access::int_value(options.constant_values) == 0;
    if (zero) {
      ops::Pads pads;
      pads.rank = rank;
      for (int i = 0; i < rank; ++i) {
        pads.before[i] = widths[static_cast<std::size_t>(i)].before;
        pads.after[i] = widths[static_cast<std::size_t>(i)].after;
      }
      return rank == 0 ? t : ops::pad(t, pads);
    }
    const Numbers ends(mode == "constant" ? options.constant_values : options.end_values, t.dtype(),
                       mode == "constant" ? "constant_values" : "end_values", rank);
    for (int axis = 0; axis < rank; ++axis) {
      const Width& w = widths[static_cast<std::size_t>(axis)];
      if (w.before == 0 && w.after == 0) continue;
      if (folds) {
        t = ops::checked(t, [axis](const TensorSpec& d) {
          if (d.rank >= 0 && d.dims[axis] == 0)
            fail<ValueError>({"pad", "x"}, "of shape ", d, kExpected, "axis ", axis, " must not be empty");
        });
        t = ops::gather(t, folded(mode, t, axis, w).to(t.device()), axis);
        continue;
      }
      const Tensor first = slice_along(t, axis, 0, 1), last = slice_along(t, axis, -1, None);
      Tensor before, after;
      if (mode == "constant") {
        auto block = [&](int side, std::int64_t count) {
          SizesOf shape;
          for (int i = 0; i < rank; ++i)
            if (i == axis) shape.push(count);
            else shape.push_size(t, i);
          return ops::broadcast_to(ends.at(axis, side).to(t.device()), shape);
        };
        before = block(0, w.before);
        after = block(1, w.after);
      } else if (mode == "linear_ramp") {
        before = ramp(ends.at(axis, 0), first, w.before, axis, true);
        after = ramp(ends.at(axis, 1), last, w.after, axis, false);
      } else {
        Tensor front = t, back = t;
        if (!options.stat_length.is_none()) {
          const std::int64_t n = Access::int_value(options.stat_length);
          if (n < 1) fail<ValueError>({"pad", "stat_length"}, "is ", n, kExpected, "it must be at least 1");
          front = slice_along(t, axis, 0, n);
          back = slice_along(t, axis, -n, None);
        }
        before = repeated(statistic(mode, front, axis), w.before, axis);
        after = repeated(statistic(mode, back, axis), w.after, axis);
      }
      t = ops::concatenate({before, t, after}, axis);
    }
    return t;
  });
}

}  // namespace numpy
}  // namespace kassette

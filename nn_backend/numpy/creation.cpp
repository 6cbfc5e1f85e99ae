// nn_backend/numpy/creation.cpp - NumPy's functions that make arrays.
#include <kassette/numpy/creation.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/text.h"
#include "core/rank.h"
#include "core/whole.h"
#include "nn_backend/numpy/arguments.h"
#include "ops/engine/dims.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;
using ops::default_float;

DType or_floatx(DType dtype) { return dtype.given() ? dtype : default_float(); }

/// `value`, a scalar or what broadcasts to the shape, everywhere.
Tensor filled(const Tensor& value, const Dims& shape, const char* what) {
  const Tensor to = ops::dims_tensor(shape, what);
  const Device here = context().default_device;
  const TensorDesc& v = Access::desc(value);
  if (!to.symbolic() && !value.symbolic() && v.rank == 0 && !v.node)
    return ops::filled_tensor(value.to(cpu), ops::shape_from(to, v.dtype, what), here, what);
  return ops::broadcast_to(value.device() == here ? value : value.to(here), to);
}
Tensor filled(int value, const Dims& shape, DType dtype, const char* what) {
  return attribute_errors(what, [&] { return filled(ops::scalar_tensor(value, or_floatx(dtype), what), shape, what); });
}
Tensor filled_like(const Operand& value, const Operand& x, DType dtype, const char* what) {
  return attribute_errors(what, [&] {
    const ArrayArg like(x, {what, "x"});
    if (!dtype.given()) dtype = like.tensor().dtype();
    const ArrayArg number(value, {what, "value"}, dtype);
    const Tensor one = ops::cast(number, dtype);
    return ops::broadcast_like(one.device() == like.tensor().device() ? one : one.to(like.tensor().device()), like);
  });
}
/// A matrix's diagonal k, as bool.
Tensor on_diagonal(std::int64_t n, std::int64_t m, std::int64_t k) {
  auto count = [](std::int64_t size, std::int64_t from) {
    return ops::arange(ops::scalar_tensor(from, int64), ops::scalar_tensor(from + size, int64),
                       ops::scalar_tensor(1, int64), int64);
  };
  return ops::equal(ops::expand_dims(count(n, k), 1), count(m, 0));
}

/// 0, 1, ... n - 1 as floats.
Tensor counting(std::int64_t n, DType dtype) {
  auto number = [](std::int64_t v) { return ops::scalar_tensor(v, int64); };
  return ops::arange(number(0), number(n), number(1), dtype);
}

/// What linspace and geomspace have in common: the ends, and how far each result is between them.
struct Space {
  Tensor start, stop, way, last;  // way: 0 to 1 along a first axis; last: where stop is to stand, if it is among them
  DType result;
};
Space space_between(const char* what, const Operand& start, const Operand& stop, std::int64_t num,
                    const SpaceOptions& options) {
  if (num < 0) fail<ValueError>({what, "num"}, "is ", num, kExpected, "it must not be negative");
  Space s;
  const DType from = own_dtype(start), to = own_dtype(stop);
  // Numbers are computed with in float64, integers as floatx.
  DType dtype = !from.given() && !to.given() ? float64
                : !from.given()              ? to
                : !to.given()                ? from
                                             : promoted(from, to, what);
  if (dtype.is_bool())
    fail<TypeError>({what, "start"}, "is bool", kExpected, "it must be a number", kRemedy, "cast it first (K::cast)");
  s.result = options.dtype.given() ? options.dtype : from.given() || to.given() ? dtype : default_float();
  if (!dtype.is_float()) {
    dtype = default_float();
    if (!options.dtype.given()) s.result = dtype;
  }
  s.start = ops::cast(ArrayArg(start, {what, "start"}, dtype), dtype);
  s.stop = ops::cast(ArrayArg(stop, {what, "stop"}, dtype), dtype);
  const int rank = std::max(known_rank(s.start, {what, "start"}), known_rank(s.stop, {what, "stop"}));
  Tensor k = counting(num, dtype);
  for (int i = 0; i < rank; ++i) k = ops::expand_dims(k, -1);
  const std::int64_t steps = options.endpoint ? num - 1 : num;
  s.way = steps > 0 ? k / steps : k;
  if (options.endpoint && num > 1) s.last = ops::equal(k, num - 1);
  return s;
}
/// The results with the exact ends, as the dtype and along the axis that were asked for.
Tensor finished(const char* what, const Space& s, Tensor y, const SpaceOptions& options) {
  if (s.last.defined()) y = ops::where(s.last, s.stop, y);
  if (s.result.is_integer()) y = ops::floor(y);
  y = ops::cast(y, s.result);
  if (options.axis == 0) return y;
  const int rank = Access::desc(y).rank, to = place_axis(what, options.axis, Access::desc(y));
  std::vector<int> order;
  for (int i = 1; i < rank; ++i) order.push_back(i);
  order.insert(order.begin() + to, 0);
  return ops::permute(y, order);
}
Tensor linear(const char* what, const Operand& start, const Operand& stop, std::int64_t num,
              const SpaceOptions& options) {
  const Space s = space_between(what, start, stop, num, options);
  return finished(what, s, s.start + (s.stop - s.start) * s.way, options);
}

/// A window: f of 0, 1, ... m - 1 and of m - 1, in float64.
template <class F>
Tensor window(const char* what, std::int64_t m, F&& f) {
  return attribute_errors(what, [&] {
    const std::int64_t n = std::max<std::int64_t>(m, 0);
    if (n == 1) return filled(1, {1}, None, what);
    return ops::cast(f(counting(n, float64), static_cast<double>(n - 1)), default_float()).to(context().default_device);
  });
}

}  // namespace

Tensor array(const Operand& x, DType dtype) {
  return attribute_errors("array", [&] {
    const ArrayArg t(x, {"array", "x"}, dtype);
    const Tensor y = dtype.given() ? ops::cast(t, dtype) : t.tensor();
    return ops::is_tensor_operand(x) ? y : y.to(context().default_device);
  });
}
Tensor astype(const Operand& x, DType dtype) {
  return attribute_errors("astype", [&] {
    if (!dtype.given()) fail<TypeError>({"astype", "dtype"}, "is None", kExpected, "it must be a dtype");
    return ops::cast(ArrayArg(x, {"astype", "x"}), dtype);
  });
}
Tensor zeros(const Dims& shape, DType dtype) { return filled(0, shape, dtype, "zeros"); }
Tensor ones(const Dims& shape, DType dtype) { return filled(1, shape, dtype, "ones"); }
Tensor empty(const Dims& shape, DType dtype) {
  return attribute_errors("empty", [&] {
    const Tensor to = ops::dims_tensor(shape, "empty");
    if (to.symbolic()) return filled(0, shape, dtype, "empty");
    return ops::empty_tensor(ops::shape_from(to, or_floatx(dtype), "empty"), "empty", context().default_device);
  });
}
Tensor full(const Dims& shape, const Operand& value, DType dtype) {
  return attribute_errors("full", [&] {
    const ArrayArg v(value, {"full", "value"}, dtype);
    return filled(dtype.given() ? ops::cast(v, dtype) : v.tensor(), shape, "full");
  });
}
Tensor zeros_like(const Operand& x, DType dtype) { return filled_like(0, x, dtype, "zeros_like"); }
Tensor ones_like(const Operand& x, DType dtype) { return filled_like(1, x, dtype, "ones_like"); }
Tensor empty_like(const Operand& x, DType dtype) { return filled_like(0, x, dtype, "empty_like"); }
Tensor full_like(const Operand& x, const Operand& value, DType dtype) {
  return filled_like(value, x, dtype, "full_like");
}
Tensor eye(std::int64_t n, Scalar m, std::int64_t k, DType dtype) {
  return attribute_errors("eye", [&] {
    const std::int64_t columns = m.is_none() ? n : Access::int_value(m);
    if (n < 0 || columns < 0)
      fail<ValueError>({"eye", "n"}, "and m are ", n, " and ", columns, kExpected, "sizes must not be negative");
    if (k == 0) return ops::eye({n, columns}, or_floatx(dtype));
    // Diagonals further out than the corners are empty, too.
    return ops::cast(on_diagonal(n, columns, std::clamp(k, -n, columns)), or_floatx(dtype))
        .to(context().default_device);
  });
}
Tensor identity(std::int64_t n, DType dtype) {
  return attribute_errors("identity", [&] { return eye(n, None, 0, dtype); });
}

Tensor arange(const Operand& start, const Operand& stop, const Operand& step, DType dtype) {
  return attribute_errors("arange", [&] {
    auto number = [](const Operand& x, const char* which) {
      const At at{"arange", which};
      if (ops::is_tensor_operand(x)) return ArrayArg(x, at).tensor().to(cpu);
      const bool is_float = Access::kind(x) == Scalar::kFloat;
      if (is_float && !std::isfinite(Access::float_value(x)))
        fail<ValueError>(at, "is ", Access::float_value(x), kExpected, "it must be finite");
      return ops::as_tensor(x, is_float ? float64 : integer_dtype(x), at);
    };
    Tensor from = number(start, "start"), by = number(step, "step"), to;
    if (stop.is_none()) {
      to = from;
      from = ops::scalar_tensor(0, int64);
    } else {
      to = number(stop, "stop");
    }
    const bool floats = from.dtype().is_float() || to.dtype().is_float() || by.dtype().is_float();
    return ops::arange(from, to, by, dtype.given() ? dtype : floats ? default_float() : int64);
  });
}
Tensor linspace(const Operand& start, const Operand& stop, std::int64_t num, const SpaceOptions& options) {
  return attribute_errors("linspace", [&] { return linear("linspace", start, stop, num, options); });
}
Tensor logspace(const Operand& start, const Operand& stop, std::int64_t num, double base, const SpaceOptions& options) {
  return attribute_errors("logspace", [&] {
    SpaceOptions powers = options;
    const bool weak = !own_dtype(start).given() && !own_dtype(stop).given();
    powers.dtype = weak ? float64 : None;
    const Tensor y = linear("logspace", start, stop, num, powers);
    const Tensor result = ops::pow(base, y);
    const DType dtype = options.dtype.given() ? options.dtype : weak ? default_float() : result.dtype();
    return ops::cast(result, dtype);
  });
}
Tensor geomspace(const Operand& start, const Operand& stop, std::int64_t num, const SpaceOptions& options) {
  return attribute_errors("geomspace", [&] {
    const Space s = space_between("geomspace", start, stop, num, options);
    const Tensor first = ops::equal(s.way, 0);
    return finished("geomspace", s, ops::where(first, s.start, s.start * ops::pow(s.stop / s.start, s.way)), options);
  });
}

Tensors meshgrid(const Tensors& x, const MeshgridOptions& options) {
  return attribute_errors("meshgrid", [&] {
    const std::string mode(options.indexing.data() ? options.indexing.data() : "", options.indexing.size());
    if (mode != "xy" && mode != "ij")
      fail<ValueError>({"meshgrid", "indexing"}, "is '", mode, "'", kExpected, "it must be 'xy' or 'ij'");
    const int n = static_cast<int>(x.size());
    (void)checked_rank("meshgrid", n, x.size(), " tensors");
    auto axis_of = [&](int i) { return mode == "xy" && n > 1 && i < 2 ? 1 - i : i; };
    Tensors grids;
    SizesOf shape;
    for (int i = 0; i < n; ++i) {
      if (!x[i].defined()) fail_empty({"meshgrid", "x"});
      if (Access::desc(x[i]).rank != 1 && Access::desc(x[i]).rank != 0)
        fail<ValueError>({"meshgrid", "x"}, "holds a tensor of shape ", x[i].shape(), kExpected,
                         "each must be a vector");
      std::vector<int> sizes(static_cast<std::size_t>(n), 1);
      sizes[static_cast<std::size_t>(axis_of(i))] = -1;
      const Tensor flat = ops::reshape(x[i], sizes);
      grids.push_back(flat);
    }
    if (options.sparse) return grids;
    for (int i = 0; i < n; ++i) shape.push_size(grids[axis_of(i)], i);
    for (Tensor& grid : grids) grid = ops::broadcast_to(grid, shape);
    return grids;
  });
}
Tensor indices(const Dims& shape) {
  return attribute_errors("indices", [&] {
    const TensorSpec spec = ops::shape_from(ops::dims_tensor(shape, "indices"), int64, "indices");
    (void)checked_rank("indices", spec.rank + 1);
    Tensors axes;
    for (int i = 0; i < spec.rank; ++i) axes.push_back(counting(spec.dims[i], int64));
    if (axes.empty()) return ops::empty_tensor(TensorSpec(int64, {0}), "indices");
    return ops::stack(meshgrid(axes, {.indexing = "ij"}), 0);
  });
}
Tensor fromfunction(Callable<Tensor(const Tensors&)> f, const Dims& shape, DType dtype) {
  const Tensors grid = attribute_errors("fromfunction", [&] {
    const TensorSpec spec = ops::shape_from(ops::dims_tensor(shape, "fromfunction"), int64, "fromfunction");
    Tensors axes;
    for (int i = 0; i < spec.rank; ++i) axes.push_back(counting(spec.dims[i], or_floatx(dtype)));
    return meshgrid(axes, {.indexing = "ij"});
  });
  return f(grid);
}
Tensor vander(const Operand& x, Scalar n, bool increasing) {
  return attribute_errors("vander", [&] {
    const ArrayArg array(x, {"vander", "x"});
    const Tensor& t = array.tensor();
    if (Access::desc(t).rank != 1)
      fail<ValueError>({"vander", "x"}, "of shape ", t.shape(), kExpected, "it must be a vector");
    const std::int64_t columns = n.is_none() ? known_size(t, 0, {"vander", "x"}) : Access::int_value(n);
    if (columns < 0) fail<ValueError>({"vander", "n"}, "is ", columns, kExpected, "it must not be negative");
    Tensors powers;
    Tensor power = ops::expand_dims(ops::zeros_of(t) + 1, 1);
    const Tensor column = ops::expand_dims(t, 1);
    for (std::int64_t i = 0; i < columns; ++i) {
      powers.push_back(power);
      power = power * column;
    }
    if (powers.empty()) return slice_along(column, 1, 0, 0);
    const Tensor all = ops::concatenate(powers, 1);
    return increasing ? all : ops::reverse(all, 1);
  });
}

Tensor hanning(std::int64_t m) {
  return window("hanning", m,
                [](const Tensor& n, double last) { return 0.5 - 0.5 * ops::cos(n * (2 * std::numbers::pi / last)); });
}
Tensor hamming(std::int64_t m) {
  return window("hamming", m,
                [](const Tensor& n, double last) { return 0.54 - 0.46 * ops::cos(n * (2 * std::numbers::pi / last)); });
}
Tensor blackman(std::int64_t m) {
  return window("blackman", m, [](const Tensor& n, double last) {
    return 0.42 - 0.5 * ops::cos(n * (2 * std::numbers::pi / last)) +
           0.08 * ops::cos(n * (4 * std::numbers::pi / last));
  });
}
Tensor bartlett(std::int64_t m) {
  return window("bartlett", m, [](const Tensor& n, double last) { return 1 - ops::abs(n * (2 / last) - 1); });
}
Tensor kaiser(std::int64_t m, double beta) {
  return window("kaiser", m, [beta](const Tensor& n, double last) {
    const Tensor off = n * (2 / last) - 1;
    return ops::i0(ops::sqrt(1 - ops::square(off)) * beta) / ops::i0(ops::scalar_tensor(beta, float64));
  });
}

}  // namespace numpy
}  // namespace kassette

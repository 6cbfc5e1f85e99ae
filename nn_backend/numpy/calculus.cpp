// nn_backend/numpy/calculus.cpp - NumPy's differences, integrals, interpolation and convolution.
#include <kassette/numpy/calculus.h>

#include <algorithm>
#include <string_view>

#include "core/convert.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/convolution/conv.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/reduce/scan.h"
#include "ops/shape/checked.h"
#include "ops/shape/index.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// The elements from `start` to `stop` of the axis.
Tensor part(const Tensor& x, int axis, Scalar start, Scalar stop) { return slice_along(x, axis, start, stop); }
/// One element of the axis, which stays with size 1. Throws ValueError if there is none.
Tensor element(const Tensor& x, int axis, int at) {
  auto list = Ref<ops::IndexList>::adopt(new ops::IndexList);
  for (int i = 0; i < axis; ++i) list->push({});
  list->push({.kind = ops::IndexList::kInt, .start = at});
  return ops::expand_dims(ops::index(x, Ref<Extra>(list.get())), axis);
}

/// What diff puts before or behind x: a number is repeated.
Tensor edge(const Tensor& x, const Operand& given, const char* name, int axis) {
  const ArrayArg array(given, {"diff", name}, x.dtype());
  const Tensor& t = array.tensor();
  if (Access::desc(t).rank != 0) return t;
  const bool logical = x.dtype().is_bool();
  const Tensor zero = ops::zeros_of(logical ? ops::any_of(x, axis, true) : ops::sum(x, axis, true));
  if (logical) return ops::logical_or(zero, t);
  return zero + (ops::is_tensor_operand(given) ? t : t.to(x.device()));
}
Tensor difference(const Tensor& x, int axis) {
  const Tensor before = part(x, axis, None, -1), behind = part(x, axis, 1, None);
  return x.dtype().is_bool() ? ops::not_equal(behind, before) : behind - before;
}

/// Coordinates along an axis of f, as a tensor that broadcasts to f.
Tensor along(const Tensor& coordinates, const Tensor& f, int axis) {
  Tensor t = coordinates;
  for (int i = axis + 1; i < Access::desc(f).rank; ++i) t = ops::expand_dims(t, i - axis);
  return t;
}

/// Slopes along an axis of values at equal distances h.
Tensor even_slopes(const Tensor& f, int axis, const Operand& h, int edge_order) {
  const Tensor inside = (part(f, axis, 2, None) - part(f, axis, None, -2)) / 2.0;
  const Tensor a = element(f, axis, 0), b = element(f, axis, 1), y = element(f, axis, -2), z = element(f, axis, -1);
  Tensor first = b - a, last = z - y;
  if (edge_order == 2) {
    first = b * 2.0 - a * 1.5 - element(f, axis, 2) * 0.5;
    last = z * 1.5 - y * 2.0 + element(f, axis, -3) * 0.5;
  }
  return ops::concatenate({first, inside, last}, axis) / h;
}
/// Slopes along an axis of values whose distances are d, by the parabolas through three neighbours.
Tensor uneven_slopes(const Tensor& f, int axis, const Tensor& d, int edge_order) {
  const int at = 0;  // the axis of d
  const Tensor p = part(d, at, None, -1), q = part(d, at, 1, None), both = p + q;
  const Tensor inside = part(f, axis, None, -2) * -(q / (p * both)) + part(f, axis, 1, -1) * ((q - p) / (p * q)) +
                        part(f, axis, 2, None) * (p / (q * both));
  const Tensor a = element(f, axis, 0), b = element(f, axis, 1), y = element(f, axis, -2), z = element(f, axis, -1);
  Tensor first = (b - a) / element(d, at, 0), last = (z - y) / element(d, at, -1);
  if (edge_order == 2) {
    const Tensor p0 = element(d, at, 0), q0 = element(d, at, 1), p1 = element(d, at, -2), q1 = element(d, at, -1);
    first = b * ((p0 + q0) / (p0 * q0)) - a * ((p0 * 2.0 + q0) / (p0 * (p0 + q0))) -
            element(f, axis, 2) * (p0 / (q0 * (p0 + q0)));
    last = z * ((q1 * 2.0 + p1) / (q1 * (p1 + q1))) - y * ((p1 + q1) / (p1 * q1)) +
           element(f, axis, -3) * (q1 / (p1 * (p1 + q1)));
  }
  return ops::concatenate({first, inside, last}, axis);
}
/// The slopes along one axis. `spacing` is a number or the coordinates.
Tensor slopes(Tensor f, int axis, const Operand& spacing, int edge_order) {
  const At at{"gradient", "spacing"};
  if (Access::kind(spacing) == Scalar::kInt || Access::kind(spacing) == Scalar::kFloat)
    return even_slopes(f, axis, spacing, edge_order);
  const ArrayArg given(spacing, at, f.dtype());
  Tensor t = beside(f, spacing, as_float(given), at);
  const DType dtype = promoted(f.dtype(), t.dtype(), "gradient", "f", "spacing");
  f = ops::cast(f, dtype), t = ops::cast(t, dtype);
  const int rank = known_rank(t, at);
  if (rank == 0) return even_slopes(f, axis, ops::is_tensor_operand(spacing) ? Operand(t) : spacing, edge_order);
  t = ops::checked(t, f, [=](const TensorSpec& d, const TensorSpec& of_f) {
    if (d.rank > 1 || (d.rank == 1 && of_f.rank >= 0 && differ(d.dims[0], of_f.dims[axis])))
      fail<ValueError>(at, "of shape ", d, kExpected, "it must be a number or the ", of_f.dims[axis],
                       " coordinates of axis ", axis);
  });
  return uneven_slopes(f, axis, along(difference(t, 0), f, axis), edge_order);
}

/// Two vectors of one dtype.
Tensors two_vectors(const char* what, const Operand& x, const Operand& y) {
  Tensors in = promoted_tensors(what, {{"x", x}, {"y", y}});
  const char* names[] = {"x", "y"};
  for (int i = 0; i < 2; ++i) {
    if (in[i].dtype().is_bool()) fail<TypeError>({what, names[i]}, "is bool", kRemedy, "cast it first (K::cast)");
    if (known_rank(in[i], {what, names[i]}) != 1)
      fail<ValueError>({what, names[i]}, "has shape ", in[i].shape(), kExpected, "it must be a vector");
    in[i] = ops::checked(in[i], [what, name = names[i]](const TensorSpec& d) {
      if (d.rank == 1 && d.dims[0] == 0) fail<ValueError>({what, name}, "is empty");
    });
  }
  return in;
}
/// The sums of x[k - j] * y[j] for each k at which there are such products.
Tensor convolved(const Tensor& x, const Tensor& y) {
  if (!x.dtype().is_float()) {
    const Tensor n = size_along(x, 0), m = size_along(y, 0);
    const Tensor at = places_below(n + m - 1, cpu), row = places_below(m, cpu);
    const Tensor from = ops::expand_dims(at, 1) - row;  // (n + m - 1, m)
    const Tensor inside = ops::logical_and(ops::greater_equal(from, 0), ops::less(from, n));
    const Tensor picked = ops::gather(x, ops::where(inside, from, 0).to(x.device()));
    return ops::sum(ops::where(inside.to(x.device()), picked, 0) * y, 1, false);
  }
  // The gradient of the input of a layer's convolution is a convolution, with all shifts.
  ops::ConvForm form;
  const Tensor image = ops::expand_dims(ops::expand_dims(x, 0), 2), one = ops::scalar_tensor(1, int64);
  const Tensor kernel = ops::expand_dims(ops::expand_dims(y, 1), 2);
  const Tensor dims = ops::stack({one, size_along(x, 0) + size_along(y, 0) - 1, one}, 0);
  return ops::flatten(ops::convolution_input_gradient(image, kernel, dims, form), 0);
}
enum class Mode : std::uint8_t { full, same, valid };
Mode mode_of(const char* what, Name mode) {
  const std::string_view text(mode.data(), mode.size());
  if (text == "full") return Mode::full;
  if (text == "same") return Mode::same;
  if (text == "valid") return Mode::valid;
  fail<ValueError>({what, "mode"}, "is \"", text, '"', kExpected, "it must be \"full\", \"same\" or \"valid\"");
}
/// The shifts of `mode` among all of them. `reversed`: NumPy exchanges vectors of which the second is longer, and then
/// reverses the result.
Tensor chosen(const char* what, const Tensors& in, const Tensor& all, Mode mode, bool reversed) {
  if (mode == Mode::full) return all;
  const std::int64_t n = known_size(in[0], 0, {what, "x"}), m = known_size(in[1], 0, {what, "y"});
  const std::int64_t most = std::max(n, m), least = std::min(n, m);
  if (mode == Mode::valid) return part(all, 0, least - 1, most);
  const std::int64_t start = reversed && m > n ? least / 2 : least - 1 - least / 2;
  return part(all, 0, start, start + most);
}

}  // namespace

Tensor diff(const Operand& x, const DiffOptions& options) {
  return attribute_errors("diff", [&] {
    Tensor t = ArrayArg(x, {"diff", "x"});
    if (options.n < 0) fail<ValueError>({"diff", "n"}, "is ", options.n, kExpected, "it must be at least 0");
    const int axis = one_axis_of("diff", t, options.axis);
    if (options.n == 0) return t;
    Tensors parts;
    if (!options.prepend.is_none()) parts.push_back(edge(t, options.prepend, "prepend", axis));
    parts.push_back(t);
    if (!options.append.is_none()) parts.push_back(edge(t, options.append, "append", axis));
    if (parts.size() > 1) t = ops::concatenate(parts, axis);
    for (int i = 0; i < options.n; ++i) t = difference(t, axis);
    return t;
  });
}
template <int>
Tensor diff(const Operand& x, int n, int axis) {
  return diff(x, DiffOptions{.n = n, .axis = axis});
}
template Tensor diff<0>(const Operand&, int, int);

Tensor ediff1d(const Operand& x, const Ediff1dOptions& options) {
  return of_array("ediff1d", x, [&](const Tensor& given) {
    if (given.dtype().is_bool()) fail<TypeError>({"ediff1d", "x"}, "is bool", kRemedy, "cast it first (K::cast)");
    Tensors parts = difference(ops::flatten(given, 0), 0);
    auto end = [&](const Operand& values, const char* name) {
      const ArrayArg array(values, {"ediff1d", name}, given.dtype());
      return ops::flatten(beside(given, values, array, {"ediff1d", name}), 0);
    };
    if (!options.to_begin.is_none()) parts = {end(options.to_begin, "to_begin"), parts[0]};
    if (!options.to_end.is_none()) parts.push_back(end(options.to_end, "to_end"));
    return parts.size() == 1 ? parts[0] : ops::concatenate(parts, 0);
  });
}
Tensor unwrap(const Operand& x, const UnwrapOptions& options) {
  return of_array("unwrap", x, [&](const Tensor& t) {
    check_float(t, {"unwrap", "x"});
    const int axis = front_axis(t, options.axis, "unwrap");
    if (!(options.period > 0))
      fail<ValueError>({"unwrap", "period"}, "is ", options.period, kExpected, "it must be above 0");
    const double half = options.period / 2, jump = std::max(options.discont, half);
    const Tensor d = difference(t, axis);
    Tensor m = (d + half) % options.period - half;
    // A jump of half a period up stays one.
    m = ops::where(ops::logical_and(ops::equal(m, -half), ops::greater(d, 0)), half, m);
    const Tensor added = ops::where(ops::less(ops::abs(d), jump), 0, m - d);
    return ops::concatenate({part(t, axis, 0, 1), part(t, axis, 1, None) + ops::cumsum(added, axis)}, axis);
  });
}
Tensor trapezoid(const Operand& y, const TrapezoidOptions& options) {
  return attribute_errors("trapezoid", [&] {
    Tensor f = as_float(ArrayArg(y, {"trapezoid", "y"}));
    const int axis = one_axis_of("trapezoid", f, options.axis);
    auto sums = [&] { return part(f, axis, 1, None) + part(f, axis, None, -1); };
    if (options.x.is_none()) return ops::sum(sums(), axis, false) * (options.dx / 2);
    const ArrayArg given(options.x, {"trapezoid", "x"}, f.dtype());
    const Tensor points = beside(f, options.x, as_float(given), {"trapezoid", "x"});
    const int rank = known_rank(points, {"trapezoid", "x"}),
              along_x = rank == 1 ? 0 : axis - Access::desc(f).rank + rank;
    const Tensor x = ops::checked(points, f, [=](const TensorSpec& a, const TensorSpec& b) {
      if (along_x < 0 || (a.rank >= 0 && b.rank >= 0 && differ(a.dims[along_x], b.dims[axis])))
        fail<ValueError>({"trapezoid", "x"}, "of shape ", a, " does not fit y of shape ", b, " along axis ", axis);
    });
    const Tensor d = rank == 1 ? along(difference(x, 0), f, axis) : difference(x, along_x);
    const DType dtype = promoted(f.dtype(), d.dtype(), "trapezoid", "y", "x");
    return ops::sum(ops::cast(sums(), dtype) * ops::cast(d, dtype) * 0.5, axis, false);
  });
}
template <int>
Tensor trapezoid(const Operand& y, const Operand& x) {
  return trapezoid(y, TrapezoidOptions{.x = x});
}
template Tensor trapezoid<0>(const Operand&, const Operand&);

Tensors gradient(const Operand& f, const GradientOptions& options) {
  Tensors all;
  attribute_errors("gradient", [&] {
    Tensor t = as_float(ArrayArg(f, {"gradient", "f"}));
    const int order = options.edge_order;
    if (order != 1 && order != 2)
      fail<ValueError>({"gradient", "edge_order"}, "is ", order, kExpected, "it must be 1 or 2");
    const std::vector<int> axes = places_of({"gradient", "axis"}, options.axis, known_rank(t, {"gradient", "f"}));
    t = ops::checked(t, [axes, order](const TensorSpec& d) {
      for (int axis : axes)
        if (d.rank >= 0 && d.dims[axis] >= 0 && d.dims[axis] <= order)
          fail<ValueError>({"gradient", "f"}, "of shape ", d, kExpected, "axis ", axis, " must have at least ",
                           order + 1, " elements");
    });
    const Operand& spacing = options.spacing;
    const bool listed = axes.size() > 1 && Access::kind(spacing) == Scalar::kList;
    if (listed && Access::count(spacing) != axes.size())
      fail<ValueError>({"gradient", "spacing"}, "has ", Access::count(spacing), " entries for ", axes.size(), " axes",
                       kExpected, "there must be one for each");
    auto* items = listed ? static_cast<const Operand*>(Access::pointer(spacing)) : nullptr;
    for (std::size_t i = 0; listed && i < axes.size(); ++i)
      if (ops::is_tensor_operand(items[i])) check_device(ops::tensor_of(items[i]), t, {"gradient", "spacing"});
    for (std::size_t i = 0; i < axes.size(); ++i) all.push_back(slopes(t, axes[i], listed ? items[i] : spacing, order));
    return t;
  });
  return all;
}
template <int>
Tensors gradient(const Operand& f, const Operand& spacing) {
  return gradient(f, GradientOptions{.spacing = spacing});
}
template Tensors gradient<0>(const Operand&, const Operand&);

/// The points in ascending order within one period, and one beyond each end.
static void repeat_points(Tensors& in, double period) {
  if (!(period > 0)) fail<ValueError>({"interp", "period"}, "is ", period, kExpected, "it must be above 0");
  in[0] = in[0] % period, in[1] = in[1] % period;
  const Tensor order = ops::argsort(in[1], 0);
  const Tensor xp = ops::take_places(in[1], order, 0), fp = ops::take_places(in[2], order, 0);
  in[1] = ops::concatenate({element(xp, 0, -1) - period, xp, element(xp, 0, 0) + period}, 0);
  in[2] = ops::concatenate({element(fp, 0, -1), fp, element(fp, 0, 0)}, 0);
}

Tensor interp(const Operand& x, const Operand& xp, const Operand& fp, const InterpOptions& options) {
  return attribute_errors("interp", [&] {
    Tensors in = float_tensors("interp", {{"x", x}, {"xp", xp}, {"fp", fp}});
    const char* names[] = {"x", "xp", "fp"};
    for (int i = 1; i < 3; ++i)
      if (known_rank(in[i], {"interp", names[i]}) != 1)
        fail<ValueError>({"interp", names[i]}, "has shape ", in[i].shape(), kExpected, "it must be a vector");
    in[1] = ops::checked(in[1], [](const TensorSpec& d) {
      if (d.rank == 1 && d.dims[0] == 0) fail<ValueError>({"interp", "xp"}, "is empty");
    });
    in[2] = ops::checked(in[2], in[1], [](const TensorSpec& of_f, const TensorSpec& of_x) {
      if (of_f.rank == 1 && of_x.rank == 1 && differ(of_f.dims[0], of_x.dims[0]))
        fail<ValueError>({"interp", "fp"}, "has ", of_f.dims[0], " elements", kExpected, "there must be ", of_x.dims[0],
                         ", as in xp");
    });
    const std::int64_t n = Access::desc(in[1]).dims[0];
    const bool periodic = !options.period.is_none();
    if (periodic) {
      double period = 0;
      write_scalar(&period, float64, options.period, {"interp", "period"});
      repeat_points(in, period);
    }
    const Tensor &v = in[0], &at = in[1], &f = in[2];
    const Tensor first = ops::squeeze(element(f, 0, 0), 0), last = ops::squeeze(element(f, 0, -1), 0);
    const Tensor low = ops::squeeze(element(at, 0, 0), 0), high = ops::squeeze(element(at, 0, -1), 0);
    Tensor y = ops::where(ops::equal(v, v), first, v);
    if (n != 1 || periodic) {  // the inner points divide the line into one interval for each pair of neighbours
      const Tensor i = ops::searchsorted(part(at, 0, 1, -1), v, ops::Side::right);
      const bool pair = n > 1 || periodic;  // otherwise there may be one point, which is then both ends of an interval
      auto ends = [&](const Tensor& t) {
        if (pair) return Tensors{ops::gather(part(t, 0, None, -1), i), ops::gather(part(t, 0, 1, None), i)};
        return Tensors{ops::gather(t, i), ops::gather(t, ops::minimum(i + 1, (size_along(t, 0) - 1).to(t.device())))};
      };
      const Tensors xs = ends(at), ys = ends(f);
      const Tensor &x0 = xs[0], &y0 = ys[0];
      const Tensor one = pair ? Tensor() : ops::equal(size_along(at, 0), 1).to(at.device()), width = xs[1] - x0;
      Tensor inner = (ys[1] - y0) / (pair ? width : ops::where(one, 1, width)) * (v - x0) + y0;
      inner = ops::where(ops::equal(v, high), last, inner);
      y = pair ? inner : ops::where(one, y, inner);
    }
    auto outside = [](const Operand& given, const Tensor& instead) {
      return !given.is_none() ? given : Operand(instead);
    };
    y = ops::where(ops::less(v, low), outside(options.left, first), y);
    return ops::where(ops::greater(v, high), outside(options.right, last), y);
  });
}

Tensor convolve(const Operand& x, const Operand& y, Name mode) {
  return attribute_errors("convolve", [&] {
    const Mode how = mode_of("convolve", mode);
    const Tensors in = two_vectors("convolve", x, y);
    return chosen("convolve", in, convolved(in[0], in[1]), how, /*reversed=*/false);
  });
}
Tensor correlate(const Operand& x, const Operand& y, Name mode) {
  return attribute_errors("correlate", [&] {
    const Mode how = mode_of("correlate", mode);
    const Tensors in = two_vectors("correlate", x, y);
    return chosen("correlate", in, convolved(in[0], ops::reverse(in[1], 0)), how, /*reversed=*/true);
  });
}

}  // namespace numpy
}  // namespace kassette

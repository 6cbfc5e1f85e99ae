// nn_backend/numpy/polynomials.cpp - polynomials as vectors of coefficients, that of the highest power first.
#include <kassette/numpy/calculus.h>
#include <kassette/numpy/creation.h>
#include <kassette/numpy/linalg.h>
#include <kassette/numpy/polynomials.h>

#include <algorithm>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/linalg.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// The number of coefficients. Throws ValueError unless it is known, and p is a vector.
std::int64_t length_of(const Tensor& p, const char* what, const char* name = "p") {
  if (known_rank(p, {what, name}) != 1)
    fail<ValueError>({what, name}, "has shape ", Access::desc(p), kExpected, "it must be a vector");
  return known_size(p, 0, {what, name});
}
/// p with zeros in front.
Tensor padded(const Tensor& p, std::int64_t zeros) {
  if (zeros == 0) return p;
  ops::Pads more;
  more.rank = 1;
  more.before[0] = zeros;
  return ops::pad(p, more);
}
/// Both with the same number of coefficients.
Tensors of_one_length(const char* what, const Operand& a, const Operand& b) {
  Tensors both = promoted_tensors(what, {{"a", a}, {"b", b}});
  const std::int64_t n = length_of(both[0], what, "a"), m = length_of(both[1], what, "b");
  both[0] = padded(both[0], std::max<std::int64_t>(m - n, 0));
  both[1] = padded(both[1], std::max<std::int64_t>(n - m, 0));
  return both;
}
/// n, n - 1, ... 1 with the dtype and on the device of p.
Tensor powers_of(std::int64_t n, const Tensor& p) {
  const Tensor powers = n - places_below(ops::scalar_tensor(n, int64), p.device());
  return ops::cast(powers, p.dtype());
}
void check_times(std::int64_t m, const char* what) {
  if (m < 0) fail<ValueError>({what, "m"}, "is ", m, kExpected, "it must not be negative");
}

}  // namespace

Tensor polyval(const Operand& p, const Operand& x) {
  return attribute_errors("polyval", [&] {
    const Tensors both = promoted_tensors("polyval", {{"p", p}, {"x", x}});
    const std::int64_t n = length_of(both[0], "polyval");
    Tensor y = ops::zeros_of(both[1]);
    for (std::int64_t i = 0; i < n; ++i) y = i ? y * both[1] + both[0][i] : y + both[0][i];
    return y;
  });
}
Tensor polyfit(const Operand& x, const Operand& y, std::int64_t deg, const PolyfitOptions& options) {
  constexpr const char* kWhat = "polyfit";
  return attribute_errors(kWhat, [&] {
    if (deg < 0) fail<ValueError>({kWhat, "deg"}, "is ", deg, kExpected, "it must not be negative");
    Tensors points = promoted_tensors(kWhat, {{"x", x}, {"y", y}});
    check_float(points[0], {kWhat, "x"});
    const int rank = known_rank(points[1], {kWhat, "y"});
    if (known_rank(points[0], {kWhat, "x"}) != 1)
      fail<ValueError>({kWhat, "x"}, "has shape ", points[0].shape(), kExpected, "it must be a vector");
    points[1] = ops::checked(points[1], points[0], [=](const TensorSpec& of_y, const TensorSpec& of_x) {
      if (of_y.rank < 0 || of_x.rank != 1) return;
      if (of_y.rank == 0 || of_y.rank > 2 || differ(of_x.dims[0], of_y.dims[0]))
        fail<ValueError>({kWhat, "y"}, "has shape ", of_y, " and x ", of_x, kExpected,
                         "it must be (n) or (n, k) for an x of (n)");
    });
    Tensor a = vander(points[0], deg + 1), b = points[1];
    if (!options.w.is_none()) {
      const ArrayArg given(options.w, {kWhat, "w"}, a.dtype());
      const Tensor w = ops::checked(beside(a, options.w, given, {kWhat, "w"}), points[0],
                                    [=](const TensorSpec& of_w, const TensorSpec& of_x) {
                                      if (!of_w.compatible(of_x))
                                        fail<ValueError>({kWhat, "w"}, "has shape ", of_w, " and x ", of_x, kExpected,
                                                         "there must be a weight for each point");
                                    });
      a = a * ops::expand_dims(w, 1);
      b = b * (rank == 2 ? ops::expand_dims(w, 1) : w);
    }
    // Columns of one length: powers of large x are far larger than 1.
    const Tensor scale = ops::square_root(ops::sum(ops::square(a), 0));
    const double unit = a.dtype() == float64 ? 0x1p-52 : 0x1p-23;
    const std::int64_t n = Access::desc(a).dims[0];
    Scalar rcond = options.rcond;
    if (rcond.is_none() && n >= 0) rcond = static_cast<double>(n) * unit;
    const Tensor columns = a / scale;
    const Tensor c = rcond.is_none()
                         ? linalg::lstsq_above(columns, b, ops::cast(size_along(a, 0), float64) * unit).solution
                         : linalg::lstsq(columns, b, rcond).solution;
    return c / (rank == 2 ? ops::expand_dims(scale, 1) : scale);
  });
}
Tensor polyadd(const Operand& a, const Operand& b) {
  return attribute_errors("polyadd", [&] {
    const Tensors both = of_one_length("polyadd", a, b);
    return both[0] + both[1];
  });
}
Tensor polysub(const Operand& a, const Operand& b) {
  return attribute_errors("polysub", [&] {
    const Tensors both = of_one_length("polysub", a, b);
    return both[0] - both[1];
  });
}
Tensor polymul(const Operand& a, const Operand& b) {
  return attribute_errors("polymul", [&] { return convolve(a, b); });
}
QuotientAndRemainder polydiv(const Operand& u, const Operand& v) {
  constexpr const char* kWhat = "polydiv";
  return attribute_errors(kWhat, [&] {
    const Tensors both = promoted_tensors(kWhat, {{"u", u}, {"v", v}});
    check_float(both[0], {kWhat, "u"});
    const std::int64_t m = length_of(both[0], kWhat, "u"), n = length_of(both[1], kWhat, "v");
    if (n == 0) fail<ValueError>({kWhat, "v"}, "is empty", kExpected, "there must be a coefficient");
    Tensor rest = padded(both[0], std::max<std::int64_t>(n - m, 0));
    Tensors quotients;
    for (std::int64_t i = 0; i <= std::max<std::int64_t>(m - n, 0); ++i) {
      const Tensor q = slice_along(rest, 0, 0, 1) / slice_along(both[1], 0, 0, 1);
      quotients.push_back(q);
      const Tensor taken = slice_along(rest, 0, 1, static_cast<long>(n)) - q * slice_along(both[1], 0, 1, None);
      rest = ops::concatenate({taken, slice_along(rest, 0, static_cast<long>(n), None)}, 0);
    }
    if (n == 1) rest = ops::zeros_of(slice_along(both[1], 0, 0, 1));
    return QuotientAndRemainder{ops::concatenate(quotients, 0), rest};
  });
}
Tensor polyder(const Operand& p, std::int64_t m) {
  return of_array("polyder", p, [&](Tensor t) {
    check_times(m, "polyder");
    std::int64_t n = length_of(t, "polyder");
    for (std::int64_t i = 0; i < m && n > 0; ++i, --n) t = slice_along(t, 0, 0, -1) * powers_of(n - 1, t);
    return t;
  });
}
Tensor polyint(const Operand& p, std::int64_t m, double k) {
  return of_array("polyint", p, [&](const Tensor& given) {
    check_times(m, "polyint");
    Tensor t = as_float(given);
    const Tensor constant = ops::expand_dims(ops::number_like(k, t), 0);
    std::int64_t n = length_of(t, "polyint");
    for (std::int64_t i = 0; i < m; ++i, ++n) t = ops::concatenate({t / powers_of(n, t), constant}, 0);
    return t;
  });
}
Tensor poly(const Operand& roots) {
  return attribute_errors("poly", [&] {
    const ArrayArg given(roots, {"poly", "roots"});
    const Tensor& t = given.tensor();
    check_float(t, {"poly", "roots"});
    const std::int64_t n = length_of(t, "poly", "roots");
    const Tensor zero = ops::expand_dims(ops::number_like(0, t), 0);
    Tensor p = zero + 1;
    for (std::int64_t i = 0; i < n; ++i) p = ops::concatenate({p, zero}, 0) - ops::concatenate({zero, p}, 0) * t[i];
    return p;
  });
}
PolynomialRoots roots(const Operand& p) {
  return of_array("roots", p, [](const Tensor& t) {
    check_float(t, {"roots", "p"});
    const std::int64_t n = length_of(t, "roots") - 1;
    if (n < 1) {
      const Tensor none = ops::zeros_of(slice_along(t, 0, 0, 0));
      return PolynomialRoots{none, none};
    }
    // The eigenvalues of the companion matrix.
    const Tensor first = ops::expand_dims(-slice_along(t, 0, 1, None) / t[0], 0);
    const Tensor below = ops::cast(eye(n - 1, n, 0, t.dtype()).to(t.device()), t.dtype());
    const linalg::EigResult found = linalg::eig(ops::concatenate({first, below}, 0));
    return PolynomialRoots{found.real, found.imaginary};
  });
}

}  // namespace numpy
}  // namespace kassette

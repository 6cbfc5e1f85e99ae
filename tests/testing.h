// tests/testing.h - for tests of numerical code: how close two tensors are, and whether gradients are right.
#ifndef KASSETTE_TESTING_H
#define KASSETTE_TESTING_H
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <kassette/backend.h>

namespace kassette {
namespace testing {

/// What a comparison of two tensors found. Tests as a bool; `message` is one line, empty where all is well.
struct Comparison {
  bool ok = true;
  std::int64_t count = 0;        // elements that differ by more than is allowed
  std::int64_t where = -1;       // the worst of them, row-major
  double worst = 0;              // by how much it differs
  std::string message;
  explicit operator bool() const { return ok; }
};

/// |actual - expected| <= atol + rtol * |expected|. What is negative is chosen by the coarser of the two dtypes.
struct Tolerance {
  Named only_by_name{0};
  double rtol = -1, atol = -1;
};

namespace detail {

inline std::string text(const Shape& shape) {
  std::string s = "(";
  for (int i = 0; i < shape.size(); ++i)
    s += (i ? ", " : "") + (shape[i].known() ? std::to_string(std::int64_t(shape[i])) : std::string("None"));
  return shape.rank() < 0 ? "(...)" : s + (shape.rank() == 1 ? ",)" : ")");
}
inline std::string text(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.10g", v);
  return buffer;
}
/// "(1, 2)" for element 5 of a (2, 3).
inline std::string place(const Shape& shape, std::int64_t at) {
  std::string s;
  for (int i = shape.size() - 1; i >= 0; --i) {
    std::int64_t n = shape[i];
    s = std::to_string(at % n) + (s.empty() ? "" : ", ") + s;
    at /= n;
  }
  return "(" + s + ")";
}
inline double coarseness(DType a, DType b) {
  double eps = 0;
  for (DType d : {a, b})
    eps = std::fmax(eps, d == float64 ? 1e-12 : d == float32 ? 1e-5 : d == float16 ? 2e-3 : d == bfloat16 ? 1.6e-2 : 0);
  return eps;
}
inline Comparison fail(std::string message) {
  Comparison c;
  c.ok = false;
  c.message = std::move(message);
  return c;
}

}  // namespace detail

/// How far `actual` is from `expected`: shapes and dtypes have to be equal, nan equals nan, inf equals inf.
inline Comparison compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance = {}) {
  if (!actual.defined() || !expected.defined()) {
    if (actual.defined() == expected.defined()) return {};
    return detail::fail(actual.defined() ? "a tensor where none is expected" : "no tensor where one is expected");
  }
  if (actual.dtype() != expected.dtype())
    return detail::fail(std::string("dtype ") + actual.dtype().name() + ", expected " + expected.dtype().name());
  Tensor got = backend::eval(actual), wanted = backend::eval(expected);
  if (got.shape() != wanted.shape())
    return detail::fail("shape " + detail::text(got.shape()) + ", expected " + detail::text(wanted.shape()));
  double eps = detail::coarseness(got.dtype(), wanted.dtype());
  double rtol = tolerance.rtol < 0 ? eps : tolerance.rtol, atol = tolerance.atol < 0 ? eps : tolerance.atol;
  auto a = got.to_vector<double>(), e = wanted.to_vector<double>();
  Comparison c;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) continue;
    double off = std::fabs(a[i] - e[i]);
    if (off <= atol + rtol * std::fabs(e[i]) && !std::isinf(e[i])) continue;
    ++c.count;
    if (c.where < 0 || off > c.worst || std::isnan(off)) {
      c.where = static_cast<std::int64_t>(i);
      c.worst = off;
    }
  }
  c.ok = c.count == 0;
  if (!c.ok) {
    auto i = static_cast<std::size_t>(c.where);
    c.message = std::to_string(c.count) + " of " + std::to_string(a.size()) + " elements differ, most at " +
                detail::place(got.shape(), c.where) + ": " + detail::text(a[i]) + ", expected " + detail::text(e[i]);
  }
  return c;
}

/// The same as an exception: throws AssertionError with the message of compare().
inline void assert_close(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance = {}) {
  Comparison c = compare(actual, expected, tolerance);
  if (!c) throw AssertionError(("assert_close: " + c.message).c_str());
}

/// A function of tensors that is to be differentiated; it may return one tensor or a list.
using Differentiable = Callable<Tensors(const Tensors&)>;

struct GradcheckOptions {
  Named only_by_name{0};
  double step = 1e-5, rtol = 1e-6, atol = 1e-6;
};

namespace detail {

/// Numbers that have nothing to do with each other, in [0.5, 1.5).
inline Tensor weights(const Shape& shape, DType dtype, unsigned salt) {
  std::vector<double> v(static_cast<std::size_t>(shape.numel()));
  double x = 0.137 + 0.311 * salt;
  for (double& w : v) {
    x += 0.6180339887498949;
    w = 0.5 + (x - std::floor(x));
  }
  return backend::constant(v, dtype, shape);
}
/// The sum of all float outputs, each weighted, so that no two elements can stand in for each other.
inline Tensor weighted_sum(const Tensors& ys) {
  Tensor total;
  unsigned salt = 0;
  for (const Tensor& y : ys) {
    ++salt;
    if (!y.defined() || !y.dtype().is_float()) continue;
    Tensor s = backend::sum(y * weights(y.shape(), y.dtype(), salt));
    total = total.defined() ? total + s : s;
  }
  return total;
}
inline double number(const Tensor& t) { return t.defined() ? backend::eval(t).item<double>() : 0; }
inline Tensors variables(const Tensors& xs) {
  Tensors vs;
  for (const Tensor& x : xs) vs.push_back(backend::variable(x, x.dtype()));
  return vs;
}
inline Tensors loss_gradients(const Tensor& loss, const Tensors& xs) {
  Tensors none;
  for (std::int64_t i = 0; i < xs.size(); ++i) none.push_back(Tensor());
  return loss.defined() ? backend::gradients(loss, xs) : none;
}

/// Compares `gradient` with central differences of `f` over input number k.
inline Comparison against_differences(Callable<double(const Tensors&)> f, const Tensors& xs, std::int64_t k,
                                      const Tensor& gradient, const GradcheckOptions& o) {
  const Tensor& x = xs[k];
  std::string which = "input " + std::to_string(k);
  if (gradient.defined() && gradient.shape() != x.shape())
    return fail(which + ": gradient of shape " + text(gradient.shape()) + " for an input of shape " + text(x.shape()));
  std::vector<double> at = x.to_vector<double>(), g(at.size(), 0.0);
  if (gradient.defined()) g = backend::eval(gradient).to_vector<double>();
  Comparison c;
  std::string found;
  Tensors moved = xs;
  for (std::size_t i = 0; i < at.size(); ++i) {
    double saved = at[i], h = o.step * std::fmax(1, std::fabs(saved));
    at[i] = saved + h;
    moved[k] = backend::constant(at, x.dtype(), x.shape());
    double high = f(moved);
    at[i] = saved - h;
    moved[k] = backend::constant(at, x.dtype(), x.shape());
    double difference = (high - f(moved)) / (2 * h), off = std::fabs(g[i] - difference);
    at[i] = saved;
    if (off <= o.atol + o.rtol * std::fabs(difference)) continue;
    ++c.count;
    if (c.where >= 0 && !(off > c.worst) && !std::isnan(off)) continue;
    c.worst = off;
    c.where = static_cast<std::int64_t>(i);
    found = text(g[i]) + ", central difference " + text(difference);
  }
  c.ok = c.count == 0;
  if (!c.ok)
    c.message = which + ": " + std::to_string(c.count) + " of " + std::to_string(at.size()) + " elements differ, most at " +
                place(x.shape(), c.where) + ": gradient " + found;
  return c;
}

inline Comparison check_all(Callable<double(const Tensors&)> f, const Tensors& xs, const Tensors& gradients, const char* order,
                            const GradcheckOptions& o) {
  for (std::int64_t k = 0; k < xs.size(); ++k) {
    if (!xs[k].dtype().is_float()) continue;
    if (xs[k].dtype() != float64) return fail("gradcheck: differences need float64, input " + std::to_string(k) + " is " + xs[k].dtype().name());
    Comparison c = against_differences(f, xs, k, gradients[k], o);
    if (c) continue;
    c.message = std::string(order) + c.message;
    return c;
  }
  return {};
}

}  // namespace detail

/// The gradients of a weighted sum of what f returns, for every float64 input, against central differences of it. An input
/// that f does not depend on differentiably (an empty gradient) is held to a difference of 0.
inline Comparison gradcheck(Differentiable f, const Tensors& inputs, const GradcheckOptions& options = {}) {
  auto loss = [&](const Tensors& xs) { return detail::number(detail::weighted_sum(f(xs))); };
  Tensors vs = detail::variables(inputs);
  Tensors g = detail::loss_gradients(detail::weighted_sum(f(vs)), vs);
  return detail::check_all(loss, inputs, g, "", options);
}

/// The gradients of a weighted sum of the gradients that gradcheck looks at, in the same way.
inline Comparison gradgradcheck(Differentiable f, const Tensors& inputs, const GradcheckOptions& options = {}) {
  auto second = [&](const Tensors& vs) {
    return detail::weighted_sum(detail::loss_gradients(detail::weighted_sum(f(vs)), vs));
  };
  auto number = [&](const Tensors& xs) { return detail::number(second(detail::variables(xs))); };
  Tensors vs = detail::variables(inputs);
  Tensors g = detail::loss_gradients(second(vs), vs);
  return detail::check_all(number, inputs, g, "second order: ", options);
}

}  // namespace testing
}  // namespace kassette

#endif  // KASSETTE_TESTING_H

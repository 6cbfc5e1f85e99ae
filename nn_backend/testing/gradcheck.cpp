// nn_backend/testing/gradcheck.cpp - gradients of functions against central differences.
#include <kassette/testing.h>

#include <cmath>
#include <vector>

#include <kassette/backend.h>

#include "core/text.h"
#include "nn_backend/testing/testing_report.h"

namespace kassette {
namespace testing {
using namespace detail;
namespace {

/// The cotangents of output number `k`: numbers in [0.5, 1.5) of splitmix64, so that errors of two elements or outputs,
/// or a simple sum of errors (1, -2, 1), do not cancel in the weighted sum.
Tensor weights(const Shape& shape, DType dtype, std::uint64_t k) {
  std::vector<double> v(shape.numel());
  std::uint64_t state = k * 0xd1342543de82ef95u;
  for (double& w : v) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    w = 0.5 + static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
  }
  return backend::constant(v, dtype, shape);
}

/// Whether f returned a loss, whose own gradient is shown.
bool is_one_number(const Tensors& ys) {
  return ys.size() == 1 && ys[0].defined() && ys[0].shape().known() && ys[0].size() == 1;
}

}  // namespace

namespace detail {

Tensor weighted_sum(const Tensors& ys) {
  Tensor total;
  std::uint64_t k = 0;
  for (const Tensor& y : ys) {
    ++k;
    if (!y.defined() || !y.dtype().is_float()) continue;
    Tensor s = backend::sum(is_one_number(ys) ? y : y * weights(y.shape(), y.dtype(), k));
    total = total.defined() ? total + s : s;
  }
  return total;
}

}  // namespace detail

namespace {

double number(const Tensor& t) { return t.defined() ? backend::eval(t).item<double>() : 0; }
Tensors variables(const Tensors& xs) {
  Tensors vs;
  for (const Tensor& x : xs) vs.push_back(backend::variable(x, x.dtype()));
  return vs;
}
Tensors loss_gradients(const Tensor& loss, const Tensors& xs) {
  Tensors none;
  for (std::int64_t i = 0; i < xs.size(); ++i) none.push_back(Tensor());
  return loss.defined() ? backend::gradients(loss, xs) : none;
}

/// Compares `gradient` with central differences of `f` over input number k.
Comparison against_differences(Callable<double(const Tensors&)> f, const Tensors& xs, std::int64_t k,
                               const Tensor& gradient, const GradcheckOptions& o) {
  const Tensor& x = xs[k];
  std::string which = "input " + std::to_string(k);
  if (gradient.defined() && gradient.shape() != x.shape())
    return failed(text(which, ": gradient of shape ", gradient.shape(), " for an input of shape ", x.shape()));
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
    double relative = off / std::fabs(difference);
    if (c.where_relative < 0 || relative > c.worst_relative) {
      c.where_relative = static_cast<std::int64_t>(i);
      c.worst_relative = relative;
    }
    if (c.where >= 0 && !(off > c.worst) && !std::isnan(off)) continue;
    c.worst = off;
    c.where = static_cast<std::int64_t>(i);
    found = number_text(g[i]) + ", central difference " + number_text(difference);
  }
  if (c.count == 0) return {};
  Comparison named = failed(text(which, ": ", c.count, " of ", at.size(), " elements differ, most at ",
                                 place(x.shape(), c.where), ": gradient ", found));
  c.ok = false;
  c.message = named.message;
  c.report = named.report;
  return c;
}

/// What the numbers in a report are gradients of, where that is not the result itself.
constexpr const char* kWeighted = " (of the sum of all results, each times a fixed random number)";

Comparison check_all(Callable<double(const Tensors&)> f, const Tensors& xs, const Tensors& gradients, const char* order,
                     const char* of, const GradcheckOptions& o) {
  for (std::int64_t k = 0; k < xs.size(); ++k) {
    if (!xs[k].dtype().is_float()) continue;
    if (xs[k].dtype() != float64)
      return failed(text("gradcheck: differences need float64, input ", k, " is ", xs[k].dtype()));
    Comparison c = against_differences(f, xs, k, gradients[k], o);
    if (c) continue;
    c.message = order + c.message + of;
    c.report = order + c.report + of;
    return c;
  }
  return {};
}

}  // namespace

Comparison gradcheck(Differentiable f, const Tensors& inputs, const GradcheckOptions& options) {
  auto loss = [&](const Tensors& xs) { return number(weighted_sum(f(xs))); };
  Tensors vs = variables(inputs);
  const Tensors ys = f(vs);
  return check_all(loss, inputs, loss_gradients(weighted_sum(ys), vs), "", is_one_number(ys) ? "" : kWeighted, options);
}

Comparison gradgradcheck(Differentiable f, const Tensors& inputs, const GradcheckOptions& options) {
  auto second = [&](const Tensors& vs) { return weighted_sum(loss_gradients(weighted_sum(f(vs)), vs)); };
  auto value = [&](const Tensors& xs) { return number(second(variables(xs))); };
  Tensors vs = variables(inputs);
  Tensors g = loss_gradients(second(vs), vs);
  return check_all(value, inputs, g, "second order: ", kWeighted, options);
}

}  // namespace testing
}  // namespace kassette

// tests/sweeps/zero_cotangent_test.cpp - Note [Zero cotangents]: where the cotangent of a result is 0, that result adds
// nothing to a gradient, even if values and derivatives there are infinite or NaN. Every sample, eagerly and in a
// function.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/engine/expr.h"
#include "tests/catch.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

bool has_gradient(const Sample& s, std::int64_t i, const Tensor& x) {
  return s.in[i].differentiable && x.defined() && x.dtype().is_float();
}

/// The sum of the elements that `keep` chooses from the float results: of the others the cotangent is 0.
template <class Keep>
Tensor chosen_sum(const Tensors& results, Keep keep) {
  Tensor total;
  for (const Tensor& y : results) {
    if (!y.defined() || !y.dtype().is_float()) continue;
    Tensor part = K::sum(ops::where(keep(y), y, 0.0));
    total = total.defined() ? total + part : part;
  }
  return total;
}
Tensor none_of(const Tensor& y) { return K::not_equal(K::zeros_like(y), 0.0); }
Tensor finite_of(const Tensor& y) { return K::less(K::abs(y), kInf); }

using Keep = Tensor (*)(const Tensor& y);
/// The gradients of the chosen sum with respect to the differentiable inputs, eagerly or in a function.
Tensors gradients_of(const Sample& s, const Tensors& in, Keep keep, bool replayed) {
  Tensors args, to, fed, values;
  for (std::int64_t i = 0; i < in.size(); ++i) {
    const bool is_input = has_gradient(s, i, in[i]);
    args.push_back(!is_input  ? in[i]
                   : replayed ? K::placeholder(in[i].shape(), None, in[i].dtype())
                              : K::variable(in[i], in[i].dtype()));
    if (!is_input) continue;
    to.push_back(args[i]);
    values.push_back(in[i]);
  }
  Tensor loss = chosen_sum(call(s, args), keep);
  if (!loss.defined() || to.empty()) return {};
  Tensors found, g = K::gradients(loss, to);
  for (const Tensor& x : g)
    if (x.defined()) found.push_back(x);
  return replayed && !found.empty() ? K::function(to, found)(values) : found;
}

template <class Check>
std::string first_wrong(const Tensors& gradients, Check is_right) {
  for (std::int64_t i = 0; i < gradients.size(); ++i)
    for (double v : gradients[i].to_vector<double>())
      if (!is_right(v)) return "gradient " + std::to_string(i) + " has " + std::to_string(v);
  return "";
}

/// x with element `at` replaced.
Tensor with_element(const Tensor& x, std::int64_t at, double v) {
  std::vector<double> values = x.to_vector<double>();
  values[static_cast<std::size_t>(at)] = v;
  return K::constant(values, x.dtype(), x.shape());
}

template <class F>
void for_each_case(F&& f) {
  for (const Sample& s : op_samples()) {
    if (s.order == Order::none) continue;
    for (const Shapes& shapes : cases_of(s))
      for (DType dtype : {float64, float32}) {
        Tensors in = make_inputs(s, shapes, dtype);
        try {
          f(s, in, title(s, shapes, dtype));
        } catch (const std::exception& e) {
          FAIL_CHECK(title(s, shapes, dtype) << ": threw " << e.what());
        }
      }
  }
}

}  // namespace

TEST_CASE("a cotangent of zeros gives gradients of zeros, whatever the inputs are", "[sweep][zeros]") {
  for_each_case([](const Sample& s, const Tensors& in, const std::string& name) {
    for (double bad : {kNan, kInf, -kInf, 0.0}) {
      Tensors poisoned;
      for (std::int64_t i = 0; i < in.size(); ++i)
        poisoned.push_back(has_gradient(s, i, in[i]) ? K::constant(bad, in[i].dtype(), in[i].shape()) : in[i]);
      for (bool replayed : {false, true})
        if (std::string wrong =
                first_wrong(gradients_of(s, poisoned, none_of, replayed), [](double v) { return v == 0; });
            !wrong.empty())
          FAIL_CHECK(name << " of " << bad << (replayed ? " in a function: " : ": ") << wrong);
    }
  });
}

TEST_CASE("results that are not finite and chosen away leave the other gradients alone", "[sweep][zeros]") {
  for_each_case([](const Sample& s, const Tensors& in, const std::string& name) {
    for (std::int64_t i = 0; i < in.size(); ++i) {
      if (!has_gradient(s, i, in[i])) continue;
      for (std::int64_t at = 0; at < in[i].size(); at += std::max<std::int64_t>(1, in[i].size() - 1)) {
        Tensors poisoned = in;
        poisoned[i] = with_element(in[i], at, kNan);
        for (bool replayed : {false, true})
          if (std::string wrong =
                  first_wrong(gradients_of(s, poisoned, finite_of, replayed), [](double v) { return !std::isnan(v); });
              !wrong.empty())
            FAIL_CHECK(name << ", input " << i << " NaN at " << at << (replayed ? ", in a function: " : ": ") << wrong);
      }
    }
  });
}

// ---- what a sample of NaN or a row of -inf must not change
// ------------------------------------------------------------
namespace {

/// (4, 3) numbers; in `bad` rows they are NaN.
Tensor rows_with(std::initializer_list<int> bad, DType dtype) {
  std::vector<double> v;
  for (int i = 0; i < 12; ++i) v.push_back(std::count(bad.begin(), bad.end(), i / 3) ? kNan : 0.1 * i - 0.4);
  return K::constant(v, dtype, {4, 3});
}
void check_near(const Tensors& got, const Tensors& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::int64_t i = 0; i < got.size(); ++i) {
    const std::vector<double> a = got[i].to_vector<double>(), b = expected[i].to_vector<double>();
    REQUIRE(a.size() == b.size());
    const double tolerance = got[i].dtype() == float64 ? 1e-12 : got[i].dtype() == float32 ? 1e-5 : 2e-2;
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(std::fabs(a[k] - b[k]) <= tolerance * (1 + std::fabs(b[k])));
  }
}
/// Samples 1 and 3 are chosen away.
Tensor kept_rows(const Tensor& y) {
  const Tensor keep = K::expand_dims(K::constant({1, 0, 1, 0}) > 0, -1);
  return K::sum(K::square(ops::where(keep, y, 0.0)));
}

}  // namespace

TEST_CASE("a row of attention that is -inf throughout and chosen away leaves the gradients of the others", "[zeros]") {
  Tensor w = K::variable({1, 1}, "float64"), values = K::variable({{1, 2}, {1, 2}}, "float64");
  const Tensor mask = K::constant({{0.0, 0.0}, {-kInf, -kInf}}, "float64"),
               scores = K::constant({{1, 2}, {3, 4}}, "float64");
  const Tensor zeros = K::constant({0, 0}, "float64");
  const double p = 1 / (1 + std::exp(1.)), q = 1 - p, row = p + 2 * q;
  const Tensor rows = K::sum(K::softmax(scores * w + mask) * values, 1),
               chosen = K::switch_(K::constant({1, 0}) > 0, rows, zeros);
  check_near(K::gradients(chosen, {w, values}), {K::constant({p * (1 - row), 2 * q * (2 - row)}, "float64"),
                                                 K::constant({{p, q}, {0.0, 0.0}}, "float64")});
  const Tensor sums = K::switch_(K::constant({1, 0}) > 0, K::logsumexp(scores * w + mask, 1), zeros);
  check_near(K::gradients(sums, {w}), {K::constant({p, 2 * q}, "float64")});
}

TEST_CASE("a sample of NaN that is chosen away leaves the gradients of products as without it", "[zeros]") {
  for (DType dtype : {float64, float32, float16, bfloat16}) {
    INFO(dtype);
    Tensor w = K::variable(K::constant({{.1, -.2}, {.3, .4}, {-.5, .6}}, dtype), dtype);
    auto gradient = [&](std::initializer_list<int> bad) {
      return K::gradients(kept_rows(K::dot(rows_with(bad, dtype), w)), {w});
    };
    check_near(gradient({1, 3}), gradient({}));
    // Twice: the second product adds to the cotangent of the first in place.
    auto twice = [&](std::initializer_list<int> bad) {
      const Tensor x = rows_with(bad, dtype);
      return K::gradients(kept_rows(K::dot(x, w)) + kept_rows(K::dot(x * 2.0, w)), {w});
    };
    check_near(twice({1, 3}), twice({}));
    // NaN in what is kept stays NaN, infinities stay infinite.
    CHECK(std::isnan(gradient({0})[0].to_vector<double>()[0]));
    Tensor k = K::variable(K::constant({{{.5, -.25}}, {{1, .75}}}, dtype), dtype);
    auto convolved = [&](std::initializer_list<int> bad) {
      return K::gradients(K::sum(kept_rows(K::batch_flatten(K::conv1d(K::expand_dims(rows_with(bad, dtype)), k)))),
                          {k});
    };
    check_near(convolved({1, 3}), convolved({}));
  }
}

TEST_CASE("a sample of NaN that is chosen away leaves the gradients of loops as without it", "[zeros]") {
  Tensor w = K::variable({{.1, -.2, .3}, {.3, .4, -.1}, {-.5, .6, .2}}, "float64");
  auto step = [&](const Tensor& x, const Tensors& states) {
    const Tensor h = K::tanh(K::dot(x, w) + K::dot(states[0], w));
    return K::Step{h, {h}};
  };
  const Tensor start = K::constant(0, "float64", {4, 3});
  auto inputs = [&](std::initializer_list<int> bad) {
    const Tensor x = rows_with(bad, float64);
    return K::eval(K::stack({x, x * 0.5, x * -1.0}, 1));
  };
  auto gradient = [&](const Tensor& x) { return K::gradients(kept_rows(K::rnn(step, x, {start}).last_output), {w}); };
  const Tensors expected = gradient(inputs({}));
  check_near(gradient(inputs({1, 3})), expected);
  Tensor in = K::placeholder({4, 3, 3}, None, "float64");
  auto f = K::function({in}, gradient(in));
  for (int call = 0; call < 3; ++call) check_near(f({inputs({1, 3})}), expected);
}

// tests/sweeps/gradient_test.cpp - every sample: first and second order against central differences, in float64.
#include <kassette/testing.h>

#include "tests/catch.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

Tensors variables(const Tensors& in) {
  Tensors vs;
  for (const Tensor& x : in) vs.push_back(K::variable(x, x.dtype()));
  return vs;
}

/// Gradients have the shape of their input; an input without a path has none. Returns what is wrong.
std::string check_paths(const Sample& s, const Tensors& in) {
  Tensors vs = variables(in);
  Tensor loss = testing::detail::weighted_sum(call(s, vs));
  if (!loss.defined()) return s.order == Order::none ? "" : "no float output to differentiate";
  Tensors g = K::gradients(loss, vs);
  for (std::int64_t i = 0; i < vs.size(); ++i) {
    bool path = s.order != Order::none && s.in[i].differentiable && in[i].dtype().is_float();
    if (g[i].defined() != path)
      return "the gradient of input " + std::to_string(i) +
             (path ? " is empty" : " is not empty, and there is no path");
    if (path && (g[i].shape() != in[i].shape() || g[i].dtype() != in[i].dtype()))
      return "the gradient of input " + std::to_string(i) + " has shape " + text(g[i].shape()) + ", dtype " +
             g[i].dtype().name();
  }
  return "";
}

template <class F>
void for_each_case(F&& f) {
  for (const Sample& s : op_samples())
    for (const Shapes& shapes : cases_of(s)) {
      Ledger ledger;
      try {
        const DType dtype = s.takes == Takes::bools ? bool_ : takes_integers(s) ? int32 : float64;
        if (std::string wrong = f(s, shapes, make_inputs(s, shapes, dtype)); !wrong.empty())
          FAIL_CHECK(title(s, shapes, float64) << ": " << wrong);
      } catch (const std::exception& e) {
        FAIL_CHECK(title(s, shapes, float64) << ": threw " << e.what());
      }
      if (std::string kept = ledger.change(); !kept.empty())
        FAIL_CHECK(title(s, shapes, float64) << ": leaves " << kept);
    }
}

}  // namespace

TEST_CASE("every sample has gradients of the right shape where there is a path, and none elsewhere", "[sweep]") {
  for_each_case([](const Sample& s, const Shapes&, const Tensors& in) { return check_paths(s, in); });
}

TEST_CASE("the gradient of every sample is that of central differences", "[sweep]") {
  for_each_case([](const Sample& s, const Shapes&, const Tensors& in) {
    if (s.order == Order::none) return std::string();
    return testing::gradcheck([&](const Tensors& xs) { return call(s, xs); }, in).message;
  });
}

TEST_CASE("the second gradient of every sample is that of central differences", "[sweep][serial]") {
  for_each_case([](const Sample& s, const Shapes&, const Tensors& in) {
    if (s.order == Order::none) return std::string();
    return testing::gradgradcheck([&](const Tensors& xs) { return call(s, xs); }, in).message;
  });
}

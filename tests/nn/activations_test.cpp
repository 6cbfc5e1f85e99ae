// tests/nn/activations_test.cpp - what cases from PyTorch leave out: infinities, large numbers, shifts, arguments that
// are refused.
#include <kassette/backend.h>
#include <kassette/nn.h>

#include <cmath>
#include <limits>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace nn = kassette::nn;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> of(const Tensor& x) { return values<double>(K::cast(x, float64)); }
using Activation = Tensor (*)(const Operand&);

}  // namespace

TEST_CASE("activations at infinities and large numbers have their limits, and finite gradients", "[nn]") {
  struct {
    Activation f;
    double at_minus_infinity, at_infinity;
  } const rows[] = {
      {[](const Operand& x) { return nn::gelu(x); }, 0, kInf},
      {[](const Operand& x) { return nn::gelu(x, false); }, 0, kInf},
      {nn::silu, 0, kInf},
      {nn::mish, 0, kInf},
      {nn::hard_silu, 0, kInf},
      {[](const Operand& x) { return nn::squareplus(x); }, 0, kInf},
      {nn::selu, -1.7580993408473766, kInf},
      {[](const Operand& x) { return nn::celu(x); }, -1, kInf},
      {nn::log_sigmoid, -kInf, 0},
      {nn::sparse_plus, 0, kInf},
      {nn::hard_sigmoid, 0, 1},
  };
  for (DType dtype : {float16, bfloat16, float32, float64})
    for (const auto& row : rows) {
      INFO(&row - rows << ' ' << dtype.name());
      const double large = dtype == float16 ? 6e4 : 1e30;
      const Tensor x = K::variable({-kInf, -large, large, kInf, double(NAN)}, dtype);
      const std::vector<double> y = of(row.f(x));
      CHECK(y[0] == Approx(row.at_minus_infinity).epsilon(1e-2));
      CHECK(y[3] == row.at_infinity);
      CHECK(std::isnan(y[4]));
      const std::vector<double> slope = of(K::gradients(row.f(x[K::constant({1, 2}, int32)]), {x})[0]);
      CHECK(std::isfinite(slope[1]));
      CHECK(std::isfinite(slope[2]));
    }
}

TEST_CASE("softmax, log_softmax and sparsemax do not change if a number is added to all", "[nn]") {
  const Tensor x = K::constant({{1, 2, 3.5}, {-1, 0.25, 0.5}}), shifted = x + 8192.0;  // no bit of x is lost
  for (Activation f :
       {Activation([](const Operand& t) { return nn::softmax(t); }),
        Activation([](const Operand& t) { return nn::softmax(t, None); }),
        Activation([](const Operand& t) { return nn::log_softmax(t); }), Activation([](const Operand& t) {
          return nn::log_softmax(t, {0, 1});
        }),
        Activation([](const Operand& t) { return nn::sparsemax(t); })}) {
    const std::vector<double> a = of(f(x)), b = of(f(shifted));
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(b[i] == Approx(a[i]).margin(1e-6));
  }
}

TEST_CASE("sparsemax of equal numbers is uniform, and of a large one alone is one_hot", "[nn]") {
  CHECK(of(nn::sparsemax({2, 2, 2, 2})) == std::vector<double>{0.25, 0.25, 0.25, 0.25});
  CHECK(of(nn::sparsemax({2, 9, -3})) == std::vector<double>{0, 1, 0});
}

TEST_CASE("one_hot and multi_hot give zeros for what is no class", "[nn]") {
  CHECK(of(nn::one_hot({-1, 3, 1}, 3)) == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 1, 0});
  CHECK(of(nn::multi_hot({2, 0, 2, 7}, 3)) == std::vector<double>{1, 0, 1});
  CHECK(nn::one_hot(K::constant({1}, uint8), 2).dtype() == float32);
}

TEST_CASE("hinge takes labels of 0 and 1 for -1 and 1, and others as they are", "[nn]") {
  CHECK(of(nn::hinge({0, 1}, {0.5, 0.5})) == of(nn::hinge({-1, 1}, {0.5, 0.5})));
  CHECK(of(nn::hinge({-1, 0}, {0.5, 0.5})) == std::vector<double>{1.25});
}

TEST_CASE("functions of nn refuse arguments with a line that names them", "[nn]") {
  CHECK_THROWS_WITH(nn::gelu(K::constant({1, 2}, int32)),
                    "gelu: x is int32, not a float dtype; cast it first (K::cast)");
  CHECK_THROWS_WITH(nn::glu(K::constant({{1, 2, 3}})),
                    "glu: x of shape (1, 3) has 3 elements along axis -1; it must have an even number");
  CHECK_THROWS_WITH(nn::huber({1, 2}, {1, 2}, 0), "huber: delta is 0; it must be above 0");
  CHECK_THROWS_WITH(nn::mean_squared_error({1, 2}, {{1}, {2}}),
                    "mean_squared_error: y_true has shape (2,) and y_pred (2, 1); both must have the same shape");
  CHECK_THROWS_WITH(nn::nll_loss(K::constant({0.5}), {{1, 2}}), "nll_loss: target is float32; it must hold integers");
  CHECK_THROWS_WITH(nn::group_normalization(K::zeros({2, 3, 4}), 3),
                    "group_normalization: groups is 3 and there are 4 channels; it must divide their number");
  CHECK_THROWS_WITH(nn::normalize({1, 2}, -1, 0), "normalize: order is 0; it must be above 0");
}

// tests/nn_backend/reference_test.cpp - K functions against the NumPy implementations that the Keras documents print,
// written in xtensor: code and arithmetic that are not ours.
#include <kassette/backend.h>

#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xsort.hpp>
#include <xtensor/xview.hpp>

#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace K = kassette::backend;
using kassette::Tensor;
using Array = xt::xarray<double>;

namespace {

Array numbers(const std::vector<std::size_t>& shape, std::uint64_t seed, double low = -2, double high = 2) {
  Array a = Array::from_shape(shape);
  for (double& v : a) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = low + (high - low) * static_cast<double>(seed >> 11) * 0x1p-53;
  }
  return a;
}
Tensor tensor(const Array& a) {
  return K::constant(std::vector<double>(a.begin(), a.end()), "float64",
                     std::vector<long>(a.shape().begin(), a.shape().end()));
}
void same(const Tensor& actual, const Array& expected, double tolerance = 1e-12) {
  std::vector<double> v = actual.to_vector<double>();
  kassette::Shape shape = actual.shape();
  REQUIRE(std::vector<std::size_t>(shape.begin(), shape.end()) ==
          std::vector<std::size_t>(expected.shape().begin(), expected.shape().end()));
  std::size_t i = 0;
  for (double e : expected) {
    INFO("element " << i);
    CHECK(std::abs(v[i] - e) <= tolerance * (1 + std::abs(e)));
    ++i;
  }
}
Array softmax(const Array& x, std::size_t axis) {
  Array y = xt::exp(x - Array(xt::amax(x, {axis}, xt::keep_dims)));
  return y / Array(xt::sum(y, {axis}, xt::keep_dims));
}

}  // namespace

TEST_CASE("elementwise functions are the documents' NumPy implementations") {
  Array x = numbers({3, 4, 2}, 1), y = numbers({3, 4, 2}, 2), positive = numbers({3, 4, 2}, 3, 0.1, 3);
  Tensor tx = tensor(x), ty = tensor(y), tp = tensor(positive);
  same(K::square(tx), x * x);
  same(K::abs(tx), xt::abs(x));
  same(K::exp(tx), xt::exp(x));
  same(K::log(tp), xt::log(positive));
  same(K::sqrt(tx), xt::sqrt(xt::maximum(x, 0.0)));
  same(K::sign(tx), xt::sign(x));
  same(K::sin(tx), xt::sin(x));
  same(K::cos(tx), xt::cos(x));
  same(K::pow(tp, 3), xt::pow(positive, 3.0));
  same(K::pow(tp, ty), xt::pow(positive, y));
  same(K::clip(tx, -0.4, 0.6), xt::clip(x, -0.4, 0.6));
  same(K::maximum(tx, ty), xt::maximum(x, y));
  same(K::minimum(tx, ty), xt::minimum(x, y));
  same(tx / tp - ty * 2.0, x / positive - y * 2.0);
}

TEST_CASE("activations are the documents' NumPy implementations") {
  Array x = numbers({4, 5}, 4, -4, 4);
  Tensor t = tensor(x);
  same(K::sigmoid(t), 1.0 / (1.0 + xt::exp(-x)));
  same(K::hard_sigmoid(t), xt::minimum(xt::maximum(0.2 * x + 0.5, 0.0), 1.0));
  same(K::tanh(t), xt::tanh(x));
  same(K::softplus(t), xt::log(1.0 + xt::exp(x)));
  same(K::softsign(t), x / (1.0 + xt::abs(x)));
  same(K::elu(t, 0.7), x * xt::cast<double>(x > 0.0) + 0.7 * (xt::exp(x) - 1.0) * xt::cast<double>(x <= 0.0));
  same(K::relu(t), x * xt::cast<double>(x > 0.0));
  // f(x) = max_value for x >= max_value, x for threshold <= x < max_value, alpha * (x - threshold) otherwise
  Array above = xt::cast<double>(x >= 0.5);
  same(K::relu(t, 0.1, 2.0, 0.5), xt::minimum(x, 2.0) * above + 0.1 * (x - 0.5) * (1.0 - above));
  for (std::size_t axis : {std::size_t(0), std::size_t(1)})
    same(K::softmax(t, static_cast<int>(axis)), softmax(x, axis));
}

TEST_CASE("reductions are NumPy's") {
  Array x = numbers({3, 4, 2}, 5);
  Tensor t = tensor(x);
  for (std::size_t a : {std::size_t(0), std::size_t(1), std::size_t(2)}) {
    int axis = static_cast<int>(a);
    same(K::sum(t, axis), xt::sum(x, {a}));
    same(K::prod(t, axis), xt::prod(x, {a}));
    same(K::mean(t, axis), xt::mean(x, {a}));
    Array mean = xt::mean(x, {a}, xt::keep_dims), squared = (x - mean) * (x - mean), variance = xt::mean(squared, {a});
    same(K::var(t, axis), variance);
    same(K::std(t, axis), xt::sqrt(variance));
    same(K::max(t, axis, true), xt::amax(x, {a}, xt::keep_dims));
    same(K::min(t, axis), xt::amin(x, {a}));
    same(K::logsumexp(t, axis), xt::log(Array(xt::sum(xt::exp(x), {a}))));
    same(K::cumsum(t, axis), xt::cumsum(x, axis));
    same(K::cumprod(t, axis), xt::cumprod(x, axis));
    same(K::cast(K::argmax(t, axis), "float64"), xt::cast<double>(xt::argmax(x, axis)));
    same(K::cast(K::argmin(t, axis), "float64"), xt::cast<double>(xt::argmin(x, axis)));
  }
  same(K::sum(t, {0, 2}), xt::sum(Array(xt::sum(x, {std::size_t(2)})), {std::size_t(0)}));
  CHECK(K::mean(t).item<double>() == Approx(xt::mean(x)()).epsilon(1e-14));
  Array squares = xt::sum(x * x, {1}, xt::keep_dims);
  same(K::l2_normalize(t, 1), x / xt::sqrt(squares));
}

TEST_CASE("cross-entropies are the documents' NumPy implementations") {
  Array logits = numbers({5, 3}, 6), raw = numbers({5, 3}, 7, 0.1, 1), target = softmax(numbers({5, 3}, 8), 1);
  double eps = K::epsilon();
  Array output = raw / Array(xt::sum(raw, {1}, xt::keep_dims));
  same(K::categorical_crossentropy(tensor(target), tensor(raw)),
       xt::sum(target * -xt::log(xt::clip(output, eps, 1 - eps)), {1}));
  same(K::categorical_crossentropy(tensor(target), tensor(logits), true),
       xt::sum(target * -xt::log(softmax(logits, 1)), {1}));
  Array probability = xt::clip(output, eps, 1 - eps);
  same(K::binary_crossentropy(tensor(target), tensor(output)),
       -(target * xt::log(probability) + (1.0 - target) * xt::log(1.0 - probability)));
  same(K::binary_crossentropy(tensor(target), tensor(logits), true),
       xt::maximum(logits, 0.0) - logits * target + xt::log(1.0 + xt::exp(-xt::abs(logits))));
}

TEST_CASE("dot is the sum over the last axis of x and the second to last of y") {
  Array x = numbers({2, 3, 4}, 9), y = numbers({4, 5}, 10), z = numbers({3, 4, 2}, 11);
  Array expected = xt::zeros<double>({2, 3, 5}), wide = xt::zeros<double>({2, 3, 3, 2});
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 3; ++b) {
      for (std::size_t m = 0; m < 5; ++m)
        for (std::size_t k = 0; k < 4; ++k) expected(a, b, m) += x(a, b, k) * y(k, m);
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t m = 0; m < 2; ++m)
          for (std::size_t k = 0; k < 4; ++k) wide(a, b, c, m) += x(a, b, k) * z(c, k, m);
    }
  same(K::dot(tensor(x), tensor(y)), expected);
  same(K::dot(tensor(x), tensor(z)), wide);
}

TEST_CASE("comparisons, truth and shape functions are the documents' NumPy implementations") {
  Array x = xt::round(numbers({3, 4, 2}, 12)), y = xt::round(numbers({3, 4, 2}, 13));  // with ties and zeros
  Tensor tx = tensor(x), ty = tensor(y);
  auto truth = [](const Tensor& t) { return K::cast(t, "float64"); };
  same(truth(K::equal(tx, ty)), xt::cast<double>(xt::equal(x, y)));
  same(truth(K::not_equal(tx, ty)), xt::cast<double>(xt::not_equal(x, y)));
  same(truth(K::greater(tx, ty)), xt::cast<double>(x > y));
  same(truth(K::greater_equal(tx, ty)), xt::cast<double>(x >= y));
  same(truth(K::less(tx, ty)), xt::cast<double>(x < y));
  same(truth(K::less_equal(tx, ty)), xt::cast<double>(x <= y));
  Array nonzero = xt::cast<double>(xt::not_equal(x, 0.0));
  same(truth(K::any(tx, 1)), xt::amax(nonzero, {1}));
  same(truth(K::all(tx, {0, 2}, true)), xt::amin(nonzero, {0, 2}, xt::keep_dims));
  same(K::stack({tx, ty}, 1), xt::stack(xt::xtuple(x, y), 1));
  same(K::concatenate({tx, ty}, 1), xt::concatenate(xt::xtuple(x, y), 1));
  same(K::reverse(tx, {0, 2}), xt::flip(Array(xt::flip(x, 0)), 2));
  same(K::transpose(tx), xt::transpose(x));
  same(K::slice(tx, {1, 0, 1}, {2, 3, 1}), xt::view(x, xt::range(1, 3), xt::range(0, 3), xt::range(1, 2)));
  same(K::gather(tx, K::constant({2, 0, 2}, "int32")), xt::view(x, xt::keep(2, 0, 2)));
  // cond_float = condition[..., np.newaxis]; cond_float * then + (1 - cond_float) * else
  Array condition = {1, 0, 1}, c = xt::view(condition, xt::all(), xt::newaxis(), xt::newaxis());
  same(K::switch_(tensor(condition), tx, ty), c * x + (1.0 - c) * y);
}

TEST_CASE("dropout in training is the documents' NumPy implementation: x times a mask over 1 - level") {
  Array x = numbers({50, 4}, 14, 0.5, 2);
  std::vector<double> v = K::dropout(tensor(x), 0.25).to_vector<double>();
  std::size_t i = 0, kept = 0;
  for (double e : x) {
    bool keep = v[i] != 0;
    CHECK(v[i] == Approx(keep ? e / 0.75 : 0));
    kept += keep;
    ++i;
  }
  CHECK(kept > 120);
  CHECK(kept < 180);
}

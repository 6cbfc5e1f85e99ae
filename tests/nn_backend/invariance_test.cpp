// tests/nn_backend/invariance_test.cpp - functions that do not change if a constant is added to x, or if x is scaled:
// values, gradients and second gradients, however far from 0 x is. Expected is what the same function gives in float64
// for the same data around 0, which is exact: data are whole multiples of a unit in the last place at the offset.
#include <kassette/backend.h>
#include <kassette/nn.h>
#include <kassette/numpy.h>
#include <kassette/testing.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ops/softmax/softmax.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"

namespace K = kassette::backend;
namespace nn = kassette::nn;
namespace np = kassette::numpy;
using namespace kassette;
using namespace kassette::test;

namespace {

using List = std::vector<double>;
using Make = std::function<Tensor(const Tensor&)>;

struct Invariant {
  const char* name;
  Make f;
  bool second = true;  // the second derivative is compared too
};

/// With the usual epsilon, which is added to probabilities, ctc_batch_cost is only almost invariant under a scale.
struct NoEpsilon {
  const double before = K::epsilon();
  NoEpsilon() { K::set_epsilon(1e-30); }
  ~NoEpsilon() { K::set_epsilon(before); }
};

/// A constant of a float64 list, in the dtype and on the device of x.
Tensor like(const Tensor& x, const List& v, const Shape& shape) {
  return K::cast(K::constant(v, "float64", shape), x.dtype()).to(x.device());
}
Tensor classes(const Tensor& x) { return K::constant({2, 0, 5, 3, 1, 1}, "int64").to(x.device()); }
/// Targets of 6 rows or columns of 6, some of them 0.
Tensor targets(const Tensor& x) {
  List t(36);
  for (std::size_t i = 0; i < 36; ++i) t[i] = i % 5 == 0 ? 0.5 : i % 3 == 0 ? 0.25 : 0;
  return like(x, t, {6, 6});
}

/// Of x of shape (6, 6).
const std::vector<Invariant> kShifted{
    {"softmax", [](const Tensor& x) { return K::softmax(x); }},
    {"softmax of columns", [](const Tensor& x) { return K::softmax(x, 0); }},
    {"log_softmax", [](const Tensor& x) { return ops::log_softmax(x); }},
    {"log_softmax of columns", [](const Tensor& x) { return ops::log_softmax(x, 0); }},
    {"categorical_crossentropy", [](const Tensor& x) { return K::categorical_crossentropy(targets(x), x, true); }},
    {"categorical_crossentropy of columns",
     [](const Tensor& x) { return K::categorical_crossentropy(targets(x), x, true, 0); }},
    {"sparse_categorical_crossentropy",
     [](const Tensor& x) { return K::sparse_categorical_crossentropy(classes(x), x, true); }},
    {"sparse_categorical_crossentropy of columns",
     [](const Tensor& x) { return K::sparse_categorical_crossentropy(classes(x), x, true, 0); }},
    {"gradient of logsumexp", [](const Tensor& x) { return K::gradients(K::logsumexp(x, 1), {x})[0]; }},
    {"gradient of logsumexp of columns", [](const Tensor& x) { return K::gradients(K::logsumexp(x, 0), {x})[0]; }},
    {"gradient of logsumexp of two axes",
     [](const Tensor& x) {
       return K::gradients(K::logsumexp(K::reshape(x, {2, 3, 2, 3}), {0, 2}), {x})[0];
     }},
    {"var", [](const Tensor& x) { return K::var(x, 1); }},
    {"var of columns", [](const Tensor& x) { return K::var(x, 0); }},
    {"var of all", [](const Tensor& x) { return K::var(x); }},
    {"var of two axes",
     [](const Tensor& x) {
       return K::var(K::reshape(x, {2, 3, 2, 3}), {0, 2});
     }},
    {"std", [](const Tensor& x) { return K::std(x, 1); }, false},
    {"std of columns", [](const Tensor& x) { return K::std(x, 0); }, false},
    {"std of all", [](const Tensor& x) { return K::std(x); }},
    {"std of two axes",
     [](const Tensor& x) {
       return K::std(K::reshape(x, {2, 3, 2, 3}), {1, 3});
     },
     false},
    {"normalize_batch_in_training",
     [](const Tensor& x) { return K::normalize_batch_in_training(x, None, None, 0).normalized; }},
    {"normalize_batch_in_training with gamma and beta",
     [](const Tensor& x) {
       return K::normalize_batch_in_training(x, like(x, {1, 2, -1, 0.5, 3, 1}, {6}), like(x, {0, 1, 2, 0, -1, 1}, {6}),
                                             0)
           .normalized;
     }},
    {"normalize_batch_in_training of rows",
     [](const Tensor& x) { return K::normalize_batch_in_training(x, None, None, 1).normalized; }},
    {"normalize_batch_in_training of two axes",
     [](const Tensor& x) {
       return K::normalize_batch_in_training(K::reshape(x, {2, 3, 2, 3}), None, None, {0, 2}).normalized;
     }},
    {"normalize_batch_in_training, its variance",
     [](const Tensor& x) { return K::normalize_batch_in_training(x, None, None, 0).variance; }},
    {"batch_normalization by an element",
     [](const Tensor& x) { return K::batch_normalization(x, K::gather(x, 0), 1.0, None, None); }, false},
    {"softmax in a map", [](const Tensor& x) { return K::map_fn([](const Tensor& r) { return K::softmax(r); }, x); }},
    {"std in a map", [](const Tensor& x) { return K::map_fn([](const Tensor& r) { return K::std(r); }, x); }, false},
    {"gradient of np::logaddexp",
     [](const Tensor& x) { return K::gradients(np::logaddexp(x, K::reverse(x, 1)), {x})[0]; }, false},
    {"gradient of np::logaddexp2",
     [](const Tensor& x) { return K::gradients(np::logaddexp2(x, K::gather(x, 1)), {x})[0]; }, false},
    {"np::var with a correction", [](const Tensor& x) { return np::var(x, {.axis = 1, .correction = 1}); }},
    {"np::nanvar", [](const Tensor& x) { return np::nanvar(x, {.axis = 1}); }},
    {"np::nanvar of columns", [](const Tensor& x) { return np::nanvar(x, {.axis = 0, .correction = 1}); }},
    {"np::nanstd", [](const Tensor& x) { return np::nanstd(x, {.axis = 1}); }, false},
    {"np::cov", [](const Tensor& x) { return np::cov(x); }},
    {"np::cov with weights",
     [](const Tensor& x) {
       return np::cov(x, {.aweights = {1, 0.5, 2, 1, 0.25, 1}});
     }},
    {"np::corrcoef of columns", [](const Tensor& x) { return np::corrcoef(x, {.rowvar = false}); }, false},
    {"np::diff", [](const Tensor& x) { return np::diff(x); }, false},
    {"np::ptp", [](const Tensor& x) { return np::ptp(x, 0); }, false},
    {"nn::layer_normalization", [](const Tensor& x) { return nn::layer_normalization(x); }},
    {"nn::layer_normalization of columns", [](const Tensor& x) { return nn::layer_normalization(x, None, None, 0); }},
    {"nn::group_normalization", [](const Tensor& x) { return nn::group_normalization(x, 2); }},
    {"nn::instance_normalization",
     [](const Tensor& x) {
       return nn::instance_normalization(K::reshape(x, {2, 3, 6}));
     }},
    {"nn::moments", [](const Tensor& x) { return nn::moments(x, 1).variance; }},
    {"nn::softmax of two axes",
     [](const Tensor& x) {
       return nn::softmax(K::reshape(x, {2, 3, 2, 3}), {0, 2});
     },
     false},
    {"nn::log_softmax of two axes",
     [](const Tensor& x) {
       return nn::log_softmax(K::reshape(x, {2, 3, 2, 3}), {0, 2});
     }},
    {"nn::sparsemax", [](const Tensor& x) { return nn::sparsemax(x); }, false},
    {"nn::log_cosh", [](const Tensor& x) { return nn::log_cosh(K::reverse(x, 1), x); }},
    {"nn::huber", [](const Tensor& x) { return nn::huber(K::reverse(x, 1), x); }, false},
    {"nn::triplet_margin_loss",
     [](const Tensor& x) { return nn::triplet_margin_loss(x, K::reverse(x, 1), K::reverse(x, 0)); }, false},
};

/// Of positive x of shape (6, 6), multiplied by a power of two.
const std::vector<Invariant> kScaled{
    {"l2_normalize", [](const Tensor& x) { return K::l2_normalize(x, 1); }},
    {"l2_normalize of columns", [](const Tensor& x) { return K::l2_normalize(x, 0); }},
    {"l2_normalize of all", [](const Tensor& x) { return K::l2_normalize(x); }},
    {"cosine",
     [](const Tensor& x) {
       return K::sum(K::l2_normalize(x, 1) * K::l2_normalize(K::reverse(x, 1) + K::gather(x, 0), 1), 1);
     }},
    {"categorical_crossentropy", [](const Tensor& x) { return K::categorical_crossentropy(targets(x), x); }},
    {"categorical_crossentropy of columns",
     [](const Tensor& x) { return K::categorical_crossentropy(targets(x), x, false, 0); }},
    {"nn::normalize", [](const Tensor& x) { return nn::normalize(x); }},
    {"nn::normalize of order 1", [](const Tensor& x) { return nn::normalize(x, 0, 1); }},
    {"nn::rms_normalization", [](const Tensor& x) { return nn::rms_normalization(x, None, -1, 1e-30); }},
    {"nn::cosine_similarity",
     [](const Tensor& x) { return nn::cosine_similarity(x, K::reverse(x, 1) + K::gather(x, 0)); }},
    {"np::corrcoef of columns", [](const Tensor& x) { return np::corrcoef(x, {.rowvar = false}); }, false},
    {"np::average by weights", [](const Tensor& x) { return np::average(targets(x), {.axis = 1, .weights = x}); }},
    {"np::arctan2", [](const Tensor& x) { return np::arctan2(x, K::reverse(x, 1)); }},
    {"np::hypot", [](const Tensor& x) { return x / np::hypot(x, K::reverse(x, 1)); }},
    {"std over mean", [](const Tensor& x) { return K::std(x, 1) / K::mean(x, 1); }},
    {"ctc_batch_cost",
     [](const Tensor& x) {
       const auto whole = [&](const List& v, const Shape& shape) {
         return K::cast(K::constant(v, "float64", shape), int64).to(x.device());
       };
       const NoEpsilon scope;
       return K::ctc_batch_cost(whole({0, 1, 2, 2}, {2, 2}), K::reshape(x, {2, 3, 6}), whole({3, 3}, {2, 1}),
                                whole({2, 2}, {2, 1}));
     }},
};

/// Value, gradient and second gradient of f at x, as float64 on the CPU. They are those of weighted sums.
std::vector<List> results(const Invariant& c, const Tensor& x) {
  const Tensor y = c.f(x);
  const auto weights = [&](const Tensor& of, double from) {
    List w(values(K::eval(of).to(cpu)).size());
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = from + 0.25 * static_cast<double>(i * 5 % 7);
    return like(of, w, of.shape());
  };
  const Tensor g = K::gradients(K::sum(y * weights(y, -0.5)), {x})[0];
  Tensors all{y, g};
  if (c.second) all.push_back(K::gradients(K::sum(g * weights(g, -0.75)), {x})[0]);
  std::vector<List> out;
  for (const Tensor& t : all) out.push_back(values(K::cast(K::eval(t).to(cpu), float64)));
  return out;
}

/// The largest difference between two results beside the largest element of the expected one, in units of 2^-bits.
double apart(const List& got, const List& expected, int bits) {
  double most = bits == 11 ? 0x1p-12 : 0, off = 0;  // float16 has fewer bits below 2^-14
  for (double v : expected) most = std::max(most, std::abs(v));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - expected[i]);
    off = d <= off ? off : d;  // NaN stays
  }
  return off == 0 ? 0 : std::ldexp(off / most, bits);
}

struct Precision {
  DType dtype;
  int bits;        // of the significand
  double largest;  // offset
};
const std::vector<Precision> kPrecisions{
    {float64, 53, 1e8}, {float32, 24, 1e8}, {float16, 11, 3e4}, {bfloat16, 8, 1e8}};

/// Rows that are equal, almost equal, and spread.
List whole_numbers(bool positive) {
  List k(36);
  for (std::size_t i = 0; i < 36; ++i) k[i] = static_cast<double>(i / 6 == 0 ? 0 : (i * i * 7 + i / 6) % (i / 6 + 1));
  if (positive)
    for (double& v : k) v = 0.125 + v / 8;
  return k;
}

void check(const Invariant& c, const List& data, const Precision& p, double offset, double scale, const char* device,
           double loose = 1) {
  List there = data;
  for (double& v : there) v = offset + v * scale;
  Tensor x = K::variable(K::cast(K::constant(there, "float64", {6, 6}), p.dtype).to(device), p.dtype);
  REQUIRE(values(K::cast(K::eval(x).to(cpu), float64)) == there);
  List around(data);
  if (offset != 0)
    for (double& v : around) v *= scale;
  const auto wanted = results(c, var64(around, {6, 6})), got = results(c, x);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    List expected = wanted[i];
    // The n-th derivative of what scales to itself is that at x by scale^-n.
    if (offset == 0 && i > 0)
      for (double& v : expected) v = std::ldexp(v, -static_cast<int>(i) * std::ilogb(scale));
    if (p.dtype == float16 && *std::max_element(expected.begin(), expected.end()) > 65504) continue;
    INFO(c.name << " in " << p.dtype << " at " << offset << ", scale " << scale << ", derivative " << i);
    CHECK(apart(got[i], expected, p.bits) <= 64 * loose);
  }
}

void sweep(const char* device, const std::vector<Precision>& precisions, const List& offsets, const List& scales) {
  for (const Invariant& c : kShifted)
    for (const Precision& p : precisions)
      for (double offset : offsets)
        for (double units : {1., 64., 0x1p20}) {
          if (std::abs(offset) > p.largest) continue;
          const double scale = units * std::ldexp(std::abs(offset), 1 - p.bits);
          if (scale * 8 > std::abs(offset)) continue;
          check(c, whole_numbers(false), p, offset, scale, device);
        }
  for (const Invariant& c : kScaled)
    for (const Precision& p : precisions)
      for (double scale : scales)
        if (scale <= p.largest) check(c, whole_numbers(true), p, 0, scale, device, 4);
}

}  // namespace

TEST_CASE("what is invariant under a shift or a scale is so far from 0 too, with its gradients") {
  sweep("cpu", kPrecisions, {0x1p4, 0x1p10, -0x1p14, 0x1p20, 0x1p26}, {0x1p-3, 0x1p4, 0x1p10, 0x1p27});
}
TEST_CASE("what is invariant under a shift or a scale is so on a CUDA device", "[device]") {
  if (has_device("cuda:0")) sweep("cuda:0", {{float32, 24, 1e8}, {bfloat16, 8, 1e8}}, {0x1p20}, {0x1p27});
}

TEST_CASE("logsumexp grows by the shift, and its gradient does not change") {
  for (const Precision& p : kPrecisions)
    for (double offset : {1000., 0x1p14, 0x1p20, 0x1p26}) {
      if (offset > p.largest) continue;
      INFO(p.dtype << " at " << offset);
      Tensor x = K::variable(K::cast(K::constant(List(6, offset), "float64", {2, 3}), p.dtype), p.dtype);
      const Tensor y = K::logsumexp(x, 1), all = K::logsumexp(x);
      check_close(values(K::cast(y, float64)), List(2, offset + std::log(3.)), std::ldexp(1, 1 - p.bits), 0);
      check_close(values(K::cast(K::gradients(y, {x})[0], float64)), List(6, 1 / 3.), std::ldexp(2, -p.bits), 0);
      check_close(values(K::cast(K::gradients(all, {x})[0], float64)), List(6, 1 / 6.), std::ldexp(2, -p.bits), 0);
    }
}

TEST_CASE("the marginals of a long chain of logsumexp sum to 1") {
  for (bool compiled : {false, true})
    for (auto [dtype, off] : {std::pair(float32, 2e-5), std::pair(float64, 1e-13), std::pair(bfloat16, 0.06)}) {
      Tensor e = K::variable(K::random_normal({500, 5}, 0.0, 1.0, "float32", 1), dtype),
             a = K::variable(K::random_normal({5, 5}, 0.0, 1.0, "float32", 2), dtype);
      const auto chain = [&](const Tensor& unary) {
        Tensor last =
            K::foldl([&](const Tensor& s, const Tensor& v) { return K::logsumexp(K::expand_dims(s, 1) + a, 0) + v; },
                     unary, K::zeros({5}, dtype));
        return K::sum(K::cast(K::gradients(K::logsumexp(last), {unary})[0], float64), 1);
      };
      Tensor sums;
      if (compiled) {
        Tensor in = K::placeholder({500, 5}, None, dtype);
        sums = K::function({in}, {chain(in)})({K::eval(e)})[0];
      } else {
        sums = chain(e);
      }
      INFO(dtype << (compiled ? ", compiled" : ", eager"));
      check_close(values(sums), List(500, 1), 0, off);
    }
}

TEST_CASE("losses from logits do not depend on a shift of the logits") {
  for (double c : {0., 1e3, 1e5, 1e6, 1e8}) {
    INFO(c);
    Tensor z = K::constant({{c, c, c}}), t = K::constant({{1, 0, 0}});
    const List log3{std::log(3.)};
    check_close(values(K::categorical_crossentropy(t, z, true)), log3, 1e-7);
    check_close(values(K::sparse_categorical_crossentropy(K::constant({0}, "int32"), z, true)), log3, 1e-7);
    check_close(values(K::categorical_crossentropy(K::transpose(t), K::transpose(z), true, 0)), log3, 1e-7);
  }
}

TEST_CASE("equal elements have variance 0, and std of them gradient 0") {
  for (DType dtype : {float64, float32, float16, bfloat16})
    for (double v : {0.7, -1e-3, 1 / 3., 1234.567, 3e37})
      for (std::int64_t n : {1, 2, 3, 7, 10, 100, 5000}) {
        if (v > 1e5 && dtype == float16) continue;
        INFO(dtype << ' ' << v << ' ' << n);
        for (const Shape& shape : {Shape{n}, Shape{n, 3}}) {
          Tensor x = K::variable(K::cast(K::constant(v, "float64", shape), dtype), dtype);
          const Tensor s = K::std(x, 0), y = K::normalize_batch_in_training(x, None, None, 0).normalized;
          CHECK(number(K::max(K::abs(s))) == 0);
          CHECK(number(K::max(K::abs(K::var(x)))) == 0);
          CHECK(number(K::max(K::abs(K::gradients(s, {x})[0]))) == 0);
          CHECK(number(K::max(K::abs(K::gradients(K::var(x), {x})[0]))) == 0);
          CHECK(number(K::max(K::abs(y))) == 0);
        }
      }
}

TEST_CASE("moments of many rows a unit in the last place apart are not joined from rounded means") {
  // 0s and 1s over 2^23, where 1 is a unit in the last place: the share of ones differs between the blocks.
  for (const Shape& shape : {Shape{3000, 1}, Shape{3000, 20}, Shape{1, 3000}, Shape{20, 3000}})
    for (int axis : {0, 1}) {
      if (shape[axis] < 3000) continue;
      const std::int64_t others = shape[1 - axis];
      List v(static_cast<std::size_t>(3000 * others));
      double ones = 0;
      for (std::int64_t i = 0; i < 3000; ++i) {
        const double one = i * i % 4000 < i ? 1 : 0;
        ones += one;
        for (std::int64_t k = 0; k < others; ++k)
          v[static_cast<std::size_t>(axis == 0 ? i * others + k : k * 3000 + i)] = 0x1p23 + one;
      }
      const double share = ones / 3000, var = share * (1 - share);
      Tensor x = K::variable(v, "float32");
      x = K::variable(K::reshape(x, shape));
      INFO("along axis " << axis << " of " << shape);
      const List each(static_cast<std::size_t>(others), var);
      check_close(values(K::var(x, axis)), each, 1e-6);
      const auto n = K::normalize_batch_in_training(x, None, None, axis, 1e-9);
      check_close(values(n.variance), each, 1e-6);
      List y = v;
      for (double& e : y) e = (e - 0x1p23 - share) / std::sqrt(var + 1e-9);
      check_close(values(n.normalized), y, 1e-5);
    }
}

TEST_CASE("the gradient of softmax is 0 for equal cotangents, in half types too") {
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    Tensor x = K::variable(K::cast(f64(numbers(60, 3), {4, 15}) * 4.0, dtype), dtype);
    for (int axis : {0, 1}) {
      const Tensor g = K::gradients(K::sum(K::softmax(x, axis)), {x})[0];
      CHECK(number(K::max(K::abs(K::cast(g, float64)))) < 1e-7);
    }
  }
}

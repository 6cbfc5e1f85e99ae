// tests/devices/bias_cuda_test.cpp - a bias added to a product of matrices, in a function on a CUDA device: one kernel,
// with the values of both.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/fast_paths.h"
#include "ops/product/matmul.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/settings.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

constexpr std::int64_t kM = 6, kK = 5, kN = 7;

bool is_emulated() { return emulated<std::int64_t()>("emulated_products"); }

Tensor draw(const std::vector<std::int64_t>& shape, std::uint64_t seed, const char* dtype = "float32") {
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return K::eval(K::cast(f64(numbers(n, seed), shape), dtype)).to("cuda:0");
}
std::vector<double> wide(const Tensor& t) { return values(K::cast(K::eval(t).to("cpu"), "float64")); }

/// x w + row by the definition, in double precision; x is kM x kK, w is kK x kN.
std::vector<double> defined(const Tensor& x, const Tensor& w, const Tensor& row) {
  const std::vector<double> a = wide(x), b = wide(w), c = wide(row);
  std::vector<double> sums;
  for (std::size_t i = 0; i < kM; ++i)
    for (std::size_t j = 0; j < kN; ++j) {
      double sum = c[j];
      for (std::size_t k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
      sums.push_back(sum);
    }
  return sums;
}

using Layer = std::function<Tensor(const Tensors& in)>;

/// What a function of `in` returns, and how often a product took a bias in its first call.
struct Run {
  Tensor result;
  std::int64_t taken;
};
Run run(const Layer& layer, const Tensors& in, bool allowed = true) {
  SettingsScope restore;
  if (!allowed) fast_path_thresholds.off |= std::uint64_t(1) << static_cast<int>(FastPath::with_bias);
  Tensors holders;
  for (const Tensor& t : in) holders.push_back(K::placeholder(t.shape(), K::None, t.dtype()));
  Function f = K::function(holders, {layer(holders)});
  CountedPaths counting;
  Tensor result = f(in)[0];
  const std::int64_t taken = times_taken(FastPath::with_bias);
  CHECK(times_taken(FastPath::with_bias_relu) == 0);
  f(in);  // the program for these shapes
  CHECK(times_taken(FastPath::with_bias) == 2 * taken);
  CHECK(same_bits(f(in)[0].to("cpu"), result.to("cpu")));
  return {result, taken};
}

/// Runs with the bias in the product and without, and compares. cuBLASLt may sum in another order than cuBLAS, the
/// emulated device does not.
Tensor check_taken(const Layer& layer, const Tensors& in, std::int64_t times) {
  const Run once = run(layer, in), apart = run(layer, in, /*allowed=*/false);
  CHECK(once.taken == times);
  CHECK(apart.taken == 0);
  if (is_emulated() || times == 0) CHECK(same_bits(once.result.to("cpu"), apart.result.to("cpu")));
  else check_close(wide(once.result), wide(apart.result), 1e-5, 1e-6);
  return once.result;
}

}  // namespace

TEST_CASE("a bias after a product on a CUDA device goes into the product", "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const Tensor x = draw({kM, kK}, 1), w = draw({kK, kN}, 2), b = draw({kN}, 3);
  const std::vector<double> expected = defined(x, w, b);
  auto check = [&](const Layer& layer, const Tensors& in) {
    check_close(wide(check_taken(layer, in, 1)), expected, 1e-5, 1e-6);
  };
  SECTION("in either order") {
    check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {x, w, b});
    check([](const Tensors& in) { return in[2] + K::dot(in[0], in[1]); }, {x, w, b});
    check([](const Tensors& in) { return K::bias_add(K::dot(in[0], in[1]), in[2]); }, {x, w, b});
  }
  SECTION("as a row") {
    check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {x, w, K::eval(K::reshape(b, {1, kN}))});
  }
  SECTION("of three axes") {
    check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {K::eval(K::reshape(x, {2, 3, kK})), w, b});
    check([](const Tensors& in) { return matmul(in[0], in[1]) + in[2]; }, {K::eval(K::reshape(x, {2, 3, kK})), w, b});
  }
  SECTION("with operands that are transposed") {
    const Tensor turned_x = K::eval(K::transpose(x)), turned_w = K::eval(K::transpose(w));
    check([](const Tensors& in) { return matmul(in[0], in[1], true, false) + in[2]; }, {turned_x, w, b});
    check([](const Tensors& in) { return matmul(in[0], in[1], false, true) + in[2]; }, {x, turned_w, b});
    check([](const Tensors& in) { return matmul(in[0], in[1], true, true) + in[2]; }, {turned_x, turned_w, b});
  }
}

TEST_CASE("a product of one row, one column or one number takes a bias on a CUDA device", "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  struct Shape {
    std::int64_t m, k, n;
  };
  for (const Shape& s : {Shape{1, 5, 7}, Shape{6, 5, 1}, Shape{1, 5, 1}, Shape{6, 1, 7}, Shape{1, 1, 1}}) {
    INFO(s.m << " x " << s.k << " by " << s.k << " x " << s.n);
    const Tensor x = draw({s.m, s.k}, 1), w = draw({s.k, s.n}, 2), b = draw({s.n}, 3);
    const std::vector<double> u = wide(x), v = wide(w), c = wide(b);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = c[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < s.k; ++k)
          sum += u[static_cast<std::size_t>(i * s.k + k)] * v[static_cast<std::size_t>(k * s.n + j)];
        expected.push_back(sum);
      }
    const Tensor got = check_taken([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {x, w, b}, 1);
    check_close(wide(got), expected, 1e-5, 1e-6);
  }
}

TEST_CASE("what is no bias of float32, or has a chain to go into, is added by itself on a CUDA device",
          "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const Tensor x = draw({kM, kK}, 1), w = draw({kK, kN}, 2), b = draw({kN}, 3);
  auto check = [&](const Layer& layer, const Tensors& in) { check_taken(layer, in, 0); };
  const Layer sum = [](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; };
  for (const Tensor& other : {draw({kM, 1}, 4), draw({1}, 5), draw({kM, kN}, 6), draw({2, 1, kN}, 7),
                              draw({1, kM, kN}, 8), draw({1, 1, kN}, 9)}) {
    INFO(other.shape());
    check(sum, {x, w, other});
  }
  for (const char* dtype : {"float16", "bfloat16", "float64", "int32"}) {
    INFO(dtype);
    check(sum, {K::cast(x, dtype), K::cast(w, dtype), K::cast(b, dtype)});
  }
  check([](const Tensors& in) { return K::relu(K::dot(in[0], in[1]) + in[2]); }, {x, w, b});
  check([](const Tensors& in) { return K::tanh(K::dot(in[0], in[1]) + in[2]) * 2.0; }, {x, w, b});
  check([](const Tensors& in) { return K::dot(in[0], in[1]) + K::dot(in[0], in[1]); }, {x, w});
  check(
      [](const Tensors& in) {
        Tensor p = K::dot(in[0], in[1]);
        return K::dot(p + in[2], K::transpose(p));
      },
      {x, w, b});
  // A batch of products; a product that needs its operand rearranged; and one without terms.
  check([](const Tensors& in) { return K::batch_dot(in[0], in[1]) + in[2]; },
        {draw({3, kM, kK}, 1), draw({3, kK, kN}, 2), b});
  check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {x, draw({2, kK, kN}, 2), b});
  check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; },
        {K::zeros({kM, 0}).to("cuda:0"), K::zeros({0, kN}).to("cuda:0"), b});
  check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {K::zeros({0, kK}).to("cuda:0"), w, b});
}

TEST_CASE("a relu after a product and a bias keeps NaN on a CUDA device", "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = K::constant(std::vector<float>{1, nan, -1}, "float32", {3, 1}).to("cuda:0"),
               w = K::constant(std::vector<float>{1, 2}, "float32", {1, 2}).to("cuda:0"),
               b = K::constant(std::vector<float>{0.5, -4}, "float32").to("cuda:0");
  const std::vector<float> got =
      floats(run([](const Tensors& in) { return K::relu(K::dot(in[0], in[1]) + in[2]); }, {x, w, b}).result);
  CHECK((got[0] == 1.5f && got[1] == 0 && std::isnan(got[2]) && std::isnan(got[3]) && got[4] == 0 && got[5] == 0));
}

TEST_CASE("gradients and updates are right where products take their bias on a CUDA device", "[device][products]") {
  if (!has_device("cuda:0")) return;
  // Two layers, the second with its bias in the product, and gradient descent.
  auto train = [](const char* device, std::int64_t* taken) {
    DeviceScope scope(device);
    const Tensor x = draw({kM, kK}, 1).to(device), y = K::eval(K::softmax(draw({kM, 3}, 2))).to(device);
    Tensors weights{K::variable(draw({kK, kN}, 3).to(device)), K::variable(draw({kN}, 4).to(device)),
                    K::variable(draw({kN, 3}, 5).to(device)), K::variable(draw({3}, 6).to(device))};
    Tensor in = K::placeholder({K::None, kK}), target = K::placeholder({K::None, 3});
    Tensor logits = K::dot(K::tanh(K::dot(in, weights[0]) + weights[1]), weights[2]) + weights[3];
    Tensor loss = K::mean(K::categorical_crossentropy(target, logits, /*from_logits=*/true));
    Tensors g = K::gradients(loss, weights);
    K::Updates updates;
    for (int i = 0; i < 4; ++i) updates.push_back({weights[i], weights[i] - 0.5 * g[i]});
    Function step = K::function({in, target}, {loss, logits}, updates);
    CountedPaths counting;
    std::vector<double> seen;
    for (int i = 0; i < 6; ++i)
      for (const Tensor& t : step({x, y}))
        for (double v : wide(t)) seen.push_back(v);
    for (const Tensor& t : weights)
      for (double v : wide(t)) seen.push_back(v);
    *taken = times_taken(FastPath::with_bias);
    return seen;
  };
  std::int64_t on_device = 0, on_cpu = 0;
  const std::vector<double> got = train("cuda:0", &on_device), expected = train("cpu", &on_cpu);
  CHECK(on_device == 6);
  CHECK(on_cpu == 12);  // both layers: there, a bias that is followed by tanh is no chain
  check_close(got, expected, 1e-4, 1e-5);
}

TEST_CASE("a variable is assigned the product and the bias that a CUDA device adds to it", "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const Tensor x = draw({kM, kK}, 1), w = draw({kK, kN}, 2), b = draw({kN}, 3);
  Tensor v = K::variable(K::zeros({kM, kN})), in = K::placeholder({kM, kK});
  const Tensor before = K::eval(v);
  Tensor layer = K::dot(in, K::variable(w)) + K::variable(b);
  Function f = K::function({in}, {layer}, {{v, layer}});
  for (int i = 0; i < 4; ++i) check_close(wide(f({x})[0]), defined(x, w, b), 1e-5, 1e-6);
  check_close(wide(v), defined(x, w, b), 1e-5, 1e-6);
  CHECK(wide(before) == std::vector<double>(kM * kN, 0));
}

TEST_CASE("a product with a bias is a part of a function's graph", "[device][graph][cached]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const Tensor w = K::variable(draw({kK, kN}, 2)), v = K::variable(draw({kN, kN}, 3)), b = K::variable(draw({kN}, 4));
  Tensor in = K::placeholder({kM, kK});
  Function f = K::function({in}, {K::softmax(K::dot(K::dot(in, w) + b, v) + b)});
  auto asked = emulated<std::int64_t()>("emulated_enqueued");
  std::vector<Tensor> held;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const Tensor x = draw({kM, kK}, 10 + i);
    CountedPaths counting;
    const std::int64_t before = asked ? asked() : 0;
    Tensor got = f({x})[0];
    if (asked && i > 1) CHECK(asked() - before == 1);
    CHECK(times_taken(FastPath::device_graph) == (i > 1 ? 1 : 0));
    CHECK(times_taken(FastPath::with_bias) == 2);
    held.push_back(got);  // and what comes next has another address
    check_close(wide(got), wide(K::softmax(K::dot(K::dot(x, w) + b, v) + b)), 1e-5, 1e-6);
  }
}

TEST_CASE("a bias is added by itself where cuBLASLt has no kernel for the product", "[device][products]") {
  if (!has_device("cuda:0")) return;
  auto refuse = emulated<void(int)>("emulated_refuse_biases");
  if (!refuse) return;
  DeviceScope scope("cuda:0");
  const Tensor x = draw({kM, kK}, 1), w = draw({kK, kN}, 2), b = draw({kN}, 3);
  SettingsScope restore;
  set_allow_tf32(true);  // no other test has asked for these
  for (int how : {1, 2}) {
    refuse(how);
    const Run got = run([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; }, {x, w, b});
    refuse(0);
    CHECK(got.taken == 0);
    check_close(wide(got.result), defined(x, w, b), 1e-5, 1e-6);
  }
}

TEST_CASE("cuBLASLt is asked once for products of one form", "[device][products]") {
  if (!has_device("cuda:0")) return;
  auto asked = emulated<std::int64_t()>("emulated_heuristics");
  if (!asked) return skip("only the emulated device counts");
  DeviceScope scope("cuda:0");
  auto times = [&](std::int64_t m) {
    const Tensor x = draw({m, 11}, 1), w = draw({11, 13}, 2), b = draw({13}, 3);
    const std::int64_t before = asked();
    for (int again = 0; again < 3; ++again) {
      Tensor in = K::placeholder({m, 11}), row = K::placeholder({13});
      K::function({in, row}, {K::dot(in, w) + row})({x, b});
    }
    return asked() - before;
  };
  CHECK(times(9) == 1);
  CHECK(times(9) == 0);
  CHECK(times(10) == 1);
  SettingsScope restore;
  set_allow_tf32(true);
  CHECK(times(9) == 1);
}

TEST_CASE("a product with a bias uses TF32 where it is allowed", "[device][products]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  SettingsScope restore;
  auto count = emulated<std::int64_t()>("emulated_tf32_products");
  const Tensor x = K::ones({kM, kK}), w = K::ones({kK, kN}), b = K::ones({kN});
  Tensor in = K::placeholder({kM, kK});
  Function f = K::function({in}, {K::dot(in, w) + b});
  for (bool allowed : {false, true}) {
    set_allow_tf32(allowed);
    const std::int64_t before = count ? count() : 0;
    CHECK(floats(f({x})[0]) == std::vector<float>(kM * kN, kK + 1));
    if (count) CHECK((count() > before) == allowed);
  }
}

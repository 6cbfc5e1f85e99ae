// tests/devices/chain_cuda_test.cpp - chains of elementwise ops as one kernel on a CUDA device: the bits of single
// kernels.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/fast_paths.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/settings.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

/// Whether two tensors have the same elements; all NaNs count as equal.
template <class T>
bool same_values(const Tensor& a, const Tensor& b) {
  const std::vector<T> x = a.to("cpu").to_vector<T>(), y = b.to("cpu").to_vector<T>();
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::memcmp(&x[i], &y[i], sizeof(T)) != 0 && (x[i] == x[i] || y[i] == y[i])) return false;
  return true;
}
bool same_values(const Tensor& a, const Tensor& b) {
  return a.dtype() == float64 ? same_values<double>(a, b) : same_values<float>(a, b);
}

Tensor draw(const Shape& shape, DType dtype, int seed) { return K::random_uniform(shape, -2, 2, dtype, seed); }

/// Random ops on x, y, a row and a number, from the rows of UnaryOps and BinaryOps.
Tensors expression(unsigned seed, int steps, const Tensors& in) {
  std::mt19937 random(seed);
  std::vector<Tensor> known(in.begin(), in.end());
  auto pick = [&]() -> Tensor { return random() % 3 ? known.back() : known[random() % known.size()]; };
  for (int i = 0; i < steps; ++i) {
    Tensor a = pick(), b = pick();
    auto next = [&]() -> Tensor {
      switch (random() % 30) {
        case 0: return a + b;
        case 1: return a - b;
        case 2: return b - a;
        case 3: return a * b;
        case 4: return a / (K::abs(b) + 0.5);
        case 5: return 0.5 / (K::abs(a) + 1.0);
        case 6: return 1.5 - a;
        case 7: return K::maximum(a, b);
        case 8: return K::minimum(a, 0.25);
        case 9: return K::tanh(a);
        case 10: return K::exp(-K::abs(a));
        case 11: return K::square(a);
        case 12: return K::sqrt(K::abs(a));
        case 13: return K::relu(a);
        case 14: return K::sigmoid(a);
        case 15: return K::log(K::abs(a) + 1.0);
        case 16: return K::clip(a, -0.5, 0.5);
        case 17: return K::abs(a) % 0.7;
        case 18: return K::sin(a);
        case 19: return K::softplus(a);
        case 20: return kassette::floor_divide(a, K::abs(b) + 0.3);
        case 21: return K::relu(a, 0.1, 1.25, -0.2);
        case 22: return K::hard_sigmoid(a);
        case 23: return K::elu(a, 0.7);
        case 24: return K::pow(K::abs(a), b * 0.25);
        case 25: return K::softsign(a);
        case 26: return K::round(a * 3.0);
        case 27: return K::cos(a);
        case 28: return K::relu(a, 0.3);
        default: return K::sign(a) * b;
      }
    };
    known.push_back(next());
  }
  return {known.back() + in[0], known[known.size() / 2] + 0.0 * in[1], known[known.size() - 2] * in[0]};
}

}  // namespace

TEST_CASE("random chains are few kernels on a device, with the bits of single ones", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  CountedPaths counting;
  int seed = 0;
  struct Size {
    std::int64_t rows, width;
  };
  for (DType dtype : {float32, float64})
    for (const auto& [rows, width] :
         {Size{1, 7}, {3, 7}, {400, 7}, {3, 12}, {200, 12}})  // a row of 7 is no whole number of packs
      for (int steps : {2, 7, 30, 60}) {
        ++seed;
        INFO(dtype << ", " << rows << " rows of " << width << ", " << steps << " ops, seed " << seed);
        const std::vector<Shape> shapes = {{rows, width}, {rows, width}, {width}, {1}, {1, width}};
        Tensors holders, values;
        for (const Shape& shape : shapes) {
          holders.push_back(K::placeholder(Dims(shape), None, dtype));
          values.push_back(draw(shape, dtype, 10 * seed + static_cast<int>(values.size())));
        }
        Tensors got = K::function(holders, expression(seed, steps, holders))(values),
                expected = expression(seed, steps, values);
        for (int i = 0; i < 3; ++i) {
          INFO("output " << i);
          CHECK(same_values(got[i], expected[i]));
        }
      }
  CHECK(times_taken(FastPath::chain) > 24);
}

TEST_CASE("a chain on a device keeps any number of values for later", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  for (DType dtype : {float32, float64})
    for (int kept = 0; kept < 14; ++kept) {  // kernels for up to 4, 8 and 32 of them
      INFO(dtype << ", " << kept << " values");
      auto run = [&](const Tensor& x) {
        Tensors all;
        for (int i = 0; i <= kept; ++i) all.push_back(x * (0.3 * i + 0.5));
        Tensor last = all[kept];
        for (int i = kept - 1; i >= 0; --i) last = all[i] - last;
        return last + 1.0;
      };
      const Tensor x = draw({3, 341}, dtype, kept + 1);
      Tensor in = K::placeholder({3, 341}, None, dtype);
      CountedPaths counting;
      CHECK(same_values(K::function({in}, {run(in)})({x})[0], run(x)));
      CHECK(times_taken(FastPath::chain) == 1);
    }
}

TEST_CASE("a chain on a device writes into its variables, and can be switched off", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  SettingsScope restore;
  const std::uint64_t off = fast_path_thresholds.off;
  for (bool on : {true, false}) {
    fast_path_thresholds.off = off | std::uint64_t(!on) << static_cast<int>(FastPath::chain);
    CountedPaths counting;
    Tensor w = K::variable(draw({5000}, float32, 1)), m = K::variable(K::zeros({5000})), g = K::placeholder({5000});
    Tensor start = draw({5000}, float32, 1), seen = draw({5000}, float32, 2);
    auto moment = [](const Tensor& was, const Tensor& now) { return 0.9 * was + 0.1 * now; };
    auto step = [&](const Tensor& value, const Tensor& by) { return value - 0.01 * by / (K::sqrt(K::abs(by)) + 1e-3); };
    Tensor next = moment(m, g);
    Function f = K::function({g}, {}, {{m, next}, {w, step(w, next)}});
    f({seen});
    CHECK(times_taken(FastPath::chain_of_update) + times_taken(FastPath::chain) == (on ? 1 : 0));
    CHECK(times_taken(FastPath::updated_in_place) > 0);
    Tensor moved = moment(K::zeros({5000}), seen);
    CHECK(same_values(K::eval(m), moved));
    CHECK(same_values(K::eval(w), step(start, moved)));
  }
}

// tests/autograd/function/fuse_test.cpp - chains of ops that a plan runs in one pass have the values of the single ops,
// to the last bit.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::DType;
using kassette::Function;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::at_every_level;
using kassette::test::f64;
using kassette::test::numbers;
using kassette::test::SettingsScope;
using kassette::test::values;

namespace {

/// Whether two tensors have the same elements; all NaNs count as equal.
template <class T>
bool same(const Tensor& a, const Tensor& b) {
  std::vector<T> x = a.to_vector<T>(), y = b.to_vector<T>();
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::memcmp(&x[i], &y[i], sizeof(T)) != 0 && (x[i] == x[i] || y[i] == y[i])) return false;
  return true;
}
bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) return false;
  return a.dtype() == kassette::float64 ? same<double>(a, b) : same<float>(a, b);
}

/// An expression of `steps` random ops on x, y, the element v and numbers. Returns the last value, and two intermediate
/// ones.
Tensors expression(unsigned seed, int steps, const Tensor& x, const Tensor& y, const Tensor& v) {
  std::mt19937 random(seed);
  std::vector<Tensor> known{x, y, v};
  auto pick = [&]() -> Tensor { return random() % 3 ? known.back() : known[random() % known.size()]; };
  for (int i = 0; i < steps; ++i) {
    Tensor a = pick(), b = pick();
    switch (random() % 24) {
      case 0: known.push_back(a + b); break;
      case 1: known.push_back(a - b); break;
      case 2: known.push_back(b - a); break;
      case 3: known.push_back(a * b); break;
      case 4: known.push_back(a / (K::abs(b) + 0.5)); break;
      case 5: known.push_back(0.75 * a); break;
      case 6: known.push_back(1.5 - a); break;
      case 7: known.push_back(K::maximum(a, b)); break;
      case 8: known.push_back(K::minimum(a, 0.25)); break;
      case 9: known.push_back(K::tanh(a)); break;
      case 10: known.push_back(K::exp(-K::abs(a))); break;
      case 11: known.push_back(K::square(a)); break;
      case 12: known.push_back(K::sqrt(K::abs(a))); break;
      case 13: known.push_back(K::relu(a)); break;
      case 14: known.push_back(K::sigmoid(a)); break;
      case 15: known.push_back(K::log(K::abs(a) + 1.0)); break;
      case 16: known.push_back(K::clip(a, -0.5, 0.5)); break;
      case 17: known.push_back(K::abs(a) % 0.7); break;
      case 18: known.push_back(K::sin(a)); break;
      case 19: known.push_back(K::softplus(a)); break;
      case 20: known.push_back(kassette::floor_divide(a, K::abs(b) + 0.3)); break;
      case 21: known.push_back(K::relu(a, 0.1, 1.25, -0.2)); break;
      case 22: known.push_back(K::hard_sigmoid(a)); break;
      default: known.push_back(K::sign(a) * b); break;
    }
  }
  return {known.back() + x, known[known.size() / 2] + 0.0 * y, known[known.size() - 2]};
}

Tensor draw(std::int64_t n, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> between(-2, 2);
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& e : x) e = between(random);
  return K::cast(kassette::test::tensor_of(x), dtype);
}

}  // namespace

TEST_CASE("random chains give the bits of single ops, at every level, for every length of the last chunk", "[fuse]") {
  SettingsScope restore;
  const std::int64_t large = kassette::fast_path_thresholds.streamed;
  at_every_level([&](kassette::devices::Level) {
    unsigned seed = 0;
    for (DType dtype : {kassette::float32, kassette::float64})
      for (std::int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 200, 257, 16384, 20001})
        for (int steps : {2, 7, 45}) {
          ++seed;
          kassette::fast_path_thresholds.streamed = seed % 2 ? 0 : large;
          INFO(dtype << ", " << n << " elements, " << steps << " ops, seed " << seed);
          Tensor x = draw(n, dtype, seed), y = draw(n, dtype, seed + 1000), v = draw(1, dtype, seed + 2000);
          Tensor in = K::placeholder({K::None}, K::None, dtype), also = K::placeholder({K::None}, K::None, dtype),
                 one = K::placeholder({1}, K::None, dtype);
          Tensors got = K::function({in, also, one}, expression(seed, steps, in, also, one))({x, y, v});
          Tensors expected = expression(seed, steps, x, y, v);
          for (int i = 0; i < 3; ++i) {
            INFO("output " << i);
            CHECK(same(got[i], expected[i]));
          }
        }
  });
}

TEST_CASE("a large chain writes past the caches, and into its variables, on any number of threads", "[fuse]") {
  constexpr std::int64_t n = (4 << 20) + 37;
  SettingsScope restore;
  Tensor x = K::random_uniform({n}, -1, 1), start = K::random_uniform({n}, -1, 1);
  for (int threads : {1, 2, 3}) {
    kassette::set_num_threads(threads);
    Tensor w = K::variable(start * 1.0), in = K::placeholder({K::None});  // with memory of its own
    auto update = [](const Tensor& value, const Tensor& g) { return value - 0.25 * (g * g + K::tanh(value)); };
    Function f = K::symbolic([&] { return K::function({in}, {K::tanh(in * 0.5) + in}, {{w, update(w, in)}}); })();
    kassette::test::CountedPaths counted;
    Tensors out = f({x});
    // The variable is written in place, by plain stores.
    CHECK(kassette::times_taken(kassette::FastPath::streamed) == 1);
    CHECK(same(out[0], K::tanh(x * 0.5) + x));
    CHECK(same(K::eval(w), update(start, x)));
  }
}

// ---- Note [Splats] --------------------------------------------------------------------------------------------------

TEST_CASE("the gradient of a sum or mean stays one number, and is bit-identical to an eager one", "[fuse]") {
  at_every_level([](kassette::devices::Level) {
    for (DType dtype : {kassette::float32, kassette::float64, kassette::float16})
      for (std::int64_t n : {1, 3, 65, 5000}) {
        INFO(dtype << ", " << n << " elements");
        Tensor w = K::variable(draw(n, dtype, 7), dtype), in = K::placeholder({K::None}, K::None, dtype),
               x = draw(n, dtype, 8);
        auto losses = [&](const Tensor& t) {
          return Tensors{K::sum(K::square(w) * t), K::mean(K::tanh(w - t)), K::mean(w * t) * K::sum(w), K::sum(w)};
        };
        Tensors symbolic = losses(in), eager = losses(x), outputs;
        for (const Tensor& loss : symbolic) outputs.push_back(K::gradients(loss, {w})[0]);
        Tensors got = K::function({in}, outputs)({x});
        for (int i = 0; i < 4; ++i) {
          INFO("loss " << i);
          Tensor expected = K::gradients(eager[i], {w})[0].detach();
          CHECK(same<double>(K::cast(got[i], "float64"), K::cast(expected, "float64")));
        }
      }
  });
}

TEST_CASE("a repeated number that broadcasts further, or meets an op that is no chain, is written out", "[fuse]") {
  Tensor w = K::variable(draw(3, kassette::float64, 1), kassette::float64),
         rows = K::placeholder({K::None, 3}, K::None, "float64");
  // The gradient of the inner sum meets a matrix, and a product.
  Tensor g = K::gradients(K::sum(w), {w})[0],
         whole = K::function({rows}, {g * rows, K::sum(g * 2.0)})({K::ones({2, 3}, "float64")})[0];
  CHECK(values(whole) == std::vector<double>(6, 1.0));
  Tensor column = K::placeholder({K::None, 1}, K::None, "float64"), h = K::gradients(K::mean(column), {column})[0];
  Tensors out = K::function({column, rows}, {h * rows, K::dot(K::transpose(h), rows), -h})(
      {K::ones({2, 1}, "float64"), K::ones({2, 3}, "float64")});
  CHECK(values(out[0]) == std::vector<double>(6, 0.5));
  CHECK(values(out[1]) == std::vector<double>(3, 1.0));
  CHECK(values(out[2]) == std::vector<double>(2, -0.5));
}

TEST_CASE("a step on the gradient of a sum takes no memory for that gradient", "[fuse]") {
  constexpr std::int64_t n = 1 << 20;
  Tensor w = K::variable(K::ones({n}));
  Function step = K::symbolic([&] {
    return K::function({}, Tensors(), {{w, w - 0.25 * K::gradients(K::sum(K::square(w)), {w})[0]}});
  })();
  step({});
  kassette::reset_peak_memory();
  std::int64_t live = kassette::memory_stats().live;
  step({});
  CHECK(kassette::memory_stats().peak - live < n);
  CHECK(values(w)[n - 1] == 0.25);
}

TEST_CASE("the sum of a chain is that of its values, which take no memory", "[fuse]") {
  SettingsScope restore;
  for (DType dtype : {kassette::float32, kassette::float64})
    for (int n : {4096, 4097, 4099, 12288, 100003})
      at_every_level([&](kassette::devices::Level) {
        Tensor x = K::placeholder({K::None}, K::None, dtype), v = K::cast(K::arange(n), dtype) / 1000.0 - 3.0;
        auto losses = [](const Tensor& t) {
          return Tensors{K::sum(K::square(t)), K::mean(K::exp(-t) * 3.0 + t),
                         K::sum(K::tanh(t) - 0.5, {0}, /*keepdims=*/true)};
        };
        Tensors once = K::symbolic([&] { return K::function({x}, losses(x)); })()({v}), apart = losses(v);
        for (int i = 0; i < 3; ++i) {
          INFO(n << " of " << dtype << ", loss " << i);
          CHECK(same(once[i], apart[i]));
        }
      });
  constexpr std::int64_t n = 1 << 20;
  Tensor x = K::placeholder({K::None}), v = K::ones({n});
  Function f = K::symbolic([&] { return K::function({x}, {K::mean(K::square(x - 3.0))}); })();
  f({v});
  kassette::reset_peak_memory();
  std::int64_t live = kassette::memory_stats().live;
  CHECK(values(f({v})[0])[0] == 4);
  CHECK(kassette::memory_stats().peak - live < n);
}

TEST_CASE("what is summed and read again, or summed in part, stays", "[fuse]") {
  constexpr int kSize = 5000;
  Tensor x = K::placeholder({K::None, K::None}), y = K::square(x) * 2.0, s = K::sum(y),
         rows = K::sum(K::abs(x) + 1.0, {1});
  Tensors out = K::function({x}, {s, y / s, rows})({K::ones({2, kSize})});
  CHECK(values(out[0])[0] == 4 * kSize);
  CHECK(values(out[1])[kSize] == Approx(1. / (2 * kSize)));
  CHECK(values(out[2]) == std::vector<double>(2, 2 * kSize));
}

TEST_CASE("a loss that is summed beside the update of its variable has its value from before", "[fuse]") {
  SettingsScope restore;
  for (DType dtype : {kassette::float32, kassette::float64})
    for (int n : {4097, 32768, 100003, 300000})
      at_every_level([&](kassette::devices::Level) {
        INFO(n << " of " << dtype);
        Tensor start = K::cast(K::arange(n), dtype) / 1000.0 - 3.0;
        Tensor w = K::variable(start, dtype), m = K::variable(start * 0.0, dtype);
        Function step = K::symbolic([&] {
          Tensor loss = K::mean(K::square(w) * 0.5), m1 = 0.9 * m + w;
          return K::function({}, {loss}, {{m, m1}, {w, w - 0.1 * m1}});
        })();
        Tensor e = start, em = start * 0.0;
        for (int k = 0; k < 3; ++k) {
          Tensor loss = step({})[0];
          CHECK(same(loss, K::mean(K::square(e) * 0.5)));
          em = 0.9 * em + e;
          e = e - 0.1 * em;
          CHECK(same(K::identity(w), e));
          CHECK(same(K::identity(m), em));
        }
      });
}

TEST_CASE("a loss reads what an update of another shape overwrites before it does", "[fuse]") {
  constexpr int n = 50000;
  Tensor w = K::variable(K::ones({n})), scale = K::variable(2.0), other = K::variable(K::ones({2 * n}));
  Function step = K::symbolic([&] {
    return K::function({}, {K::sum(K::abs(w) * scale)}, {{scale, scale + 1.0}, {other, other * 2.0}, {w, w - 0.5}});
  })();
  CHECK(values(step({})[0])[0] == 2 * n);
  CHECK(values(step({})[0])[0] == 0.5 * 3 * n);
  CHECK(values(K::identity(w))[n - 1] == 0);
  CHECK(values(K::identity(other))[0] == 4);
  // One that the update reads does not wait.
  Function scaled = K::symbolic([&] {
    Tensor total = K::sum(K::square(other));
    return K::function({}, {total}, {{other, other / total}});
  })();
  CHECK(values(scaled({})[0])[0] == 16 * 2 * n);
  CHECK(values(K::identity(other))[5] == Approx(4. / (16 * 2 * n)));
}

TEST_CASE("in a function a product and what is added to it have the bits of both, whatever its shape", "[fuse]") {
  auto make = [](const kassette::Dims& shape, std::int64_t n, std::uint64_t seed, DType dtype) {
    return K::eval(K::cast(f64(numbers(static_cast<std::size_t>(n), seed), shape), dtype));
  };
  for (DType dtype : {kassette::float32, kassette::float64})
    for (int k : {1, 37, 128, 300}) {
      INFO(dtype << ", " << k);
      Tensor a = make({45, k}, 45 * k, 1, dtype), w = make({k, 130}, k * 130, 2, dtype), b = make({130}, 130, 3, dtype);
      Tensor batches = K::reshape(a, {9, 5, k}), column = make({45, 1}, 45, 4, dtype), one = make({1}, 1, 5, dtype);
      auto sums = [&](const Tensor& x, const Tensor& y) {
        Tensor p = K::dot(x, w);
        return Tensors{K::dot(x, w) + b,
                       b + K::dot(x, w),
                       K::relu(K::dot(y, w) + b),
                       K::dot(x, w) + K::reshape(b, {1, 130}),
                       K::dot(x, w) + column,
                       K::dot(x, w) + one,
                       p + b,
                       p * 2.0,
                       K::dot(y, w) + K::dot(y, w)};
      };
      Tensor x = K::placeholder({K::None, k}, K::None, dtype),
             y = K::placeholder({K::None, K::None, k}, K::None, dtype);
      Tensors eager = sums(a, batches), got = K::function({x, y}, sums(x, y))({a, batches});
      for (std::int64_t i = 0; i < eager.size(); ++i) {
        INFO("sum " << i);
        CHECK(values(got[i]) == values(eager[i]));
      }
    }
}

TEST_CASE("a bias after a convolution, and a relu after that, go into its pass, and give the bits of all",
          "[fuse][conv]") {
  auto make = [](const kassette::Dims& shape, std::int64_t n, std::uint64_t seed, DType dtype) {
    return K::eval(K::cast(f64(numbers(static_cast<std::size_t>(n), seed), shape), dtype));
  };
  at_every_level([&](kassette::devices::Level) {
    for (DType dtype : {kassette::float32, kassette::float64, kassette::float16})
      for (int filters : {1, 3, 40}) {
        INFO(dtype << ", " << filters);
        Tensor a = make({2, 9, 14, 20}, 2 * 9 * 14 * 20, 1, dtype),
               w = make({3, 3, 20, filters}, 9 * 20 * filters, 2, dtype), b = make({filters}, filters, 3, dtype);
        Tensor place = make({14, filters}, 14 * filters, 4, dtype);
        auto sums = [&](const Tensor& x) {
          Tensor y = K::bias_add(K::conv2d(x, w), b), z = K::conv2d(x, w, 1, "same"), u = K::conv2d(x, w) + b;
          return Tensors{K::relu(K::bias_add(K::conv2d(x, w, 2), b)),
                         y,
                         K::relu(y),
                         z + place,
                         K::relu(b + z),
                         z,
                         K::relu(u) + u,
                         K::relu(K::bias_add(z, b)) * 2.0};
        };
        Tensor x = K::placeholder({K::None, 9, 14, 20}, K::None, dtype);
        Tensors eager = sums(a), got = K::function({x}, sums(x))({a});
        for (std::int64_t i = 0; i < eager.size(); ++i) {
          INFO("sum " << i);
          CHECK(same(K::cast(got[i], "float64"), K::cast(eager[i], "float64")));
        }
      }
  });
}

TEST_CASE("a convolution with bias and relu makes one tensor", "[fuse][conv]") {
  Tensor a = K::eval(K::random_normal({4, 64, 64, 16})), w = K::eval(K::random_normal({1, 1, 16, 16})),
         b = K::eval(K::random_normal({16}));
  Tensor x = K::placeholder({K::None, 64, 64, 16});
  kassette::Function f = K::function({x}, {K::relu(K::bias_add(K::conv2d(x, w), b))});
  f({a});
  const std::int64_t before = kassette::memory_stats().live;
  kassette::reset_peak_memory();
  f({a});
  CHECK(kassette::memory_stats().peak - before < 3 * 4 * 64 * 64 * 16 * 4 / 2);
}

TEST_CASE("a training step has no tensor of which adjoints read the shape alone", "[fuse][conv]") {
  const std::int64_t image = 4 * 64 * 64 * 16 * 4;  // bytes
  Tensor a = K::eval(K::random_normal({4, 64, 64, 16}));
  Tensor w = K::variable(K::random_normal({1, 1, 16, 16})), b = K::variable(K::random_normal({16})),
         v = K::variable(K::random_normal({16, 16})), c = K::variable(K::ones({16}));
  auto step = [&](const Tensor& x) {
    Tensor y = K::relu(K::bias_add(K::conv2d(x, w), b)), loss = K::mean(K::square(K::dot(y, v) + c));
    Tensors all = K::gradients(loss, {w, b, v, c});
    all.push_back(loss);
    return all;
  };
  Tensor x = K::placeholder({K::None, 64, 64, 16});
  kassette::Function f = K::function({x}, step(x));
  const Tensors eager = step(a), got = f({a});
  for (std::int64_t i = 0; i < eager.size(); ++i)
    CHECK(K::max(K::abs(got[i] - eager[i])).item<float>() <= 1e-5f * K::max(K::abs(eager[i])).item<float>());
  const std::int64_t before = kassette::memory_stats().live;
  kassette::reset_peak_memory();
  f({a});
  // Eight images where the convolution, the product and their sums with a bias are kept for their shapes.
  CHECK(kassette::memory_stats().peak - before <= 5 * image);
}

// tests/devices/products_cuda_test.cpp - products on a CUDA device against their definition, in all dtypes, shapes and
// orientations.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/settings.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

struct Dtype {
  const char* name;
  double sum;     // the rounding of sums, relative
  double result;  // that of the result
};
constexpr Dtype kFloats[] = {{"float16", 0x1p-23, 0x1p-10},
                             {"bfloat16", 0x1p-23, 0x1p-7},
                             {"float32", 0x1p-23, 0x1p-23},
                             {"float64", 0x1p-52, 0x1p-52}};
constexpr const char* kIntegers[] = {"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"};

/// A batch of products of m x k by k x n.
struct Product {
  std::int64_t batch, m, k, n;
};
constexpr Product kShapes[] = {{1, 1, 1, 1},    {1, 5, 7, 3},    {1, 33, 65, 17}, {1, 64, 128, 32},
                               {1, 130, 70, 1}, {1, 1, 257, 40}, {3, 9, 31, 20}};

/// Two operands of a dtype, either of them transposed, and the numbers that they hold, which are not.
struct Operands {
  Tensor x, y;
  std::vector<double> a, b;
};
/// The numbers are fractions, or with a `scale` above 1 integers up to half of it.
Operands operands(const Product& s, const char* dtype, bool turn_x, bool turn_y, double scale) {
  auto draw = [&](std::int64_t count, std::uint64_t seed) {
    std::vector<double> v = numbers(static_cast<std::size_t>(count), seed);
    for (double& value : v) value = scale > 1 ? std::floor(value * scale) : value;
    return v;
  };
  Operands o;
  Tensor x = K::cast(f64(draw(s.batch * s.m * s.k, 1), {s.batch, s.m, s.k}), dtype);
  Tensor y = K::cast(f64(draw(s.batch * s.k * s.n, 2), {s.batch, s.k, s.n}), dtype);
  o.a = values(K::cast(x, "float64")), o.b = values(K::cast(y, "float64"));  // as they were rounded
  o.x = K::eval(turn_x ? K::permute_dimensions(x, {0, 2, 1}) : x).to("cuda:0");
  o.y = K::eval(turn_y ? K::permute_dimensions(y, {0, 2, 1}) : y).to("cuda:0");
  return o;
}

/// By the definition: each sum, and the sum of the absolute values of its terms.
void define(const Product& s, const Operands& o, std::vector<double>* sums, std::vector<double>* sizes) {
  for (std::int64_t p = 0; p < s.batch; ++p)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          const double term = o.a[static_cast<std::size_t>((p * s.m + i) * s.k + k)] *
                              o.b[static_cast<std::size_t>((p * s.k + k) * s.n + j)];
          sum += term, size += std::fabs(term);
        }
        sums->push_back(sum), sizes->push_back(size);
      }
}

Tensor product(const Operands& o, bool turn_x, bool turn_y) {
  return K::batch_dot(o.x, o.y, {turn_x ? 1 : 2, turn_y ? 2 : 1});
}

/// Calls f(shape, x is transposed, y is transposed) for all there are.
template <class F>
void each_form(F f) {
  for (const Product& s : kShapes)
    for (bool turn_x : {false, true})
      for (bool turn_y : {false, true}) {
        INFO(s.batch << " of " << s.m << " x " << s.k << " by " << s.k << " x " << s.n
                     << (turn_x ? ", x transposed" : "") << (turn_y ? ", y transposed" : ""));
        f(s, turn_x, turn_y);
      }
}

}  // namespace

TEST_CASE("products of floats on a CUDA device are right within the rounding of their dtype", "[device][products]") {
  if (!has_device("cuda:0")) return;
  for (const Dtype& dtype : kFloats)
    each_form([&](const Product& s, bool turn_x, bool turn_y) {
      Operands o = operands(s, dtype.name, turn_x, turn_y, 1);
      std::vector<double> sums, sizes, got = values(K::cast(product(o, turn_x, turn_y).to("cpu"), "float64"));
      define(s, o, &sums, &sizes);
      REQUIRE(got.size() == sums.size());
      double worst = 0;  // of what is allowed: TF32, with 10 bits of float32's 23, would be hundreds
      for (std::size_t i = 0; i < got.size(); ++i)
        worst = std::max(worst, std::fabs(got[i] - sums[i]) / (static_cast<double>(s.k) * dtype.sum * sizes[i] +
                                                               dtype.result * std::fabs(sums[i]) + 1e-300));
      INFO(dtype.name);
      CHECK(worst <= 1);
    });
}

TEST_CASE("products on a CUDA device are made by cuBLAS' default math, without sums in half precision",
          "[device][products]") {
  if (!has_device("cuda:0")) return;
  auto mode = emulated<int()>("emulated_math_mode");
  if (!mode) return skip("only the emulated device tells");
  for (const char* dtype : {"float16", "float32"}) {
    K::dot(K::ones({2, 3}, dtype).to("cuda:0"), K::ones({3, 4}, dtype).to("cuda:0"));
    CHECK(mode() == 0 + 16);  // CUBLAS_DEFAULT_MATH, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
  }
}

TEST_CASE("one product on a CUDA device is no batch for cuBLAS", "[device][products]") {
  if (!has_device("cuda:0")) return;
  auto batches = emulated<std::int64_t()>("emulated_batches");
  if (!batches) return skip("only the emulated device counts");
  const Tensor x = K::ones({2, 3}).to("cuda:0"), y = K::ones({3, 4}).to("cuda:0"),
               many = K::ones({5, 3, 3}).to("cuda:0");
  const std::int64_t before = batches();
  CHECK(floats(K::dot(x, y)) == std::vector<float>(8, 3));
  CHECK(batches() == before);
  CHECK(floats(K::batch_dot(many, many)) == std::vector<float>(45, 3));
  CHECK(batches() == before + 1);
}

TEST_CASE("where the workspace of cuBLAS cannot be had no handle stays behind, and with more memory a product is right",
          "[device][products]") {
  if (!has_device("cuda:3")) return;  // where no other test multiplies: a handle is made with the first product
  auto handles = emulated<std::int64_t()>("emulated_blas_handles");
  const Tensor x = K::ones({2, 3}).to("cuda:3"), y = K::ones({3, 4}).to("cuda:3");
  const std::int64_t before = handles ? handles() : 0;
  {
    MemoryLimit scope(memory_stats("cuda:3").live + (1 << 20), "cuda:3");
    for (int again = 0; again < 2; ++again)
      CHECK(error_of<MemoryError>([&] { K::dot(x, y); }).rfind("dot: out of memory on cuda:3: 32.0 MiB asked for", 0) ==
            0);
  }
  if (handles) CHECK(handles() == before);
  CHECK(floats(K::dot(x, y)) == std::vector<float>(8, 3));
}

TEST_CASE("products of integers on a CUDA device wrap around as integers do", "[device][products]") {
  if (!has_device("cuda:0")) return;
  for (const char* dtype : kIntegers)
    each_form([&](const Product& s, bool turn_x, bool turn_y) {
      Operands o = operands(s, dtype, turn_x, turn_y, 200);
      std::vector<double> sums, sizes;
      define(s, o, &sums, &sizes);
      std::vector<std::int64_t> exact(sums.begin(), sums.end());  // below 2^53, so that they are
      std::vector<double> wrapped = values(K::cast(K::cast(K::constant(exact, "int64"), dtype), "float64"));
      INFO(dtype);
      CHECK(values(K::cast(product(o, turn_x, turn_y).to("cpu"), "float64")) == wrapped);
    });
}

TEST_CASE("dot on a CUDA device contracts the axes that it contracts on the CPU", "[device][products]") {
  if (!has_device("cuda:0")) return;
  auto pair = [](const std::vector<int>& dx, const std::vector<int>& dy) {
    auto made = [](const std::vector<int>& d, std::uint64_t seed) {
      std::size_t n = 1;
      for (int size : d) n *= static_cast<std::size_t>(size);
      return f64(numbers(n, seed), d);
    };
    return Tensors{made(dx, 3), made(dy, 4)};
  };
  for (const Tensors& t : std::vector<Tensors>{pair({4, 5, 7}, {7, 3}), pair({4, 7}, {2, 7, 3}),
                                               pair({2, 3, 4, 7}, {5, 7, 2}), pair({6, 7}, {7, 1})}) {
    INFO(t[0].shape() << " by " << t[1].shape());
    check_close(values(K::dot(t[0].to("cuda:0"), t[1].to("cuda:0")).to("cpu")), values(K::dot(t[0], t[1])), 1e-13,
                1e-13);
  }
}

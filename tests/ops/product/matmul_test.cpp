// tests/ops/product/matmul_test.cpp - dot, matmul and batch_dot against their definitions.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/numpy.h>
#include <kassette/runtime.h>

#include "devices/cpu/blas.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
namespace K = kassette::backend;

namespace {

using Dimensions = std::vector<std::int64_t>;

TensorSpec spec_of(DType dtype, const Dimensions& d) {
  TensorSpec s(dtype, {});
  for (std::int64_t n : d) s.dims[s.rank++] = n;
  return s;
}

/// Small integers, so that sums are exact in every dtype whatever their order.
template <class T>
Tensor small_numbers(const Dimensions& d, int seed, DType dtype = dtype_of(static_cast<T*>(nullptr))) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Tensor x = empty_tensor(spec_of(dtype, d));
  for (std::int64_t i = 0; i < x.size(); ++i)
    mutable_data<T>(x)[i] = static_cast<T>(static_cast<int>(random() % 7) - 3);
  return x;
}

std::int64_t at(const Dimensions& d, const Dimensions& index) {
  std::int64_t i = 0;
  for (std::size_t k = 0; k < d.size(); ++k) i = i * d[k] + (d[k] == 1 ? 0 : index[k]);
  return i;
}
/// The number of elements between neighbours along an axis of a row-major tensor.
std::int64_t stride_of(const Dimensions& d, std::size_t axis) {
  std::int64_t stride = 1;
  for (std::size_t k = axis + 1; k < d.size(); ++k) stride *= d[k];
  return stride;
}
/// The next index of a shape; false after the last.
bool next(Dimensions& index, const Dimensions& d) {
  for (std::size_t k = d.size(); k-- > 0;) {
    if (++index[k] < d[k]) return true;
    index[k] = 0;
  }
  return false;
}

/// tensordot over axis ax of x and ay of y by its definition, with axis 0 shared when `batched`.
template <class T>
std::vector<T> by_definition(const Tensor& x, const Dimensions& dx, std::size_t ax, const Tensor& y,
                             const Dimensions& dy, std::size_t ay, bool batched) {
  std::size_t first = batched ? 1 : 0;
  Dimensions d;
  if (batched) d.push_back(dx[0]);
  for (std::size_t i = first; i < dx.size(); ++i)
    if (i != ax) d.push_back(dx[i]);
  for (std::size_t i = first; i < dy.size(); ++i)
    if (i != ay) d.push_back(dy[i]);
  std::vector<T> out;
  for (std::int64_t n : d)
    if (n == 0) return out;
  const std::int64_t stride_x = stride_of(dx, ax), stride_y = stride_of(dy, ay);
  Dimensions index(d.size(), 0);
  do {
    Dimensions ix, iy;
    std::size_t p = first;
    if (batched) ix.push_back(index[0]), iy.push_back(index[0]);
    for (std::size_t i = first; i < dx.size(); ++i) ix.push_back(i == ax ? 0 : index[p++]);
    for (std::size_t i = first; i < dy.size(); ++i) iy.push_back(i == ay ? 0 : index[p++]);
    const T *a = x.data<T>() + at(dx, ix), *b = y.data<T>() + at(dy, iy);
    double sum = 0;
    for (std::int64_t k = 0; k < dx[ax]; ++k)
      sum += static_cast<double>(a[k * stride_x]) * static_cast<double>(b[k * stride_y]);
    out.push_back(static_cast<T>(sum));
  } while (next(index, d));
  return out;
}

template <class T>
std::vector<T> values(const Tensor& x) {
  return {x.data<T>(), x.data<T>() + x.size()};
}

template <class T>
void check_dot(const Dimensions& dx, const Dimensions& dy) {
  Tensor x = small_numbers<T>(dx, 1), y = small_numbers<T>(dy, 2);
  Tensor z = K::dot(x, y);
  CHECK(values<T>(z) == by_definition<T>(x, dx, dx.size() - 1, y, dy, dy.size() < 2 ? 0 : dy.size() - 2, false));
}
template <class T>
void check_batch_dot(const Dimensions& dx, const Dimensions& dy, const Axes& axes, std::size_t ax, std::size_t ay,
                     const Shape& shape) {
  Tensor x = small_numbers<T>(dx, 3), y = small_numbers<T>(dy, 4);
  Tensor z = K::batch_dot(x, y, axes);
  CHECK(z.shape() == shape);
  CHECK(values<T>(z) == by_definition<T>(x, dx, ax, y, dy, ay, true));
}

}  // namespace

TEST_CASE("dot follows its definition for every pair of ranks", "[matmul]") {
  std::vector<Dimensions> left{{4}, {2, 4}, {3, 2, 4}, {2, 1, 3, 4}},
      right{{4}, {4, 3}, {2, 4, 5}, {2, 3, 4, 5}, {3, 1, 4, 1}};
  for (const Dimensions& dx : left)
    for (const Dimensions& dy : right) {
      check_dot<float>(dx, dy);
      check_dot<double>(dx, dy);
      check_dot<std::int32_t>(dx, dy);
    }
  CHECK(K::dot(small_numbers<float>({2, 3}, 1), small_numbers<float>({4, 3, 5}, 1)).shape() == Shape{2, 4, 5});
  CHECK(K::dot(small_numbers<float>({32, 28, 3}, 1), small_numbers<float>({3, 4}, 1)).shape() == Shape{32, 28, 4});
  Tensor ones = K::dot(K::ones({2, 7, 3}), K::ones({4, 6, 3, 5}));
  CHECK(ones.shape() == Shape{2, 7, 4, 6, 5});
  CHECK(values<float>(ones) == std::vector<float>(2 * 7 * 4 * 6 * 5, 3.0f));
}

TEST_CASE("dot is right at sizes around every tile border", "[matmul]") {
  for (std::int64_t n : {1, 3, 16, 31, 64, 65, 127, 129}) {
    check_dot<float>({n, n + 1}, {n + 1, n + 2});
    check_dot<double>({n + 2, n}, {n, n});
  }
  check_dot<float>({1, 5000}, {5000, 3});
  check_dot<float>({7, 9000}, {9000, 20});  // a long inner axis
  check_dot<float>({600, 40}, {40});
  check_dot<float>({40}, {40, 600});
  check_dot<float>({257, 300}, {300, 270});
}

TEST_CASE("matmul takes transposes by flag and broadcasts batches", "[matmul]") {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (const Dimensions& batch_a : {Dimensions{}, Dimensions{3}, Dimensions{2, 1}, Dimensions{2, 3}})
        for (const Dimensions& batch_b : {Dimensions{}, Dimensions{3}, Dimensions{1}, Dimensions{2, 3}}) {
          Dimensions da = batch_a, db = batch_b;
          da.push_back(ta ? 5 : 4), da.push_back(ta ? 4 : 5);
          db.push_back(tb ? 6 : 5), db.push_back(tb ? 5 : 6);
          Tensor a = small_numbers<float>(da, 5), b = small_numbers<float>(db, 6), c = matmul(a, b, ta, tb);
          std::size_t batches = std::max(batch_a.size(), batch_b.size());
          REQUIRE(c.ndim() == static_cast<int>(batches) + 2);
          const Shape shape = c.shape();
          Dimensions d(shape.begin(), shape.end()), index(d.size(), 0);
          do {
            Dimensions ia(index.end() - static_cast<std::ptrdiff_t>(da.size()), index.end()),
                ib(index.end() - static_cast<std::ptrdiff_t>(db.size()), index.end());
            float sum = 0;
            for (std::int64_t k = 0; k < 5; ++k) {
              ia[da.size() - 2] = ta ? k : index[d.size() - 2];
              ia[da.size() - 1] = ta ? index[d.size() - 2] : k;
              ib[db.size() - 2] = tb ? index[d.size() - 1] : k;
              ib[db.size() - 1] = tb ? k : index[d.size() - 1];
              sum += a.data<float>()[at(da, ia)] * b.data<float>()[at(db, ib)];
            }
            if (c.data<float>()[at(d, index)] != sum) FAIL("wrong at a place of " << c.shape());
          } while (next(index, d));
        }
}

TEST_CASE("batch_dot contracts one axis of each, given or the default, and keeps that of the batch", "[matmul]") {
  const std::int64_t b = 3;
  check_batch_dot<float>({b, 4}, {b, 4}, None, 1, 1, {b, 1});
  check_batch_dot<float>({b, 4}, {b, 4}, 1, 1, 1, {b, 1});
  check_batch_dot<float>({b, 4}, {b, 4, 5}, None, 1, 1, {b, 5});
  check_batch_dot<float>({b, 4}, {b, 3, 4}, {1, 2}, 1, 2, {b, 3});
  check_batch_dot<float>({b, 4}, {b, 4, 3}, {1, 1}, 1, 1, {b, 3});
  check_batch_dot<float>({b, 3, 4}, {b, 4}, None, 2, 1, {b, 3});
  check_batch_dot<float>({b, 3, 4}, {b, 4, 5}, {2, 1}, 2, 1, {b, 3, 5});
  check_batch_dot<float>({b, 3, 4}, {b, 4, 5}, None, 2, 1, {b, 3, 5});
  check_batch_dot<float>({b, 3, 4}, {b, 5, 4}, 2, 2, 2, {b, 3, 5});
  check_batch_dot<float>({b, 3, 4}, {b, 5, 4}, -1, 2, 2, {b, 3, 5});
  check_batch_dot<float>({b, 3, 4}, {b, 3, 5}, 1, 1, 1, {b, 4, 5});
  check_batch_dot<float>({b, 20, 1}, {b, 30, 20}, {1, 2}, 1, 2, {b, 1, 30});
  check_batch_dot<float>({b, 20}, {b, 30, 20}, {1, 2}, 1, 2, {b, 30});
  check_batch_dot<float>({b, 3, 4, 5}, {b, 2, 3, 4}, {2, 3}, 2, 3, {b, 3, 5, 2, 3});
  check_batch_dot<float>({b, 3, 4, 5}, {b, 2, 4}, 2, 2, 2, {b, 3, 5, 2});
  check_batch_dot<float>({b, 3, 4}, {b, 2, 3, 4}, {2, 3}, 2, 3, {b, 3, 2, 3});
  check_batch_dot<float>({b, 2, 3, 4}, {b, 2, 4, 5}, None, 3, 2, {b, 2, 3, 2, 5});
  check_batch_dot<std::int64_t>({b, 3, 4, 5}, {b, 2, 3, 4}, {2, 3}, 2, 3, {b, 3, 5, 2, 3});
  check_batch_dot<float>({4, 2, 3}, {4, 5, 3}, {2, 2}, 2, 2, {4, 2, 5});
  check_batch_dot<float>({4, 2, 3}, {4, 3}, {2, 1}, 2, 1, {4, 2});
  check_batch_dot<float>({4, 2}, {4, 2, 3}, {1, 1}, 1, 1, {4, 3});
  check_batch_dot<float>({32, 20}, {32, 20}, {1, 1}, 1, 1, {32, 1});
  Tensor z = K::batch_dot(K::constant({{1, 2}, {3, 4}}), K::constant({{5, 6}, {7, 8}}), 1);
  CHECK(values<float>(z) == std::vector<float>{17, 53});
  CHECK(z.shape() == Shape{2, 1});
}

TEST_CASE("products over nothing are zero, products with nothing are empty", "[matmul]") {
  CHECK(values<float>(K::dot(K::ones({2, 0}), K::ones({0, 3}))) == std::vector<float>(6, 0.0f));
  CHECK(K::dot(K::ones({0, 2}), K::ones({2, 3})).shape() == Shape{0, 3});
  CHECK(values<float>(K::batch_dot(K::ones({2, 3, 0}), K::ones({2, 0, 4}))) == std::vector<float>(24, 0.0f));
  CHECK(K::batch_dot(K::ones({0, 3}), K::ones({0, 3})).shape() == Shape{0, 1});
  CHECK(K::dot(K::ones({0}), K::ones({0})).item<float>() == 0);
}

TEST_CASE("nan and inf go through products", "[matmul]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (std::int64_t n : {2, 20, 150}) {
    for (std::int64_t cols : {std::int64_t(1), n}) {
      Tensor x = small_numbers<float>({n, n}, 1), y = K::zeros({n, cols});
      mutable_data<float>(x)[0] = nan;
      mutable_data<float>(x)[n] = inf;
      Tensor z = K::dot(x, y);
      CHECK(std::isnan(z.data<float>()[0]));
      CHECK(std::isnan(z.data<float>()[cols]));
      if (n > 2) CHECK(z.data<float>()[2 * cols] == 0);
    }
  }
}

TEST_CASE("half types sum in float32 and round once; integers wrap", "[matmul]") {
  for (const char* name : {"float16", "bfloat16"}) {
    Tensor ones = K::ones({1, 3000}, DType(std::string(name)));
    CHECK(K::dot(ones, K::ones({3000, 1}, DType(std::string(name)))).item<float>() ==
          (name[0] == 'f' ? 3000.0f : 3008.0f));
  }
  Tensor big = K::constant({100, 100, 100}, "int8");
  CHECK(K::dot(big, big).item<std::int8_t>() == static_cast<std::int8_t>(30000));
}

TEST_CASE("a product has the same bits for any number of threads", "[matmul]") {
  test::SettingsScope restore;
  std::mt19937 random(7);
  auto draw = [&](DType dtype, std::int64_t rows, std::int64_t cols) {
    Tensor x = empty_tensor(TensorSpec(float64, {rows, cols}));
    for (std::int64_t i = 0; i < x.size(); ++i) mutable_data<double>(x)[i] = random() / 4e9 - 0.5;
    return cast(x, dtype);
  };
  struct Sizes {
    std::int64_t m, k, n;
  };
  auto bits_agree = [&](DType dtype, Sizes s, bool transpose_x, bool transpose_y) {
    Tensor x = transpose_x ? draw(dtype, s.k, s.m) : draw(dtype, s.m, s.k),
           y = transpose_y ? draw(dtype, s.n, s.k) : draw(dtype, s.k, s.n);
    set_num_threads(1);
    Tensor one = matmul(x, y, transpose_x, transpose_y);
    for (int threads : {2, 3, 4, 8}) {
      set_num_threads(threads);
      INFO(dtype << " " << s.m << " x " << s.k << " x " << s.n << ", transposed " << transpose_x << transpose_y << ", "
                 << threads << " threads");
      Tensor many = matmul(x, y, transpose_x, transpose_y);
      CHECK(std::memcmp(Access::desc(one).data(), Access::desc(many).data(),
                        static_cast<std::size_t>(Access::desc(one).bytes())) == 0);
    }
  };
  for (Sizes s :
       {Sizes{128, 128, 128}, {300, 200, 250}, {64, 9000, 64}, {1000, 500, 1}, {1, 700, 900}, {1031, 2085, 1}})
    bits_agree(float32, s, false, false);
  // Sides that fit no block, and several blocks along each axis.
  for (DType dtype : {float32, float64})
    for (int transposed = 0; transposed < 4; ++transposed)
      for (Sizes s : {Sizes{256, 64, 512}, {517, 403, 389}, {1021, 130, 259}, {385, 901, 768}, {9001, 37, 21}})
        bits_agree(dtype, s, transposed & 1, transposed & 2);
}

TEST_CASE("a large matrix by a vector gives the sums of its rows, on either side, at every level", "[matmul]") {
  constexpr std::int64_t kRows = 1031, kCols = 2085;  // more than 8 MiB
  for (DType dtype : {float32, float64})
    test::at_every_level([&](Level) {
      std::vector<double> row(kRows), whole(kCols), by(kCols);
      for (std::int64_t i = 0; i < kRows; ++i) row[static_cast<std::size_t>(i)] = static_cast<double>(i % 7 - 3);
      double sum = 0;  // exact: small integers
      for (std::int64_t j = 0; j < kCols; ++j) {
        auto at = static_cast<std::size_t>(j);
        whole[at] = static_cast<double>(j % 5 - 1);
        by[at] = static_cast<double>(j % 11 + j / 1000);
        sum += whole[at] * by[at];
      }
      Tensor left = K::reshape(K::constant(row, dtype), {kRows, 1}),
             a = left * K::reshape(K::constant(whole, dtype), {1, kCols});
      Tensor x = K::constant(by, dtype), expected = left * sum;
      CHECK(K::eval(K::all(K::equal(K::dot(a, K::reshape(x, {kCols, 1})), expected))).item<bool>());
      CHECK(
          K::eval(K::all(K::equal(matmul(K::reshape(x, {1, kCols}), a, false, true), K::reshape(expected, {1, kRows}))))
              .item<bool>());
    });
}

TEST_CASE("products refuse what they cannot do in one line", "[matmul]") {
  Tensor a = K::ones({32, 784}), b = K::ones({512, 10});
  CHECK_THROWS_WITH(K::dot(a, b), "dot: (32, 784) x (512, 10): inner dimensions differ, 784 against 512");
  CHECK_THROWS_AS(K::dot(a, b), ValueError);
  CHECK_THROWS_WITH(K::dot(K::zeros({2, 0}), K::ones({3, 4})),
                    "dot: (2, 0) x (3, 4): inner dimensions differ, 0 against 3");
  CHECK_THROWS_WITH(K::dot(K::zeros({2, 3}), K::ones({0, 4})),
                    "dot: (2, 3) x (0, 4): inner dimensions differ, 3 against 0");
  CHECK_THROWS_WITH(matmul(K::ones({2, 3, 4}), K::ones({5, 4, 3})),
                    "matmul: (2, 3, 4) x (5, 4, 3): batch axes do not broadcast, 2 against 5");
  CHECK_THROWS_WITH(K::dot(K::constant(2.0), a),
                    "dot: () x (32, 784); both must have at least one axis; use * for a number");
  CHECK_THROWS_WITH(K::dot(a, K::ones({784, 2}, "float64")),
                    "dot: float32 and float64; cast one of them (K::cast), tensors are not promoted");
  CHECK_THROWS_WITH(K::dot(K::zeros({2, 2}, "bool"), K::zeros({2, 2}, "bool")),
                    "dot: bool is not a number; cast it first (K::cast)");
  CHECK_THROWS_WITH(K::dot(Tensor(), a),
                    "dot: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::dot(K::zeros({1, 1, 1, 1, 1}), K::zeros({1, 1, 1, 1, 1, 1})),
                    "dot: (1, 1, 1, 1, 1) x (1, 1, 1, 1, 1, 1): rank 9; a tensor has 0 to 8 axes");
  Tensor x = K::ones({2, 3, 4});
  CHECK_THROWS_WITH(K::batch_dot(x, K::ones({3, 4})), "batch_dot: (2, 3, 4) x (3, 4): batch sizes differ, 2 against 3");
  CHECK_THROWS_WITH(K::batch_dot(K::ones({1, 4}), K::ones({2, 4})),
                    "batch_dot: (1, 4) x (2, 4): batch sizes differ, 1 against 2");
  CHECK_THROWS_WITH(K::batch_dot(x, K::ones({2, 5, 3}), 2),
                    "batch_dot: (2, 3, 4) x (2, 5, 3): inner dimensions differ, 4 against 3");
  CHECK_THROWS_WITH(K::batch_dot(x, x, 0), "batch_dot: axes hold 0, the batch axis of x, which cannot be summed over");
  CHECK_THROWS_WITH(K::batch_dot(x, x, {2, -3}),
                    "batch_dot: axes hold -3, the batch axis of y, which cannot be summed over");
  CHECK_THROWS_WITH(K::batch_dot(x, x, 3), "batch_dot: axes hold 3, which is out of range for (2, 3, 4) of rank 3");
  CHECK_THROWS_WITH(K::batch_dot(x, K::ones({2})),
                    "batch_dot: (2, 3, 4) x (2,); both must have at least two axes, the batch and another");
  CHECK_THROWS_WITH(K::batch_dot(x, x, {1, 2, 2}),
                    "batch_dot: axes are 3; there must be one of x and one of y, or one that stands for both");
}

TEST_CASE("a product that is added to a sum is bit-identical to a product and an addition", "[matmul]") {
  auto check = [](auto zero) {
    using T = decltype(zero);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    auto fill = [&](std::size_t n) {
      std::vector<T> v(n);
      for (T& x : v) x = static_cast<T>(normal(random));
      return v;
    };
    const std::vector<T> a = fill(300 * 128), b = fill(128 * 600), start = fill(300 * 600);
    int added = 0;
    for (std::int64_t m : {2, 31, 128, 300})
      for (std::int64_t n : {3, 64, 513, 600})
        for (std::int64_t k : {1, 32, 100, 128, 129})
          for (int t = 0; t < 4; t += kassette::test::kSanitized ? 3 : 1) {  // bits: the first, the second transposed
            if (k == 129 && (m == 300 || n == 600)) continue;
            GemmShape p{m, n, k, (t & 1) != 0, (t & 2) != 0, t & 1 ? m : k, t & 2 ? k : n, n};
            std::vector<T> product(static_cast<std::size_t>(m * n)), sum(start.begin(), start.begin() + m * n);
            multiply(p, {}, a.data(), b.data(), product.data());
            if (!add_product(p, a.data(), b.data(), sum.data())) {
              CHECK(std::equal(sum.begin(), sum.end(), start.begin()));
              continue;
            }
            ++added;
            bool same = true;
            const T *from = start.data(), *added_to = sum.data(), *term = product.data();
            for (std::size_t i = 0; i < sum.size(); ++i) same = same && added_to[i] == from[i] + term[i];
            INFO(m << " x " << n << " x " << k << ", transposed " << t);
            CHECK(same);
          }
    CHECK(added > 100);
  };
  check(0.0f);
  check(0.0);
}

TEST_CASE("OpenBLAS runs each factorisation in the thread that calls it", "[products]") {
  const auto threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (!threads) return kassette::test::skip("another BLAS, or symbols with a suffix");
  kassette::numpy::linalg::cholesky(K::eye(300));
  CHECK(threads() == 1);
}

TEST_CASE("matmul multiplies the matrices of a batch, as NumPy's @ does", "[matmul]") {
  // numpy.arange(12).reshape(2, 2, 3) @ numpy.arange(12).reshape(2, 3, 2), and with the matrices of either alone
  const Tensor x = K::reshape(K::arange(12.0), {2, 2, 3}), y = K::reshape(K::arange(12.0), {2, 3, 2});
  auto flat = [](const Tensor& t) { return K::flatten(t).to_vector<double>(); };
  auto is = [&](const Tensor& t, const kassette::Shape& shape, const std::vector<double>& numbers) {
    CHECK(t.shape() == shape);
    CHECK(std::vector<double>(flat(t)) == numbers);
  };
  is(kassette::matmul(x, y), {2, 2, 2}, {10, 13, 28, 40, 172, 193, 244, 274});
  is(kassette::matmul(x, y[0]), {2, 2, 2}, {10, 13, 28, 40, 46, 67, 64, 94});
  is(kassette::matmul(x[1], y), {2, 2, 2}, {46, 67, 64, 94, 172, 193, 244, 274});
  is(kassette::matmul(K::expand_dims(x, 0), K::expand_dims(y, 1)), {2, 2, 2, 2},
     {10, 13, 28, 40, 46, 67, 64, 94, 28, 31, 100, 112, 172, 193, 244, 274});
  is(kassette::matmul(x, {1, 2, 3}), {2, 2}, {8, 26, 44, 62});
  is(kassette::matmul({1, 2}, x), {2, 3}, {6, 9, 12, 24, 27, 30});
  is(kassette::matmul(x[0], y[0]), {2, 2}, {10, 13, 28, 40});

  // In a function, with the gradient of the sum, which is the sums of rows of y: {1, 5, 9} and {13, 17, 21}.
  const Tensor a = K::placeholder({K::None, K::None, 3}), b = K::placeholder({K::None, 3, 2});
  const Tensor product = kassette::matmul(a, b);
  const Tensors found = K::function({a, b}, {product, K::gradients(K::sum(product), {a})[0]})({x, y});
  is(found[0], {2, 2, 2}, {10, 13, 28, 40, 172, 193, 244, 274});
  is(found[1], {2, 2, 3}, {1, 5, 9, 1, 5, 9, 13, 17, 21, 13, 17, 21});

  CHECK_THROWS_WITH(kassette::matmul(x, x), "matmul: (2, 2, 3) x (2, 2, 3): inner dimensions differ, 3 against 2");
  CHECK_THROWS_AS(kassette::matmul(x, K::placeholder()), ValueError);
  CHECK_THROWS_AS(kassette::matmul(K::placeholder(), y), ValueError);
}

// tests/devices/gemm_test.cpp - the product of two matrices: every size around the blocks, strides, levels, and bits.
#include "devices/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <cblas.h>

#include "devices/cpu/blas.h"
#include "devices/cpu/openblas.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"

using namespace kassette;
using namespace kassette::devices;

namespace {

/// A matrix with some columns of NaN beside it, as it lies if it is a part of another one.
template <class T>
struct Matrix {
  std::int64_t rows, columns, step;
  std::vector<T> data;
  Matrix(std::int64_t r, std::int64_t c, std::int64_t beside)
      : rows(r), columns(c), step(c + beside), data(static_cast<std::size_t>(r * step), T(NAN)) {}
  template <class F>
  void fill(F f) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) at(i, j) = static_cast<T>(f());
  }
  T& at(std::int64_t i, std::int64_t j) { return data[static_cast<std::size_t>(i * step + j)]; }
  const T& at(std::int64_t i, std::int64_t j) const { return data[static_cast<std::size_t>(i * step + j)]; }
};

template <class T>
struct Case {
  bool ta, tb;
  Matrix<T> a, b, out;
  Case(std::int64_t m, std::int64_t n, std::int64_t k, int form, std::int64_t beside)
      : ta(form & 1), tb(form & 2), a(ta ? k : m, ta ? m : k, beside), b(tb ? n : k, tb ? k : n, beside),
        out(m, n, beside) {}
  GemmShape shape() const { return {out.rows, out.columns, ta ? a.rows : a.columns, ta, tb, a.step, b.step, out.step}; }
  T left(std::int64_t i, std::int64_t k) const { return ta ? a.at(k, i) : a.at(i, k); }
  T right(std::int64_t k, std::int64_t j) const { return tb ? b.at(j, k) : b.at(k, j); }
};

/// Small integers, whose sums are exact in any order.
template <class T>
void is_exact(std::int64_t m, std::int64_t n, std::int64_t k, int form, std::int64_t beside) {
  std::mt19937 random(static_cast<unsigned>(m * 31 + n * 7 + k));
  Case<T> c(m, n, k, form, beside);
  c.a.fill([&] { return static_cast<int>(random() % 7) - 3; });
  c.b.fill([&] { return static_cast<int>(random() % 7) - 3; });
  auto wrong = [&](double start) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = start;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(c.left(i, l)) * static_cast<double>(c.right(l, j));
        count += static_cast<double>(c.out.at(i, j)) != sum;
      }
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = n; j < c.out.step; ++j)
        count += !std::isnan(c.out.at(i, j));  // what lies beside is left alone
    return count;
  };
  INFO(m << " x " << k << " x " << n << ", form " << form << ", " << beside << " beside");
  multiply(c.shape(), {}, c.a.data.data(), c.b.data.data(), c.out.data.data());
  CHECK(wrong(0) == 0);
  c.out.fill([] { return 5; });
  const bool added = add_product(c.shape(), c.a.data.data(), c.b.data.data(), c.out.data.data());
  if (added) CHECK(wrong(5) == 0);
  else CHECK(std::count(c.out.data.begin(), c.out.data.end(), T(5)) == m * n);  // unchanged
}

}  // namespace

TEST_CASE("a product is exact for sizes around its blocks, however its matrices lie, at every level", "[products]") {
  test::at_every_level([](Level) {
    for (int form = 0; form < 4; ++form)
      for (std::int64_t beside : {0, 3}) {
        for (std::int64_t m : {1, 2, 14, 15, 29})
          for (std::int64_t n : {1, 3, 16, 17, 33, 65})
            for (std::int64_t k : {1, 19, 385}) {
              is_exact<float>(m, n, k, form, beside);
              is_exact<double>(m, n, k, form, beside);
            }
        is_exact<float>(300, 69, 390, form, beside);  // more rows, and more of k, than are copied at a time
        is_exact<double>(300, 35, 390, form, beside);
        // Rows of A a multiple of a page apart, which are copied, and not, which are read where they lie.
        is_exact<float>(300, 69, 1024, form, beside);
        is_exact<double>(300, 35, 512, form, beside);
        is_exact<float>(30, 2100, 20, form, beside);  // more columns
        is_exact<double>(3, 3, 9000, form, beside);   // k in parts
      }
  });
}

TEST_CASE("the bits of an element of a product do not depend on the other elements", "[products]") {
  auto check = [](auto zero) {
    using T = decltype(zero);
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    for (int form = 0; form < 4; ++form)
      for (std::int64_t k : {20, 500}) {
        Case<T> whole(200, 150, k, form, 0);
        whole.a.fill([&] { return normal(random); });
        whole.b.fill([&] { return normal(random); });
        multiply(whole.shape(), {}, whole.a.data.data(), whole.b.data.data(), whole.out.data.data());
        for (std::int64_t m : {2, 13, 199})
          for (std::int64_t n : {2, 30, 149}) {
            GemmShape part = whole.shape();
            part.m = m;
            part.n = n;
            part.ldo = n;
            std::vector<T> out(static_cast<std::size_t>(m * n));
            multiply(part, {}, whole.a.data.data(), whole.b.data.data(), out.data());
            bool same = true;
            for (std::int64_t i = 0; i < m; ++i)
              same = same && std::memcmp(&out[static_cast<std::size_t>(i * n)], &whole.out.at(i, 0),
                                         static_cast<std::size_t>(n) * sizeof(T)) == 0;
            INFO("k " << k << ", form " << form << ", " << m << " x " << n);
            CHECK(same);
          }
      }
  };
  test::at_every_level([&](Level) {
    check(0.0f);
    check(0.0);
  });
}

TEST_CASE("products are those of OpenBLAS but for rounding", "[products]") {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-1, 1);
  test::at_every_level([&](Level) {
    for (std::int64_t k : {30, 700}) {
      const std::int64_t m = 90, n = 80;
      Case<float> c(m, n, k, 0, 0);
      c.a.fill([&] { return uniform(random); });
      c.b.fill([&] { return uniform(random); });
      multiply(c.shape(), {}, c.a.data.data(), c.b.data.data(), c.out.data.data());
      std::vector<float> theirs(static_cast<std::size_t>(m * n));
      {
        const OpenBlasCall call;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
                    static_cast<int>(k), 1, c.a.data.data(), static_cast<int>(k), c.b.data.data(), static_cast<int>(n),
                    0, theirs.data(), static_cast<int>(n));
      }
      double our_error = 0, their_error = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l)
            sum += static_cast<double>(c.left(i, l)) * static_cast<double>(c.right(l, j));
          our_error = std::max(our_error, std::abs(static_cast<double>(c.out.at(i, j)) - sum));
          their_error =
              std::max(their_error, std::abs(static_cast<double>(theirs[static_cast<std::size_t>(i * n + j)]) - sum));
        }
      INFO("k " << k << ", errors " << our_error << " and " << their_error);
      CHECK(our_error <= 3 * their_error);
    }
  });
}

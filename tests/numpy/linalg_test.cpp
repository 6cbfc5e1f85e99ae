// tests/numpy/linalg_test.cpp - np::linalg by the identities that its results satisfy, on random matrices of all small
// sizes and up to condition 1e12, and at the borders: nothing, singular, not finite, batches, threads.
#include <kassette/numpy.h>
#include <kassette/runtime.h>

#include <cmath>
#include <limits>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace np = kassette::numpy;
namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Doubles = std::vector<double>;

namespace {

Tensor random_matrix(std::int64_t m, std::int64_t n, std::uint64_t seed) {
  return np::reshape(np::array(numbers(static_cast<std::size_t>(m * n), seed)), {m, n});
}
Tensor identity(std::int64_t n) { return np::eye(n, None, 0, float64); }
Tensor t(const Tensor& x) { return np::matrix_transpose(x); }
double largest(const Tensor& x) { return x.size() ? np::max(np::abs(x)).item<double>() : 0; }
/// An orthogonal matrix, and one with singular values from 1 down to 1 / kappa.
Tensor orthogonal(std::int64_t n, std::uint64_t seed) { return np::linalg::qr(random_matrix(n, n, seed)).q; }
Tensor with_condition(std::int64_t n, double kappa, std::uint64_t seed) {
  const Tensor s = np::logspace(0, -std::log10(kappa), n, 10, {.dtype = float64});
  return np::matmul(orthogonal(n, seed) * s, t(orthogonal(n, seed + 1)));
}

}  // namespace

TEST_CASE("the factors of np::linalg multiply to the matrix, for sizes 0 to 65", "[numpy][linalg]") {
  constexpr double kUnit = 0x1p-52;
  for (std::int64_t n = 0; n <= 65; n += n < 20 ? 1 : 5)
    for (const std::int64_t m : {n, n + 3, std::max<std::int64_t>(0, n - 2)}) {
      INFO(m << " x " << n);
      const Tensor x = random_matrix(m, n, static_cast<std::uint64_t>(100 * m + n));
      const double bound = 40 * kUnit * static_cast<double>(std::max<std::int64_t>(1, std::max(m, n)));
      for (const char* mode : {"reduced", "complete"}) {
        const auto [q, r] = np::linalg::qr(x, mode);
        CHECK(largest(np::matmul(q, r) - x) < bound);
        CHECK(largest(np::matmul(t(q), q) - identity(q.shape()[1])) < bound);
        CHECK(q.shape()[1] == (*mode == 'r' ? std::min(m, n) : m));
      }
      const auto [u, s, vh] = np::linalg::svd(x, false);
      CHECK(largest(np::matmul(u * s, vh) - x) < bound);
      CHECK(largest(np::linalg::svdvals(x) - s) < bound);
      const auto full = np::linalg::svd(x);
      CHECK(largest(np::matmul(t(full.u), full.u) - identity(m)) < bound);
      CHECK(largest(np::matmul(full.vh, t(full.vh)) - identity(n)) < bound);
      if (m != n) continue;
      const Tensor symmetric = x + t(x);
      const auto [w, v] = np::linalg::eigh(symmetric);
      CHECK(largest(np::matmul(v * w, t(v)) - symmetric) < 4 * bound);
      CHECK(largest(np::linalg::eigvalsh(symmetric) - w) < 4 * bound);
      const Tensor definite = np::matmul(x, t(x)) + identity(n);
      const Tensor l = np::linalg::cholesky(definite);
      CHECK(largest(np::matmul(l, t(l)) - definite) < static_cast<double>(n + 1) * bound);
      const auto [lu, rows] = np::linalg::lu_factor(x);
      const Tensor k = np::arange(n), below = np::greater(np::expand_dims(k, 1), k), zero = np::zeros_like(lu);
      const Tensor lower = K::switch_(below, lu, zero) + identity(n), upper = K::switch_(below, zero, lu);
      if (n > 0) CHECK(largest(np::matmul(lower, upper) - K::gather(x, rows)) < bound);
      // A v = w v, in real and imaginary parts.
      const auto e = np::linalg::eig(x);
      const Tensor real = np::matmul(x, e.vectors_real) - (e.vectors_real * e.real - e.vectors_imaginary * e.imaginary);
      const Tensor imaginary =
          np::matmul(x, e.vectors_imaginary) - (e.vectors_real * e.imaginary + e.vectors_imaginary * e.real);
      CHECK(largest(real) < 10 * bound);
      CHECK(largest(imaginary) < 10 * bound);
    }
}

TEST_CASE("np::linalg::solve leaves residuals of the rounding of a and x up to condition 1e12", "[numpy][linalg]") {
  int solved = 0;
  for (std::int64_t n = 1; n <= 65; n += 4)
    for (double kappa : {1.0, 1e4, 1e8, 1e12})
      for (std::uint64_t seed : {1u, 2u, 3u}) {
        INFO(n << " with condition " << kappa << ", " << seed);
        const Tensor a = with_condition(n, kappa, 1000 * seed + static_cast<std::uint64_t>(n));
        const Tensor b = random_matrix(n, 2, seed);
        const Tensor x = np::linalg::solve(a, b);
        CHECK(largest(np::matmul(a, x) - b) < 0x1p-52 * 100 * static_cast<double>(n) * (largest(x) + 1));
        ++solved;
      }
  CHECK(solved > 200);
}

TEST_CASE("np::linalg has a gradient of eigenvalues and singular values that is that of the trace and the norm",
          "[numpy][linalg]") {
  const Tensor x = K::variable(random_matrix(5, 5, 3), float64);
  const Tensor symmetric = x + t(x);
  // The eigenvalues' sum is the trace, their squares' that of the elements.
  CHECK(largest(K::gradients(np::sum(np::linalg::eigvalsh(symmetric)), {x})[0] - 2 * identity(5)) < 1e-13);
  CHECK(largest(K::gradients(np::sum(np::square(np::linalg::eigh(symmetric).eigenvalues)), {x})[0] - 4 * symmetric) <
        1e-13);
  CHECK(largest(K::gradients(np::sum(np::square(np::linalg::svdvals(x))), {x})[0] - 2 * x) < 1e-13);
  CHECK(largest(K::gradients(np::linalg::slogdet(x).logabsdet, {x})[0] - t(np::linalg::inv(x))) < 1e-12);
}

TEST_CASE("np::linalg refuses what it cannot do in one line, with the matrix of the batch", "[numpy][linalg]") {
  const Tensor singular = np::concatenate({np::expand_dims(identity(2), 0), np::zeros({1, 2, 2}, float64)});
  CHECK(error_of<ValueError>([&] {
          np::linalg::solve(singular, np::ones({2, 2, 1}, float64));
        }) == "solve: matrix (1,) of those of shape (2, 2, 2) is singular");
  for (const int n : {2, 16, 17, 20}) {  // by loops of our own, and by LAPACK
    const std::string matrix = "the matrix of shape (" + std::to_string(n) + ", " + std::to_string(n) + ")";
    const Tensor row = np::reshape(np::arange(0, n, 1, float64), {1, n}), rank_one = np::matmul(t(row), row);
    CHECK(error_of<ValueError>([&] { np::linalg::inv(np::zeros({n, n})); }) == "inv: " + matrix + " is singular");
    CHECK(error_of<ValueError>([&] { np::linalg::inv(rank_one); }) == "inv: " + matrix + " is singular");
    CHECK(error_of<ValueError>([&] { np::linalg::cholesky(-1 * identity(n)); }) ==
          "cholesky: " + matrix + " is not positive definite");
    CHECK(number(np::linalg::det(rank_one)) == 0);
  }
  CHECK(error_of<ValueError>([&] {
          np::linalg::solve_triangular(np::zeros({2, 2}), np::ones(2));
        }) == "solve_triangular: the matrix of shape (2, 2) is singular");
  CHECK(error_of<ValueError>([&] { np::linalg::qr(np::ones(3)); }) ==
        "qr: x of shape (3,); it must have two axes or more");
  CHECK(error_of<TypeError>([&] {
          np::linalg::det(np::ones({2, 2}, int32));
        }) == "det: x is int32; it must be of floats; cast it first (K::cast)");
  CHECK(error_of<ValueError>([&] {
          np::linalg::norm(np::ones({2, 2, 2}), {.axis = {0, 1, 2}});
        }) == "norm: axis lists 3 axes; a vector has one, a matrix two");
}

TEST_CASE("np::linalg of what is not finite is NaN and ends", "[numpy][linalg]") {
  for (const double bad : {np::nan, np::inf}) {
    const Tensor x = K::switch_(identity(3) > 0, np::full({3, 3}, bad, float64), identity(3));
    for (const Tensor& y : {np::linalg::inv(x), np::linalg::svdvals(x), np::linalg::eigvalsh(x), np::linalg::det(x),
                            np::linalg::cholesky(x), np::linalg::qr(x).r, np::linalg::eig(x).real})
      CHECK(np::all(np::isnan(y)).item<bool>());
  }
}

TEST_CASE("np::linalg of nothing", "[numpy][linalg]") {
  CHECK(np::linalg::det(np::zeros({0, 0})).item<float>() == 1);
  CHECK(np::linalg::inv(np::zeros({3, 0, 0})).shape() == Shape{3, 0, 0});
  CHECK(np::linalg::solve(np::zeros({0, 2, 2}), np::zeros({0, 2, 1})).shape() == Shape{0, 2, 1});
  CHECK(np::linalg::svdvals(np::zeros({0, 3})).shape() == Shape{0});
  CHECK(values(np::linalg::qr(np::zeros({2, 0}), "complete").q) == Doubles{1, 0, 0, 1});
  CHECK(np::linalg::matrix_power(identity(2), 0).shape() == Shape{2, 2});
}

TEST_CASE("np::linalg has the same bits for any number of threads", "[numpy][linalg]") {
  const int threads = num_threads();
  const Tensor x = np::reshape(np::array(numbers(40 * 12 * 12, 9)), {40, 12, 12});
  const Tensor b = np::reshape(np::array(numbers(40 * 12 * 3, 10)), {40, 12, 3});
  Tensors first;
  for (int n : {1, 2, 5}) {
    set_num_threads(n);
    const Tensors all{np::linalg::solve(x, b), np::linalg::svd(x).u, np::linalg::eigh(x + t(x)).eigenvectors,
                      np::linalg::qr(x).q, np::linalg::slogdet(x).logabsdet};
    if (n == 1) first = all;
    for (std::int64_t i = 0; i < all.size(); ++i) CHECK(values(all[i]) == values(first[i]));
  }
  set_num_threads(threads);
}

TEST_CASE("large systems are solved in steps of columns, with the same bits for any number of threads",
          "[numpy][linalg]") {
  for (std::int64_t n : {257, 300, 385, 513}) {
    const Tensor a = random_matrix(n, n, 5), b = random_matrix(n, 131, 6);
    Tensor one;
    for (int threads : {1, 2, 3}) {
      const Threads set(threads);
      const Tensor x = np::linalg::solve(a, b);
      CHECK(largest(np::matmul(a, x) - b) < 1e-9 * static_cast<double>(n));
      if (threads == 1) one = x;
      CHECK(values(x) == values(one));
    }
    const auto f = np::linalg::lu(a);
    CHECK(largest(np::matmul(f.p, np::matmul(f.l, f.u)) - a) < 1e-11);
    CHECK(largest(f.l) <= 1);
    CHECK(error_of<ValueError>([&] { np::linalg::solve(a.at("..., 200").set(0), b); }).find("is singular") !=
          std::string::npos);
  }
}

TEST_CASE("lu, eigvals and matrix_exp keep to their identities, for sizes 0 to 33", "[numpy][linalg]") {
  for (std::int64_t n = 0; n <= 33; n += n < 8 ? 1 : 5) {
    INFO(n);
    const Tensor x = random_matrix(n, n, static_cast<std::uint64_t>(n));
    const double bound = 1e-14 * static_cast<double>(n + 1);
    for (const std::int64_t m : {n, n + 3, std::max<std::int64_t>(0, n - 2)}) {
      const Tensor a = random_matrix(m, n, static_cast<std::uint64_t>(100 * m + n));
      const auto [p, l, u] = np::linalg::lu(a);
      CHECK(l.shape() == Shape{m, std::min(m, n)});
      CHECK(u.shape() == Shape{std::min(m, n), n});
      CHECK(largest(np::matmul(np::matmul(p, l), u) - a) < bound);
      CHECK(largest(np::matmul(t(p), p) - identity(m)) == 0);
      CHECK(largest(np::triu(l, 1)) == 0);
      CHECK(largest(np::diagonal(l) - 1) == 0);
      CHECK(largest(l) <= 1);  // by the largest element of each column
      CHECK(largest(np::tril(u, -1)) == 0);
    }
    const auto [real, imaginary] = np::linalg::eigvals(x);
    const auto e = np::linalg::eig(x);
    CHECK(values(real) == values(e.real));
    CHECK(values(imaginary) == values(e.imaginary));
    CHECK(std::fabs(number(np::sum(real)) - number(np::trace(x))) < 10 * bound);
    // e^x e^-x = 1, det e^x = e^trace x, and e^(w of a symmetric matrix).
    const Tensor exponential = np::linalg::matrix_exp(4 * x);
    const double size = std::max(1.0, largest(exponential) * largest(np::linalg::matrix_exp(-4 * x)));
    CHECK(largest(np::matmul(exponential, np::linalg::matrix_exp(-4 * x)) - identity(n)) < 100 * bound * size);
    CHECK(std::fabs(number(np::linalg::logdet(exponential)) - number(np::trace(4 * x))) < 100 * bound * size);
    const auto [w, v] = np::linalg::eigh(x + t(x));
    const Tensor expected = np::matmul(v * np::exp(w), t(v));
    CHECK(largest(np::linalg::matrix_exp(x + t(x)) - expected) < 10 * bound * std::max(1.0, largest(expected)));
  }
}

TEST_CASE("matrix_exp squares as often as each matrix of a batch needs", "[numpy][linalg]") {
  // Rotations by angles from 0 to 3000 full turns and a quarter, and what falls quickly.
  const double quarter = std::acos(0.0), turns[] = {0, 0.25, 1, 100.25, 3000.25};
  std::vector<double> flat;
  for (double turn : turns)
    for (double sign : {0.0, -1.0, 1.0, 0.0}) flat.push_back(sign * 4 * quarter * turn);
  const Tensor rotations = np::linalg::matrix_exp(np::reshape(np::array(flat), {5, 2, 2}));
  const Tensor zero_or_quarter = np::array({{{1, 0}, {0, 1}}, {{0, -1}, {1, 0}}}, float64);
  for (int i = 0; i < 5; ++i) CHECK(largest(rotations[i] - zero_or_quarter[i == 0 || i == 2 ? 0 : 1]) < 1e-11);
  CHECK(largest(np::linalg::matrix_exp(np::array({{-1e9, 0}, {0, -2}}, float64)) -
                np::array({{0., 0.}, {0., std::exp(-2)}}, float64)) < 1e-7);
  const Tensor nothing = np::linalg::matrix_exp(np::array({{{NAN, 0}, {0, 1}}, {{0, 1}, {0, 0}}}, float64));
  CHECK(std::isnan(number(nothing[0](0, 0))));
  CHECK(values(nothing[1]) == Doubles{1, 1, 0, 1});  // and its neighbour has all digits
  CHECK(std::isnan(number(np::linalg::matrix_exp(np::array({{1e30, 0}, {0, 0}}, float64))(0, 0))));
  CHECK(std::isnan(number(np::linalg::logdet(np::array({{0, 1}, {1, 0}}, float64)))));
  CHECK(number(np::linalg::logdet(np::zeros({2, 2}))) == -INFINITY);
}

TEST_CASE("tensorsolve and tensorinv undo tensordot, wherever the axes are", "[numpy][linalg]") {
  const Tensor a = np::reshape(random_matrix(24, 24, 3) + 4 * identity(24), {2, 3, 4, 6, 4});
  const Tensor b = np::reshape(random_matrix(6, 4, 4), {2, 3, 4});
  const Tensor x = np::linalg::tensorsolve(a, b);
  CHECK(x.shape() == Shape{6, 4});
  CHECK(largest(np::tensordot(a, x, 2) - b) < 1e-12);
  CHECK(largest(np::linalg::tensorsolve(np::moveaxis(a, 3, 0), b, 0) - np::transpose(x)) < 1e-12);
  const Tensor inverse = np::linalg::tensorinv(a, 3);
  CHECK(inverse.shape() == Shape{6, 4, 2, 3, 4});
  CHECK(largest(np::tensordot(inverse, b, 3) - x) < 1e-12);
}

TEST_CASE("lu, tensors of equations and made matrices refuse in one line", "[numpy][linalg]") {
  CHECK(error_of<ValueError>([] { np::linalg::lu(np::zeros(3)); }) ==
        "lu: x of shape (3,); it must have matrices in its last axes");
  CHECK(error_of<ValueError>([] { np::linalg::matrix_exp(np::zeros(3)); }) ==
        "matrix_exp: x of shape (3,); it must have two axes or more");
  CHECK(error_of<TypeError>([] { np::linalg::matrix_exp(np::zeros({2, 2}, int32)); }) != "no error");
  CHECK(error_of<ValueError>([] {
          np::linalg::tensorsolve(np::zeros({2, 3, 5}), np::zeros({2, 3}));
        }) == "tensorsolve: a of shape (2, 3, 5); its first 2 axes must have as many elements as the others");
  CHECK(error_of<ValueError>([] {
          np::linalg::tensorsolve(np::zeros({2, 2}), np::zeros({2, 2, 2}));
        }) == "tensorsolve: a has fewer axes than b; its first are those of b");
  CHECK(error_of<ValueError>([] {
          np::linalg::tensorsolve(np::zeros({2, 2}), np::zeros({2}));
        }) == "tensorsolve: the matrix of shape (2, 2) is singular");
  CHECK(error_of<ValueError>([] {
          np::linalg::tensorinv(np::zeros({2, 2}), 0);
        }) == "tensorinv: ind is 0; x has 2 axes, of which it counts some");
  CHECK(error_of<ValueError>([] {
          np::linalg::toeplitz({1, 2}, {{1, 2}});
        }) == "toeplitz: r of shape (1, 2); it must be a vector");
  CHECK(error_of<ValueError>([] {
          np::linalg::block_diag({np::zeros({1, 2, 2})});
        }) == "block_diag: x holds a tensor of shape (1, 2, 2); they must be matrices");
  CHECK(error_of<ValueError>([] { np::linalg::block_diag({}); }) ==
        "block_diag: x is an empty list; there must be a tensor");
}

TEST_CASE("distances are as exact far from 0, and have no gradient where rows are equal", "[numpy][linalg]") {
  for (const double offset : {0.0, 1e6}) {
    const Tensor x = K::variable(np::array({{0, 0}, {3, 4}, {1, 1}}) + offset),
                 y = K::variable(np::array({{0, 0}, {1, 1}}) + offset);
    for (const double p : {2.0, 3.0, 1.0}) {
      INFO(offset << " " << p);
      const Tensor d = np::cdist(x, y, p);
      const double far = p == 2 ? 5 : p == 1 ? 7 : std::cbrt(27 + 64);
      const double near = p == 2 ? std::sqrt(2) : p == 1 ? 2 : std::cbrt(2);
      CHECK(std::fabs(d(1, 0).item<double>() - far) < 1e-6);
      CHECK(std::fabs(d(2, 0).item<double>() - near) < 1e-6);
      CHECK(d(0, 0).item<double>() == 0);
      const Tensors g = K::gradients(K::sum(d), {x, y});
      // (1, 1) is as far from (0, 0) as that is from it, and at no distance from itself.
      const double slope = p == 2 ? std::sqrt(0.5) : p == 1 ? 1 : std::pow(2, -2.0 / 3);
      CHECK(largest(g[0](2, all) - slope) < 1e-6);
      CHECK(largest(g[0](0, all) + slope) < 1e-6);
    }
  }
  // The same points as both arguments: what pulls one of a pair pulls the other back.
  const Tensor x = K::variable(np::array({{0, 0}, {3, 4}, {1, 1}}));
  CHECK(largest(K::sum(K::gradients(K::sum(np::cdist(x, x)), {x})[0], 0)) < 1e-6);
  for (const double p : {2.0, 3.0}) {
    const Tensor zero = K::variable(np::zeros(3));
    CHECK(values(K::gradients(np::linalg::vector_norm(zero, {.ord = p}), {zero})[0]) == std::vector<double>{0, 0, 0});
  }
}

TEST_CASE("many matrices without elements take no time", "[numpy]") {
  const std::int64_t many = std::int64_t{1} << 40;
  for (const Shape& shape : {Shape{many, 0, 0}, Shape{many, 4, 0, 0}, Shape{0, many, 3, 3}}) {
    const Tensor x = np::zeros(shape);
    for (const Tensor& y :
         {np::linalg::inv(x), np::linalg::cholesky(x), np::linalg::lu_factor(x).lu, np::linalg::eigh(x).eigenvectors,
          np::linalg::eigvalsh(x), np::linalg::eig(x).real, np::linalg::svd(x).vh, np::linalg::svdvals(x),
          np::linalg::qr(x).q, np::linalg::solve(x, x), np::linalg::solve_triangular(x, x)})
      CHECK(y.size() == 0);
  }
  const Tensor x = K::variable(np::zeros({many, 0, 1}));
  CHECK(np::linalg::svdvals(x).shape() == Shape{many, 0});
}

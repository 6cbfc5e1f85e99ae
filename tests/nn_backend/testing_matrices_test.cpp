// tests/nn_backend/testing_matrices_test.cpp - the random matrices of <kassette/testing.h>, by the properties that they
// are named for.
#include <kassette/numpy.h>
#include <kassette/testing.h>

#include <cmath>

#include "tests/catch.h"
#include "tests/results.h"

namespace np = kassette::numpy;
namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

double largest(const Tensor& x) { return x.size() ? np::max(np::abs(x)).item<double>() : 0; }
Tensor t(const Tensor& x) { return np::matrix_transpose(x); }

}  // namespace

TEST_CASE("random matrices of testing.h are orthogonal, definite and of their condition", "[testing]") {
  const testing::Random random(3);
  for (const std::int64_t n : {0, 1, 2, 3, 17, 65}) {
    INFO("n = " << n);
    const Tensor one = np::eye(n, None, 0, float64);
    const Tensor q = testing::random_orthogonal(n);
    CHECK(q.shape() == Shape{n, n});
    CHECK(largest(np::matmul(q, t(q)) - one) < 1e-13);
    const Tensor a = testing::random_spd(n, 1e6);
    CHECK(largest(a - t(a)) == 0);
    if (n > 0) CHECK(number(np::max(np::linalg::eigvalsh(a))) < 1 + 1e-12);
    if (n > 1) CHECK(std::fabs(number(np::min(np::linalg::eigvalsh(a))) * 1e6 - 1) < 1e-8);
    const Tensor x = testing::conditioned(n, 1e12);
    if (n > 1) CHECK(std::fabs(std::log10(number(np::linalg::cond(x))) - 12) < 1e-3);
    if (n == 1) CHECK(std::fabs(std::fabs(number(x)) - 1) < 1e-15);
  }
  const Tensor many = testing::conditioned(3, 10, {.batch = {2, 4}, .dtype = float32});
  CHECK(many.shape() == Shape{2, 4, 3, 3});
  CHECK(many.dtype() == float32);
  CHECK(largest(np::astype(np::linalg::cond(many), float64) - 10) < 1e-3);
}

TEST_CASE("random_orthogonal prefers no direction", "[testing]") {
  // The mean of the elements is 0 and that of their squares 1 / n, that of the determinant's sign 0; of Householder's q
  // without its signs corrected, the first element is never positive.
  const testing::Random random(1);
  const Tensor q = testing::random_orthogonal(2, {.batch = 4000});
  CHECK(largest(np::mean(q, 0)) < 0.05);
  CHECK(largest(np::mean(np::square(q), 0) - 0.5) < 0.03);
  CHECK(std::fabs(number(np::mean(np::linalg::det(q)))) < 0.06);
}

TEST_CASE("random matrices of testing.h repeat with their seed", "[testing]") {
  auto drawn = [](std::int64_t seed) {
    const testing::Random random(seed);
    static_cast<void>(testing::random_orthogonal(3));
    return testing::random_spd(3);
  };
  CHECK(largest(drawn(1) - drawn(1)) == 0);
  CHECK(largest(drawn(1) - drawn(2)) > 0);
  CHECK(largest(testing::random_spd(3) - testing::random_spd(3)) == 0);
  CHECK(error_of<ValueError>([] { testing::random_spd(-1); }) == "random_spd: n is -1; it must be at least 0");
  CHECK(error_of<ValueError>([] { testing::conditioned(3, 0.5); }) ==
        "conditioned: kappa is 0.5; it must be at least 1, and finite");
  CHECK(error_of<ValueError>([] { testing::random_spd(2, 10, {.batch = None}); }) ==
        "random_spd: batch is no list of at most 6 numbers");
  CHECK(error_of<TypeError>([] { testing::random_orthogonal(3, {.dtype = int32}); }) ==
        "random_orthogonal: dtype is int32; it must be a float dtype");
}

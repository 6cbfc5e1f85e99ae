// tests/ops/reduce/long_scans_test.cpp - running sums of long rows, which are made of pieces: exact for whole numbers,
// never decreasing, with the same bits for any number of threads.
#include <kassette/backend.h>
#include <kassette/numpy.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using namespace kassette;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;
constexpr int kPiece = 8200, kLong = 2 * 4 * kPiece;  // Note [Long sums]

}  // namespace

TEST_CASE("running sums of whole numbers are exact at every length around pieces", "[reduce][scan]") {
  for (const int n : {kLong - 1, kLong, kLong + 1, kLong + kPiece - 1, kLong + kPiece, 3 * kLong + 17})
    for (const int rows : {1, 3, 5}) {
      INFO(rows << " rows of " << n);
      Doubles x, sums, from_end(static_cast<std::size_t>(rows * n));
      for (int i = 0; i < rows * n; ++i) {
        x.push_back(i % 7 - i % 3);
        sums.push_back(x.back() + (i % n ? sums.back() : 0));
      }
      for (int i = rows * n - 1; i >= 0; --i) from_end[i] = x[i] + ((i + 1) % n ? from_end[i + 1] : 0);
      for (const char* dtype : {"int64", "float32", "float64"}) {
        INFO(dtype);
        const Tensor t = K::reshape(K::cast(K::constant(x, "float64"), dtype), {rows, n});
        CHECK(values(np::cumsum(t, 1)) == sums);
        const Tensor w = K::variable(K::zeros({rows, n}, "float64"), "float64");
        CHECK(values(K::gradients(K::sum(np::cumsum(w, 1) * K::cast(t, "float64")), {w})[0]) == from_end);
      }
    }
}

TEST_CASE("running sums of a long row never decrease and do not depend on threads", "[reduce][scan]") {
  for (const char* dtype : {"float32", "float64", "float16"}) {
    INFO(dtype);
    const Tensor x = K::random_uniform({3 * kLong + 5}, 0, 1e-3, dtype, 7);
    Doubles one, three;
    {
      const Threads threads(1);
      one = values(np::cumsum(x));
    }
    {
      const Threads threads(3);
      three = values(np::cumsum(x));
    }
    CHECK(one == three);
    CHECK(std::is_sorted(one.begin(), one.end()));
  }
}

TEST_CASE("infinities and NaN stay to the end of a running sum", "[reduce][scan]") {
  const Tensor x = K::zeros({kLong + 3}), y = np::cumsum(x.at(kPiece - 1).set(INFINITY)),
               z = np::cumsum(x.at(kPiece).set(NAN).at(3).set(2));
  CHECK(values(np::unique(y)) == Doubles{0, INFINITY});
  CHECK(K::sum(K::cast(np::isinf(y), "float32")).item<float>() == 4 + kLong - kPiece);
  CHECK(K::sum(K::cast(np::isnan(z), "float32")).item<float>() == 3 + kLong - kPiece);
  CHECK(values(z(slice(0, 5))) == Doubles{0, 0, 0, 2, 2});
}

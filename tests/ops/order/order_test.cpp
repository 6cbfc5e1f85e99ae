// tests/ops/order/order_test.cpp - sort, argsort, top_k and searchsorted: against NumPy, and long rows against
// std::stable_sort.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

#include "ops/elementwise/arithmetic.h"
#include "ops/order/order.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sources.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;

/// A line of order_cases.txt.
struct Case {
  std::string line, function, dtype;
  std::int64_t first, second;
  std::vector<std::vector<std::string>> parts;
  Shape shape(std::size_t i) const {
    std::vector<std::int64_t> dims;
    for (const std::string& word : parts[2 * i]) dims.push_back(std::stoll(word));
    return Shape(dims.data(), static_cast<int>(dims.size()));
  }
  /// Integers go by int64, whose bits those of uint64 have.
  Tensor array(std::size_t i) const {
    const DType to(dtype);
    if (to.is_float()) {
      Doubles v;
      for (const std::string& word : parts[2 * i + 1]) v.push_back(std::stod(word));
      return K::cast(K::constant(v, float64, shape(i)), to);
    }
    return K::cast(K::constant(integers(i), int64, shape(i)), to);
  }
  std::vector<std::int64_t> integers(std::size_t i) const {
    std::vector<std::int64_t> v;
    for (const std::string& word : parts[2 * i + 1])
      v.push_back(word[0] == '-' ? std::stoll(word) : static_cast<std::int64_t>(std::stoull(word)));
    return v;
  }
};

std::vector<Case> order_cases() {
  std::vector<Case> cases;
  std::ifstream file(kSourceTree / "tests/data/order_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Case c{line.substr(0, 80), "", "", 0, 0, {}};
    words >> c.function >> c.dtype >> c.first >> c.second;
    for (std::string word; words >> word;) {
      if (word == "|") c.parts.emplace_back();
      else c.parts.back().push_back(word);
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

/// The bits, with one for all NaNs.
std::vector<std::int64_t> bits(const Tensor& x) {
  if (!x.dtype().is_float()) return values<std::int64_t>(K::cast(x, int64));
  std::vector<std::int64_t> all;
  for (double v : values<double>(K::cast(x, float64))) {
    if (std::isnan(v)) v = NAN;
    std::int64_t b;
    std::memcpy(&b, &v, sizeof b);
    all.push_back(std::isnan(v) ? -1 : b);
  }
  return all;
}

template <class T>
std::vector<T> many(std::size_t n) {
  std::mt19937_64 draw(7);
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<std::int64_t>(draw() % 100000) - 50000);
  if constexpr (std::is_floating_point_v<T>)
    for (std::size_t i = 0; i < n; i += 1000) v[i] = i % 3000 ? T(-0.0) : std::numeric_limits<T>::quiet_NaN();
  return v;
}
template <class T>
void check_long(std::size_t n) {
  const std::vector<T> v = many<T>(n);
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return v[a] < v[b] || (v[b] != v[b] && v[a] == v[a]); });
  const Tensor x = K::constant(v, dtype_of(static_cast<T*>(nullptr)));
  const int threads = num_threads();
  for (int t : {1, 2, 5}) {
    set_num_threads(t);
    CHECK(values<std::int64_t>(ops::argsort(x)) == order);
    std::vector<T> sorted(n), got = values<T>(ops::sort(x));
    for (std::size_t i = 0; i < n; ++i) sorted[i] = v[order[i]];
    CHECK(std::memcmp(sorted.data(), got.data(), n * sizeof(T)) == 0);
  }
  set_num_threads(threads);
}

}  // namespace

TEST_CASE("sort, argsort, top_k and searchsorted are NumPy's", "[order]") {
  int compared = 0;
  for (const Case& c : order_cases()) {
    INFO(c.line);
    ++compared;
    const Tensor x = c.array(0);
    const int axis = static_cast<int>(c.first);
    if (c.function == "sort") {
      const Tensor y = ops::sort(x, axis, c.second != 0);
      CHECK(y.shape() == c.shape(1));
      CHECK(y.dtype() == x.dtype());
      CHECK(bits(y) == bits(c.array(1)));
    } else if (c.function == "argsort") {
      const Tensor y = ops::argsort(x, axis, c.second != 0);
      CHECK(y.dtype() == int64);
      CHECK(values<std::int64_t>(y) == c.integers(1));
    } else if (c.function == "top_k") {
      const ops::TopK top = ops::top_k(x, c.second, axis);
      CHECK(top.indices.shape() == c.shape(1));
      CHECK(values<std::int64_t>(top.indices) == c.integers(1));
      CHECK(top.values.shape() == c.shape(1));
    } else {
      CHECK(values<std::int64_t>(ops::searchsorted(x, c.array(1), c.first ? ops::Side::right : ops::Side::left)) ==
            c.integers(2));
    }
  }
  CHECK(compared > 500);
}

TEST_CASE("long rows are sorted stably, with the same bits for any number of threads", "[order]") {
  check_long<float>(300001);
  check_long<double>(200003);
  check_long<std::int32_t>(300001);
  check_long<std::int64_t>(200003);
  check_long<std::int16_t>(200003);
}

TEST_CASE("top_k of many elements is the beginning of a descending sort", "[order]") {
  const Tensor x = K::constant(many<float>(30000), float32, {3, 10000});
  const Tensor order = ops::argsort(x, -1, true);
  for (std::int64_t k : {1, 10, 64, 65, 1000, 10000}) {
    const ops::TopK top = ops::top_k(x, k);
    CHECK(values<std::int64_t>(top.indices) == values<std::int64_t>(order(all, slice(0, k))));
    CHECK(bits(top.values) == bits(ops::sort(x, -1, true)(all, slice(0, k))));
  }
}

TEST_CASE("searchsorted searches each row of a", "[order]") {
  const Tensor a = K::constant({{1, 3, 5}, {2, 2, 4}}, float32), v = K::constant({{3, 0}, {2, 9}}, float32);
  CHECK(values(ops::searchsorted(a, v)) == Doubles{1, 0, 0, 3});
  CHECK(values(ops::searchsorted(a, v, ops::Side::right)) == Doubles{2, 0, 2, 3});
}

TEST_CASE("what cannot be sorted is an error of one line", "[order]") {
  const Tensor x = K::constant({{1, 3, 5}, {2, 2, 4}}, float32);
  CHECK_THROWS_WITH(ops::sort(x, 2), "sort: axis 2 is out of range for (2, 3) of rank 2");
  CHECK_THROWS_WITH(ops::top_k(x, 4), "top_k: k is 4, x of shape (2, 3) has 3 along axis 1");
  CHECK_THROWS_WITH(ops::top_k(x, -1), "top_k: k is -1; it must not be negative");
  CHECK_THROWS_WITH(
      ops::searchsorted(x, K::constant({1, 2}, float32)),
      "searchsorted: v of shape (2,) and a of shape (2, 3); a must have rank 1, or the shape of v but for "
      "the last axis");
  CHECK_THROWS_WITH(ops::searchsorted(x, K::cast(x, float64)),
                    "searchsorted: v is float64, a is float32; cast one of them");
}

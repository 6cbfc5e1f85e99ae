// tests/ops/shape/indexing_cases_test.cpp - x(i, j, ...) with several tensors and masks: against NumPy, on
// placeholders, and what is refused.
#include <kassette/backend.h>

#include <iterator>
#include <sstream>
#include <vector>

#include "ops/shape/positions.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sources.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;
using Longs = std::vector<std::int64_t>;

/// A line of indexing_cases.txt.
struct Case {
  std::string line, what;
  Shape shape, result;
  std::vector<Index> indices;  // which refer to `tensors`
  std::vector<Tensor> tensors;
  bool refused = false;
  Tensor value;
  Longs elements;
};

Longs numbers(const std::string& text) {
  std::istringstream in(text);
  return Longs(std::istream_iterator<std::int64_t>(in), {});
}
Shape shape_in(const std::string& text) {
  const Longs dims = numbers(text);
  return Shape(dims.data(), static_cast<int>(dims.size()));
}
std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts{""};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, by.size(), by) != 0) parts.back() += text[i];
    else parts.emplace_back(), i += by.size() - 1;
  }
  return parts;
}
Scalar bound(const std::string& text) { return text.empty() ? Scalar(None) : Scalar(std::stol(text)); }

void read_index(Case& c, const std::string& word) {
  if (word == "newaxis") return c.indices.push_back(newaxis);
  if (word == "...") return c.indices.push_back(ellipsis);
  if (word[0] == 'i' || word[0] == 'b') {
    const auto parts = split(word.substr(1), ";");
    const Tensor all = K::constant(numbers(parts[1]), int64, shape_in(parts[0]));
    c.tensors.push_back(word[0] == 'b' ? K::cast(all, bool_) : c.tensors.size() % 2 ? K::cast(all, int32) : all);
    return c.indices.push_back(c.tensors.back());
  }
  const auto bounds = split(word, ":");
  if (bounds.size() == 1) return c.indices.push_back(Index(std::stol(word)));
  c.indices.push_back(slice(bound(bounds[0]), bound(bounds[1]), bound(bounds[2])));
}

std::vector<Case> indexing_cases() {
  std::istringstream file(text_of(kSourceTree / "tests/data/indexing_cases.txt"));
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    const auto parts = split(line + " ", " | ");
    Case c{line.substr(0, 100), parts[0], shape_in(parts[1]), {}, {}, {}, false, {}, {}};
    c.tensors.reserve(8);
    if (!parts[2].empty())
      for (const std::string& word : split(parts[2], " , ")) read_index(c, word);
    std::size_t at = 3;
    if (c.what != "get") {
      const Shape of = shape_in(parts[at++]);
      std::int64_t n = 1;
      for (std::int64_t size : of) n *= size;
      c.value = K::reshape(K::arange(2, n + 2, 1, "int64"), Dims(of));
    }
    c.refused = parts[at] == "error";
    if (!c.refused) c.result = shape_in(parts[at]);
    c.elements = numbers(parts[at + 1]);
    cases.push_back(std::move(c));
  }
  return cases;
}

Tensor whole(const Case& c) {
  std::int64_t n = 1;
  for (std::int64_t size : c.shape) n *= size;
  return K::reshape(K::arange(n, None, 1, "int64"), Dims(c.shape));
}
/// Calls f with the indices, `tensors` in the place of those among them.
template <class F>
Tensor with_indices(const Case& c, const std::vector<Tensor>& tensors, F f) {
  Index i[8];
  std::size_t n = 0, k = 0;
  for (const Index& index : c.indices) {
    const bool is_tensor = n < tensors.size() && Access::kind(index) == Index::kTensor;
    i[k++] = is_tensor ? Index(tensors[n++]) : index;
  }
  return f(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]);
}
Tensor get(const Tensor& x, const Case& c, const std::vector<Tensor>& tensors) {
  return with_indices(c, tensors, [&](const auto&... i) { return x(i...); });
}
Tensor put(const Tensor& x, const Case& c, const std::vector<Tensor>& tensors, const Tensor& v) {
  return with_indices(c, tensors, [&](const auto&... i) {
    if (c.what == "set") return x.at(i...).set(v);
    if (c.what == "add") return x.at(i...).add(v);
    if (c.what == "multiply") return x.at(i...).multiply(v);
    return c.what == "min" ? x.at(i...).min(v) : x.at(i...).max(v);
  });
}

}  // namespace

TEST_CASE("every mixture of indices selects what NumPy selects", "[indexing]") {
  int n = 0;
  for (const Case& c : indexing_cases()) {
    if (c.what != "get") continue;
    INFO(c.line);
    ++n;
    if (c.refused) {
      CHECK_THROWS_AS(get(whole(c), c, c.tensors), ValueError);
      continue;
    }
    const Tensor y = get(whole(c), c, c.tensors);
    CHECK(y.shape() == c.result);
    CHECK(values<std::int64_t>(y) == c.elements);
  }
  CHECK(n > 250);
}

TEST_CASE("indices on placeholders select the same", "[indexing]") {
  for (const Case& c : indexing_cases()) {
    if (c.what != "get" || c.refused || c.indices.empty()) continue;
    INFO(c.line);
    Tensor x = K::placeholder(None, c.shape.size(), "int64");
    Tensors feeds{x}, given{whole(c)};
    std::vector<Tensor> tensors;
    for (const Tensor& t : c.tensors) {
      tensors.push_back(K::placeholder(None, t.ndim(), t.dtype()));
      feeds.push_back(tensors.back());
      given.push_back(t);
    }
    const Tensor y = get(x, c, tensors);
    CHECK(y.ndim() == c.result.size());
    const Tensor got = K::function(feeds, {y})(given)[0];
    CHECK(got.shape() == c.result);
    CHECK(values<std::int64_t>(got) == c.elements);
  }
}

TEST_CASE("values at every kind of index are what NumPy makes", "[indexing]") {
  int n = 0;
  for (const Case& c : indexing_cases()) {
    if (c.what == "get") continue;
    INFO(c.line);
    ++n;
    if (c.refused) {
      CHECK_THROWS_AS(put(whole(c), c, c.tensors, c.value), ValueError);
      continue;
    }
    for (const char* dtype : {"int64", "float32", "float16"}) {
      const Tensor y = put(K::cast(whole(c), dtype), c, c.tensors, K::cast(c.value, dtype));
      CHECK(y.shape() == c.shape);
      if (DType(dtype) != float16 || c.what != "multiply") CHECK(values<std::int64_t>(K::cast(y, int64)) == c.elements);
    }
    Tensor x = K::placeholder(None, c.shape.size(), "int64"), v = K::placeholder(None, c.value.ndim(), "int64");
    Tensors feeds{x, v}, given{whole(c), c.value};
    std::vector<Tensor> tensors;
    for (const Tensor& t : c.tensors) {
      tensors.push_back(K::placeholder(None, t.ndim(), t.dtype()));
      feeds.push_back(tensors.back());
      given.push_back(t);
    }
    CHECK(values<std::int64_t>(K::function(feeds, {put(x, c, tensors, v)})(given)[0]) == c.elements);
  }
  CHECK(n > 150);
}

TEST_CASE("the size of a mask's result is what its values give, or unknown", "[indexing]") {
  Tensor x = K::reshape(K::arange(6, None, 1, "float32"), {2, 3}), m = x > 2.5;
  CHECK(x[m].shape() == Shape{3});
  Tensor p = K::placeholder({2, 3}), taken = p[p > 2.5], g = K::gradients(K::sum(K::square(taken)), {p})[0];
  CHECK(K::int_shape(taken)[0] == None);
  auto f = K::function({p}, {taken, g});
  CHECK(values(f({x})[0]) == Doubles{3, 4, 5});
  CHECK(values(f({x})[1]) == Doubles{0, 0, 0, 6, 8, 10});
  CHECK(values(f({-x})[0]).empty());
  CHECK(values(f({-x})[1]) == Doubles(6));
}

TEST_CASE("bad index tensors are refused with their axis", "[indexing][bad]") {
  Tensor x = K::zeros({2, 3, 4}), i = K::constant({0, 1}, "int32"), far = K::constant({1, 3}, "int32");
  CHECK_THROWS_WITH(x(i, far), "index: index 3 is out of range for axis 1 of size 3");
  CHECK_THROWS_WITH(x(far - 5, all, i), "index: index -4 is out of range for axis 0 of size 2");
  CHECK_THROWS_WITH(x(i, 0, far + 1), "index: index 4 is out of range for axis 2 of size 4");
  CHECK_THROWS_WITH(x(0, 0, K::constant({4}, "int32")), "index: index 4 is out of range for an axis of size 4");
  CHECK_THROWS_WITH(x(i, i, i, i), "index: 4 indices for a tensor of shape (2, 3, 4)");
  CHECK_THROWS_WITH(x(i, K::constant({0, 1, 2}, "int32")), "index: shapes (2,) and (3,) do not broadcast: 2 against 3");
  CHECK_THROWS_WITH(x(all, K::ones({2, 4}) > 0),
                    "index: a mask of shape (2, 4) at axis 1 of a tensor of shape (2, 3, 4); its sizes must be those "
                    "of the axes");
  CHECK_THROWS_WITH(x[K::zeros({2, 3, 4, 1}) > 0], "index: 4 indices for a tensor of shape (2, 3, 4)");
  Tensor p = K::placeholder(None, None);
  CHECK_THROWS_WITH(p(i, i), "index: a tensor of unknown rank; the rank of all must be known here");
  CHECK_THROWS_AS(K::function({p}, {p[K::ones({2}) > 0]})({K::zeros({3})}), ValueError);
}

TEST_CASE("nonzero lists indices in row-major order", "[indexing]") {
  Tensor x = K::constant({{0, 2, 0}, {0.5, 0, -1}});
  const Longs expected{0, 1, 1, 0, 1, 2};
  CHECK(values<std::int64_t>(ops::nonzero(x)) == expected);
  CHECK(ops::nonzero(x).shape() == Shape{3, 2});
  CHECK(ops::nonzero(x * 0).shape() == Shape{0, 2});
  CHECK(ops::nonzero(K::zeros({0, 3, 2})).shape() == Shape{0, 3});
  CHECK(ops::nonzero(x).dtype() == int64);
  Tensor p = K::placeholder(None, 2);
  CHECK(values<std::int64_t>(K::function({p}, {ops::nonzero(p)})({x})[0]) == expected);
  CHECK_THROWS_WITH(ops::nonzero(K::constant(1)), "nonzero: x is a scalar, which has no axis");
  // many blocks
  Tensor many = K::arange(100000, None, 1, "int32");
  CHECK(values<std::int64_t>(ops::nonzero_positions(many % 7 < 1)).size() == 14286);
  CHECK(K::get_value(K::all(K::equal(many[many % 7 < 1], K::arange(0, 100000, 7, "int32")))).item<bool>());
}

// tests/nn_backend/partial_shapes_test.cpp - shapes that become known only in a call: shape(x) and size(x) as tensors
// wherever a shape is an argument, static shapes as far as they are known, replay at several sizes, gradients through
// them.
#include <kassette/testing.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Vec = std::vector<double>;

namespace {

/// 0, 1, 2, ... with n rows of 3.
Tensor rows(int n) { return K::reshape(K::arange(3 * n, None, 1, "float32"), {n, 3}); }
Tensor unknown_rows() { return K::placeholder({K::None, 3}); }

}  // namespace

TEST_CASE("shape and size of unknown sizes are int32 tensors of known rank, and right at every call", "[partial]") {
  Tensor x = unknown_rows(), any = K::placeholder();
  CHECK(K::int_shape(K::shape(x)) == Shape{2});
  CHECK(K::int_shape(K::size(x)) == Shape{});
  CHECK(K::int_shape(K::shape(any)) == Shape{-1});
  CHECK(K::shape(x).dtype() == int32);
  CHECK(K::size(any).dtype() == int32);
  auto f =
      K::function({x, any}, {K::shape(x), K::size(x), K::shape(any), K::size(any), K::shape(x)[0], K::shape(x)[-1]});
  for (int n : {0, 1, 4}) {
    Tensors o = f({rows(n), K::zeros({n, 1, 2})});
    CHECK(values(o[0]) == Vec{static_cast<double>(n), 3});
    CHECK(o[1].item<int>() == 3 * n);
    CHECK(values(o[2]) == Vec{static_cast<double>(n), 1, 2});
    CHECK(o[3].item<int>() == 2 * n);
    CHECK(o[4].item<int>() == n);
    CHECK(o[5].item<int>() == 3);
  }
  Tensors scalar = f({rows(1), 7});
  CHECK(scalar[2].shape() == Shape{0});
  CHECK(scalar[3].item<int>() == 1);
}

TEST_CASE("the shape of a placeholder with known sizes is there without a feed", "[partial]") {
  Tensor x = K::placeholder({2, 4, 5});
  CHECK(values(K::shape(x)) == Vec{2, 4, 5});
  CHECK(values(K::size(x)) == Vec{40});
  CHECK(values(K::zeros_like(x)) == Vec(40, 0));
  CHECK_THROWS_WITH(K::eval(K::shape(unknown_rows())),
                    "eval: the placeholder (None, 3) is not fed; list it among the inputs of a K::function");
}

TEST_CASE("zeros and ones take shapes of tensors: variables where the sizes are known, else tensors", "[partial]") {
  Tensor x = unknown_rows(), fixed = K::placeholder({2, 3});
  CHECK(K::is_variable(K::zeros(K::shape(K::constant({{1, 2}})))));
  CHECK(K::is_variable(K::ones({K::shape(fixed)[1], 2})));
  CHECK(K::int_shape(K::ones({K::shape(fixed)[1], 2})) == Shape{3, 2});
  Tensor n = K::shape(x)[0];
  Tensors made{K::zeros(K::shape(x)), K::ones({n, 2}), K::zeros({n, K::shape(x)[1], 1}, "int64"),
               K::ones({K::size(x)}, "bool"), K::zeros(n)};
  for (const Tensor& t : made) CHECK_FALSE(K::is_variable(t));
  CHECK(K::int_shape(made[0]) == Shape{-1, 3});
  CHECK(K::int_shape(made[1]) == Shape{-1, 2});
  CHECK(K::int_shape(made[2]) == Shape{-1, 3, 1});
  CHECK(K::int_shape(made[3]) == Shape{-1});
  CHECK(K::int_shape(made[4]) == Shape{-1});
  CHECK(K::int_shape(K::zeros(K::shape(K::placeholder()))) == K::None);
  CHECK(K::int_shape(K::zeros(K::placeholder({4}, None, "int64"))) == Shape{-1, -1, -1, -1});
  auto f = K::function({x}, made);
  for (int k : {0, 1, 5}) {
    auto count = static_cast<std::size_t>(k);
    Tensors o = f({rows(k)});
    CHECK(o[0].shape() == Shape{k, 3});
    CHECK(values(o[0]) == Vec(3 * count, 0));
    CHECK(o[1].shape() == Shape{k, 2});
    CHECK(values(o[1]) == Vec(2 * count, 1));
    CHECK(o[2].shape() == Shape{k, 3, 1});
    CHECK(o[2].dtype() == int64);
    CHECK(values(o[3]) == Vec(3 * count, 1));
    CHECK(o[4].shape() == Shape{k});
  }
}

TEST_CASE("eye and arange take sizes of tensors", "[partial]") {
  Tensor x = unknown_rows(), n = K::shape(x)[0];
  CHECK(K::int_shape(K::eye({n, 3})) == Shape{-1, 3});
  auto f = K::function({x}, {K::eye(n), K::eye({n, 3}), K::arange(n), K::arange(n, K::size(x), 2), K::arange(n * -1)});
  Tensors o = f({rows(2)});
  CHECK(values(o[0]) == Vec{1, 0, 0, 1});
  CHECK(values(o[1]) == Vec{1, 0, 0, 0, 1, 0});
  CHECK(values(o[2]) == Vec{0, 1});
  CHECK(values(o[3]) == Vec{2, 4});
  CHECK(o[4].shape() == Shape{0});
  o = f({rows(1)});
  CHECK(values(o[0]) == Vec{1});
  CHECK(values(o[3]) == Vec{1});
  o = f({rows(0)});
  CHECK(o[0].shape() == Shape{0, 0});
  CHECK(o[2].shape() == Shape{0});
}

TEST_CASE("random functions take shapes of tensors, and each call draws as many numbers as it needs", "[partial]") {
  Tensor x = unknown_rows(), n = K::shape(x)[0];
  Tensors made{
      K::random_normal({n, 2}),    K::random_uniform(K::shape(x), 5, 6),   K::random_binomial({K::size(x)}, 1.0),
      K::truncated_normal({2, n}), K::random_uniform({n}, 0, 10, "int32"), K::random_normal({n, 3}, x, 0.0)};
  CHECK(K::int_shape(made[0]) == Shape{-1, 2});
  CHECK(K::int_shape(made[1]) == Shape{-1, 3});
  CHECK(K::int_shape(made[3]) == Shape{2, -1});
  auto f = K::function({x}, made);
  for (int k : {1, 4, 0}) {
    Tensors o = f({rows(k)});
    CHECK(o[0].shape() == Shape{k, 2});
    CHECK(o[1].shape() == Shape{k, 3});
    for (double v : values(o[1])) CHECK((v >= 5 && v < 6));
    CHECK(values(o[2]) == Vec(3 * static_cast<std::size_t>(k), 1));
    CHECK(o[3].shape() == Shape{2, k});
    for (double v : values(o[3])) CHECK(std::fabs(v) < 2);
    CHECK(o[4].dtype() == int32);
    CHECK(values(o[5]) == values(rows(k)));  // without spread the samples are their mean
  }
  CHECK(values(f({rows(4)})[0]) != values(f({rows(4)})[0]));
}

TEST_CASE("random variables take shapes that are known, in numbers or tensors", "[partial]") {
  Tensor v = K::variable({{1, 2, 3}, {4, 5, 6}}), fixed = K::placeholder({2, 3});
  for (const Tensor& made : {K::random_uniform_variable({K::shape(v)[0], 4}, 0, 1),
                             K::random_normal_variable({K::shape(fixed)[0], 4}, 0, 1)}) {
    CHECK(K::is_variable(made));
    CHECK(made.shape() == Shape{2, 4});
  }
  CHECK(K::random_normal_variable(K::shape(v), 0, 1).shape() == Shape{2, 3});
  CHECK_THROWS_WITH(K::random_normal_variable(K::shape(unknown_rows()), 0, 1),
                    "random_normal_variable: shape (None, 3) depends on a placeholder; a variable has known sizes");
  CHECK_THROWS_WITH(
      K::random_uniform_variable({K::None, 2}, 0, 1),
      "random_uniform_variable: shape (-1, 2); sizes must be known and not negative (None is shown as -1); use K::shape(x)[i] for an unknown one");
}

TEST_CASE("reshape to sizes of tensors infers one size, keeps known ones, and its gradient has the shape of x",
          "[partial]") {
  Tensor x = K::placeholder({K::None, 4}, None, "float64"), n = K::shape(x)[0];
  Tensors shaped{K::reshape(x, {n, 2, 2}), K::reshape(x, {n * 2, -1}), K::reshape(x, {-1, 2}),
                 K::reshape(x, {K::size(x)}), K::reshape(x, K::shape(x))};
  CHECK(K::int_shape(shaped[0]) == Shape{-1, 2, 2});
  CHECK(K::int_shape(shaped[1]) == Shape{-1, -1});
  CHECK(K::int_shape(shaped[2]) == Shape{-1, 2});
  CHECK(K::int_shape(shaped[3]) == Shape{-1});
  CHECK(K::int_shape(shaped[4]) == Shape{-1, 4});
  CHECK(K::int_shape(K::reshape(K::placeholder({2, 6}), {3, -1})) == Shape{3, 4});
  Tensors outputs = shaped;
  for (const Tensor& y : shaped) {
    Tensor g = K::gradients(K::sum(K::square(y)), {x})[0];
    CHECK(K::int_shape(g) == Shape{-1, 4});
    outputs.push_back(g);
    outputs.push_back(K::gradients(K::sum(K::square(g)), {x})[0]);
  }
  auto f = K::function({x}, outputs);
  for (int k : {1, 3, 0}) {
    Vec in(4 * static_cast<std::size_t>(k)), twice = in, eight = in;
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<double>(i) - 2;
      twice[i] = 2 * in[i];
      eight[i] = 8 * in[i];
    }
    if (k == 0) {  // with no elements -1 could be anything
      CHECK_THROWS_AS(f({K::zeros({0, 4}, "float64")}), ValueError);
      continue;
    }
    Tensors o = f({K::constant(in, "float64", {k, 4})});
    CHECK(o[0].shape() == Shape{k, 2, 2});
    CHECK(o[1].shape() == Shape{2 * k, 2});
    CHECK(o[2].shape() == Shape{2 * k, 2});
    CHECK(o[3].shape() == Shape{4 * k});
    for (std::int64_t i = 0; i < 5; ++i) {
      CHECK(values(o[i]) == in);
      CHECK(values(o[5 + 2 * i]) == twice);
      CHECK(values(o[6 + 2 * i]) == eight);
    }
  }
  auto wrong = K::function({x}, {K::reshape(x, {n, 3})});
  CHECK_THROWS_WITH(wrong({K::zeros({2, 4}, "float64")}),
                    "reshape: shape (2, 3) does not hold the 8 elements of x of shape (2, 4)");
}

TEST_CASE("tile and slice by tensors have the values and gradients of their numbers", "[partial]") {
  Tensor x = unknown_rows(), n = K::shape(x)[0], times = K::placeholder({2}, None, "int32");
  Tensor tiled = K::tile(x, {n, 2}), by_fed = K::tile(x, times), cut = K::slice(x, {n - 1, 0}, {1, K::shape(x)[1] - 1});
  CHECK(K::int_shape(tiled) == Shape{-1, 6});
  CHECK(K::ndim(by_fed) == 2);
  auto f =
      K::function({x, times}, {tiled, by_fed, cut, K::gradients(K::sum(tiled * 0.5), {x})[0],
                               K::gradients(K::sum(by_fed), {x})[0], K::gradients(K::sum(K::square(cut)), {x})[0]});
  Tensors o = f({rows(2), {1, 3}});
  CHECK(o[0].shape() == Shape{4, 6});
  CHECK(o[1].shape() == Shape{2, 9});
  CHECK(values(o[2]) == Vec{3, 4});
  CHECK(values(o[3]) == Vec(6, 2));
  CHECK(values(o[4]) == Vec(6, 3));
  CHECK(values(o[5]) == Vec{0, 0, 0, 6, 8, 0});
  o = f({rows(1), {2, 1}});
  CHECK(o[0].shape() == Shape{1, 6});
  CHECK(o[1].shape() == Shape{2, 3});
  CHECK(values(o[5]) == Vec{0, 2, 0});
}

TEST_CASE("the noise shape of dropout takes None, numbers and tensors, and the mask is one along its ones",
          "[partial]") {
  Tensor x = K::placeholder({K::None, K::None, 2});
  Tensor y = K::dropout(x, 0.5, {K::shape(x)[0], 1, K::None}), z = K::dropout(x, 0.5, K::shape(x)),
         w = K::dropout(x, 0.5, {2});
  for (const Tensor& t : {y, z, w}) CHECK(K::int_shape(t) == Shape{-1, -1, 2});
  auto f = K::function({x}, {y, z, w, K::gradients(K::sum(y), {x})[0]});
  for (int n : {30, 7}) {
    Tensors o = f({K::ones({n, 3, 2})});
    Vec v = values(o[0]);
    CHECK(values(o[3]) == v);  // of ones, value and gradient are the mask
    CHECK(o[1].shape() == Shape{n, 3, 2});
    std::set<double> kinds(v.begin(), v.end());
    CHECK(kinds == std::set<double>{0, 2});
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      for (std::size_t k = 0; k < 2; ++k) {
        CHECK(v[i * 6 + k] == v[i * 6 + 2 + k]);
        CHECK(v[i * 6 + k] == v[i * 6 + 4 + k]);
      }
    Vec columns = values(o[2]);
    for (std::size_t i = 2; i < columns.size(); ++i) CHECK(columns[i] == columns[i - 2]);
  }
  auto wrong = K::function({x}, {K::dropout(x, 0.5, {3, 1, 2})});
  CHECK_THROWS_WITH(wrong({K::ones({2, 1, 2})}),
                    "dropout: noise_shape (3, 1, 2) does not broadcast to x of shape (2, 1, 2)");
}

TEST_CASE("a size that is no scalar integer is refused in the name of the function", "[partial]") {
  Tensor x = unknown_rows();
  CHECK_THROWS_WITH(K::zeros({K::shape(x)}), "zeros: shape holds a tensor of shape (2,); sizes must be scalars");
  CHECK_THROWS_WITH(K::ones({K::sum(x), 2}), "ones: shape holds a tensor of float32; sizes must be integers");
  CHECK_THROWS_WITH(K::random_normal(K::sum(x)), "random_normal: shape is a tensor of float32; it must be of integers");
  CHECK_THROWS_WITH(K::reshape(x, K::placeholder({2, 2}, None, "int32")),
                    "reshape: shape is a tensor of shape (2, 2); it must have one axis");
  CHECK_THROWS_WITH(K::tile(x, {Tensor(), 1}),
                    "tile: n holds an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::zeros(Tensor()),
                    "zeros: shape is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::dropout(x, 0.5, {K::placeholder({}, None, "bool"), 3}),
                    "dropout: noise_shape holds a tensor of bool; sizes must be integers");
  Tensor n = K::placeholder({}, None, "int32");
  auto f = K::function({n}, {K::zeros({n, 2})});
  CHECK(f({0})[0].shape() == Shape{0, 2});
  CHECK_THROWS_AS(f({-1}), ValueError);
}

TEST_CASE("static shapes go as far as they are known", "[partial]") {
  Tensor a = K::placeholder({K::None, 1, 3}), b = K::placeholder({K::None, 4, 1}), any = K::placeholder();
  CHECK(K::int_shape(a + b) == Shape{-1, 4, 3});                          // ? with ?, 1 with n
  CHECK(K::int_shape(a + K::placeholder({5, 1, 1})) == Shape{5, 1, 3});   // ? with n > 1
  CHECK(K::int_shape(a + K::placeholder({1, 1, 3})) == Shape{-1, 1, 3});  // ? with 1
  CHECK(K::int_shape(a + any) == K::None);
  CHECK(K::int_shape(K::sum(a, 1)) == Shape{-1, 3});
  CHECK(K::int_shape(K::sum(a, {0, -1}, true)) == Shape{1, 1, 1});
  CHECK(K::int_shape(K::sum(any)) == Shape{});
  CHECK(K::int_shape(K::identity(a)) == Shape{-1, 1, 3});
  CHECK(K::int_shape(K::cast(any, "int32")) == K::None);
  CHECK(K::int_shape(K::stop_gradient(b)) == Shape{-1, 4, 1});
  CHECK(K::int_shape(K::zeros_like(b)) == Shape{-1, 4, 1});
  CHECK(K::int_shape(K::gather(a, K::placeholder({7}, None, "int32"))) == Shape{7, 1, 3});
  CHECK(K::int_shape(K::flatten(a)) == Shape{-1});
  CHECK(K::int_shape(K::batch_flatten(b)) == Shape{-1, 4});
  CHECK(K::int_shape(K::dropout(b, 0.5)) == Shape{-1, 4, 1});
}

TEST_CASE("products of placeholders of unknown rank are decided at each call, gradients of any order included",
          "[partial]") {
  Tensor x = K::placeholder(None, None, "float64"), y = K::placeholder(None, None, "float64");
  auto grow = [](const Shape& s, double from) {
    std::int64_t n = 1;
    for (int i = 0; i < s.rank(); ++i) n *= int(s[i]);
    return K::reshape(K::sin(from + K::arange(n, None, 1, "float64")), s);
  };
  struct Case {
    Shape x, y, out;
  };
  auto check = [&](auto product, std::initializer_list<Case> cases) {
    Tensor z = product(x, y), loss = K::sum(K::square(z) * z);
    CHECK(K::int_shape(z) == K::None);
    Tensors g = K::gradients(loss, {x, y}), h = K::gradients(K::sum(g[0]) + K::sum(K::square(g[1])), {x, y});
    auto f = K::function({x, y}, {z, g[0], g[1], h[0], h[1]});
    for (const Case& c : cases) {
      Tensor a = K::variable(grow(c.x, 0.5), "float64"), b = K::variable(grow(c.y, -2), "float64"), e = product(a, b);
      Tensors d = K::gradients(K::sum(K::square(e) * e), {a, b}),
              s = K::gradients(K::sum(d[0]) + K::sum(K::square(d[1])), {a, b});
      Tensors o = f({K::eval(a), K::eval(b)}), wanted{e, d[0], d[1], s[0], s[1]};
      CHECK(o[0].shape() == c.out);
      for (int i = 0; i < 5; ++i) testing::assert_close(o[i], K::eval(wanted[i]), {.rtol = 1e-12, .atol = 1e-12});
    }
  };
  check([](const Tensor& a, const Tensor& b) { return K::dot(a, b); }, {{{2, 3}, {3, 4}, {2, 4}},
                                                                        {{3}, {3}, {}},
                                                                        {{2, 3}, {3}, {2}},
                                                                        {{3}, {2, 3, 4}, {2, 4}},
                                                                        {{2, 5, 3}, {4, 3, 2}, {2, 5, 4, 2}}});
  check([](const Tensor& a, const Tensor& b) { return K::batch_dot(a, b); },
        {{{2, 3}, {2, 3}, {2, 1}}, {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}}, {{2, 3, 4}, {2, 4}, {2, 3}}});
  check(
      [](const Tensor& a, const Tensor& b) {
        return K::batch_dot(a, b, {1, -1});
      },
      {{{2, 3}, {2, 5, 3}, {2, 5}}, {{2, 3, 4}, {2, 3}, {2, 4}}});

  // One rank known, the other not.
  auto half = K::function({x}, {K::dot(x, K::constant({{1, 2}, {3, 4}}, "float64"))});
  CHECK(values(half({{1, 1}})[0]) == Vec{4, 6});
  CHECK(values(half({{{1, 1}, {0, 1}}})[0]) == Vec{4, 6, 3, 4});
  auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const ValueError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([&] { half({{1, 2, 3}}); }) == "dot: (3,) x (2, 2): inner dimensions differ, 3 against 2");
  CHECK(message([&] { half({1}); }) == "dot: () x (2, 2); both must have at least one axis; use * for a number");
  auto batch = K::function({x, y}, {K::batch_dot(x, y, {1, 2})});
  CHECK(message([&] {
          batch({{{1, 2}}, {{1, 2}}});
        }) == "batch_dot: axes hold 2, which is out of range for (1, 2) of rank 2");
  CHECK_THROWS_WITH(K::dot(x, K::placeholder()),
                    "dot: float64 and float32; cast one of them (K::cast), tensors are not promoted");

  // Beside a sparse matrix it is a matrix or a vector.
  Tensor s = K::sparse_coo({{0, 1}, {1, 0}}, {2, 3}, {2, 2}, "float64");
  auto sparse = K::function({x}, {K::dot(s, x), K::dot(x, s)});
  CHECK(values(sparse({{{1, 2}, {3, 4}}})[0]) == Vec{6, 8, 3, 6});
  CHECK(values(sparse({{{1, 2}, {3, 4}}})[1]) == Vec{6, 2, 12, 6});
  CHECK(values(sparse({{1, 2}})[0]) == Vec{4, 3});
  CHECK(values(sparse({{1, 2}})[1]) == Vec{6, 2});
  CHECK(message([&] { sparse({1}); }) ==
        "dot: a dense operand of shape (); with a sparse matrix it must be a matrix or a vector");
}

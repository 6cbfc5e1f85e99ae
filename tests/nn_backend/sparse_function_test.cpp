// tests/nn_backend/sparse_function_test.cpp - sparse placeholders: feeding them, replaying functions of them, and using
// them in control flow.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <thread>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Vec = std::vector<double>;

namespace {

Tensor sparse_input(const Dims& shape, DType dtype = None, Name name = None) {
  return K::placeholder(shape, None, dtype, /*sparse=*/true, name);
}

}  // namespace

TEST_CASE("a sparse placeholder says what it is and is fed sparse tensors of any number of entries", "[sparse]") {
  Tensor p = sparse_input({K::None, 3}), x = K::variable({{1, 2}, {3, 4}, {5, 6}});
  CHECK(K::is_sparse(p));
  CHECK(K::is_placeholder(p));
  CHECK(K::is_tensor(p));
  CHECK_FALSE(K::is_variable(p));
  CHECK(p.dtype() == "float32");
  CHECK(K::int_shape(p) == Shape{-1, 3});
  CHECK(K::ndim(p) == 2);
  CHECK_FALSE(K::is_placeholder(K::cast(p, "float64")));
  Tensor y = K::dot(p, x);
  CHECK(y.shape() == Shape{-1, 2});
  auto f = K::function({p}, {y, K::to_dense(p), K::shape(p), K::size(p)});
  Tensors out = f({K::sparse_coo({{0, 2}, {1, 0}}, {10, 1}, {2, 3})});
  CHECK(values(out[0]) == Vec{50, 60, 1, 2});
  CHECK(values(out[1]) == Vec{0, 0, 10, 1, 0, 0});
  CHECK(values(out[2]) == Vec{2, 3});
  CHECK(values(out[3]) == Vec{6});
  CHECK(values(f({K::sparse_csr({0, 1}, {1}, std::vector<double>{2}, {1, 3})})[0]) == Vec{6, 8});  // cast, as any feed
  CHECK(values(f({K::sparse_coo({}, {}, {0, 3})})[0]).empty());
  CHECK(values(f({K::to_sparse({{0, 0, 1}})})[0]) == Vec{5, 6});
}

TEST_CASE("a placeholder of known shape has it in all that hangs on it", "[sparse]") {
  Tensor p = sparse_input({4, 3}), q = sparse_input({K::None, 3});
  CHECK(K::dot(p, K::placeholder({3, K::None})).shape() == Shape{4, -1});
  CHECK(K::to_dense(p).shape() == Shape{4, 3});
  CHECK(K::transpose(q).shape() == Shape{3, -1});
  CHECK(K::to_dense(K::transpose(q)).shape() == Shape{3, -1});
  CHECK(K::concatenate({p, p}, 0).shape() == Shape{8, 3});
  CHECK(K::to_dense(K::concatenate({p, p}, 0)).shape() == Shape{8, 3});
  CHECK(K::concatenate({p, q}, 0).shape() == Shape{-1, 3});
  CHECK(K::concatenate({p, q}, 1).shape() == Shape{4, 6});
  CHECK(K::dot(K::placeholder({K::None, 4}), p).shape() == Shape{-1, 3});
  CHECK_THROWS_WITH(K::dot(p, K::ones({4, 2})), "dot: sparse (4, 3) x (4, 2): inner dimensions differ, 3 against 4");
  CHECK_THROWS_WITH(
      K::concatenate({p, sparse_input({5, 3})}, 1),
      "concatenate: tensor 0 has shape (4, 3), tensor 1 has (5, 3); they must be equal elsewhere than along axis 1");
}

TEST_CASE("what is fed to sparse and dense placeholders is checked in one line", "[sparse]") {
  Tensor p = sparse_input({K::None, 3}, None, "graph"), d = K::placeholder({K::None, 3});
  Tensor sparse = K::sparse_coo({{0, 1}}, {1}, {2, 3}), dense = K::ones({2, 3});
  auto f = K::function({p, d}, {K::to_dense(p) + d});
  CHECK(values(f({sparse, dense})[0]) == Vec{1, 2, 1, 1, 1, 1});
  CHECK_THROWS_WITH(
      f({dense, dense}),
      "function: input 0 'graph' is dense (2, 3), declared sparse (None, 3); feed a sparse tensor (K::sparse_coo, "
      "K::sparse_csr, K::to_sparse)");
  CHECK_THROWS_WITH(f({sparse, sparse}),
                    "function: input 1 is sparse (2, 3), declared dense (None, 3); feed K::to_dense(x)");
  CHECK_THROWS_WITH(f({K::sparse_coo({}, {}, {2, 4}), dense}),
                    "function: input 0 'graph' is (2, 4), declared (None, 3)");
  CHECK_THROWS_WITH(f({K::sparse_coo({}, {}, {2, 3, 1}), dense}),
                    "function: input 0 'graph' is (2, 3, 1), declared (None, 3)");
  CHECK_THROWS_WITH(
      f({None, dense}),
      "function: input 0 'graph' is an empty Tensor, and the sparse placeholder (None, 3) has no default");
  CHECK_THROWS_WITH(f({sparse}), "function: 1 value for 2 inputs");
  CHECK_THROWS_WITH(
      K::eval(p),
      "eval: the placeholder 'indices of graph' (None, 2) is not fed; list it among the inputs of a K::function");
  CHECK_THROWS_WITH(K::function({sparse}, {d}),
                    Catch::Contains("input 0 is a sparse tensor of shape (2, 3) that is not a placeholder"));
  CHECK_THROWS_WITH(K::placeholder(None, None, None, true),
                    "placeholder: shape of unknown rank; the rank of a sparse one must be known and at least 1");
  CHECK_THROWS_WITH(K::placeholder({}, None, None, true),
                    "placeholder: shape is (); the rank of a sparse one must be known and at least 1");
  CHECK(K::int_shape(K::placeholder(None, 3, "int32", true)) == Shape{-1, -1, -1});
}

TEST_CASE("outputs may be sparse, intermediate sparse tensors are computed, feed_dict takes sparse values",
          "[sparse]") {
  Tensor p = sparse_input({K::None, 2}), q = sparse_input({K::None, 2}), scale = K::variable(3.0),
         x = K::constant({{1}, {2}});
  Tensor joined = K::concatenate({p, q}, 0), turned = K::transpose(joined);
  auto f = K::function({p, q}, {joined, scale * 2.0, turned, K::cast(p, "int32")});
  CHECK(printed(f) == "Function(2 inputs, 4 outputs)");
  Tensor a = K::sparse_coo({{0, 1}}, {1.5}, {1, 2}), b = K::sparse_coo({{1, 0}, {0, 0}}, {2, 4}, {2, 2});
  Tensors out = f({a, b});
  REQUIRE(out.size() == 4);
  CHECK(K::is_sparse(out[0]));
  CHECK(out[0].shape() == Shape{3, 2});
  CHECK(values(out[0]) == Vec{0, 1.5, 4, 0, 2, 0});
  CHECK(values(out[1]) == Vec{6});
  CHECK(values(out[2]) == Vec{0, 4, 2, 1.5, 0, 0});
  CHECK(out[3].dtype() == "int32");
  CHECK(values(f({out[0], a})[0]) == Vec{0, 1.5, 4, 0, 2, 0, 0, 1.5});  // a result is fed again
  // A sparse tensor that is computed on the tape may stand for an input, and a symbolic argument connects.
  Tensor c = sparse_input({K::None, 2});
  Tensors connected = f({c, K::sparse_coo({}, {}, {1, 2})});
  CHECK(K::is_sparse(connected[0]));
  CHECK(values(K::function({c}, {connected[0]})({a})[0]) == Vec{0, 1.5, 0, 0});
  auto traced = K::function([&](const Tensors& in) -> Tensors { return {K::dot(in[0], x), K::transpose(in[0])}; }, {a});
  CHECK(values(traced({a})[0]) == Vec{3});
  CHECK(K::is_sparse(traced({a})[1]));
  auto g = K::function({p}, {joined}, K::FunctionOptions{kassette::Named(0), {}, {turned}, {{q, b}}});
  CHECK(values(g({a})[0]) == Vec{0, 1.5, 4, 0, 2, 0});
  CHECK_THROWS_WITH(
      K::function({p}, {joined}, K::FunctionOptions{kassette::Named(0), {}, {}, {{q, K::ones({2, 2})}}}),
      "function: feed_dict has a dense value for a sparse tensor of shape (None, 2); K::to_dense and K::to_sparse convert");
}

TEST_CASE("indices and values may be placeholders themselves, checked when they are fed", "[sparse]") {
  Tensor at = K::placeholder({K::None, 2}, None, "int32"), v = K::placeholder({K::None}),
         n = K::placeholder({}, None, "int32");
  auto f = K::function({at, v, n}, {K::dot(K::sparse_coo(at, v, {n, 2}), K::constant({{1}, {10}}))});
  CHECK(values(f({{{0, 1}, {2, 0}}, {1, 2}, 3})[0]) == Vec{10, 0, 2});
  CHECK_THROWS_WITH(f({{{0, 1}, {2, 0}}, {1, 2}, 2}), "sparse_coo: indices of entry 1 are (2, 0), outside of (2, 2)");
  CHECK_THROWS_AS(f({{{0, 1}, {2, 0}}, {1}, 3}), ValueError);
}

TEST_CASE("gradients through a sparse placeholder, by the dense operand and by the placeholder", "[sparse]") {
  Tensor p = sparse_input({2, 3}, "float64"), x = K::variable({{1, 2}, {3, 4}, {5, 6}}, "float64");
  Tensors g = K::gradients(K::sum(K::square(K::dot(p, x))), {x, p});
  CHECK(K::is_sparse(g[1]));
  CHECK(g[1].shape() == Shape{2, 3});
  auto f = K::function({p}, g);
  Tensor a = K::sparse_coo({{0, 2}, {1, 0}}, std::vector<double>{2, -1}, {2, 3});
  Tensors out = f({a});
  // y = [[10, 12], [-1, -2]]; dx = a' 2y, dvalue = <2 y_i, x_j>
  CHECK(values(out[0]) == Vec{2, 4, 0, 0, 40, 48});
  CHECK(values(K::sparse_parts(out[1]).values) == Vec{2 * 10 * 5 + 2 * 12 * 6, 2 * -1 * 1 + 2 * -2 * 2});
}

TEST_CASE("a body of control flow may use a sparse tensor from outside; it takes and gives dense ones", "[sparse]") {
  Tensor w = K::variable({{1, 2}, {0, 1}}), a = K::sparse_coo({{0, 1}, {1, 0}}, w[0], {2, 2}), p = sparse_input({2, 2}),
         steps = K::placeholder({K::None});
  auto power = [&](const Tensor& m, const Tensor& x, const Tensor& over) {
    return K::foldl([&](const Tensor& s, const Tensor& e) { return K::dot(m, s) + e; }, over, x);
  };
  Tensor start = K::constant({{1}, {1}});
  Tensor eager = power(a, start, K::constant({0, 1})), recorded = power(a, start, steps), fed = power(p, start, steps);
  auto f = K::function({steps, p}, {recorded, fed, K::gradients(K::sum(recorded), {w})[0]});
  Tensors out = f({{0, 1}, a});
  CHECK(values(eager) == Vec{3, 3});  // (1, 2), then (2, 2), and 1 each
  CHECK(values(out[0]) == values(eager));
  CHECK(values(out[1]) == values(eager));
  CHECK(values(out[2]) == values(K::gradients(K::sum(eager), {w})[0]));
  auto keep = [](const Tensor& s, const Tensor&) { return s; };
  CHECK_THROWS_WITH(K::foldl(keep, p), "foldl: elems of shape (2, 2) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::foldr(keep, steps, p),
                    "foldr: initializer of shape (2, 2) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::switch_(
                        K::sum(steps) > 0, [&] { return p; }, [&] { return p; }),
                    "switch_: the tensor (2, 2) is sparse; densify it first: K::to_dense(x)");
  const Tensor rows = K::constant({1, 0}), dense = K::ones({2, 2});  // of which one is chosen for each row
  CHECK_THROWS_WITH(K::switch_(rows, a, dense),
                    "switch_: then_expression of shape (2, 2) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::switch_(rows, dense, a),
                    "switch_: else_expression of shape (2, 2) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_AS(K::foldl(keep, p), TypeError);
}

TEST_CASE("two threads share a function and the sparse tensor that they feed", "[sparse]") {
  std::vector<std::int64_t> at;
  std::vector<float> v;
  for (std::int64_t k = 0; k < 3000; ++k) {
    at.push_back(k * 37 % 200);
    at.push_back(k * 53 % 300);
    v.push_back(static_cast<float>(k % 11) - 5);
  }
  Tensor x = K::variable(K::ones({300, 9})), p = sparse_input({200, 300});
  auto f = K::function({p}, {K::dot(p, x), K::gradients(K::sum(K::square(K::dot(p, x))), {x})[0]});
  for (int round = 0; round < 20; ++round) {
    Tensor a = K::sparse_coo(at, v, {200, 300});  // its compressed form is made by whoever is first
    Vec results[2][2];
    auto run = [&](int t) {
      Tensors out = f({a});
      results[t][0] = out[0].to_vector<double>();
      results[t][1] = out[1].to_vector<double>();
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    CHECK(results[0][0] == results[1][0]);
    CHECK(results[0][1] == results[1][1]);
  }
}

TEST_CASE("sparse tensors, functions over them and failed calls leave nothing", "[sparse]") {
  auto cycle = [] {
    Tensor p = sparse_input({K::None, 3}), v = K::variable({1, 2}), a = K::sparse_coo({{0, 2}, {1, 0}}, v, {2, 3}),
           x = K::variable(K::ones({3, 4}));
    K::gradients(K::sum(K::dot(a, x)), {v, x, a});
    auto f = K::function({p}, {K::dot(p, x), K::transpose(K::concatenate({p, a}, 0))});
    f({a});
    CHECK_THROWS(f({x}));
    CHECK_THROWS(K::sparse_coo({{5, 5}}, {1}, {2, 3}));
    CHECK_THROWS(K::dot(a, a));
  };
  cycle();
  auto before = totals();
  for (int i = 0; i < 5; ++i) cycle();
  auto after = totals();
  CHECK(after.live_nodes == before.live_nodes);
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.saved_bytes == before.saved_bytes);
}

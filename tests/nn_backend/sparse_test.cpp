// tests/nn_backend/sparse_test.cpp - sparse tensors against dense algebra.
#include <kassette/backend.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <cmath>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::devices;
using namespace kassette::test;
using Vec = std::vector<double>;

namespace {

/// Random entries of a matrix, some of them listed twice, in random order; and the dense matrix, summed here.
struct Entries {
  int rows, cols;
  std::vector<std::int64_t> indices;
  Vec values, dense;

  Entries(int n, int m, int count, std::uint64_t seed)
      : rows(n), cols(m), dense(static_cast<std::size_t>(n) * static_cast<std::size_t>(m)) {
    auto draw = [&] { return (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33; };
    for (int k = 0; k < count; ++k) {
      auto i = static_cast<std::int64_t>(draw()) % n, j = static_cast<std::int64_t>(draw()) % m;
      indices.push_back(i);
      indices.push_back(j);
      values.push_back(static_cast<double>(draw() % 2001) / 1000 - 1);
      dense[static_cast<std::size_t>(i * m + j)] += values.back();
    }
  }
  Tensor sparse(DType dtype = float64) const { return K::sparse_coo(indices, values, {rows, cols}, dtype); }
};

Tensor numbers(std::int64_t n, std::int64_t m, std::uint64_t seed, DType dtype = float64) {
  Vec v(static_cast<std::size_t>(n * m));
  for (double& x : v)
    x = static_cast<double>((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33 & 2047) / 1024 - 1;
  return K::constant(v, dtype, {n, m});
}
/// a (n, k) times b (k, m), in the order of k.
Vec product(const Vec& a, const Vec& b, std::int64_t n, std::int64_t k, std::int64_t m) {
  Vec out(static_cast<std::size_t>(n * m));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < m; ++j)
        out[static_cast<std::size_t>(i * m + j)] +=
            a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * m + j)];
  return out;
}
void close(const Tensor& t, const Vec& expected, double tolerance) { check_close(values(t), expected, 0, tolerance); }

}  // namespace

TEST_CASE("a compressed (4, 5) matrix times a dense (5, 4) is the dense product",
          "[sparse]") {  // Keras' test_sparse_dot
  Tensor x = K::variable(K::sparse_csr({0, 2, 3, 3, 5}, {0, 4, 2, 1, 3}, {1, 2, 3, 4, 5}, {4, 5}));
  Vec dense{1, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 5, 0};
  CHECK(values(x) == dense);
  Tensor y = numbers(5, 4, 1, float32);
  close(K::dot(x, y), product(dense, values(y), 4, 5, 4), 1e-5);
  CHECK(K::dot(x, y).shape() == Shape{4, 4});
  CHECK_FALSE(K::is_sparse(K::dot(x, y)));
}

TEST_CASE("two compressed matrices joined stay sparse and equal the dense ones joined",
          "[sparse]") {  // test_sparse_concat
  Tensor a = K::sparse_csr({0, 1, 1, 3, 3}, {2, 0, 4}, {7, 8, 9}, {4, 5}),
         b = K::sparse_csr({0, 0, 2, 3, 4}, {1, 3, 2, 0}, {1, 2, 3, 4}, {4, 5});
  Tensor dense_a = K::to_dense(a), dense_b = K::to_dense(b);
  for (int axis : {-1, 0, 1, -2}) {
    Tensor joined = K::concatenate({a, b, a}, axis);
    CHECK(K::is_sparse(joined));
    testing::assert_close(K::to_dense(joined), K::concatenate({dense_a, dense_b, dense_a}, axis));
    Tensor mixed = K::concatenate({a, dense_b, a}, axis);
    CHECK_FALSE(K::is_sparse(mixed));
    testing::assert_close(mixed, K::concatenate({dense_a, dense_b, dense_a}, axis));
  }
  CHECK_THROWS_WITH(
      K::concatenate({a, K::sparse_coo({}, {}, {4, 6})}, 0),
      "concatenate: tensor 0 has shape (4, 5), tensor 1 has (4, 6); they must be equal elsewhere than along axis 0");
  CHECK_THROWS_WITH(K::concatenate({a, b}, 2), "concatenate: axis 2 is out of range for (4, 5) of rank 2");
  CHECK_THROWS_WITH(
      K::concatenate({a, K::cast(b, "int32")}),
      "concatenate: tensor 0 is float32, tensor 1 is int32; cast one of them (K::cast), tensors are not promoted");
}

TEST_CASE("what a sparse tensor says of itself", "[sparse]") {
  Tensor x = K::sparse_coo({{0, 1}, {2, 0}}, {1.5, -2}, {3, 4});
  CHECK(K::is_sparse(x));
  CHECK(K::is_tensor(x));
  CHECK_FALSE(K::is_variable(x));
  CHECK_FALSE(K::is_placeholder(x));
  CHECK_FALSE(K::is_keras_tensor(x));
  CHECK_FALSE(K::is_sparse(K::to_dense(x)));
  CHECK_FALSE(K::is_sparse(1));
  CHECK_FALSE(K::is_sparse({{1, 2}}));
  CHECK_FALSE(K::is_sparse(Tensor()));
  CHECK(K::int_shape(x) == Shape{3, 4});
  CHECK(K::ndim(x) == 2);
  CHECK(K::dtype(x) == "float32");
  CHECK(K::count_params(x) == 12);
  CHECK(values(K::shape(x)) == Vec{3, 4});
  CHECK(K::shape(x).dtype() == "int32");
  CHECK(values(K::size(x)) == Vec{12});
  CHECK(values(K::get_value(x)) == Vec{0, 1.5, 0, 0, 0, 0, 0, 0, -2, 0, 0, 0});
  CHECK_FALSE(K::is_sparse(K::eval(x)));
  Tensor dense = K::constant({1, 2});
  CHECK(place<float>(K::to_dense(dense)) == dense.data<float>());  // the same object
}

TEST_CASE("variable of a sparse value is a sparse tensor with the dtype of the value, and no variable", "[sparse]") {
  Tensor x = K::variable(K::sparse_coo({{1, 0}}, std::vector<double>{2.5}, {2, 3}), "float16");
  CHECK(K::is_sparse(x));
  CHECK_FALSE(K::is_variable(x));
  CHECK(x.dtype() == "float64");
  CHECK_THROWS_WITH(K::update(x, K::zeros({2, 3})), "update: x is not a variable; make it with K::variable");
  CHECK_THROWS_WITH(K::variable(K::placeholder({2, 3}, None, None, true)), Catch::Contains("symbolic"));
  CHECK_THROWS_WITH(K::constant(x), "constant: value of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
}

TEST_CASE("values keep the dtype of a container, numbers are floatx, and dtype decides", "[sparse]") {
  std::vector<std::int64_t> at{0, 1};
  CHECK(K::sparse_coo(at, std::vector<double>{1}, {2, 2}).dtype() == "float64");
  CHECK(K::sparse_coo(at, std::vector<std::int32_t>{1}, {2, 2}).dtype() == "int32");
  CHECK(K::sparse_coo(at, {1}, {2, 2}).dtype() == "float32");
  CHECK(K::sparse_coo(at, std::vector<double>{1}, {2, 2}, "float16").dtype() == "float16");
  CHECK(K::cast_to_floatx(K::sparse_coo(at, std::vector<double>{1}, {2, 2})).dtype() == "float32");
  CHECK(K::is_sparse(K::cast_to_floatx(K::sparse_coo(at, std::vector<double>{1}, {2, 2}))));
  CHECK(K::sparse_coo(K::constant({{0, 1}}, "int32"), K::constant({1}, "int16"), {2, 2}).dtype() == "int16");
}

TEST_CASE("entries come in any order, and one that is listed twice is the sum of its values", "[sparse]") {
  Tensor x = K::sparse_coo({{2, 0}, {0, 1}, {2, 0}, {1, 1}, {2, 0}}, {1, 2, 4, 8, 16}, {3, 2});
  CHECK(values(x) == Vec{0, 2, 0, 8, 21, 0});
  CHECK(values(K::dot(x, K::constant({{1, 10}, {2, 20}}))) == Vec{4, 40, 16, 160, 21, 210});
  CHECK(values(K::dot(K::constant({{1, 1, 1}}), x)) == Vec{21, 10});
  CHECK(values(K::transpose(x)) == Vec{0, 0, 21, 2, 8, 0});
  CHECK(values(K::to_dense(K::cast(x, "bool"))) == Vec{0, 1, 0, 1, 1, 0});
  // The sum is rounded once: 2048 + 1 + 1 in float16.
  CHECK(values(K::sparse_coo({{0}, {0}, {0}}, {2048, 1, 1}, {1}, "float16")) == Vec{2050});
}

TEST_CASE("sparse tensors without entries, without elements and of any rank", "[sparse]") {
  CHECK(values(K::sparse_coo({}, {}, {2, 3})) == Vec(6));
  CHECK(values(K::dot(K::sparse_coo({}, {}, {2, 3}), K::ones({3, 2}))) == Vec(4));
  CHECK(K::dot(K::sparse_coo({}, {}, {2, 0}), K::ones({0, 2})).shape() == Shape{2, 2});
  CHECK(K::dot(K::sparse_coo({}, {}, {0, 3}), K::ones({3, 2})).shape() == Shape{0, 2});
  CHECK(K::dot(K::sparse_coo({{0, 1}}, {1}, {2, 3}), K::ones({3, 0})).shape() == Shape{2, 0});
  CHECK(K::to_dense(K::sparse_coo({}, {}, {0, 3})).shape() == Shape{0, 3});
  CHECK(values(K::sparse_coo({1, 3}, {5, 6}, {4})) == Vec{0, 5, 0, 6});
  Tensor x = K::sparse_coo({{1, 0, 2}, {0, 1, 0}}, {3, 4}, {2, 2, 3});
  CHECK(values(x) == Vec{0, 0, 0, 4, 0, 0, 0, 0, 3, 0, 0, 0});
  CHECK(values(K::transpose(x)) == values(K::transpose(K::to_dense(x))));
  Tensor joined = K::concatenate({x, x}, 1);
  CHECK(joined.shape() == Shape{2, 4, 3});
  testing::assert_close(K::to_dense(joined), K::concatenate({K::to_dense(x), K::to_dense(x)}, 1));
  // Far more elements than memory holds: the entries alone take space.
  Tensor huge = K::sparse_coo({{999999999, 7}}, {2}, {1000000000, 1000000000});
  CHECK(K::count_params(huge) == 1000000000000000000);
}

TEST_CASE("bad sparse input is one line", "[sparse]") {
  CHECK_THROWS_WITH(K::sparse_coo({{0, 1}, {3, 0}}, {1, 2}, {3, 4}),
                    "sparse_coo: indices of entry 1 are (3, 0), outside of (3, 4)");
  CHECK_THROWS_WITH(K::sparse_coo({{0, -1}}, {1}, {3, 4}),
                    "sparse_coo: indices of entry 0 are (0, -1), outside of (3, 4)");
  CHECK_THROWS_WITH(K::sparse_coo({{0}}, {1}, {0}), "sparse_coo: indices of entry 0 are (0,), outside of (0,)");
  CHECK_THROWS_WITH(K::sparse_coo({{0, 1}, {1, 1}}, {1}, {3, 4}),
                    "sparse_coo: 2 indices and 1 values; there must be one of each for an entry");
  CHECK_THROWS_WITH(K::sparse_coo({{0, 1, 2}}, {1}, {3, 4}),
                    "sparse_coo: indices of shape (1, 3) for the dense shape (3, 4), which has 2 axes");
  CHECK_THROWS_WITH(K::sparse_coo({0, 1, 2}, {1}, {3, 4}),
                    Catch::Contains("indices are a list of 3 for a dense_shape of 2 axes"));
  CHECK_THROWS_WITH(K::sparse_coo({{0, 1}}, {{1}}, {3, 4}),
                    "sparse_coo: values of shape (1, 1); the rank must be 1: (entries,)");
  CHECK_THROWS_AS(K::sparse_coo({{0.5, 1}}, {1}, {3, 4}), TypeError);
  CHECK_THROWS_WITH(K::sparse_coo(K::constant({{0., 1.}}), {1}, {3, 4}),
                    "sparse_coo: indices are float32; they must be integers; cast them (K::cast)");
  CHECK_THROWS_WITH(K::sparse_coo({}, {}, {}), "sparse_coo: dense_shape is (); a sparse tensor has at least one axis");
  CHECK_THROWS_WITH(
      K::sparse_coo({}, {}, {2, -1}),
      "sparse_coo: dense_shape (2, -1); sizes must be known and not negative (None is shown as -1); use K::shape(x)[i] for an unknown one");
  CHECK_THROWS_WITH(K::sparse_coo({}, {}, {1 << 30, 1 << 30, 2}), Catch::Contains("has more than 2^60 elements"));
  CHECK_THROWS_WITH(K::sparse_csr({0}, {}, {}, {-1, 2}), Catch::Contains("sparse_csr: dense_shape (-1, 2); sizes"));
  CHECK_THROWS_WITH(K::sparse_csr({0, 2}, {0, 1}, {1, 2}, {2, 2}),
                    "sparse_csr: row_starts are 2 for the dense_shape (2, 2); there must be 3, one more than rows");
  CHECK_THROWS_WITH(K::sparse_csr({0, 2, 1}, {0, 1}, {1, 2}, {2, 2}),
                    "sparse_csr: row_starts do not rise from 0 to the number of columns given, 2");
  CHECK_THROWS_WITH(K::sparse_csr({0, 1, 2}, {0, 2}, {1, 2}, {2, 2}),
                    "sparse_csr: columns hold 2 in row 1, outside of (2, 2)");
  CHECK_THROWS_WITH(K::sparse_csr({0, 2}, {0, 1}, {1, 2}, {2}),
                    "sparse_csr: dense_shape has 1 axes; compressed rows describe a matrix");
  CHECK_THROWS_WITH(K::sparse_parts(K::ones({2})), "sparse_parts: x is not sparse; K::to_sparse(x) makes it so");
  CHECK_THROWS_WITH(K::to_sparse(1), "to_sparse: x is a scalar; a sparse tensor has at least one axis");
}

TEST_CASE("what takes dense tensors refuses sparse ones in one line", "[sparse]") {
  Tensor x = K::sparse_coo({{0, 1}}, {1}, {2, 3}), v = K::zeros({2, 3});
  CHECK_THROWS_WITH(x + 1, "add: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(v * x, "multiply: y of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(-x, "negative: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::exp(x), "exp: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::sum(x), "sum: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::reshape(x, {6}), "reshape: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::zeros_like(x), "zeros_like: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::batch_dot(x, v), "batch_dot: x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::update(v, x), "update: new_x of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::set_value(v, x), "set_value: value of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(K::gradients(x, {v}),
                    "gradients: loss of shape (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(x.data<float>(), "data: the tensor (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(x.to_vector<float>(), "to_vector: the tensor (2, 3) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_AS(K::exp(x), TypeError);
  CHECK(values(v) == Vec(6));
}

TEST_CASE("products with a sparse matrix: what fits and what does not", "[sparse]") {
  Tensor a = K::sparse_coo({{0, 1}, {1, 2}}, {2, 3}, {2, 3});
  CHECK(values(K::dot(a, {1, 2, 3})) == Vec{4, 9});
  CHECK(K::dot(a, {1, 2, 3}).shape() == Shape{2});
  CHECK(values(K::dot(K::constant({1, 2}), a)) == Vec{0, 2, 6});
  CHECK(values(K::dot(K::constant({{1, 2}, {3, 4}}), a)) == Vec{0, 2, 6, 0, 6, 12});
  CHECK_THROWS_WITH(K::dot(a, K::ones({4, 2})), "dot: sparse (2, 3) x (4, 2): inner dimensions differ, 3 against 4");
  CHECK_THROWS_WITH(K::dot(K::ones({4, 3}), a), "dot: (4, 3) x sparse (2, 3): inner dimensions differ, 3 against 2");
  CHECK_THROWS_WITH(K::dot(a, K::ones({3, 2}, "float64")),
                    "dot: float32 and float64; cast one of them (K::cast), tensors are not promoted");
  CHECK_THROWS_WITH(K::dot(K::cast(a, "bool"), K::ones({3, 2}, "bool")),
                    "dot: bool is not a number; cast it first (K::cast)");
  CHECK_THROWS_WITH(K::dot(a, a), "dot: both operands are sparse; densify one of them: K::to_dense(y)");
  CHECK_THROWS_AS(K::dot(a, a), NotImplementedError);
  CHECK_THROWS_WITH(K::dot(a, K::ones({2, 3, 2})),
                    "dot: sparse (2, 3) x (2, 3, 2); a sparse matrix takes a dense matrix or vector");
  CHECK_THROWS_WITH(K::dot(K::sparse_coo({}, {}, {2, 2, 3}), K::ones({3, 2})),
                    "dot: sparse (2, 2, 3) x (3, 2); a sparse matrix takes a dense matrix or vector");
  CHECK(values(K::dot(K::cast(a, "int8"), K::constant({{100}, {100}, {100}}, "int8"))) == Vec{-56, 44});  // wraps
}

TEST_CASE("products of random matrices are those of dense algebra, at every level, width, order and thread count",
          "[sparse]") {
  SettingsScope restore;
  Entries e(37, 53, 600, 5);
  for (Level level : kLevels) {
    if (!set_cpu_level(level)) continue;
    for (DType dtype : {float64, float32, float16, bfloat16})
      for (int width : {1, 2, 7, 16, 33, 130}) {
        Tensor x = numbers(53, width, 3, dtype), y = numbers(width, 37, 4, dtype), a = e.sparse(dtype);
        Vec dense = values(K::to_dense(a));
        double eps = dtype == float64 ? 1e-13 : dtype == float32 ? 1e-5 : dtype == float16 ? 2e-2 : 0.15;
        close(K::dot(a, x), product(dense, values(x), 37, 53, width), eps);
        close(K::dot(y, a), product(values(y), dense, width, 37, 53), eps);
      }
  }
  set_cpu_level(restore.before.level);
  Entries large(900, 1100, 20000, 9);
  Tensor x = numbers(1100, 40, 3), a = large.sparse(), v = K::variable(K::constant(large.values, "float64"), "float64");
  Tensor tracked = K::sparse_coo(large.indices, v, {900, 1100}), xv = K::variable(x, "float64");
  Vec forward[2], back[2], of_values[2], densified[2];
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    forward[threads - 1] = values(K::dot(a, x));
    Tensors g = K::gradients(K::sum(K::square(K::dot(tracked, xv))), {xv, v});
    back[threads - 1] = values(g[0]);
    of_values[threads - 1] = values(g[1]);
    densified[threads - 1] = values(a);
  }
  CHECK(forward[0] == forward[1]);
  CHECK(back[0] == back[1]);
  CHECK(of_values[0] == of_values[1]);
  CHECK(densified[0] == densified[1]);
  close(K::dot(a, x), product(large.dense, values(x), 900, 1100, 40), 1e-11);
}

TEST_CASE("the bits of a column of a sparse product do not depend on where it lies", "[sparse]") {
  const Entries m(20, 30, 200, 5);
  at_every_level([&](Level) {
    for (DType dtype : {float32, float64}) {
      const Tensor x = K::random_uniform({30, 45}, -1, 1, dtype, 3), a = m.sparse(dtype), all_columns = K::dot(a, x);
      for (int j = 0; j < 45; ++j) {
        const Tensor one = K::dot(a, x(all, slice(j, j + 1))), beside = all_columns(all, slice(j, j + 1));
        INFO("column " << j << " of " << dtype);
        CHECK(testing::compare(one, beside, {.rtol = 0, .atol = 0}));
      }
    }
  });
}

TEST_CASE("gradients of a sparse product flow to the dense operand and to the values", "[sparse]") {
  Entries e(4, 5, 9, 2);
  Tensor x = K::variable(numbers(5, 3, 1), "float64"), v = K::variable(K::constant(e.values, "float64"), "float64"),
         dy = numbers(4, 3, 7);
  Tensor a = K::sparse_coo(e.indices, v, {4, 5});
  Tensors g = K::gradients(K::sum(K::dot(a, x) * dy), {x, v, a});
  Vec transposed(20), d = values(dy), xs = values(x), expected;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 5; ++j) transposed[j * 4 + i] = e.dense[i * 5 + j];
  close(g[0], product(transposed, d, 5, 4, 3), 1e-14);
  for (std::size_t k = 0; k < 9; ++k) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c)
      sum += d[static_cast<std::size_t>(e.indices[2 * k]) * 3 + c] *
             xs[static_cast<std::size_t>(e.indices[2 * k + 1]) * 3 + c];
    expected.push_back(sum);
  }
  close(g[1], expected, 1e-14);
  CHECK(K::is_sparse(g[2]));  // of a sparse tensor: sparse
  CHECK(values(K::sparse_parts(g[2]).values) == values(g[1]));
  // A constant's values are on no tape.
  CHECK_THROWS_WITH(K::gradients(K::sum(K::dot(e.sparse(), x)), {e.sparse()}),
                    Catch::Contains("was not recorded (it is a constant)"));
}

TEST_CASE("gradients of everything sparse are those of differences, first and second order", "[sparse]") {
  Entries e(3, 4, 7, 4);
  std::vector<std::int64_t> at = e.indices;
  Tensor v = K::constant(e.values, "float64"), x = numbers(4, 2, 5), y = numbers(2, 3, 6), w = numbers(3, 4, 8);
  auto all = [&](const Tensors& in) -> Tensors {
    Tensor a = K::sparse_coo(at, in[0] * in[0], {3, 4});
    return {K::dot(a, in[1]), K::dot(in[2], a), K::to_dense(K::concatenate({a, K::to_sparse(in[3])}, 0)),
            K::to_dense(K::transpose(a)), K::dot(K::transpose(a), K::dot(a, in[1]))};
  };
  Tensors in{v, x, y, w};
  testing::Comparison first = testing::gradcheck(all, in), second = testing::gradgradcheck(all, in);
  CHECK(first.message == "");
  CHECK(second.message == "");
}

TEST_CASE("stop_gradient, identity and detach of a sparse tensor", "[sparse]") {
  Tensor v = K::variable({1, 2}), x = K::sparse_coo({{0, 1}, {1, 0}}, v, {2, 2});
  CHECK_FALSE(K::gradients(K::sum(K::to_dense(K::stop_gradient(x))), {v})[0].defined());
  CHECK(values(K::gradients(K::sum(K::to_dense(K::identity(x))), {v})[0]) == Vec{1, 1});
  Tensor kept = x.detach(), fixed = K::variable(x);
  K::update(v, {5, 6});
  CHECK(values(x) == Vec{0, 5, 6, 0});
  CHECK(values(kept) == Vec{0, 1, 2, 0});
  CHECK(values(fixed) == Vec{0, 1, 2, 0});
}

TEST_CASE("to_sparse finds the elements that are not zero, and parts come back", "[sparse]") {
  Tensor x = K::to_sparse({{0, 3, 0}, {4, 0, 5}});
  auto [indices, held, dense_shape] = K::sparse_parts(x);
  CHECK(values(indices) == Vec{0, 1, 1, 0, 1, 2});
  CHECK(indices.dtype() == "int64");
  CHECK(values(held) == Vec{3, 4, 5});
  CHECK(values(dense_shape) == Vec{2, 3});
  CHECK(dense_shape.dtype() == "int64");
  CHECK(K::is_sparse(K::to_sparse(x)));
  CHECK(printed(K::SparseParts()) == "SparseParts(indices=Tensor(),\nvalues=Tensor(),\ndense_shape=Tensor())");
  Tensor nan = K::to_sparse({0, NAN, -0.0});
  CHECK(K::sparse_parts(nan).values.size() == 1);
}

TEST_CASE("a sparse tensor prints its entries as they are listed", "[sparse]") {
  CHECK(printed(K::sparse_coo({{0, 1}, {12, 0}, {0, 1}}, {1.5, -2, 0.25}, {13, 4})) ==
        "( 0, 1)   1.5\n(12, 0)  -2.\n( 0, 1)   0.25\n(13, 4) float32 cpu, sparse, 3 entries");
  CHECK(printed(K::sparse_coo({{0}}, {1}, {3}, "int32")) == "(0,)  1\n(3,) int32 cpu, sparse, 1 entry");
  CHECK(printed(K::sparse_coo({}, {}, {2, 3})) == "no entries\n(2, 3) float32 cpu, sparse, 0 entries");
  CHECK(printed(K::placeholder({K::None, 3}, None, None, true, "adjacency")) ==
        "Tensor(\"adjacency\", shape=(None, 3), dtype=float32, device=cpu, sparse, symbolic)");
  std::vector<std::int64_t> at, v;
  for (std::int64_t k = 0; k < 200; ++k) at.push_back(k), v.push_back(k);
  CHECK(
      printed(K::sparse_coo(at, v, {200})) ==
      "(  0,)    0\n(  1,)    1\n(  2,)    2\n...\n(197,)  197\n(198,)  198\n(199,)  199\n(200,) int64 cpu, sparse, 200 entries");
  CHECK(std::string(array_text(K::sparse_coo({{0, 1}}, {1}, {2, 2})).c_str()) == "(0, 1)  1.");
}

TEST_CASE("compressed rows and columns are made once for a matrix, however it is used", "[sparse]") {
  Entries e(50, 60, 400, 3);
  auto before = totals();
  {
    Tensor a = e.sparse(), x = K::variable(numbers(60, 4, 1), "float64"),
           p = K::placeholder({50, 60}, None, "float64", true);
    auto f = K::function({p}, {K::dot(p, x), K::gradients(K::sum(K::dot(p, x)), {x})[0]});
    auto made = totals().live_bytes;
    K::gradients(K::sum(K::dot(a, x)), {x});
    auto prepared = totals().live_bytes;
    CHECK(prepared - made == 8 * (51 + 61) + 2 * 2 * 4 * 400);  // starts, and places and columns of each entry
    K::dot(a, x);
    f({a});
    f({K::transpose(K::transpose(a))});
    CHECK(totals().live_bytes == prepared);
  }
  auto after = totals();
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.live_nodes == before.live_nodes);
  CHECK(after.live_tensors == before.live_tensors);
}

TEST_CASE("parts of a sparse tensor that are sparse themselves are refused", "[sparse]") {
  Tensor places = K::constant({{0}, {2}}, "int64"), values = K::constant({1, 2});
  Tensor line = K::sparse_coo({{0}, {1}}, values, {2}),
         integers = K::sparse_coo({{0}, {1}}, K::constant({1, 2}, "int64"), {2});  // as long as they have entries
  Tensor pairs = K::to_sparse(K::constant({{0, 1}, {1, 0}}, "int64")),
         fed = K::placeholder({2}, None, "float32", /*sparse=*/true);
  const std::string sparse = " of shape (2,) is sparse; densify it first: K::to_dense(x)";
  for (const Tensor& v : {line, fed})
    for (DType dtype : {DType(), float64}) {
      CHECK(error_of([&] { K::sparse_coo(places, v, {3}, dtype); }) == "sparse_coo: values" + sparse);
      CHECK(error_of([&] { K::sparse_csr({0, 1, 2}, {0, 1}, v, {2, 3}, dtype); }) == "sparse_csr: values" + sparse);
    }
  CHECK(error_of([&] {
          K::sparse_coo(pairs, values, {3, 3});
        }) == "sparse_coo: indices of shape (2, 2) is sparse; densify it first: K::to_dense(x)");
  CHECK(error_of([&] { K::sparse_coo(places, values, integers); }) == "sparse_coo: dense_shape" + sparse);
  CHECK(error_of([&] { K::sparse_csr(integers, {0, 1}, values, {1, 3}); }) == "sparse_csr: row_starts" + sparse);
  CHECK(error_of([&] { K::sparse_csr({0, 1, 2}, integers, values, {2, 3}); }) == "sparse_csr: columns" + sparse);
}

TEST_CASE("indices of three axes are refused, and sparse tensors of computed values have their gradients in any order",
          "[sparse]") {
  CHECK_THROWS_WITH(K::sparse_coo(K::zeros({1, 1, 2}, "int32"), {1}, {3, 4}),
                    "sparse_coo: indices of shape (1, 1, 2); the rank must be 2: (entries, axes)");
  Tensor v = K::variable({0.5, -1.0}, "float64"), m = K::constant({{1, 2}, {3, 4}}, "float64");
  Tensor s = K::sparse_coo({{0, 1}, {1, 0}}, K::exp(v) * 2.0, {2, 2});
  Tensor g = K::gradients(K::sum(K::dot(s, m)), {v})[0];  // 2 e^v[0] (3 + 4), 2 e^v[1] (1 + 2)
  testing::assert_close(g, K::constant({14 * std::exp(0.5), 6 * std::exp(-1.0)}, "float64"), {.rtol = 1e-12});
  Tensor dense = K::to_dense(s);
  testing::assert_close(K::gradients(K::sum(K::square(dense)), {v})[0],
                        K::constant({8 * std::exp(1.0), 8 * std::exp(-2.0)}, "float64"), {.rtol = 1e-12});
}

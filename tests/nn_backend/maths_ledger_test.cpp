// tests/nn_backend/maths_ledger_test.cpp - where the backends of Keras' documents disagree, and
// other rules that hold for all functions of a family: linear algebra, reductions, elementwise, shapes, activations,
// losses.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using List = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor integers(const List& v, DType dtype = int32) { return K::constant(v, dtype); }

/// floatx while it lives.
struct Floatx : SettingsScope {
  explicit Floatx(Name name) { K::set_floatx(name); }
};

}  // namespace

TEST_CASE("dot takes vectors as NumPy does", "[ledger]") {
  Tensor v = K::constant({1, 2}), m = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK(K::dot(v, v).shape() == Shape{});
  CHECK(K::dot(v, v).item<float>() == 5);
  CHECK(values(K::dot(v, m)) == List{9, 12, 15});
  CHECK(values(K::dot(K::transpose(m), v)) == List{9, 12, 15});
}

TEST_CASE("batch_dot takes negative axes and checks", "[ledger]") {
  Tensor x = K::ones({2, 3, 4}), y = K::ones({2, 4, 5});
  CHECK(K::batch_dot(x, y, {-1, -2}).shape() == Shape{2, 3, 5});
  CHECK_THROWS_AS(K::batch_dot(x, y, {-2, -2}), ValueError);
}

TEST_CASE("transpose reverses all axes", "[ledger]") {
  CHECK(K::transpose(K::ones({2, 3, 4})).shape() == Shape{4, 3, 2});
}

TEST_CASE("a negative index of gather is an error", "[ledger]") {
  CHECK_THROWS_AS(K::gather(K::constant({1, 2, 3}), {-1}), ValueError);
}

TEST_CASE("means of integers have floatx, whatever it is", "[ledger]") {
  for (const char* name : {"float16", "float32", "float64"}) {
    Floatx floatx{std::string(name)};
    for (DType dtype : {int8, uint8, int32, int64, bool_}) {
      Tensor x = K::constant({1, 0, 0, 1}, dtype);
      CHECK(K::mean(x).dtype() == K::floatx());
      CHECK(K::mean(x).item<double>() == .5);
      CHECK(K::var(x).item<double>() == .25);
      CHECK(K::std(x).item<double>() == .5);
    }
  }
}

TEST_CASE("any and all are bool and do not cancel", "[ledger]") {
  CHECK(K::any(K::constant({1, -1})).dtype() == bool_);
  CHECK(K::any(K::constant({1, -1})).item<bool>());
  CHECK(K::any(K::constant({0.0, kNan})).item<bool>());
  CHECK(K::all(K::constant({1e-30, kNan})).item<bool>());
  CHECK_FALSE(K::all(K::constant({1, -0.0})).item<bool>());
}

TEST_CASE("sums keep integer dtypes and wrap", "[ledger]") {
  CHECK(K::sum(integers({100, 100}, int8)).dtype() == int8);
  CHECK(K::sum(integers({100, 100}, int8)).item<int>() == -56);
  CHECK(K::prod(integers({16, 17}, uint8)).item<int>() == 16);
}

TEST_CASE("places of extremes are int64", "[ledger]") {
  CHECK(K::argmax(K::constant({1, 3, 3})).dtype() == int64);
  // A row is searched in blocks of 4096 elements.
  for (std::int64_t n : {4095, 4096, 4097, 8192}) {
    const Tensor x = K::arange(n);
    CHECK(K::argmax(x).item<std::int64_t>() == n - 1);
    CHECK(K::argmax(-x).item<std::int64_t>() == 0);
    CHECK(K::argmin(K::abs(x - 4000)).item<std::int64_t>() == 4000);
  }
  CHECK(K::argmax(K::constant({1, 3, 3})).item<int>() == 1);
}

TEST_CASE("logsumexp is stable, sqrt of -1 is 0, log of 0 is -inf, the sign of 0 is 0", "[ledger]") {
  CHECK(K::logsumexp(K::constant({1e4, 1e-4})).item<float>() == 1e4f);
  CHECK(K::sqrt(-1).item<float>() == 0);
  CHECK(K::log(0).item<double>() == -kInf);
  CHECK(values(K::sign(K::constant({0.0, -0.0}))) == List{0, 0});
}

TEST_CASE("where the host bounds of clip cross, the upper one is raised to the lower", "[ledger]") {
  CHECK(values(K::clip(K::constant({-3, 0, 3}), 1, -1)) == List{1, 1, 1});
  CHECK(values(K::clip(integers({-3, 0, 3}), 1, -1)) == List{1, 1, 1});
  CHECK(values(K::clip(K::constant({-3, 0, 3}), K::constant(1), K::constant(-1))) == List{1, 1, 1});
}

TEST_CASE("comparisons are bool", "[ledger]") {
  for (auto f : {K::equal, K::not_equal, K::greater, K::greater_equal, K::less, K::less_equal}) {
    Tensor x = K::variable({1, 2});
    CHECK(f(x, 1).dtype() == bool_);
    CHECK_FALSE(K::gradients(K::cast(f(x, 1), "float32"), {x})[0].defined());
  }
}

TEST_CASE("l2_normalize is over all axes, with 1e-12 under the root", "[ledger]") {
  CHECK(values(K::l2_normalize(K::constant({{3, 0}, {0, 4}}, "float64"))) == List{.6, 0, 0, .8});
  CHECK(values(K::l2_normalize(K::constant({0, 0}))) == List{0, 0});
}

TEST_CASE("tile adds no axes, expand_dims and squeeze take one", "[ledger]") {
  CHECK_THROWS_AS(K::tile(K::constant({1, 2}), {2, 1}), NotImplementedError);
  CHECK(K::expand_dims(K::constant({1, 2}), 0).shape() == Shape{1, 2});
  CHECK(K::squeeze(K::ones({1, 2, 1}), 0).shape() == Shape{2, 1});
}

TEST_CASE("one_hot is float32 zeros out of range, whatever floatx is", "[ledger]") {
  Floatx floatx("float64");
  CHECK(K::one_hot(integers({0, 2, -1}), 2).dtype() == float32);
  CHECK(values(K::one_hot(integers({0, 2, -1}), 2)) == List{1, 0, 0, 0, 0, 0});
}

TEST_CASE("a slice beyond the end and an empty list are errors", "[ledger]") {
  CHECK_THROWS_AS(K::slice(K::constant({1, 2, 3}), 2, 2), ValueError);
  CHECK_THROWS_AS(K::concatenate({}), ValueError);
}

TEST_CASE("relu keeps x at its threshold, and above a negative one", "[ledger]") {
  CHECK(values(K::relu(K::constant({0.5, 0.25}), 0, None, .5)) == List{.5, 0});
  CHECK(values(K::relu(K::constant({-1, -3}), 0, None, -2)) == List{-1, 0});
  CHECK(values(K::relu(K::constant({-1, -3, 1}), 0, 4, -2)) == List{0, 0, 1});
}

TEST_CASE("softplus and elu do not overflow", "[ledger]") {
  CHECK(values(K::softplus(K::constant({1000, -1000}))) == List{1000, 0});
  CHECK(values(K::elu(K::constant({1000, -1000}))) == List{1000, -1});
}

TEST_CASE("cross-entropies from logits are not clipped, those from probabilities are, once", "[ledger]") {
  Tensor one = K::constant({{0, 1}}, "float64"), z = K::constant({{50, 0}}, "float64");
  CHECK(values(K::categorical_crossentropy(one, z, true))[0] == Approx(50));
  CHECK(values(K::categorical_crossentropy(one, K::softmax(z)))[0] == Approx(-std::log(1e-7)));
  CHECK(values(K::categorical_crossentropy(K::transpose(one), K::transpose(z), true, 0))[0] == Approx(50));
  CHECK(values(K::binary_crossentropy(K::constant(1, "float64"), K::constant(0, "float64")))[0] == Approx(16.118096));
}

TEST_CASE("in_top_k takes ties in, and rows that are not finite out for every k", "[ledger]") {
  Tensor p = K::constant({{1, 1, 0}, {kNan, 1, 0}, {1, kInf, 0}});
  for (int k : {1, 3, 100}) CHECK(values(K::in_top_k(p, {1, 1, 1}, k)) == List{1, 0, 0});
  CHECK(values(K::in_top_k(K::constant({{1, 2}}, "float16"), {0}, 2)) == List{1});
}

TEST_CASE("numbers beside integers are taken where they are integral and fit", "[ledger]") {
  Tensor x = integers({1, 5}, uint8);
  CHECK(values(K::maximum(x, 2.0)) == List{2, 5});
  CHECK(values(K::pow(x, 2.0)) == List{1, 25});
  CHECK(values(K::equal(x, 5.0)) == List{0, 1});
  CHECK_THROWS_WITH(K::maximum(x, 300), "maximum: y 300 does not fit uint8");
  CHECK_THROWS_WITH(K::less(x, -1), "less: y -1 does not fit uint8");
  CHECK_THROWS_WITH(K::clip(x, -1, 3), "clip: min_value -1 does not fit uint8");
  CHECK_THROWS_WITH(K::minimum(x, 1.5),
                    "minimum: y 1.5 is not an integer, and uint8 is wanted; convert it with K::cast");
  CHECK_THROWS_AS(K::pow(2.5, x), TypeError);
}

TEST_CASE("float16 is summed in float32 and rounded once", "[ledger]") {
  Tensor x = K::constant(List(70000, 10.0), "float16");
  CHECK(K::mean(x).item<double>() == 10);
  CHECK(K::var(x).item<double>() == 0);
  CHECK(K::std(x).item<double>() == 0);
  CHECK(K::logsumexp(x).item<double>() == Approx(10 + std::log(70000)).epsilon(1e-3));
  CHECK(K::sum(K::constant(List(6000, 10.0), "float16")).item<double>() == 60000);
  CHECK(K::cumsum(K::constant(List(5000, 1.0), "float16"))[4999].item<double>() == 5000);
  CHECK(values(K::l2_normalize(K::constant({300, 400}, "float16")))[0] == Approx(.6).epsilon(1e-3));
  CHECK(K::dot(x, K::constant(List(70000, 0.001), "float16")).item<double>() == Approx(700).epsilon(2e-3));
}

TEST_CASE("batch_dot of placeholders of which only the ranks are known has no sizes but 1", "[ledger]") {
  struct {
    int x, y;
    Axes axes;
    int rank;
  } const cases[] = {{4, 4, {2, 3}, 5}, {4, 3, 2, 4},      {3, 4, {2, 3}, 4},
                     {3, 3, {2, 1}, 3}, {2, 3, {1, 2}, 2}, {2, 2, None, 2}};
  for (const auto& c : cases) {
    Tensor z = K::batch_dot(K::placeholder(None, c.x), K::placeholder(None, c.y), c.axes);
    CHECK(z.ndim() == c.rank);
    for (int i = 0; i < z.ndim(); ++i) CHECK((z.shape()[i] == None || std::int64_t(z.shape()[i]) == 1));
  }
}

TEST_CASE("gather's gradient is as large as what was gathered from, never indices by rows", "[ledger]") {
  const std::int64_t rows = 20000, width = 16, n = 4096;
  Tensor x = K::variable(List(static_cast<std::size_t>(rows * width), 1.0), "float32");
  x = K::variable(K::reshape(x, {rows, width}));
  Tensor loss = K::sum(K::gather(x, K::cast(K::arange(n) * 3, "int32")));
  reset_peak_memory();
  std::int64_t before = memory_stats().live;
  Tensor g = K::gradients(loss, {x})[0];
  // The gradient, what comes back through the sum, and no more; n * rows floats would be 328 MB.
  CHECK(memory_stats().peak - before < 3 * rows * width * 4);
  CHECK(K::sum(g).item<double>() == n * width);
}

TEST_CASE("unknown ranks give unknown ranks, or an error that asks for the rank", "[ledger]") {
  Tensor any = K::placeholder();
  CHECK(K::exp(any).ndim() == -1);
  CHECK(K::sum(any).shape() == Shape{});
  CHECK(K::sum(any, 0).ndim() == -1);
  CHECK(K::transpose(any).ndim() == -1);
  CHECK(K::gather(any, {0}).ndim() == -1);
  CHECK(K::flatten(any).ndim() == 1);
  CHECK(K::batch_flatten(any).ndim() == 2);
  CHECK(K::permute_dimensions(any, {1, 0}).ndim() == 2);
  CHECK(K::dot(any, {{1}}).ndim() == -1);
  CHECK(K::batch_dot({{1}}, any).ndim() == -1);
  CHECK_THROWS_AS(K::repeat(any, 2), AssertionError);
  CHECK_THROWS_WITH(K::sparse_categorical_crossentropy({0}, any, true, 1),
                    "sparse_categorical_crossentropy: axis is 1; where the rank of output is unknown it must be -1");
}

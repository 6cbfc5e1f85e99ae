// tests/numpy/unknown_shapes_test.cpp - functions of np and nn whose arguments must fit together: a function that was
// made before their sizes were known refuses what an eager call refuses, in the same words, and computes what it
// computes.
#include <kassette/backend.h>
#include <kassette/numpy/fft.h>
#include <kassette/numpy/linalg.h>
#include <kassette/nn.h>
#include <kassette/numpy.h>
#include <kassette/testing.h>

#include <functional>

#include "core/impl.h"
#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace nn = kassette::nn;
namespace np = kassette::numpy;

namespace {

using Call = std::function<Tensors(const Tensors&)>;

/// What a call of placeholders and of these tensors gives: with the rank alone, or with nothing but the dtype.
Tensors played(const Call& call, const Tensors& in, bool ranks) {
  Tensors xs;
  for (const Tensor& x : in)
    xs.push_back(ranks ? K::placeholder(None, x.ndim(), x.dtype()) : K::placeholder(None, None, x.dtype()));
  return K::function(xs, call(xs))(in);
}

Tensor zeros(const Shape& shape, DType dtype = float32) { return K::zeros(shape, dtype); }
Tensor ones(const Shape& shape, DType dtype = float32) { return K::ones(shape, dtype); }

struct Refused {
  const char* message;
  Tensors in;
  Call call;
  bool unranked = false;  // the rank need not be known
};

void check_refused(const std::vector<Refused>& rows) {
  for (const Refused& row : rows) {
    INFO(row.message);
    CHECK(error_of([&] { (void)row.call(row.in); }) == row.message);
    CHECK(error_of([&] { (void)played(row.call, row.in, /*ranks=*/true); }) == row.message);
    if (row.unranked) CHECK(error_of([&] { (void)played(row.call, row.in, /*ranks=*/false); }) == row.message);
  }
}

struct Computed {
  const char* name;
  Tensors in;
  Call call;
  bool unranked = false;
};

void check_computed(const std::vector<Computed>& rows) {
  for (const Computed& row : rows) {
    INFO(row.name);
    const Tensors eager = row.call(row.in);
    for (bool ranks : {true, false}) {
      if (!ranks && !row.unranked) continue;
      const Tensors later = played(row.call, row.in, ranks);
      REQUIRE(later.size() == eager.size());
      for (std::int64_t i = 0; i < eager.size(); ++i) {
        CHECK(later[i].dtype() == eager[i].dtype());
        CHECK(testing::compare(later[i], eager[i]).message.empty());
      }
    }
  }
}

}  // namespace

TEST_CASE("losses of unknown shapes refuse predictions of another shape", "[nn][numpy]") {
  using Loss = Tensor (*)(const Operand&, const Operand&);
  struct {
    const char* name;
    Loss f;
  } const losses[] = {
      {"mean_squared_error", nn::mean_squared_error},
      {"mean_absolute_error", nn::mean_absolute_error},
      {"huber", [](const Operand& t, const Operand& y) { return nn::huber(t, y); }},
      {"log_cosh", nn::log_cosh},
      {"kl_divergence", nn::kl_divergence},
      {"poisson", nn::poisson},
      {"cosine_similarity", [](const Operand& t, const Operand& y) { return nn::cosine_similarity(t, y); }},
      {"hinge", nn::hinge},
      {"squared_hinge", nn::squared_hinge},
      {"categorical_hinge", nn::categorical_hinge},
  };
  for (const auto& loss : losses) {
    const std::string one = std::string(loss.name) + ": y_true has shape (2, 1) and y_pred (2, 3)",
                      other = "; both must have the same shape";
    check_refused({{(one + other).c_str(),
                    {ones({2, 1}), ones({2, 3})},
                    [&](const Tensors& x) { return Tensors{loss.f(x[0], x[1])}; },
                    loss.f != losses[6].f}});
    const Tensors fitting{ones({2, 3}), ones({2, 3}) * 0.5};
    const Tensor y = loss.f(fitting[0], fitting[1]);
    const Tensors z = played([&](const Tensors& x) { return Tensors{loss.f(x[0], x[1])}; }, fitting, true);
    CHECK(testing::compare(z[0], y, {.rtol = 0, .atol = 0}).message.empty());
  }
  auto triplet = [](const Tensors& x) { return Tensors{nn::triplet_margin_loss(x[0], x[1], x[2])}; };
  check_refused({{"triplet_margin_loss: positive has shape (1, 3) and anchor (2, 3); both must have the same shape",
                  {ones({2, 3}), ones({1, 3}), ones({2, 3})},
                  triplet,
                  true},
                 {"triplet_margin_loss: negative has shape (2, 1) and anchor (2, 3); both must have the same shape",
                  {ones({2, 3}), ones({2, 3}), ones({2, 1})},
                  triplet,
                  true}});
}

TEST_CASE("np functions of unknown shapes refuse arguments that do not fit together", "[numpy]") {
  const Tensor matrix = ones({2, 3}), row = ones({3}), pair = ones({2}), one = ones({1});
  check_refused({
      {"segment_sum: segment_ids have shape (1,) and x (2, 3); there must be one for each row",
       {matrix, zeros({1}, int64)},
       [](const Tensors& x) { return Tensors{np::segment_sum(x[0], x[1], 4)}; }},
      {"bincount: weights have shape (1,) and x (3,); the shapes must be the same",
       {zeros({3}, int64), one},
       [](const Tensors& x) { return Tensors{np::bincount(x[0], {.weights = x[1]})}; }},
      {"histogram: weights have shape (1, 3) and x (2, 3); the shapes must be the same",
       {matrix, ones({1, 3})},
       [](const Tensors& x) { return Tensors{np::histogram(x[0], 3, {.weights = x[1]}).counts}; },
       true},
      {"histogram: range has shape (3,); it must be two numbers",
       {matrix, row},
       [](const Tensors& x) { return Tensors{np::histogram(x[0], 3, {.range = x[1]}).counts}; }},
      {"histogram2d: y has shape (1,) and x (3,); the shapes must be the same",
       {row, one},
       [](const Tensors& x) { return Tensors{np::histogram2d(x[0], x[1], 3).counts}; },
       true},
      {"average: weights have shape (1,) and x (2, 3); they must have the shape of x or that of the axes",
       {matrix, one},
       [](const Tensors& x) { return Tensors{np::average(x[0], {.axis = 1, .weights = x[1]})}; }},
      {"average: weights have shape (1, 3) and x (2, 3); they must have the shape of x or that of the axes",
       {matrix, ones({1, 3})},
       [](const Tensors& x) { return Tensors{np::average(x[0], {.weights = x[1]})}; },
       true},
      {"cov: fweights have shape (1,); there must be one for each observation",
       {matrix, ones({1}, int64)},
       [](const Tensors& x) { return Tensors{np::cov(x[0], {.fweights = x[1]})}; }},
      {"vecdot: (1,) x (3,): axis 0 of x and axis 0 of y differ in size",
       {one, row},
       [](const Tensors& x) { return Tensors{np::vecdot(x[0], x[1])}; }},
      {"inner: (2, 3) x (2,): axis 1 of x and axis 0 of y differ in size",
       {matrix, pair},
       [](const Tensors& x) { return Tensors{np::inner(x[0], x[1])}; }},
      {"matmul: (2, 3) x (2,): axis 1 of x and axis 0 of y differ in size",
       {matrix, pair},
       [](const Tensors& x) { return Tensors{np::matmul(x[0], x[1])}; }},
      {"cross: (4,) x (2, 4): axis -1 has size 4; vectors must have three elements",
       {ones({4}), ones({2, 4})},
       [](const Tensors& x) { return Tensors{np::cross(x[0], x[1])}; }},
      {"trapezoid: x of shape (2,) does not fit y of shape (2, 3) along axis 1",
       {matrix, pair},
       [](const Tensors& x) { return Tensors{np::trapezoid(x[0], x[1])}; }},
      {"gradient: spacing of shape (2,); it must be a number or the 3 coordinates of axis 0",
       {row, pair},
       [](const Tensors& x) { return np::gradient(x[0], x[1]); }},
      {"gradient: f of shape (1,); axis 0 must have at least 2 elements",
       {one},
       [](const Tensors& x) { return np::gradient(x[0]); }},
      {"interp: fp has 2 elements; there must be 3, as in xp",
       {one, row, pair},
       [](const Tensors& x) { return Tensors{np::interp(x[0], x[1], x[2])}; }},
      {"interp: xp is empty",
       {one, zeros({0}), zeros({0})},
       [](const Tensors& x) { return Tensors{np::interp(x[0], x[1], x[2])}; }},
      {"convolve: y is empty", {row, zeros({0})}, [](const Tensors& x) { return Tensors{np::convolve(x[0], x[1])}; }},
      {"correlate: x is empty",
       {zeros({0}), row},
       [](const Tensors& x) { return Tensors{np::correlate(x[0], x[1], "full")}; }},
      {"polymul: x is empty",
       {zeros({0}, int32), ones({2}, int32)},
       [](const Tensors& x) { return Tensors{np::polymul(x[0], x[1])}; }},
      {"polyfit: y has shape (2,) and x (3,); it must be (n) or (n, k) for an x of (n)",
       {row, pair},
       [](const Tensors& x) { return Tensors{np::polyfit(x[0], x[1], 1)}; }},
      {"polyfit: w has shape (1,) and x (3,); there must be a weight for each point",
       {row, row, one},
       [](const Tensors& x) { return Tensors{np::polyfit(x[0], x[1], 1, {.w = x[2]})}; }},
  });
}

TEST_CASE("np functions of unknown ranks refuse bins that are no vector", "[numpy]") {
  const Tensors in{ones({4}), ones({1, 2})};
  const Call digitize = [](const Tensors&x) { return Tensors{np::digitize(x[0], x[1])}; },
             histogram = [](const Tensors&x) { return Tensors{np::histogram(x[0], x[1]).counts}; };
  CHECK(error_of([&] { (void)played(digitize, in, false); }) == "digitize: bins has shape (1, 2); the rank must be 1");
  CHECK(error_of([&] { (void)played(histogram, in, false); }) ==
        "histogram: bins has shape (1, 2); it must be a number or a vector");
}

TEST_CASE("np functions of unknown shapes refuse axes that are too short", "[numpy]") {
  const Tensor row = ones({3}), empty = zeros({2, 0});
  check_refused({
      {"partition: kth is 3, the axis has 3 elements",
       {row},
       [](const Tensors& x) { return Tensors{np::partition(x[0], 3)}; },
       true},
      {"argpartition: kth is -4, the axis has 3 elements",
       {row},
       [](const Tensors& x) { return Tensors{np::argpartition(x[0], -4)}; },
       true},
      {"sliding_window_view: window is 4 along an axis of 3; it must not be longer",
       {row},
       [](const Tensors& x) { return Tensors{np::sliding_window_view(x[0], 4)}; }},
      {"cdist: x of shape (2, 3) and y of shape (4, 1); they must be (..., m, width) and (..., n, width), with the same "
       "leading axes",
       {ones({2, 3}), ones({4, 1})},
       [](const Tensors& x) { return Tensors{np::cdist(x[0], x[1], 1)}; }},
      {"cdist: x of shape (2, 3) and y of shape (4, 1); they must be (..., m, width) and (..., n, width), with the same "
       "leading axes",
       {ones({2, 3}), ones({4, 1})},
       [](const Tensors& x) { return Tensors{np::cdist(x[0], x[1])}; }},
      {"glu: x of shape (3,) has 3 elements along axis -1; it must have an even number",
       {row},
       [](const Tensors& x) { return Tensors{nn::glu(x[0])}; }},
      {"median: x has shape (2, 0); there must be elements along axis 1",
       {empty},
       [](const Tensors& x) { return Tensors{np::median(x[0], 1)}; }},
      {"nanmedian: x has shape (2, 0); there must be elements along axis 1",
       {empty},
       [](const Tensors& x) { return Tensors{np::nanmedian(x[0], 1)}; }},
      {"nanquantile: x has shape (2, 0); there must be elements along axis 1",
       {K::zeros({0, 2})},
       [](const Tensors& x) { return Tensors{np::nanquantile(np::transpose(x[0]), 0.5, 1)}; }},
      {"stft: x of shape (0,); there must be one element to be reflected",
       {zeros({0})},
       [](const Tensors& x) { return Tensors{np::fft::stft(x[0], 4, 2, 4).real}; }},
      {"dct: x of shape (0,); there must be one element along the axis",
       {zeros({0})},
       [](const Tensors& x) { return Tensors{np::fft::dct(x[0])}; }},
      {"pad: x of shape (0,); axis 0 must not be empty",
       {zeros({0})},
       [](const Tensors& x) { return Tensors{np::pad(x[0], 1, "edge")}; }},
      {"matrix_power: x of shape (2, 3); its matrices must be square",
       {ones({2, 3})},
       [](const Tensors& x) { return Tensors{np::linalg::matrix_power(x[0], 0)}; }},
      {"einsum: operands hold shape (2, 3), which has two sizes for label 'i'",
       {ones({2, 3})},
       [](const Tensors& x) { return Tensors{np::einsum("ii", {x[0]})}; }},
      {"einsum: operands have sizes 2 and 3 for label 'i'",
       {ones({2}), row},
       [](const Tensors& x) {
         return Tensors{np::einsum("i,i", {x[0], x[1]})};
       }},
  });
}

TEST_CASE("values for places of unknown shapes must broadcast to them", "[numpy]") {
  const Tensor x = zeros({6}), at = zeros({2, 3}, int64);
  // As many elements, in another shape.
  check_refused({
      {"put: v of shape (3, 2) does not broadcast to (2, 3), the shape of the indexed elements",
       {x, at, ones({3, 2})},
       [](const Tensors& t) { return Tensors{np::put(t[0], t[1], t[2])}; }},
      {"at: v of shape (6,) does not broadcast to (2, 3), the shape of the indexed elements",
       {x, at, ones({6})},
       [](const Tensors& t) { return Tensors{t[0].at(t[1]).add(t[2])}; }},
      {"put_along_axis: values of shape (6,) do not broadcast to (2, 3), the shape of the indices",
       {zeros({2, 4}), at, ones({6})},
       [](const Tensors& t) { return Tensors{np::put_along_axis(t[0], t[1], t[2], 1)}; }},
      {"slice_update: start_indices have shape (2,); there must be one for each axis of x",
       {zeros({}), zeros({2}, int64), ones({})},
       [](const Tensors& t) { return Tensors{np::slice_update(t[0], t[1], t[2])}; }},
      {"slice_update: start_indices have shape (2,); there must be one for each axis of x",
       {x, zeros({2}, int64), ones({1})},
       [](const Tensors& t) { return Tensors{np::slice_update(t[0], t[1], t[2])}; }},
  });
}

TEST_CASE("the size of a draw whose parameters have unknown shapes must have room for them", "[numpy]") {
  check_refused({
      {"uniform: size is (1,); the parameters have samples of shape (3,)",
       {ones({3})},
       [](const Tensors& x) { return Tensors{np::random::default_rng(7).uniform(0, x[0], {1})}; },
       true},
      {"normal: size is (1,); the parameters have samples of shape (3,)",
       {ones({3})},
       [](const Tensors& x) { return Tensors{np::random::default_rng(7).normal(x[0], 1, {1})}; },
       true},
      {"choice: p has 2 elements; there must be 3",
       {ones({3}), ones({2}) * 0.5},
       [](const Tensors& x) { return Tensors{np::random::default_rng(7).choice(x[0], {2}, {.p = x[1]})}; }},
      {"choice: size asks for 4 of 3 elements; give .replace = true",
       {ones({3})},
       [](const Tensors& x) { return Tensors{np::random::default_rng(7).choice(x[0], {4}, {.replace = false})}; }},
  });
}

TEST_CASE("array_equal and array_equiv of unknown shapes are false where the shapes differ", "[numpy]") {
  auto equal = [](const Tensors& x) { return Tensors{np::array_equal(x[0], x[1])}; };
  auto equal_nan = [](const Tensors& x) { return Tensors{np::array_equal(x[0], x[1], true)}; };
  auto equiv = [](const Tensors& x) { return Tensors{np::array_equiv(x[0], x[1])}; };
  // From NumPy.
  struct {
    Shape a, b;
    bool equal, equiv;
  } const rows[] = {
      {{2, 3}, {2, 3}, true, true},   {{2, 3}, {3, 2}, false, false}, {{2, 3}, {6}, false, false},
      {{2, 3}, {1, 3}, false, true},  {{2, 3}, {3}, false, true},     {{0, 3}, {0, 3}, true, true},
      {{0, 3}, {3, 0}, false, false}, {{0, 2}, {1, 3}, false, false}, {{0, 3}, {1, 3}, false, true},
      {{}, {3}, false, true},         {{}, {}, true, true},           {{1, 0}, {4, 1}, false, true},
  };
  for (const auto& row : rows) {
    const Tensors in{ones(row.a), ones(row.b)};
    for (bool ranks : {true, false}) {
      CHECK(played(equal, in, ranks)[0].item<bool>() == row.equal);
      CHECK(played(equal_nan, in, ranks)[0].item<bool>() == row.equal);
    }
    CHECK(played(equiv, in, true)[0].item<bool>() == row.equiv);
    CHECK(equal(in)[0].item<bool>() == row.equal);
    CHECK(equiv(in)[0].item<bool>() == row.equiv);
    const Tensors other{ones(row.a), ones(row.b) * 2.0};
    CHECK(played(equal, other, true)[0].item<bool>() == (row.equal && other[0].size() == 0));
  }
  const Tensors nans{K::constant({1, double(NAN)}), K::constant({1, double(NAN)})};
  CHECK(!played(equal, nans, true)[0].item<bool>());
  CHECK(played(equal_nan, nans, true)[0].item<bool>());
}

TEST_CASE("axes of unknown sizes broadcast where those of known ones do", "[numpy][nn]") {
  const Tensor a = K::constant({{1, 2}, {3, 5}}), stack = K::constant({{{2, 1}, {1, 4}}}),
               many = K::constant({{{1}, {2}}, {{3}, {4}}, {{5}, {6}}});
  auto solve = [](const Tensors& x) { return Tensors{np::linalg::solve(x[0], x[1])}; };
  auto triangle = [](const Tensors& x) { return Tensors{np::linalg::solve_triangular(x[0], x[1])}; };
  check_computed({
      {"broadcast_arrays",
       {K::constant({{1}, {2}}), K::constant({3, 4, 5})},
       [](const Tensors& x) {
         return np::broadcast_arrays({x[0], x[1]});
       }},
      {"broadcast_arrays of three",
       {zeros({0, 1}), K::constant({{1, 2}}), ones({1, 1})},
       [](const Tensors& x) { return np::broadcast_arrays(x); }},
      {"solve", {stack, many}, solve},
      {"solve", {np::broadcast_to(stack, {3, 2, 2}), np::broadcast_to(many[0], {1, 2, 1})}, solve},
      {"solve of one more axis", {a, many}, solve},
      {"solve_triangular", {stack, many}, triangle},
      {"einsum",
       {K::constant({{1, 2}, {3, 4}}), K::constant({{5, 6, 7}})},
       [](const Tensors& x) {
         return Tensors{np::einsum("ij,jk->ik", {x[0], x[1]})};
       }},
      {"einsum",
       {ones({1, 3, 2}), ones({4, 1, 5})},
       [](const Tensors& x) {
         return Tensors{np::einsum("...ij,...jk->...ik", {x[0], x[1]})};
       }},
      {"einsum without elements",
       {ones({2, 0}), ones({1, 3})},
       [](const Tensors& x) {
         return Tensors{np::einsum("ij,jk->ik", {x[0], x[1]})};
       }},
      {"interp of one point",
       {K::constant({0, 2, 4, double(NAN)}), K::constant({2}), K::constant({7})},
       [](const Tensors& x) { return Tensors{np::interp(x[0], x[1], x[2])}; }},
      {"interp",
       {K::constant({0, 2, 4, 9, double(NAN)}), K::constant({1, 4, 5}), K::constant({7, 3, 8})},
       [](const Tensors& x) { return Tensors{np::interp(x[0], x[1], x[2])}; }},
      {"polyfit of a half type",
       {K::constant({0, 1, 2, 3}, bfloat16), K::constant({1, 2, 5, 10}, bfloat16)},
       [](const Tensors& x) { return Tensors{np::polyfit(x[0], x[1], 2)}; }},
  });
  check_refused({{"solve: b of shape (2, 2, 1) does not fit a of shape (3, 2, 2); it must have as many rows, and the "
                  "same leading axes",
                  {np::broadcast_to(stack, {3, 2, 2}), ones({2, 2, 1})},
                  solve},
                 {"broadcast_arrays: x holds shapes (2,) and (3,); they must broadcast",
                  {ones({2}), ones({3})},
                  [](const Tensors& x) { return np::broadcast_arrays(x); }}});
}

TEST_CASE("the gradient of interp of one point of an unknown number is 0 for x, not NaN", "[numpy]") {
  const Tensor x = K::placeholder(None, 1), xp = K::placeholder(None, 1), fp = K::placeholder(None, 1);
  const Function f = K::function({x, xp, fp}, K::gradients(K::sum(np::interp(x, xp, fp)), {x, fp}));
  const Tensors g = f({K::constant({0, 2, 4}), K::constant({2}), K::constant({7})});
  CHECK(values(g[0]) == std::vector<double>{0, 0, 0});
  CHECK(values(g[1]) == std::vector<double>{3});
}

TEST_CASE("tensors of unknown sizes without elements are normalized and rearranged", "[nn]") {
  const Tensor none = zeros({0, 4, 4, 4}), no_rows = zeros({2, 0, 4});
  check_computed({
      {"group_normalization", {no_rows}, [](const Tensors& x) { return Tensors{nn::group_normalization(x[0], 2)}; }},
      {"group_normalization",
       {K::constant({{1, 2, 3, 4}, {5, 7, 9, 12}})},
       [](const Tensors& x) { return Tensors{nn::group_normalization(x[0], 2)}; }},
  });
  check_refused({{"group_normalization: groups is 3 and there are 4 channels; it must divide their number",
                  {ones({2, 4})},
                  [](const Tensors& x) { return Tensors{nn::group_normalization(x[0], 3)}; }}});
  const Tensor x = K::placeholder({None, 4, 4, 4});
  for (const Tensor& y : {nn::depth_to_space(x, 2), nn::space_to_depth(x, 2), nn::unfold(x, 2),
                          nn::depth_to_space(x, 2, "channels_first"), nn::space_to_depth(x, 2, "channels_first")}) {
    const Function f = K::function({x}, {y});
    CHECK(f({none})[0].shape()[0] == 0);
    CHECK(f({ones({3, 4, 4, 4})})[0].shape()[0] == 3);
  }
}

TEST_CASE("sizes that decide what is computed must be known when a function is made", "[nn][numpy]") {
  auto message = [](const Call& call, const Tensors& in) {
    (void)call(in);  // fine
    return error_of([&] { (void)played(call, in, true); });
  };
  CHECK(message([](const Tensors& x) { return Tensors{nn::conv(x[0], x[1])}; }, {ones({1, 5, 4}), ones({2, 2, 6})}) ==
        "conv: kernel has shape (2, 2, 6) and inputs (1, 5, 4); the channels must be known when a function is made, "
        "unless there is one group");
  CHECK(message([](const Tensors& x) { return Tensors{np::linalg::lu(x[0]).l}; }, {ones({2, 3})}) ==
        "lu: x of shape (2, 3); the sizes of matrices must be known when a function is made, unless they are square");
  auto attention = [](const Tensors& x) { return Tensors{nn::dot_product_attention(x[0], x[1], x[1], {.scale = 1})}; };
  CHECK(message(attention, {ones({1, 3, 4, 2}), ones({1, 5, 2, 2})}) ==
        "dot_product_attention: key has shape (1, 5, 2, 2) and query (1, 3, 4, 2); the heads must be known when a "
        "function is made, unless they are as many");
}

TEST_CASE("a convolution of images without channels is refused", "[nn]") {
  CHECK(error_of([] {
          (void)nn::conv(zeros({1, 4, 0}), ones({3, 1, 2}));
        }) == "conv: x has shape (1, 4, 0), which has no channels");
}

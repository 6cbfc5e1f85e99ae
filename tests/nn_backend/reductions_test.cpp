// tests/nn_backend/reductions_test.cpp - reductions and scans: values, dtypes, NaN, empty tensors, wrong axes.
#include <kassette/backend.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using List = std::vector<double>;

/// Numbers with a dtype and a shape.
template <class C>
Tensor shaped(const C& v, DType dtype, const Shape& shape) {
  TensorSpec spec;
  spec.dtype = dtype;
  for (std::int64_t d : shape) spec.dims[spec.rank++] = d;
  Tensor t = empty_tensor(spec);
  Tensor flat = K::constant(v, dtype);
  std::memcpy(Access::desc(t).data(), Access::desc(flat).data(), static_cast<std::size_t>(spec.bytes()));
  return t;
}

Tensor counted(const Shape& shape, DType dtype = float32) {
  std::vector<double> v(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i * 7 % 11) - 4;
  return shaped(v, dtype, shape);
}

/// The sum over axes by plain loops in double.
List slow_sum(const Tensor& x, unsigned mask) {
  List in = values(x), out;
  Shape s = x.shape();
  std::vector<std::int64_t> stride(static_cast<std::size_t>(s.rank()) + 1, 0);
  std::int64_t n = 1;
  for (int i = s.rank() - 1; i >= 0; --i)
    if (!(mask >> i & 1)) {
      stride[static_cast<std::size_t>(i)] = n;
      n *= s[i];
    }
  out.resize(static_cast<std::size_t>(n));
  for (std::size_t k = 0; k < in.size(); ++k) {
    std::int64_t rest = static_cast<std::int64_t>(k), at = 0;
    for (int i = s.rank() - 1; i >= 0; --i) {
      at += rest % s[i] * stride[static_cast<std::size_t>(i)];
      rest /= s[i];
    }
    out[static_cast<std::size_t>(at)] += in[k];
  }
  return out;
}

}  // namespace

TEST_CASE("sums over every set of axes agree with plain loops", "[reduce]") {
  for (DType dtype : {float32, float64, float16, bfloat16, int32, int64, int16, int8})
    for (Shape shape : {Shape{4}, Shape{3, 5}, Shape{2, 3, 4}, Shape{2, 1, 3, 5}, Shape{40, 33}, Shape{3, 1, 17, 2}}) {
      Tensor x = counted(shape, dtype);
      for (unsigned mask = 0; mask < 1u << shape.rank(); ++mask) {
        std::vector<int> axes;
        for (int i = 0; i < shape.rank(); ++i)
          if (mask >> i & 1) axes.push_back(i % 2 ? i - shape.rank() : i);
        INFO(dtype << " " << shape << " mask " << mask);
        if (dtype == int8 && shape.numel() > 60) continue;
        Tensor y = K::sum(x, axes);
        CHECK(y.dtype() == dtype);
        CHECK(values(y) == slow_sum(x, mask));
        Tensor kept = K::sum(x, axes, true);
        CHECK(kept.ndim() == shape.rank());
        CHECK(values(kept) == values(y));
      }
    }
}

TEST_CASE("extremes and means over axes", "[reduce]") {
  Tensor x = K::constant({{1, 5, 2}, {4, 3, 6}});
  CHECK(K::max(x).item<float>() == 6);
  CHECK(K::min(x).item<float>() == 1);
  CHECK(values(K::max(x, 0)) == List{4, 5, 6});
  CHECK(values(K::max(x, 1)) == List{5, 6});
  CHECK(values(K::min(x, -1)) == List{1, 3});
  CHECK(values(K::mean(x, 0)) == List{2.5, 4, 4});
  CHECK(K::mean(x).item<float>() == 3.5f);
  CHECK(K::mean(x, {0, 1}, true).shape() == Shape{1, 1});
  CHECK(K::sum(x, {}).shape() == Shape{2, 3});
  CHECK(K::max(counted({4, 2, 3}), {1, -1}).shape() == Shape{4});
}

TEST_CASE("int32 sums wrap and stay int32", "[reduce]") {
  Tensor x = K::constant({2147483647, 1}, "int32");
  CHECK(K::sum(x).dtype() == int32);
  CHECK(K::sum(x).item<std::int32_t>() == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("reductions of nothing", "[reduce]") {
  Tensor x = shaped(List{}, "float32", Shape{3, 0});
  CHECK(values(K::sum(x, 1)) == List{0, 0, 0});
  CHECK(std::isinf(K::max(x).item<float>()));
  CHECK(K::max(x).item<float>() < 0);
  CHECK(K::min(x).item<float>() > 0);
  CHECK(std::isnan(K::mean(x).item<float>()));
  CHECK(K::sum(x, 0).shape() == Shape{0});
  Tensor i = shaped(List{}, "int8", {0});
  CHECK(K::max(i).item<int>() == -128);
  CHECK(K::min(i).item<int>() == 127);
}

TEST_CASE("NaN passes through extremes, wherever it stands", "[reduce]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int n : {3, 40, 300, 5000})
    for (int at : {0, n / 2, n - 1}) {
      std::vector<float> v(static_cast<std::size_t>(n), 1.f);
      v[static_cast<std::size_t>(at)] = nan;
      INFO(n << " " << at);
      CHECK(std::isnan(K::max(K::constant(v)).item<float>()));
      CHECK(std::isnan(K::min(K::constant(v)).item<float>()));
      CHECK(std::isnan(values(K::max(shaped(v, "float32", {n, 1}), 0))[0]));
    }
}

TEST_CASE("products, variances, truth and places of extremes", "[reduce]") {
  Tensor x = K::constant({{1, 5, 2}, {4, 3, 5}});
  CHECK(K::prod(x).item<float>() == 600);
  CHECK(values(K::prod(x, 1)) == List{10, 60});
  CHECK(values(K::prod(shaped(List{}, "float32", Shape{2, 0}), 1)) == List{1, 1});
  CHECK(values(K::var(x, 0)) == List{2.25, 1, 2.25});
  CHECK(values(K::std(x, 0)) == List{1.5, 1, 1.5});
  CHECK(K::var(K::constant({{7}}), 1).item<float>() == 0);
  // As NumPy has it, also where nothing is summed: np.var([[nan], [inf], [2]], 1) is [nan, nan, 0].
  const Tensor alone = K::constant({{std::nan("")}, {-INFINITY}, {2}});
  for (const Tensor& spread : {K::var(alone, 1), K::std(alone, 1)}) {
    CHECK(std::isnan(spread[0].item<float>()));
    CHECK(std::isnan(spread[1].item<float>()));
    CHECK(spread[2].item<float>() == 0);
  }
  CHECK(std::isnan(K::var(shaped(List{}, "float32", {0})).item<float>()));
  CHECK(values(K::argmax(x)) == List{1, 2});
  CHECK(values(K::argmax(x, 0)) == List{1, 0, 1});
  CHECK(values(K::argmin(x, 1)) == List{0, 1});
  CHECK(K::argmax(x).dtype() == int64);
  CHECK(K::argmax(x, None).item<int>() == 1);  // the first of the ties
  CHECK(K::argmax(K::constant({1, 3, 3}, "int32")).item<int>() == 1);
  CHECK(K::argmin(K::constant({true, false}, "bool")).item<int>() == 1);
  CHECK(K::argmax(K::constant({1.0, std::nan(""), 3.0})).item<int>() == 1);
  CHECK(values(K::argmax(K::constant(List{1, 3, 3, 2, 9, 9}, "float16", {3, 2}), 0)) == List{2, 2});
  CHECK_THROWS_WITH(K::argmax(shaped(List{}, "float32", Shape{2, 0})),
                    "argmax: x of shape (2, 0) has no elements along the axis");
  CHECK(K::argmax(shaped(List{}, "float32", Shape{0, 2})).shape() == Shape{0});
  CHECK_THROWS_AS(K::argmax(x, {0, 1}), ValueError);
  CHECK(values(K::any(K::constant({{0, 0}, {0, 2}}), 1)) == List{0, 1});
  CHECK(values(K::all(K::constant({{1, 0}, {3, 2}}), 1)) == List{0, 1});
  CHECK(K::any(K::constant({0.0, std::nan("")})).item<bool>());
  CHECK(K::all(K::constant({0, 1}, "bool")).dtype() == bool_);
  CHECK(!K::any(shaped(List{}, "float32", {0})).item<bool>());
  CHECK(K::all(shaped(List{}, "float32", {0})).item<bool>());
}

TEST_CASE("means of bool and integers are floatx", "[reduce]") {
  CHECK(K::mean(K::constant({1, 2}, "int32")).dtype() == float32);
  CHECK(K::mean(K::constant({1, 2}, "int32")).item<float>() == 1.5f);
  CHECK(K::mean(K::constant({true, false}, "bool")).item<float>() == .5f);
  CHECK(K::var(K::constant({1, 3}, "uint8")).item<float>() == 1.f);
  CHECK(K::std(K::constant({1, 3}, "int64")).dtype() == float32);
}

TEST_CASE("nanmean is the mean of what is not NaN", "[reduce]") {
  const double nan = std::nan("");
  // x = np.array([[1, nan, 3, 5], [nan, nan, nan, nan], [-2, nan, 7, nan]]).reshape(3, 2, 2); np.nanmean(x, axis).
  const List x{1, nan, 3, 5, nan, nan, nan, nan, -2, nan, 7, nan};
  struct Case {
    Axes axis;
    List mean;
    Shape kept;
  };
  const Case cases[] = {{None, {2.8}, {1, 1, 1}},
                        {0, {-.5, nan, 5, 5}, {1, 2, 2}},
                        {-2, {2, 5, nan, nan, 2.5, nan}, {3, 1, 2}},
                        {2, {1, 4, nan, nan, -2, 7}, {3, 2, 1}},
                        {{0, -1}, {-.5, 5}, {1, 2, 1}},
                        {{1, 2}, {3, nan, 2.5}, {3, 1, 1}},
                        {{}, x, {3, 2, 2}}};
  const auto same = [](const Tensor& y, const List& mean) {
    const List got = values(y);
    const double epsilon = y.dtype() == bfloat16 ? 4e-3 : y.dtype() == float16 ? 5e-4 : 2e-7;
    REQUIRE(got.size() == mean.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK((std::isnan(mean[i]) ? std::isnan(got[i]) : got[i] == Approx(mean[i]).epsilon(epsilon)));
  };
  for (DType dtype : {float16, bfloat16, float32, float64})
    for (const Case& c : cases) {
      INFO(dtype << " case " << &c - cases);
      Tensor y = K::nanmean(shaped(x, dtype, {3, 2, 2}), c.axis),
             kept = K::nanmean(shaped(x, dtype, {3, 2, 2}), c.axis, true);
      CHECK(y.dtype() == dtype);
      same(y, c.mean);
      same(kept, c.mean);
      CHECK(kept.shape() == c.kept);
      Tensor in = K::placeholder(None, None, dtype);
      same(K::function({in}, {K::nanmean(in, c.axis)})({shaped(x, dtype, {3, 2, 2})})[0], c.mean);
    }
  CHECK(std::isnan(number(K::nanmean(shaped(List{}, float32, {0})))));
  CHECK(number(K::nanmean(K::constant({1, std::numeric_limits<double>::infinity(), nan}))) == INFINITY);
}

TEST_CASE("nanmean of numbers without NaN is their mean, of any dtype", "[reduce]") {
  for (DType dtype : {bool_, uint8, int8, int32, int64, float32, float64}) {
    INFO(dtype);
    Tensor x = K::cast(counted({3, 5}), dtype);
    CHECK(K::nanmean(x, 1).dtype() == K::mean(x, 1).dtype());
    check_close(values(K::nanmean(x, 1)), values(K::mean(x, 1)), dtype.is_float() ? 2e-7 : 0, 0);
  }
  // 70000 halves are more than float16 counts to, and their sum is more than it holds.
  for (DType dtype : {float16, bfloat16}) CHECK(number(K::nanmean(K::ones({70000}, dtype) * 2.0)) == 2);
  CHECK(error_of([] { K::nanmean({1.0, 2.0}, 1); }) == "nanmean: axis 1 is out of range for (2,) of rank 1");
}

TEST_CASE("running sums and products", "[reduce]") {
  Tensor x = K::constant({{1, 2}, {3, 4}});
  CHECK(values(K::cumprod(x)) == List{1, 2, 3, 8});
  CHECK(values(K::cumsum(x, 1)) == List{1, 3, 3, 7});
  CHECK(values(K::cumsum(x, -2)) == List{1, 2, 4, 6});
  CHECK(values(K::cumsum(K::constant({100, 100}, "int8"))) == List{100, -56});
  CHECK(K::cumsum(shaped(List{}, "float32", Shape{0, 2})).shape() == Shape{0, 2});
  CHECK_THROWS_WITH(K::cumsum(x, 2), "cumsum: axis 2 is out of range for (2, 2) of rank 2");
  CHECK_THROWS_AS(K::cumprod(K::constant(1.0)), ValueError);
  CHECK_THROWS_AS(K::cumsum(K::constant({1, 0}, "bool")), TypeError);
  Tensor deep = counted({3, 50, 41});
  for (int axis : {0, 1, 2}) {
    Tensor last =
        K::cumsum(deep, axis)(axis == 0 ? Index(-1) : all, axis == 1 ? Index(-1) : all, axis == 2 ? Index(-1) : all);
    CHECK(values(last) == values(K::sum(deep, axis)));
  }
}

TEST_CASE("variances far from zero keep their digits", "[reduce]") {
  std::vector<float> v(1000);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 4096.f + static_cast<float>(i % 2);
  CHECK(K::var(K::constant(v)).item<float>() == .25f);
}

TEST_CASE("axes that are wrong are ValueErrors", "[reduce]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK_THROWS_WITH(K::sum(x, 2), "sum: axis 2 is out of range for (2, 3) of rank 2");
  CHECK_THROWS_WITH(K::max(x, -3), "max: axis -3 is out of range for (2, 3) of rank 2");
  CHECK_THROWS_WITH(K::mean(x, 100), "mean: axis 100 is out of range for (2, 3) of rank 2");
  CHECK_THROWS_WITH(K::min(x, {1, 1}), "min: axis 1 is given twice for (2, 3)");
  CHECK_THROWS_WITH(K::sum(x, {1, -1}), "sum: axis -1 is given twice for (2, 3)");
  CHECK_THROWS_AS(K::sum(x, 2), ValueError);
  CHECK_THROWS_AS(K::sum(K::constant({1, 0}, "bool")), TypeError);
}

TEST_CASE("a sum of 1e7 floats is as good as float32 can say", "[reduce]") {
  std::vector<float> v(10'000'000);
  double exact = 0;
  std::uint32_t state = 1;
  for (float& f : v) {
    state = state * 1664525u + 1013904223u;
    f = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    exact += static_cast<double>(f);
  }
  Tensor x = K::constant(v);
  CHECK(K::sum(x).item<float>() == Approx(exact).epsilon(5e-7));
  CHECK(values(K::sum(shaped(v, "float32", {2'500'000, 4}), {0, 1}))[0] == Approx(exact).epsilon(5e-7));
  double columns = 0;
  for (double s : values(K::sum(shaped(v, "float32", {2'500'000, 4}), 0))) columns += s;
  CHECK(columns == Approx(exact).epsilon(5e-7));
}

TEST_CASE("reductions have the same bits for any number of threads", "[reduce]") {
  SettingsScope restore;
  for (Shape shape : {Shape{300'000}, Shape{900, 300}, Shape{3, 1300, 70}}) {
    std::vector<float> v(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(std::sin(static_cast<double>(i)));
    Tensor x = shaped(v, "float32", shape);
    for (int axis = -1; axis < shape.rank(); ++axis) {
      Axes axes = axis < 0 ? Axes(None) : Axes(axis);
      set_num_threads(1);
      List one = values(K::sum(x, axes)), mean = values(K::mean(x, axes)), numbers = values(K::nanmean(x, axes));
      set_num_threads(2);
      CHECK(values(K::sum(x, axes)) == one);
      CHECK(values(K::mean(x, axes)) == mean);
      CHECK(values(K::nanmean(x, axes)) == numbers);
    }
  }
}

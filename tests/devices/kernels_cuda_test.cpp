// tests/devices/kernels_cuda_test.cpp - reductions, softmax, scans, draws and decoding on a CUDA device at sizes where
// their kernels change what a thread does: ends of packs, warps, blocks and parts. Runs on a GPU or, without one, on
// the emulated device.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/numpy.h>
#include <kassette/testing.h>

#include <cmath>
#include <limits>

#include "core/convert.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// Small whole numbers, whose sums are exact in every order.
Tensor whole(const Shape& shape, DType dtype, int spread = 7) {
  std::int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i) n *= shape[i];
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((i * 2654435761u >> 7) % static_cast<unsigned>(spread)) -
           (dtype.is_unsigned() || dtype == bool_ ? 0 : spread / 2);
  return K::cast(K::constant(v, float64, shape), dtype);
}
Tensor there(const Tensor& x) { return x.to("cuda:0"); }

/// The CPU adds the terms of a loss along a column in blocks of hundreds, one after the other in float32, and the
/// device in parts of its own.
constexpr double kLongColumn = 1e-4;

/// The same call with a tensor of the CPU and of the device has the same bits, or is as close as floats are.
template <class F>
void same_on_device(const std::string& what, const Tensor& x, F f, bool exact, double rtol = -1) {
  const Tensor here = f(x), moved = f(there(x)).to("cpu");
  INFO(what << " of " << printed(x.shape()) << " " << printed(x.dtype()));
  if (exact) CHECK(same_bits(moved, here));
  else CHECK_NOTHROW(testing::assert_close(moved, here, {.rtol = rtol}));
}

const std::vector<std::int64_t> kLengths{0, 1, 2, 31, 32, 33, 255, 256, 257, 1023, 1025, 2500};
const std::vector<DType> kDTypes(std::begin(kAllDTypes), std::end(kAllDTypes));

struct Layout {
  Shape shape;
  std::vector<int> axes;
  bool one() const { return axes.size() == 1; }  // axis, which is all that argmax takes
};
/// Groups of n members: rows, columns, few and many, two axes with the groups between them, every second of eight.
std::vector<Layout> layouts(std::int64_t n) {
  return {{{3, n}, {1}},
          {{n, 3}, {0}},
          {{n, 40}, {0}},
          {{n}, {0}},
          {{2, 3, n}, {0, 2}},
          {{n, 3, 5}, {0, 2}},
          {{2, n, 3}, {1}},
          {{2, n, 36}, {1}},
          {{2, 1, 2, n, 2, 1, 3, 2}, {1, 3, 6}},
          {{1, 2, 1, 2, 3, 2, n, 2}, {1, 3, 5, 7}}};
}

}  // namespace

TEST_CASE("sums and extremes and their places have the CPU's bits on a device, whatever the length of a group",
          "[reduce][device]") {
  if (!has_device("cuda:0")) return;
  for (std::int64_t n : kLengths)
    for (const Layout& l : layouts(n)) {
      const Tensor x = whole(l.shape, float32);
      same_on_device(
          "sum", x, [&](const Tensor& t) { return K::sum(t, l.axes); }, true);
      same_on_device(
          "any", x, [&](const Tensor& t) { return K::any(t, l.axes); }, true);
      if (n == 0) continue;
      same_on_device(
          "max", x, [&](const Tensor& t) { return K::max(t, l.axes); }, true);
      same_on_device(
          "mean", x, [&](const Tensor& t) { return K::mean(t, l.axes); }, true);
      if (l.one())
        same_on_device(
            "argmax", x, [&](const Tensor& t) { return K::argmax(t, l.axes); }, true);
      same_on_device(
          "var", x, [&](const Tensor& t) { return K::var(t, l.axes); }, false);
      same_on_device(
          "logsumexp", x, [&](const Tensor& t) { return K::logsumexp(t, l.axes); }, false);
    }
}

TEST_CASE("reductions on a device equal the CPU's in every dtype, and integers wrap around", "[reduce][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : kDTypes)
    for (std::int64_t n : {33, 1025})
      for (const Layout& l : layouts(n)) {
        const Tensor x = whole(l.shape, dtype, dtype == bool_ ? 2 : dtype.is_float() ? 7 : 101);
        if (l.one())
          same_on_device(
              "argmax", x, [&](const Tensor& t) { return K::argmax(t, l.axes); }, true);
        same_on_device(
            "any", x, [&](const Tensor& t) { return K::any(t, l.axes); }, true);
        if (dtype == bool_) continue;
        same_on_device(
            "sum", x, [&](const Tensor& t) { return K::sum(t, l.axes); }, true);
        same_on_device(
            "max", x, [&](const Tensor& t) { return K::max(t, l.axes); }, true);
        if (dtype.is_float())
          same_on_device(
              "var", x, [&](const Tensor& t) { return K::var(t, l.axes); }, false);
      }
}

TEST_CASE("groups that are reduced in parts have the CPU's bits, and those of a tensor that begins between two packs",
          "[reduce][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, float16, int32, uint8}) {
    const Tensor x = whole({70001}, dtype, 3);
    same_on_device(
        "sum", x, [](const Tensor& t) { return K::sum(t); }, true);
    same_on_device(
        "sum but the first", x, [](const Tensor& t) { return K::sum(t(kassette::slice(1, kassette::None))); }, true);
    same_on_device(
        "argmax", x, [](const Tensor& t) { return K::argmax(t); }, true);
    for (const Shape& shape : {Shape{4000, 5}, Shape{4000, 8}, Shape{2, 4000, 3}})
      same_on_device(
          "column sums", whole(shape, dtype, 3), [&](const Tensor& t) { return K::sum(t, {-2}); }, true);
    same_on_device(
        "sums of channels", whole({9, 2, 4100}, dtype, 3),
        [](const Tensor& t) {
          return K::sum(t, {0, 2});
        },
        true);
  }
}

TEST_CASE("a variance far from zero loses nothing on a device", "[reduce][device]") {
  if (!has_device("cuda:0")) return;
  // 0, 1, 2, ... n - 1 have the variance (n^2 - 1) / 12.
  for (std::int64_t n : {100, 5000}) {
    const Tensor x = K::cast(K::arange(n), float32) + 1e5;
    const double expected = (static_cast<double>(n) * static_cast<double>(n) - 1) / 12;
    CHECK(K::var(there(x)).to("cpu").item<double>() == Approx(expected).epsilon(1e-4));
    CHECK(K::var(there(K::reshape(x, {n, 1}) * K::ones({1, 36})), {0}).to("cpu").to_vector<double>()[7] ==
          Approx(expected).epsilon(1e-4));
  }
}

TEST_CASE("NaN and infinities go through reductions and softmax on a device as on the CPU",
          "[reduce][softmax][device]") {
  if (!has_device("cuda:0")) return;
  for (double odd : {kNan, kInf, -kInf})
    for (std::int64_t n : {1, 5, 33, 1025, 5000})
      for (bool everywhere : {false, true}) {
        std::vector<double> v(static_cast<std::size_t>(3 * n), 0.5);
        for (std::int64_t i = 0; i < n; ++i)
          if (everywhere || i == n / 2) v[static_cast<std::size_t>(n + i)] = odd;
        const Tensor rows = K::constant(v, float32, {3, n}), columns = K::transpose(rows);
        for (const Tensor& x : {rows, columns}) {
          const int axis = x.shape()[0] == 3 && n != 3 ? 1 : 0;
          same_on_device(
              "max", x, [&](const Tensor& t) { return K::max(t, {axis}); }, false);
          same_on_device(
              "argmax", x, [&](const Tensor& t) { return K::argmax(t, {axis}); }, true);
          same_on_device(
              "sum", x, [&](const Tensor& t) { return K::sum(t, {axis}); }, false);
          same_on_device(
              "var", x, [&](const Tensor& t) { return K::var(t, {axis}); }, false);
          same_on_device(
              "logsumexp", x, [&](const Tensor& t) { return K::logsumexp(t, {axis}); }, false);
          same_on_device(
              "softmax", x, [&](const Tensor& t) { return K::softmax(t, axis); }, false);
          same_on_device(
              "log_softmax", x,
              [&](const Tensor& t) { return K::categorical_crossentropy(K::ones_like(t), t, true, axis); }, false,
              n > 4000 ? kLongColumn : -1);
        }
      }
}

TEST_CASE("softmax and its losses are the CPU's on a device, for rows that are held and longer ones",
          "[softmax][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, float64, float16, bfloat16})
    for (std::int64_t n : {1, 2, 31, 33, 255, 256, 257, 513, 1025, 4097, 9001}) {
      if (dtype != float32 && n != 33 && n != 1025 && n != 9001) continue;
      for (const Shape& shape : {Shape{3, n}, Shape{n, 3}, Shape{n, 11}}) {
        const int axis = shape[1] == n;
        const Tensor x = whole(shape, dtype), target = K::softmax(whole(shape, dtype, 5), axis);
        same_on_device(
            "softmax", x, [&](const Tensor& t) { return K::softmax(t, axis); }, false);
        for (bool logits : {true, false}) {
          auto loss = [&](const Tensor& t) {
            return K::categorical_crossentropy(t.device() == cpu ? target : there(target), t, logits, axis);
          };
          same_on_device("categorical_crossentropy", logits ? x : target, loss, false,
                         n > 4000 && dtype == float32 ? kLongColumn : -1);
          same_on_device(
              "its gradient", logits ? x : target,
              [&](const Tensor& t) {
                const Tensor v = K::variable(t, dtype);
                return K::eval(K::gradients(K::sum(loss(v)), {v})[0]);
              },
              false);
        }
      }
    }
}

TEST_CASE("a loss of equal logits is n log(n) on a device, along rows and columns", "[softmax][device]") {
  if (!has_device("cuda:0")) return;
  for (std::int64_t n : {33, 1025, 5000})
    for (const Shape& shape : {Shape{3, n}, Shape{n, 3}, Shape{n, 11}}) {
      const int axis = shape[1] == n;
      const Tensor z = there(K::zeros(shape));
      for (double loss : K::categorical_crossentropy(K::ones_like(z), z, true, axis).to("cpu").to_vector<double>())
        CHECK(loss == Approx(static_cast<double>(n) * std::log(static_cast<double>(n))).epsilon(1e-5));
    }
}

TEST_CASE("batch normalisation over rows, columns and channels is the CPU's on a device", "[batchnorm][device]") {
  if (!has_device("cuda:0")) return;
  for (const Layout& l : {Layout{{4100, 3}, {0}}, Layout{{700, 40}, {0}}, Layout{{5, 3, 33, 31}, {0, 2, 3}},
                          Layout{{2, 3, 5000}, {0, 2}}})
    for (DType dtype : {float32, float16}) {
      const Tensor x = whole(l.shape, dtype);
      const std::int64_t channels = l.shape.rank() == 2 ? l.shape[1] : 3;
      auto normalised = [&](const Tensor& t, int which) {
        DeviceScope scope(t.device());
        auto r = K::normalize_batch_in_training(t, K::ones({channels}, dtype), K::zeros({channels}, dtype), l.axes);
        return which == 0 ? r.normalized : which == 1 ? r.mean : r.variance;
      };
      for (int which : {0, 1, 2})
        same_on_device(
            "normalize_batch_in_training", x, [&](const Tensor& t) { return normalised(t, which); }, false);
    }
}

TEST_CASE("dropout on a device drops what it drops on the CPU, with masks of every form", "[random][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, float64, float16})
    for (std::int64_t n : {1, 15, 16, 17, 63, 64, 65, 1025}) {
      const Tensor x = whole({3, n}, dtype);
      same_on_device(
          "dropout", x, [](const Tensor& t) { return K::dropout(t, 0.4, None, 5); }, true);
      same_on_device(
          "dropout of rows", x,
          [](const Tensor& t) {
            return K::dropout(t, 0.4, {3, 1}, 5);
          },
          true);
      same_on_device(
          "dropout of columns", x,
          [n](const Tensor& t) {
            return K::dropout(t, 0.4, {1, n}, 5);
          },
          true);
    }
}

TEST_CASE("draws between tensors on a device are those of the CPU, whichever bounds and numbers are shared",
          "[random][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, float64, float16, bfloat16})
    for (std::int64_t n : {1, 15, 16, 65, 300})
      for (const Shape& drawn : {Shape{3, n}, Shape{n}, Shape{3, 1}}) {  // the first: a number for each sample
        const Tensor low = whole({3, n}, dtype, 11), column = whole({3, 1}, dtype, 5) + 6,
                     row = whole({n}, dtype, 5) + 6;
        for (const Tensor& high : {column, row})
          same_on_device(
              "draws", low, [&](const Tensor& t) { return K::random_uniform(drawn, t, high.to(t.device()), dtype, 5); },
              true);
      }
}

TEST_CASE("running sums are the CPU's on a device along every axis", "[scan][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, int32, float16})
    for (std::int64_t n : {1, 31, 33, 257, 1025, 20000})
      for (const Layout& l : {Layout{{n}, {0}}, Layout{{2, n}, {1}}, Layout{{n, 3}, {0}}, Layout{{n, 40}, {0}}}) {
        if (n > 2000 && l.shape.rank() == 2 && l.shape[1] == 40) continue;
        const Tensor x = whole(l.shape, dtype, 3);
        const int axis = l.shape.rank() == 2 && l.shape[0] == 2 ? 1 : 0;
        same_on_device(
            "cumsum", x, [&](const Tensor& t) { return K::cumsum(t, axis); }, true);
        same_on_device(
            "cummax", x, [&](const Tensor& t) { return kassette::numpy::cummax(t, axis).indices; }, true);
        if (dtype.is_float())
          same_on_device(
              "a running sum from the end", x,
              [&](const Tensor& t) {
                const Tensor v = K::variable(K::zeros_like(t), dtype);
                return K::gradients(K::sum(K::cumsum(v, axis) * t), {v})[0];
              },
              true);
        // Of 1 and -1, which are exact.
        same_on_device(
            "cumprod", K::cast(K::cast(x > K::cast(K::constant(0), dtype), int32) * 2 - 1, dtype),
            [&](const Tensor& t) { return K::cumprod(t, axis); }, true);
      }
}

TEST_CASE("the second derivative of a running product is the CPU's on a device, and what algebra says",
          "[scan][device]") {
  if (!has_device("cuda:0")) return;
  auto second = [](const Tensor& at, int axis) {
    const Tensor x = K::variable(at, at.dtype());
    const Tensor first = K::gradients(K::sum(K::cumprod(x, axis)), {x})[0];
    return K::gradients(K::sum(first), {x})[0];
  };
  for (DType dtype : {float32, float64})
    for (std::int64_t n : {1, 2, 33, 257, 1025}) {
      for (const Shape& shape : {Shape{n}, Shape{2, n}, Shape{n, 3}}) {
        const int axis = shape.rank() == 2 && shape[0] == 2 && n != 2 ? 1 : 0;
        // Of 1 and -1: sums of whole numbers below 2^24, exact in any order.
        const Tensor signs = K::cast(whole(shape, int32, 3) > 0, dtype) * 2 - 1;
        same_on_device(
            "cumprod", signs, [&](const Tensor& t) { return second(t, axis); }, true);
      }
      // Of ones: d^2 / (dx_j dx_k) of the sum of products up to i is 1 where i reaches both j and k, and j is not k.
      std::vector<double> expected;
      for (std::int64_t k = 0; k < n; ++k)
        expected.push_back(static_cast<double>(k * (n - k) + (n - k) * (n - k - 1) / 2));
      CHECK(values(second(there(K::ones({n}, dtype)), 0)) == expected);
    }
}

TEST_CASE("a transpose on a device is the CPU's, of tiles that are cut and of more than there are blocks",
          "[shaping][device]") {
  if (!has_device("cuda:0")) return;
  for (const Shape& shape : {Shape{16, 16}, Shape{40, 50}, Shape{3, 33, 70}, Shape{2100, 2100}})
    same_on_device(
        "transpose", whole(shape, uint8, 251), [](const Tensor& x) { return K::transpose(x); }, true);
}

TEST_CASE("images of several blocks of threads are pooled, enlarged and convolved on a device as on the CPU",
          "[device]") {
  if (!has_device("cuda:0")) return;
  for (const char* format : {"channels_last", "channels_first"}) {
    const bool last = std::string(format) == "channels_last";
    const Tensor x = whole(last ? Shape{2, 11, 13, 3} : Shape{2, 3, 11, 13}, float32),
                 w = whole({3, 2, 3, 2}, float32, 5);
    auto check = [&](const std::string& what, auto f) {
      same_on_device(what, x, f, false);
      auto gradient = [&](const Tensor& t) {
        Tensor v = K::variable(t, float32);
        return K::gradients(K::sum(K::square(f(v))), v)[0];
      };
      same_on_device("the gradient of " + what, x, gradient, false);
    };
    for (const char* mode : {"max", "avg"})
      check(mode, [&](const Tensor& t) { return K::pool2d(t, {3, 2}, {2, 1}, "same", format, mode); });
    check("resize_images", [&](const Tensor& t) { return K::resize_images(t, 3, 2, format, "bilinear"); });
    check("depthwise_conv2d",
          [&](const Tensor& t) { return K::depthwise_conv2d(t, w.to(t.device()), 2, "same", format); });
  }
}

TEST_CASE("the second derivative of ctc_batch_cost is the CPU's on a device", "[ctc][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, float64})
    same_on_device(
        "ctc_batch_cost", K::softmax(whole({3, 9, 5}, dtype, 11) * 0.25),
        [&](const Tensor& at) {
          auto beside = [&](const Tensor& t) { return t.to(at.device()); };
          const Tensor y = K::variable(at, dtype), labels = K::constant({{0, 1, 3}, {2, 2, 0}, {1, 0, 0}}, int32);
          const Tensor cost = K::ctc_batch_cost(beside(labels), y, beside(K::constant({{9}, {7}, {4}}, int32)),
                                                beside(K::constant({{3}, {2}, {1}}, int32)));
          const Tensor first = K::gradients(K::sum(cost), {y})[0];
          return K::gradients(K::sum(K::square(first)), {y})[0];
        },
        false);
}

TEST_CASE("ctc_decode on a device gives the CPU's labels and scores, there", "[ctc][device]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float32, float64}) {
    const Tensor y = K::softmax(whole({3, 9, 5}, dtype, 11)), steps = K::constant({9, 4, 0}, int32);
    for (bool greedy : {true, false}) {
      const K::CtcDecoded here = K::ctc_decode(y, steps, greedy, 6, 1),
                          moved = K::ctc_decode(there(y), there(steps), greedy, 6, 1);
      REQUIRE(moved.decoded.size() == here.decoded.size());
      for (std::int64_t i = 0; i < here.decoded.size(); ++i) {
        CHECK(moved.decoded[i].device() == Device("cuda:0"));
        CHECK(same_bits(moved.decoded[i].to("cpu"), here.decoded[i]));
      }
      CHECK(moved.log_prob.device() == Device("cuda:0"));
      CHECK(same_bits(moved.log_prob.to("cpu"), here.log_prob));
    }
    const K::CtcDecoded here = K::ctc_decode(y, K::constant({9, 4, 5}, int32), false, 6, 3),
                        moved = K::ctc_decode(there(y), there(K::constant({9, 4, 5}, int32)), false, 6, 3);
    for (std::int64_t i = 0; i < 3; ++i) CHECK(same_bits(moved.decoded[i].to("cpu"), here.decoded[i]));
    CHECK(same_bits(moved.log_prob.to("cpu"), here.log_prob));
    CHECK(error_of<ValueError>([&] {
            K::ctc_decode(there(y), there(K::constant({9, 10, 0}, int32)));
          }) == "ctc_decode: input_length 10 of sample 1; it must be 0 to 9, the time steps of y_pred");
  }
}

TEST_CASE(
    "elementwise ops, comparisons and casts of floats read and write packs with the CPU's bits, whatever is repeated and wherever tensors begin",
    "[device]") {
  if (!has_device("cuda:0")) return;
  const std::vector<std::pair<Shape, Shape>> shapes{{{1}, {1}},        {{7}, {7}},
                                                    {{8}, {8}},        {{2051}, {2051}},
                                                    {{2048}, {1}},     {{}, {2051}},
                                                    {{5, 16}, {16}},   {{5, 9}, {9}},
                                                    {{5, 16}, {5, 1}}, {{5, 9}, {5, 1}},
                                                    {{5, 1}, {1, 24}}, {{3, 1, 8}, {3, 4, 8}},
                                                    {{3, 4, 1}, {8}},  {{3, 4, 8}, {3, 1, 1}},
                                                    {{0, 8}, {8}}};
  for (DType dtype : {float16, bfloat16, float32, float64})
    for (const auto& [first, second] : shapes) {
      INFO(printed(first) << " and " << printed(second) << " of " << dtype);
      const Tensor x = whole(first, dtype, 91), y = whole(second, dtype, 57) + 0.5;
      for (bool turned : {false, true}) {
        const Tensor &a = turned ? y : x, &b = turned ? x : y;
        CHECK(same_bits((there(a) - there(b)).to("cpu"), a - b));
        CHECK(same_bits(K::maximum(there(a), there(b)).to("cpu"), K::maximum(a, b)));
        CHECK(same_bits(K::greater(there(a), there(b)).to("cpu"), K::greater(a, b)));
      }
      for (DType other : {float16, bfloat16, float32, float64, int32}) {
        const Tensor from = whole(first, other, 91);
        CHECK(same_bits(K::cast(there(x), other).to("cpu"), K::cast(x, other)));
        CHECK(same_bits(K::cast(there(from), dtype).to("cpu"), K::cast(from, dtype)));
      }
      CHECK(same_bits(K::relu(there(x), 0.25).to("cpu"), K::relu(x, 0.25)));
    }
  for (DType dtype : {float16, bfloat16, float32, float64})
    for (int first : {1, 2, 7, 8}) {
      const Tensor x = whole({1000}, dtype, 91), y = whole({1000}, dtype, 57);
      auto behind = [&](const Tensor& t) { return t(slice(first, 900)); };
      CHECK(same_bits((behind(there(x)) * behind(there(y))).to("cpu"), behind(x) * behind(y)));
      CHECK(same_bits(K::abs(behind(there(x))).to("cpu"), K::abs(behind(x))));
      CHECK(same_bits(K::less(behind(there(x)), behind(there(y))).to("cpu"), K::less(behind(x), behind(y))));
      CHECK(same_bits(K::cast(behind(there(x)), float32).to("cpu"), K::cast(behind(x), float32)));
    }
}

// tests/nn_backend/inspect/detect_nan_test.cpp - the first op that makes a NaN or an infinity throws, wherever it runs.
#include <kassette/profile.h>

#include <kassette/backend.h>
#include <kassette/error.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "core/fast_paths.h"
#include "ops/engine/observe.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using kassette::test::same_bits;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// What is thrown.
template <class F>
std::string said(F f) {
  try {
    f();
  } catch (const RuntimeError& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "";
}
bool has(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("an eager op that gives a NaN or an infinity throws, with what it was given", "[detect_nan]") {
  const Tensor x = K::constant({1.0, 0.0, -4.0});
  CHECK(K::log(x).dtype() == float32);  // as always
  const auto guard = detect_nan();
  CHECK(said([&] { K::log(x); }) ==
        "log: gave 1 NaN, 1 -inf in its result (3,) float32, else 0, of the input x (3,) float32 from -4 to 1");
  CHECK(said([&] { 1.0 / x; }) ==
        "divide: gave 1 inf in its result (3,) float32, else from -0.25 to 1, of the inputs x () float32 of 1, y (3,) "
        "float32 from -4 to 1");
  CHECK(said([&] { K::square(x); }) == "");
  CHECK(said([&] { K::square(K::constant({1e30})); }) ==
        "square: gave 1 inf in its result (1,) float32, of the input x (1,) float32 of 1e+30");
}

TEST_CASE("an input that has a NaN already is named", "[detect_nan]") {
  const Tensor x = K::constant({1.0, kNan}), y = K::constant({kInf, 2.0}), whole = K::constant({1, 2}, "int32");
  const auto guard = detect_nan();
  CHECK(
      said([&] { x + 1.0; }) ==
      "add: gave 1 NaN in its result (2,) float32, else 2, of the inputs x (2,) float32, which already has 1 NaN, y () "
      "float32 of 1");
  CHECK(has(said([&] { x* y; }), "x (2,) float32, which already has 1 NaN, y (2,) float32, which already has 1 inf"));
  CHECK(said([&] { K::cast(x, "int32"); }) == "");  // no NaN any more
  CHECK(said([&] { K::greater(x, y); }) == "");
  CHECK(has(said([&] { whole / 0; }), "divide: gave 2 inf in its result (2,) float"));
}

TEST_CASE("with infinities allowed only a NaN throws", "[detect_nan]") {
  const Tensor x = K::constant({1.0, 0.0});
  const auto guard = detect_nan({.infinities = false});
  CHECK(said([&] { K::log(x); }) == "");
  CHECK(said([&] { K::softmax(K::log(x)); }) == "");  // exp(-inf) is 0
  CHECK(said([&] { K::log(x) * 0.0; }) ==
        "multiply: gave 1 NaN in its result (2,) float32, else 0, of the inputs x (2,) float32 with 1 -inf of 0, y () "
        "float32 of 0");
  {
    const auto all = detect_nan();
    CHECK(said([&] { K::log(x); }) != "");
  }
  CHECK(said([&] { K::log(x); }) == "");
}

TEST_CASE("the op of a backward pass is named with the op that it differentiates", "[detect_nan]") {
  Tensor x = K::variable({4.0, 0.0});
  const auto guard = detect_nan();
  const std::string eager = said([&] { K::gradients(K::sum(K::sqrt(x)), {x}); });
  CHECK(has(eager, "sqrt: in its adjoint, "));
  CHECK(has(eager, " gave 1 inf in its result (2,) float32"));
  Tensor in = K::placeholder({2});
  auto f = K::function({in}, K::gradients(K::sum(K::sqrt(in)), {in}));
  CHECK(said([&] { f({{4.0, 0.0}}); }) == eager);
  CHECK(said([&] { f({{4.0, 1.0}}); }) == "");
  // The first derivative of a square root is 5e14 at 1e-30, the second -2.5e44.
  auto second = [](const Tensor& t) {
    Tensor g = K::gradients(K::sum(K::sqrt(t)), {t})[0];
    return K::gradients(K::sum(g), {t});
  };
  Tensor y = K::variable({4.0, 1e-30});
  CHECK(said([&] { K::gradients(K::sum(K::sqrt(y)), {y}); }) == "");
  CHECK(has(said([&] { second(y); }), ": in its adjoint, "));
}

TEST_CASE("functions throw at the op, though they run several as one", "[detect_nan]") {
  Tensor x = K::placeholder({3}), v = K::variable({1.0, 2.0, 3.0});
  // 1 / (1 / x) has an infinity inside of the chain alone.
  auto f = K::function({x}, {K::sum(1.0 / (1.0 / (x * 2.0)))});
  const Tensor good = f({{1.0, 2.0, 3.0}})[0];
  f({{1.0, 2.0, 3.0}});
  f({{1.0, 0.0, 3.0}});  // as always
  auto nested = K::function({x}, {f({x})[0] * 2.0});
  {
    const auto guard = detect_nan();
    CHECK(
        said([&] {
          f({{1.0, 0.0, 3.0}});
        }) ==
        "divide: gave 1 inf in its result (3,) float32, else from 0.166667 to 0.5, of the inputs x () float32 of 1, y "
        "(3,) float32 from 0 to 6");
    CHECK(has(said([&] { nested({{1.0, 0.0, 3.0}}); }), "divide: gave 1 inf"));
    CHECK(same_bits(f({{1.0, 2.0, 3.0}})[0], good));
    auto both = K::function({x}, {K::exp(x) - K::log(x)});
    CHECK(has(said([&] { both({{1.0, 0.0, 3.0}}); }), "log: gave 1 -inf"));
  }
  CHECK(same_bits(f({{1.0, 2.0, 3.0}})[0], good));
  CHECK(f({{1.0, 0.0, 3.0}})[0].defined());
}

TEST_CASE("a composed function's error names it, and the op in it", "[detect_nan]") {
  const Tensor logits = K::constant({{1e30, 1.0}}), labels = K::constant({{0.5, 0.5}});
  const auto guard = detect_nan();
  const std::string error = said([&] { K::std(logits, -1); });
  INFO(error);
  CHECK(has(error, "std: "));
  CHECK(has(error, " gave 1 inf in its result "));
}

TEST_CASE("loops throw at the step, forward and backward", "[detect_nan]") {
  Tensor xs = K::placeholder({1, 4, 3});
  const auto layer = [](const Tensor& in) {
    return K::rnn(
               [](const Tensor& x, const Tensors& s) -> K::Step {
                 Tensor h = K::exp(s[0] * x);
                 return {h, {h}};
               },
               in, {K::ones({1, 3})})
        .last_output;
  };
  auto f = K::function({xs}, {layer(xs)});
  // exp(exp(10)) overflows in step 1.
  const Tensor tens = K::constant(10.0, "float32", {1, 4, 3}), ones = K::constant(0.1, "float32", {1, 4, 3});
  auto g = K::function({xs}, K::gradients(K::sum(K::sqrt(layer(xs) - 1.0)), {xs}));
  const Tensor good = f({ones})[0];
  const auto guard = detect_nan();
  const std::string eager = said([&] { layer(tens); });
  CHECK(eager == "exp: gave 3 inf in its result (1, 3) float32, of the input x (1, 3) float32 of 220265");
  CHECK(said([&] { f({tens}); }) == eager + " (step 1 of 4 of rnn)");
  CHECK(same_bits(f({ones})[0], good));
  CHECK(has(said([&] { g({K::zeros({1, 4, 3})}); }), "sqrt: in its adjoint, "));
  // Inside of the loop's own adjoint: the square root of a state that is 0.
  auto h = K::function({xs}, K::gradients(K::sum(K::rnn(
                                                     [](const Tensor& x, const Tensors& s) -> K::Step {
                                                       Tensor y = K::sqrt(s[0] * x);
                                                       return {y, {y}};
                                                     },
                                                     xs, {K::ones({1, 3})})
                                                     .last_output),
                                          {xs}));
  try {
    h({K::zeros({1, 4, 3})});
    FAIL("nothing was thrown");
  } catch (const RuntimeError& e) {
    INFO(e.what());
    CHECK(has(e.what(), "sqrt: in its adjoint, "));
    CHECK(has(e.what(), "of the backward pass of rnn)"));
  }
}

TEST_CASE("an update that would make an infinity throws, and no variable changes", "[detect_nan]") {
  Tensor v = K::variable({3e38, 1.0}), u = K::variable({1.0, 1.0}), x = K::placeholder({2});
  auto assigned = K::function({x}, {K::sum(x)}, {{u, u + 1.0}, {v, v - 0.1 * K::log(x)}});
  auto added = K::function({x}, {K::sum(x)}, {K::update_add(u, x), K::update_add(v, x)});
  const Tensor v0 = K::eval(v), u0 = K::eval(u);
  const auto guard = detect_nan();
  CHECK(has(said([&] { assigned({{0.0, 1.0}}); }), "log: gave 1 -inf"));
  CHECK(has(said([&] { added({{3e38, 1.0}}); }), "gave 1 inf in its result (2,) float32, else 2"));
  CHECK(has(said([&] { K::update_add(v, K::constant({3e38, 0.0})); }), "update_add: add gave 1 inf"));
  CHECK(same_bits(K::eval(v), v0));
  CHECK(same_bits(K::eval(u), u0));
  CHECK(said([&] { added({{0.0, 1.0}}); }) == "");
  CHECK(same_bits(K::eval(u), K::constant({1, 2}, "float32")));
}

TEST_CASE("an increment after an assignment is searched with the value that was assigned", "[detect_nan]") {
  K::manual_variable_initialization(true);
  Tensor unset = K::variable({0.0, 0.0});
  K::manual_variable_initialization(false);
  Tensor v = K::variable({kNan, 1.0}), x = K::placeholder({2});
  auto f = K::function({x}, {}, {K::update(v, x), K::update_add(v, x)});
  auto first = K::function({x}, {}, {K::update(unset, x), K::update_add(unset, x)});
  const auto guard = detect_nan();
  CHECK(said([&] { f({{1.0, 2.0}}); }) == "");
  CHECK(same_bits(K::eval(v), K::constant({2, 4}, "float32")));
  CHECK(has(said([&] { f({{3e38, 2.0}}); }), "gave 1 inf in its result (2,) float32, else 4"));
  CHECK(same_bits(K::eval(v), K::constant({2, 4}, "float32")));
  CHECK(said([&] { first({{1.0, 2.0}}); }) == "");
  CHECK(same_bits(K::eval(unset), K::constant({2, 4}, "float32")));
}

TEST_CASE("an overflow of float16 is an infinity", "[detect_nan]") {
  const Tensor x = K::constant({60000.0, 1.0}, "float16"), wide = K::constant({7e4});
  const auto guard = detect_nan();
  CHECK(said([&] { x * 2.0; }) ==
        "multiply: gave 1 inf in its result (2,) float16, else 2, of the inputs x (2,) float16 from 1 to 60000, y () "
        "float16 of 2");
  CHECK(has(said([&] { K::cast(wide, "float16"); }), "cast: gave 1 inf in its result (1,) float16"));
  CHECK(said([&] { K::cast(wide, "bfloat16"); }) == "");
  CHECK(has(said([&] { K::log(K::cast(K::constant({0.0}), "bfloat16")); }), "1 -inf in its result (1,) bfloat16"));
  CHECK(has(said([&] { K::log(K::constant({-1.0}, "float64")); }), "1 NaN in its result (1,) float64"));
}

TEST_CASE("no op makes a NaN or an infinity on the way to results without", "[detect_nan]") {
  for (const test::Sample& s : test::op_samples()) {
    const std::string name = s.name;
    if (name.rfind("nan", 0) == 0 && name != "nan_to_num") continue;  // the sample itself makes one
    const test::Shapes shapes = test::cases_of(s).front();
    for (DType dtype : test::dtypes_of(s.takes)) {
      Tensors in;
      for (const Tensor& x : test::make_inputs(s, shapes, dtype))
        in.push_back(s.order == test::Order::second && x.dtype().is_float() ? K::variable(x, x.dtype()) : x);
      const auto run = [&] {
        const Tensors ys = test::call(s, in);
        Tensors of;
        for (std::int64_t i = 0; i < in.size(); ++i)
          if (s.order == test::Order::second && s.in[i].differentiable && in[i].dtype().is_float()) of.push_back(in[i]);
        for (const Tensor& y : ys)
          if (y.dtype().is_float() && !of.empty()) K::gradients(K::sum(y), of);
        return ys;
      };
      bool finite = true;
      for (const Tensor& y : run())
        if (y.dtype().is_float()) finite = finite && K::all(K::less(K::abs(K::cast(y, "float64")), kInf)).item<bool>();
      if (!finite) continue;
      INFO(test::title(s, shapes, dtype));
      const auto guard = detect_nan();
      CHECK(said([&] { run(); }) == "");
    }
  }
}

TEST_CASE("the scope ends what it began, and counts for all threads", "[detect_nan]") {
  const std::uint64_t off = fast_path_thresholds.off;
  {
    const auto guard = detect_nan();
    std::string there;
    std::thread([&] { there = said([] { K::log(K::constant({0.0})); }); }).join();
    CHECK(there != "");
  }
  CHECK(off == fast_path_thresholds.off);
  CHECK_FALSE(ops::observed());
}

TEST_CASE("values on a CUDA device are looked at, too", "[detect_nan][device]") {
  if (!test::has_device("cuda:0")) return;
  const Tensor x = K::constant({1.0, 0.0}).to("cuda:0");
  Tensor in = K::placeholder({2});
  auto f = K::function({in}, {K::log(in) * 2.0});
  const auto guard = detect_nan();
  CHECK(has(said([&] { K::log(x); }), "log: gave 1 -inf in its result (2,) float32, else 0, of the input x (2,)"));
  CHECK(has(said([&] { f({x}); }), "log: gave 1 -inf in its result (2,) float32, else 0, of the input x (2,)"));
}

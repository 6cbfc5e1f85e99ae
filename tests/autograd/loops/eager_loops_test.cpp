// tests/autograd/loops/eager_loops_test.cpp - plain loops: with no steps, with many, with steps that read values, and
// the memory that is left after thousands of loops.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <malloc.h>

#include <functional>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

using kassette::Shape;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::kSanitized;
using kassette::test::number;
using kassette::test::values;
namespace K = kassette::backend;
using Vec = std::vector<double>;

TEST_CASE("rnn over no steps takes a step that reads values", "[rnn]") {
  for (bool tracked : {false, true})
    for (int masks : {0, 1, 2}) {
      INFO("tracked " << tracked << ", masks " << masks);
      int calls = 0;
      auto step = [&](const Tensor& e, const Tensors& states) {
        ++calls;
        double scale = 1 + K::sum(e).item<double>();  // no placeholder has that
        return K::Step{K::concatenate({states[0], e * scale}), {states[0] * scale}};
      };
      Tensor x = K::zeros({2, 0, 3}), s = K::variable({{1, 2}, {3, 4}});
      if (!tracked) x = x.detach(), s = s.detach();
      K::RnnOptions o;
      if (masks) o.mask = K::constant(1, "bool", {2, 0});
      o.zero_output_for_mask = masks == 2;
      K::RnnResult r = K::rnn(step, x, {s}, o);
      CHECK(calls >= 1);  // a step on zeros says what an output looks like
      CHECK(r.outputs.shape() == Shape{2, 0, 5});
      CHECK(r.last_output.shape() == Shape{2, 5});
      CHECK(values(r.last_output) == Vec(10, 0));
      REQUIRE(r.new_states.size() == 1);
      CHECK(values(r.new_states[0]) == Vec{1, 2, 3, 4});
      if (tracked) CHECK(values(K::gradients(K::sum(r.new_states[0]), {s})[0]) == Vec{1, 1, 1, 1});
    }
}

TEST_CASE("what a step throws over no steps reaches the caller", "[rnn]") {
  auto step = [](const Tensor&, const Tensors&) -> K::Step { throw std::runtime_error("no step"); };
  CHECK_THROWS_WITH(K::rnn(step, K::zeros({2, 0, 3}), {K::ones({2, 2})}), "no step");
  CHECK_THROWS_WITH(K::map_fn([](const Tensor&) -> Tensor { throw std::runtime_error("no step"); }, K::zeros({0, 3})),
                    "no step");
}

TEST_CASE("map_fn over no elements takes a function that reads values", "[rnn]") {
  Tensor y = K::map_fn([](const Tensor& e) { return e * K::sum(e).item<double>(); }, K::zeros({0, 3}));
  CHECK(y.shape() == Shape{0, 3});
}

namespace {

struct Kept {
  kassette::Totals totals = kassette::totals();
  std::int64_t live = kassette::memory_stats().live, pooled = kassette::pool_reserved();
  std::size_t heap = mallinfo2().uordblks;  // lists and tables that no counter of ours sees
};

/// Checks that thousands of runs leave as much alive as 500 do.
void check_even(const char* what, const std::function<void()>& run) {
  INFO(what);
  for (int i = 0; i < 500; ++i) run();
  const Kept before;
  constexpr int kRuns = kSanitized ? 1000 : 10000;
  for (int i = 0; i < kRuns; ++i) run();
  const Kept after;
  CHECK(after.totals.live_nodes == before.totals.live_nodes);
  CHECK(after.totals.live_tensors == before.totals.live_tensors);
  CHECK(after.totals.live_bytes == before.totals.live_bytes);
  CHECK(after.totals.saved_bytes == before.totals.saved_bytes);
  CHECK(after.live <= before.live);
  CHECK(after.pooled <= before.pooled);
  CHECK(after.heap < before.heap + kRuns);  // a byte a run at most
}

}  // namespace

TEST_CASE("thousands of eager loops leave nothing", "[loops][memory][serial]") {
  Tensor x = K::variable(K::ones({3, 2})), batch = K::variable(K::ones({2, 3, 2})), w = K::variable({0.5, 0.25}),
         s = K::ones({2, 2}).detach();
  auto add = [&](const Tensor& a, const Tensor& e) { return a * w + e; };
  auto step = [&](const Tensor& e, const Tensors& states) { return K::Step{e * w + states[0], {states[0] + e}}; };
  check_even("foldl", [&] { K::foldl(add, x); });
  check_even("foldr and its gradient", [&] { K::gradients(K::sum(K::foldr(add, x)), {w}); });
  check_even("map_fn with draws", [&] {
    K::map_fn([](const Tensor& e) { return K::dropout(e, 0.5) + K::dropout(e, 0.5, K::None, 3); }, x);
  });
  check_even("rnn and its gradients", [&] {
    K::RnnOptions o;
    o.mask = K::constant({{1, 0, 1}, {1, 1, 0}}, "bool");
    K::gradients(K::sum(K::rnn(step, batch, {s}, o).outputs), {w, batch});
  });
  check_even("rnn of no steps", [&] { K::rnn(step, K::zeros({2, 0, 2}), {s}); });
  check_even("checkpoints", [&] {
    auto scope = K::checkpoint_steps(2);
    K::gradients(K::sum(K::foldl(add, x)), {w});
  });
  check_even("a loop that throws", [&] {
    try {
      K::foldl([&](const Tensor& a, const Tensor&) { return K::concatenate({a, a}); }, x);
    } catch (const kassette::Error&) {
    }
  });
}

TEST_CASE("a loop that is one node at once has values where its step computes something from captures alone",
          "[loops]") {
  const Tensor noise = K::random_normal({2}, 0.0, 1.0, "float64");
  const Vec drawn = values(noise);
  for (int steps : {0, 2})
    for (int checkpoints : {-1, 1}) {
      if (steps > 0 && checkpoints < 0) continue;  // a plain loop
      INFO(steps << " steps, checkpoints " << checkpoints);
      Tensor w = K::variable({0.5, -1.0}, "float64"), x = K::variable(K::ones({steps, 2}, "float64"), "float64");
      auto body = [&](const Tensor& a, const Tensor& e) { return a * (w * 2.0) + e * (noise + w); };
      auto fold = [&] {
        if (checkpoints < 0) return K::foldl(body, x, w);
        auto scope = K::checkpoint_steps(checkpoints);
        return K::foldl(body, x, w);
      };
      Tensor y = fold(), g = K::gradients(K::sum(y), {w})[0];
      CHECK_FALSE(y.symbolic());
      K::update(w, {7, 7});  // neither sees that
      Vec expected, slope;
      for (std::size_t i = 0; i < 2; ++i) {
        const double v = i ? -1.0 : 0.5, n = drawn[i];
        // a -> 2 w a + n + w, twice, from w: 4 w^3 + 2 w (n + w) + n + w.
        expected.push_back(steps ? 4 * v * v * v + 2 * v * (n + v) + n + v : v);
        slope.push_back(steps ? 12 * v * v + 2 * n + 4 * v + 1 : 1);
      }
      kassette::test::check_close(values(y), expected, 1e-13);
      kassette::test::check_close(values(g), slope, 1e-13);
    }
}

TEST_CASE("an eager loop of a hundred thousand steps has the gradients of its formula, first and second",
          "[loops][serial]") {
  for (bool right : {false, true}) {
    const std::int64_t n = right && kSanitized ? 10007 : 100003;  // one op cannot cut x into 100003
    Tensor x = K::variable(kassette::test::f64(kassette::test::numbers(n, 4), {n}), "float64"),
           w = K::variable(0.5, "float64");
    Vec before = values(x);
    double sum = 0, squares = 0;
    for (double v : before) sum += v, squares += v * v;
    auto step = [&](const Tensor& a, const Tensor& e) { return a + w * K::square(e); };
    Tensor zero = K::constant(0.0, "float64"), y = right ? K::foldr(step, x, zero) : K::foldl(step, x, zero);
    CHECK(number(y) == Approx(0.5 * squares));
    Tensors g = K::gradients(y, {w, x});
    CHECK(number(g[0]) == Approx(squares));
    kassette::test::check_close(values(g[1]), before, 1e-12);  // 2 w x
    CHECK(number(K::gradients(K::sum(g[1]), {w})[0]) == Approx(2 * sum));
  }
}

TEST_CASE("an eager loop goes over its elements as they were when it began", "[loops]") {
  for (std::int64_t n : {5, 70001}) {
    Tensor x = K::variable(K::ones({n, 2}, "float64"), "float64");
    bool first = true;
    Tensor y = K::foldl(
        [&](const Tensor& a, const Tensor& e) {
          if (std::exchange(first, false)) K::update(x, K::zeros({n, 2}, "float64"));
          return a + e;
        },
        x, K::zeros({2}, "float64"));
    CHECK(values(y) == Vec{static_cast<double>(n), static_cast<double>(n)});
    CHECK(values(x)[0] == 0);
  }
}

TEST_CASE("an eager loop of no steps has the gradients that a function says, zeros", "[loops]") {
  // As inside tf.function. TensorFlow's eager loops return None here; ours return a gradient for every tensor that is
  // connected.
  using Loss = std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& s)>;
  auto rnn = [](const Tensor& x, const Tensor& w, const Tensor& s, const kassette::backend::RnnOptions& options) {
    auto r = K::rnn(
        [&](const Tensor& e, const Tensors& h) {
          return K::Step{e * w, {h[0] * w + K::dropout(e, 0.5)}};
        },
        K::reshape(x, {1, 0, 2}), {K::expand_dims(s, 0)}, options);
    return K::sum(K::square(r.last_output)) + K::sum(r.outputs) + K::sum(K::square(r.new_states[0]));
  };
  Tensor mask = K::zeros({1, 0}, "bool");
  const Loss losses[] = {
      [](const Tensor& x, const Tensor& w, const Tensor& s) {
        return K::sum(K::square(K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, s)));
      },
      [](const Tensor& x, const Tensor& w, const Tensor& s) {
        return K::sum(K::square(K::foldr([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, s)));
      },
      [](const Tensor& x, const Tensor& w, const Tensor& s) {
        return K::sum(K::map_fn([&](const Tensor& e) { return K::square(e * w); }, x)) + K::sum(K::square(s));
      },
      [&](const Tensor& x, const Tensor& w, const Tensor& s) { return rnn(x, w, s, {}); },
      [&](const Tensor& x, const Tensor& w, const Tensor& s) { return rnn(x, w, s, {.mask = mask}); },
      [&](const Tensor& x, const Tensor& w, const Tensor& s) {
        return rnn(x, w, s, {.mask = mask, .zero_output_for_mask = true});
      }};
  for (const Loss& loss : losses) {
    Tensor x = K::variable(K::zeros({0, 2}, "float64"), "float64"), w = K::variable({1, 2}, "float64"),
           s = K::variable({3, 4}, "float64");
    Tensors g = K::gradients(loss(x, w, s), {x, w, s});
    REQUIRE(g[0].defined());
    REQUIRE(g[1].defined());
    CHECK(g[0].shape() == kassette::Shape{0, 2});
    CHECK(values(g[1]) == Vec{0, 0});
    CHECK(values(g[2]) == Vec{6, 8});
    CHECK(values(K::gradients(K::sum(K::square(g[2])), {s})[0]) == Vec{24, 32});
    Tensor px = K::placeholder({K::None, 2}, K::None, "float64"), ps = K::placeholder({2}, K::None, "float64");
    Tensors f = K::function({px, ps}, K::gradients(loss(px, w, ps), {px, w, ps}))(
        {K::zeros({0, 2}, "float64"), K::constant({3, 4}, "float64")});
    for (int i = 0; i < 3; ++i) CHECK(values(f[i]) == values(g[i]));
  }
}

TEST_CASE("an eager loop of no steps whose step asks for values is the states as they came", "[loops]") {
  Tensor w = K::variable({1, 2}, "float64"), s = K::variable({3, 4}, "float64");
  auto step = [&](const Tensor& a, const Tensor& e) { return e.to_vector<double>()[0] > 0 ? a * w : a; };
  Tensor y = K::foldl(step, K::zeros({0, 2}, "float64"), s * 2.0);
  CHECK(values(y) == Vec{6, 8});
  Tensors g = K::gradients(K::sum(y), {w, s});
  CHECK_FALSE(g[0].defined());
  CHECK(values(g[1]) == Vec{2, 2});
  CHECK(values(K::foldl(step, K::ones({2, 2}, "float64"), s)) == Vec{3, 16});
  std::vector<Tensor> one_a_step;
  int i = 0;
  CHECK(
      values(K::foldl([&](const Tensor& a, const Tensor&) { return a * one_a_step.at(static_cast<std::size_t>(i++)); },
                      K::zeros({0, 2}, "float64"), s)) == Vec{3, 4});
}

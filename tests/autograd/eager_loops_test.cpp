// tests/autograd/eager_loops_test.cpp - plain loops: of no steps, with steps that read values, and what thousands of them leave.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <malloc.h>

#include <functional>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

using kassette::Shape;
using kassette::Tensor;
using kassette::Tensors;
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

/// 10,000 runs leave what 500 do.
void check_even(const char* what, const std::function<void()>& run) {
  INFO(what);
  for (int i = 0; i < 500; ++i) run();
  const Kept before;
  for (int i = 0; i < 10000; ++i) run();
  const Kept after;
  CHECK(after.totals.live_nodes == before.totals.live_nodes);
  CHECK(after.totals.live_tensors == before.totals.live_tensors);
  CHECK(after.totals.live_bytes == before.totals.live_bytes);
  CHECK(after.totals.saved_bytes == before.totals.saved_bytes);
  CHECK(after.live <= before.live);
  CHECK(after.pooled <= before.pooled);
  CHECK(after.heap < before.heap + 10000);  // a byte a run at most
}

}  // namespace

TEST_CASE("10,000 eager loops leave nothing", "[loops][memory][serial]") {
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

// tests/autograd/loops/loop_chain_test.cpp - cells whose steps run as chains over rows give the bits of the steps one
// by one.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/fast_paths.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/ops/levels.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/worst.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

// Rows of a chain have 256 bytes at least, and the last vector of these is not whole.
constexpr int kSteps = 4, kSamples = 5, kUnits = 70;

struct Weights {
  Tensor w, v, b;  // (units, 4 units), the same, (4 units)
};
/// The elements of a step, (samples, 4 units); the states (samples, units).
using Cell = std::function<K::Step(const Tensor& x, const Tensors& states, const Weights&)>;

Tensor part(const Tensor& z, int k, int n = 1) { return z(all, slice(k * kUnits, (k + n) * kUnits)); }

K::Step lstm(const Tensor& z, const Tensors& states) {
  Tensor cell = K::sigmoid(part(z, 1)) * states[1] + K::sigmoid(part(z, 0)) * K::tanh(part(z, 2));
  Tensor h = K::sigmoid(part(z, 3)) * K::tanh(cell);
  return {h, {h, cell}};
}

const struct {
  const char* name;
  Cell cell;
  bool three_ways = false;  // a state is read thrice: plain loops add those cotangents in another order
} kCells[] = {
    {"LSTM", [](const Tensor& x, const Tensors& s, const Weights& p) { return lstm(x + K::dot(s[0], p.w), s); }},
    {"LSTM with a bias in the step",
     [](const Tensor& x, const Tensors& s, const Weights& p) { return lstm(x + K::dot(s[0], p.w) + p.b, s); }},
    {"what is sliced is scaled, squared and added first",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       return lstm(K::square(K::sigmoid(x)) - (p.b + K::dot(s[0], p.w)) * 2.0, s);
     }},
    {"one matrix twice", [](const Tensor& x, const Tensors& s,
                            const Weights& p) { return lstm(x + K::dot(s[0], p.w) + K::dot(s[1], p.w), s); }},
    {"what is sliced is read as a whole too",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor z = x + K::dot(s[0], p.w);
       K::Step step = lstm(z, s);
       return K::Step{step.output + K::mean(z, 1, true), step.states};
     }},
    {"two products and two biases, as a GRU",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor a = K::dot(s[0], p.w) + p.b, r = K::sigmoid(part(x, 0) + part(a, 0)),
              u = K::sigmoid(part(x, 1) + part(a, 1));
       Tensor c = K::tanh(part(x, 2) + r * part(a, 2)), h = u * s[0] + (1.0 - u) * c;
       return K::Step{h, {h, s[1] + part(K::dot(c, p.v), 3)}};
     },
     /*three_ways=*/true},
    {"a slice that nobody reads",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor z = x + K::dot(s[0], p.w), h = K::tanh(part(z, 0)) * K::sigmoid(part(z, 1)) + part(z, 3);
       return K::Step{h, {h, s[1] * 0.5}};
     }},
    {"slices that overlap",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor z = x + K::dot(s[0], p.w),
              h = K::tanh(part(z, 0)) * K::sigmoid(z(all, slice(kUnits / 2, kUnits / 2 + kUnits)));
       return K::Step{h, {h, s[1] * 0.5 + part(z, 1) * part(z, 2) + part(z, 3)}};
     }},
    {"slices of two widths",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor z = x + K::dot(s[0], p.w), ru = K::sigmoid(part(z, 0, 2)),
              h = K::tanh(part(z, 2)) * part(ru, 0) + part(ru, 1) * part(z, 3);
       return K::Step{h, {h, s[1] - h}};
     }},
    {"a slice is an output and a state",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor z = x + K::dot(s[0], p.w), h = K::tanh(part(z, 1)) * K::sigmoid(part(z, 0) + s[1]);
       return K::Step{part(z, 3) + h, {h, part(z, 2)}};
     }},
    {"no slices, and a row that repeats",
     [](const Tensor& x, const Tensors& s, const Weights& p) {
       Tensor h = K::tanh(s[0] + K::dot(s[1], p.w(all, slice(0, kUnits))) * p.b[slice(0, kUnits)] + 0.25);
       return K::Step{h * h, {h, part(x, 0)}};
     }},
};

struct Inputs {
  Tensor x, h, c;
  Weights p;
  Tensors all() const { return {x, h, c, p.w, p.v, p.b}; }
  explicit Inputs(DType dtype, int steps = kSteps, int samples = kSamples) {
    auto make = [&](const Dims& shape, std::int64_t n, std::uint64_t seed) {
      return K::variable(K::cast(f64(numbers(static_cast<std::size_t>(n), seed), shape), dtype), dtype);
    };
    x = make({steps, samples, 4 * kUnits}, steps * samples * 4 * kUnits, 1);
    h = make({samples, kUnits}, samples * kUnits, 2);
    c = make({samples, kUnits}, samples * kUnits, 3);
    p.w = make({kUnits, 4 * kUnits}, kUnits * 4 * kUnits, 4);
    p.v = make({kUnits, 4 * kUnits}, kUnits * 4 * kUnits, 5);
    p.b = make({4 * kUnits}, 4 * kUnits, 6);
  }
};

Tensor loss_of(const Cell& cell, const Inputs& in, bool backwards) {
  K::RnnOptions o;
  o.time_major = true;
  o.go_backwards = backwards;
  auto step = [&](const Tensor& x, const Tensors& states) { return cell(x, states, in.p); };
  K::RnnResult r = K::rnn(step, in.x, {in.h, in.c}, o);
  return K::sum(r.outputs * K::square(r.outputs)) + K::sum(r.new_states[0] * r.new_states[1]);
}

/// The loss, its gradients and those of the sum of their squares.
Tensors all_of(const Cell& cell, const Inputs& in, bool backwards) {
  Tensor loss = loss_of(cell, in, backwards);
  Tensors g = K::gradients(loss, in.all()), results(loss);
  Tensor squares = K::constant(0.0, loss.dtype());
  for (const Tensor& t : g) {
    results.push_back(t.defined() ? t : K::constant(0.0));
    if (t.defined()) squares = squares + K::sum(K::square(t));
  }
  for (const Tensor& t : K::gradients(squares, in.all())) results.push_back(t.defined() ? t : K::constant(0.0));
  return results;
}

}  // namespace

TEST_CASE("cells that run as chains give the bits of plain loops, and so do their gradients", "[loops]") {
  for (DType dtype : {float32, float64}) {
    // Of the largest: second gradients are sums in another order.
    const double tolerance = dtype == float32 ? 1e-3 : 1e-11;
    Inputs in(dtype);
    for (const auto& c : kCells)
      for (bool backwards : {false, true}) {
        INFO(c.name << ", " << dtype << (backwards ? ", backwards" : ""));
        Tensors eager = all_of(c.cell, in, backwards);
        Function f = K::symbolic([&] { return K::function({}, all_of(c.cell, in, backwards)); })();
        Tensors compiled = f({});
        for (std::int64_t i = 0; i < eager.size(); ++i) {
          INFO("result " << i);
          const std::vector<double> got = values(compiled[i]), expected = values(eager[i]);
          double largest = 0;
          for (double v : expected) largest = std::max(largest, std::abs(v));
          if (i < 7) CHECK(got == expected);
          else check_close(got, expected, 0, tolerance * largest);
        }
      }
  }
}

TEST_CASE("threads that go through all steps with rows of their own give the bits of plain loops", "[loops]") {
  SettingsScope restore;
  constexpr int kMore = 21;  // samples, for products of several tiles of rows, the last of which is short
  for (DType dtype : {float32, float64}) {
    Inputs in(dtype, 7, kMore);
    for (const auto& c : kCells)
      for (bool backwards : {false, true}) {
        Tensors eager(loss_of(c.cell, in, backwards)), g = K::gradients(eager[0], in.all());
        for (const Tensor& t : g) eager.push_back(t.defined() ? t : K::constant(0.0));
        auto compiled = [&] {
          Tensor loss = loss_of(c.cell, in, backwards);
          Tensors results(loss);
          for (const Tensor& t : K::gradients(loss, in.all())) results.push_back(t.defined() ? t : K::constant(0.0));
          return K::function({}, results);
        };
        Function forward = K::symbolic([&] { return K::function({}, {loss_of(c.cell, in, backwards)}); })(),
                 all = K::symbolic(compiled)();
        Function segments = [&] {
          auto scope = K::checkpoint_steps(3);
          return K::symbolic(compiled)();
        }();
        for (int threads : {1, 2, 3}) {
          INFO(c.name << ", " << dtype << (backwards ? ", backwards, " : ", ") << threads << " threads");
          set_num_threads(threads);
          CHECK(values(forward({})[0]) == values(eager[0]));
          for (const Function& f : {all, segments}) {
            Tensors got = f({});
            for (std::int64_t i = 0; i < eager.size(); ++i) {
              const std::vector<double> a = values(got[i]), b = values(eager[i]);
              double largest = 0, apart = 0;
              for (std::size_t k = 0; k < a.size(); ++k)
                largest = std::max(largest, std::abs(b[k])), apart = worst_of(apart, std::abs(a[k] - b[k]));
              INFO("result " << i << ", the largest " << largest);
              CHECK(apart <= (c.three_ways ? largest * (dtype == float32 ? 1e-6 : 1e-15) : 0));
            }
          }
        }
      }
  }
}

TEST_CASE("the gradient of a cell that runs as a chain is that of differences", "[loops]") {
  Inputs in(float64);
  for (const auto& c : kCells) {
    INFO(c.name);
    Function loss = K::symbolic([&] { return K::function({}, loss_of(c.cell, in, false)); })();
    Function gradient = K::symbolic([&] {
      return K::function({}, K::gradients(loss_of(c.cell, in, false), {in.x, in.h, in.p.w}));
    })();
    Tensors g = gradient({});
    const Tensor inputs[] = {in.x, in.h, in.p.w};
    for (int k = 0; k < 3; ++k) {
      std::vector<double> v = values(inputs[k]), d = values(g[k]);
      for (std::size_t i : {std::size_t(0), std::size_t(2 * kUnits - 1), v.size() / 2 + 7, v.size() - 1}) {
        auto at = [&](double x) {
          std::vector<double> moved = v;
          moved[i] = x;
          K::set_value(inputs[k], f64(moved, inputs[k].shape()));
          return number(loss({})[0]);
        };
        double slope = (at(v[i] + 1e-5) - at(v[i] - 1e-5)) / 2e-5;
        K::set_value(inputs[k], f64(v, inputs[k].shape()));
        INFO("input " << k << ", element " << i);
        // The losses are rounded by some 1e-13 of themselves, and their difference is divided by 2e-5.
        check_close({d[i]}, {slope}, 1e-7, 1e-7 + 5e-9 * std::abs(number(loss({})[0])));
      }
    }
  }
}

TEST_CASE("the gates of a cell, which are slices of one product, run as one chain over rows in each step", "[loops]") {
  Inputs in(float32);
  Function f = K::symbolic([&] { return K::function({}, loss_of(kCells[0].cell, in, false)); })();
  CountedPaths counted;
  f({});
  CHECK(times_taken(FastPath::loop_chain_of_rows) == kSteps);
}

TEST_CASE("chains of a loop take a constant, a number that changes and a last row that is short", "[loops]") {
  // Batches of one have one row; a scalar state is read by all elements.
  Tensor x = K::variable(f64(numbers(3 * 300, 1), {3, 1, 300}), "float64"), start = K::variable(2.0, "float64");
  auto loss = [&] {
    K::RnnOptions o;
    o.time_major = true;
    auto step = [&](const Tensor& e, const Tensors& s) {
      Tensor y = K::tanh(e(all, slice(0, 150)) * s[0] - e(all, slice(150, 300)) + 1.0);
      return K::Step{y * y, {s[0] * 0.5}};
    };
    return K::sum(K::rnn(step, x, {start}, o).outputs);
  };
  Tensors eager = K::gradients(loss(), {x, start});
  Tensors compiled = K::symbolic([&] { return K::function({}, K::gradients(loss(), {x, start})); })()({});
  for (int i = 0; i < 2; ++i) CHECK(values(compiled[i]) == values(eager[i]));
}

TEST_CASE("a chain of a loop that has no room for all ops of its slices leaves some out", "[loops]") {
  // Each of the four slices computes all of these; half of them are calls, which take more instructions.
  Inputs in(float32);
  for (int ops : {10, 40, 70, 130}) {
    auto cell = [&](const Tensor& x, const Tensors& s, const Weights& p) {
      Tensor z = x + K::dot(s[0], p.w);
      for (int k = 0; k < ops; ++k) z = k % 2 ? K::sin(z) : K::maximum(p.b, z) * 0.75;
      return lstm(z, s);
    };
    INFO(ops << " ops");
    Tensors eager(loss_of(cell, in, false)), g = K::gradients(eager[0], in.all());
    Tensors compiled = K::symbolic([&] {
      Tensor loss = loss_of(cell, in, false);
      Tensors results(loss), dx = K::gradients(loss, in.all());
      for (const Tensor& t : dx)
        if (t.defined()) results.push_back(t);
      return K::function({}, results);
    })()({});
    for (const Tensor& t : g)
      if (t.defined()) eager.push_back(t);
    REQUIRE(compiled.size() == eager.size());
    for (std::int64_t i = 0; i < eager.size(); ++i) CHECK(values(compiled[i]) == values(eager[i]));
  }
}

TEST_CASE("on a device the elementwise ops of a loop run as chains too, with the bits of the ops one by one",
          "[device][loops]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const SettingsScope restore;
  fast_path_counts.on = true;
  auto chains = [] { return times_taken(FastPath::loop_chain) + times_taken(FastPath::loop_chain_of_rows); };
  for (DType dtype : {float32, float64}) {
    Inputs in(dtype, 3, 2);
    for (const auto& c : kCells) {
      INFO(c.name << ", " << dtype);
      auto run = [&](bool fused) {
        fast_path_thresholds.off = fused ? 0 : std::uint64_t(1) << static_cast<int>(FastPath::loop_chain);
        Function f = K::symbolic([&] {
          Tensor loss = loss_of(c.cell, in, false);
          Tensors results(loss);
          for (const Tensor& t : K::gradients(loss, in.all())) results.push_back(t.defined() ? t : K::constant(0.0));
          return K::function({}, results);
        })();
        std::vector<std::vector<double>> got;
        const std::int64_t before = chains();
        for (const Tensor& t : f({})) got.push_back(values(t.to("cpu")));
        CHECK((chains() - before >= 2 * 3) == fused);  // in each step, forward and backward
        return got;
      };
      const auto fused = run(true);
      CHECK(fused == run(false));
      DeviceScope host("cpu");  // whose steps are compared with eager ones above
      const Inputs there(dtype, 3, 2);
      const Tensor loss = loss_of(c.cell, there, false);
      const Tensors dx = K::gradients(loss, there.all());
      for (std::size_t i = 0; i < fused.size(); ++i) {
        const Tensor expected = i == 0 ? loss : dx[static_cast<std::int64_t>(i) - 1];
        if (!expected.defined()) continue;
        const std::vector<double> wanted = values(expected);
        double largest = 0;
        for (double v : wanted) largest = std::max(largest, std::abs(v));
        check_close(fused[i], wanted, 0, (dtype == float32 ? 1e-5 : 1e-13) * largest);
      }
    }
  }
}

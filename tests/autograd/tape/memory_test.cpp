// tests/autograd/tape/memory_test.cpp - what the tape keeps, and for how long.
#include <kassette/testing.h>
#include <kassette/runtime.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

TEST_CASE("a long chain is recorded, differentiated and freed without recursion, in at most 600 bytes an op",
          "[slow]") {
  const char* wish = std::getenv("KASSETTE_TEST_CHAIN");  // 10000000 to see the full length under an 8 MB stack
  int n = wish ? std::atoi(wish) : 300000;
  Tensor w = K::variable(1.0000001, "float64"), first = w;
  // What the tests before have left free is used up first: what the chain takes then comes from the system.
  if (!kassette::kAddressSanitizer)
    for (std::int64_t reserved = kassette::pool_reserved(); kassette::pool_reserved() == reserved;) first = first * w;
  auto before = kassette::totals();
  {
    const std::int64_t reserved = kassette::pool_reserved();
    Tensor y = w;
    for (int i = 0; i < n; ++i) y = y * w;
    auto now = kassette::totals();
    CHECK(now.live_nodes - before.live_nodes == n);
    // Nodes, and the scalar each saves: what the pool took from the system is the honest sum.
    CHECK(static_cast<double>(kassette::pool_reserved() - reserved) / n < 600 + 64e6 / n);
    Tensor g = K::gradients(y, {w})[0];
    CHECK(g.item<double>() == Approx((n + 1) * std::pow(1.0000001, n)).epsilon(1e-6));
  }
  auto after = kassette::totals();
  CHECK(after.live_nodes == before.live_nodes);
  CHECK(after.live_bytes == before.live_bytes);
}

TEST_CASE("a training loop does not grow, and history that is carried along does") {
  auto before = kassette::totals();
  Tensor w = K::variable({1, 2, 3});
  auto step = [&] {
    Tensor g = K::gradients(K::sum(K::exp(w * 0.01)), {w})[0];
    K::update_sub(w, 0.1 * g);
    return g;
  };
  for (int i = 0; i < 10; ++i) step();
  auto warm = kassette::totals();
  for (int i = 0; i < 100; ++i) step();
  auto later = kassette::totals();
  CHECK(later.live_nodes == warm.live_nodes);
  CHECK(later.live_bytes == warm.live_bytes);
  CHECK(warm.live_nodes == before.live_nodes + 1);
  Tensor v = K::zeros({3});
  for (int i = 0; i < 20; ++i) v = 0.9 * v + step();
  CHECK(kassette::totals().live_nodes > later.live_nodes + 40);
  v = v.detach();
  CHECK(kassette::totals().live_nodes == later.live_nodes);
}

TEST_CASE("an Adam step through a function makes no second copy of the model") {
  constexpr std::int64_t n = 1 << 20;
  Tensor p = K::variable(K::ones({n})), m = K::zeros({n}), v = K::zeros({n}), g = K::placeholder({K::None});
  kassette::Function step;
  K::symbolic([&] {
    Tensor mt = 0.9 * m + 0.1 * g, vt = 0.999 * v + 0.001 * K::square(g);
    step = K::function({g}, {}, {{p, p - 0.01 * mt / (K::sqrt(vt) + 1e-7)}, {m, mt}, {v, vt}});
    return 0;
  })();
  Tensor gradient = K::ones({n});
  step({gradient});
  auto stats = [] { return kassette::memory_stats(); };
  kassette::reset_peak_memory();
  std::int64_t live = stats().live;
  const float *at_p = p.data<float>(), *at_m = m.data<float>();
  for (int i = 0; i < 5; ++i) step({gradient});
  CHECK(p.data<float>() == at_p);
  CHECK(m.data<float>() == at_m);
  CHECK(stats().live == live);
  CHECK(stats().peak - live < n);  // less than a quarter of one variable
}

TEST_CASE("a rate that is computed between a moment and the weights does not cut the pass over them in two") {
  constexpr std::int64_t n = 1 << 20;
  Tensor p = K::variable(K::ones({n})), t = K::variable(3), g = K::placeholder({K::None});
  kassette::Function step;
  K::symbolic([&] {
    Tensor moment = 0.5 * K::square(g), rate = 1 / (1 + K::sqrt(t + 1));
    step = K::function({g}, {}, {{p, p - moment * rate}, {t, t + 1}});
    return 0;
  })();
  Tensor gradient = K::ones({n});
  step({gradient});
  kassette::reset_peak_memory();
  std::int64_t live = kassette::memory_stats().live;
  step({gradient});
  CHECK(kassette::memory_stats().peak - live < n);  // a moment that waits for the rate takes 4 n
  CHECK(p.to_vector<float>()[n - 1] == Approx(1 - 0.5 / 3 - 0.5 / (1 + std::sqrt(5.))));
}

namespace {

/// A multilayer perceptron of equal layers, whose activations are much larger than its weights.
struct Deep {
  static constexpr int kLayers = 12, kWidth = 64, kRows = 1024;
  Tensors parameters;
  Tensor x;
  Deep() {
    std::vector<float> numbers(kRows * kWidth);
    auto fill = [&](float scale) {
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = scale * std::sin(static_cast<float>(i) + 0.5f);
    };
    fill(1);
    x = K::constant(numbers, "float32", {kRows, kWidth});
    fill(0.2f);
    numbers.resize(kWidth * kWidth);
    for (int i = 0; i < kLayers; ++i) {
      parameters.push_back(K::variable(K::constant(numbers, "float32", {kWidth, kWidth})));
      parameters.push_back(K::variable(K::zeros({kWidth})));
    }
  }
  Tensor loss() const {
    Tensor h = x;
    for (int i = 0; i < kLayers; ++i) h = K::tanh(K::dot(h, parameters[2 * i]) + parameters[2 * i + 1]);
    return K::mean(K::square(h));
  }
  static constexpr std::int64_t kActivation = std::int64_t(kRows) * kWidth * 4;
};

/// The difference of a and b, in words; empty if they have the same bits.
std::string difference(const Tensor& a, const Tensor& b) {
  kassette::testing::Comparison c = kassette::testing::compare(K::eval(a), K::eval(b), {.rtol = 0, .atol = 0});
  return c.message;
}

}  // namespace

TEST_CASE("a loss that the caller releases has its saved values released during the pass; one that is held keeps them",
          "[tape]") {
  Deep net;
  auto live = [] { return kassette::memory_stats().live; };
  std::int64_t before = live(), gradient_bytes = 0;
  for (const Tensor& p : net.parameters) gradient_bytes += p.size() * 4;
  Tensors given = K::gradients(net.loss(), net.parameters);
  CHECK(live() - before < gradient_bytes + 2 * Deep::kActivation);
  Tensor loss = net.loss();
  Tensors held = K::gradients(loss, net.parameters);
  CHECK(live() - before > Deep::kLayers * Deep::kActivation);
  for (std::int64_t i = 0; i < held.size(); ++i) CHECK(difference(held[i], given[i]) == "");
  loss = Tensor();
  held = Tensors();
  CHECK(live() - before < gradient_bytes + 2 * Deep::kActivation);
  loss = net.loss();
  given = K::gradients(std::move(loss), net.parameters);
  CHECK(live() - before < gradient_bytes + 2 * Deep::kActivation);
  // During the pass activations go while gradients come.
  given = Tensors();
  loss = net.loss();
  kassette::reset_peak_memory();
  std::int64_t forward = live();
  given = K::gradients(std::move(loss), net.parameters);
  CHECK(kassette::memory_stats().peak - forward < 6 * Deep::kActivation);
}

TEST_CASE("gradients of a released loss are differentiated as if it had been held, also after updates", "[tape]") {
  Deep net;
  auto norm = [](const Tensors& g) {
    Tensor total = K::sum(K::square(g[0]));
    for (std::int64_t i = 1; i < g.size(); ++i) total = total + K::sum(K::square(g[i]));
    return total;
  };
  auto dropped = [&] {
    Tensor h = net.loss();
    return K::sum(K::square(K::dropout(net.x * h, 0.5, K::None, 7)));
  };
  for (bool draws : {false, true}) {
    K::set_random_seed(3);
    Tensor loss = draws ? dropped() : net.loss();
    Tensors wanted = K::gradients(loss, net.parameters);
    K::set_random_seed(3);
    std::int64_t saved = kassette::totals().saved_bytes;
    Tensors g = K::gradients(draws ? dropped() : net.loss(), net.parameters);
    CHECK(kassette::totals().saved_bytes - saved < 4 * Deep::kActivation);  // constants, weights and keys
    for (std::int64_t i = 0; i < g.size(); ++i) CHECK(difference(g[i], wanted[i]) == "");
    for (const Tensor& p : net.parameters) K::update_sub(p, 0.01 * p + 0.001);
    Tensors second = K::gradients(norm(g), net.parameters), expected = K::gradients(norm(wanted), net.parameters);
    for (std::int64_t i = 0; i < second.size(); ++i) CHECK(difference(second[i], expected[i]) == "");
  }
  // In a function: the variables of the call.
  Tensors g = K::gradients(net.loss(), net.parameters);
  auto f = K::function({}, {norm(g)});
  K::update(net.parameters[1], K::ones({Deep::kWidth}));
  CHECK(K::eval(f({})[0]).item<double>() ==
        Approx(K::eval(norm(K::gradients(net.loss(), net.parameters))).item<double>()).epsilon(1e-4));
}

TEST_CASE("saved values stay where somebody else holds a tensor of the segment, or a variable changed since",
          "[tape]") {
  Deep net;
  auto saved = [] { return kassette::totals().saved_bytes; };
  constexpr std::int64_t kAll = Deep::kLayers * Deep::kActivation;
  Tensor kept;
  auto loss_with = [&] {
    Tensor h = K::tanh(K::dot(net.x, net.parameters[0]));
    kept = h;
    for (int i = 1; i < Deep::kLayers; ++i) h = K::tanh(K::dot(h, net.parameters[2 * i]) + net.parameters[2 * i + 1]);
    return K::sum(h);
  };
  {
    Tensors g = K::gradients(loss_with(), {net.parameters[0]});
    CHECK(saved() > kAll);
    CHECK(K::gradients(K::sum(kept), {net.parameters[0]})[0].defined());
    kept = Tensor();
  }
  {
    Tensor loss = net.loss();
    K::update_add(net.parameters[3], K::ones({Deep::kWidth}));  // a bias, which no adjoint reads
    Tensors g = K::gradients(std::move(loss), net.parameters);
    CHECK(saved() > kAll);
  }
  CHECK(saved() < kAll / 4);
}

TEST_CASE("history that grows from step to step is warned about once, in words that name the way out", "[tape]") {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  pid_t child = fork();  // the warning is said once in a process
  if (child == 0) {
    dup2(pipes[1], 2);
    ::setenv("KASSETTE_LOG", "warning", 1);
    Tensor w = K::variable(1.0), total = K::constant(0.0);
    for (int i = 0; i < 400; ++i) {
      total = total + K::exp(w * 0.5) * 0.25;
      K::gradients(total, {w});
    }
    _exit(0);
  }
  close(pipes[1]);
  std::string said(8192, '\0');
  std::size_t n = 0;
  for (ssize_t got; n < said.size() && (got = read(pipes[0], &said[n], said.size() - n)) > 0;)
    n += static_cast<std::size_t>(got);
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  said.resize(n);
  INFO(said);
  CHECK(status == 0);
  CHECK(said.find("successive calls of gradients and is now 100") != std::string::npos);
  CHECK(said.find("x.detach()") != std::string::npos);
  CHECK(said.find('\n') == said.size() - 1);
}

TEST_CASE("ten thousand eager loops leave nothing alive, and the process as large as it was", "[serial]") {
  Tensor w = K::variable({{0.5}}), x = K::ones({2, 3, 1}), start = K::zeros({2, 1});
  const auto all_loops = [&] {
    K::foldl([&](const Tensor& sum, const Tensor& e) { return sum + e * w; }, x, K::zeros({3, 1}));
    K::map_fn([&](const Tensor& e) { return e * w; }, x);
    auto [last, outputs, states] = K::rnn(
        [&](const Tensor& in, const Tensors& s) {
          Tensor h = K::tanh(K::dot(in, w) + s[0]);
          return K::Step{h, {h}};
        },
        x, {start});
    K::gradients(K::sum(last), {w});
  };
  for (int i = 0; i < 500; ++i) all_loops();
  auto warm = kassette::totals();
  std::int64_t reserved = kassette::pool_reserved();
  for (int i = 0; i < 10000; ++i) all_loops();
  auto later = kassette::totals();
  CHECK(later.live_nodes == warm.live_nodes);
  CHECK(later.live_bytes == warm.live_bytes);
  CHECK(later.live_tensors == warm.live_tensors);
  CHECK(kassette::pool_reserved() == reserved);
}

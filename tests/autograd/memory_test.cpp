// tests/autograd/memory_test.cpp - what the tape keeps, and for how long.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

TEST_CASE("a long chain is recorded, rewound and freed without recursion, in at most 600 bytes an op", "[slow]") {
  const char* wish = std::getenv("KASSETTE_TEST_CHAIN");   // 10000000 to see the full length under an 8 MB stack
  int n = wish ? std::atoi(wish) : 300000;
  auto before = kassette::totals();
  {
    Tensor w = K::variable(1.0000001, "float64"), y = w;
    for (int i = 0; i < n; ++i) y = y * w;
    auto now = kassette::totals();
    CHECK(now.live_nodes - before.live_nodes == n + 1);
    // Nodes, and the scalar each saves: what the pool took from the system is the honest sum.
    CHECK(static_cast<double>(kassette::pool_reserved()) / n < 600 + 64e6 / n);
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
  CHECK(stats().peak - live < n);   // less than a quarter of one variable
}

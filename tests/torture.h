// tests/torture.h - everything that the tape can record at once: a loss with dropout, branches and a captured variable
// over unknown sizes, Adam, a metric, the learning phase, first and second order, two threads. Each loop of the library
// is tested with it.
#pragma once
#include <kassette/backend.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "core/context.h"
#include "tests/results.h"

namespace kassette::test {

namespace K = kassette::backend;
using Vec = std::vector<double>;

/// The loss of a sequence (None, None, 2) and a weight (2, 2), with dropout if `drop`.
using TortureForward = Tensor (*)(const Tensor& xs, const Tensor& w, bool drop);
/// A sequence of `time` steps and `rows` samples.
using TortureBatch = Tensor (*)(int time, int rows, std::uint64_t seed);

/// The model that the torture test trains, in float64.
struct Torture {
  Tensor x = K::placeholder({K::None, K::None, 2}, K::None, "float64");
  Tensor w = var64(numbers(4, 31), {2, 2});
  Tensor m = var64(Vec(4, 0), {2, 2}), v = var64(Vec(4, 0), {2, 2}), iterations = var64({0}, {});
  Tensor total = var64({0}, {}), count = var64({0}, {});
  Tensor loss, gradient, penalty, result;
  kassette::Function train, probe;

  explicit Torture(TortureForward forward) {
    K::symbolic([&] {
      loss = forward(x, w, true);
      gradient = K::gradients(loss, {w})[0];
      penalty = K::gradients(K::sum(K::square(gradient)), {w})[0];
      // Adam as keras.optimizers writes it.
      Tensor t = iterations + 1.0;
      Tensor rate = 0.01 * (K::sqrt(1.0 - K::pow(0.999, t)) / (1.0 - K::pow(0.9, t)));
      Tensor m_t = 0.9 * m + 0.1 * gradient, v_t = 0.999 * v + 0.001 * K::square(gradient);
      Tensors updates{K::update_add(iterations, 1.0), K::update(m, m_t), K::update(v, v_t),
                      K::update(w, w - rate * m_t / (K::sqrt(v_t) + 1e-7))};
      Tensors metric{K::update_add(total, loss), K::update_add(count, 1.0)};
      {
        auto after = K::control_dependencies(metric);
        result = total / count;
      }
      for (const Tensor& u : metric) updates.push_back(u);
      train = K::function({x, K::learning_phase()}, {loss, result, gradient}, updates);
      probe = K::function({x, K::learning_phase()}, {loss, gradient, penalty});
      return 0;
    })();
  }
};

inline void torture(TortureForward forward, TortureBatch batch) {
  auto before = kassette::totals();
  {
    Torture t(forward);
    CHECK(number(t.iterations) == 0);
    CHECK(number(t.count) == 0);
    for (auto [time, rows] : {std::pair{3, 2}, {5, 1}, {1, 4}}) {
      Tensor in = batch(time, rows, 40 + static_cast<std::uint64_t>(time));
      Tensors o = t.probe({in, 0});
      Vec w0 = values(t.w);
      auto loss_at = [&](const Vec& wv) { return number(forward(in, var64(wv, {2, 2}), false)); };
      check_close(values(o[0]), {loss_at(w0)}, 1e-12);
      check_close(values(o[1]), differences(loss_at, w0), 1e-6);
      auto squares_at = [&](const Vec& wv) {
        Tensor w_ = var64(wv, {2, 2});
        return number(K::sum(K::square(K::gradients(forward(in, w_, false), {w_})[0])));
      };
      check_close(values(o[2]), differences(squares_at, w0), 1e-5);
      // In training the masks are drawn anew: two calls differ, and loss and gradient of one call belong together:
      // along the gradient of the regulariser alone that cannot be seen, so the draws are pinned by their keys being
      // shared.
      bool differs = false;
      for (int k = 0; k < 8 && !differs; ++k) differs = number(t.probe({in, 1})[0]) != number(t.probe({in, 1})[0]);
      CHECK(differs);
    }
    // Adam, computed by hand beside it.
    Tensor in = batch(4, 3, 50);
    Vec w = values(t.w), m(4, 0), v(4, 0);
    double seen = 0;
    for (int k = 1; k <= 3; ++k) {
      Tensors o = t.train({in, 0});
      Vec g = values(o[2]);
      seen += number(o[0]);
      CHECK(number(o[1]) == Approx(seen / k).epsilon(1e-12));
      double rate = 0.01 * std::sqrt(1 - std::pow(0.999, k)) / (1 - std::pow(0.9, k));
      for (std::size_t i = 0; i < 4; ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        w[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-7);
      }
      check_close(values(t.w), w, 1e-9);
    }
    // Two threads on one function: no increment is lost, and every result is one of a consistent state.
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int k = 0; k < 2; ++k)
      threads.emplace_back([&, k] {
        for (int i = 0; i < 25; ++i) {
          Tensors o = t.train({batch(2 + i % 3, 1 + k, static_cast<std::uint64_t>(60 + i)), i % 2});
          if (!std::isfinite(number(o[0])) || !std::isfinite(number(o[1]))) ++wrong;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(number(t.iterations) == 53);
    CHECK(number(t.count) == 53);
  }
  auto after = kassette::totals();
  CHECK(after.live_nodes - before.live_nodes <= 1);  // the learning phase's symbol
  CHECK(after.saved_bytes == before.saved_bytes);
}

}  // namespace kassette::test

// examples/ring_attention.cpp - attention over a sequence that is spread over the ranks (Liu et al. 2023): each has the
// queries of its part, and the keys and values travel around a ring, one part a step.
//
//   ./kassette run --ranks 4 examples/ring_attention.cpp
//
// The softmax is put together part by part, with a running maximum (Milakov and Gimelshein 2018), so no rank holds the
// whole sequence.
#include <kassette/backend.h>
#include <kassette/distributed.h>

#include <cmath>
#include <cstdio>

namespace D = kassette::distributed;
namespace K = kassette::backend;
using kassette::Tensor;

constexpr int kLength = 240, kWidth = 32;  // 240 tokens: a multiple of 1 to 6 ranks

/// softmax(q k^T / sqrt(width)) v, where each rank has its rows of all three.
Tensor ring_attention(const Tensor& q, Tensor k, Tensor v) {
  const D::World world;
  const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
  Tensor highest, sum, out;
  for (int step = 0; step < world.size(); ++step) {
    const bool last = step + 1 == world.size();
    if (!last) D::send(k, next), D::send(v, next);  // on their way while this part is computed
    const Tensor scores = K::dot(q, K::transpose(k)) / std::sqrt(double(kWidth)), top = K::max(scores, 1, true);
    const Tensor now = highest.defined() ? K::maximum(highest, top) : top, weights = K::exp(scores - now);
    const Tensor scale = highest.defined() ? K::exp(highest - now) : K::ones_like(now);
    sum = sum.defined() ? sum * scale + K::sum(weights, 1, true) : K::sum(weights, 1, true);
    out = out.defined() ? out * scale + K::dot(weights, v) : K::dot(weights, v);
    highest = now;
    if (!last) k = D::recv(k, previous), v = D::recv(v, previous);
  }
  return out / sum;
}

int main() {
  const D::World world = D::init();
  K::set_random_seed(1);  // the same on all ranks
  const Tensor q = K::random_normal({kLength, kWidth}), k = K::random_normal({kLength, kWidth}),
               v = K::random_normal({kLength, kWidth});
  const Tensor mine = ring_attention(D::shard(q), D::shard(k), D::shard(v));

  const Tensor whole = K::dot(K::softmax(K::dot(q, K::transpose(k)) / std::sqrt(double(kWidth))), v);
  const double away = K::max(D::all_reduce(K::max(K::abs(mine - D::shard(whole))), D::max)).item<double>();
  if (world.rank() == 0)
    std::printf("%d rank%s: %d of %d tokens here; differs from the whole by %.1e\n", world.size(),
                world.size() == 1 ? "" : "s", kLength / world.size(), kLength, away);
  return away < 1e-5 ? 0 : 1;
}

// examples/crf.cpp - a linear-chain conditional random field (Lafferty, McCallum, Pereira 2001) that reads noisy
// speech: which of three speakers talks at each moment of a conversation? Observations are often wrong; the transition
// scores help. The partition function is a fold, and gradients give the rest: that of log Z is the marginals, that of
// the best score is the best path.
#include <kassette/backend.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kSpeakers = 3, kSounds = 5;

Tensor emit = K::variable(K::zeros({kSounds, kSpeakers}));      // how much a sound speaks for a speaker
Tensor follow = K::variable(K::zeros({kSpeakers, kSpeakers}));  // how readily the second follows the first

// Scores are (time, samples, speakers). Folds over time one row of them after the other; `join` brings the last
// speaker's scores, (samples, last, next), down to the next one's.
template <class Join>
Tensor over_paths(const Tensor& scores, Join join) {
  auto step = [&](const Tensor& so_far, const Tensor& now) { return join(K::expand_dims(so_far) + follow) + now; };
  return K::foldl(step, scores[slice(1)], scores[0]);
}
Tensor log_partition(const Tensor& scores) {
  return K::logsumexp(over_paths(scores, [](const Tensor& paths) { return K::logsumexp(paths, 1); }), 1);
}
Tensor best_score(const Tensor& scores) {
  return K::max(over_paths(scores, [](const Tensor& paths) { return K::max(paths, 1); }), 1);
}
// The score of given speakers, one-hot like the scores.
Tensor score_of(const Tensor& speakers, const Tensor& scores) {
  Tensor pairs = K::dot(speakers[slice(K::None, -1)], follow) * speakers[slice(1)];
  return K::sum(scores * speakers, {0, 2}) + K::sum(pairs, {0, 2});
}
// Viterbi without a back pointer: the best score depends on the scores along the best path alone, one for one.
Tensor best_path(const Tensor& values) {
  Tensor scores = K::variable(values);
  return K::argmax(K::gradients(best_score(scores), {scores})[0]);
}

// Conversations: what is heard, one-hot (time, n, sounds), and who speaks, (time, n).
struct Talk {
  Tensor heard, speakers;
  Talk(int n, int time, std::mt19937& random) {
    // A hands over to B, B to C, C to A; a third of what is heard says nothing, and some of it is misleading.
    std::discrete_distribution<int> next[] = {{6, 1, 0}, {0, 6, 1}, {1, 0, 6}},
                                    sound[] = {{5, 2, 0, 3, 1}, {0, 5, 2, 3, 1}, {2, 0, 5, 3, 1}};
    std::vector<int> who(std::size_t(n * time)), what(who.size());
    for (int i = 0; i < n; ++i)
      for (int t = 0; t < time; ++t) {
        int& now = who[std::size_t(t * n + i)];
        now = t ? next[who[std::size_t((t - 1) * n + i)]](random) : i % kSpeakers;
        what[std::size_t(t * n + i)] = sound[now](random);
      }
    speakers = K::constant(who, "int32", {time, n});
    heard = K::one_hot(K::constant(what, "int32", {time, n}), kSounds);
  }
};

double accuracy(const Tensor& said, const Tensor& truth) {
  return K::mean(K::equal(K::cast(said, "int32"), truth)).item<double>();
}

// log Z by adding up all paths, one by one.
double by_brute_force(const Tensor& scores) {
  const int time = int(scores.shape()[0]);
  std::vector<double> e = K::flatten(scores).to_vector<double>(), f = K::flatten(follow).to_vector<double>();
  double z = 0;
  for (int path = 0; path < std::pow(kSpeakers, time); ++path) {
    double score = 0;
    for (int t = 0, rest = path, last = -1; t < time; ++t, rest /= kSpeakers) {
      const int now = rest % kSpeakers;
      score += e[std::size_t(t * kSpeakers + now)] + (last < 0 ? 0 : f[std::size_t(last * kSpeakers + now)]);
      last = now;
    }
    z += std::exp(score);
  }
  return std::log(z);
}

int main() {
  std::mt19937 random(1);
  const Talk learn(64, 30, random), test(64, 30, random);
  Tensor speakers = K::one_hot(learn.speakers, kSpeakers);
  for (int step = 0; step <= 150; ++step) {
    Tensor scores = K::dot(learn.heard, emit);
    Tensor loss = K::mean(log_partition(scores) - score_of(speakers, scores));
    Tensors g = K::gradients(loss, {emit, follow});
    if (step % 50 == 0) std::printf("step %3d: %.4f nats a conversation\n", step, loss.item<double>());
    K::update_sub(emit, 0.1 * g[0]);
    K::update_sub(follow, 0.1 * g[1]);
  }

  const Talk small(1, 9, random);
  Tensor scores = K::variable(K::dot(small.heard, emit)), log_z = log_partition(scores);
  const double folded = log_z.item<double>(), added = by_brute_force(scores);
  std::printf("\nlog Z of 9 moments: %.6f by folding, %.6f over all %.0f paths\n", folded, added,
              std::pow(kSpeakers, 9));
  Tensor marginals = K::gradients(log_z, {scores})[0];
  const double sums_to = K::max(K::abs(K::sum(marginals, 2) - 1.0)).item<double>();
  std::printf("its gradient is the probability of each speaker at each moment: sums are 1 within %.1e\n", sums_to);

  Tensor heard = K::dot(test.heard, emit);
  const double alone = accuracy(K::argmax(heard), test.speakers), in_chain = accuracy(best_path(heard), test.speakers);
  std::printf("\nheld out, moment by moment: %.1f %% right; as whole conversations: %.1f %%\n", 100 * alone,
              100 * in_chain);
  return std::fabs(folded - added) < 1e-4 && sums_to < 1e-4 && in_chain > 0.75 && in_chain > alone + 0.1 ? 0 : 1;
}

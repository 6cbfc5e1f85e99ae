// examples/vae.cpp - a variational auto-encoder (Kingma and Welling 2014) of handwritten digits, with two latent
// numbers per digit. Given a file name, it draws samples over the latent plane, in equal steps of probability.
#include <cmath>
#include <cstdio>
#include <kassette/io.h>
#include <string>

#include "dense.h"
#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kLatent = 2;

struct Vae {
  Dense encode{64, 128}, mean{128, kLatent}, log_variance{128, kLatent}, decode{kLatent, 128}, pixels{128, 64};
  Tensors weights = weights_of({encode, mean, log_variance, decode, pixels});

  Tensor generate(const Tensor& z) const { return pixels(K::relu(decode(z))); }  // logits
};

// A sample of the normal distribution, such that gradients reach the mean and the variance, and the noise has none.
Tensor sample(const Tensor& mean, const Tensor& log_variance) {
  return mean + K::exp(0.5 * log_variance) * K::random_normal(K::shape(mean));
}

// How far a normal distribution is from the standard one, in nats.
Tensor kl_divergence(const Tensor& mean, const Tensor& log_variance) {
  return -0.5 * K::sum(1 + log_variance - K::square(mean) - K::exp(log_variance), -1);
}

// The negative evidence lower bound: what it costs, in nats, to tell somebody the digit by way of z.
Tensor loss_of(const Vae& vae, const Tensor& x) {
  Tensor h = K::relu(vae.encode(x)), mean = vae.mean(h), log_variance = vae.log_variance(h);
  Tensor drawn = vae.generate(sample(mean, log_variance));
  return K::sum(K::binary_crossentropy(x, drawn, /*from_logits=*/true), -1) + kl_divergence(mean, log_variance);
}

// The point below which the standard normal distribution has probability p.
double quantile(double p) {
  double low = -8, high = 8;
  while (high - low > 1e-9) (0.5 * std::erfc(-(low + high) / 2 / std::sqrt(2.0)) < p ? low : high) = (low + high) / 2;
  return low;
}

void print(const Tensor& picture) {
  const std::vector<float> ink = picture.to_vector<float>();
  const auto width = std::size_t(picture.shape()[1]);
  for (std::size_t i = 0; i < ink.size(); ++i)
    std::printf("%.2s%s", &"  ..::++##@@"[2 * int(ink[i] * 5)], (i + 1) % width ? "" : "\n");
}

// n x n digits, (8 n, 8 n), from the middles of n x n parts of the plane that are equally likely.
Tensor plane(const Vae& vae, int n) {
  std::vector<double> z;
  for (int i = 0; i < n * n; ++i)
    for (int k : {i / n, i % n}) z.push_back(quantile((k + 0.5) / n));
  Tensor drawn = K::sigmoid(vae.generate(K::constant(z, "float32", {n * n, kLatent})));
  return K::reshape(K::permute_dimensions(K::reshape(drawn, {n, n, 8, 8}), {0, 2, 1, 3}), {8 * n, 8 * n});
}

// What is left of theory when the gradient of E[z^2] over 100,000 samples is taken through `sample`: 2 mean and the
// variance.
double worst_of_sampling() {
  Tensor mean = K::variable({0.5, -1.0}), log_variance = K::variable({0.2, -1.5});
  Tensor z = sample(K::repeat(K::reshape(mean, {1, 2}), 100000), log_variance);
  Tensors g = K::gradients(K::sum(K::square(z)) / 100000.0, {mean, log_variance});
  // And the divergence is the mean of log q(z) - log p(z) over samples of q.
  Tensor log_ratio = 0.5 * K::sum(K::square(z) - K::square(z - mean) / K::exp(log_variance) - log_variance, -1);
  Tensor kl = kl_divergence(mean, log_variance);
  Tensor off[] = {g[0] - 2.0 * mean, g[1] - K::exp(log_variance), K::mean(log_ratio) - kl};
  double worst = 0;
  for (const Tensor& x : off) worst = std::fmax(worst, K::max(K::abs(x)).item<double>());
  return worst;
}

int main(int argc, char** argv) {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const Tensor x_train = digits.x[slice(0, Digits::train)];
  const Vae vae;
  kassette::Function train, test;
  K::symbolic([&] {
    Tensor x = K::placeholder({K::None, 64}), nats = K::mean(loss_of(vae, x));
    train = K::function({x}, {nats}, adam(nats, vae.weights, 0.003));
    test = K::function({x}, {nats});
  })();

  double nats = 0;
  for (int epoch = 1; epoch <= 100; ++epoch) {
    Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    double total = 0;
    int batches = 0;
    for (int at = 0; at + 32 <= Digits::train; at += 32, ++batches)
      total += train({K::gather(digits.x, rows[slice(at, at + 32)])})[0].item<double>();
    if (epoch % 20 != 0) continue;
    nats = test({digits.x_test})[0].item<double>();
    std::printf("epoch %3d: %.2f nats per digit, held out %.2f\n", epoch, total / batches, nats);
  }

  // Pixels told one by one by how often each is inked; and the least that grey pixels cost, whatever is known of them.
  Tensor rate = K::mean(x_train, 0, /*keepdims=*/true),
         flat = K::repeat_elements(rate, int(digits.x_test.shape()[0]), 0);
  const double alone = K::mean(K::sum(K::binary_crossentropy(digits.x_test, flat), -1)).item<double>();
  const double least = K::mean(K::sum(K::binary_crossentropy(digits.x_test, digits.x_test), -1)).item<double>();
  std::printf("pixel by pixel: %.2f; a decoder that knows the digit: %.2f\n", alone, least);
  const double off = worst_of_sampling();
  std::printf("gradients through samples, and the divergence, are off theory by %.4f\n\n", off);
  print(plane(vae, 6));
  if (argc > 1)
    kassette::save_png(std::string(argv[1]), K::repeat_elements(K::repeat_elements(plane(vae, 20), 4, 0), 4, 1));
  return nats < alone - 2 && off < 0.02 ? 0 : 1;
}

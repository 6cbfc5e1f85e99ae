// examples/ctc_digits.cpp - reads strings of handwritten digits without being told where one ends and the next begins:
// a bidirectional GRU (Cho et al. 2014) over strips of the picture, and connectionist temporal classification (Graves
// et al. 2006). Everything is written with K: the GRU is a step function for K::rnn, the loss K::ctc_batch_cost, the
// reading K::ctc_decode.
#include <cmath>
#include <cstdio>
#include <string>

#include "digits.h"

namespace K = kassette::backend;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kMost = 4, kWidth = 42, kStrip = 4, kStride = 2, kSteps = (kWidth - kStrip) / kStride + 1;
constexpr int kFeatures = 8 * kStrip, kHidden = 48, kClasses = 11;  // ten digits and the blank

// Pictures of 2 to 4 digits with gaps of 0 to 2 pixels between them, as strips of 8 x 4 pixels that overlap by half.
struct Strings {
  Tensor strips, labels, steps, lengths;  // (n, kSteps, kFeatures), (n, kMost), (n, 1), (n, 1)

  Strings(int n, const std::vector<float>& pixels, const std::vector<int>& digits, std::mt19937& random) {
    std::vector<float> drawn(std::size_t(n * kSteps * kFeatures));
    std::vector<int> said(std::size_t(n * kMost), -1), used, count;
    for (int i = 0; i < n; ++i) {
      float picture[8][kWidth] = {};
      const int many = 2 + int(random() % 3);
      int right = int(random() % 3);
      for (int k = 0; k < many; ++k, right += 8 + int(random() % 3)) {
        const std::size_t which = random() % digits.size();
        said[std::size_t(i * kMost + k)] = digits[which];
        for (int p = 0; p < 64; ++p) picture[p / 8][right + p % 8] = pixels[which * 64 + std::size_t(p)];
      }
      used.push_back(std::min(kSteps, right / kStride)), count.push_back(many);
      float* to = &drawn[std::size_t(i * kSteps * kFeatures)];
      for (int t = 0; t < kSteps; ++t)
        for (int p = 0; p < kFeatures; ++p) *to++ = picture[p / kStrip][t * kStride + p % kStrip];
    }
    strips = K::constant(drawn, "float32", {n, kSteps, kFeatures});
    labels = K::constant(said, "int32", {n, kMost});
    steps = K::constant(used, "int32", {n, 1}), lengths = K::constant(count, "int32", {n, 1});
  }
};

Tensors weights;
Tensor weight(int rows, int columns) {
  const double scale = std::sqrt(6.0 / (rows + columns));
  weights.push_back(
      K::random_uniform_variable({rows, columns}, -scale, scale, K::None, K::None, int(weights.size()) + 1));
  return weights[weights.size() - 1];
}
Tensor bias(int n) {
  weights.push_back(K::variable(K::zeros({n})));
  return weights[weights.size() - 1];
}

// A gated recurrent unit; the projection of all inputs is one product before the loop.
struct Gru {
  Tensor w = weight(kFeatures, 3 * kHidden), b = bias(3 * kHidden), u = weight(kHidden, 2 * kHidden),
         v = weight(kHidden, kHidden);

  Tensor operator()(const Tensor& x, bool backwards) const {
    auto step = [this](const Tensor& in, const Tensors& states) {
      const Tensor& h = states[0];
      Tensor gates = K::sigmoid(in(all, slice(0, 2 * kHidden)) + K::dot(h, u));
      Tensor update = gates(all, slice(0, kHidden)), reset = gates(all, slice(kHidden, 2 * kHidden));
      Tensor candidate = K::tanh(in(all, slice(2 * kHidden, 3 * kHidden)) + K::dot(reset * h, v));
      Tensor next = update * h + (1.0 - update) * candidate;
      return K::Step{next, {next}};
    };
    Tensor inputs = K::dot(x, w) + b, none = K::zeros_like(inputs(all, 0, slice(0, kHidden)));
    Tensor outputs = K::rnn(step, inputs, {none}, backwards).outputs;
    return backwards ? K::reverse(outputs, 1) : outputs;
  }
};
struct Reader {
  Gru there, back;
  Tensor w = weight(2 * kHidden, kClasses), b = bias(kClasses);
  Tensor operator()(const Tensor& x) const {
    return K::softmax(K::dot(K::concatenate({there(x, false), back(x, true)}), w) + b);
  }
};

// Adam (Kingma and Ba 2015), as updates for a function.
Tensors m, v;
Tensor adam_steps = K::variable(0);
Tensors adam(const Tensor& loss, double rate) {
  Tensors gradients = K::gradients(loss, weights), updates;
  Tensor t = adam_steps + 1.0, scaled = rate * K::sqrt(1.0 - K::pow(0.999, t)) / (1.0 - K::pow(0.9, t));
  for (int i = 0; i < weights.size(); ++i) {
    Tensor mt = 0.9 * m[i] + 0.1 * gradients[i], vt = 0.999 * v[i] + 0.001 * K::square(gradients[i]);
    updates.push_back(K::update(weights[i], weights[i] - scaled * mt / (K::sqrt(vt) + 1e-7)));
    updates.push_back(K::update(m[i], mt));
    updates.push_back(K::update(v[i], vt));
  }
  updates.push_back(K::update(adam_steps, t));
  return updates;
}

std::string text(const std::vector<int>& ids) {
  std::string s;
  for (int id : ids) s += id < 0 ? "" : std::to_string(id);
  return s;
}

int main() {
  std::mt19937 random(3);
  const Digits digits(random);
  const std::vector<float> pixels = digits.x.to_vector<float>();
  const std::vector<int> labels = digits.y.to_vector<int>();
  const Strings test(400, digits.x_test.to_vector<float>(), digits.y_test.to_vector<int>(),
                     random);  // of digits that are held out

  const Reader read;
  for (const Tensor& w : weights)
    m.push_back(K::variable(K::zeros(w.shape()))), v.push_back(K::variable(K::zeros(w.shape())));
  Tensor x = K::placeholder({K::None, K::None, kFeatures}), y = K::placeholder({K::None, kMost}, K::None, "int32");
  Tensor steps = K::placeholder({K::None, 1}, K::None, "int32"),
         lengths = K::placeholder({K::None, 1}, K::None, "int32");
  Tensor scores = read(x), loss = K::mean(K::ctc_batch_cost(y, scores, steps, lengths));
  kassette::Function train = K::symbolic([&] {
    return K::function({x, y, steps, lengths}, {loss}, adam(loss, 0.008));
  })();
  kassette::Function decode = K::function({x, steps}, {K::ctc_decode(scores, K::squeeze(steps, -1)).decoded[0]});

  double right = 0;
  for (int step = 0, batches = 700; step <= batches; ++step) {
    const Strings batch(32, pixels, labels, random);
    Tensor cost = train({batch.strips, batch.labels, batch.steps, batch.lengths})[0];
    if (step % 100 != 0) continue;
    Tensor said = decode({test.strips, test.steps})[0];
    right = 0;
    for (int i = 0; i < 400; ++i) {
      const std::string read_as = text(said[i].to_vector<int>()), truth = text(test.labels[i].to_vector<int>());
      right += read_as == truth;
      if (step == batches && i < 5) std::printf("%s read as %s\n", truth.c_str(), read_as.c_str());
    }
    std::printf("batch %4d: loss %7.4f, held-out strings read right %5.1f %%\n", step, cost.item<double>(), right / 4);
  }
  return right >= 360 ? 0 : 1;
}

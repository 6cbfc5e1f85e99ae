// benchmarks/ours/networks.h - the networks whose steps are timed, on the CPU and on a CUDA device: each with a batch
// for it.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "rows.h"

using Sizes = std::vector<int>;

/// Numbers between -0.5 and 0.5.
inline Tensor centred(const Sizes& shape) {
  int n = 1;
  for (int size : shape) n *= size;
  return K::reshape(uniform(n) - 0.6, shape);
}

inline Tensor weights(int m, int n) {
  return K::variable(K::reshape(K::constant(draw(m * n, std::normal_distribution<float>(0.f, 0.05f))), {m, n}));
}
inline Tensor zeros(int n) { return K::variable(std::vector<float>(static_cast<std::size_t>(n))); }

/// A multilayer perceptron of three widths, 64-128-10, and a batch for it.
struct Mlp {
  explicit Mlp(int batch = 32) : x(uniform(batch, 64)), labels(K::cast(uniform(batch) * 9.0, "int32")) {}
  Tensor w1 = weights(64, 128), b1 = zeros(128), w2 = weights(128, 10), b2 = zeros(10);
  Tensors parameters{w1, b1, w2, b2};
  Tensor x, labels;

  Tensor loss(const Tensor& input, const Tensor& truth) const {
    Tensor h = K::relu(K::dot(input, w1) + b1);
    return K::mean(K::sparse_categorical_crossentropy(truth, K::dot(h, w2) + b2, /*from_logits=*/true));
  }
  /// One step of plain gradient descent, eager.
  void step() const {
    Tensors g = K::gradients(loss(x, labels), parameters);
    for (std::int64_t i = 0; i < g.size(); ++i) K::update_sub(parameters[i], 0.01 * g[i]);
  }
  /// The same as a function of a batch of any size.
  kassette::Function function() const {
    Tensor input = K::placeholder({K::None, 64}), truth = K::placeholder({K::None}, K::None, "int32");
    Tensor value = loss(input, truth);
    Tensors g = K::gradients(value, parameters), updates;
    for (std::int64_t i = 0; i < g.size(); ++i) updates.push_back(K::update_sub(parameters[i], 0.01 * g[i]));
    return K::function({input, truth}, {value}, updates);
  }
};

/// Adam on one variable of n elements, all of it inside K::function.
struct Adam {
  explicit Adam(int n)
      : w(K::variable(uniform(n))), m(K::variable(K::zeros({n}))), v(K::variable(K::zeros({n}))), t(K::variable(0.0)) {}
  Tensor w, m, v, t;
  kassette::Function function() const {
    Tensor loss = K::sum(K::square(w)), g = K::gradients(loss, {w})[0];
    Tensor step = t + 1.0, rate = 1e-3 * K::sqrt(1.0 - K::pow(0.999, step)) / (1.0 - K::pow(0.9, step));
    Tensor m1 = 0.9 * m + 0.1 * g, v1 = 0.999 * v + 0.001 * K::square(g);
    return K::function({}, {loss}, {{t, step}, {m, m1}, {v, v1}, {w, w - rate * m1 / (K::sqrt(v1) + 1e-7)}});
  }
};

/// An LSTM as a user writes it with K::rnn: by default 50 times of 32 samples, 64 features to 128 units. The inputs are
/// put with time in front and projected before the loop, as Keras' layer does it.
struct Lstm {
  static constexpr int kUnits = 128;
  explicit Lstm(int batch = 32, int times = 50) : x(K::variable(uniform(batch, times, 64) - 0.6)) {}
  Tensor x, kernel = K::variable((uniform(64, 4 * kUnits) - 0.6) * 0.1);
  Tensor recurrent = K::variable((uniform(kUnits, 4 * kUnits) - 0.6) * 0.1), bias = K::variable(K::zeros({4 * kUnits}));

  Tensor outputs(const Tensor& in, const Tensor& mask = K::None) const {
    auto step = [&](const Tensor& projected, const Tensors& states) {
      Tensor z = projected + K::dot(states[0], recurrent);
      auto gate = [&](int k) { return z(kassette::all, kassette::slice(k * kUnits, (k + 1) * kUnits)); };
      Tensor cell = K::sigmoid(gate(1)) * states[1] + K::sigmoid(gate(0)) * K::tanh(gate(2));
      Tensor h = K::sigmoid(gate(3)) * K::tanh(cell);
      return K::Step{h, {h, cell}};
    };
    Tensor projected = K::dot(K::permute_dimensions(in, {1, 0, 2}), kernel) + bias,
           start = K::zeros_like(projected[0](kassette::all, kassette::slice(0, kUnits)));
    K::RnnOptions o;
    o.time_major = true;
    o.mask = mask;
    return K::permute_dimensions(K::rnn(step, projected, {start, start}, o).outputs, {1, 0, 2});
  }
  Tensors gradients(const Tensor& in) const { return K::gradients(K::sum(outputs(in)), {in, kernel, recurrent, bias}); }
};

/// Two convolutions with pooling and two dense layers, and a batch of pictures of 28 x 28 for them.
struct Cnn {
  explicit Cnn(int batch = 64) : x(uniform(batch, 28, 28, 1)), labels(integers(10, batch)) {}
  Tensors parameters = {normal({3, 3, 1, 32}), zeros(32),  normal({3, 3, 32, 64}), zeros(64),
                        normal({1600, 128}),   zeros(128), normal({128, 10}),      zeros(10)};
  Tensor x, labels;

  static Tensor normal(const Sizes& shape) { return K::variable(centred(shape) * 0.1); }
  Tensor loss(const Tensor& images, const Tensor& truth) const {
    const Tensors& p = parameters;
    auto pooled = [](const Tensor& h) { return K::pool2d(K::relu(h), {2, 2}, {2, 2}); };
    Tensor h = pooled(K::bias_add(K::conv2d(images, p[0]), p[1]));
    h = K::batch_flatten(pooled(K::bias_add(K::conv2d(h, p[2]), p[3])));
    h = K::relu(K::dot(h, p[4]) + p[5]);
    return K::mean(K::sparse_categorical_crossentropy(truth, K::dot(h, p[6]) + p[7], /*from_logits=*/true));
  }
  /// One step of plain gradient descent, eager.
  void step() const {
    Tensors g = K::gradients(loss(x, labels), parameters);
    for (std::int64_t i = 0; i < g.size(); ++i) K::update_sub(parameters[i], 0.01 * g[i]);
  }
  /// The same as a function.
  kassette::Function function() const {
    return K::symbolic([&] {
      Tensor images = K::placeholder({K::None, 28, 28, 1}), truth = K::placeholder({K::None}, K::None, "int32");
      Tensor value = loss(images, truth);
      Tensors g = K::gradients(value, parameters), updates;
      for (std::int64_t i = 0; i < g.size(); ++i) updates.push_back(K::update_sub(parameters[i], 0.01 * g[i]));
      return K::function({images, truth}, {value}, updates);
    })();
  }
};

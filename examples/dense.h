// examples/dense.h - what several of the examples begin with: dense layers and the Adam optimiser, written with K
// alone.
#pragma once
#include <kassette/backend.h>

#include <cmath>

/// A fully connected layer: (..., from) to (..., to).
struct Dense {
  kassette::Tensor kernel, bias;
  Dense(int from, int to) {
    const double most = std::sqrt(6.0 / (from + to));  // Glorot and Bengio 2010
    kernel = kassette::backend::random_uniform_variable({from, to}, -most, most);
    bias = kassette::backend::zeros({to});
  }
  kassette::Tensor operator()(const kassette::Tensor& x) const { return kassette::backend::dot(x, kernel) + bias; }
};

/// The weights of layers, for K::gradients.
inline kassette::Tensors weights_of(std::initializer_list<Dense> layers) {
  kassette::Tensors weights;
  for (const Dense& layer : layers) weights.push_back(layer.kernel), weights.push_back(layer.bias);
  return weights;
}

/// Kingma and Ba 2015, as updates for a function; `rate` may be a variable.
inline kassette::Tensors adam(const kassette::Tensor& loss, const kassette::Tensors& weights,
                              const kassette::Operand& rate = 0.001, double b1 = 0.9, double b2 = 0.999) {
  namespace K = kassette::backend;
  using kassette::Tensor;
  kassette::Tensors gradients = K::gradients(loss, weights), updates;
  Tensor steps = K::variable(0), t = steps + 1, scale = rate * K::sqrt(1 - K::pow(b2, t)) / (1 - K::pow(b1, t));
  updates.push_back(K::update(steps, t));
  for (int i = 0; i < weights.size(); ++i) {
    const Tensor &w = weights[i], &g = gradients[i];
    Tensor m = K::zeros(w.shape()), v = K::zeros(w.shape()), m1 = b1 * m + (1 - b1) * g,
           v1 = b2 * v + (1 - b2) * K::square(g);
    for (const Tensor& u : {K::update(m, m1), K::update(v, v1), K::update(w, w - scale * m1 / (K::sqrt(v1) + 1e-7))})
      updates.push_back(u);
  }
  return updates;
}

// tests/autograd/function/function_overhead_test.cpp - a training step of five small models, eagerly and as a function
// over a batch of any size: both give the same parameters, and the function takes no more instructions, as counted
// between marks by tests/scripts/function_overhead.sh.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <kassette/backend.h>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Shape;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::values;

/// Callgrind writes its counts and resets them before each call of this.
extern "C" void kassette_overhead_mark();

namespace {

/// Inputs, whose first axis is the batch.
struct Model {
  const char* name;
  std::vector<Shape> weights, inputs;
  Tensor (*loss)(const Tensors& w, const Tensors& in);
};

Tensor perceptron(const Tensors& w, const Tensors& in) {
  Tensor h = K::relu(K::dot(in[0], w[0]) + w[1]);
  return K::mean(K::categorical_crossentropy(K::softmax(in[1]), K::dot(h, w[2]) + w[3], /*from_logits=*/true));
}

Tensor lstm_step(const Tensors& w, const Tensors& in) {
  Tensor z = K::dot(in[0], w[0]) + K::dot(in[1], w[1]) + w[2];
  auto gate = [&](int k) { return z(kassette::all, kassette::slice(16 * k, 16 * (k + 1))); };
  Tensor cell = K::sigmoid(gate(1)) * in[2] + K::sigmoid(gate(0)) * K::tanh(gate(2));
  return K::sum(K::square(K::sigmoid(gate(3)) * K::tanh(cell)));
}

Tensor regression(const Tensors& w, const Tensors& in) {
  return K::mean(K::categorical_crossentropy(K::softmax(in[1]), K::dot(in[0], w[0]) + w[1], /*from_logits=*/true));
}

Tensor convolution(const Tensors& w, const Tensors& in) {
  Tensor h = K::relu(K::bias_add(K::conv2d(in[0], w[0]), w[1]));
  return K::mean(K::square(K::dot(K::batch_flatten(K::pool2d(h, {2, 2}, {2, 2})), w[2]) + w[3] - in[1]));
}

const std::vector<Model> kModels{
    {"perceptron of 64, 128 and 10, batch of 32",
     {{64, 128}, {128}, {128, 10}, {10}},
     {{32, 64}, {32, 10}},
     perceptron},
    {"perceptron of 3, 4 and 2, batch of 2", {{3, 4}, {4}, {4, 2}, {2}}, {{2, 3}, {2, 2}}, perceptron},
    {"step of an LSTM of 16 units, batch of 8", {{8, 64}, {16, 64}, {64}}, {{8, 8}, {8, 16}, {8, 16}}, lstm_step},
    {"softmax regression of 20 and 5, batch of 16", {{20, 5}, {5}}, {{16, 20}, {16, 5}}, regression},
    {"convolution of 8 x 8 images, batch of 4", {{3, 3, 1, 4}, {4}, {36, 3}, {3}}, {{4, 8, 8, 1}, {4, 3}}, convolution},
};

Tensor waves(const Shape& shape, double start) {
  return K::reshape(K::sin(K::arange(start, start + static_cast<double>(shape.numel())) * 0.7), shape);
}

/// Parameters, a batch, and a step with each.
struct Training {
  explicit Training(const Model& of) : model(of) {
    for (const Shape& s : model.weights)
      parameters.push_back(K::variable(waves(s, 1.0 + static_cast<double>(parameters.size())) * 0.3));
    for (const Shape& s : model.inputs) batch.push_back(K::eval(waves(s, 5.0)));
  }
  Tensors updates(const Tensor& loss) const {
    Tensors g = K::gradients(loss, parameters), done;
    for (std::int64_t i = 0; i < g.size(); ++i) done.push_back(K::update_sub(parameters[i], 0.01 * g[i]));
    return done;
  }
  void step() const { updates(model.loss(parameters, batch)); }
  kassette::Function function() const {
    Tensors inputs;
    for (const Shape& s : model.inputs) {
      std::vector<std::int64_t> any = s;
      any[0] = -1;
      inputs.push_back(K::placeholder(Shape(any.data(), s.rank())));
    }
    Tensor loss = model.loss(parameters, inputs);
    return K::function(inputs, {loss}, updates(loss));
  }

  const Model& model;
  Tensors parameters, batch;
};

template <class F>
void count(const F& step) {
  kassette_overhead_mark();
  for (int k = 0; k < 10; ++k) step();
  kassette_overhead_mark();
}

}  // namespace

TEST_CASE("training steps of small models are those of functions over a batch of any size", "[function]") {
  for (const Model& m : kModels) {
    INFO(m.name);
    Training eager(m), played(m);
    kassette::Function f = played.function();
    for (int k = 0; k < 5; ++k) {
      eager.step();
      f(played.batch);
    }
    for (std::int64_t i = 0; i < eager.parameters.size(); ++i)
      CHECK(values<float>(eager.parameters[i]) == values<float>(played.parameters[i]));
  }
}

TEST_CASE("small models between marks, ten steps eagerly, ten by a function", "[.function_overhead]") {
  for (const Model& m : kModels) {
    Training eager(m), played(m);
    kassette::Function f = played.function();
    for (int warm = 0; warm < 4; ++warm) {
      eager.step();
      f(played.batch);
    }
    count([&] { eager.step(); });
    count([&] { f(played.batch); });
    std::printf("model %s\n", m.name);
  }
}

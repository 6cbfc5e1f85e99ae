// tests/nn_backend/rnn/rnn_torture_test.cpp - everything that the tape can record at once, around a masked rnn over an
// unknown number of times.
#include "tests/torture.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::f64;
using kassette::test::numbers;

namespace {

/// Dropout in the step on the elements, a switch on their mean, a captured variable, a mask that ends the samples.
Tensor forward(const Tensor& xs, const Tensor& w, bool drop) {
  Tensor start = K::sum(xs, 1) * 0.0;  // (batch, 2), whatever the batch
  K::RnnOptions o;
  o.mask = xs(kassette::all, kassette::all, 0) > -0.2;
  auto step = [&](const Tensor& e, const Tensors& h) {
    Tensor in = drop ? K::in_train_phase([&] { return K::dropout(e, 0.5); }, [&] { return e; }) : e;
    Tensor next = K::tanh(K::dot(in + h[0], w));
    Tensor y = K::switch_(
        K::mean(e) > 0.0, [&] { return next * w[0][0] + h[0] * 0.1; }, [&] { return next - K::square(h[0]); });
    return K::Step{y * 2.0, {y}};
  };
  auto [last, outputs, states] = K::rnn(step, xs, {start}, o);
  return K::mean(K::square(states[0])) + K::mean(K::square(last + K::sum(outputs, 1))) * 0.1 +
         K::sum(K::square(w)) * 0.01;
}
Tensor batch(int time, int rows, std::uint64_t seed) {
  return f64(numbers(static_cast<std::size_t>(time * rows * 2), seed), {rows, time, 2});
}

}  // namespace

TEST_CASE(
    "torture: masked rnn over unknown time, dropout, switch, captured variable, Adam, a metric, the learning phase, two threads",
    "[rnn]") {
  kassette::test::torture(forward, batch);
}

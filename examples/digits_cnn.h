// examples/digits_cnn.h - a small convolutional network that reads digits: what cnn.cpp, grad_cam.cpp and
// deep_dream.cpp share.
#pragma once
#include "dense.h"
#include "digits.h"

/// A 3 x 3 convolution with a bias and ReLU: (batch, rows, columns, from) to (batch, rows, columns, to).
struct Convolution {
  kassette::Tensor kernel, bias;
  Convolution(int from, int to) {
    const double most = std::sqrt(6.0 / (9 * (from + to)));  // Glorot and Bengio 2010
    kernel = kassette::backend::random_uniform_variable({3, 3, from, to}, -most, most);
    bias = kassette::backend::zeros({to});
  }
  kassette::Tensor operator()(const kassette::Tensor& x) const {
    namespace K = kassette::backend;
    return K::relu(K::bias_add(K::conv2d(x, kernel, {1, 1}, "same"), bias));
  }
};

/// Images (n, 8, 8, 1); 32 maps of strokes; at half the size, 64 maps of shapes; ten scores.
struct DigitsCnn {
  Convolution strokes{1, 32}, shapes{32, 64};
  Dense scores{4 * 4 * 64, 10};
  kassette::Tensors weights = {strokes.kernel, strokes.bias, shapes.kernel, shapes.bias, scores.kernel, scores.bias};

  /// Of images of any size: (n, rows / 2, columns / 2, 64).
  kassette::Tensor features(const kassette::Tensor& images) const {
    return shapes(kassette::backend::pool2d(strokes(images), {2, 2}, {2, 2}));
  }
  kassette::Tensor classify(const kassette::Tensor& features) const {
    namespace K = kassette::backend;
    kassette::Tensor flat = K::batch_flatten(features);
    return scores(K::in_train_phase([&] { return K::dropout(flat, 0.5); }, flat));
  }
  kassette::Tensor operator()(const kassette::Tensor& images) const { return classify(features(images)); }
};

/// Pixels (n, 64) as images.
inline kassette::Tensor images(const kassette::Tensor& pixels) {
  return kassette::backend::reshape(pixels, {-1, 8, 8, 1});
}

/// The share of digits that are read right.
template <class Network>
double accuracy(const Network& net, const kassette::Tensor& x, const kassette::Tensor& labels) {
  namespace K = kassette::backend;
  auto scope = K::no_gradient();
  const kassette::Tensor said = K::argmax(net(x));
  return K::mean(K::equal(said, K::cast(labels, "int64"))).item<double>();
}

/// Images up to a pixel higher or lower, further left or right.
inline kassette::Tensor shifted(const kassette::Tensor& x, std::mt19937& random) {
  const int row = int(random() % 3), column = int(random() % 3);
  const kassette::Tensor padded = kassette::backend::spatial_2d_padding(x);
  return padded(kassette::all, kassette::slice(row, row + 8), kassette::slice(column, column + 8));
}

/// Trains on batches(images, random), by Adam at a rate that falls to nothing; each(epoch, loss) is told how it goes.
template <class Network, class Batches, class Each>
void train(const Network& net, const Digits& digits, int epochs, std::mt19937& random, Batches batches, Each each) {
  namespace K = kassette::backend;
  using kassette::Tensor;
  const Tensor rate = K::variable(0), x = images(digits.x);
  const kassette::Function step = K::symbolic([&] {
    Tensor in = K::placeholder({K::None, K::None, K::None, 1}), y = K::placeholder({K::None}, K::None, "int32");
    Tensor loss = K::mean(K::sparse_categorical_crossentropy(y, net(in), /*from_logits=*/true));
    return K::function({in, y, K::learning_phase()}, {loss}, adam(loss, net.weights, rate));
  })();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    K::set_value(rate, 0.004 * (epochs + 1 - epoch) / epochs);
    const Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    double total = 0;
    for (int at = 0; at + 32 <= Digits::train; at += 32) {
      const Tensor batch = rows[kassette::slice(at, at + 32)];
      const Tensor loss = step({batches(K::gather(x, batch), random), K::gather(digits.y, batch), 1})[0];
      total += loss.item<double>();
    }
    each(epoch, 32 * total / Digits::train);
  }
}

/// n pictures (n, h, w) as one, `columns` of them side by side and a pixel of margin around each, every pixel `zoom`
/// pixels wide.
inline kassette::Tensor mosaic(const kassette::Tensor& pictures, int columns, int zoom = 8) {
  namespace K = kassette::backend;
  const kassette::Tensor padded = K::spatial_2d_padding(K::expand_dims(pictures));
  const int h = int(padded.shape()[1]), w = int(padded.shape()[2]), rows = int(padded.shape()[0]) / columns;
  const kassette::Tensor grid = K::permute_dimensions(K::reshape(padded, {rows, columns, h, w}), {0, 2, 1, 3});
  return K::repeat_elements(K::repeat_elements(K::reshape(grid, {rows * h, columns * w}), zoom, 0), zoom, 1);
}

// examples/yolo.cpp - the loss of YOLOv3 (Redmon and Farhadi 2018) with K: boxes predicted on a grid of cells, each
// with two anchors. A small dense network learns to find rectangles and rings, and to tell them apart.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "dense.h"

namespace K = kassette::backend;
using kassette::ellipsis;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kCells = 4, kAnchors = 2, kClasses = 2, kPer = 5 + kClasses, kSide = 16,
              kTold = kCells * kCells * kAnchors * kPer;
const double anchors[kAnchors][2] = {{0.25, 0.25}, {0.45, 0.45}};  // width and height, of a picture that is 1 wide

// What is told, (n, cells, cells, anchors, 5 + classes): x, y, log width, log height, objectness and classes, as
// logits. The boxes it stands for: centres and sizes.
struct Boxes {
  Tensor centre, size;
  explicit Boxes(const Tensor& told) {
    Tensor across = K::reshape(K::arange(0, kCells, 1, "float32"), {1, 1, kCells, 1, 1}),
           down = K::reshape(across, {1, kCells, 1, 1, 1});
    Tensor grid = K::concatenate({K::tile(across, {1, kCells, 1, 1, 1}), K::tile(down, {1, 1, kCells, 1, 1})});
    Tensor of_anchors = K::constant({{anchors[0][0], anchors[0][1]}, {anchors[1][0], anchors[1][1]}});
    centre = (K::sigmoid(told(ellipsis, slice(0, 2))) + grid) / kCells;
    size = K::exp(told(ellipsis, slice(2, 4))) * of_anchors;
  }
};

// Intersection over union of boxes that broadcast.
Tensor iou(const Tensor& centre, const Tensor& size, const Tensor& other_centre, const Tensor& other_size) {
  Tensor low = K::maximum(centre - 0.5 * size, other_centre - 0.5 * other_size);
  Tensor high = K::minimum(centre + 0.5 * size, other_centre + 0.5 * other_size);
  Tensor common = K::prod(K::maximum(high - low, 0), -1), area = K::prod(size, -1), other = K::prod(other_size, -1);
  return common / (area + other - common + K::epsilon());
}

// truth as told, but with centres and sizes of the picture, 0 or 1 for objectness and one-hot classes.
Tensor yolo_loss(const Tensor& truth, const Tensor& told, double ignore = 0.5) {
  Tensor mask = truth(ellipsis, slice(4, 5)), centre = truth(ellipsis, slice(0, 2)),
         size = truth(ellipsis, slice(2, 4));
  const Boxes boxes(told);
  Tensor of_anchors = K::constant({{anchors[0][0], anchors[0][1]}, {anchors[1][0], anchors[1][1]}});
  // Where there is nothing, log(0) must reach neither the loss nor a gradient.
  Tensor raw_centre = centre * kCells - K::cast(K::cast(centre * kCells, "int32"), "float32");
  Tensor raw_size = K::log(K::switch_(mask > 0, size / of_anchors, 1 + 0.0 * size));
  Tensor scale = mask * (2 - K::prod(size, -1, /*keepdims=*/true));  // small boxes count more

  // A box that is not asked for but lies well on some object is not held to be wrong. One picture at a time.
  Tensor best = K::map_fn(
      [&](const Tensors& one) {
        const Tensor& found = one[0];  // (cells, cells, anchors, 4), and (cells, cells, anchors, 5) of what is there
        Tensor there = K::reshape(one[1], {1, 1, 1, kCells * kCells * kAnchors, 5}), each = K::expand_dims(found, -2);
        Tensor overlaps = iou(each(ellipsis, slice(0, 2)), each(ellipsis, slice(2, 4)), there(ellipsis, slice(0, 2)),
                              there(ellipsis, slice(2, 4)));
        return K::max(overlaps * there(ellipsis, 4), -1);
      },
      {K::concatenate({boxes.centre, boxes.size}), truth(ellipsis, slice(0, 5))}, K::None, "float32");
  Tensor counted = K::stop_gradient(K::cast(K::expand_dims(best, -1) < ignore, "float32"));

  Tensor told_mask = told(ellipsis, slice(4, 5)), crossed = K::binary_crossentropy(mask, told_mask, true);
  Tensor total = K::sum(scale * K::binary_crossentropy(raw_centre, told(ellipsis, slice(0, 2)), true)) +
                 K::sum(0.5 * scale * K::square(raw_size - told(ellipsis, slice(2, 4)))) +
                 K::sum(mask * crossed + (1 - mask) * counted * crossed) +
                 K::sum(mask * K::binary_crossentropy(truth(ellipsis, slice(5)), told(ellipsis, slice(5)), true));
  return total / K::cast(K::shape(truth)[0], "float32");
}

// The same, number by number.
double yolo_by_hand(const std::vector<double>& truth, const std::vector<double>& told, std::size_t pictures) {
  auto cross = [](double y, double z) { return std::fmax(z, 0) - z * y + std::log1p(std::exp(-std::fabs(z))); };
  auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  double total = 0;
  const std::size_t boxes = kCells * kCells * kAnchors;
  for (std::size_t b = 0; b < pictures * boxes; ++b) {
    const double *y = &truth[b * kPer], *z = &told[b * kPer], *anchor = anchors[b % kAnchors];
    const double cx = (sigmoid(z[0]) + double(b / kAnchors % kCells)) / kCells,
                 cy = (sigmoid(z[1]) + double(b / kAnchors / kCells % kCells)) / kCells;
    const double w = std::exp(z[2]) * anchor[0], h = std::exp(z[3]) * anchor[1];
    double best = 0;
    for (std::size_t o = b / boxes * boxes; o < (b / boxes + 1) * boxes; ++o) {
      const double* t = &truth[o * kPer];
      if (t[4] == 0) continue;
      const double across = std::fmin(cx + w / 2, t[0] + t[2] / 2) - std::fmax(cx - w / 2, t[0] - t[2] / 2);
      const double down = std::fmin(cy + h / 2, t[1] + t[3] / 2) - std::fmax(cy - h / 2, t[1] - t[3] / 2);
      const double common = std::fmax(across, 0) * std::fmax(down, 0);
      best = std::fmax(best, common / (w * h + t[2] * t[3] - common));
    }
    if (y[4] == 1) {
      const double scale = 2 - y[2] * y[3];
      for (int i : {0, 1})
        total += scale * (cross(y[i] * kCells - std::floor(y[i] * kCells), z[i]) +
                          0.5 * std::pow(std::log(y[2 + i] / anchor[i]) - z[2 + i], 2));
      for (int i = 5; i < kPer; ++i) total += cross(y[i], z[i]);
    }
    if (y[4] == 1 || best < 0.5) total += cross(y[4], z[4]);
  }
  return total / double(pictures);
}

// n pictures with a rectangle or a ring each, (n, side * side), and the truth of them.
struct Pictures {
  Tensor x, truth;
  Pictures(int n, std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<double> ink, told(std::size_t(n) * kTold);
    for (int i = 0; i < n; ++i) {
      const int kind = int(random() % 2);
      const double w = 0.2 + 0.35 * uniform(random), h = kind ? w : 0.2 + 0.35 * uniform(random);
      const double cx = w / 2 + (1 - w) * uniform(random), cy = h / 2 + (1 - h) * uniform(random);
      for (int at = 0; at < kSide * kSide; ++at) {
        const double dx = std::fabs((at % kSide + 0.5) / kSide - cx) / (w / 2),
                     dy = std::fabs((at / kSide + 0.5) / kSide - cy) / (h / 2);
        ink.push_back((kind ? dx * dx + dy * dy < 1 && dx * dx + dy * dy > 0.3 : dx < 1 && dy < 1) +
                      0.1 * uniform(random));
      }
      const int anchor = w * h > 0.12, cell = int(cy * kCells) * kCells + int(cx * kCells);
      double* y = &told[std::size_t(((i * kCells * kCells) + cell) * kAnchors + anchor) * kPer];
      y[0] = cx, y[1] = cy, y[2] = w, y[3] = h, y[4] = 1, y[5 + kind] = 1;
    }
    x = K::constant(ink, "float32", {n, kSide * kSide});
    truth = K::constant(told, "float32", {n, kCells, kCells, kAnchors, kPer});
  }
};

int main() {
  std::mt19937 random(1);
  K::set_random_seed(1);
  const Pictures train(2000, random), test(200, random);
  const Dense hidden(kSide * kSide, 128), second(128, 128), out(128, kTold);
  auto tell = [&](const Tensor& x) {
    return K::reshape(out(K::relu(second(K::relu(hidden(x))))), {-1, kCells, kCells, kAnchors, kPer});
  };
  kassette::Function step = K::symbolic([&] {
    Tensor x = K::placeholder({K::None, kSide * kSide}),
           truth = K::placeholder({K::None, kCells, kCells, kAnchors, kPer}), loss = yolo_loss(truth, tell(x));
    return K::function({x, truth}, {loss}, adam(loss, weights_of({hidden, second, out}), 0.002));
  })();
  for (int i = 0; i < 1000; ++i) {
    const int at = 32 * i % 1984;
    const double loss = step({train.x[slice(at, at + 32)], train.truth[slice(at, at + 32)]})[0].item<double>();
    if (i % 250 == 249) std::printf("step %4d: loss %.3f\n", i + 1, loss);
  }

  // The surest box of each picture against the one that is there.
  const Tensor told = K::eval(tell(test.x));
  const Boxes boxes(told);
  auto flat = [](const Tensor& x, int last) { return K::reshape(x, {200, kCells * kCells * kAnchors, last}); };
  Tensor surest = K::one_hot(K::argmax(flat(told(ellipsis, slice(4, 5)), 1), 1), kCells * kCells * kAnchors);
  Tensor pick = K::permute_dimensions(surest, {0, 2, 1}), there = flat(test.truth(ellipsis, slice(4, 5)), 1);
  auto chosen = [&](const Tensor& mask, const Tensor& x, int n) { return K::sum(mask * flat(x, n), 1); };
  Tensor overlap =
      iou(chosen(pick, boxes.centre, 2), chosen(pick, boxes.size, 2),
          chosen(there, test.truth(ellipsis, slice(0, 2)), 2), chosen(there, test.truth(ellipsis, slice(2, 4)), 2));
  Tensor kind = K::argmax(chosen(pick, told(ellipsis, slice(5)), kClasses)),
         true_kind = K::argmax(chosen(there, test.truth(ellipsis, slice(5)), kClasses));
  const double mean = K::mean(overlap).item<double>(), right = K::mean(K::equal(kind, true_kind)).item<double>();
  std::printf("held out: boxes overlap by %.3f on average, %.1f %% of shapes are told right\n", mean, 100 * right);

  const double by_k = yolo_loss(test.truth, told).item<double>(),
               by_hand = yolo_by_hand(test.truth.to_vector<double>(), told.to_vector<double>(), 200);
  std::printf("loss %.5f, number by number %.5f\n", by_k, by_hand);
  return mean > 0.5 && right > 0.8 && std::fabs(by_k - by_hand) < 1e-3 * by_hand ? 0 : 1;
}

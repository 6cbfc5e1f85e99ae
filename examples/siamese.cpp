// examples/siamese.cpp - whether two handwritten digits are the same one: two towers with shared weights and the
// contrastive loss (Hadsell, Chopra and LeCun 2006). The learned distance also separates digits that the network has
// never seen.
#include <cstdio>
#include <vector>

#include "dense.h"
#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

struct Tower {
  Dense first{64, 128}, second{128, 16};
  Tensors weights = weights_of({first, second});
  Tensor operator()(const Tensor& x) const { return second(K::relu(first(x))); }
};

// The root has no gradient at 0, so that of a digit's distance from itself is cut off below epsilon.
Tensor euclidean_distance(const Tensor& u, const Tensor& v) {
  return K::sqrt(K::maximum(K::sum(K::square(u - v), -1), K::epsilon()));
}

// Pulls pairs of the same digit together, and pushes others apart until they are `margin` away.
Tensor contrastive_loss(const Tensor& same, const Tensor& distance, double margin = 1) {
  return K::mean(same * K::square(distance) + (1 - same) * K::square(K::maximum(margin - distance, 0)));
}

Tensor accuracy(const Tensor& same, const Tensor& distance) {
  return K::mean(K::equal(same, K::cast(distance < 0.5, K::dtype(same))));
}

// Rows of digits, two by two: each with another one of its kind, and each with one of another kind.
struct Pairs {
  Tensor left, right, same;
  Pairs(const Tensor& x, const std::vector<int>& labels, const std::vector<int>& rows, std::mt19937& random) {
    std::vector<std::vector<int>> of(10);
    for (int row : rows) of[std::size_t(labels[std::size_t(row)])].push_back(row);
    std::vector<int> kinds, a, b, is_same;
    for (int k = 0; k < 10; ++k)
      if (!of[std::size_t(k)].empty()) kinds.push_back(k);
    for (int row : rows)
      for (int equal : {1, 0}) {
        int kind = labels[std::size_t(row)];
        while (!equal && kind == labels[std::size_t(row)]) kind = kinds[random() % kinds.size()];
        const std::vector<int>& others = of[std::size_t(kind)];
        a.push_back(row), b.push_back(others[random() % others.size()]), is_same.push_back(equal);
      }
    left = K::gather(x, K::constant(a, "int32")), right = K::gather(x, K::constant(b, "int32")),
    same = K::constant(is_same);
  }
};

double worst(const Tensor& x) { return K::max(K::abs(x)).item<double>(); }

int main() {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const std::vector<int> labels = digits.y.to_vector<int>();
  std::vector<int> learn, held_out, unseen;  // rows: 0 to 7 to learn from and held out, 8 and 9 unseen
  for (int i = 0; i < int(labels.size()); ++i)
    (labels[std::size_t(i)] >= 8 ? unseen : i < Digits::train ? learn : held_out).push_back(i);

  const Tower tower;
  kassette::Function train, test;
  K::symbolic([&] {
    Tensor left = K::placeholder({K::None, 64}), right = K::placeholder({K::None, 64}),
           same = K::placeholder({K::None});
    Tensor distance = euclidean_distance(tower(left), tower(right)), loss = contrastive_loss(same, distance);
    train = K::function({left, right, same}, {loss}, adam(loss, tower.weights, 0.002));
    test = K::function({left, right, same}, {accuracy(same, distance)});
  })();
  for (int epoch = 1; epoch <= 20; ++epoch) {
    std::shuffle(learn.begin(), learn.end(), random);
    const Pairs pairs(digits.x, labels, learn, random);
    double total = 0;
    int batches = 0;
    for (int at = 0; at + 64 <= int(2 * learn.size()); at += 64, ++batches) {
      const auto batch = slice(at, at + 64);
      total += train({pairs.left[batch], pairs.right[batch], pairs.same[batch]})[0].item<double>();
    }
    if (epoch % 5 == 0) std::printf("epoch %2d: loss %.4f\n", epoch, total / batches);
  }
  auto right_in = [&](const std::vector<int>& rows) {
    const Pairs pairs(digits.x, labels, rows, random);
    return test({pairs.left, pairs.right, pairs.same})[0].item<double>();
  };
  const double known = right_in(held_out), new_kinds = right_in(unseen);
  std::printf("held-out pairs of 0 to 7: %.2f %% right; of 8 and 9, which it never saw: %.2f %%\n", 100 * known,
              100 * new_kinds);

  // One example each of 8 and 9, and all others go by the nearer one.
  Tensor seen = tower(K::gather(digits.x, K::constant(unseen, "int32"))),
         kinds = K::gather(digits.y, K::constant(unseen, "int32"));
  int eight = 0, nine = 0;
  while (labels[std::size_t(unseen[std::size_t(eight)])] != 8) ++eight;
  while (labels[std::size_t(unseen[std::size_t(nine)])] != 9) ++nine;
  Tensor nearer_nine = euclidean_distance(seen, seen[nine]) < euclidean_distance(seen, seen[eight]);
  const double one_shot = K::mean(K::equal(K::cast(nearer_nine, "int32") + 8, kinds)).item<double>();
  std::printf("8 or 9, by one example of each: %.2f %% right\n", 100 * one_shot);

  // The gradient in shared weights is the sum of those of two towers that happen to be equal.
  const Tower twin;
  for (int i = 0; i < twin.weights.size(); ++i) K::set_value(twin.weights[i], tower.weights[i]);
  const Pairs few(digits.x, labels, {held_out.begin(), held_out.begin() + 100}, random);
  Tensors shared =
      K::gradients(contrastive_loss(few.same, euclidean_distance(tower(few.left), tower(few.right))), tower.weights);
  Tensor apart = contrastive_loss(few.same, euclidean_distance(tower(few.left), twin(few.right)));
  Tensors one = K::gradients(apart, tower.weights), other = K::gradients(apart, twin.weights);
  double off = 0;
  for (int i = 0; i < shared.size(); ++i) off = std::fmax(off, worst(shared[i] - one[i] - other[i]) / worst(shared[i]));
  // And a digit beside itself moves nothing.
  Tensor x = few.left, self = K::mean(euclidean_distance(tower(x), tower(x)));
  const double beside_itself = worst(K::gradients(self, {tower.first.kernel})[0]);
  std::printf("shared weights against two copies: off by %.1e; gradient of a digit beside itself: %g\n", off,
              beside_itself);
  return known > 0.95 && new_kinds > 0.5 && one_shot > 0.7 && off < 1e-4 && beside_itself == 0 ? 0 : 1;
}

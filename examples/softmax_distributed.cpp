// examples/softmax_distributed.cpp - a softmax over 200,000 classes whose weight is spread over the ranks, each of
// which has the rows of some classes and never sees the others':
//
//   ./kassette run --ranks 4 examples/softmax_distributed.cpp
//
// The ranks exchange a maximum, a sum and the score of the right class for each example, whatever the number of
// classes.
#include <kassette/backend.h>
#include <kassette/distributed.h>

#include <cmath>
#include <cstdio>

namespace D = kassette::distributed;
namespace K = kassette::backend;
using kassette::Tensor;

constexpr int kFeatures = 32, kBatch = 64;

/// The mean cross-entropy of x (batch, features) against labels (batch,), where this rank has the weights (classes,
/// features) of the classes from `first` on. All ranks get the same number.
Tensor sharded_loss(const Tensor& x, const Tensor& labels, const Tensor& weights, int first) {
  const Tensor logits = K::dot(x, K::transpose(weights));
  const Tensor highest = K::stop_gradient(D::all_reduce(K::max(logits, 1, true), D::max));
  const Tensor sum = D::all_reduce(K::sum(K::exp(logits - highest), 1));
  // one_hot is zeros for a label that is another rank's.
  const Tensor mine = K::cast(K::one_hot(labels - first, int(std::int64_t(weights.shape()[0]))), "float32");
  const Tensor right = D::all_reduce(K::sum(mine * (logits - highest), 1));
  return K::mean(K::log(sum) - right);
}

/// Which classes are this rank's, of n: from `first` on, `count` of them.
struct Part {
  int first, count;
  explicit Part(int n) {
    const Tensor mine = D::shard(K::arange(n));
    count = int(std::int64_t(mine.shape()[0]));
    first = count ? mine[0].item<int>() : 0;
  }
};

/// The same as without ranks: the loss, and the gradient by this rank's weights.
bool agrees_with_dense() {
  constexpr int kClasses = 1001;
  const Part part(kClasses);
  K::set_random_seed(1);  // the same on all ranks
  const Tensor x = K::random_normal({kBatch, kFeatures}), labels = K::random_uniform({kBatch}, 0, kClasses, "int32");
  const Tensor every = K::variable(K::random_normal({kClasses, kFeatures}));
  const Tensor weights = K::variable(D::shard(every));
  const Tensor dense = K::mean(K::sparse_categorical_crossentropy(labels, K::dot(x, K::transpose(every)), true));
  const Tensor sharded = sharded_loss(x, labels, weights, part.first);
  // Every rank has the whole loss, and what is differentiated is the sum of theirs.
  const Tensor g = K::gradients(sharded / double(D::World().size()), {weights})[0],
               expected = D::shard(K::gradients(dense, {every})[0]);
  return std::abs(sharded.item<double>() - dense.item<double>()) < 1e-4 &&
         K::max(K::abs(g - expected)).item<double>() < 1e-5;
}

int main() {
  const D::World world = D::init();
  if (!agrees_with_dense()) return std::puts("the sharded softmax is not the dense one"), 1;

  constexpr int kClasses = 200000, kSteps = 12;
  const Part part(kClasses);
  K::set_random_seed(2);
  const Tensor x = K::random_normal({kBatch, kFeatures}), labels = K::random_uniform({kBatch}, 0, kClasses, "int32");
  const Tensor weights = K::zeros({part.count, kFeatures});
  double before = 0, after = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor loss = sharded_loss(x, labels, weights, part.first);
    K::update_sub(weights, 20.0 * K::gradients(loss / double(world.size()), {weights})[0]);
    (step ? after : before) = loss.item<double>();
  }
  if (world.rank() == 0)
    std::printf("%d rank%s: %d of %d classes here; loss %.3f, after %d steps %.3f\n", world.size(),
                world.size() == 1 ? "" : "s", part.count, kClasses, before, kSteps - 1, after);
  return std::abs(before - std::log(double(kClasses))) < 1e-3 && after < 1 ? 0 : 1;
}

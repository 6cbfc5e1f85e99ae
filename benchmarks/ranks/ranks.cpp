// benchmarks/ranks/ranks.cpp - several ranks: what a collective costs beside MPI alone, and how fast data-parallel
// training goes. run.sh beside this file starts it; rank 0 prints a line for each row: name, number, unit.
#include <kassette/backend.h>
#include <kassette/distributed.h>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace D = kassette::distributed;
namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The median of the seconds that f takes, begun by all ranks together.
template <class F>
double median(int times, F f) {
  std::vector<double> t;
  for (int i = 0; i < times; ++i) {
    D::World().barrier();
    const double begin = now();
    f();
    t.push_back(now() - begin);
  }
  std::nth_element(t.begin(), t.begin() + times / 2, t.end());
  return t[static_cast<std::size_t>(times / 2)];
}

void print(const std::string& row, double value, const char* unit) {
  if (D::World().rank() == 0) std::printf("%s\t%.4g\t%s\n", row.c_str(), value, unit);
}

void collectives() {
  for (int n : {16, 25000, 25000000}) {
    const Tensor x = K::ones({n});
    std::vector<float> out(static_cast<std::size_t>(n));
    const int inner = std::max(1, 20000 / n);
    const double bare = median(15, [&] {
      for (int i = 0; i < inner; ++i) MPI_Allreduce(x.data<float>(), out.data(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
    const double ours = median(15, [&] {
      for (int i = 0; i < inner; ++i) D::all_reduce(x);
    });
    const std::string size = std::to_string(4 * n) + " bytes";
    print("MPI_Allreduce of " + size, bare / inner * 1e6, "us");
    print("all_reduce of " + size, ours / inner * 1e6, "us");
  }
}

Tensor weight(std::initializer_list<int> dims, double spread) {
  std::vector<std::int64_t> d(dims.begin(), dims.end());
  return K::variable(K::random_normal(kassette::Shape(d.data(), static_cast<int>(d.size())), 0, spread));
}

/// Rows a second of a training step: the gradients of the mean loss over a global batch, and plain descent.
template <class Loss>
void train(const std::string& row, const Tensors& weights, const Tensor& x, const Tensor& y, Loss loss) {
  D::broadcast(weights);
  const Tensor in = K::placeholder(x.shape()), target = K::placeholder(y.shape());
  const Tensor mine = D::shard(x), theirs = D::shard(y);
  auto step = [&](const Tensor& a, const Tensor& b) {
    const Tensors g = D::gradients(loss(a, b), weights, D::mean);
    for (std::int64_t i = 0; i < weights.size(); ++i) K::update_sub(weights[i], 1e-4 * g[i]);
  };
  step(mine, theirs);
  const double eager = median(21, [&] { step(mine, theirs); });
  const kassette::Function f = K::function(
      [&](const Tensors& fed) {
        step(fed[0], fed[1]);
        return Tensors{K::constant(0)};
      },
      {mine, theirs});
  f({mine, theirs});
  const double played = median(21, [&] { f({mine, theirs}); });
  const auto rows = static_cast<double>(static_cast<std::int64_t>(x.shape()[0]));
  print(row, rows / eager, "rows/s");
  print(row + ", function", rows / played, "rows/s");
}

void mlp() {
  Tensors w{weight({784, 512}, 0.04), K::zeros({512}),         weight({512, 512}, 0.04),
            K::zeros({512}),          weight({512, 10}, 0.04), K::zeros({10})};
  train("train.mlp 784-512-512-10, batch 256", w, K::random_normal({256, 784}), K::random_normal({256, 10}),
        [&](const Tensor& x, const Tensor& y) {
          const Tensor h = K::relu(K::dot(K::relu(K::dot(x, w[0]) + w[1]), w[2]) + w[3]);
          return K::mean(K::square(K::dot(h, w[4]) + w[5] - y));
        });
}

void lstm() {
  constexpr int kUnits = 128;
  Tensors w{weight({64, 4 * kUnits}, 0.08), weight({kUnits, 4 * kUnits}, 0.08), K::zeros({4 * kUnits}),
            weight({kUnits, 1}, 0.08)};
  train("train.lstm 64-128, 32 steps, batch 64", w, K::random_normal({64, 32, 64}), K::random_normal({64, 1}),
        [&](const Tensor& x, const Tensor& y) {
          auto cell = [&](const Tensor& in, const Tensors& states) {
            const Tensor z = K::dot(in, w[0]) + K::dot(states[0], w[1]) + w[2];
            auto gate = [&](int i) { return z(kassette::all, kassette::slice(i * kUnits, (i + 1) * kUnits)); };
            const Tensor c = K::sigmoid(gate(0)) * states[1] + K::sigmoid(gate(1)) * K::tanh(gate(2)),
                         h = K::sigmoid(gate(3)) * K::tanh(c);
            return K::Step{h, {h, c}};
          };
          const Tensor start =
              K::zeros_like(K::dot(x(kassette::all, 0), w[0])(kassette::all, kassette::slice(0, kUnits)));
          return K::mean(K::square(K::dot(K::rnn(cell, x, {start, start}).last_output, w[3]) - y));
        });
}

void lenet() {
  Tensors w{weight({5, 5, 1, 20}, 0.1), weight({5, 5, 20, 50}, 0.04),
            weight({800, 500}, 0.03),   K::zeros({500}),
            weight({500, 10}, 0.04),    K::zeros({10})};
  train("train.lenet 28x28, batch 64", w, K::random_normal({64, 28, 28, 1}), K::random_normal({64, 10}),
        [&](const Tensor& x, const Tensor& y) {
          const Tensor a = K::pool2d(K::relu(K::conv2d(x, w[0])), {2, 2}, {2, 2}),
                       b = K::pool2d(K::relu(K::conv2d(a, w[1])), {2, 2}, {2, 2});
          return K::mean(K::square(K::dot(K::relu(K::dot(K::batch_flatten(b), w[2]) + w[3]), w[4]) + w[5] - y));
        });
}

/// How much of the exchange hides behind the backward pass of twelve layers.
void overlap() {
  Tensors w;
  for (int i = 0; i < 12; ++i) w.push_back(weight({512, 512}, 0.05));
  D::broadcast(w);
  const Tensor x = K::random_normal({4096, 512});
  auto loss = [&] {
    Tensor h = x;
    for (const Tensor& layer : w) h = K::relu(K::dot(h, layer));
    return K::mean(K::square(h));
  };
  D::GradientOptions behind;
  behind.overlap = false;
  const double alone = median(9, [&] { K::gradients(loss(), w); }),
               after = median(9, [&] { D::gradients(loss(), w, D::sum, behind); });
  const double aside = median(9, [&] { D::gradients(loss(), w); });
  print("overlap: gradients without exchange", alone * 1e3, "ms");
  print("overlap: exchanged afterwards", after * 1e3, "ms");
  print("overlap: exchanged meanwhile", aside * 1e3, "ms");
}

}  // namespace

int main(int argc, char** argv) {
  D::init();
  const std::string what = argc > 1 ? argv[1] : "train";
  if (what == "collectives") collectives();
  if (what == "overlap") overlap();
  if (what != "train") return 0;
  mlp();
  lstm();
  lenet();
}

// PyTorch's C++ API on the CPU, eager.
#include <thread>

#include <torch/torch.h>

#include "../../timer.h"
#include "rows.h"

using at::Tensor;
using bench::own_process;
using bench::row;

namespace {

Tensor uniform(at::IntArrayRef shape) { return torch::rand(shape) + 0.1; }
Tensor tracked(at::IntArrayRef shape) { return torch::ones(shape, torch::requires_grad()); }

void small() {
  row("small.add", [] { return [a = torch::ones({4}), b = torch::ones({4})] { Tensor c = a + b; }; });
  row("small.add_tracked", [] { return [a = tracked({4}), b = torch::ones({4})] { Tensor c = a + b; }; });
  row("small.add_mul_sum_fb", [] {
    return [a = tracked({4}), b = torch::ones({4}), c = torch::ones({4})] {
      auto g = torch::autograd::grad({((a + b) * c).sum()}, {a});
    };
  });
  row("small.matmul2", [] {
    return [a = torch::ones({2, 2}), b = torch::ones({2, 2})] { Tensor c = torch::matmul(a, b); };
  });
  row("small.sum4", [] { return [a = torch::ones({4})] { Tensor c = a.sum(); }; });
  row("small.create4", [] { return [] { Tensor c = torch::tensor({1.f, 2.f, 3.f, 4.f}); }; });
  row("small.reshape", [] { return [a = torch::ones({4})] { Tensor c = a.reshape({2, 2}); }; });
}

/// One step of plain gradient descent on a multilayer perceptron: forward, cross-entropy, backward,
/// update.
auto mlp_step(int64_t batch, std::vector<int64_t> widths) {
  std::vector<Tensor> parameters;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    parameters.push_back((torch::randn({widths[i + 1], widths[i]}) * 0.05).requires_grad_());
    parameters.push_back(torch::zeros({widths[i + 1]}).requires_grad_());
  }
  Tensor x = uniform({batch, widths[0]}), labels = torch::randint(widths.back(), {batch});
  return [=] {
    Tensor h = x;
    size_t last = parameters.size() - 2;
    for (size_t i = 0; i < last; i += 2) h = torch::relu(torch::linear(h, parameters[i], parameters[i + 1]));
    Tensor loss = torch::cross_entropy_loss(torch::linear(h, parameters[last], parameters[last + 1]), labels);
    auto gradients = torch::autograd::grad({loss}, parameters);
    torch::NoGradGuard unrecorded;
    for (size_t i = 0; i < parameters.size(); ++i) Tensor(parameters[i]).sub_(gradients[i], 0.01);
  };
}

/// 50 times of 32 samples, 64 features to 128 units: the module's fused kernels.
torch::nn::LSTM lstm() { return torch::nn::LSTM(torch::nn::LSTMOptions(64, 128).batch_first(true)); }

void train() {
  row("train.lstm_f", [] {
    return [net = lstm(), x = uniform({32, 50, 64})]() mutable {
      torch::NoGradGuard unrecorded;
      Tensor y = std::get<0>(net->forward(x));
    };
  });
  row("train.lstm_fb", [] {
    auto net = lstm();
    Tensor x = uniform({32, 50, 64}).requires_grad_();
    auto wanted = net->parameters();
    wanted.push_back(x);
    return [=]() mutable { auto g = torch::autograd::grad({std::get<0>(net->forward(x)).sum()}, wanted); };
  });
  row("train.mlp_b32", [] { return mlp_step(32, {64, 128, 10}); });
  own_process("mem.mlp_b32_1000", [] {
    auto step = mlp_step(32, {64, 128, 10});
    return bench::peak_of([&] {
      for (int i = 0; i < 1000; ++i) step();
    });
  });
  own_process("mem.mlp50_b1024", [] {
    std::vector<int64_t> widths(50, 256);
    widths.push_back(10);
    auto step = mlp_step(1024, widths);
    return bench::peak_of([&] {
      for (int i = 0; i < 3; ++i) step();
    });
  });
  own_process("mem.adam_1e7", [] {
    Tensor w = (torch::rand({10000000}) + 0.5).requires_grad_();
    torch::optim::Adam adam({w}, torch::optim::AdamOptions(1e-3));
    auto step = [&] {
      adam.zero_grad();
      w.square().sum().backward();
      adam.step();
    };
    step();
    return bench::peak_of(
        [&] {
          for (int i = 0; i < 5; ++i) step();
        },
        /*per=*/1);
  });
  row("train.adam_1e7", [] {
    Tensor w = (torch::rand({10000000}) + 0.5).requires_grad_();
    auto adam = std::make_shared<torch::optim::Adam>(std::vector<Tensor>{w}, torch::optim::AdamOptions(1e-3));
    return [=] {
      adam->zero_grad();
      w.square().sum().backward();
      adam->step();
    };
  });
}

Tensor chain(const Tensor& x, const Tensor& b, int64_t n) {
  Tensor y = x;
  for (int64_t i = 0; i < n; ++i) y = y + b;
  return y;
}
/// Chains of `n` tracked additions on each of `threads` threads at once, kept until all are there.
void chains(int threads, int64_t n) {
  std::vector<Tensor> ends(threads);
  std::vector<std::thread> others;
  auto record = [&](int t) { ends[t] = chain(tracked({4}), torch::ones({4}), n); };
  for (int t = 1; t < threads; ++t) others.emplace_back(record, t);
  record(0);
  for (auto& t : others) t.join();
}
void tape() {
  for (int threads : {1, 2}) {
    std::string t = ".t" + std::to_string(threads);
    row(
        "tape.record_op" + t, [=] { return [=] { chains(threads, 20000); }; }, /*per=*/20000);
    own_process("mem.record_op" + t, [=] { return bench::peak_of([=] { chains(threads, 1000000 / threads); }, 1e6); });
  }
  own_process("chain.1e6_fb", [] {
    return bench::peak_of([] {
      Tensor x = tracked({4});
      auto g = torch::autograd::grad({chain(x, torch::ones({4}), 1000000).sum()}, {x});
    });
  });
}

void elementwise() {
  for (auto [n, tag] : {std::pair<int64_t, const char*>{1000, "1e3"}, {100000, "1e5"}, {10000000, "1e7"}}) {
    int64_t size = n;
    std::string t = std::string(".") + tag;
    row("ew.add" + t, [=] { return [a = uniform({size}), b = uniform({size})] { Tensor c = a + b; }; });
    row("ew.mul" + t, [=] { return [a = uniform({size}), b = uniform({size})] { Tensor c = a * b; }; });
    row("ew.relu" + t, [=] { return [a = uniform({size})] { Tensor c = a.relu(); }; });
    row("ew.exp" + t, [=] { return [a = uniform({size})] { Tensor c = a.exp(); }; });
  }
  row("ew.chain10.1e7", [] {
    return [x = uniform({10000000})] {
      Tensor c = (x * 0.5) * (torch::tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x;
    };
  });
}

void matmul() {
  for (int64_t n : {512, 1024})
    row("mm.sq" + std::to_string(n), [=] {
      return [a = uniform({n, n}), b = uniform({n, n})] { Tensor c = a.matmul(b); };
    });
}

}  // namespace

int main(int argc, char** argv) {
  auto options = bench::parse(argc, argv);
  at::set_num_threads(options.threads);
  torch::manual_seed(1);
  small(), train(), tape(), elementwise(), matmul(), kernel_rows(), numpy_rows(), convolution_rows();
  return bench::run(options, "\"peer\": \"torch\", \"version\": \"" TORCH_VERSION "\"");
}

// Our rows, against the public API; what each computes is what the peers' rows of that name
// compute.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/show_config.h>
#include <kassette/version.h>

#include "../timer.h"
#include "networks.h"
#include "rows.h"

using bench::own_process;
using bench::row;

namespace {

void small() {
  row("small.add", [] {
    return [a = K::constant({1.0, 1.0, 1.0, 1.0}), b = K::constant({1.0, 1.0, 1.0, 1.0})] { Tensor c = a + b; };
  });
  row("small.add_tracked", [] {
    return [a = K::variable({1.0, 1.0, 1.0, 1.0}), b = K::constant({1.0, 1.0, 1.0, 1.0})] { Tensor c = a + b; };
  });
  row("small.add_mul_sum_fb", [] {
    return [a = K::variable({1.0, 1.0, 1.0, 1.0}), b = K::constant({1.0, 1.0, 1.0, 1.0}),
            c = K::constant({1.0, 1.0, 1.0, 1.0})] { Tensors g = K::gradients(K::sum((a + b) * c), {a}); };
  });
  row("small.matmul2", [] {
    return [a = K::constant({{1.0, 1.0}, {1.0, 1.0}}), b = K::constant({{1.0, 1.0}, {1.0, 1.0}})] {
      Tensor c = K::dot(a, b);
    };
  });
  row("small.sum4", [] { return [a = K::constant({1.0, 1.0, 1.0, 1.0})] { Tensor c = K::sum(a); }; });
  row("small.create4", [] { return [] { Tensor c = K::constant({1.f, 2.f, 3.f, 4.f}); }; });
  row("small.reshape", [] { return [a = K::constant({1.0, 1.0, 1.0, 1.0})] { Tensor c = K::reshape(a, {2, 2}); }; });
}

/// Fifty layers of 256, then 10 classes, and a batch of 1,024: activations are four times the weights.
struct DeepMlp {
  Tensors parameters;
  Tensor x = uniform(1024, 256), labels = K::cast(uniform(1024) * 9.0, "int32");
  DeepMlp() {
    for (int i = 0; i < 50; ++i) {
      parameters.push_back(weights(256, i < 49 ? 256 : 10));
      parameters.push_back(zeros(i < 49 ? 256 : 10));
    }
  }
  Tensor loss() const {
    Tensor h = x;
    for (int i = 0; i < 98; i += 2) h = K::relu(K::dot(h, parameters[i]) + parameters[i + 1]);
    return K::mean(
        K::sparse_categorical_crossentropy(labels, K::dot(h, parameters[98]) + parameters[99], /*from_logits=*/true));
  }
  void step() const {
    Tensors g = K::gradients(loss(), parameters);
    for (std::int64_t i = 0; i < g.size(); ++i) K::update_sub(parameters[i], 0.01 * g[i]);
  }
};

void train() {
  row("train.lstm_f", [] {  // without history, as the peers'
    return [net = Lstm(), x = K::eval(Lstm().x)] {
      auto scope = K::no_gradient();
      Tensor y = net.outputs(x);
    };
  });
  row("train.lstm_f.taped", [] {  // everything is kept for the backward pass, which does not run
    return [net = Lstm(), x = K::eval(Lstm().x)] { Tensor y = net.outputs(x); };
  });
  row("train.lstm_fb", [] { return [net = Lstm()] { Tensors g = net.gradients(net.x); }; });
  row("train.lstm_f.fn", [] {
    Lstm net;
    Tensor x = K::placeholder({32, 50, 64});
    return [feed = K::eval(net.x), f = K::function({x}, {net.outputs(x)})] { Tensors y = f({feed}); };
  });
  row("train.lstm_fb.fn", [] {
    Lstm net;
    Tensor x = K::placeholder({32, 50, 64});
    return [feed = K::eval(net.x), f = K::function({x}, net.gradients(x))] { Tensors g = f({feed}); };
  });
  row("train.lstm_fb.fn.any", [] {  // of any number of samples and times
    Lstm net;
    Tensor x = K::placeholder({K::None, K::None, 64});
    return [feed = K::eval(net.x), f = K::function({x}, net.gradients(x))] { Tensors g = f({feed}); };
  });
  own_process("mem.lstm_fb.fn", [] {
    Lstm net;
    Tensor x = K::placeholder({32, 50, 64}), feed = K::eval(net.x);
    auto f = K::function({x}, net.gradients(x));
    return bench::peak_of([&] {
      for (int i = 0; i < 20; ++i) f({feed});
    });
  });
  row("train.mlp_b32", [] { return [net = Mlp()] { net.step(); }; });
  row("train.mlp_b32.fn", [] {
    Mlp net;
    return [net, f = net.function()] { Tensors out = f({net.x, net.labels}); };
  });
  own_process("mem.mlp_b32_1000", [] {
    Mlp net;
    return bench::peak_of([&] {
      for (int i = 0; i < 1000; ++i) net.step();
    });
  });
  own_process("mem.mlp50_b1024", [] {
    DeepMlp net;
    return bench::peak_of([&] {
      for (int i = 0; i < 3; ++i) net.step();
    });
  });
  constexpr int kLarge = 10000000;
  row("train.adam_1e7",
      [] { return [f = K::symbolic([] { return Adam(kLarge).function(); })()] { Tensors out = f({}); }; });
  own_process("mem.adam_1e7", [] {
    auto f = K::symbolic([] { return Adam(kLarge).function(); })();
    f({});
    return bench::peak_of([&] {
      for (int i = 0; i < 5; ++i) f({});
    });
  });
}

Tensor chain(const Tensor& x, const Tensor& b, int n) {
  Tensor y = x;
  for (int i = 0; i < n; ++i) y = y + b;
  return y;
}
/// Chains of `n` tracked additions on each of `threads` threads at once, kept until all are there.
void chains(int threads, int n) {
  std::vector<Tensor> ends(static_cast<std::size_t>(threads));
  std::vector<std::thread> others;
  auto record = [&](int t) {
    ends[static_cast<std::size_t>(t)] = chain(K::variable({1.0, 1.0, 1.0, 1.0}), K::constant({1.0, 1.0, 1.0, 1.0}), n);
  };
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
      Tensor x = K::variable({1.0, 1.0, 1.0, 1.0});
      Tensors g = K::gradients(K::sum(chain(x, K::constant({1.0, 1.0, 1.0, 1.0}), 1000000)), {x});
    });
  });
}

/// Loops of two scalar ops a step: what a step costs beside its ops.
void loops() {
  auto fold = [](const Tensor& x, const Tensor& w) {
    return K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, K::constant(0.0));
  };
  row("loop.foldl_1e5_fb", [=] {
    return [=, x = K::variable(uniform(100000)), w = K::variable(0.999)] {
      Tensors g = K::gradients(fold(x, w), {w, x});
    };
  });
  for (bool thrifty : {false, true})
    row(thrifty ? "loop.foldl_1e6_fb.fn.checkpoints" : "loop.foldl_1e6_fb.fn", [=] {
      K::CheckpointScope scope(thrifty ? 1000 : 1000000);  // a million keep every step
      Tensor x = K::placeholder({K::None}), w = K::variable(0.999), y = fold(x, w);
      Tensors g = K::gradients(y, {w, x});
      return [f = K::function({x}, {y, g[0], g[1]}), xs = uniform(1000000)] { Tensors out = f({xs}); };
    });
}

/// Loops whose cost is not in their ops: masks, other loops in their steps, gradients of gradients, another length at
/// each call.
void other_loops() {
  row("loop.masked_lstm_fb.fn", [] {  // samples of 1 to 50 times
    Lstm net;
    Tensor x = K::placeholder({32, 50, 64}), mask = K::placeholder({50, 32}, K::None, "bool");
    Tensors g = K::gradients(K::sum(net.outputs(x, mask)), {net.kernel, net.recurrent, net.bias});
    Tensor lengths = K::cast(K::arange(32) * 49 / 31 + 1, "int32"),
           keep = K::expand_dims(K::arange(50), 1) < K::expand_dims(lengths, 0);
    return [feed = K::eval(net.x), keep = K::eval(keep), f = K::function({x, mask}, g)] {
      Tensors out = f({feed, keep});
    };
  });
  row("loop.nested_fb.fn", [] {  // a fold over 20 rows of 32 numbers in each of 50 steps of a map
    Tensor x = K::placeholder({50, 20, 32}), w = K::variable(uniform(32));
    Tensor y = K::map_fn(
        [&](const Tensor& rows) {
          return K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(a * w + e); }, rows);
        },
        x);
    return
        [f = K::function({x}, K::gradients(K::sum(y), {x, w})), feed = uniform(50, 20, 32)] { Tensors g = f({feed}); };
  });
  row("loop.second.fn", [] {  // the gradient of a gradient's squares: 50 steps of (32, 64)
    Tensor x = K::placeholder({50, 32, 64}), w = K::variable((uniform(64, 64) - 0.6) * 0.1);
    Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(K::dot(a, w) + e); }, x);
    Tensor g = K::gradients(K::sum(y), {w})[0];
    return [f = K::function({x}, K::gradients(K::sum(K::square(g)), {w})), feed = uniform(50, 32, 64) - 0.6] {
      Tensors g2 = f({feed});
    };
  });
  row(
      "loop.lengths_1000_fb.fn",
      [] {  // 1 to 1,000 steps of (8, 16), each once
        Tensor x = K::placeholder({K::None, 8, 16}), w = K::variable((uniform(16, 16) - 0.6) * 0.1);
        Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(K::dot(a, w) + e); }, x);
        Tensors feeds;
        Tensor all = uniform(1000, 8, 16) - 0.6;
        for (int n = 1; n <= 1000; ++n) feeds.push_back(all(kassette::slice(0, n * 617 % 1000 + 1)));
        return [f = K::function({x}, K::gradients(K::sum(y), {w})), feeds] {
          for (const Tensor& feed : feeds) Tensors g = f({feed});
        };
      },
      /*per=*/1000);
}

Tensor chain10(const Tensor& x) { return (x * 0.5) * (K::tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0) + x; }

void elementwise() {
  for (auto [n, tag] : {std::pair<int, const char*>{1000, "1e3"}, {100000, "1e5"}, {10000000, "1e7"}}) {
    int size = n;
    std::string t = std::string(".") + tag;
    row("ew.add" + t, [=] { return [a = uniform(size), b = uniform(size)] { Tensor c = a + b; }; });
    row("ew.mul" + t, [=] { return [a = uniform(size), b = uniform(size)] { Tensor c = a * b; }; });
    row("ew.relu" + t, [=] { return [a = uniform(size)] { Tensor c = K::relu(a); }; });
    row("ew.exp" + t, [=] { return [a = uniform(size)] { Tensor c = K::exp(a); }; });
  }
  row("ew.chain10.1e7", [] { return [x = uniform(10000000)] { Tensor c = chain10(x); }; });
  row("ew.chain10.1e7.fn", [] {
    Tensor in = K::placeholder({K::None});
    return [x = uniform(10000000), f = K::function({in}, {chain10(in)})] { Tensors out = f({x}); };
  });
}

void matmul() {
  for (int n : {512, 1024})
    row("mm.sq" + std::to_string(n),
        [=] { return [a = uniform(n, n), b = uniform(n, n)] { Tensor c = K::dot(a, b); }; });
}

void draws() {
  row("rnd.uniform.1e7", [] { return [] { Tensor c = K::random_uniform({10000000}); }; });
  row("rnd.normal.1e7", [] { return [] { Tensor c = K::random_normal({10000000}); }; });
  row("rnd.dropout.1e7", [] { return [a = uniform(10000000)] { Tensor c = K::dropout(a, 0.5); }; });
}

}  // namespace

int main(int argc, char** argv) {
  auto options = bench::parse(argc, argv);
  kassette::set_num_threads(options.threads);
  std::optional<kassette::DeviceScope> scope;
  std::string device;
  if (options.device == "cpu") {
    small(), train(), tape(), loops(), other_loops(), elementwise(), matmul(), draws();
    kernel_rows();
    numpy_rows();
    convolution_rows();
    file_rows();
    thread_rows();
  } else {
    try {
      scope.emplace(kassette::Device(options.device));
    } catch (const kassette::Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      return 1;
    }
    device = ", \"device\": \"" + options.device + "\"" + device_facts(options.device);
    device_rows(options.tiny);
  }
  std::ostringstream config;
  kassette::show_config(config);
  std::string lines = config.str();
  for (char& c : lines)
    if (c == '\n') c = ';';
  return bench::run(options, bench::cpu() + ", \"peer\": \"kassette\", \"version\": \"" + kassette::version() +
                                 "\", \"config\": \"" + bench::plain(lines, 1000) + "\"" + device);
}

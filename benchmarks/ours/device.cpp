// Benchmark rows on a CUDA device. The timer synchronizes with it once, after each sample. The rows of
// peers/torch_cuda_bench.py have the same names.
#include <algorithm>
#include <string>
#include <vector>

#include "../timer.h"
#include "networks.h"
#include "rows.h"

using bench::row;

namespace {

/// Sizes of the rows.
struct Scale {
  int side;                       // of a square of numbers: 64 MB, more than the L2 cache of a GPU
  int images, pixels;             // of a batch of images of 64 channels
  int classes, features, picked;  // of a table of rows, and how many are picked
  int products;
  int batch;  // of the convolutional network
  int times;  // of the LSTM
  int adam;
  int adds;
};
constexpr Scale kFull = {4096, 64, 56, 50000, 512, 16384, 2048, 64, 50, 10000000, 100000};
constexpr Scale kTiny = {64, 2, 6, 50, 8, 16, 16, 2, 3, 1000, 100};

/// n numbers from 0.1 to 1.1, made once on the host for all rows.
Tensor numbers(int n) {
  static std::vector<float> all;
  if (all.size() < static_cast<std::size_t>(n)) all = draw(n, std::uniform_real_distribution<float>(0.1f, 1.1f));
  return K::constant(std::vector<float>(all.begin(), all.begin() + n));
}
Tensor numbers(const Sizes& shape) {
  int n = 1;
  for (int size : shape) n *= size;
  return K::reshape(numbers(n), shape);
}

constexpr double kFloat = 4;

void copies(const Scale& s) {
  const int n = s.side * s.side;
  // Concatenating two vectors is two copies by CUDA itself: the reference for every row that memory bandwidth limits.
  row("copy.device", [=] {
    return [a = numbers(n / 2), b = numbers(n / 2)] { Tensor y = K::concatenate({a, b}, 0); };
  }).moved = 2 * kFloat * n;
  row("copy.to_device", [=] {
    Tensor x = numbers(n);
    return [here = x.to("cpu"), there = x.device()] { Tensor y = here.to(there); };
  });
  row("copy.to_host", [=] { return [x = numbers(n)] { Tensor y = x.to("cpu"); }; });
}

Tensor gelu(const Tensor& x) { return (x * 0.5) * (K::tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0); }

void elementwise(const Scale& s) {
  const int n = s.side * s.side;
  row("ew.add", [=] { return [a = numbers(n), b = numbers(n)] { Tensor c = a + b; }; }).moved = 3 * kFloat * n;
  row("ew.relu", [=] { return [a = numbers(n)] { Tensor c = K::relu(a); }; }).moved = 2 * kFloat * n;
  row("ew.exp", [=] { return [a = numbers(n)] { Tensor c = K::exp(a); }; }).moved = 2 * kFloat * n;
  row("ew.tanh", [=] { return [a = numbers(n)] { Tensor c = K::tanh(a); }; }).moved = 2 * kFloat * n;
  row("ew.add_f16", [=] {
    return [a = K::cast(numbers(n), "float16"), b = K::cast(numbers(n), "float16")] { Tensor c = a + b; };
  }).moved = 1.5 * kFloat * n;
  row("ew.cast_f32_f16", [=] { return [a = numbers(n)] { Tensor c = K::cast(a, "float16"); }; }).moved =
      1.5 * kFloat * n;
  row("ew.bias", [=] {
    return [=, a = numbers({s.side, s.side}), b = numbers(s.side)] { Tensor c = a + b; };
  }).moved = 2 * kFloat * n;
  row("ew.gelu", [=] { return [a = numbers(n)] { Tensor c = gelu(a); }; });
  row("ew.gelu.fn", [=] {
    Tensor in = K::placeholder({K::None});
    return [a = numbers(n), f = K::function({in}, {gelu(in)})] { Tensors c = f({a}); };
  }).moved = 2 * kFloat * n;
}

void reductions(const Scale& s) {
  const int n = s.side * s.side;
  auto read = [=](const std::string& name, const Sizes& shape, const std::vector<int>& axes) {
    row("red." + name, [=] {
      return [=, a = numbers(shape)] { Tensor c = axes.empty() ? K::sum(a) : K::sum(a, axes); };
    }).moved = kFloat * n;
  };
  read("all", {s.side, s.side}, {});
  read("columns", {s.side, s.side}, {0});
  read("rows", {s.side, s.side}, {1});
  read("long_rows", {16, n / 16}, {1});
  read("nchw", {s.side / 64, 64, 8, s.side / 8}, {0, 2, 3});
  row("red.max_rows", [=] { return [a = numbers({s.side, s.side})] { Tensor c = K::max(a, 1); }; }).moved = kFloat * n;
  row("red.argmax_rows", [=] {
    return [a = numbers({s.side, s.side})] { Tensor c = K::argmax(a, 1); };
  }).moved = kFloat * n;
  row("red.cumsum", [=] {
    return [a = numbers({s.side, s.side})] { Tensor c = K::cumsum(a, 1); };
  }).moved = 2 * kFloat * n;
  row("red.cumsum_all", [=] { return [a = numbers(n)] { Tensor c = K::cumsum(a, 0); }; }).moved = 2 * kFloat * n;
}

void layers(const Scale& s) {
  const int n = s.side * s.side;
  row("nn.softmax", [=] {
    return [a = numbers({s.side, s.side})] { Tensor c = K::softmax(a); };
  }).moved = 2 * kFloat * n;
  row("nn.sparse_ce_fb", [=] {
    Tensor z = K::variable(numbers({s.side, s.side})), t = K::cast(numbers(s.side) * (s.side - 1) / 1.2, "int32");
    return
        [=] { Tensors g = K::gradients(K::mean(K::sparse_categorical_crossentropy(t, z, /*from_logits=*/true)), {z}); };
  });
  auto normalise = [=](const std::string& layout, const Sizes& shape, const std::vector<int>& axes) {
    double elements = 1;
    for (int size : shape) elements *= size;
    row("nn.bn_f" + layout, [=] {
      return [=, x = numbers(shape), scale = K::ones({64}), offset = K::zeros({64})] {
        Tensor y = K::normalize_batch_in_training(x, scale, offset, axes).normalized;
      };
    }).moved = 3 * kFloat * elements;  // two reads and a write
    row("nn.bn_fb" + layout, [=] {
      Tensor x = K::variable(numbers(shape)), scale = K::variable(K::ones({64})), offset = K::variable(K::zeros({64})),
             dy = numbers(shape);
      return [=] {
        Tensors g = K::gradients(K::sum(K::normalize_batch_in_training(x, scale, offset, axes).normalized * dy),
                                 {x, scale, offset});
      };
    });
  };
  normalise(".cl", {s.images, s.pixels, s.pixels, 64}, {0, 1, 2});
  normalise(".cf", {s.images, 64, s.pixels, s.pixels}, {0, 2, 3});
  row("nn.dropout", [=] { return [a = numbers(n)] { Tensor c = K::dropout(a, 0.5); }; }).moved = 2 * kFloat * n;
  row("rnd.uniform", [=] { return [=] { Tensor c = K::random_uniform({n}); }; }).moved = kFloat * n;
}

void indexing(const Scale& s) {
  const double picked = kFloat * s.picked * s.features;
  auto places = [=] { return K::cast(numbers(s.picked) * (s.classes - 1) / 1.2, "int32"); };
  row("idx.gather", [=] {
    return [w = numbers({s.classes, s.features}), i = places()] { Tensor y = K::gather(w, i); };
  }).moved = 2 * picked;
  row("idx.gather_b", [=] {
    Tensor w = K::variable(numbers({s.classes, s.features})),
           y = K::sum(K::gather(w, places()) * numbers({s.picked, s.features}));
    return [=] { Tensors g = K::gradients(y, {w}); };
  });
  row("idx.transpose", [=] {
    return [a = numbers({s.side, s.side})] { Tensor c = K::transpose(a); };
  }).moved = 2 * kFloat * s.side * s.side;
  row("idx.nchw_to_nhwc", [=] {
    return [a = numbers({s.images, 64, s.pixels, s.pixels})] { Tensor c = K::permute_dimensions(a, {0, 2, 3, 1}); };
  }).moved = 2 * kFloat * s.images * 64 * s.pixels * s.pixels;
}

void products(const Scale& s) {
  for (const char* dtype : {"float32", "float16", "bfloat16", "float64"})
    row(std::string("mm.") + dtype, [=] {
      Tensor a = K::cast(numbers({s.products, s.products}), dtype);
      return [=] { Tensor c = K::dot(a, a); };
    });
  row("mm.batched", [=] {
    return [a = numbers({s.products / 4, 128, 128}), b = numbers({s.products / 4, 128, 128})] {
      Tensor c = K::batch_dot(a, b, {2, 1});
    };
  });
}

void convolutions(const Scale& s) {
  for (const char* format : {"channels_last", "channels_first"}) {
    const bool last = format == std::string("channels_last");
    const std::string layout = last ? ".cl" : ".cf";
    const Sizes shape = last ? Sizes{s.images, s.pixels, s.pixels, 64} : Sizes{s.images, 64, s.pixels, s.pixels};
    auto convolve = [=](const Tensor& x, const Tensor& kernel) {
      K::ConvOptions o;
      o.padding = "same", o.data_format = format;
      return K::conv2d(x, kernel, o);
    };
    row("conv.c3x3_f" + layout, [=] {
      return [=, x = numbers(shape), kernel = numbers({3, 3, 64, 64})] { Tensor y = convolve(x, kernel); };
    });
    row("conv.c3x3_fb" + layout, [=] {
      Tensor x = K::variable(numbers(shape)), kernel = K::variable(numbers({3, 3, 64, 64}));
      return [=] { Tensors g = K::gradients(convolve(x, kernel), {x, kernel}); };
    });
  }
}

void steps(const Scale& s) {
  row("train.mlp", [] { return [net = Mlp()] { net.step(); }; });
  row("train.mlp.fn", [] {
    Mlp net;
    return [net, f = net.function()] { Tensors out = f({net.x, net.labels}); };
  });
  row("train.lstm", [=] { return [net = Lstm(32, s.times)] { Tensors g = net.gradients(net.x); }; });
  row("train.lstm.fn", [=] {
    Lstm net(32, s.times);
    Tensor x = K::placeholder({32, s.times, 64});
    return [feed = K::eval(net.x), f = K::function({x}, net.gradients(x))] { Tensors g = f({feed}); };
  });
  row("train.lenet", [=] { return [net = Cnn(s.batch)] { net.step(); }; });
  row("train.lenet.fn", [=] {
    Cnn net(s.batch);
    return [net, f = net.function()] { Tensors out = f({net.x, net.labels}); };
  });
  row("train.adam.fn",
      [=] { return [f = K::symbolic([=] { return Adam(s.adam).function(); })()] { Tensors out = f({}); }; });
}

/// What an op costs the host, since the device has next to nothing to do.
void small(const Scale& s) {
  auto repeated = [=](const std::string& name, auto setup) {
    row(
        "small." + name,
        [=] {
          return [=, operation = setup()]() mutable {
            for (int i = 0; i < s.adds; ++i) operation();
          };
        },
        s.adds);
  };
  repeated("add", [] { return [a = numbers(4), b = numbers(4)] { Tensor c = a + b; }; });
  repeated("add_tracked", [] { return [a = K::variable(numbers(4)), b = numbers(4)] { Tensor c = a + b; }; });
  repeated("sum", [] { return [a = numbers(4)] { Tensor c = K::sum(a); }; });
  repeated("matmul", [] { return [a = numbers({2, 2}), b = numbers({2, 2})] { Tensor c = K::dot(a, b); }; });
  repeated("add_mul_sum_fb", [] {
    return [a = K::variable(numbers(4)), b = numbers(4), c = numbers(4)] {
      Tensors g = K::gradients(K::sum((a + b) * c), {a});
    };
  });
}

}  // namespace

void device_rows(bool tiny) {
  const Scale& s = tiny ? kTiny : kFull;
  bench::finish = [one = K::ones({1})] { one.to("cpu"); };  // a copy to the host waits for all that was asked before it
  copies(s), elementwise(s), reductions(s), layers(s), indexing(s), products(s), convolutions(s), steps(s), small(s);
}

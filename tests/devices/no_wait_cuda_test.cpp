// tests/devices/no_wait_cuda_test.cpp - ops on a CUDA device do not wait for it; errors that they find in values are
// reported at the next wait.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <cstdlib>
#include <functional>

#include "ops/engine/apply.h"
#include "ops/shape/shaping.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/environment.h"
#include "tests/results.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

/// How often the host has waited for the emulated device, or asked for a copy from it; 0 where there is a GPU, which
/// does not count.
std::int64_t waits() {
  static auto* asked = emulated<std::int64_t()>("emulated_waits");
  return asked ? asked() : 0;
}

Tensor ints(std::initializer_list<int> v, const char* dtype, Device device) {
  return K::constant(std::vector<int>(v), dtype).to(device);
}
Tensor on(const Tensor& x, Device device) { return x.to(device); }

struct Wrong {
  const char* what;
  std::function<std::function<Tensor()>(Device)> make;  // its inputs, which may wait; then the call, which must not
  const char* words;
};
/// A call of the gradient alone, the forward op of which is no instruction of the function.
std::function<Tensor()> gradient_alone(const Tensor& in, const Tensor& gradient, const Tensor& fed) {
  auto f = K::function({in}, {gradient});
  return [=]() mutable { return f({fed})[0]; };
}

const std::vector<Wrong>& wrong_calls() {
  static const char
      *class_words =
          "sparse_categorical_crossentropy: target holds class 3 at position 1, which is out of range for 3 classes",
      *gather_words = "gather: indices hold 3, which is out of range for an axis of size 3";
  auto two_rows = [](Device d) { return on(K::constant({{0.2, 0.3, 0.5}, {0.1, 0.8, 0.1}}), d); };
  static auto ctc = [](const std::vector<int>& labels, int steps, int length) {
    return [=](Device d) -> std::function<Tensor()> {
      Tensor y_true = on(K::constant(labels, "int64", {2, 2}), d), y = on(K::ones({2, 4, 3}) / 3, d);
      Tensor input = on(K::constant({4, steps}, "int64", {2, 1}), d),
             label = on(K::constant({2, length}, "int64", {2, 1}), d);
      return [=] { return K::ctc_batch_cost(y_true, y, input, label); };
    };
  };
  auto binary = [](std::initializer_list<int> divisors, const std::function<Tensor(const Tensor&, const Tensor&)>& op) {
    std::vector<int> v(divisors);
    return [=](Device d) -> std::function<Tensor()> {
      Tensor a = on(K::constant({7, 8, 9}, "int32"), d), b = on(K::constant(v, "int32"), d);
      return [=] { return op(a, b); };
    };
  };
  static const std::vector<Wrong> all{
      {"gather",
       [](Device d) -> std::function<Tensor()> {
         Tensor x = on(K::ones({3, 2}), d), ids = ints({0, 3, -1}, "int32", d);
         return [=] { return K::gather(x, ids); };
       },
       gather_words},
      {"gather below 0",
       [](Device d) -> std::function<Tensor()> {
         Tensor x = on(K::ones({3, 2}), d), ids = ints({0, -7, 9}, "int64", d);
         return [=] { return K::gather(x, ids); };
       },
       "gather: indices hold -7, which is out of range for an axis of size 3"},
      {"gather of rows without elements",
       [](Device d) -> std::function<Tensor()> {
         Tensor x = on(K::ones({3, 0}), d), ids = ints({3}, "int32", d);
         return [=] { return K::gather(x, ids); };
       },
       gather_words},
      {"index",
       [](Device d) -> std::function<Tensor()> {
         Tensor x = on(K::ones({3, 2}), d), i = on(K::constant(-4, "int32"), d);
         return [=] { return x[i]; };
       },
       "index: index -4 is out of range for an axis of size 3"},
      {"the gradient of gather",
       [](Device d) {
         DeviceScope scope(d);
         Tensor ids = K::placeholder({K::None}, None, "int32"), x = K::variable({{1, 2}, {3, 4}, {5, 6}});
         return gradient_alone(ids, K::gradients(K::sum(K::gather(x, ids)), {x})[0], ints({1, 3}, "int32", d));
       },
       gather_words},
      {"sparse_categorical_crossentropy of logits",
       [=](Device d) -> std::function<Tensor()> {
         Tensor z = two_rows(d), t = ints({0, 3}, "int64", d);
         return [=] { return K::sparse_categorical_crossentropy(t, z, true); };
       },
       class_words},
      {"sparse_categorical_crossentropy of probabilities",
       [=](Device d) -> std::function<Tensor()> {
         Tensor p = two_rows(d), t = ints({0, 3}, "int64", d);
         return [=] { return K::sparse_categorical_crossentropy(t, p); };
       },
       class_words},
      {"its gradient",
       [=](Device d) {
         DeviceScope scope(d);
         Tensor t = K::placeholder({2}, None, "int64"), p = K::variable(two_rows(d));
         return gradient_alone(t, K::gradients(K::sum(K::sparse_categorical_crossentropy(t, p)), {p})[0],
                               ints({1, 3}, "int64", d));
       },
       class_words},
      {"its second gradient",
       [=](Device d) {
         DeviceScope scope(d);
         Tensor t = K::placeholder({2}, None, "int64"), z = K::variable(two_rows(d)), w = K::variable({2, 3});
         Tensor g = K::gradients(K::sum(w * K::sparse_categorical_crossentropy(t, z, true)), {z})[0];
         return gradient_alone(t, K::gradients(K::sum(K::square(g)), {w})[0], ints({1, 3}, "int64", d));
       },
       class_words},
      {"pow", binary({1, 0, -2}, [](const Tensor& a, const Tensor& b) { return K::pow(a, b); }),
       "pow: a holds a negative integer; cast x to a float dtype (K::cast)"},
      {"floor_divide", binary({1, 0, 2}, [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); }),
       "floor_divide: integer division by zero"},
      {"remainder", binary({1, 2, 0}, [](const Tensor& a, const Tensor& b) { return a % b; }),
       "remainder: integer division by zero"},
      {"CTC: steps", ctc({0, 1, 0, 1}, 5, 2),
       "ctc_batch_cost: input_length 5 of sample 1; it must be 0 to 4, the time steps of y_pred"},
      {"CTC: length", ctc({0, 1, 0, 1}, 4, -1), "ctc_batch_cost: label_length -1 of sample 1 is negative"},
      {"CTC: too long", ctc({0, 1, 0, 1}, 1, 2),
       "ctc_batch_cost: the 2 labels of sample 1 need as many time steps, and its input_length is 1"},
      {"CTC: label", ctc({0, 1, 0, -3}, 4, 2),
       "ctc_batch_cost: y_true has label -3 at position 1 of sample 1, within its label_length of 2; labels must not be negative"},
      {"CTC: behind the end", ctc({0, 1, 2, 0}, 4, 2),
       "ctc_batch_cost: y_true has label 0 at position 1 of sample 1 after 2, which ends the label: y_pred has 2 classes and the blank"},
  };
  return all;
}

const Device kCuda("cuda:0");
/// A gather that finds nothing at `at`, once its inputs are on the device.
std::function<Tensor()> gather_wrong(int at, Device device = kCuda) {
  Tensor x = K::ones({3, 2}).to(device), ids = ints({at}, "int32", device);
  return [=] { return K::gather(x, ids); };
}
constexpr const char* kSaid = "gather: indices hold 7, which is out of range for an axis of size 3";
const std::string kHint = "; KASSETTE_CUDA_SYNC=1 stops at the op itself", kSaidLate = kSaid + kHint;

}  // namespace

TEST_CASE(
    "what a CUDA device finds wrong with values is said at the next wait, in the words of the CPU and where to find the call, and the device goes on",
    "[device]") {
  if (!has_device("cuda:0")) return;
  const Tensor one = K::ones({}).to(kCuda);
  for (const Wrong& w : wrong_calls()) {
    INFO(w.what);
    const auto here = w.make(cpu), there = w.make(kCuda);
    CHECK(error_of<ValueError>(here) == w.words);
    for (int again = 0; again < 2; ++again) {
      const std::int64_t before = waits();
      Tensor y = there();
      CHECK(waits() == before);
      CHECK(error_of<ValueError>([&] { one.item<float>(); }) == w.words + kHint);
      y.to("cpu");  // an error is said once
      CHECK(values(K::sum(K::ones({2, 3}).to(kCuda))) == std::vector<double>{6});
    }
  }
}

TEST_CASE("of two errors on a CUDA device the first is said, and of one op's that which the CPU would come to first",
          "[device]") {
  if (!has_device("cuda:0")) return;
  const auto wrong = gather_wrong(7), other = gather_wrong(9);
  const Tensor a = ints({1}, "int32", kCuda), b = ints({0}, "int32", kCuda), x = K::ones({3, 1});
  Tensor first = wrong(), second = other(), third = a % b;
  CHECK(error_of<ValueError>([&] { third.to("cpu"); }) == kSaidLate);
  CHECK(error_of<ValueError>([&] { second.to("cpu"); }) == "no error");
  std::vector<int> ids(100000);
  for (std::size_t i = 70000; i < ids.size(); i += 100) ids[i] = static_cast<int>(i);
  ids[99999] = -1;
  Tensor at = K::constant(ids, "int32");
  auto words = [&](Device device) {
    return error_of<ValueError>([&] { K::gather(x.to(device), at.to(device)).to("cpu"); });
  };
  CHECK(words(cpu) == "gather: indices hold 70000, which is out of range for an axis of size 3");
  CHECK(words(kCuda) == words(cpu) + kHint);
}

TEST_CASE("every way of waiting for a CUDA device says the error, under the name of its op", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor one = K::ones({1}).to(kCuda), c = on(K::constant(true, "bool"), kCuda);
  const std::vector<std::function<void()>> ways{[&] { one.item<float>(); }, [&] { one.to_vector<float>(); },
                                                [&] { printed(one); },
                                                [&] {
                                                  K::switch_(
                                                      c, [&] { return one; }, [&] { return one; });
                                                }};
  const auto wrong = gather_wrong(7);
  for (const auto& wait : ways) {
    wrong();
    CHECK(error_of<ValueError>(wait) == kSaidLate);
    wait();
  }
}

TEST_CASE("a function that found an error on a CUDA device says it where its results are read, and can be called again",
          "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope(kCuda);
  Tensor ids = K::placeholder({K::None}, None, "int32"), x = K::variable({{1, 2}, {3, 4}, {5, 6}});
  auto f = K::function({ids}, {K::gather(x, ids), K::gradients(K::sum(K::square(K::gather(x, ids))), {x})[0]});
  const Tensor right = ints({2, 0, 2}, "int32", kCuda), wrong = ints({2, 7, 0}, "int32", kCuda);
  Tensors out = f({wrong});
  CHECK(error_of<ValueError>([&] { out[1].to("cpu"); }) == kSaidLate);
  out = f({right});
  CHECK(values(out[0]) == std::vector<double>{5, 6, 1, 2, 5, 6});
  CHECK(values(out[1]) == std::vector<double>{2, 4, 0, 0, 20, 24});
}

TEST_CASE("with KASSETTE_CUDA_SYNC an error of values is said by the call", "[device]") {
  if (!has_device("cuda:0")) return;
  if (!std::getenv("KASSETTE_TEST_CUDA")) return skip("it is read once for each device");
  const Device device("cuda:5");
  {
    const Environment sync("KASSETTE_CUDA_SYNC", "1");  // read when a device is first used, as this one is here
    K::ones({2}).to(device);
  }
  const auto wrong = gather_wrong(7, device);
  CHECK(error_of<ValueError>(wrong) == kSaid);
  CHECK(values(K::ones({2}).to(device) + 1) == std::vector<double>{2, 2});
}

namespace {
/// What gather along axis 1 gives back to a table of shape (2, rows, 3).
Tensor gather_gradient(const std::vector<int>& ids, int rows, const Tensor& dy, Device device) {
  const Tensor table = K::zeros({2, rows, 3}, dy.dtype()), at = K::constant(ids, "int32");
  return apply1(gather_grad_like_op, GatherAttrs{.axis = 1, .wrap = Wrap::refuse},
                {dy.to(device), at.to(device), table.to(device)})
      .to("cpu");
}
}  // namespace

TEST_CASE("the gradient of gather on a CUDA device adds in the order of the indices", "[device]") {
  if (!has_device("cuda:0")) return;
  std::vector<int> ids;
  for (int i = 0; i < 3000; ++i) ids.push_back(i * 7919 % 70);
  Tensor dy = f64(numbers(18000, 3), {2, 3000, 3});
  for (DType dtype : {float32, float16})
    CHECK(same_bits(gather_gradient(ids, 70, K::cast(dy, dtype), kCuda),
                    gather_gradient(ids, 70, K::cast(dy, dtype), cpu)));
}

TEST_CASE("the gradient of gather on a CUDA device is right and the same again where most indices are of one row",
          "[device]") {
  if (!has_device("cuda:0")) return;
  // Row 2's pieces of the sorted list lie between parts of pieces; all of one row; none of one.
  for (int n : {63, 64, 65, 128, 3000, 5000}) {  // a piece has 64 positions, the last n 128
    for (int others : {1, 3, 64}) {
      INFO(n << " indices, one in " << others << " elsewhere");
      std::vector<int> ids;
      for (int i = 0; i < n; ++i) ids.push_back(others > 1 && i % others == 0 ? i * 7919 % 7 : 2);
      Tensor dy = f64(numbers(6 * n, 3), {2, n, 3});
      const Tensor right = gather_gradient(ids, 7, dy, cpu), got = gather_gradient(ids, 7, dy, kCuda);
      CHECK_NOTHROW(kassette::testing::assert_close(got, right, {.rtol = 1e-12, .atol = 1e-12}));
      CHECK(same_bits(got, gather_gradient(ids, 7, dy, kCuda)));
      const Tensor whole = K::cast(dy * 64, "int32");  // sums of integers are exact
      CHECK(same_bits(gather_gradient(ids, 7, whole, kCuda), gather_gradient(ids, 7, whole, cpu)));
    }
  }
}

namespace {

/// An embedding, a hidden layer and a softmax over classes, trained by Adam with gradients that are clipped.
struct Network {
  Tensor table, w, u, step;
  std::vector<Tensor> parameters, m, v;
  Network() {
    table = K::variable(K::constant(numbers(60, 1), "float32", {20, 3}));
    w = K::variable(K::constant(numbers(48, 2), "float32", {12, 4}));
    u = K::variable(K::constant(numbers(20, 3), "float32", {4, 5}));
    step = K::variable(0, "int64");
    parameters = {table, w, u};
    for (const Tensor& p : parameters) {
      m.push_back(K::variable(K::zeros_like(p)));
      v.push_back(K::variable(K::zeros_like(p)));
    }
  }
  Tensor loss(const Tensor& words, const Tensor& classes) const {
    Tensor hidden = K::relu(K::dot(K::reshape(K::gather(table, words), {-1, 12}), w));
    return K::mean(K::sparse_categorical_crossentropy(classes, K::dot(hidden, u), true));
  }
  /// Calls change(variable, value) for all that a step changes.
  template <class F>
  void adam(const Tensor& l, F change) const {
    Tensors g = K::gradients(l, {table, w, u});
    Tensor t = K::cast(step + 1, "float32"), rate = 0.01 * K::sqrt(1.0 - K::pow(0.999, t)) / (1.0 - K::pow(0.9, t));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor &whole = g[static_cast<std::int64_t>(i)], norm = K::sqrt(K::sum(K::square(whole)));
      const Tensor dp = K::switch_(norm > 0.05, whole * (0.05 / norm), whole);
      Tensor mean = 0.9 * m[i] + 0.1 * dp, square = 0.999 * v[i] + 0.001 * K::square(dp);
      change(m[i], mean);
      change(v[i], square);
      change(parameters[i], parameters[i] - rate * mean / (K::sqrt(square) + 1e-7));
    }
    change(step, step + 1);
  }
};

std::vector<double> train(Device device, bool by_function) {
  DeviceScope scope(device);
  const Network net;
  std::vector<int> words, classes;
  for (int i = 0; i < 32; ++i) words.push_back(i * 7 % 20);
  for (int i = 0; i < 8; ++i) classes.push_back(i * 3 % 5);
  const Tensor x = K::constant(words, "int32", {8, 4}), t = K::constant(classes, "int64");
  std::vector<double> losses;
  auto run = [&](auto&& step) {
    for (int i = 0; i < 4; ++i) {
      const std::int64_t before = waits();
      Tensor loss = step();
      if (i > 1) CHECK(waits() == before);  // by then what is made once has been made
      losses.push_back(loss.item<double>());
      if (waits()) CHECK((device == cpu ? waits() == before : waits() > before));
    }
  };
  if (by_function) {
    Tensor px = K::placeholder({K::None, 4}, None, "int32"), pt = K::placeholder({K::None}, None, "int64");
    Tensor loss = net.loss(px, pt);
    std::vector<std::pair<Tensor, Tensor>> changes;
    net.adam(loss, [&](const Tensor& variable, const Tensor& value) { changes.emplace_back(variable, value); });
    Tensors updates;
    for (const auto& change : changes)
      updates.push_back(K::symbolic([&] { return K::update(change.first, change.second); })());
    auto f = K::function({px, pt}, {loss}, updates);
    run([&] { return f({x, t})[0]; });
  } else {
    run([&] {
      Tensor loss = net.loss(x, t);
      std::vector<std::pair<Tensor, Tensor>> changes;
      net.adam(loss,
               [&](const Tensor& variable, const Tensor& value) { changes.emplace_back(variable, value.detach()); });
      for (const auto& [variable, value] : changes) K::update(variable, value);
      return loss.detach();
    });
  }
  return losses;
}

}  // namespace

TEST_CASE("a training step on a CUDA device does not wait for it before the loss is read", "[device]") {
  if (!has_device("cuda:0")) return;
  const std::vector<double> wanted = train(cpu, false);
  CHECK(wanted[3] < wanted[0]);
  for (bool by_function : {false, true}) check_close(train(kCuda, by_function), wanted, 1e-5, 0);
}

TEST_CASE("values of another dtype are converted on a CUDA device, without waiting for it", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope(kCuda);
  const Tensor wide = K::constant({1.75, -2.5, 300}, "float64"), narrow = K::constant({1, 2, 3}, "int32");
  Tensor x = K::placeholder({K::None}, None, "int8"), w = K::variable({0, 0, 0}, "float16");
  auto f = K::function({x}, {x + K::constant({1, 1, 1}, "int8")});
  auto run = [&] {
    Tensors out{f({wide})[0], K::function({}, {x * x}, K::FunctionOptions{.feed_dict = {{x, narrow}}})({})[0],
                K::variable(wide, "int32")};
    K::set_value(w, narrow);
    out.push_back(w);
    return out;
  };
  run();  // makes what is made once
  const std::int64_t before = waits();
  const Tensors out = run();
  CHECK(waits() == before);
  CHECK(values(out[0]) == std::vector<double>{2, -1, -128});  // 127 + 1 wraps
  CHECK(values(out[1]) == std::vector<double>{1, 4, 9});
  CHECK(values(out[2]) == std::vector<double>{1, -2, 300});
  CHECK(values(out[3]) == std::vector<double>{1, 2, 3});
}

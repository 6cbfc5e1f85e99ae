// tests/autograd/small_stack_test.cpp - threads with small stacks: what the library needs of them, and what it says
// where that is too much.
#include <kassette/backend.h>
#include <kassette/error.h>

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/sanitizers.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Function;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::error_of;
using kassette::test::f64;
using kassette::test::numbers;
using kassette::test::values;
using Vec = std::vector<double>;

namespace {

/// Runs f on a thread with a stack of `bytes`. Below its guard page lies other memory; returns how many bytes of that
/// were written.
std::size_t with_stack(std::size_t bytes, std::function<void()> f) {
  constexpr std::size_t kGuard = 4096, kBelow = 1 << 20;
  const std::size_t whole = kBelow + kGuard + bytes;
  void* const memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  char* const at = static_cast<char*>(memory);
  std::memset(at, 0x5a, kBelow);
  REQUIRE(mprotect(at + kBelow, kGuard, PROT_NONE) == 0);
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstack(&attributes, at + kBelow + kGuard, bytes) == 0);
  auto run = [](void* p) -> void* {
    (*static_cast<std::function<void()>*>(p))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &f) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const auto written = static_cast<std::size_t>(std::count_if(at, at + kBelow, [](char c) { return c != 0x5a; }));
  munmap(memory, whole);
  return written;
}

// The frames of sanitized code are larger, and so is a stack there.
constexpr std::size_t kSmall =
    (kassette::kAddressSanitizer || kassette::kThreadSanitizer ? 4096 : 256) * std::size_t(1024);

// Loops and branches inside each other, `depth` of them.
Tensor nested_foldl(const Tensor& x, int depth) {
  if (depth == 0) return x;
  return K::foldl(
      [&](const Tensor& a, const Tensor& b) {
        return a + K::sum(nested_foldl(K::stack({b, b}), depth - 1));
      },
      x);
}
Tensor nested_map(const Tensor& x, int depth) {
  if (depth == 0) return x * 2.0;
  return K::map_fn([&](const Tensor& e) { return K::sum(nested_map(K::reshape(e, {1}), depth - 1)); }, x);
}
Tensor nested_switch(const Tensor& c, int depth) {
  if (depth == 0) return c * 2.0;
  return K::switch_(
      K::greater(c, 0), [&] { return nested_switch(c, depth - 1); }, [&] { return c; });
}

}  // namespace

TEST_CASE("kernels and fused ops keep within a small stack, and write nothing below it", "[stack]") {
  const Tensor w = K::variable(0.5, "float64"), p = K::placeholder({K::None}, K::None, "float64"),
               xs = K::placeholder({3, 4, 80}, K::None, "float64");
  Tensor y = p;
  for (int i = 0; i < 30; ++i) y = i % 3 == 0 ? K::sin(y) : i % 3 == 1 ? y * w : y + 0.25;
  auto step = [&](const Tensor& x, const Tensors& s) -> K::Step {
    Tensor h = K::tanh(x * 0.5 + s[0]) * w + K::sigmoid(s[0] - x);
    return {h, {h}};
  };
  Tensor last = K::rnn(step, xs, {K::zeros({3, 80}, "float64")}).last_output;
  const Function chain = K::function({p}, {y, K::tanh(p + w) * 2.0 - p}),
                 sum = K::function({p}, {K::sum(K::square(K::sigmoid(p) - 0.5))}),
                 loop = K::function({xs}, {last, K::gradients(K::sum(K::square(last)), {w})[0]});
  const Tensor x = f64(numbers(10001, 1), {10001}), table = f64(numbers(std::size_t(3 * 4 * 80), 2), {3, 4, 80}),
               bytes = K::cast(f64(Vec(std::size_t(1500 * 1700), 3), {1500, 1700}), "uint8"),
               bounds = f64(numbers(70 * 30, 3), {70, 30});
  auto run = [&] {
    std::vector<Vec> got;
    for (const Tensor& t : chain({x})) got.push_back(values(t));
    got.push_back(values(sum({x})[0]));
    for (const Tensor& t : loop({table})) got.push_back(values(t));
    got.push_back(values(K::random_uniform({70, 30}, bounds, bounds + 1.0, "float64", 5)));
    got.push_back(values(K::sum(K::cast(K::transpose(bytes), "float64"), 1)));
    got.push_back(values(K::var(table, 0)));
    return got;
  };
  const std::vector<Vec> expected = run();
  std::vector<Vec> got;
  CHECK(with_stack(kSmall, [&] { got = run(); }) == 0);
  CHECK(got == expected);
}

TEST_CASE("what is nested too deeply for the stack of its thread is an error of one line", "[stack]") {
  std::string folds, maps, branches, moderate;
  Vec after;
  const std::size_t written = with_stack(kSmall, [&] {
    const Tensor x = f64({1, 2}, {2}), c = K::variable(1.0, "float64"), p = K::placeholder({1}, K::None, "float64");
    moderate = error_of([&] {
      nested_foldl(x, 10);
      nested_switch(c, 10);
      K::function({p}, {nested_map(p, 10)})({f64({1}, {1})});
    });
    folds = error_of([&] { nested_foldl(f64({1, 2}, {2}), 100000); });
    maps = error_of([&] { nested_map(p, 100000); });
    branches = error_of([&] { nested_switch(c, 100000); });
    after = values(nested_foldl(x, 5));
  });
  CHECK(written == 0);
  CHECK(moderate == "no error");
  const std::string size = std::to_string(kSmall / 1024);
  auto deep = [&](const char* function) {
    return std::string(function) + ": is nested too deeply for the stack of this thread, which has " + size +
           " KiB; call it in a thread with a larger stack";
  };
  CHECK(folds == deep("foldl"));
  CHECK(branches == deep("switch_"));
  CHECK((maps == deep("map_fn") || maps == "map_fn: control flow nested deeper than 255"));
  CHECK(after == Vec{13});  // 1 + (2 + (2 + (2 + (2 + (2 + 2)))))
}

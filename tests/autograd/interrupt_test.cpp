// tests/autograd/interrupt_test.cpp - a request to stop ends the running call, and nothing has changed.
#include <kassette/backend.h>
#include <kassette/interrupt.h>
#include <kassette/runtime.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "devices/cpu/threads.h"
#include "tests/catch.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using kassette::Interrupted;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::Threads;

namespace {

/// Calls f repeatedly until a request from another thread, made during a call, ends it. Returns how many calls were
/// completed.
int calls_until_interrupted(const std::function<void()>& f) {
  std::atomic<bool> begun{false};
  std::thread other([&] {
    while (!begun) std::this_thread::yield();
    kassette::request_interrupt();
  });
  int whole = 0;
  bool ended = false;
  while (!ended) {
    try {
      begun = true;
      f();
      ++whole;
    } catch (const Interrupted&) {
      ended = true;
    }
  }
  other.join();
  CHECK_FALSE(kassette::cancel_interrupt());  // throwing clears the request
  return whole;
}

struct Held {
  std::int64_t nodes = kassette::live_nodes(), saved = kassette::saved_bytes(), bytes = kassette::memory_stats().live;
  bool operator==(const Held& o) const { return nodes == o.nodes && saved == o.saved && bytes == o.bytes; }
};

}  // namespace

TEST_CASE("a request ends the next op, once", "[interrupt]") {
  Tensor x = K::ones({2, 3}), v = K::variable(x);
  for (const Tensor& t : {x, v}) {
    kassette::request_interrupt();
    CHECK_THROWS_WITH(t + t, "interrupted");
    CHECK(K::eval(t + t).to_vector<float>()[0] == 2);
  }
  kassette::request_interrupt();
  CHECK(kassette::cancel_interrupt());
  CHECK_FALSE(kassette::cancel_interrupt());
  CHECK(K::eval(x + x).to_vector<float>()[0] == 2);
}

TEST_CASE("code that catches the library's errors does not swallow a request", "[interrupt]") {
  static_assert(!std::is_base_of<kassette::Error, Interrupted>::value, "");
  Tensor x = K::ones({2, 3});
  kassette::Function f = K::function({}, {x * 2.0 + 1.0});
  kassette::request_interrupt();
  CHECK_THROWS_AS(f({}), Interrupted);
  kassette::request_interrupt();
  CHECK_THROWS_AS(K::foldl([](const Tensor& a, const Tensor& b) { return a + b; }, x), Interrupted);
  CHECK(f({})[0].to_vector<float>()[5] == 3);
}

TEST_CASE("the parts of a range end, on whichever thread the request comes", "[interrupt]") {
  for (int threads : {1, 2, 5}) {
    Threads scope(threads);
    std::atomic<std::int64_t> done{0};
    auto work = [&](std::int64_t begin, std::int64_t end) {
      done += end - begin;
      kassette::request_interrupt();
    };
    CHECK_THROWS_AS(kassette::devices::parallel_for(100'000, 10, work), Interrupted);
    CHECK(done < 100'000);
    CHECK_FALSE(kassette::cancel_interrupt());
    done = 0;
    kassette::devices::parallel_for(100'000, 10, [&](std::int64_t begin, std::int64_t end) { done += end - begin; });
    CHECK(done == 100'000);
  }
}

TEST_CASE("a long fold is interrupted, leaves nothing behind, and works again", "[interrupt]") {
  Tensor xs = K::ones({300'000}), total = K::variable(0.0);
  Tensor in = K::placeholder({300'000});
  auto add = [](const Tensor& a, const Tensor& x) { return a + x * 0.5; };
  kassette::Function f = K::function({in}, {K::foldl(add, in)}, {{total, total + 1.0}});
  f({xs});
  K::set_value(total, 0.0);
  Held before;
  const int whole = calls_until_interrupted([&] { f({xs}); });
  CHECK(K::eval(total).item<float>() == static_cast<float>(whole));  // a call that was interrupted has not counted
  CHECK(before == Held());
  CHECK(f({xs})[0].item<float>() == Approx(150'000).epsilon(1e-3));
}

TEST_CASE("the backward passes of a fold and of a long chain are interrupted without a trace", "[interrupt]") {
  Tensor w = K::variable(0.999), xs = K::ones({20'000});
  auto fold = [&] {
    return K::gradients(K::foldl([&](const Tensor& a, const Tensor& x) { return a * w + x; }, xs), {w});
  };
  auto chain = [&] {
    Tensor y = w;
    for (int i = 0; i < 20'000; ++i) y = y * w;
    return K::gradients(y, {w});
  };
  for (const std::function<Tensors()>& way : {std::function<Tensors()>(fold), std::function<Tensors()>(chain)}) {
    const float right = K::eval(way()[0]).item<float>();
    Held before;
    calls_until_interrupted([&] { way(); });
    CHECK(before == Held());
    CHECK(K::eval(way()[0]).item<float>() == right);
  }
}

TEST_CASE("a product is interrupted", "[interrupt]") {
  Tensor a = K::ones({700, 700});
  for (int threads : {1, 3}) {
    Threads scope(threads);
    Held before;
    calls_until_interrupted([&] { K::dot(a, a); });
    CHECK(before == Held());
    CHECK(K::dot(a, a).to_vector<float>()[5] == 700);
  }
}

TEST_CASE("what is added in place is never added by half", "[interrupt]") {
  Threads scope(3);
  constexpr std::int64_t kSize = 400'000;
  Tensor v = K::variable(K::zeros({kSize})), one = K::ones({kSize});
  kassette::Function f = K::function({}, {}, {{v, v + one}});
  for (const std::function<void()>& add :
       {std::function<void()>([&] { K::update_add(v, one); }), std::function<void()>([&] { f({}); })}) {
    std::atomic<bool> over{false};
    std::thread other([&] {
      for (std::int64_t pause = 0; !over; pause = (pause + 7919) % 100'000) {  // sometimes hits an addition half-way
        for (std::atomic<std::int64_t> k{0}; k < pause; ++k) {
        }
        kassette::request_interrupt();
      }
    });
    for (int i = 0; i < 200; ++i) {
      try {
        add();
      } catch (const Interrupted&) {
      }
    }
    over = true;
    other.join();
    kassette::cancel_interrupt();
    const std::vector<float> values = K::eval(v).to_vector<float>();
    CHECK(std::all_of(values.begin(), values.end(), [&](float x) { return x == values[0]; }));
  }
}

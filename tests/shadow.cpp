// tests/shadow.cpp - KASSETTE_TEST_SHADOW=1: while the unit tests run, each call of a function is also run op by op on
// the tape, each compiled loop is also recorded, with its backward pass, and each eager backward pass is also run
// expanded. Bits are compared, except the sign of zero. If bodies of control flow are summed separately in one way and
// not in the other, gradients are compared within rounding. A request to interrupt ends either run, and is passed on,
// as it is not repeated. The tests' own checks do not count, as some of them count nodes, bytes or calls: the program
// fails only if results differ.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // of Catch2 2: its listeners
#include "tests/shadow.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <kassette/interrupt.h>

#include "autograd/program/call.h"
#include "autograd/tape/deferred.h"
#include "autograd/function/plan.h"
#include "autograd/tape/shadow.h"
#include "autograd/tape/backward.h"
#include "core/context.h"
#include "core/impl.h"
#include "ops/random/random.h"
#include "tests/catch.h"

namespace kassette::test {
using namespace autograd;
namespace {

const char* const kWays[] = {"calls of functions", "loops", "backward passes"};

class Comparing final : public Shadow {
 public:
  Tensors call(const Plan& plan, const Tensors& args) override {
    if (inside_ || !ours() || prints(plan)) return plan.run(args);
    // The tape first: variables are as they are at entry. Sources draw the same again.
    Tensors wanted;
    std::string thrown;
    bool interrupted = false;
    {
      const Inside in(*this);
      std::vector<std::uint64_t> draws;
      for (const LeafSlot& s : plan.program().random_sources) {
        ops::follow_seeding(*s.node->cell);
        draws.push_back(s.node->cell->draws.load());
      }
      try {
        Scoped<bool> on(context().recording, true);
        for (const Tensor& t : plan.inline_into_tape(args)) wanted.push_back(value_of(t));
      } catch (const std::exception& e) {
        thrown = e.what();
        interrupted = dynamic_cast<const Interrupted*>(&e) != nullptr;
      }
      std::size_t i = 0;
      for (const LeafSlot& s : plan.program().random_sources) s.node->cell->draws.store(draws[i++]);
      if (interrupted) throw Interrupted();
    }
    Tensors got;
    try {
      got = plan.run(args);
    } catch (const std::exception& e) {
      if (thrown.empty() && !plan.has_effects() && !has_bodies(plan))
        differs(kWays[0], std::string("throws ") + e.what() + "; op by op it does not");
      throw;
    }
    if (thrown.empty()) compare(kWays[0], 0, got, wanted, has_bodies(plan) ? 1e-10 : 0);
    else differs(kWays[0], "op by op it throws " + thrown);
    return got;
  }

  Tensors before_pass(const Tensor& loss, const Tensors& xs, const Tensor& seed) override {
    if (inside_ || !ours()) return {};
    const Inside in(*this);
    Scoped<bool> on(context().recording, true);
    try {
      return backward({loss}, xs, {seed});
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception&) {
      return {};  // the pass itself says so
    }
  }
  void after_pass(const Tensors& before, const Tensors& gradients) override {
    if (!before.empty()) compare(kWays[2], 2, gradients, before, 0);
  }

  void after_loop(const char* which, const Tensors& results, const Callable<Tensors()>& recorded) override {
    if (inside_ || !ours()) return;
    const Inside in(*this);
    Scoped<bool> on(context().recording, true), eager(context().symbolic, false);
    try {
      // A state that is an output as well, and nested bodies, have sums of another order.
      compare(which, 1, results, recorded(), 1e-12);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& e) {
      differs(which, std::string("recorded it throws ") + e.what());
    }
  }

  int report() const {
    std::printf("shadow: compared");
    for (std::size_t i = 0; i < 3; ++i) std::printf("%s %lld %s", i ? "," : "", compared_[i], kWays[i]);
    std::printf("; %d differences\n", differences_);
    return differences_;
  }
  std::string test;

 private:
  struct Inside {
    explicit Inside(Comparing& c) : shadow(c) { shadow.inside_ = true; }
    ~Inside() { shadow.inside_ = false; }
    Comparing& shadow;
  };
  /// Other threads change variables while a call goes on.
  static bool ours() { return &context() == main_; }
  static bool prints(const Plan& plan) {
    const auto& code = plan.program().instructions;
    return std::any_of(code.begin(), code.end(),
                       [](const Instruction& s) { return s.op->traits & (kPrints | kEffect); });
  }

  static bool has_bodies(const Plan& plan) {
    const auto& code = plan.program().instructions;
    return std::any_of(code.begin(), code.end(),
                       [](const Instruction& s) { return s.op == &call_op || s.op == &deferred_op; });
  }
  /// As it is now: a variable may change.
  static Tensor value_of(const Tensor& t) {
    const TensorDesc& b = Access::desc(t);
    if (b.storage || b.symbolic() || !b.node) return t;
    Tensor now = detached(b);
    if (!Access::desc(now).storage) throw std::runtime_error("a variable has no value");  // which reading it would say
    return now;
  }

  static bool same_element(const std::byte* a, const std::byte* b, DType dtype, double near) {
    if (dtype == float32 || dtype == float64) {
      double x, y;
      if (dtype == float64) {
        std::memcpy(&x, a, sizeof x);
        std::memcpy(&y, b, sizeof y);
      } else {
        float f, g;
        std::memcpy(&f, a, sizeof f);
        std::memcpy(&g, b, sizeof g);
        x = f;
        y = g;
      }
      return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= near;
    }
    return std::memcmp(a, b, static_cast<std::size_t>(dtype.size())) == 0;
  }
  /// What the elements of `got` are not; empty where all are the same.
  static std::string difference(const Tensor& got, const Tensor& wanted, double near) {
    if (!got.defined() || !wanted.defined()) return "";  // None and zeros: tests say which
    const Value x = read_value(Access::desc(got)), y = read_value(Access::desc(wanted));
    const TensorDesc &a = Access::desc(got), &b = Access::desc(wanted);
    if (!x.storage || !y.storage) return "";
    if (!a.same_shape(b) || a.dtype != b.dtype) return "another shape or dtype";
    if (a.device != cpu || b.device != cpu || a.dtype == float16 || a.dtype == bfloat16) return "";
    const auto* p = static_cast<const std::byte*>(x.storage->data) + x.offset;
    const auto* q = static_cast<const std::byte*>(y.storage->data) + y.offset;
    double largest = 0;
    if (near > 0 && a.dtype.is_float())
      for (double d : got.to_vector<double>())
        if (std::isfinite(d)) largest = std::max(largest, std::abs(d));
    const double within = largest * (a.dtype == float64 ? near : std::max(near, 1e-4 * (near > 0)));
    for (std::int64_t i = 0, n = a.numel(), size = a.dtype.size(); i < n; ++i)
      if (!same_element(p + i * size, q + i * size, a.dtype, within)) {
        const auto at = static_cast<std::size_t>(i);
        char numbers[80];
        std::snprintf(numbers, sizeof numbers, ": %.17g, not %.17g", got.to_vector<double>()[at],
                      wanted.to_vector<double>()[at]);
        return "element " + std::to_string(i) + " of " + std::to_string(n) + numbers;
      }
    return "";
  }
  void compare(const char* what, std::size_t way, const Tensors& got, const Tensors& wanted, double near) {
    ++compared_[way];
    if (got.size() != wanted.size()) return differs(what, "another number of results");
    for (std::int64_t i = 0; i < got.size(); ++i)
      if (std::string d = difference(got[i], wanted[i], near); !d.empty())
        return differs(what, "result " + std::to_string(i) + ", " + d);
  }
  void differs(const char* what, const std::string& how) {
    ++differences_;
    if (++said_[test] <= 3) std::printf("shadow: %s: %s: %s\n", test.c_str(), what, how.c_str());
  }

  static inline const Context* const main_ = &context();
  bool inside_ = false;
  long long compared_[3] = {};
  int differences_ = 0;
  std::map<std::string, int> said_;
};

Comparing* comparing = nullptr;

#if KASSETTE_CATCH2 >= 3
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

/// Says in which test a difference is.
class Naming : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    ListenerBase::testCaseStarting(info);
    if (comparing) comparing->test = info.name;
  }
};
CATCH_REGISTER_LISTENER(Naming)

}  // namespace

void start_shadow() {
  const char* wanted = std::getenv("KASSETTE_TEST_SHADOW");
  if (!wanted || !*wanted) return;
  static Comparing one;
  shadow = comparing = &one;
}
int end_shadow(int result) {
  if (!comparing) return result;
  shadow = nullptr;
  return comparing->report() > 0;
}

}  // namespace kassette::test

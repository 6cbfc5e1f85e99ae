// ops/engine/observe.h - the place that all kernels run through, so that somebody may look on: profile() and
// detect_nan() (<kassette/profile.h>).
//
// Note [Observed kernels]
// Kernels are started in five places (docs/architecture.md), each by run_kernel() or, where one kernel does the work of
// several instructions, inside of a FusedScope. That is one relaxed load of a flag if nobody looks on. Otherwise the
// call is recorded with its time (recorder.h), and its results are searched for NaN and infinities (detect_nan.h). For
// the latter, fast paths that hide the results of single ops are switched off: they give the same bits. For the former,
// only CUDA graphs are. start_observing() does that, for both, so that neither switches on what the other needs off.
#pragma once
#include <atomic>
#include <cstdint>

#include "ops/engine/op.h"
#include "ops/engine/origin.h"

namespace kassette::ops {

/// Who looks on. kAskEnvironment: not known yet, KASSETTE_PROFILE has to be read.
enum Observing : std::uint8_t { kNobody = 0, kAskEnvironment = 1, kProfile = 2, kDetectNan = 4 };
extern std::atomic<std::uint8_t> observing __attribute__((visibility("hidden")));
/// True if somebody looks on.
inline bool observed() { return __builtin_expect(observing.load(std::memory_order_relaxed) != kNobody, 0); }
/// Reads KASSETTE_PROFILE if that has to be done. Returns who looks on.
std::uint8_t who_observes();
/// `who` looks on from now on; the fast paths that would hide ops from it are switched off. They count no calls: a
/// profile and detect_nan() call them for the first and for the last of their scopes.
void start_observing(Observing who);
/// The opposite. Fast paths that would hide ops from the other one, or were off before, stay off.
void stop_observing(Observing who);

/// Runs a kernel for somebody who looks on.
__attribute__((noinline, cold)) void run_observed(Kernel kernel, const OpCall& call, std::int32_t origin);
/// Runs a kernel. `origin`: of the instruction that it runs for; 0: the user calls the op, or an adjoint does.
inline __attribute__((always_inline)) void run_kernel(Kernel kernel, const OpCall& call, std::int32_t origin = 0) {
  if (observed()) run_observed(kernel, call, origin);
  else kernel(call);
}
/// OpDef::repeated, observed: one element stands for all of `out`.
void run_repeated(const OpCall& call, TensorDesc& out, std::int32_t origin);
/// OpDef::accumulate, observed.
bool run_accumulate(const OpCall& call, TensorDesc& sum, std::int32_t origin = 0);

struct OpenEvent;  // recorder.h

/// An interval in which several ops run: a function, a backward pass, a loop. It is called prefix + name.
class ObservedScope {
 public:
  explicit ObservedScope(const char* name, const char* prefix = "") {
    if (observed()) begin(name, prefix);
  }
  ~ObservedScope() {
    if (event_) end();
  }
  ObservedScope(const ObservedScope&) = delete;
  ObservedScope& operator=(const ObservedScope&) = delete;

 protected:
  ObservedScope() = default;
  /// `adjoint_of`: the node whose adjoint it is; null for other scopes.
  __attribute__((cold)) void begin(const char* name, const char* prefix, const Node* adjoint_of = nullptr) noexcept;
  __attribute__((cold)) void end() noexcept;
  OpenEvent* event_ = nullptr;
};

/// The adjoint of a node, in which ops run or become nodes.
class AdjointScope : public ObservedScope {
 public:
  explicit AdjointScope(const Node& node) {
    if (observed()) begin(node.op->name, "adjoint of ", &node);
    tls_observed.adjoint = &node;
    tls_observed.origin = 0;
  }
  ~AdjointScope() {
    tls_observed.adjoint = adjoint_before_;
    tls_observed.origin = origin_before_;
  }

 private:
  const Node* const adjoint_before_ = tls_observed.adjoint;
  const std::int32_t origin_before_ = tls_observed.origin;
};

/// The integers from first to last - 1. (With libstdc++ 12, clang 14 does not compile std::views::iota.)
struct IntRange {
  int first, last;
  struct Iterator {
    int i;
    int operator*() const { return i; }
    Iterator& operator++() { return ++i, *this; }
    bool operator!=(const Iterator& other) const { return i != other.i; }
  };
  Iterator begin() const { return {first}; }
  Iterator end() const { return {last}; }
};

/// An interval in which one kernel runs several instructions of a program: `ks` are their numbers, desc(slot) returns
/// what is in a slot. The last makes the result.
class FusedScope : public ObservedScope {
 public:
  template <class Program, class Numbers, class Desc>
  FusedScope(const Program& program, const Numbers& ks, const Desc& desc) {
    if (observed()) describe(program, ks, desc);
  }
  /// Returns `ran`; if that is false, nothing is recorded.
  bool done(bool ran) noexcept {
    if (!ran && event_) cancel();
    return ran;
  }

 private:
  template <class Program, class Numbers, class Desc>
  __attribute__((noinline, cold)) void describe(const Program& program, const Numbers& ks, const Desc& desc) noexcept
      try {
    int last = -1;
    for (int k : ks) {
      const auto& s = program.instruction(last = k);
      add(*s.op, s.function);
      for (int slot : program.reads(s)) {
        bool inside = false;
        for (int other : ks) inside = inside || program.instruction(other).out == slot;
        if (!inside) reads(desc(slot));
      }
    }
    if (last >= 0) begin(desc(program.instruction(last).out));
  } catch (...) {  // no memory for it
    forget();
  }
  void add(const OpDef& op, std::int32_t origin);
  void reads(const TensorDesc& x);
  void begin(const TensorDesc& result);
  void cancel() noexcept;
  void forget() noexcept;
};

}  // namespace kassette::ops

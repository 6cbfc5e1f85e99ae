// ops/engine/observe.cpp - running what somebody observes. See Note [Observed kernels].
#include "ops/engine/observe.h"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/fast_paths.h"
#include "ops/engine/detect_nan.h"
#include "ops/engine/recorder.h"

namespace kassette::ops {

constinit std::atomic<std::uint8_t> observing{kAskEnvironment};

std::uint8_t who_observes() {
  std::uint8_t now = observing.load(std::memory_order_acquire);
  if (!(now & kAskEnvironment)) return now;
  static std::once_flag asked;
  std::call_once(asked, [] {
    observing.fetch_and(static_cast<std::uint8_t>(~kAskEnvironment), std::memory_order_release);
    if (const char* file = std::getenv("KASSETTE_PROFILE"); file && *file) profile_process(file);
  });
  return observing.load(std::memory_order_acquire);
}

namespace {

/// The fast paths that compute several results as one, keep one element of many, or write where a result that is
/// refused must not be seen. `specialised`: its programs remember which instructions run as one.
constexpr std::uint64_t kHidingResults = [] {
  std::uint64_t bits = 0;
  for (FastPath path :
       {FastPath::chain, FastPath::chain_of_update, FastPath::chain_summed, FastPath::repeated, FastPath::with_bias,
        FastPath::with_bias_relu, FastPath::updated_in_place, FastPath::accumulated, FastPath::added_in_place,
        FastPath::specialised, FastPath::loop_chain, FastPath::loop_accumulated, FastPath::device_graph})
    bits |= fast_path_bit(path);
  return bits;
}();
std::uint64_t hiding_from(std::uint8_t who) {
  return (who & kDetectNan ? kHidingResults : 0) | (who & kProfile ? fast_path_bit(FastPath::device_graph) : 0);
}

constinit std::mutex switching;
constinit std::uint64_t switched_off = 0;  // by us; not what was off before

/// To be called under the lock.
void switch_off_for(std::uint8_t who) {
  const std::uint64_t hiding = hiding_from(who);
  switched_off |= hiding & ~fast_path_thresholds.off;
  fast_path_thresholds.off |= hiding;
  fast_path_thresholds.off &= ~(switched_off & ~hiding);
  switched_off &= hiding;
}

}  // namespace

void start_observing(Observing who) {
  const ObserverLock lock(switching);
  switch_off_for(observing.load(std::memory_order_relaxed) | who);
  observing.fetch_or(who, std::memory_order_release);
}
void stop_observing(Observing who) {
  const ObserverLock lock(switching);
  const auto others = static_cast<std::uint8_t>(~who);
  switch_off_for(observing.fetch_and(others, std::memory_order_release) & others);
}

namespace {

/// What is recorded about a call of a kernel, or of another function of an op.
class CallEvent {
 public:
  /// `result`: what it writes to, if that is not the call's outputs.
  CallEvent(const OpCall& call, const TensorDesc* result, std::int32_t origin) : call_(call), result_(result) {
    event_.event.name = call.op.name;
    event_.event.origin = origin;
    event_.event.device = call.device;
    begin_event(event_);
  }
  ~CallEvent() {
    if (cancelled_) return;
    describe();
    end_event(event_);
  }
  /// Nothing was run.
  void cancel() noexcept {
    cancelled_ = true;
    cancel_event(event_);
  }
  CallEvent(const CallEvent&) = delete;
  CallEvent& operator=(const CallEvent&) = delete;

 private:
  void describe() noexcept try {
    for (int i = 0; i < call_.n_in; ++i) event_.specs.push_back(*call_.in[i].desc);
    event_.event.n_in = call_.n_in;
    event_.event.n_out = result_ ? 1 : call_.n_out;
    if (result_) event_.specs.push_back(*result_);
    for (int i = 0; !result_ && i < call_.n_out; ++i) event_.specs.push_back(*call_.out[i]);
  } catch (...) {  // no memory: without shapes
    event_.specs.clear();
    event_.event.n_in = event_.event.n_out = 0;
  }

  OpenEvent event_;
  const OpCall& call_;
  const TensorDesc* result_;
  bool cancelled_ = false;
};

/// The origin of a call, which is also that of what runs inside of it.
class OriginScope {
 public:
  explicit OriginScope(std::int32_t of) : origin(of >= kFirstOrigin ? of : origin_here(context())) {
    tls_observed.origin = origin;
  }
  ~OriginScope() { tls_observed.origin = before_; }
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;
  const std::int32_t origin;

 private:
  const std::int32_t before_ = tls_observed.origin;
};

}  // namespace

void run_observed(Kernel kernel, const OpCall& call, std::int32_t recorded) {
  const std::uint8_t who = who_observes();
  if (who == kNobody) return kernel(call);
  const OriginScope from(recorded);
  if (who & kProfile) {
    const CallEvent event(call, nullptr, from.origin);
    kernel(call);
  } else {
    kernel(call);
  }
  if (who & kDetectNan) check_results(call, from.origin);
}

void run_repeated(const OpCall& call, TensorDesc& out, std::int32_t recorded) {
  if (!observed() || !(who_observes() & kProfile)) return call.op.repeated(call, out, out.data());
  const OriginScope from(recorded);
  const CallEvent event(call, &out, from.origin);
  call.op.repeated(call, out, out.data());
}

bool run_accumulate(const OpCall& call, TensorDesc& sum, std::int32_t recorded) {
  if (!observed() || !(who_observes() & kProfile)) return call.op.accumulate(call, sum);
  const OriginScope from(recorded);
  CallEvent event(call, &sum, from.origin);
  const bool done = call.op.accumulate(call, sum);
  if (!done) event.cancel();
  return done;
}

void ObservedScope::begin(const char* name, const char* prefix, const Node* adjoint_of) noexcept try {
  if (!(who_observes() & kProfile)) return;
  auto made = std::make_unique<OpenEvent>();
  made->event.kind = RecordedEvent::scope;
  made->event.name = kept_name(std::string(prefix) + name);
  made->event.origin = adjoint_of ? origin_of_adjoint(*adjoint_of) : origin_here(context());
  event_ = made.release();
  begin_event(*event_);
} catch (...) {  // no memory for it
}
void ObservedScope::end() noexcept {
  end_event(*event_);
  delete event_;
}

void FusedScope::add(const OpDef& op, std::int32_t origin) {
  if (!(who_observes() & kProfile)) return;
  if (!event_) {
    event_ = new OpenEvent;
    event_->event.kind = RecordedEvent::fused;
    event_->event.origin = origin;
  }
  if (!event_->names.empty()) event_->names += " + ";
  event_->names += op.name;
}
void FusedScope::reads(const TensorDesc& x) {
  if (!event_) return;
  event_->specs.push_back(x);
  ++event_->event.n_in;
}
void FusedScope::begin(const TensorDesc& result) {
  if (!event_) return;
  event_->specs.push_back(result);
  event_->event.n_out = 1;
  event_->event.name = kept_name(event_->names);
  event_->event.device = result.device;
  if (event_->event.origin < kFirstOrigin) event_->event.origin = origin_here(context());
  begin_event(*event_);
}
void FusedScope::cancel() noexcept {
  cancel_event(*event_);
  forget();
}
void FusedScope::forget() noexcept { delete std::exchange(event_, nullptr); }

}  // namespace kassette::ops

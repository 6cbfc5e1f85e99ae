// ops/engine/detect_nan.cpp - which op made the first NaN or infinity, and of what.
#include "ops/engine/detect_nan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check_interrupt.h"
#include "core/convert.h"
#include "core/print/decimal.h"
#include "core/source_lines.h"
#include "core/storage.h"
#include "ops/engine/observe.h"
#include "ops/engine/refusals.h"
#include "ops/product/zero_terms.h"

namespace kassette::ops {
namespace {

// ---- the scopes -----------------------------------------------------------------------------------------------------

struct Scopes {
  std::mutex mutex;
  int of_nan = 0, of_infinities = 0;  // that look for NaN alone, and for both
};
constinit Scopes scopes;
constinit std::atomic<bool> infinities_too{false};

// ---- the search -----------------------------------------------------------------------------------------------------

/// How many elements of a tensor are no numbers, and the range of the others.
struct Found {
  std::int64_t n = 0, nan = 0, inf = 0, minus_inf = 0;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  bool bad(bool infinities) const { return nan || (infinities && (inf || minus_inf)); }
};

Found count(const std::byte* data, DType dtype, std::int64_t n) {
  Found f;
  f.n = n;
  dispatch(dtype, [&](auto* p) {
    const auto* x = reinterpret_cast<const std::remove_pointer_t<decltype(p)>*>(data);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto v = convert_one<double>(x[i]);
      if (std::isnan(v)) ++f.nan;
      else if (std::isinf(v)) ++(v > 0 ? f.inf : f.minus_inf);
      else f.least = std::min(f.least, v), f.most = std::max(f.most, v);
    }
  });
  return f;
}

/// The elements of a tensor on the host.
class HostElements {
 public:
  /// `data` may be null: its value was not needed.
  HostElements(const TensorDesc& b, const std::byte* data) : data_(data) {
    if (!data || !b.known()) return;
    // A splat has one element; an input that is a variable has its storage elsewhere, and all of them.
    n_ = b.storage ? std::min(b.numel(), b.storage->bytes / b.dtype.size()) : b.numel();
    if (b.device == cpu || n_ == 0) return;
    copy_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(n_ * b.dtype.size()));
    device_api(b.device).copy_to_host(copy_.get(), data, n_ * b.dtype.size());
    data_ = copy_.get();
  }
  const std::byte* data() const { return data_; }
  std::int64_t size() const { return n_; }

 private:
  const std::byte* data_;
  std::int64_t n_ = 0;
  std::unique_ptr<std::byte[]> copy_;
};

// ---- the error ------------------------------------------------------------------------------------------------------

std::string number_text(double v) { return general_text(v, 6); }

std::string counts_text(const Found& f) {
  std::string said;
  const auto add = [&](std::int64_t n, const char* what) {
    if (n) said += text(said.empty() ? "" : ", ", n, ' ', what);
  };
  add(f.nan, "NaN");
  add(f.inf, "inf");
  add(f.minus_inf, "-inf");
  return said;
}
/// "from -1 to 2", or "0.5" if all are that; empty if there are none.
std::string range_text(const Found& f) {
  if (f.least > f.most) return {};
  return f.least == f.most ? number_text(f.least) : text("from ", number_text(f.least), " to ", number_text(f.most));
}

/// "x (3,) float32 from -1 to 2", "y () float32 of 0.5", or "x (3,) float32, which already has 1 NaN".
std::string input_text(const OpCall& call, int i, bool infinities) {
  const TensorDesc& b = *call.in[i].desc;
  std::string said = text(input_name(call.op, i), ' ', shape_text(b), ' ', b.dtype);
  const HostElements x(b, call.in[i].data);
  if (!x.size()) return said;
  const Found f = count(x.data(), b.dtype, x.size());
  if (f.bad(infinities)) return said + ", which already has " + counts_text(f);
  if (f.inf || f.minus_inf) said += " with " + counts_text(f);
  if (f.least < f.most) return said + ' ' + range_text(f);
  return f.least == f.most ? said + " of " + range_text(f) : said;
}

[[noreturn]] void refuse_result(const OpCall& call, const TensorDesc& result, const Found& f, std::int32_t code) {
  const Origin origin = origin_of(code);
  const bool infinities = infinities_too.load(std::memory_order_relaxed);
  const char* function = origin.function ? origin.function : origin.adjoint_of ? origin.adjoint_of : call.op.name;
  std::string said;
  if (origin.adjoint_of)
    said += text(function == std::string(origin.adjoint_of) ? "in its adjoint, "
                                                            : text("in the adjoint of ", origin.adjoint_of, ", "));
  if (origin.adjoint_of || std::string(function) != call.op.name) said += text(call.op.name, ' ');
  said += text("gave ", counts_text(f), " in its result ", shape_text(result), ' ', result.dtype);
  if (const std::string others = range_text(f); !others.empty()) said += ", else " + others;
  constexpr int kMost = 4;  // inputs
  for (int i = 0; i < call.n_in && i < kMost; ++i)
    said += (i ? ", " : call.n_in > 1 ? ", of the inputs " : ", of the input ") + input_text(call, i, infinities);
  if (call.n_in > kMost) said += text(" and ", call.n_in - kMost, " more");
  if (const std::string line = source_lines({origin.caller})[0]; !line.empty()) said += ", called at " + line;
  fail<RuntimeError>({function}, said);
}

thread_local std::exception_ptr kept;

}  // namespace

void start_detecting(bool infinities) {
  const ObserverLock lock(scopes.mutex);
  ++(infinities ? scopes.of_infinities : scopes.of_nan);
  infinities_too.store(scopes.of_infinities > 0, std::memory_order_relaxed);
  if (scopes.of_infinities + scopes.of_nan == 1) start_observing(kDetectNan);
}
void stop_detecting(bool infinities) {
  const ObserverLock lock(scopes.mutex);
  --(infinities ? scopes.of_infinities : scopes.of_nan);
  infinities_too.store(scopes.of_infinities > 0, std::memory_order_relaxed);
  if (scopes.of_infinities + scopes.of_nan == 0) stop_observing(kDetectNan);
}
bool detecting_nan() { return observing.load(std::memory_order_relaxed) & kDetectNan; }

void check_results(const OpCall& call, std::int32_t origin) {
  const bool infinities = infinities_too.load(std::memory_order_relaxed);
  for (int i = 0; i < call.n_out; ++i) {
    const TensorDesc& b = *call.out[i];
    if (!b.dtype.is_float() || !b.storage) continue;
    const HostElements x(b, b.data());
    if (!x.size() || all_finite(b.dtype, x.data(), x.size())) continue;
    const Found f = count(x.data(), b.dtype, x.size());
    if (!f.bad(infinities)) continue;
    if (on_interrupt.action != InterruptPolicy::ignore) refuse_result(call, b, f, origin);
    if (kept) return;
    try {
      refuse_result(call, b, f, origin);
    } catch (...) {
      kept = std::current_exception();
    }
    return;
  }
}

void throw_found() {
  if (kept) std::rethrow_exception(std::exchange(kept, nullptr));
}

}  // namespace kassette::ops

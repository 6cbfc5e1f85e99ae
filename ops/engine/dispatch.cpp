// ops/engine/dispatch.cpp - calls into an external backend: boxing, the call, its errors.
#include "ops/engine/dispatch.h"

#include <cxxabi.h>

#include <algorithm>
#include <vector>

#include <kassette/interrupt.h>

#include "core/rank.h"
#include "ops/engine/operand.h"

namespace kassette::ops {

using Boxed = external::Value;

constinit std::atomic<ActiveBackend> active_backend{ActiveBackend::unset};

namespace {
constinit std::atomic<const ExternalBackend*> backend_in_use{nullptr};
}

ExternalBackend::Run ExternalBackend::find(std::string_view function) const {
  auto at = functions.find(function);
  return at != functions.end() ? at->second : any;
}

void use_backend(const ExternalBackend* backend) {
  if (backend) backend_in_use.store(backend, std::memory_order_release);
  active_backend.store(backend ? ActiveBackend::external : ActiveBackend::built_in, std::memory_order_release);
}
const ExternalBackend* external_backend() {
  return active_backend.load(std::memory_order_acquire) == ActiveBackend::external
             ? backend_in_use.load(std::memory_order_acquire)
             : nullptr;
}

bool external_answers() {
  if (context().in_external_call) return false;
  load_configuration();
  return active_backend.load(std::memory_order_acquire) == ActiveBackend::external;
}

// ---- boxing ---------------------------------------------------------------------------------------------------------

Boxed box(const Scalar& v) {
  switch (Access::kind(v)) {
    case Scalar::kBool: return Access::int_value(v) != 0;
    case Scalar::kInt: return Access::int_value(v);
    case Scalar::kUint:
      if (Access::int_value(v) < 0) return static_cast<double>(static_cast<std::uint64_t>(Access::int_value(v)));
      return Access::int_value(v);
    case Scalar::kFloat: return Access::float_value(v);
    default: return Boxed();
  }
}
Boxed box(const Operand& v) {
  switch (Access::kind(v)) {
    case Scalar::kTensor: return tensor_of(v);
    case Scalar::kArray:
    case Scalar::kShaped: return as_tensor(v, Access::dtype(v), "external");
    case Scalar::kList: break;
    default: return box(static_cast<const Scalar&>(v));
  }
  std::vector<Boxed> items;
  auto* list = static_cast<const Operand*>(Access::pointer(v));
  for (std::size_t i = 0; i < Access::count(v); ++i) items.push_back(box(list[i]));
  return Boxed::list(items.data(), static_cast<int>(items.size()));
}
Boxed box(const Dims& v) {
  if (v.whole_) return *v.whole_;
  if (v.size_ < 0) return Boxed();
  check_length({"external", "shape"}, v);
  Boxed items[kMaxRank];
  for (int i = 0; i < v.size_; ++i) {
    const Dim& d = v.dims_[i];
    if (d.tensor_) items[i] = *d.tensor_;
    else if (d.value_ != Dim::kNoneDim) items[i] = Boxed(d.value_);
  }
  return Boxed::list(items, v.size_);
}
Boxed box(const Axes& v) {
  if (v.size_ < 0) return Boxed();
  check_length({"external", "axis"}, v);
  Boxed items[kMaxRank];
  std::copy(v.axes_, v.axes_ + v.size_, items);
  return Boxed::list(items, v.size_);
}
Boxed box(const Shape& v) {
  if (v.rank() < 0) return Boxed();
  Boxed items[kMaxRank];
  for (int i = 0; i < v.rank(); ++i) items[i] = box(v[i]);
  return Boxed::list(items, v.rank());
}
Boxed box(Extent v) { return v.known() ? Boxed(std::int64_t(v)) : Boxed(); }

/// Numbers and tensors are boxed as such, anything else as text in the syntax of x["..., 1:5"].
Boxed box(const Index& v) {
  switch (Access::kind(v)) {
    case Index::kInt: return Access::start(v);
    case Index::kTensor: return *static_cast<const Tensor*>(Access::pointer(v));
    case Index::kText: return Boxed(Name(Access::text(v)));
    case Index::kEllipsis: return "...";
    case Index::kNewAxis: return "newaxis";
    default: break;
  }
  std::string s;
  if (Access::has(v) & 1) s += std::to_string(Access::start(v));
  s += ':';
  if (Access::has(v) & 2) s += std::to_string(Access::stop(v));
  if (Access::step(v) != 1) s += ':' + std::to_string(Access::step(v));
  return Boxed(Name(s));
}

namespace {
struct LazyBranch {
  Branch branch;
  Tensor operator()() const {
    return Access::returns_number(branch) ? as_tensor(Access::number(branch), DType(), "a branch")
                                          : Access::call(branch);
  }
};
}  // namespace
Boxed box(const Branch& v) {
  if (!Access::lazy(v)) return box(Access::value(v));
  return detail::box_code<LazyBranch>(LazyBranch{v});
}

// ---- unboxing -------------------------------------------------------------------------------------------------------

Tensor Unbox<Tensor>::from(const Boxed& v) { return v.as_tensor(); }
Tensors Unbox<Tensors>::from(const Boxed& v) { return v.as_tensors(); }
bool Unbox<bool>::from(const Boxed& v) { return v.as_bool(); }
std::int64_t Unbox<std::int64_t>::from(const Boxed& v) { return v.as_int(); }
Extent Unbox<Extent>::from(const Boxed& v) { return Extent(v.is_none() ? -1 : v.as_int()); }
DType Unbox<DType>::from(const Boxed& v) { return v.is_none() ? DType() : DType(Name(std::string(v.as_text()))); }
Shape Unbox<Shape>::from(const Boxed& v) {
  if (v.is_none()) return Shape(nullptr, -1);
  std::int64_t dims[kMaxRank];
  (void)checked_rank("external", v.size());
  for (int i = 0; i < v.size(); ++i) dims[i] = v[i].is_none() ? kUnknown : v[i].as_int();
  return Shape(dims, v.size());
}

namespace {

std::string list_text(const Boxed& list) { return text("a list of ", list.size()); }

}  // namespace

void fail_list(const Boxed& list, const char* expected) {
  fail<TypeError>({"external"}, list_text(list), kExpected, "it must be a list of ", expected);
}

void fail_answer(const char* name, const Boxed& answer) {
  const ExternalBackend* b = external_backend();
  const std::string what = answer.kind() == Boxed::kTensor ? "a tensor"
                           : answer.kind() == Boxed::kList ? list_text(answer)
                                                           : text(answer);
  try {
    throw;
  } catch (const Error& e) {
    const bool said = what == e.given();
    fail<TypeError>({name}, "the backend '", b ? b->name : "", "' returned ", what, said ? "" : ": ",
                    said ? "" : e.given(), kExpected, e.expected(), kRemedy, e.remedy());
  }
}

// ---- the call -------------------------------------------------------------------------------------------------------

namespace {

/// The first line of the message of a foreign exception.
std::string first_line(const char* what) {
  const std::string s = what;
  return s.substr(0, s.find('\n'));
}

/// Returns f(), which calls the backend. Foreign exceptions that the backend itself throws become RuntimeErrors.
template <class F>
Boxed guarded(const char* name, F f) {
  Context& c = context();
  const ExternalBackend* b = external_backend();
  const char* backend = b ? b->name.c_str() : "";
  ExternalBackendAccess::ActiveCall active;
  Scoped<bool> inside(c.in_external_call, true);
  Scoped<void*> innermost(c.external_call, &active);
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    if (active.passing == std::current_exception()) throw;
    fail<RuntimeError>({name}, "the backend '", backend, "' failed: ", first_line(e.what()));
  } catch (...) {
    if (active.passing == std::current_exception()) throw;
    fail<RuntimeError>({name}, "the backend '", backend, "' threw something that is not a std::exception");
  }
}

}  // namespace

Boxed call_backend(const char* name, const Boxed* args, int n_args, ExternalBackendAccess::RunBuiltIn run_built_in,
                   const void* built_in) {
  const ExternalBackend* b = external_backend();
  ExternalBackend::Run run = b ? b->find(name) : nullptr;
  if (!run) fail<NotImplementedError>({name}, "the backend '", b ? b->name : "", "' does not provide it");
  return guarded(name, [&] { return run(ExternalBackendAccess::call(name, args, n_args, run_built_in, built_in)); });
}
Boxed call_code(const char* name, const Boxed& code, std::initializer_list<Boxed> args) {
  return guarded(name, [&] { return code(args); });
}

Boxed detail::run_callback(Boxed (*run)(const void* f, const Boxed* args), const void* f, int wanted, const Boxed* args,
                           int n_args) {
  if (n_args != wanted) fail<ValueError>({"external"}, "a callable of ", wanted, " arguments is called with ", n_args);
  Scoped<bool> outside(context().in_external_call, false);
  try {
    return run(f, args);
  } catch (...) {
    ExternalBackendAccess::let_pass();
    throw;
  }
}

}  // namespace kassette::ops

// ops/engine/dispatch.h - dispatch of K functions and operators to the built-in backend or to an external one.
//
// Note [External backends]
// Every K function and operator begins with KASSETTE_DISPATCH or KASSETTE_ROUTE: one load and one branch while the
// built-in backend is active. Otherwise its arguments are boxed (box), the external backend's entry is called, and the
// result is unboxed (unbox). During that call ScopeState::in_external_call is set, so that K functions that the
// backend calls are the built-in ones. The backend can also hand the whole call back: `again` calls the same built-in
// function with the same arguments. Until the configuration is first needed active_backend is ActiveBackend::unset, so
// that the same branch also reads keras.json at the first use.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include <kassette/error.h>
#include <kassette/kept.h>

#include "core/external_backend_access.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// An external backend that has been loaded. Never freed, since threads may be running in it.
struct ExternalBackend {
  using Run = external::Value (*)(const external::Call& call);
  std::string name;
  std::unordered_map<std::string_view, Run> functions;
  Run any = nullptr;  // the entry "*", for functions without an entry of their own
  /// Returns the entry for a function, or else `any`, which may be null.
  Run find(std::string_view function) const;
};

/// Which backend runs K functions; unset until the configuration has been read.
enum class ActiveBackend : std::uint8_t { unset, built_in, external };
extern std::atomic<ActiveBackend> active_backend;
/// Selects the backend for K functions from now on; null selects the built-in one.
void use_backend(const ExternalBackend* backend);
const ExternalBackend* external_backend();
/// Reads the configuration and loads the backend, unless that has been done already
/// (nn_backend/configuration/config.cpp).
void load_configuration();

/// True if calls of this thread go to an external backend.
bool external_answers();
inline bool built_in_active() {
  return __builtin_expect(active_backend.load(std::memory_order_relaxed) == ActiveBackend::built_in, 1);
}
inline bool runs_externally() { return !built_in_active() && external_answers(); }

// ---- boxing of arguments --------------------------------------------------------------------------------------------

inline external::Value box(const external::Value& v) { return v; }
inline external::Value box(bool v) { return v; }
inline external::Value box(int v) { return v; }
inline external::Value box(long v) { return v; }
inline external::Value box(double v) { return v; }
inline external::Value box(DType v) { return v.given() ? external::Value(Name(v)) : external::Value(); }
inline external::Value box(Name v) { return v; }
inline external::Value box(const Tensor& v) { return v; }
inline external::Value box(const Tensors& v) { return v; }
external::Value box(const Scalar& v);
external::Value box(const Operand& v);
external::Value box(const Dims& v);
external::Value box(const Axes& v);
external::Value box(const Shape& v);
external::Value box(Extent v);
external::Value box(const Index& v);
external::Value box(const Branch& v);

/// Boxes a callable of the user. K functions that it calls are dispatched to the backend again.
template <class R, class... A>
external::Value box(const Callable<R(A...)>& f);
template <class R, class... A>
external::Value box(const KeptCallable<R(A...)>& f);

// ---- unboxing of results --------------------------------------------------------------------------------------------

/// Converts a result to R. If the backend returned something else, unbox() throws a TypeError in the name of the
/// function.
template <class R>
struct Unbox;
template <>
struct Unbox<void> {
  static void from(const external::Value&) {}
};
template <>
struct Unbox<external::Value> {
  static external::Value from(const external::Value& v) { return v; }
};
#define KASSETTE_UNBOX(Type) \
  template <> \
  struct Unbox<Type> { \
    static Type from(const external::Value& v); \
  }
KASSETTE_UNBOX(Tensor);
KASSETTE_UNBOX(Tensors);
KASSETTE_UNBOX(bool);
KASSETTE_UNBOX(std::int64_t);
KASSETTE_UNBOX(Shape);
KASSETTE_UNBOX(Extent);
KASSETTE_UNBOX(DType);

/// Throws the TypeError for a list from a backend that has another number of items than `expected`, "three tensors".
[[noreturn]] void fail_list(const external::Value& list, const char* expected);
/// Inside a catch: throws the TypeError for a result of the wrong kind.
[[noreturn]] void fail_answer(const char* name, const external::Value& answer);
template <class R>
R unbox(const char* name, const external::Value& answer) {
  try {
    return Unbox<R>::from(answer);
  } catch (const Error&) {
    fail_answer(name, answer);
  }
}

// ---- the call -------------------------------------------------------------------------------------------------------

/// Calls the backend's entry. Throws NotImplementedError if the backend has no such entry. A foreign exception of the
/// backend becomes a RuntimeError that names the function and the backend; Errors, and exceptions that only pass
/// through the backend, are rethrown unchanged.
external::Value call_backend(const char* name, const external::Value* args, int n_args,
                             ExternalBackendAccess::RunBuiltIn run_built_in, const void* built_in);
/// Calls a callable that the backend returned, in the same way.
external::Value call_code(const char* name, const external::Value& code, std::initializer_list<external::Value> args);

/// Boxes the arguments, calls the backend and unboxes its result.
template <class F, class... A>
__attribute__((noinline, cold)) auto route(const char* name, const F& again, const A&... args) {
  using R = decltype(again());
  const external::Value boxed[] = {box(args)..., external::Value()};
  auto run_built_in = [](const void* f) -> external::Value {
    if constexpr (std::is_void_v<R>) return (*static_cast<const F*>(f))(), external::Value();
    else return box((*static_cast<const F*>(f))());
  };
  return unbox<R>(name, call_backend(name, boxed, sizeof...(args), run_built_in, &again));
}

/// Returns from the enclosing function with the backend's result if calls go to a backend. `again`: an expression for
/// the call of the built-in backend.
#define KASSETTE_ROUTE(name, again, ...) \
  if (::kassette::ops::runs_externally()) \
  return ::kassette::ops::route(name, [=] { return again; } __VA_OPT__(, ) __VA_ARGS__)
/// KASSETTE_ROUTE for a K function, at its beginning: takes its name and all its arguments.
#define KASSETTE_DISPATCH(function, ...) \
  KASSETTE_ROUTE(#function, ::kassette::backend::function(__VA_ARGS__) __VA_OPT__(, ) __VA_ARGS__)

namespace detail {

/// Calls a boxed callable of the user from within the backend, with ScopeState::in_external_call unset; `wanted` is its
/// number of arguments.
external::Value run_callback(external::Value (*run)(const void* f, const external::Value* args), const void* f,
                             int wanted, const external::Value* args, int n_args);

template <class... A, class F, std::size_t... I>
external::Value run_unboxed(const F& f, [[maybe_unused]] const external::Value* args, std::index_sequence<I...>) {
  return box(f(Unbox<std::decay_t<A>>::from(args[I])...));
}
template <class F, class... A>
external::Value box_code(const F& f) {
  auto run = [](void* state, const external::Value* args, int n_args) {
    auto here = [](const void* g, const external::Value* a) {
      return run_unboxed<A...>(*static_cast<const F*>(g), a, std::index_sequence_for<A...>());
    };
    return run_callback(here, state, sizeof...(A), args, n_args);
  };
  auto release = [](void* state) { delete static_cast<F*>(state); };
  return external::Code{run, release, new F(f)};
}

}  // namespace detail

template <class R, class... A>
external::Value box(const Callable<R(A...)>& f) {
  return detail::box_code<Callable<R(A...)>, A...>(f);
}
template <class R, class... A>
external::Value box(const KeptCallable<R(A...)>& f) {
  return f.defined() ? detail::box_code<KeptCallable<R(A...)>, A...>(f) : external::Value();
}

}  // namespace kassette::ops

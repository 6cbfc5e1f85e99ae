// core/external_backend_access.h - the library's access to external::Call and external::Value, the interface of
// external backends.
#pragma once
#include <exception>

#include <kassette/external_backend.h>

#include "core/impl.h"

namespace kassette {

/// Makes and opens the opaque objects that are passed to an external backend.
struct ExternalBackendAccess {
  using RunBuiltIn = external::Value (*)(const void* call);
  static external::Call call(const char* name, const external::Value* args, int n_args, RunBuiltIn run,
                             const void* built_in) {
    external::Call c(name, args, n_args);
    c.run_built_in_ = run;
    c.built_in_ = built_in;
    return c;
  }
  /// The code that a value holds; null if it holds something else.
  static const external::Code* code(const external::Value& value);
  /// Throws the TypeError for a value of another kind than `expected`, "a tensor".
  [[noreturn]] static void fail_kind(const external::Value& value, const char* expected);
  /// A call into a backend in progress. `passing` is an exception of the built-in backend, or of user code that the
  /// backend calls: if the backend lets it through, it is not reported as the backend's failure.
  struct ActiveCall {
    std::exception_ptr passing;
  };
  /// In a catch clause: records the current exception as one that passes through the backend.
  static void let_pass();
};

inline bool is_foreign(const Tensor& t) { return t.defined() && (Access::desc(t).flags & kForeign); }
/// The name of the backend that a foreign tensor belongs to.
const char* foreign_backend(const TensorDesc& b);
[[noreturn]] __attribute__((cold)) void fail_foreign(const char* what, const TensorDesc& b);
std::string foreign_text(const TensorDesc& b);

}  // namespace kassette

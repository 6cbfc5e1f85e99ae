// core/engine_access.h - what the library knows of calls into backends of others.
#pragma once
#include <exception>

#include <kassette/engine.h>

#include "core/impl.h"

namespace kassette {

struct EngineAccess {
  using RunNative = engine::Value (*)(const void* call);
  static engine::Call call(const char* name, const engine::Value* args, int n_args, RunNative run, const void* native) {
    engine::Call c(name, args, n_args);
    c.run_native_ = run;
    c.native_ = native;
    return c;
  }
  /// The code that a value holds, or null.
  static const engine::Code* code(const engine::Value& value);
  /// A call into a backend. An exception of our own engine, or of the user's code that the backend calls, is noted in
  /// `passing`: where it comes out of the backend again it is not the backend's failure.
  struct Frame {
    std::exception_ptr passing;
  };
  /// Inside a catch: the exception only passes through the backend.
  static void let_pass();
};

inline bool is_foreign(const Tensor& t) { return t.defined() && (Access::body(t).flags & kForeign); }
/// The backend that such a tensor belongs to.
const char* foreign_backend(const Body& b);
[[noreturn]] __attribute__((cold)) void fail_foreign(const char* what, const Body& b);
std::ostream& describe_foreign(std::ostream& os, const Body& b);

}  // namespace kassette

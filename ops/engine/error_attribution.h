// ops/engine/error_attribution.h - errors name the function that the user called, not an op inside of it: eagerly and
// when a function runs.
//
// Note [Error attribution]
// An op's errors name the op: Error::function(). If the user called a function that is composed of several ops,
// attribute_errors sets the function's name in its place, and while the function runs Context::function says on whose
// behalf ops are recorded. The node keeps it, a plan's instruction takes it from the node, and an error of that
// instruction names the function as well. If functions are nested the outermost counts: it is the one that the user
// typed. Names are string literals of this library, so they are stored as the distance from one of them: half of a
// pointer, for which a node has room.
#pragma once
#include <string>

#include "core/impl.h"

namespace kassette::ops {

/// Inside a catch: rethrows the error with `what` as its function, provided that it names a function already or is a
/// MemoryError of the allocator, which names none. If `item` ("update 1") is given, it becomes the argument.
[[noreturn]] void rethrow_attributed(const char* what, const std::string& item = std::string());
/// Inside a catch: rethrows the error of an instruction of a program, with its function by that code; rethrow_for(op)
/// if that is 0.
[[noreturn]] void rethrow_of_instruction(std::int32_t function, const char* op);
/// Inside a catch: rethrows. A MemoryError without a name, as the allocator throws it, gets the name of `op`.
[[noreturn]] void rethrow_for(const char* op);
/// Inside a catch: rethrows the error of step t of a loop, with " (step 0 of 4 of rnn)" appended to its given().
[[noreturn]] void rethrow_in_step(std::int64_t t, std::int64_t steps, const std::string& what);

/// Converts a literal to the number in Context::function, and back. 0 stands for null, and for a literal that is too
/// far away to be in this library: errors then name the op. Larger numbers are those of origins: Note [Origins],
/// ops/engine/origin.h.
extern const char kNamesOrigin[];
inline constexpr std::int32_t kFirstOrigin = 1 << 30;  // codes from here on are those of origins: 1 GiB is far away
inline std::int32_t function_code(const char* literal) {
  const std::intptr_t distance =
      reinterpret_cast<std::intptr_t>(literal) - reinterpret_cast<std::intptr_t>(kNamesOrigin);
  const auto code = static_cast<std::int32_t>(distance);
  return code == distance ? code : 0;
}
const char* literal_at(std::int32_t code);
/// The function behind a code of either kind; null if there is none.
const char* function_name(std::int32_t code);

/// While alive, ops recorded on this thread are reported in errors as `function`. The outermost scope wins.
class AttributionScope {
 public:
  explicit AttributionScope(std::int32_t function) : function_(context().function), before_(function_) {
    if (!before_) function_ = function;
  }
  ~AttributionScope() { function_ = before_; }
  AttributionScope(const AttributionScope&) = delete;
  AttributionScope& operator=(const AttributionScope&) = delete;

 private:
  std::int32_t& function_;
  std::int32_t before_;
};

/// Returns f(), whose errors name `what`, a string literal. f must not call the user's code.
template <class F>
auto attribute_errors(const char* what, F&& f) {
  AttributionScope named(function_code(what));
  try {
    return f();
  } catch (...) {
    rethrow_attributed(what);
  }
}

}  // namespace kassette::ops

// ops/error_attribution.h - messages of compositions: errors in the name of the function that the user called, at once and in replays.
//
// Note [Error attribution]
// A row's errors bear the row's name. Where the user called a function that is made of several rows, attribute_errors puts the name of
// that function in its place, and while it runs Context::function says whose ops are recorded. A node keeps that, a plan's step
// takes it from the node, and what fails when the step is played is said in that name too. Of nested functions the outermost
// counts: that is what the user typed. Names are literals of this library, so that what is kept is their distance from one of
// them: half of a pointer, for which a node has room.
#pragma once
#include <cassert>
#include <string>

#include "core/impl.h"

namespace kassette {

/// Inside a catch: throws the error again, its message in the name of `what` instead of that of an op inside. Null: as it is.
[[noreturn]] void rethrow_attributed(const char* what);
/// That message.
std::string renamed(const char* message, const char* what);
/// Inside a catch: a MemoryError that names nobody, as the allocator throws it, again in the name of `op`; all else as it is.
[[noreturn]] void rethrow_for(const char* op);
bool names_nobody(const char* message);

/// What Context::function says of a literal, and back. 0 is null.
extern const char kNamesOrigin[];
inline std::int32_t function_code(const char* literal) {
  std::intptr_t distance = reinterpret_cast<std::intptr_t>(literal) - reinterpret_cast<std::intptr_t>(kNamesOrigin);
  assert(distance == static_cast<std::int32_t>(distance));
  return static_cast<std::int32_t>(distance);
}
const char* function_name(std::int32_t code);

/// Ops recorded while it is there are those of a function, unless they are those of one outside of it already.
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

/// f(), whose errors speak in the name of `what`, a literal. f calls nothing of the user's.
template <class F>
auto attribute_errors(const char* what, F&& f) {
  AttributionScope named(function_code(what));
  try {
    return f();
  } catch (...) {
    rethrow_attributed(what);
  }
}

}  // namespace kassette

// core/text.h - building one-line messages. Cold code: never inlined into a kernel.
#pragma once
#include <sstream>
#include <string>

#include <kassette/error.h>

#include "core/impl.h"

namespace kassette {

/// "(2, None, 3)", or "(...)" for an unknown rank.
std::string shape_text(const Spec& spec);
inline std::string shape_text(const Shape& s) {
  std::ostringstream os;
  os << s;
  return os.str();
}
std::ostream& operator<<(std::ostream& os, const Spec& spec);

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream os;
  (os << ... << parts);
  return os.str();
}

/// Throws E with the parts joined: fail<ValueError>("dot: ", a, " x ", b, ": inner dimensions differ").
template <class E, class... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail(const Parts&... parts) {
  throw E(text(parts...).c_str());
}

}  // namespace kassette

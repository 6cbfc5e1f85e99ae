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

/// Inside a catch: throws the error again as what `edit` makes of its message. Other exceptions pass as they are.
template <class F>
[[noreturn]] void rethrow_edited(F&& edit) {
  try {
    throw;
  } catch (const ValueError& e) {
    throw ValueError(edit(e.what()).c_str());
  } catch (const TypeError& e) {
    throw TypeError(edit(e.what()).c_str());
  } catch (const DeviceError& e) {
    throw DeviceError(edit(e.what()).c_str());
  } catch (const MemoryError& e) {
    throw MemoryError(edit(e.what()).c_str());
  } catch (const RuntimeError& e) {
    throw RuntimeError(edit(e.what()).c_str());
  } catch (const NotImplementedError& e) {
    throw NotImplementedError(edit(e.what()).c_str());
  }
}

/// Throws E with the parts joined: fail<ValueError>("dot: ", a, " x ", b, ": inner dimensions differ").
template <class E, class... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail(const Parts&... parts) {
  throw E(text(parts...).c_str());
}

}  // namespace kassette

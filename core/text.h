// core/text.h - building one-line messages. Cold code: never inlined into a kernel.
#pragma once
#include <sstream>
#include <string>
#include <type_traits>
#include <typeinfo>

#include <kassette/error.h>

#include "core/impl.h"

namespace kassette {

/// "(2, None, 3)", or "(...)" for an unknown rank.
std::string shape_text(const TensorSpec& spec);
inline std::string shape_text(const Shape& s) {
  std::ostringstream os;
  os << s;
  return os.str();
}
std::ostream& operator<<(std::ostream& os, const TensorSpec& spec);

/// Writes a line of K::print_tensor to the print sink, by default stdout. The library writes nothing else there.
void write_print(const std::string& line);

/// A copy of a name; empty for None.
inline std::string string_of(Name name) { return name.given() ? std::string(name.data(), name.size()) : std::string(); }

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream os;
  os.exceptions(std::ios_base::badbit);  // or a failed allocation would silently cut the text short
  (os << ... << parts);
  return os.str();
}

/// In a catch clause: rethrows one of the library's errors with its message replaced by edit(message), any other exception unchanged.
template <class F>
[[noreturn]] void rethrow_edited(F&& edit) {
  auto again = [&](const auto& e) {
    using E = std::decay_t<decltype(e)>;
    if (typeid(e) != typeid(E)) throw;  // a user's own class
    throw E(edit(e.what()).c_str());
  };
  try {
    throw;
  } catch (const ValueError& e) {
    again(e);
  } catch (const TypeError& e) {
    again(e);
  } catch (const DeviceError& e) {
    again(e);
  } catch (const MemoryError& e) {
    again(e);
  } catch (const RuntimeError& e) {
    again(e);
  } catch (const NotImplementedError& e) {
    again(e);
  }
  throw;  // never reached: other exceptions have left the try block
}

/// Throws E with the parts joined: fail<ValueError>("dot: ", a, " x ", b, ": inner dimensions differ").
template <class E, class... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail(const Parts&... parts) {
  throw E(text(parts...).c_str());
}

}  // namespace kassette

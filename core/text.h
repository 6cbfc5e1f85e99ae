// core/text.h - building one-line messages. Cold code: never inlined into a kernel.
#pragma once
#include <sstream>
#include <string>

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

/// What an error is about: a function, and the argument that is wrong; empty if there is none.
struct At {
  constexpr At(const char* of = "", const char* which = "") : function(of), argument(which) {}
  const char *function, *argument;
};

/// Throws E with the parts joined: fail<ValueError>({"dot"}, a, " x ", b, ": inner dimensions differ") or, if one
/// argument is wrong, fail<TypeError>({"dot", "x"}, "is ", dtype).
template <class E, class... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail(const At& at, const Parts&... parts) {
  throw E(at.function, at.argument, text(parts...).c_str());
}

/// fail() about one of a list: fail_item<ValueError>("function", "input", 2, "is given twice").
template <class E, class... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail_item(const char* function, const char* item, std::int64_t i,
                                                            const Parts&... parts) {
  fail<E>({function, text(item, ' ', i).c_str()}, parts...);
}

/// The description of an empty Tensor: most are results of K::gradients for tensors that the loss does not depend on.
inline constexpr const char kEmptyTensor[] = "an empty Tensor (a gradient that is None, or an uninitialised variable?)";
/// Throws the ValueError for an argument that is an empty Tensor.
[[noreturn]] void fail_empty(const At& at);
/// Throws the TypeError for an argument of that dtype where a float dtype is needed.
[[noreturn]] void fail_not_float(const At& at, DType dtype);

/// A variable or a placeholder for messages: "'w' (2, 3)", or its shape alone.
std::string leaf_text(const Cell& leaf);
/// The cell of a leaf; null if the tensor has no node, as is the case while a function runs.
inline const Cell* cell_of(const TensorDesc& b) { return b.node ? b.node->cell.get() : nullptr; }
/// "the variable 'w'", or "the variable" if it has no name or is not known (null).
std::string variable_text(const Cell* variable);
/// Between the item of a list, "update 1", and an error about what it holds.
inline constexpr const char kIsRefused[] = "is refused: ";
/// Throws the ValueError for a value whose shape is not `spec`, that of its variable. at.argument: the update, or
/// empty.
[[noreturn]] void fail_shapes(const At& at, const Cell* variable, const TensorSpec& spec, const TensorSpec& value);
/// Throws the RuntimeError for a variable that has no value. at.argument: the update that reads it, or empty.
[[noreturn]] void fail_unset(const At& at, const Cell& variable);

/// Reads and replaces the parts of an Error, for code that rethrows it under another name.
struct ErrorAccess {
  /// The part of the message after the function and the argument.
  static const char* message(const Error& e);
  /// Replaces function, argument and message; the class of the error stays.
  static void set(Error& e, const char* function, const char* argument, const std::string& message) {
    e = Error(function, argument, message.c_str());
  }
};

}  // namespace kassette

// core/text.h - building one-line messages. Cold code: never inlined into a kernel.
#pragma once
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include <kassette/error.h>

#include "core/impl.h"

namespace kassette {

// Note [Text without a locale]
// What the library writes or reads is the same under every locale of C and C++. Text with numbers is put together in a
// PlainStream (text() does) or by <charconv>, and an operator<< of ours writes it to the user's stream as one string:
// the stream's locale and flags do not reach into it, and setw() pads the whole. Numbers are read by <charconv>, and
// messages of the system come from errno_text(), which has no translations.

/// A stream in the C locale, whichever locale the program has chosen.
class PlainStream : public std::ostringstream {
 public:
  PlainStream() {
    imbue(std::locale::classic());
    exceptions(std::ios_base::badbit);  // or a failed allocation would silently cut the text short
  }
};

/// What errno says, in English: strerror() would translate it.
const char* errno_text(int error) noexcept;

/// "(2, None, 3)", or "(...)" for an unknown rank.
std::string shape_text(const TensorSpec& spec);
std::string shape_text(const Shape& s);
std::ostream& operator<<(std::ostream& os, const TensorSpec& spec);

/// Writes a line of K::print_tensor to the print sink, by default stdout. The library writes nothing else there.
void write_print(const std::string& line);

/// A copy of a name; empty for None. Throws ValueError if there is a NUL in it: the name would end there for whoever
/// gets it as a C string.
std::string string_of(Name name);
/// Throws that error.
void check_text(Name name);

template <class... Parts>
std::string text(const Parts&... parts) {
  PlainStream os;
  (os << ... << parts);
  return os.str();
}

/// What an error is about: a function, and the argument that is wrong; empty if there is none.
struct At {
  constexpr At(const char* of = "", const char* which = "") : function(of), argument(which) {}
  const char *function, *argument;
};

/// Markers among the arguments of fail(): those after kExpected form Error::expected(), those after kRemedy
/// Error::remedy().
enum class ErrorPart { given, expected, remedy };
inline constexpr ErrorPart kExpected = ErrorPart::expected, kRemedy = ErrorPart::remedy;

/// Error::given(), expected() and remedy(), joined from the arguments of fail(). Appending is not inlined: there are
/// hundreds of calls of fail(), in the device libraries too.
struct ErrorText {
  template <class... Words>
  explicit ErrorText(const Words&... words) {
    (add(words), ...);
  }
  ErrorText(const ErrorText&) = delete;
  std::string given, expected, remedy;

 private:
  template <class Word>
  void add(const Word& word) {
    if constexpr (std::is_convertible_v<const Word&, std::string_view>) append(word);
    else append_streamed(word);
  }
  template <class Word>
  __attribute__((noinline, cold)) void append_streamed(const Word& word) {
    append(text(word));
  }
  // A NUL would end the message, which is handed on as a C string.
  __attribute__((noinline, cold)) void append(std::string_view words) {
    for (char c : words) now_->push_back(c ? c : '?');
  }
  void add(ErrorPart part) { now_ = part == kExpected ? &expected : part == kRemedy ? &remedy : &given; }

  std::string* now_ = &given;
};

/// Throws E with the words joined: fail<ValueError>({"dot"}, a, " x ", b, ": inner dimensions differ") or, if one
/// argument is wrong, fail<ValueError>({"repeat", "n"}, "is ", n, kExpected, "it must be at least 1").
template <class E, class... Words>
[[noreturn]] __attribute__((noinline, cold)) void fail(const At& at, const Words&... words) {
  const ErrorText said(words...);
  throw E(at.function, at.argument, said.given.c_str(), said.expected.c_str(), said.remedy.c_str());
}

/// fail() about one of a list: fail_item<ValueError>("function", "input", 2, "is given twice").
template <class E, class... Words>
[[noreturn]] __attribute__((noinline, cold)) void fail_item(const char* function, const char* item, std::int64_t i,
                                                            const Words&... words) {
  fail<E>({function, text(item, ' ', i).c_str()}, words...);
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

/// Replaces parts of an Error, for code that rethrows it under another name.
struct ErrorAccess {
  /// Replaces function, argument and given; the class of the error and its other parts stay.
  static void set(Error& e, const char* function, const char* argument, const std::string& given);
};

}  // namespace kassette

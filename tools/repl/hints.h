// tools/repl/hints.h - what people who come from Python type, and what to write instead.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/repl/input.h"

namespace repl {

/// What a prompt knows of our names.
struct OurNames {
  /// "K::sum" of "sum", "np::linalg::inv" of "inv"; empty where there is no such name.
  std::function<std::string(const std::string& name)> whole;
  /// The names in a namespace that begin so: "np::linalg::in".
  std::function<std::vector<std::string>(const std::string& begin)> beginning;
  /// Whether the name that the compiler proposes is one of the C library's or the standard library's.
  bool system_proposed = false;
};

/// A line "hint: ..." for the compiler's first error in `code`, or empty.
std::string hint_for(const std::string& error, const std::string& code, const OurNames& ours);

/// The error to show if "[1, 2]" is used as a list, else empty. clang 19 parses it as a lambda, and does not terminate
/// on K::constant([1, 2]).
std::string python_list(const std::string& code, const Input& in);

/// Hints, a line each, on what compiles and means another thing in NumPy, or hardly says what is wrong: x[i, j], f((a,
/// b)), x[:, 0].
std::string hints_before(const std::string& code, const Input& in);

/// Hints on what a prompt takes otherwise than a program: a line that begins with an operator, main().
std::string hints_at_prompt(const Input& in);

}  // namespace repl

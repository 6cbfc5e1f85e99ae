// tools/repl/hints.h - what people who come from Python type, and what to write instead.
#pragma once
#include <functional>
#include <string>

#include "tools/repl/input.h"

namespace repl {

/// A line "hint: ..." for the compiler's first error in `code`, or empty. `in_k` tells whether K has a name.
std::string hint_for(const std::string& error, const std::string& code,
                     const std::function<bool(const std::string&)>& in_k);

/// The error to show if "[1, 2]" is used as a list, else empty. clang 19 parses it as a lambda, and does not terminate
/// on K::constant([1, 2]).
std::string python_list(const std::string& code, const Input& in);

/// Hints, a line each, on what compiles and means another thing in NumPy, or hardly says what is wrong: x[i, j], f((a,
/// b)), x[:, 0].
std::string hints_before(const std::string& code, const Input& in);

/// Hints on what a prompt takes otherwise than a program: a line that begins with an operator, main().
std::string hints_at_prompt(const Input& in);

}  // namespace repl

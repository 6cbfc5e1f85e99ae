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

/// Hints, a line each, on commas that compile and mean another thing in NumPy: x[i, j] and f((a, b)).
std::string hints_on_commas(const Input& in);

}  // namespace repl

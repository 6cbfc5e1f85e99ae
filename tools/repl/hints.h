// tools/repl/hints.h - what people who come from Python type, and what to write instead.
#pragma once
#include <functional>
#include <string>

#include "tools/repl/input.h"

namespace repl {

/// "hint: ...", a line, for the first error that the compiler found in `code`; or nothing. `in_k`: whether K has that
/// name.
std::string hint_for(const std::string& error, const std::string& code,
                     const std::function<bool(const std::string&)>& in_k);

/// What is wrong where "[1, 2]" stands for a list, else nothing. clang 19 takes it for a lambda, and never comes back
/// from K::constant([1, 2]).
std::string python_list(const std::string& code, const Input& in);

/// Hints, a line each, on commas that compile and mean another thing in NumPy: x[i, j] and f((a, b)).
std::string hints_on_commas(const Input& in);

}  // namespace repl

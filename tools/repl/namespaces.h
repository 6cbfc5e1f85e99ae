// tools/repl/namespaces.h - members of a user's namespace, declared again.
#pragma once
#include <string>
#include <vector>

#include "tools/repl/input.h"
#include "tools/repl/wrapper.h"

namespace repl {

/// Whether the input has a namespace with a body at its outer level.
bool has_namespace(const Input& in);

/// What the namespaces of an input declare, a guess by tokens: "my::f".
std::vector<std::string> members(const std::string& code, const Input& in);

/// The code with what its namespaces declare in an inline namespace inside of them, so that it is another entity than
/// what they have already: `namespace my { int f(); }` becomes `namespace my { inline namespace line_7 { int f(); } }`.
/// Nested namespaces stay what they are.
std::string in_own_spaces(const Wrapper& wrapper, const Input& in, const std::string& own_space);

}  // namespace repl

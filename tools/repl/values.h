// tools/repl/values.h - the text of values whose types only the compiler knows.
#pragma once
#include <iosfwd>
#include <string>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Type.h"

namespace repl {

/// Whether values of this type can be written: enumerations, and classes whose members are all public.
bool has_text(clang::QualType type);

/// Writes a value at an address: an enumerator by its name, a class as "Name(member=value, ...)". Members of types that
/// neither the library nor this knows are their types in parentheses.
void write_value(clang::ASTContext& context, clang::QualType type, const void* value, std::ostream& out);

}  // namespace repl

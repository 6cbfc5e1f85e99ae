// tools/repl/source_lines.h - where in the user's code an exception was thrown or a signal came.
#pragma once
#include <string>

namespace repl {

/// A line of the user's code.
struct SourceLine {
  std::string file;
  int line = 0;  // 0: not known
};

/// Keeps the addresses on the stack, for an exception object.
void remember_stack(const void* thrown);
/// Keeps the address of one instruction. Safe in a signal handler.
void remember_address(const void* instruction);
void forget_stack();
/// The innermost line of the user's own files among the addresses kept; unknown if they are of another exception than
/// `thrown` (null: of any). Lines typed at the prompt are in the file that Interpreter::run was given.
SourceLine remembered_line(const void* thrown);

/// The line of a return address, "<stdin>:3"; empty if it is not in compiled input.
std::string line_of(const void* address);

}  // namespace repl

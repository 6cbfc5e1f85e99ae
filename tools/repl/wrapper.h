// tools/repl/wrapper.h - the code that is compiled, made from the code that was typed.
#pragma once
#include <algorithm>
#include <string>

#include "tools/repl/input.h"

namespace repl {

bool has_lambda(const Input& in);

// Note [Order]
// clang's interpreter initialises the variables of an input that have internal linkage (const and static ones,
// closures) before the others, wherever they stand. So an input where such a one stands behind something else, or a
// namespace that may have some, runs piece by piece.

/// Whether an input as a whole runs in the order in which it is written.
bool in_order(const Input& in);

/// An input that begins with `else`, as an `if` whose condition is that of the `if` in the input before.
std::string with_if(const Input& in, const std::string& code);

// Note [Statements]
// clang 19 crashes on many a statement at the top: one that begins with an operator or a parenthesis, has a lambda
// inside, or an error inside of a lambda. So what is a statement beyond doubt, and what is shown, becomes the body of a
// function, called by an initialiser.

/// Makes the code that is compiled from the code that was typed.
struct Wrapper {
  const std::string& code;
  const std::string& file;
  int line;
  int& serial;  // of the names that are made

  /// Tells the compiler the file and line of the code at `offset`.
  std::string mark(std::size_t offset) const {
    return "#line " + std::to_string(line_of(offset)) + " \"" + file + "\"\n";
  }
  int line_of(std::size_t offset) const {
    return line + static_cast<int>(std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  }
  std::size_t column(std::size_t offset) const {
    const std::size_t line_end = offset == 0 ? std::string::npos : code.rfind('\n', offset - 1);
    return line_end == std::string::npos ? offset : offset - line_end - 1;
  }
  std::string fresh_name() const { return "shown_" + std::to_string(++serial); }
  /// Begins user code. An initialiser as well: `f();` at the top may be read as a declaration.
  std::string enter() const { return "const int " + fresh_name() + " = kassette_repl_enter();\n"; }
  /// The code from `begin` to `end` between `before` and `after`, as a function that is called. Its initialiser is not
  /// a const variable: those are initialised before the others of their input.
  std::string function(std::size_t begin, std::size_t end, const char* after = "", const char* before = "") const {
    const std::string name = fresh_name(), value = fresh_name();
    return "static void " + name + "() {\n" + before + mark(begin) + code.substr(begin, end - begin) + after +
           "\n;}\nint " + value + " = (" + name + "(), 0);\n";
  }
  /// The code from `begin` on as an expression that is shown; its type is kept as that of a call of the function
  /// `name`.
  std::string shown(std::size_t begin, const std::string& name) const {
    return "static auto " + name + "() { return ::kassette::repl::detail::show_and_keep((\n" + mark(begin) +
           code.substr(begin) + "\n));}\nint " + fresh_name() + " = (" + name + "(), 0);\n";
  }
  /// The input, with its statements as functions; from in.shown on, if that is given, as it is.
  std::string statements(const Input& in) const {
    std::string body;
    std::size_t begin = in.shown == std::string::npos ? 0 : in.shown;
    if (in.shown == std::string::npos)
      for (const Input::Piece& piece : in.statements) {
        if (code.find_first_not_of(" \t\n", begin) < piece.begin)
          body += mark(begin) + code.substr(begin, piece.begin - begin) + "\n";
        const bool before_else = in.takes_else && &piece == &in.statements.back();
        body += function(piece.begin, piece.end, before_else ? "\nelse ::kassette_repl_else();" : "");
        begin = piece.end;
      }
    if (code.find_first_not_of(" \t\n", begin) != std::string::npos)
      body += mark(begin) + code.substr(begin) + (in.closed ? "" : "\n;");
    return body;
  }
};

}  // namespace repl

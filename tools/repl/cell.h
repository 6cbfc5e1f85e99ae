// tools/repl/cell.h - a text that is there as a whole (a script, a paste, a notebook's cell), as the inputs that it is
// made of.
#pragma once
#include <string>
#include <vector>

namespace repl {

/// A part of a text that runs as one input.
struct CellInput {
  std::string code;   // whole lines
  int line;           // of its first token, counted from 1
  bool open = false;  // the text ends inside of it: a bracket, string, comment or block goes on
};

/// Splits a text into inputs. A prompt has to decide by what has been typed; here a line without `;` goes on if the
/// next one begins with what begins no statement: an operator, `.`, `->`, `{`, `)`, or `else` behind an `if`. Lines of
/// blanks and comments between inputs are left out.
std::vector<CellInput> split_cell(const std::string& text);

/// Whether a line is for the prompt itself: `.undo`, `?name`, `name?`, `!ls -l`. Such a line is an input of its own.
bool is_command(const std::string& line);

/// Whether a byte is of a name, in any locale: an ASCII letter or digit, `_`, or a part of another character in UTF-8.
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c); }

/// A text without the blanks and ends of lines around it.
std::string trimmed(const std::string& text);

}  // namespace repl

// tools/repl/session.h - a session: inputs that are C++, and commands of the prompt.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/repl/cell.h"
#include "tools/repl/docs.h"
#include "tools/repl/interpreter.h"

namespace repl {

/// The commands, as `.help` shows them.
extern const char* const kHelp;
/// Their names: ".undo".
const std::vector<std::string>& command_names();

/// What every session begins with.
extern const char* const kPrelude;

/// Writes a page on standard output; in a terminal with lines that fit.
void put_page(const std::string& text);
/// The same with declarations in bold, in a terminal that shows colours.
void put_documentation(const std::string& text);
/// Whether what is written to a file has colours: it is a terminal, and the user does not object by NO_COLOR.
bool shows_colours(int file);

/// Runs inputs: C++, or commands such as `.undo`, `?name` and `!ls`.
class Session {
 public:
  /// Shows what `?name` says: a notebook has a place of its own for it.
  using Pager = std::function<void(const std::string&)>;
  explicit Session(const InterpreterOptions& options, Pager pager = put_documentation)
      : include_dir_(options.include_dir), errors_(options.errors), pager_(std::move(pager)), interpreter_(options) {}
  Interpreter& interpreter() { return interpreter_; }
  bool quits() const { return quits_; }

  /// Runs one whole input that begins at `line` of `file`; returns whether there was no error.
  bool run(const std::string& input, const std::string& file, int line);
  /// Runs inputs of a text that begins at `line`, up to the first error.
  bool run_all(const std::vector<CellInput>& inputs, const std::string& file, int line = 1);
  /// Runs a whole text; a bracket that is open at its end is an error.
  bool run_text(const std::string& text, const std::string& file);
  /// What is known of a function, a class, a name of the session's own, or as "x.item" of a member of a value's class;
  /// empty where there is no such name.
  std::string documentation(const std::string& name);
  /// What Tab shows inside of a call's parentheses: how the function is called, and what it does; empty if unknown.
  std::string call_help(const std::string& before);
  /// The documented headers, read at first use.
  const std::vector<DocEntry>& entries();

 private:
  bool command(const std::string& text, const std::string& file, int line);
  bool time(const std::string& input, const std::string& file, int line);
  bool undo(const std::string& count);
  bool load(const std::string& name);
  bool shell(const std::string& text);
  /// What `?name` and help(name) show: where there is no documentation, that there is none.
  std::string help(const std::string& name);
  /// Writes an error; returns false.
  bool complain(const std::string& text);
  /// Whether `!name...` is C++: a declared name's opposite.
  bool is_negation(const std::string& text);

  std::string include_dir_;
  std::ostream* errors_;  // null: std::cerr
  Pager pager_;
  Interpreter interpreter_;
  std::vector<DocEntry> entries_;
  bool timed_ = false, quits_ = false;
};

/// The text of a script, in which a first line `#!...` is a comment; nullopt where there is no such file.
std::optional<std::string> read_script(const std::string& path);

/// A path whose `~` is the home folder.
std::string with_home(const std::string& path);

/// That the input that begins at `line` is not whole.
std::string open_text(const std::string& file, int line, const std::string& code);

}  // namespace repl

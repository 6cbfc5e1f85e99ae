// tools/repl/interpreter.h - clang's interpreter: runs pieces of C++, knows the names that there are.
#pragma once
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace repl {

/// How to start an Interpreter.
struct InterpreterOptions {
  std::string include_dir;  // where <kassette/...> is
  std::string prelude;      // what every session begins with
  bool colour = false;
  /// Whether messages begin with the place: "script.cpp:3: error". False at a terminal, where the line is in sight.
  bool locations = false;
  std::ostream* errors = nullptr;  // where messages go; null: std::cerr
};

/// A session of clang's interpreter: runs code, completes names, undoes declarations.
class Interpreter {
 public:
  /// Throws std::runtime_error where clang cannot start.
  explicit Interpreter(const InterpreterOptions& options);
  ~Interpreter();
  /// Runs a piece of input that begins at `line` of `file`. Errors have been written to standard error when it returns.
  bool run(const std::string& code, const std::string& file, int line);
  /// Compiles a whole file, and runs its main().
  bool run_program(const std::string& code, const std::string& file, const std::vector<std::string>& arguments,
                   int* status);
  /// The names that fit behind "K::so", "x.sh", "so": what is to be added, and the whole name.
  struct Completion {
    std::string rest, name;
  };
  std::vector<Completion> complete(const std::string& text);
  /// The call that a text ends inside of: the declarations of the function, and how documentation knows it.
  struct Call {
    std::string name, signatures;
  };
  Call call_around(const std::string& text);
  /// Removes the declarations of the last input that declared something, and restores what they hid. Returns their
  /// names; empty if there are none.
  std::string undo();
  /// The declaration of a name of the session, as it would be written in a header; empty if there is none.
  std::string declaration(const std::string& name);
  /// Whether there is something of this name.
  bool declares(const std::string& name);
  /// What the session has declared, in its order: a line for each name, with what it is.
  std::string names();
  /// Prints the type of an expression, which is not computed; returns whether it has one.
  bool show_type(const std::string& expression, const std::string& file, int line);
  /// Whether messages begin with the place, from now on; returns what was.
  bool set_locations(bool locations);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace repl

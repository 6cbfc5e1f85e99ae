// tools/repl/prelude.h - the headers that every session begins with, compiled once and kept.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace clang {
class ASTConsumer;
class CompilerInstance;
}  // namespace clang

namespace repl {

// Note [Prelude]
// Reading the headers of kassette and those of the standard library that people use takes seconds. So clang writes what
// it has read to a file, a precompiled header, of which a session reads the parts that it needs: the first in a folder
// pays, and again when a header or the compiler has changed.

/// The options of every compiler of a session: what is included is in `include_dir`, what has been read already in the
/// file `precompiled`, if there is one.
std::vector<std::string> compiler_options(const std::string& include_dir, const std::string& precompiled = "");

/// A compiler with these options; throws std::runtime_error where clang cannot start.
std::unique_ptr<clang::CompilerInstance> make_compiler(const std::vector<std::string>& options);

/// Has the code generator of `compiler` see the functions that it reads from a precompiled header later on: clang's
/// interpreter ignores all but those that its first input needs. The compiler must not outlive what is returned.
std::unique_ptr<clang::ASTConsumer> follow_precompiled(clang::CompilerInstance* compiler);

/// Closes the files that clang has looked up and not read yet: a fork would have to keep them open to read them.
void close_files(clang::CompilerInstance& compiler);

/// The headers, as they would be included.
extern const char* const kHeaders;

/// kHeaders as a precompiled header, in a file.
class Prelude {
 public:
  /// Finds the file in the user's cache, or makes it. If none can be made, file() is empty.
  explicit Prelude(const std::string& include_dir);
  /// Removes the file, if it could not be kept for other sessions; who has read it has it still.
  ~Prelude();
  Prelude(const Prelude&) = delete;
  Prelude& operator=(const Prelude&) = delete;
  const std::string& file() const { return file_; }
  /// Removes the file: clang does not accept it.
  void discard();

 private:
  std::string file_;
  std::string folder_;  // that is removed
};

}  // namespace repl

// tools/repl/editor.h - a line from a terminal, by libedit: history across runs, Tab, Ctrl-C.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace repl {

/// Reads lines with history and completion (libedit). Not copyable; one per process.
class Editor {
 public:
  /// A text before the cursor -> what could follow: (what to add, whole name).
  using Complete = std::function<std::vector<std::pair<std::string, std::string>>(const std::string& before)>;
  /// A text before the cursor that nothing completes -> a page to show below the line; may be empty.
  using Page = std::function<std::string(const std::string& before)>;
  Editor(const std::string& history_file, Complete complete, Page page);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;
  enum Got { kLine, kCancelled, kEnd };
  Got read(const std::string& prompt, std::string* line);
  /// Remembers an input; those of several lines are one entry, edited at once.
  void remember(const std::string& input);

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace repl

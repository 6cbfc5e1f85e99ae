// tools/repl/terminal.cpp - the prompt at a terminal.
#include "tools/repl/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <kassette/version.h>

#include "tools/repl/editor.h"
#include "tools/repl/guard.h"
#include "tools/repl/input.h"
#include "tools/repl/session.h"

namespace repl {
namespace {

std::string history_file() {
  if (const char* file = std::getenv("KASSETTE_HISTORY")) return file;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return std::string(state) + "/kassette/history";
  const char* home = std::getenv("HOME");
  return home ? std::string(home) + "/.local/state/kassette/history" : "";
}

using Found = std::vector<std::pair<std::string, std::string>>;

/// What goes on with the last part of a path: data/te -> data/test.npy.
Found files(const std::string& path) {
  Found found;
  std::string folder = ".", prefix = path;
  if (auto slash = path.rfind('/'); slash != std::string::npos) {
    folder = slash ? path.substr(0, slash) : "/";
    prefix = path.substr(slash + 1);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(with_home(folder), error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0 || (name[0] == '.' && prefix.empty())) continue;
    if (entry.is_directory(error)) name += '/';
    found.push_back({name.substr(prefix.size()), name});
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Where a string that is open begins; npos if there is none.
std::size_t open_string(const std::string& before) {
  std::size_t open = std::string::npos;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == '\\') ++i;
    else if (before[i] == '"') open = open == std::string::npos ? i : std::string::npos;
  }
  return open;
}

/// A text before the cursor -> what could follow: (what to add, whole name).
Found complete(Session& session, const std::string& before) {
  const std::string text = trimmed(before);
  const std::size_t blank = before.find_last_of(" \t");
  if (text[0] == '.' && blank == std::string::npos) {
    Found found;
    for (const std::string& name : command_names())
      if (name.rfind(text, 0) == 0) found.push_back({name.substr(text.size()), name});
    return found;
  }
  const std::size_t open = open_string(before);
  if (open != std::string::npos) return files(before.substr(open + 1));
  if (blank != std::string::npos && (text.rfind(".load ", 0) == 0 || (text[0] == '!' && is_command(text))))
    return files(before.substr(blank + 1));
  Found found;
  if (text.back() != '(' && text.back() != ',')
    for (auto& c : session.interpreter().complete(before)) found.push_back({c.rest, c.name});
  return found;
}

/// What Tab shows where nothing goes on: how the function is called whose arguments are being typed.
std::string page(Session& session, const std::string& before) {
  const std::string text = trimmed(before);
  const bool between = text.back() == '(' || text.back() == ',';
  return between && open_string(before) == std::string::npos ? session.call_help(before) : "";
}

}  // namespace

void at_terminal(Session& session) {
  Editor editor(
      history_file(), [&](const std::string& before) { return complete(session, before); },
      [&](const std::string& before) { return page(session, before); });
  std::cout << "kassette " << kassette::version() << " - .help, ?name, Tab; .quit or Ctrl-D ends" << std::endl;
  std::string input;
  int number = 0, from = 1;
  while (!session.quits()) {
    std::string line;
    auto got = editor.read(input.empty() ? "kassette> " : "     ...> ", &line);
    if (got == Editor::kEnd) {
      std::cout << std::endl;
      if (input.empty()) break;
      input.clear();
      continue;
    }
    if (input.empty()) from = number + 1;
    number += 1 + static_cast<int>(std::count(line.begin(), line.end(), '\n'));
    if (got == Editor::kCancelled) {
      input.clear();
      continue;
    }
    input += line + '\n';
    const bool pasted = line.find('\n') != std::string::npos;
    if (!pasted && !is_command(input) && read_input(input).open) continue;
    editor.remember(input);
    take_interrupt();  // what was pressed before belongs to the prompt
    auto parts = pasted ? split_cell(input) : std::vector<CellInput>{{input, 1}};
    input.clear();
    if (!parts.empty() && parts.back().open) {  // the rest is to be typed
      input = parts.back().code;
      parts.pop_back();
    }
    session.run_all(parts, "line", from);
  }
}

}  // namespace repl

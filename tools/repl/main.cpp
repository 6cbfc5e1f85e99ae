// tools/repl/main.cpp - `kassette repl`: a prompt, scripts and pipes.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include <kassette/version.h>

#include "tools/repl/cell.h"
#include "tools/repl/docs.h"
#include "tools/repl/editor.h"
#include "tools/repl/guard.h"
#include "tools/repl/input.h"
#include "tools/repl/interpreter.h"
#include "tools/repl/serve.h"

using repl::is_command;
using repl::trimmed;

namespace {

constexpr const char* kPrelude = R"(
#include <kassette/prompt.h>
#include <string>
#include <vector>
extern "C" int kassette_repl_enter();
extern "C" void kassette_repl_else();
extern "C" bool kassette_repl_take_else();
)";

constexpr const char* kHelp =
    R"(A line without `;` shows its value. Brackets that are open go on in the next line; Ctrl-C cancels the line.

  Tensor x = K::constant({{1, 2}, {3, 4}});
  K::softmax(x)                  the functions of Keras are in K::
  x(0), x["..., ::-1"]           indexing as in NumPy
  ?K::softmax, help(softmax)     what a function does; Tab lists names behind K:: and x.
  auto y = x + 1.0;              variables may be declared again, functions and structs too

  .time [line]                   how long a line takes; alone: of every line from now on, or no longer
  .undo                          takes back the last names that were declared; what the line did stays done
  .help, .quit                   also Ctrl-D
)";

struct Options {
  std::string include_dir = KASSETTE_INCLUDE_DIR;
  std::string script;
  std::vector<std::string> arguments;
  int channel = -1;   // of a front end that drives the session
  bool echo = false;  // writes each prompt and line, and goes on after errors: a terminal's picture in a file
};

std::string history_file() {
  if (const char* file = std::getenv("KASSETTE_HISTORY")) return file;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return std::string(state) + "/kassette/history";
  const char* home = std::getenv("HOME");
  return home ? std::string(home) + "/.local/state/kassette/history" : "";
}

/// The last part of a path inside of a string that is open: "data/te -> "data/test.npy".
bool complete_file(const std::string& before, std::vector<std::pair<std::string, std::string>>* found) {
  std::size_t open = std::string::npos;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == '\\') ++i;
    else if (before[i] == '"') open = open == std::string::npos ? i : std::string::npos;
  }
  if (open == std::string::npos) return false;
  std::string path = before.substr(open + 1), folder = ".", prefix = path;
  if (auto slash = path.rfind('/'); slash != std::string::npos) {
    folder = slash ? path.substr(0, slash) : "/";
    prefix = path.substr(slash + 1);
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0 || (name[0] == '.' && prefix.empty())) continue;
    if (entry.is_directory(error)) name += '/';
    found->push_back({name.substr(prefix.size()), name});
  }
  std::sort(found->begin(), found->end());
  return true;
}

/// Writes a page, in a terminal with lines that fit.
void put_page(const std::string& text) {
  winsize size{};
  const bool narrow = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20;
  std::cout << (narrow ? repl::wrapped(text, size.ws_col) : text) << std::flush;
}

class Session {
 public:
  Session(const Options& options, bool locations)
      : options_(options), interpreter_({options.include_dir, kPrelude, isatty(2) != 0 && !options.echo, locations}) {}
  repl::Interpreter& interpreter() { return interpreter_; }
  bool quits() const { return quits_; }

  /// One whole input: a command of ours, or C++.
  bool run(const std::string& input, const std::string& file, int line) {
    std::string text = trimmed(input);
    if (text.empty()) return true;
    if (is_command(text)) {
      if (text[0] == '.') return command(text, file, line);
      if (text[0] == '?' || text.back() == '?') return help(text[0] == '?' ? text.substr(1) : text);
    }
    if (text == "help" || text == "help()") return command(".help", file, line);
    if (text == "quit" || text == "exit" || text == "quit()" || text == "exit()") return command(".quit", file, line);
    if (text.rfind("help(", 0) == 0) return help(text.substr(5));
    return timed_ ? time(input, file, line) : interpreter_.run(input, file, line);
  }

 private:
  bool help(const std::string& name) {
    if (entries_.empty()) entries_ = repl::read_headers(options_.include_dir);
    std::string text = repl::documentation(entries_, name);
    std::string bare = trimmed(name);
    while (!bare.empty() && (bare.back() == ')' || bare.back() == '?' || bare.back() == ';')) bare.pop_back();
    if (text.rfind("there is no documentation", 0) == 0)
      if (std::string declared = interpreter_.declaration(bare); !declared.empty()) text = declared;
    put_page(text);
    return true;
  }

  bool time(const std::string& input, const std::string& file, int line) {
    auto start = std::chrono::steady_clock::now();
    bool ok = interpreter_.run(input, file, line);
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::cout.flush();
    char digits[32];  // by %f they would have the point of a locale
    *std::to_chars(digits, digits + sizeof digits - 1, ms, std::chars_format::fixed, ms < 1000 ? 1 : 0).ptr = 0;
    std::printf("%s ms\n", digits);
    std::fflush(stdout);
    return ok;
  }

  bool command(const std::string& text, const std::string& file, int line) {
    auto space = text.find(' ');
    std::string name = text.substr(0, space), rest = space == std::string::npos ? "" : trimmed(text.substr(space));
    if (name == ".quit" || name == ".q" || name == ".exit") {
      quits_ = true;
    } else if (name == ".help") {
      if (rest.empty()) put_page(kHelp);
      else help(rest);
    } else if (name == ".time") {
      if (!rest.empty()) return time(rest, file, line);
      timed_ = !timed_;
    } else if (name == ".undo") {
      std::string names = interpreter_.undo();
      if (names.empty()) std::cout << "there is nothing to take back: no line has declared a name\n" << std::flush;
      else std::cout << "taken back: " << names << "; what that line did besides stays done\n" << std::flush;
    } else {
      static const std::vector<std::string> kCommands = {".quit", ".help", ".time", ".undo"};
      std::string near = repl::nearest(name, kCommands);
      std::cerr << "there is no command " << name << (near.empty() ? "; see .help" : "; did you mean " + near + "?")
                << std::endl;
      return false;
    }
    return true;
  }

  Options options_;
  repl::Interpreter interpreter_;
  std::vector<repl::DocEntry> entries_;
  bool timed_ = false, quits_ = false;
};

/// Runs inputs of a text that begins at `line`, up to the first error.
bool run_all(Session& session, const std::vector<repl::CellInput>& parts, const std::string& file, int line = 1) {
  for (const repl::CellInput& part : parts)
    if (session.quits() || !session.run(part.code, file, line + part.line - 1)) return session.quits();
  return true;
}

void say_open(const std::string& file, int line, const std::string& code) {
  const std::string opener = repl::read_input(code).opener;
  std::cerr << file << ':' << line << ": error: the input ends inside of what begins here"
            << (opener.empty() ? "" : ", with a " + opener + " open") << std::endl;
}

int at_terminal(Session& session) {
  repl::Editor editor(history_file(), [&](const std::string& before) {
    std::vector<std::pair<std::string, std::string>> found;
    if (!complete_file(before, &found))
      for (auto& c : session.interpreter().complete(before)) found.push_back({c.rest, c.name});
    return found;
  });
  std::cout << "kassette " << kassette::version() << " - .help, ?name, Tab; .quit or Ctrl-D ends" << std::endl;
  std::string input;
  int number = 0, from = 1;
  while (!session.quits()) {
    std::string line;
    auto got = editor.read(input.empty() ? "kassette> " : "     ...> ", &line);
    if (got == repl::Editor::kEnd) {
      std::cout << std::endl;
      if (input.empty()) break;
      input.clear();
      continue;
    }
    if (input.empty()) from = number + 1;
    number += 1 + static_cast<int>(std::count(line.begin(), line.end(), '\n'));
    if (got == repl::Editor::kCancelled) {
      input.clear();
      continue;
    }
    input += line + '\n';
    const bool pasted = line.find('\n') != std::string::npos;
    if (!pasted && !is_command(input) && repl::read_input(input).open) continue;
    editor.remember(input);
    repl::take_interrupt();  // what was pressed before belongs to the prompt
    auto parts = pasted ? repl::split_cell(input) : std::vector<repl::CellInput>{{input, 1}};
    input.clear();
    if (!parts.empty() && parts.back().open) {  // the rest is to be typed
      input = parts.back().code;
      parts.pop_back();
    }
    run_all(session, parts, "line", from);
  }
  return 0;
}

/// A script, as a whole; the first error ends it.
int from_text(Session& session, const std::string& text, const std::string& file) {
  std::vector<repl::CellInput> parts = repl::split_cell(text);
  const repl::CellInput last = parts.empty() ? repl::CellInput{"", 0} : parts.back();
  if (last.open) parts.pop_back();
  if (!run_all(session, parts, file)) return 1;
  if (!last.open || session.quits()) return 0;
  say_open(file, last.line, last.code);
  return 1;
}

/// Ctrl-C while nothing runs: whoever started this sees that it ended by the signal.
[[noreturn]] void end_by_interrupt() {
  std::cout.flush();
  std::fflush(nullptr);
  std::signal(SIGINT, SIG_DFL);
  raise(SIGINT);
  _exit(130);
}

/// Lines from a pipe, as at a prompt: whoever writes them may wait for what they show. The first error ends it.
int from_stream(Session& session, std::istream& in, const std::string& file, bool echo) {
  std::string input, line;
  int number = 0, from = 1;
  while (!session.quits()) {
    if (!std::getline(in, line)) {
      if (!repl::take_interrupt()) break;
      if (!echo) end_by_interrupt();
      in.clear();  // as at a terminal
      input.clear();
      continue;
    }
    ++number;
    if (echo) std::cout << (input.empty() ? "kassette> " : "     ...> ") << line << std::endl;
    if (input.empty()) from = number;
    if (echo && line == "^C") {  // what Ctrl-C does to a line that is being typed
      input.clear();
      continue;
    }
    input += line + '\n';
    if (!is_command(input) && repl::read_input(input).open) continue;
    bool ok = session.run(input, file, from);
    input.clear();
    if (!ok && !echo) return 1;
  }
  if (trimmed(input).empty()) return 0;
  say_open(file, from, input);
  return echo ? 0 : 1;
}

bool has_main(const std::string& text) {
  auto tokens = repl::read_input(text).tokens;
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
    if (tokens[i].depth == 0 && tokens[i].text == "int" && tokens[i + 1].text == "main" && tokens[i + 2].text == "(")
      return true;
  return false;
}

int run_script(Session& session, const Options& options) {
  std::ifstream file(options.script);
  std::stringstream content;
  content << file.rdbuf();
  std::string text = content.str();
  if (text.rfind("#!", 0) == 0) text.insert(0, "//");
  if (!has_main(text)) {
    if (!options.echo) return from_text(session, text, options.script);
    content.str(text);
    return from_stream(session, content, options.script, options.echo);
  }
  static int status = 0;
  std::vector<std::string> arguments = {options.script};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return session.interpreter().run_program(text, options.script, arguments, &status) ? status : 1;
}

bool parse(int argc, char** argv, Options* options, int* status) {
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (!options->script.empty()) {
      options->arguments.push_back(a);
    } else if (a == "--echo") {
      options->echo = true;
    } else if (a == "--serve" && i + 1 < argc) {
      options->channel = std::atoi(argv[++i]);
    } else if (a == "--include" && i + 1 < argc) {
      options->include_dir = argv[++i];
    } else if (a == "-h" || a == "--help") {
      std::cout
          << "usage: kassette repl [--cling] [FILE [arguments...]]\n\nWithout a file: a prompt, or the lines of standard input.\n\n"
          << kHelp;
      *status = 0;
      return false;
    } else if (a.size() > 1 && a[0] == '-') {
      std::cerr << "kassette: repl: " << a << " is not an option; see kassette repl --help" << std::endl;
      *status = 2;
      return false;
    } else {
      options->script = a;
      if (!std::ifstream(a) || std::filesystem::is_directory(a)) {
        std::cerr << "kassette: repl: no such file: " << a << std::endl;
        *status = 2;
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int status = 0;
  if (!parse(argc, argv, &options, &status)) return status;
  if (options.echo) dup2(1, 2);  // in the order in which a terminal would show them
  bool terminal = options.script.empty() && isatty(0) && isatty(1) && !options.echo;
  repl::install_signal_handlers();
  if (options.channel >= 0) repl::serve(options.channel, options.include_dir, kPrelude);
  try {
    auto session = std::make_unique<Session>(options, !terminal && !options.echo);
    // exit() in a line: the interpreter is in the middle of it and cannot be taken down.
    static bool running = true;
    on_exit(
        [](int code, void*) {
          if (!running) return;
          std::cout.flush();
          std::fflush(nullptr);
          _exit(code);
        },
        nullptr);
    status = !options.script.empty() ? run_script(*session, options)
             : terminal              ? at_terminal(*session)
                                     : from_stream(*session, std::cin, "<stdin>", options.echo);
    session.reset();  // the user's globals are destroyed while all that they call is there
    running = false;
  } catch (const std::exception& e) {
    std::cerr << "kassette: repl: " << e.what() << std::endl;
    return 2;
  }
  std::cout.flush();
  return status;
}

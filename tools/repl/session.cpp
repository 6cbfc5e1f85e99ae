// tools/repl/session.cpp - a session: inputs that are C++, and commands of the prompt.
#include "tools/repl/session.h"

#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tools/repl/guard.h"
#include "tools/repl/input.h"

namespace repl {

const char* const kPrelude = R"(
extern "C" int kassette_repl_enter();
extern "C" void kassette_repl_else();
extern "C" bool kassette_repl_take_else();
)";

const char* const kHelp =
    R"(A line without `;` shows its value. Brackets that are open go on in the next line; Ctrl-C cancels the line.

  Tensor x = K::constant({{1, 2}, {3, 4}});
  K::softmax(x), np::sort(x)     the functions of Keras are in K::, NumPy's in np::
  x(0), x["..., ::-1"]           indexing as in NumPy
  ?K::softmax, help(softmax)     what a function does; ?np lists names, as Tab does behind K:: and x.
  auto y = x + 1.0;              variables may be declared again, functions and structs too
  _                              the last value that was shown

  .names                         what this session has declared
  .type EXPRESSION               the type of a value, which is not computed
  .time [line]                   how long a line takes; alone: of every line from now on, or no longer
  .undo [n]                      takes back the last names that were declared; what the line did stays done
  .load FILE                     runs a file in this session
  !command                       runs a command of the shell; !cd changes the folder
  .help, .quit                   also Ctrl-D
)";

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> kNames = {".exit", ".help", ".load", ".names",
                                                  ".quit", ".time", ".type", ".undo"};
  return kNames;
}

namespace {

/// The exit status of a command, as waitpid() gives it. Ctrl-C at a terminal reaches the command by itself; where there
/// is none, it is handed on, also if it came before the command had begun: std::system() would lose it. Then the
/// command is a group of its own: the shell alone would go on waiting for what it has started. A shell that is about to
/// start it keeps an interrupt for later, so the first half second's are sent again.
int run_in_shell(const std::string& text) {
  std::string shell = "sh", flag = "-c", line = text;
  char* const arguments[] = {shell.data(), flag.data(), line.data(), nullptr};
  const bool terminal = isatty(STDIN_FILENO) != 0;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (!terminal) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  int status = 0;
  const int error = posix_spawn(&child, "/bin/sh", nullptr, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return 127 << 8;
  constexpr int kStarting = 500, kAgain = 100;  // milliseconds
  int age = 0, again = -1;
  for (; waitpid(child, &status, WNOHANG) == 0; ++age) {
    const bool interrupted = take_interrupt() && !terminal;
    if (interrupted || age == again) kill(-child, SIGINT);
    if (interrupted && age < kStarting) again = age + kAgain;
    usleep(1000);
  }
  take_interrupt();
  return status;
}

}  // namespace

std::string with_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path[0] == '~' && (path.size() == 1 || path[1] == '/') && home ? home + path.substr(1) : path;
}

std::optional<std::string> read_script(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) return std::nullopt;
  std::stringstream content;
  content << file.rdbuf();
  std::string text = content.str();
  if (text.rfind("#!", 0) == 0) text.insert(0, "//");
  return text;
}

namespace {
std::string fitted(const std::string& text) {
  winsize size{};
  const bool narrow = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20;
  return narrow ? wrapped(text, size.ws_col) : text;
}
}  // namespace

void put_page(const std::string& text) { std::cout << fitted(text) << std::flush; }

void put_documentation(const std::string& text) {
  const std::string page = fitted(text);
  if (!shows_colours(STDOUT_FILENO)) {
    std::cout << page << std::flush;
    return;
  }
  std::istringstream lines(page);
  bool comment = false;  // a line that goes on is indented, as a comment is
  for (std::string line; std::getline(lines, line);) {
    comment = line.rfind("    ", 0) == 0 && (comment || line.find('(') == std::string::npos);
    std::cout << (comment ? line : "\033[1m" + line + "\033[0m") << '\n';
  }
  std::cout << std::flush;
}

bool shows_colours(int file) {
  const char* objection = std::getenv("NO_COLOR");
  return isatty(file) != 0 && !(objection && *objection);
}

std::string open_text(const std::string& file, int line, const std::string& code) {
  const std::string opener = read_input(code).opener;
  return file + ':' + std::to_string(line) + ": error: the input ends inside of what begins here" +
         (opener.empty() ? "" : ", with a " + opener + " open");
}

bool Session::complain(const std::string& text) {
  std::cout.flush();
  (errors_ ? *errors_ : std::cerr) << text << std::endl;
  return false;
}

bool Session::run(const std::string& input, const std::string& file, int line) {
  const std::string text = trimmed(input);
  if (text.empty()) return true;
  if (is_command(text) && !(text[0] == '!' && is_negation(text))) {
    if (text[0] == '.') return command(text, file, line);
    if (text[0] == '!') return shell(trimmed(text.substr(1)));
    pager_(help(text[0] == '?' ? text.substr(1) : text));
    return true;
  }
  if (text == "help" || text == "help()") return command(".help", file, line);
  if (text == "quit" || text == "exit" || text == "quit()" || text == "exit()") return command(".quit", file, line);
  if (text.rfind("help(", 0) == 0) return command(".help " + text.substr(5), file, line);
  return timed_ ? time(input, file, line) : interpreter_.run(input, file, line);
}

bool Session::run_all(const std::vector<CellInput>& inputs, const std::string& file, int line) {
  for (const CellInput& input : inputs) {
    if (quits_) return true;
    if (!run(input.code, file, line + input.line - 1)) return false;
  }
  return true;
}

bool Session::run_text(const std::string& text, const std::string& file) {
  std::vector<CellInput> inputs = split_cell(text);
  const CellInput last = inputs.empty() ? CellInput{"", 0} : inputs.back();
  if (last.open) inputs.pop_back();
  if (!run_all(inputs, file)) return false;
  if (!last.open || quits_) return true;
  return complain(open_text(file, last.line, last.code));
}

const std::vector<DocEntry>& Session::entries() {
  if (entries_.empty()) entries_ = read_headers(include_dir_);
  return entries_;
}

namespace {

/// "softmax" of "softmax(" and "softmax);", as it stands in what somebody types.
std::string bare_name(const std::string& typed) {
  std::string name = trimmed(typed);
  while (!name.empty() && std::string("();?").find(name.back()) != std::string::npos) name.pop_back();
  return name;
}

/// "Tensor" of the declaration "kassette::Tensor x = ..." of `name`; empty where that is not how it is declared.
std::string class_in(const std::string& declaration, const std::string& name) {
  const std::vector<Token> tokens = read_input(declaration).tokens;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    for (std::size_t k = i; tokens[i].text == name && k-- > 0;)
      if (tokens[k].word && tokens[k].text != "const") return tokens[k].text;
  return "";
}

}  // namespace

std::string Session::documentation(const std::string& typed) {
  const std::string name = bare_name(typed);
  std::string text = repl::documentation(entries(), name);
  if (text.empty()) text = namespace_page(entries(), name);
  if (text.empty()) text = interpreter_.declaration(name);
  const std::size_t dot = name.find_last_of(".>");
  if (!text.empty() || dot == std::string::npos) return text;
  // x.item: of the class that x was declared with, else of whatever has a member of that name.
  const std::string object = name.substr(0, name.find_first_of(".-")), member = name.substr(dot + 1);
  text = repl::documentation(entries(), class_in(interpreter_.declaration(object), object) + "::" + member);
  return text.empty() ? repl::documentation(entries(), member) : text;
}

std::string Session::help(const std::string& name) {
  const std::string text = documentation(name);
  return text.empty() ? no_documentation(entries(), bare_name(name)) : text;
}

std::string Session::call_help(const std::string& before) {
  const Interpreter::Call call = interpreter_.call_around(before);
  if (call.signatures.empty()) return "";
  const std::string text = repl::documentation(entries(), call.name);
  return text.empty() ? call.signatures : text;
}

bool Session::time(const std::string& input, const std::string& file, int line) {
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

bool Session::undo(const std::string& count) {
  int n = 1;
  if (!count.empty()) {
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), n);
    if (error != std::errc() || end != count.data() + count.size() || n < 1)
      return complain(".undo takes a number of inputs, at least 1; not " + count);
  }
  std::string names;
  for (int i = 0; i < n; ++i) {
    const std::string more = interpreter_.undo();
    if (more.empty()) break;
    names += (names.empty() ? "" : ", ") + more;
  }
  if (names.empty()) std::cout << "there is nothing to take back: no line has declared a name\n" << std::flush;
  else
    std::cout << "taken back: " << names << "; what " << (n > 1 ? "those lines" : "that line")
              << " did besides stays done\n"
              << std::flush;
  return true;
}

bool Session::load(const std::string& name) {
  const std::optional<std::string> text = read_script(with_home(name));
  if (!text) return complain("no such file: " + name);
  const bool before = interpreter_.set_locations(true);
  const bool ok = run_text(*text, name);
  interpreter_.set_locations(before);
  return ok;
}

bool Session::is_negation(const std::string& text) {
  std::size_t end = 1;
  while (end < text.size() && is_word(text[end])) ++end;
  const std::string name = text.substr(1);
  return end == text.size() && (name == "true" || name == "false" || interpreter_.declares(name));
}

bool Session::shell(const std::string& text) {
  std::cout.flush();
  std::fflush(stdout);
  if (text == "cd" || text.rfind("cd ", 0) == 0) {
    const std::string folder = text == "cd" ? "~" : trimmed(text.substr(3));
    if (chdir(with_home(folder).c_str()) != 0) return complain("no such folder: " + folder);
    return true;
  }
  const int status = run_in_shell(text);
  if (status == 0) return true;
  return complain(WIFSIGNALED(status) ? std::string("ended by ") + sigdescr_np(WTERMSIG(status))
                                      : "exit code " + std::to_string(WEXITSTATUS(status)));
}

bool Session::command(const std::string& text, const std::string& file, int line) {
  const auto space = text.find(' ');
  const std::string name = text.substr(0, space), rest = space == std::string::npos ? "" : trimmed(text.substr(space));
  if (name == ".quit" || name == ".q" || name == ".exit") {
    quits_ = true;
  } else if (name == ".help") {
    if (rest.empty()) put_page(kHelp);
    else put_documentation(help(rest));
  } else if (name == ".time") {
    if (!rest.empty()) return time(rest, file, line);
    timed_ = !timed_;
  } else if (name == ".undo") {
    return undo(rest);
  } else if (name == ".names") {
    put_page(interpreter_.names());
  } else if (name == ".type") {
    if (rest.empty() || read_input(rest).open) return complain(".type takes a whole expression");
    return interpreter_.show_type(rest, file, line);
  } else if (name == ".load") {
    if (rest.empty()) return complain(".load takes a file");
    return load(rest);
  } else {
    const std::string near = nearest(name, command_names());
    return complain("there is no command " + name + (near.empty() ? "; see .help" : "; did you mean " + near + "?"));
  }
  return true;
}

}  // namespace repl

// tools/repl/main.cpp - `kassette repl`: a prompt, scripts and pipes.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "tools/repl/guard.h"
#include "tools/repl/input.h"
#include "tools/repl/serve.h"
#include "tools/repl/session.h"
#include "tools/repl/terminal.h"

using repl::Session;

namespace {

struct Options {
  std::string include_dir = KASSETTE_INCLUDE_DIR;
  std::string file;                   // of the script
  std::optional<std::string> script;  // its text
  std::optional<std::string> code;    // -c
  std::vector<std::string> arguments;
  int channel = -1;   // of a front end that drives the session
  bool echo = false;  // writes each prompt and line, and goes on after errors: a terminal's picture in a file
  bool stay = false;  // -i: a prompt behind the script
};

constexpr const char* kUsage =
    R"(usage: kassette repl [-i] [FILE [arguments...]]   runs a file; with -i a prompt follows
       kassette repl -c CODE                     runs code, and ends
       kassette repl                             a prompt, or the lines of standard input
       kassette repl --cling                     the same in ROOT's cling

)";

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
    if (!repl::is_command(input) && repl::read_input(input).open) continue;
    bool ok = session.run(input, file, from);
    input.clear();
    if (!ok && !echo) return 1;
  }
  if (repl::trimmed(input).empty()) return 0;
  std::cerr << repl::open_text(file, from, input) << std::endl;
  return echo ? 0 : 1;
}

int run_script(Session& session, const Options& options) {
  const std::string& text = *options.script;
  if (!repl::has_main(repl::read_input(text).tokens)) {
    if (!options.echo) return session.run_text(text, options.file) ? 0 : 1;
    std::istringstream content(text);
    return from_stream(session, content, options.file, options.echo);
  }
  static int status = 0;
  std::vector<std::string> arguments = {options.file};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return session.interpreter().run_program(text, options.file, arguments, &status) ? status : 1;
}

/// Returns the exit code if the program is to end with it.
std::optional<int> parse(int argc, char** argv, Options* options) {
  auto complain = [](const std::string& text) {
    std::cerr << "kassette: repl: " << text << std::endl;
    return 2;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (options->script) {
      options->arguments.push_back(a);
    } else if (a == "--echo") {
      options->echo = true;
    } else if (a == "--serve" && i + 1 < argc) {
      options->channel = std::atoi(argv[++i]);
    } else if (a == "-i") {
      options->stay = true;
    } else if (a == "-c") {
      if (i + 1 >= argc) return complain("-c takes code");
      options->code = argv[++i];
    } else if (a == "--include" && i + 1 < argc) {
      options->include_dir = argv[++i];
    } else if (a == "-h" || a == "--help") {
      std::cout << kUsage << repl::kHelp;
      return 0;
    } else if (a.size() > 1 && a[0] == '-') {
      return complain(a + " is not an option; see kassette repl --help");
    } else {
      options->file = a;
      options->script = repl::read_script(a);
      if (!options->script) return complain("no such file: " + a);
    }
  }
  if (options->code && options->script) return complain("-c takes no file");
  return std::nullopt;
}

/// Runs what was asked for; returns the exit code.
int run(Session& session, const Options& options, bool terminal) {
  int status = 0;
  if (options.code) status = session.run_text(*options.code, "<code>") ? 0 : 1;
  if (options.script) status = run_script(session, options);
  const bool ends = (options.code || options.script) && !options.stay;
  if (ends || session.quits()) return status;
  if (!terminal) return from_stream(session, std::cin, "<stdin>", options.echo);
  session.interpreter().set_locations(false);
  repl::at_terminal(session);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const std::optional<int> status = parse(argc, argv, &options)) return *status;
  if (options.echo) dup2(1, 2);  // in the order in which a terminal would show them
  const bool ends = (options.code || options.script) && !options.stay;
  const bool terminal = !ends && isatty(0) && isatty(1) && !options.echo;
  const bool typed = (terminal && !options.script && !options.code) || options.echo;
  repl::install_signal_handlers();
  if (options.channel >= 0) repl::serve(options.channel, options.include_dir);
  int status = 0;
  try {
    auto session = std::make_unique<Session>(repl::InterpreterOptions{
        options.include_dir, repl::kPrelude, /*colour=*/repl::shows_colours(2) && !options.echo, /*locations=*/!typed});
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
    status = run(*session, options, terminal);
    session.reset();  // the user's globals are destroyed while all that they call is there
    running = false;
  } catch (const std::exception& e) {
    std::cerr << "kassette: repl: " << e.what() << std::endl;
    return 2;
  }
  std::cout.flush();
  return status;
}

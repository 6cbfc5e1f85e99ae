// tools/repl/serve.cpp - a session that a front end drives over a channel.
#include "tools/repl/serve.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

#include <kassette/display.h>

#include "tools/repl/cell.h"
#include "tools/repl/channel.h"
#include "tools/repl/guard.h"
#include "tools/repl/input.h"
#include "tools/repl/session.h"
#include "tools/repl/streams.h"

namespace repl {
namespace {

/// The channel of this process. Other threads may show values too; a jump out of a line may leave its owner locked in.
struct Line {
  std::unique_ptr<Channel> channel;
  std::recursive_mutex mutex;
} ours;

/// Where nobody is at the other end, the process ends.
void send(const Record& record) {
  std::lock_guard<std::recursive_mutex> lock(ours.mutex);
  if (!ours.channel->send(record)) _exit(0);
}

void show(const kassette::repl::Shown& shown) {
  static const char* const kKinds[] = {"value", "display", "update", "clear"};
  std::lock_guard<std::recursive_mutex> lock(ours.mutex);
  flush_streams();
  Record event{kKinds[shown.kind], {{"id", std::to_string(shown.id)}}};
  for (int i = 0; i < shown.n_forms; ++i)
    event.fields.push_back(
        {shown.forms[i].mime, std::string(shown.forms[i].data, static_cast<std::size_t>(shown.forms[i].size))});
  send(event);
  // What is printed next comes behind it.
  if (!ours.channel->receive()) _exit(0);
}

std::optional<std::string> ask() {
  std::lock_guard<std::recursive_mutex> lock(ours.mutex);
  send({"input", {}});
  const std::optional<Record> answer = ours.channel->receive();
  if (!answer) _exit(0);
  if (answer->kind == "line") return answer->get("text");
  return std::nullopt;
}

/// An error in parts.
struct Problem {
  std::string name, value, line;
};
/// How many characters "In[3]:2:5: " takes at the beginning of a message; 0 where it has no place.
std::size_t length_of_place(const std::string& message) {
  const std::size_t end = message.find(": ");
  const bool place = end != std::string::npos && end > 0 && is_digit(message[end - 1]);
  return place && message.find(':') < end ? end + 2 : 0;
}
/// The first error of a text: "In[3]:2:5: error: no member ..." or "In[3]:2: kassette::ValueError: dot: ...".
Problem problem_in(const std::string& text) {
  std::istringstream lines(text);
  std::string first, place;
  for (std::string line; place.empty() && std::getline(lines, line);) {
    if (first.empty()) first = line;
    const std::size_t length = length_of_place(line);
    if (!length || line.compare(length, 9, "warning: ") == 0 || line.compare(length, 6, "note: ") == 0) continue;
    first = line.substr(length);
    place = line.substr(0, length);
  }
  Problem p;
  if (const std::size_t colon = place.find(':'); colon != std::string::npos)
    p.line = place.substr(colon + 1, place.find(':', colon + 1) - colon - 1);
  const std::size_t end = first.find(": ");
  p.name = "Error";
  p.value = first;
  if (first.rfind("error: ", 0) == 0) p.name = "CompileError", p.value = first.substr(7);
  else if (first == "interrupted") p.name = "Interrupted";
  else if (first.find("; the session goes on") != std::string::npos) p.name = "Crash";
  else if (first.rfind("an exception of type ", 0) == 0) p.name = first.substr(21);
  else if (end != std::string::npos) p.name = first.substr(0, end), p.value = first.substr(end + 2);
  return p;
}

double seconds_of(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }
double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

class Server {
 public:
  explicit Server(const std::string& include_dir) : include_dir_(include_dir) {
    InterpreterOptions options{include_dir, kPrelude, /*colour=*/false, /*locations=*/true};
    options.errors = &errors_;
    session_ = std::make_unique<Session>(options, [](const std::string& page) { send({"page", {{"text", page}}}); });
  }

  Record answer(const Record& request) {
    if (request.kind == "run") return run(request.get("code"), request.get("file"));
    if (request.kind == "complete") return complete(request.get("before"));
    if (request.kind == "inspect") return {"done", {{"text", session_->documentation(request.get("name"))}}};
    if (request.kind == "is_complete") return is_complete(request.get("code"));
    return {"done", {}};
  }

 private:
  Record run(const std::string& cell, const std::string& file) {
    errors_.str("");
    forget_input();
    take_interrupt();  // what was pressed before belongs to nothing
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    const bool ok = run_inputs(cell, file);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    flush_streams();
    Record done{"done",
                {{"status", session_->quits() ? "exit"
                            : ok              ? "ok"
                                              : "error"},
                 {"wall", std::to_string(wall.count())},
                 {"cpu", std::to_string(cpu_seconds() - cpu)}}};
    if (ok) return done;
    const std::string text = with_short_paths(errors_.str());
    const Problem problem = problem_in(text);
    done.fields.insert(done.fields.end(),
                       {{"name", problem.name}, {"value", problem.value}, {"line", problem.line}, {"text", text}});
    return done;
  }

  /// Our headers as they are included: a notebook is read elsewhere too.
  std::string with_short_paths(std::string text) const {
    const std::string folder = include_dir_ + "/";
    for (std::size_t at = 0; (at = text.find(folder + "kassette/", at)) != std::string::npos;)
      text.erase(at, folder.size());
    return text;
  }

  bool run_inputs(const std::string& cell, const std::string& file) {
    const std::vector<CellInput> inputs = split_cell(cell);
    if (!inputs.empty() && inputs.back().open) {
      errors_ << open_text(file, inputs.back().line, inputs.back().code) << '\n';
      return false;
    }
    const int interrupts = interrupt_count();
    for (std::size_t i = 0; i < inputs.size() && !session_->quits(); ++i) {
      if (!run_input(inputs[i], file, i + 1 == inputs.size())) return false;
      if (interrupts != interrupt_count()) {  // between two inputs
        errors_ << "interrupted\n";
        return false;
      }
      std::cerr << errors_.str() << std::flush;  // warnings
      errors_.str("");
    }
    return true;
  }

  bool run_input(const CellInput& input, const std::string& file, bool last) {
    // Only the last expression of a cell is shown.
    std::string code = input.code;
    if (!last && !is_command(code) && read_input(code).shown != std::string::npos) code += ";";
    return session_->run(code, file, input.line);
  }

  Record complete(const std::string& before) {
    Record done{"done", {}};
    for (const Interpreter::Completion& c : session_->interpreter().complete(before))
      done.fields.push_back({std::to_string(c.name.size() - c.rest.size()), c.name});
    return done;
  }

  static Record is_complete(const std::string& code) {
    const std::vector<CellInput> inputs = split_cell(code);
    const bool open = !inputs.empty() && inputs.back().open;
    bool broken = false;
    for (const CellInput& input : inputs)
      broken = broken || (!is_command(input.code) && !read_input(input.code).broken.empty());
    return {"done", {{"status", broken ? "invalid" : open ? "incomplete" : "complete"}}};
  }

  std::string include_dir_;
  std::ostringstream errors_;
  std::unique_ptr<Session> session_;
};

}  // namespace

void serve(int channel, const std::string& include_dir) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);     // nobody is left who could stop an endless loop
  fcntl(channel, F_SETFD, FD_CLOEXEC);  // not for what the user starts
  ours.channel = std::make_unique<Channel>(channel);
  // exit() in a line: the interpreter is in the middle of it and cannot be taken down.
  on_exit(
      [](int code, void*) {
        flush_streams();
        _exit(code);
      },
      nullptr);
  order_streams();
  ask_for_input(ask);
  int status = 0;
  try {
    Server server(include_dir);
    kassette::repl::set_front_end(show);
    send({"ready", {}});
    while (const std::optional<Record> request = ours.channel->receive())
      if (request->kind != "ack") send(server.answer(*request));
  } catch (const std::exception& e) {
    std::cerr << "kassette: repl: " << e.what() << std::endl;
    status = 2;
  }
  flush_streams();
  _exit(status);
}

}  // namespace repl

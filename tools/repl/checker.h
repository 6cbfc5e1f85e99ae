// tools/repl/checker.h - a second process that compiles each input first.
#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace repl {

// Note [The checker]
// clang's interpreter library is not made for mistakes. Templates that a refused input has instantiated count as
// emitted though their code is gone, so that every later use of them finds no definition; error recovery at the end of
// an input crashes, or never ends. So a copy of the session's process, made by fork, compiles each input first, and the
// session only what the copy has compiled. The two stay in step as long as inputs are good. After a bad one the copy,
// in whatever state it is, is killed, and the next input gets a new copy of the session, which has never seen the bad
// one.
//
// The copy runs none of the user's code: it needs no terminal, threads, GPU or open files, and none of its results. The
// other way round, a copy that takes over when the process that crashed is gone, would have another process id, one
// thread and no CUDA. A copy for each input would cost 20 ms, mostly page faults; compiling twice costs about 2 ms.
class Checker {
 public:
  using Report = std::function<void(const std::string&)>;
  /// Compiles a request in the copy. Gives the reason of a refusal to `report`, the last of which counts, and has one
  /// more second from then on. What it returns goes back to the session; nullopt: refused.
  using Body = std::function<std::optional<std::string>(const std::string& request, const Report& report)>;
  explicit Checker(Body body) : body_(std::move(body)) {}
  ~Checker() { stop(); }
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  struct Verdict {
    enum End { kPassed, kRefused, kCrashed, kEndless, kInterrupted, kNoCopy };
    End end;
    std::string text;  // what the body returned, or its last report
    int signal = 0;    // what ended a copy that crashed
  };
  /// Ctrl-C ends it. Where the system gives no copy, nothing was checked.
  Verdict check(const std::string& request);
  /// Ends the copy: it has seen what the session has not.
  void stop();

 private:
  Verdict ask(const std::string& request);
  bool start();
  [[noreturn]] void serve(int channel);

  Body body_;
  pid_t copy_ = -1;
  int channel_ = -1;
  int status_ = 0;          // of the last copy that ended
  bool fresh_ = false;      // it has compiled nothing yet
  bool keeps_all_ = false;  // copies keep all memory
};

}  // namespace repl

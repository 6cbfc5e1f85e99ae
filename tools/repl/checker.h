// tools/repl/checker.h - a second process that compiles each input first.
#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "tools/repl/channel.h"

namespace repl {

// Note [The checker]
// clang's interpreter library does not recover from errors. Templates that a rejected input instantiated count as
// emitted although their code is gone, so that later uses find no definition; error recovery at the end of an input may
// crash or not terminate. So a forked copy of the session compiles each input first, and the session compiles only what
// the copy accepted. After an error the copy is killed, and the next input gets a new copy of the session, which has
// never seen the bad input.
//
// The copy runs none of the user's code: it needs no terminal, threads, GPU or open files, and none of its results. The
// other way round, a copy that takes over when the process that crashed is gone, would have another process id, one
// thread and no CUDA. A copy for each input would cost 20 ms, mostly page faults; compiling twice costs about 2 ms.
class Checker {
 public:
  using Report = std::function<void(const std::string&)>;
  /// Compiles a request in the copy. Passes the reason of an error to `report`; the last one counts, and after it the
  /// body has one more second. The session gets what the body returns; nullopt: rejected.
  using Body = std::function<std::optional<std::string>(const Record& request, const Report& report)>;
  explicit Checker(Body body) : body_(std::move(body)) {}
  ~Checker() { stop(); }
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// How a check ended, and what it said.
  struct Verdict {
    enum End { kPassed, kRefused, kCrashed, kEndless, kInterrupted, kNoCopy };
    End end;
    std::string text;  // what the body returned, or its last report
    int signal = 0;    // what ended a copy that crashed
  };
  /// Has the copy compile `request`. Ctrl-C ends it. If the process cannot be forked (kNoCopy), nothing was checked.
  Verdict check(const Record& request);
  /// Ends the copy: it has seen what the session has not.
  void stop();

 private:
  Verdict ask(const Record& request);
  bool start();
  [[noreturn]] void serve(int channel);

  Body body_;
  pid_t copy_ = -1;
  std::optional<Channel> channel_;
  int status_ = 0;          // of the last copy that ended
  bool fresh_ = false;      // it has compiled nothing yet
  bool keeps_all_ = false;  // copies keep all memory
};

}  // namespace repl

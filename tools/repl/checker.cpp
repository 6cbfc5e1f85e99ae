// tools/repl/checker.cpp - a second process that compiles each input first.
#include "tools/repl/checker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <vector>

#include "tools/repl/guard.h"

namespace repl {
namespace {

constexpr int kMaxSeconds = 120;  // of computing, for one input
constexpr int kLookMs = 100;      // how often Ctrl-C is looked for; it mostly ends the wait by itself
constexpr int kChannel = 3;       // in the copy

void limit_computing(int seconds) {
  itimerval t = {};
  t.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &t, nullptr);
}

/// Unmaps the memory of tensors, which is what lies in huge pages: a copy may live as long as the session, and must not
/// keep that memory allocated.
void give_back_tensors() {
  std::ifstream maps("/proc/self/smaps");
  unsigned long begin = 0, end = 0;
  std::vector<std::pair<unsigned long, unsigned long>> huge;
  for (std::string line; std::getline(maps, line);) {
    if (unsigned long a, b; std::sscanf(line.c_str(), "%lx-%lx ", &a, &b) == 2) begin = a, end = b;
    else if (line.rfind("VmFlags:", 0) == 0 && line.find(" hg") != std::string::npos) huge.push_back({begin, end});
  }
  for (auto [from, to] : huge) munmap(reinterpret_cast<void*>(from), to - from);
}

/// Sets up the forked process: fatal signals end it silently and without a core file, the OOM killer prefers it, and it
/// ends with the session.
void become_copy(int channel, bool keep_all) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF, SIGTERM, SIGPIPE, SIGCHLD})
    std::signal(signal, SIG_DFL);
  for (int signal : {SIGINT, SIGQUIT}) std::signal(signal, SIG_IGN);  // the session decides
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (const int score = open("/proc/self/oom_score_adj", O_WRONLY); score >= 0) {
    if (write(score, "1000", 4) < 0) {  // then it is as expendable as any
    }
    close(score);
  }
  if (!keep_all) give_back_tensors();
  if (channel != kChannel) dup2(channel, kChannel);
  syscall(SYS_close_range, kChannel + 1, ~0U, 0);
  if (const int null = open("/dev/null", O_RDWR); null >= 0) {
    for (int fd : {0, 1, 2}) dup2(null, fd);
    close(null);
  }
  prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace

void Checker::serve(int channel) {
  become_copy(channel, keeps_all_);
  Channel session(kChannel);
  while (const std::optional<Record> request = session.receive()) {
    limit_computing(kMaxSeconds);
    const auto answer = body_(*request, [&](const std::string& reason) {
      session.send({"refused", {{"text", reason}}});
      limit_computing(1);
    });
    limit_computing(0);
    if (!answer || !session.send({"passed", {{"text", *answer}}})) _exit(1);
  }
  _exit(0);
}

bool Checker::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  copy_ = fork();
  if (copy_ == 0) serve(ends[1]);
  close(ends[1]);
  if (copy_ < 0) {
    close(ends[0]);
    return false;
  }
  channel_.emplace(ends[0]);
  fresh_ = true;
  return true;
}

void Checker::stop() {
  if (copy_ < 0) return;
  kill(copy_, SIGKILL);
  close(channel_->fd());
  status_ = 0;
  while (waitpid(copy_, &status_, 0) < 0 && errno == EINTR) {
  }
  copy_ = -1;
  channel_.reset();
}

Checker::Verdict Checker::check(const Record& request) {
  Verdict verdict = ask(request);
  if (verdict.end != Verdict::kCrashed || !fresh_ || keeps_all_) return verdict;
  // An allocator that asks for huge pages as well would have lost the compiler's own memory.
  keeps_all_ = true;
  verdict = ask(request);
  keeps_all_ = verdict.end != Verdict::kCrashed;
  return verdict;
}

Checker::Verdict Checker::ask(const Record& request) {
  if (copy_ >= 0 && !channel_->send(request)) stop();  // somebody has killed it
  if (copy_ < 0 && !(start() && channel_->send(request))) {
    stop();
    return {Verdict::kNoCopy, ""};
  }
  std::optional<std::string> refused;
  for (;;) {
    pollfd wait = {channel_->fd(), POLLIN, 0};
    const int ready = poll(&wait, 1, kLookMs);
    if (take_interrupt()) {
      stop();
      return {Verdict::kInterrupted, ""};
    }
    if (ready <= 0) continue;
    if (!channel_->fill()) break;
    while (const std::optional<Record> said = channel_->take()) {
      if (said->kind == "passed") {
        fresh_ = false;
        return {Verdict::kPassed, said->get("text")};
      }
      refused = said->get("text");
    }
  }
  // The copy has ended, or is about to: wait for its exit status.
  siginfo_t ended = {};
  while (waitid(P_PID, static_cast<id_t>(copy_), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  stop();
  if (refused) return {Verdict::kRefused, *refused};
  const int signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : SIGABRT;
  return {signal == SIGPROF || signal == SIGKILL ? Verdict::kEndless : Verdict::kCrashed, "", signal};
}

}  // namespace repl

// tools/repl/guard.cpp - exceptions and signals of a user's line.
#include "tools/repl/guard.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <ctime>
#include <typeinfo>
#include <utility>

#include <kassette/interrupt.h>
#include <kassette/repl.h>

volatile std::sig_atomic_t kassette_repl_interrupts = 0;

namespace repl {
namespace {

sigjmp_buf prompt;
volatile std::sig_atomic_t in_user_code = 0, all_interrupts = 0;
volatile std::sig_atomic_t& interrupts = kassette_repl_interrupts;
// When the first of them came, also by what this thread had computed, and how long it had been kept from that.
volatile long first_ms = 0, first_own_ms = 0, first_queued_ms = 0;
pthread_t main_thread;

long now_ms(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

/// Asks again in 10 ms.
void set_alarm(bool on) {
  itimerval t = {};
  t.it_value.tv_usec = on ? 10000 : 0;
  setitimer(ITIMER_REAL, &t, nullptr);
}

// Note [Ctrl-C]
// Ctrl-C asks the library to stop; it throws at its next op or part of one, which breaks nothing. If a tenth of a
// second later the user's own code is running, the signal handler jumps out of it. Such code is compiled in memory, so
// that dladdr finds no file for it. A loop that mostly is in what it calls (it prints, sleeps, takes locks) jumps by
// itself: each turn looks whether Ctrl-C was pressed. Anything else is left alone until it has computed or slept for
// two more seconds (a thread that only waits for a busy machine does neither), or until a second Ctrl-C more than half
// a second after the first. While other threads work for this one, or it frees history, there is no jump: those threads
// would work on a frame that is gone, or history would be half freed. Both end by themselves.
constexpr long kOwnCodeMs = 100, kAgainMs = 500, kPatienceMs = 2000, kAwakePercent = 2;

/// For how long this thread was ready to run, and another one had the CPU; -1 where the system does not tell.
long queued_ms() {
  char text[96];
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (size <= 0) return -1;
  text[size] = 0;
  const char* second = std::strchr(text, ' ');
  return second ? static_cast<long>(std::strtoll(second, nullptr, 10) / 1'000'000) : -1;
}
bool out_of_patience(long waited) {
  const long own = now_ms(CLOCK_THREAD_CPUTIME_ID) - first_own_ms;
  if (own >= kPatienceMs || (waited >= kPatienceMs && own * 100 < waited * kAwakePercent)) return true;
  const long queued = queued_ms();
  return queued >= 0 && waited - (queued - first_queued_ms) >= kPatienceMs;
}
void jump_to_prompt() {
  set_alarm(false);
  in_user_code = 0;
  siglongjmp(prompt, SIGINT);
}
void* instruction(void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  (void)context;
  return nullptr;
#endif
}
bool in_own_code(void* context) {
  void* pc = instruction(context);
  Dl_info info;
  return pc && dladdr(pc, &info) == 0;
}

void on_interrupt(int signal, siginfo_t*, void* context) {
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, signal);
    return;
  }
  int saved = errno;
  if (signal == SIGINT) {
    if (!interrupts) {
      first_ms = now_ms(CLOCK_MONOTONIC);
      first_own_ms = now_ms(CLOCK_THREAD_CPUTIME_ID);
      first_queued_ms = queued_ms();
    }
    interrupts = interrupts + 1;
    all_interrupts = all_interrupts + 1;
    if (in_user_code) kassette::request_interrupt(kassette::Whose::this_thread);
  }
  if (in_user_code && interrupts) {
    const long waited = now_ms(CLOCK_MONOTONIC) - first_ms;
    const bool jump = (waited >= kOwnCodeMs && in_own_code(context)) ||
                      (signal == SIGINT && interrupts > 1 && waited >= kAgainMs) || out_of_patience(waited);
    if (jump && kassette::repl::may_jump()) jump_to_prompt();
    set_alarm(true);
  }
  errno = saved;
}

void on_crash(int signal, siginfo_t*, void* context) {
  if (runs_user_code()) {
    remember_address(instruction(context));
    in_user_code = 0;
    siglongjmp(prompt, signal);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGINT: return "interrupted";
    case SIGSEGV: return "segmentation fault";
    case SIGBUS: return "bus error";
    case SIGFPE: return "arithmetic error (a division of integers by zero?)";
    case SIGILL: return "illegal instruction (a function that ends without its return?)";
    case SIGABRT: return "abort() was called";
    default: return sigdescr_np(signal);
  }
}

std::string type_name(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = name ? name : type.name();
  std::free(name);
  return text;
}

}  // namespace

bool runs_user_code() { return in_user_code && pthread_equal(pthread_self(), main_thread); }

void stop_loop() {
  if (!runs_user_code() || now_ms(CLOCK_MONOTONIC) - first_ms < kOwnCodeMs) return;
  if (kassette::repl::may_jump()) jump_to_prompt();
}

void install_signal_handlers() {
  main_thread = pthread_self();
  kassette::repl::set_find_line(
      [](const void* address) { return kassette::Text(kassette::Name(line_of(address).c_str())); });
  // A stack of its own: endless recursion has used up the other.
  stack_t stack = {};
  stack.ss_size = 1 << 16;
  stack.ss_sp = std::malloc(stack.ss_size);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  action.sa_sigaction = on_crash;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
  action.sa_sigaction = on_interrupt;
  for (int signal : {SIGINT, SIGALRM}) sigaction(signal, &action, nullptr);
}

bool take_interrupt() {
  bool was = interrupts != 0;
  interrupts = 0;
  kassette::cancel_interrupt();
  return was;
}

int interrupt_count() { return all_interrupts; }

Guarded guarded(const std::function<bool()>& body) {
  if (take_interrupt()) return {false, name_of(SIGINT), false};  // while the line was compiled
  kassette::repl::remember_scopes();
  forget_stack();
  if (int signal = sigsetjmp(prompt, 1)) {
    take_interrupt();
    kassette::repl::return_to_scopes();
    std::string text = name_of(signal);
    if (signal != SIGINT) text += "; the session goes on, but what the line was changing may be broken";
    return {false, text, signal != SIGINT, signal != SIGINT ? remembered_line(nullptr) : SourceLine()};
  }
  Guarded result{true, "", false};
  try {
    result.ok = body();
  } catch (const kassette::Interrupted&) {
    result = {false, name_of(SIGINT), false};
  } catch (const std::exception& e) {
    in_user_code = 0;  // no jump out of the lookup of source lines
    result = {false, type_name(typeid(e)) + ": " + e.what(), false, remembered_line(dynamic_cast<const void*>(&e))};
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    in_user_code = 0;
    const std::type_info* type = abi::__cxa_current_exception_type();
    result = {false, "an exception of type " + (type ? type_name(*type) : std::string("unknown")), false,
              remembered_line(nullptr)};
  }
  in_user_code = 0;
  set_alarm(false);
  take_interrupt();
  return result;
}

}  // namespace repl

int kassette_repl_enter() {
  repl::in_user_code = 1;
  if (repl::interrupts) {  // it came while the line was linked
    kassette::request_interrupt(kassette::Whose::this_thread);
    repl::set_alarm(true);
  }
  return 0;
}
namespace {
bool else_is_next = false;
}
void kassette_repl_else() { else_is_next = true; }
bool kassette_repl_take_else() { return std::exchange(else_is_next, false); }
void kassette_repl_in_loop() { repl::stop_loop(); }
int kassette_repl_leave() {
  repl::in_user_code = 0;
  return 0;
}

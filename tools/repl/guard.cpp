// tools/repl/guard.cpp - exceptions and signals of a user's line.
#include "tools/repl/guard.h"

#include <cxxabi.h>
#include <dlfcn.h>
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
#include <typeinfo>

namespace repl {
namespace {

sigjmp_buf prompt;
volatile std::sig_atomic_t in_user_code = 0, interrupts = 0, waited = 0;
pthread_t main_thread;

/// Asks again in 10 ms.
void set_alarm(bool on) {
  itimerval t = {};
  t.it_value.tv_usec = on ? 10000 : 0;
  setitimer(ITIMER_REAL, &t, nullptr);
}

// Note [Ctrl-C]
// A jump out of the library could leave a lock held or threads at work on a frame that is gone. So Ctrl-C jumps only when it finds the
// user's own code running, which lies in no file: what is mapped from none has no dladdr. While the library is at work it looks again
// every 10 ms; a second Ctrl-C, or two seconds, jump whatever it is doing.
bool in_own_code(void* context) {
#if defined(__x86_64__)
  auto pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  auto pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  void* pc = nullptr;
  (void)context;
#endif
  Dl_info info;
  return pc && dladdr(pc, &info) == 0;
}

void on_interrupt(int signal, siginfo_t*, void* context) {
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, signal);
    return;
  }
  int saved = errno;
  if (signal == SIGINT) interrupts = interrupts + 1;
  if (in_user_code && interrupts) {
    waited = waited + 1;
    if (interrupts > 1 || waited > 200 || in_own_code(context)) {
      set_alarm(false);
      in_user_code = 0;
      siglongjmp(prompt, SIGINT);
    }
    set_alarm(true);
  }
  errno = saved;
}

void on_crash(int signal, siginfo_t*, void*) {
  if (in_user_code && pthread_equal(pthread_self(), main_thread)) {
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
    default: return strsignal(signal);
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

void install_signal_handlers() {
  main_thread = pthread_self();
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
  return was;
}

Guarded guarded(const std::function<bool()>& body) {
  interrupts = 0;
  waited = 0;
  if (int signal = sigsetjmp(prompt, 1)) {
    interrupts = 0;
    std::string text = name_of(signal);
    if (signal != SIGINT) text += "; the session goes on, but what the line was changing may be broken";
    return {false, text, signal != SIGINT};
  }
  Guarded result{true, "", false};
  try {
    result.ok = body();
  } catch (const std::exception& e) {
    result = {false, type_name(typeid(e)) + ": " + e.what(), false};
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    result = {false, "an exception of type " + (type ? type_name(*type) : std::string("unknown")), false};
  }
  in_user_code = 0;
  set_alarm(false);
  interrupts = 0;
  return result;
}

}  // namespace repl

int kassette_repl_enter() {
  repl::in_user_code = 1;
  return 0;
}
int kassette_repl_leave() {
  repl::in_user_code = 0;
  return 0;
}

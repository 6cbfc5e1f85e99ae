// tools/script.cpp - linked into what `kassette run` compiles: an uncaught exception or a fatal signal writes out what
// was printed before, and one line with what happened and where in the script.
#include <cxxabi.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <typeinfo>

#include "core/source_lines.h"

namespace {

constexpr int kMaxFrames = 64;

// Where the program's own code is in memory; found at the start, since a signal may come while the loader holds its
// lock.
std::uintptr_t base = 0, code_begin = 0, code_end = 0;
char program[4096];

struct Frames {
  int count = 0;
  char addresses[kMaxFrames][2 + 16 + 1];  // in the file, as text: 0x...
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& frames = *static_cast<Frames*>(data);
  int before_instruction = 0;
  std::uintptr_t at = _Unwind_GetIPInfo(context, &before_instruction);
  // A return address is behind the call, which may be in another line.
  if (!before_instruction) --at;
  if (at >= code_begin && at < code_end && frames.count < kMaxFrames)
    std::snprintf(frames.addresses[frames.count++], sizeof frames.addresses[0], "0x%zx", std::size_t(at - base));
  return _URC_NO_REASON;
}

// The innermost line of a file of the user's, "file:line: "; nothing where it is not known. The tool that knows debug
// information comes with the compiler (binutils). Nothing here allocates: this runs in signal handlers, too.
void write_place(char* place, std::size_t size) {
  place[0] = 0;
  static Frames frames;
  _Unwind_Backtrace(add_frame, &frames);
  int ends[2];
  if (frames.count == 0 || ::pipe(ends) != 0) return;
  char* arguments[kMaxFrames + 5] = {const_cast<char*>("addr2line"), const_cast<char*>("-i"), const_cast<char*>("-e"),
                                     program};
  for (int i = 0; i < frames.count; ++i) arguments[4 + i] = frames.addresses[i];
  // Not fork: it runs the handlers that libraries register for it.
  pid_t child = ::vfork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, 2);
    ::close(ends[0]);
    ::execvp(arguments[0], arguments);
    ::_exit(127);
  }
  ::close(ends[1]);
  static char text[1 << 16];
  std::size_t filled = 0;
  for (ssize_t got; filled + 1 < sizeof text && (got = ::read(ends[0], text + filled, sizeof text - 1 - filled)) > 0;)
    filled += std::size_t(got);
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  text[filled] = 0;
  char here[4096];
  if (!::getcwd(here, sizeof here)) here[0] = 0;
  for (const char* line = std::strtok(text, "\n"); line; line = std::strtok(nullptr, "\n"))
    if (const std::string_view own = kassette::own_line(line, here); !own.empty()) {
      std::snprintf(place, size, "%.*s: ", static_cast<int>(own.size()), own.data());
      return;
    }
}

volatile sig_atomic_t exit_code = 1;

// The interrupted code may hold a lock that flushing needs, so the wait is bounded.
void limit_time() {
  ::signal(SIGALRM, [](int) { ::_exit(exit_code); });
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::alarm(10);
}

void flush() {
  std::ios_base::Init streams;  // the exception may be one of a constructor before main
  std::cout.flush();
  std::wcout.flush();
  std::clog.flush();
  std::fflush(stdout);
}

void write_line(const char* place, const char* what) {
  char line[8192], rank[32] = "";
  // One of several ranks says which: what mpirun sets.
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* number = std::getenv(name); number && !rank[0])
      std::snprintf(rank, sizeof rank, "rank %.20s: ", number);
  int length = std::snprintf(line, sizeof line - 1, "%s%s%s", rank, place[0] ? place : "kassette: run: ", what);
  length = length < int(sizeof line) - 1 ? length : int(sizeof line) - 2;
  for (int i = 0; i < length; ++i)
    if (line[i] == '\n') line[i] = ' ';
  line[length] = '\n';
  [[maybe_unused]] ssize_t written = ::write(2, line, std::size_t(length) + 1);
}

std::string describe_exception() {
  std::exception_ptr current = std::current_exception();
  if (!current) return "std::terminate was called without an exception: as by a std::thread that was not joined";
  int status = 0;
  const std::type_info* type = abi::__cxa_current_exception_type();
  char* name = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &status) : nullptr;
  std::string said = std::string("uncaught ") + (name ? name : "exception");
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& error) {
    said += std::string(": ") + error.what();
  } catch (const std::string& text) {
    said = "uncaught std::string: " + text;
  } catch (const char* text) {
    said += std::string(": ") + text;
  } catch (int number) {
    said += ": " + std::to_string(number);
  } catch (...) {
  }
  return said;
}

[[noreturn]] void on_terminate() {
  limit_time();
  flush();
  static char place[4200];
  write_place(place, sizeof place);
  write_line(place, describe_exception().c_str());
  std::fflush(nullptr);
  ::_exit(1);
}

void on_signal(int number) {
  ::signal(number, SIG_DFL);
  exit_code = 128 + number;
  limit_time();
  flush();
  static char place[4200];
  write_place(place, sizeof place);
  const char* what = number == SIGSEGV  ? "segmentation fault: an address that is not valid, or a recursion without end"
                     : number == SIGBUS ? "bus error: as by a mapped file that was cut short"
                     : number == SIGFPE ? "arithmetic error: as by dividing an integer by 0"
                     : number == SIGILL ? "illegal instruction"
                                        : "aborted";
  write_line(place, what);
  ::alarm(0);
  ::raise(number);  // as without us: the exit code is the signal's
}

__attribute__((constructor(101))) void install() {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        base = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
          code_begin = base + part.p_vaddr;
          code_end = code_begin + part.p_memsz;
        }
        return 1;  // the program is the first
      },
      nullptr);
  ssize_t length = ::readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  std::set_terminate(on_terminate);
  // A stack that overflows leaves no room for a handler.
  static char stack[1 << 16];
  stack_t other = {};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  ::sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(number, &action, nullptr);
}

}  // namespace

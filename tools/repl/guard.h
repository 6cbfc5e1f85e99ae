// tools/repl/guard.h - runs what a user typed so that exceptions, Ctrl-C and crashes come back to the prompt.
#pragma once
#include <csignal>
#include <functional>
#include <string>

#include "tools/repl/source_lines.h"

namespace repl {

void install_signal_handlers();
/// Whether this thread runs code that the user typed.
bool runs_user_code();
/// Jumps out of a loop of the user's if Ctrl-C was pressed a while ago. See Note [Ctrl-C].
void stop_loop();
/// Whether Ctrl-C was pressed since the last call.
bool take_interrupt();
/// How often it was pressed since the process began: one that came when a line had just ended is taken by nobody.
int interrupt_count();

/// How a guarded call ended.
struct Guarded {
  bool ok;
  std::string error;   // one line, where not ok and the body has not said it itself
  bool crashed;        // a signal other than Ctrl-C
  SourceLine at = {};  // of the error
};
/// Runs body. A signal jumps back here only between kassette_repl_enter() and kassette_repl_leave(): a jump out of the
/// compiler would leave it broken.
Guarded guarded(const std::function<bool()>& body);

}  // namespace repl

// Called by the code of each line, around what the user typed.
extern "C" __attribute__((visibility("default"))) int kassette_repl_enter();
extern "C" __attribute__((visibility("default"))) int kassette_repl_leave();
/// What loops look at, and call if it is not 0: see add_stops().
extern "C" __attribute__((visibility("default"))) volatile std::sig_atomic_t kassette_repl_interrupts;
extern "C" __attribute__((visibility("default"))) void kassette_repl_in_loop();
/// An `if` without an `else` at the end of an input calls the first where its condition did not hold, so that an `else`
/// may follow in the next input: that becomes `if (kassette_repl_take_else())`.
extern "C" __attribute__((visibility("default"))) void kassette_repl_else();
extern "C" __attribute__((visibility("default"))) bool kassette_repl_take_else();

// autograd/program/program.cpp - what is said of a program that cannot run: a placeholder is not fed, or an instruction
// failed.
#include "autograd/program/program.h"

#include "core/log.h"
#include "core/text.h"

namespace kassette::autograd {

void fail_missing(const Program& p) { fail<ValueError>({p.what}, p.missing, kRemedy, p.missing_remedy); }

void log_failure(const Program& p, int k) {
  if (log_enabled(LogLevel::debug))
    log_debug(
        text(p.what, ": instruction ", k, " of ", p.instructions.size(), ", ", p.instruction(k).op->name, ", failed"));
}

}  // namespace kassette::autograd

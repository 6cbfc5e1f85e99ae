// tools/repl/modules.h - what is asked of, and added to, the code of an input before it runs.
#pragma once
#include <string>

namespace llvm {
class Module;
}

namespace repl {

/// The symbols that a module needs and does not define, each followed by a newline.
std::string undefined(const llvm::Module& m);

/// The assembler's error about `asm` in a module; empty if there is none. In the JIT such an error ends the process.
std::string assembled(llvm::Module& m);

/// Has every turn of a loop look whether Ctrl-C was pressed. See Note [Ctrl-C].
void add_stops(llvm::Module& m);

}  // namespace repl

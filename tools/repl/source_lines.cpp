// tools/repl/source_lines.cpp - the lines behind addresses of compiled input.
#include "tools/repl/source_lines.h"

#include <dlfcn.h>
#include <unwind.h>

#include <cstdint>
#include <vector>

#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h"
#include "llvm/Object/ObjectFile.h"

#include "tools/repl/guard.h"

namespace repl {
namespace {

// Note [Source lines]
// Input is compiled with line tables. clang's interpreter registers each object that it makes, with the addresses of
// its sections, in the list of GDB's JIT interface; that is where addresses are looked up. The addresses on the stack
// are kept when an exception is thrown, because the frames are gone when it is caught.
constexpr int kMaxFrames = 256;
std::uintptr_t stack[kMaxFrames];
int depth = 0;
const void* object = nullptr;

_Unwind_Reason_Code keep(_Unwind_Context* context, void*) {
  int before_instruction = 0;
  const std::uintptr_t at = _Unwind_GetIPInfo(context, &before_instruction);
  if (depth == kMaxFrames) return _URC_END_OF_STACK;
  stack[depth++] = before_instruction ? at : at - 1;  // a return address is behind the call
  return _URC_NO_REASON;
}

struct Code {
  std::uint64_t begin, end, section;
  llvm::StringRef object;
};
std::vector<Code> compiled_code() {
  static const auto* registered = static_cast<const jit_descriptor*>(dlsym(RTLD_DEFAULT, "__jit_debug_descriptor"));
  std::vector<Code> code;
  for (const jit_code_entry* e = registered ? registered->first_entry : nullptr; e; e = e->next_entry) {
    const llvm::StringRef bytes(e->symfile_addr, e->symfile_size);
    auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, ""));
    if (!file) {
      llvm::consumeError(file.takeError());
      continue;
    }
    for (const llvm::object::SectionRef& s : (*file)->sections())
      if (s.isText() && s.getAddress())
        code.push_back({s.getAddress(), s.getAddress() + s.getSize(), s.getIndex(), bytes});
  }
  return code;
}

/// False for files of libraries and for the code around the user's input ("input_line_7").
bool is_own(const std::string& file) {
  if (file.empty() || file.rfind("/usr/", 0) == 0 || file.rfind("input_line_", 0) == 0) return false;
  // The line table names a file below the current folder relative to it: our headers, for who stands in a clone.
  return file.find("/include/") == std::string::npos && file.rfind("include/kassette/", 0) != 0;
}

SourceLine line_at(const Code& code, std::uint64_t address) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(code.object, ""));
  if (!file) {
    llvm::consumeError(file.takeError());
    return {};
  }
  const auto lines = llvm::DWARFContext::create(**file);
  const llvm::DILineInfoSpecifier with_folder(llvm::DILineInfoSpecifier::FileLineInfoKind::RelativeFilePath);
  const llvm::DIInliningInfo frames = lines->getInliningInfoForAddress({address, code.section}, with_folder);
  for (std::uint32_t i = 0; i < frames.getNumberOfFrames(); ++i) {
    const llvm::DILineInfo& frame = frames.getFrame(i);
    const std::string name = frame.FileName.rfind("./", 0) == 0 ? frame.FileName.substr(2) : frame.FileName;
    if (frame.Line && is_own(name)) return {name, static_cast<int>(frame.Line)};
  }
  return {};
}

}  // namespace

void remember_stack(const void* thrown) {
  object = thrown;
  depth = 0;
  _Unwind_Backtrace(keep, nullptr);
}
void remember_address(const void* instruction) {
  object = nullptr;
  stack[0] = reinterpret_cast<std::uintptr_t>(instruction);
  depth = 1;
}
void forget_stack() { depth = 0; }

SourceLine remembered_line(const void* thrown) {
  if (!depth || (thrown && thrown != object)) return {};
  const std::vector<Code> code = compiled_code();
  for (int i = 0; i < depth; ++i)
    for (const Code& c : code)
      if (stack[i] >= c.begin && stack[i] < c.end)
        if (SourceLine found = line_at(c, stack[i]); found.line) return found;
  return {};
}

std::string line_of(const void* address) {
  const auto call = reinterpret_cast<std::uintptr_t>(address) - 1;  // a return address is behind the call
  for (const Code& c : compiled_code())
    if (call >= c.begin && call < c.end)
      if (const SourceLine found = line_at(c, call); found.line) return found.file + ':' + std::to_string(found.line);
  return {};
}

}  // namespace repl

/// Replaces the C++ runtime's function in the whole process.
extern "C" __attribute__((visibility("default"), noreturn)) void kassette_repl_throw(
    void* thrown, void* type, void (*destroy)(void*)) __asm__("__cxa_throw");
void kassette_repl_throw(void* thrown, void* type, void (*destroy)(void*)) {
  static const auto next = reinterpret_cast<void (*)(void*, void*, void (*)(void*))>(dlsym(RTLD_NEXT, "__cxa_throw"));
  if (repl::runs_user_code()) repl::remember_stack(thrown);
  next(thrown, type, destroy);
  __builtin_unreachable();
}

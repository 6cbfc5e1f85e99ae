// tools/repl/modules.cpp - what is asked of, and added to, the code of an input before it runs.
#include "tools/repl/modules.h"

#include <utility>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace repl {

std::string undefined(const llvm::Module& m) {
  std::string out;
  for (auto& g : m.global_values())
    if (g.isDeclaration() && !g.use_empty() && !g.getName().starts_with("llvm.") && g.getName() != "__dso_handle" &&
        !g.hasExternalWeakLinkage())
      out += g.getName().str() + '\n';
  return out;
}

std::string assembled(llvm::Module& m) {
  bool any = !m.getModuleInlineAsm().empty();
  for (const llvm::Function& f : m)
    for (const llvm::BasicBlock& block : f)
      for (const llvm::Instruction& i : block)
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) any = any || call->isInlineAsm();
  if (!any) return "";
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) return llvm::toString(builder.takeError());
  auto machine = builder->createTargetMachine();
  if (!machine) return llvm::toString(machine.takeError());
  static std::string said;
  m.getContext().setDiagnosticHandlerCallBack([](const llvm::DiagnosticInfo* info, void*) {
    if (info->getSeverity() != llvm::DS_Error || !said.empty()) return;
    llvm::raw_string_ostream stream(said);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
  });
  auto object = llvm::orc::SimpleCompiler(**machine)(m);
  if (!object && said.empty()) return llvm::toString(object.takeError());
  return said;
}

void add_stops(llvm::Module& m) {
  llvm::LLVMContext& context = m.getContext();
  llvm::Type* number = llvm::Type::getInt32Ty(context);
  auto* pressed = m.getOrInsertGlobal("kassette_repl_interrupts", number);
  auto stop = m.getOrInsertFunction("kassette_repl_in_loop", llvm::Type::getVoidTy(context));
  for (llvm::Function& f : m) {
    if (f.isDeclaration()) continue;
    llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>> turns;
    llvm::FindFunctionBackedges(f, turns);
    for (auto [from, to] : turns) {
      llvm::Instruction* jump = const_cast<llvm::BasicBlock*>(from)->getTerminator();
      llvm::IRBuilder<> before(jump);
      auto* is_pressed = before.CreateIsNotNull(before.CreateLoad(number, pressed, /*isVolatile=*/true));
      llvm::IRBuilder<>(llvm::SplitBlockAndInsertIfThen(is_pressed, jump, /*Unreachable=*/false)).CreateCall(stop);
    }
  }
}

}  // namespace repl

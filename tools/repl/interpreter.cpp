// tools/repl/interpreter.cpp - runs pieces of C++ by clang's interpreter.
#include "tools/repl/interpreter.h"

#include <dlfcn.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "clang/AST/Attr.h"
#include "clang/AST/Mangle.h"
#include "clang/Interpreter/Interpreter.h"
#include "clang/Interpreter/PartialTranslationUnit.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include "tools/repl/guard.h"
#include "tools/repl/hints.h"
#include "tools/repl/input.h"
#include "tools/repl/messages.h"
#include "tools/repl/names.h"

namespace repl {
namespace {

bool has_lambda(const Input& in) {
  for (std::size_t i = 0; i < in.tokens.size(); ++i)
    if (in.tokens[i].text == "[" && (i == 0 || (!in.tokens[i - 1].word && in.tokens[i - 1].text != ")" && in.tokens[i - 1].text != "]") || in.tokens[i - 1].text == "return"))
      return true;
  return false;
}

/// Whether statements that end with `;` are expressions, as far as their first words tell.
bool is_expression(const Input& in) {
  bool first = true;
  for (const Token& t : in.tokens) {
    if (first && begins_statement(t.text)) return false;
    first = t.depth == 0 && t.text == ";";
  }
  return first;
}

}  // namespace

struct Interpreter::Impl {
  std::unique_ptr<clang::Interpreter> clang_;
  std::optional<Names> names;
  Messages* messages = nullptr;
  int serial = 0;
  std::string where;   // "file:line: " of what runs, where messages carry it
  bool locations = false, colour = false;

  clang::CompilerInstance& compiler() { return *clang_->getCompilerInstance(); }
  clang::ASTContext& context() { return compiler().getASTContext(); }

  /// A module with an unresolved symbol must not reach the JIT: every inline function in it would stay unusable for good.
  std::string unlinkable(llvm::Module& m) {
    for (auto& g : m.global_values()) {
      if (!g.isDeclaration() || g.use_empty() || g.getName().starts_with("llvm.") || g.getName() == "__dso_handle") continue;
      if (g.hasExternalWeakLinkage() || dlsym(RTLD_DEFAULT, g.getName().str().c_str())) continue;
      auto address = clang_->getSymbolAddress(g.getName());
      if (address) continue;
      llvm::consumeError(address.takeError());
      return "declared but defined nowhere: " + llvm::demangle(g.getName().str()) + "; a function is defined before the line that calls it";
    }
    return "";
  }

  // Note [Closures]
  // A variable of a closure's type has internal linkage, and clang 19 gives every later input its own copy of it: of zeros, or made anew.
  // So the first definition is exported, and what stands for it in later modules becomes a declaration.
  std::map<std::string, clang::VarDecl*> internal;
  std::set<std::string> exported;
  void export_internal(clang::DeclContext* part, llvm::Module& m) {
    clang::ASTNameGenerator mangle(context());
    auto visit = [&](auto& self, clang::DeclContext* c) -> void {
      for (clang::Decl* d : c->decls()) {
        if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d)) self(self, space);
        auto* v = llvm::dyn_cast<clang::VarDecl>(d);
        if (v && !v->isExternallyVisible() && !v->getName().starts_with("shown_") && in_user_code) internal[mangle.getName(v)] = v;
      }
    };
    visit(visit, part);
    for (llvm::GlobalVariable& g : m.globals()) {
      std::string name = g.getName().str();
      if (!g.hasLocalLinkage() || !internal.count(name)) continue;
      g.setLinkage(llvm::GlobalValue::ExternalLinkage);
      if (!exported.insert(name).second) {
        g.setInitializer(nullptr);
        continue;
      }
      // Later modules would initialise and destroy it once more.
      clang::VarDecl* v = internal[name];
      if (!v->hasConstantInitialization()) v->setInit(nullptr);
      v->addAttr(clang::NoDestroyAttr::CreateImplicit(context()));
    }
  }
  bool in_user_code = false;   // the prelude's headers are behind us

  void say(const std::string& text) {
    std::cout.flush();
    std::cerr << (colour ? "\033[1;31m" : "") << where << (colour ? "\033[0m" : "") << text << std::endl;
  }

  /// What clang has to say, and its first error alone.
  struct Refusal {
    std::string text, error;
  };
  Refusal refusal;
  void show(const Refusal& r) {
    std::cout.flush();
    std::cerr << r.text << hint(r.error) << std::flush;
  }

  enum Result { kRan, kNotParsed, kFailed };
  /// Parses, then runs. Only the errors of an attempt that is not `quiet` are shown.
  Result execute(const std::string& code, bool quiet = false) {
    auto parsed = clang_->Parse(code);
    refusal = {messages->take(), messages->take_first()};
    if (!parsed) {
      llvm::consumeError(parsed.takeError());
      if (!quiet) show(refusal);
      return kNotParsed;
    }
    std::cerr << refusal.text << std::flush;   // warnings
    if (parsed->TheModule) export_internal(parsed->TUPart, *parsed->TheModule);
    std::string missing = parsed->TheModule ? unlinkable(*parsed->TheModule) : "";
    bool ok = missing.empty();
    if (!ok) say("error: " + missing);
    if (ok && parsed->TheModule) {
      Guarded result = guarded([&] {
        llvm::Error e = clang_->Execute(*parsed);
        kassette_repl_leave();
        if (!e) return true;
        say("error: " + llvm::toString(std::move(e)));
        return false;
      });
      std::cout.flush();
      if (!result.error.empty()) say(result.error);
      ok = result.ok;
    }
    names->declared(parsed->TUPart, ok);
    return ok ? kRan : kFailed;
  }

  std::string hint(const std::string& error) {
    return hint_for(error, [&](const std::string& name) { return names->has_member("K", name); });
  }
};

Interpreter::Interpreter(const Settings& settings) : impl_(new Impl) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  static std::string include = "-I" + settings.include_dir;
  // Without the last, a template parameter of a template takes what it should not, and xtensor is ambiguous.
  std::vector<const char*> arguments = {"-std=c++17", "-xc++", include.c_str(), "-Wno-unused-value", "-Wno-c++20-extensions", "-Wno-undefined-inline",
                                        "-fno-relaxed-template-template-args"};
  clang::IncrementalCompilerBuilder builder;
  builder.SetCompilerArgs(arguments);
  auto compiler = builder.CreateCpp();
  if (!compiler) throw std::runtime_error("clang does not start: " + llvm::toString(compiler.takeError()));
  auto made = clang::Interpreter::create(std::move(*compiler));
  if (!made) throw std::runtime_error("clang's interpreter does not start: " + llvm::toString(made.takeError()));
  impl_->clang_ = std::move(*made);
  impl_->names.emplace(impl_->compiler());
  impl_->locations = settings.locations;
  impl_->colour = settings.colour;
  auto& diagnostics = impl_->compiler().getDiagnostics();
  auto* options = &diagnostics.getDiagnosticOptions();
  options->ShowColors = settings.colour;
  options->ShowLocation = settings.locations;
  options->ShowColumn = settings.locations;
  options->ShowLineNumbers = 0;
  options->ShowNoteIncludeStack = 0;
  options->SnippetLineLimit = 4;
  diagnostics.setShowOverloads(clang::Ovl_Best);
  impl_->messages = new Messages(options);
  impl_->messages->BeginSourceFile(impl_->compiler().getLangOpts(), &impl_->compiler().getPreprocessor());
  diagnostics.setClient(impl_->messages, true);
  if (impl_->execute(settings.prelude) != Impl::kRan) throw std::runtime_error("the headers of kassette do not compile");
  impl_->names->keep_all();
  impl_->in_user_code = true;
}

Interpreter::~Interpreter() = default;

bool Interpreter::run(const std::string& code, const std::string& file, int line) {
  Impl& self = *impl_;
  if (self.locations) self.where = file + ":" + std::to_string(line) + ": ";
  Input in = read_input(code);
  if (in.tokens.empty()) return true;
  auto mark = [&](std::size_t offset) {
    return "#line " + std::to_string(line + std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) + " \"" + file + "\"\n";
  };
  // An initialiser as well: `f();` at the top may be read as a declaration.
  auto enter = [&] { return "const int shown_" + std::to_string(++self.serial) + " = kassette_repl_enter();\n"; };
  if (in.tokens[0].text == "#") return self.execute(mark(0) + code) == Impl::kRan;
  // Note [Initialisers]
  // An expression runs as an initialiser, and one with a lambda inside of a namespace: clang 19 crashes on a lambda in a statement at
  // the top that begins with a parenthesis, and on an error inside of a lambda whose class lies at the top.
  const bool lambda = has_lambda(in);
  if (!in.broken.empty()) {
    self.say("error: " + in.broken);
    return false;
  }
  if (std::string list = python_list(code, in); !list.empty()) {
    self.say("error: " + list);
    return false;
  }
  std::cerr << hints_on_commas(in) << std::flush;
  auto initialiser = [&](const std::string& before, std::size_t begin, std::size_t end, const std::string& after) {
    std::string number = std::to_string(++self.serial);
    std::string text = "const int shown_" + number + " = (" + before + "(\n" + mark(begin) + code.substr(begin, end - begin) + "\n)" + after + ", 0);";
    return enter() + (lambda ? "inline namespace line_" + number + " {\n" + text + "\n}" : text);
  };
  std::string body = mark(0) + code;
  if (in.shown != std::string::npos) {
    if (in.shown > 0 && !run(code.substr(0, in.shown), file, line)) return false;
    auto result = self.execute(initialiser("::kassette::repl::show(", in.shown, code.size(), ")"), /*quiet=*/true);
    if (result != Impl::kNotParsed) return result == Impl::kRan;
    Impl::Refusal refusal = self.refusal;
    const bool ours = refusal.text.find("shown_") != std::string::npos || refusal.text.find("\n)), 0);") != std::string::npos;
    if (in.names.empty() && ours) {   // speaks of what stands around the user's words
      result = self.execute(enter() + mark(in.shown) + code.substr(in.shown) + "\n;", /*quiet=*/true);
      if (result == Impl::kRan) return true;
      refusal = self.refusal;
    }
    if (in.names.empty()) {   // of type void?
      result = self.execute(initialiser("", in.shown, code.size(), ""), /*quiet=*/true);
      if (result == Impl::kNotParsed) self.show(refusal);
      return result == Impl::kRan;
    }
    body = mark(in.shown) + code.substr(in.shown);
  } else if (lambda && in.names.empty() && is_expression(in)) {
    for (std::size_t i = 0, begin = in.tokens[0].begin; i < in.tokens.size(); ++i) {
      if (in.tokens[i].text != ";" || in.tokens[i].depth != 0) continue;
      if (self.execute(initialiser("", begin, in.tokens[i].begin, "")) != Impl::kRan) return false;
      begin = in.tokens[i].end;
    }
    return true;
  }
  if (!in.closed) body += "\n;";
  // Else clang would put off a variable of internal linkage until it is used, and its initialiser until after that. See Note [Closures].
  const std::string& first = in.tokens[0].text;
  if (!in.names.empty() && (first == "auto" || first == "const" || first == "static")) body = "[[gnu::used]]\n" + body;
  if (self.names->redefines(in) || (lambda && !in.names.empty())) body = "inline namespace line_" + std::to_string(++self.serial) + " {\n" + body + "\n}";
  return self.execute(enter() + body) == Impl::kRan;
}

bool Interpreter::run_program(const std::string& code, const std::string& file, const std::vector<std::string>& arguments, int* status) {
  Impl& self = *impl_;
  self.where = file + ": ";
  if (self.execute("#line 1 \"" + file + "\"\n" + code) != Impl::kRan) return false;
  static std::vector<const char*> argv;
  argv.clear();
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  argv.push_back(nullptr);
  bool with_arguments = false;
  for (clang::NamedDecl* d : self.names->find("main"))
    if (auto* f = llvm::dyn_cast<clang::FunctionDecl>(d)) with_arguments = f->getNumParams() > 0;
  std::string call = "main()";
  if (with_arguments)
    call = "main(" + std::to_string(arguments.size()) + ", reinterpret_cast<char**>(" + std::to_string(reinterpret_cast<std::uintptr_t>(argv.data())) + "ul))";
  return self.execute("const int shown_main = kassette_repl_enter();\n*reinterpret_cast<int*>(" + std::to_string(reinterpret_cast<std::uintptr_t>(status)) + "ul) = " + call + ";") ==
         Impl::kRan;
}

std::string Interpreter::undo() { return impl_->names->undo(); }
std::vector<Interpreter::Completion> Interpreter::complete(const std::string& text) { return impl_->names->complete(text); }
std::string Interpreter::declaration(const std::string& name) { return impl_->names->declaration(name); }

}  // namespace repl

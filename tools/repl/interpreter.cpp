// tools/repl/interpreter.cpp - the only file that knows clang's interpreter.
#include "tools/repl/interpreter.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclContextInternals.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/Mangle.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Interpreter/Interpreter.h"
#include "clang/Interpreter/PartialTranslationUnit.h"
#include "clang/Sema/IdentifierResolver.h"
#include "clang/Sema/Sema.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include "tools/repl/guard.h"
#include "tools/repl/hints.h"
#include "tools/repl/input.h"

namespace repl {
namespace {

/// Errors as they are shown, kept until it is known whether this attempt is the one that counts.
class Messages : public clang::DiagnosticConsumer {
 public:
  Messages(clang::DiagnosticOptions* options) : stream_(text_), printer_(stream_, options) {}
  void BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) override {
    printer_.BeginSourceFile(options, preprocessor);
  }
  void EndSourceFile() override { printer_.EndSourceFile(); }
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    if (level == clang::DiagnosticsEngine::Warning && errors_) return;
    if (level >= clang::DiagnosticsEngine::Error) ++errors_;
    if (errors_ > 1) return;   // the rest mostly follows from the first
    llvm::SmallString<200> message;
    info.FormatDiagnostic(message);
    if (level >= clang::DiagnosticsEngine::Error && first_.empty()) first_ = message.str();
    printer_.HandleDiagnostic(level, info);
  }
  std::string take() {
    stream_.flush();
    // Every input counts as included from the one before; nobody wants to know.
    std::string out;
    for (std::size_t begin = 0; begin < text_.size();) {
      std::size_t end = std::min(text_.find('\n', begin), text_.size() - 1) + 1;
      std::string line = text_.substr(begin, end - begin);
      if (line.rfind("In included file", 0) != 0 && line.find("<<< inputs >>>") == std::string::npos) out += line;
      begin = end;
    }
    text_.clear();
    errors_ = 0;
    return out;
  }
  std::string take_first() { return std::move(first_); }

 private:
  std::string text_, first_;
  llvm::raw_string_ostream stream_;
  clang::TextDiagnosticPrinter printer_;
  int errors_ = 0;
};

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

/// What stands behind a name: a namespace, or the class of a variable.
clang::DeclContext* scope_of(clang::NamedDecl* d) {
  d = d->getUnderlyingDecl();
  if (auto* alias = llvm::dyn_cast<clang::NamespaceAliasDecl>(d)) return alias->getNamespace();
  if (auto* value = llvm::dyn_cast<clang::ValueDecl>(d)) {
    clang::QualType t = value->getType().getNonReferenceType();
    if (auto* f = t->getAs<clang::FunctionType>()) t = f->getReturnType().getNonReferenceType();
    if (t->isPointerType()) t = t->getPointeeType();
    return t->getAsCXXRecordDecl();
  }
  if (auto* type = llvm::dyn_cast<clang::TypedefNameDecl>(d)) return type->getUnderlyingType()->getAsCXXRecordDecl();
  return llvm::dyn_cast<clang::DeclContext>(d);
}

/// A declaration that another hides, and how it was found before.
struct Hidden {
  clang::NamedDecl* decl;
  bool in_scope;
};

}  // namespace

struct Interpreter::Impl {
  std::unique_ptr<clang::Interpreter> clang_;
  clang::DiagnosticOptions* options = nullptr;
  Messages* messages = nullptr;
  int serial = 0;
  std::string where;   // "file:line: " of what runs, where messages carry it
  bool locations = false, colour = false;
  struct Step {
    std::vector<Hidden> shown, hidden;
    std::string names;
  };
  std::vector<Step> steps;   // those that declared something

  clang::CompilerInstance& compiler() { return *clang_->getCompilerInstance(); }
  clang::ASTContext& context() { return compiler().getASTContext(); }
  clang::DeclContext* top() { return context().getTranslationUnitDecl()->getPrimaryContext(); }

  // --- hiding: `auto x = 2;` after `int x = 1;` ---------------------------------------------------
  std::vector<clang::NamedDecl*> find(clang::DeclarationName name) {
    std::vector<clang::NamedDecl*> out;
    for (clang::NamedDecl* d : top()->lookup(name)) out.push_back(d);
    return out;
  }
  bool in_resolver(clang::NamedDecl* d) {
    auto& resolver = compiler().getSema().IdResolver;
    for (auto i = resolver.begin(d->getDeclName()); i != resolver.end(); ++i)
      if (*i == d) return true;
    return false;
  }
  Hidden hide(clang::NamedDecl* d) {
    auto& sema = compiler().getSema();
    Hidden out{d, in_resolver(d)};
    if (out.in_scope) {
      sema.TUScope->RemoveDecl(d);
      sema.IdResolver.RemoveDecl(d);
    }
    for (clang::DeclContext* c : {top(), d->getDeclContext()->getPrimaryContext()})
      if (auto* map = c->getLookupPtr())
        if (auto p = map->find(d->getDeclName()); p != map->end() && llvm::is_contained(p->second.getLookupResult(), d)) p->second.remove(d);
    return out;
  }
  void unhide(const Hidden& h) {
    auto& sema = compiler().getSema();
    if (h.in_scope) {
      sema.TUScope->AddDecl(h.decl);
      sema.IdResolver.AddDecl(h.decl);
    }
    if (auto* map = top()->getLookupPtr()) (*map)[h.decl->getDeclName()].addOrReplaceDecl(h.decl);
  }

  static bool hideable(clang::NamedDecl* d) {
    return llvm::isa<clang::VarDecl, clang::FunctionDecl, clang::TagDecl, clang::TypedefNameDecl, clang::TemplateDecl, clang::UsingShadowDecl,
                     clang::UsingDecl, clang::BindingDecl>(d);
  }
  /// Whether a type is meant by the words before a name: `a * b` declares nothing where a is a variable.
  bool names_type(const std::string& words) {
    Input in = read_input(words + ";");
    for (const Token& t : in.tokens) {
      if (!t.word) continue;
      auto found = find(&context().Idents.get(t.text));
      if (found.empty()) return true;   // a keyword
      return std::any_of(found.begin(), found.end(), [](clang::NamedDecl* d) {
        return llvm::isa<clang::TypeDecl, clang::TemplateDecl, clang::NamespaceDecl, clang::NamespaceAliasDecl>(d->getUnderlyingDecl());
      });
    }
    return true;
  }
  /// Whether the input declares a name again: then it goes into a namespace of its own.
  bool redefines(const Input& in) {
    for (const auto& [name, type] : in.names) {
      for (clang::NamedDecl* d : find(&context().Idents.get(name))) {
        if (!hideable(d) || !names_type(type)) continue;
        auto* f = llvm::dyn_cast<clang::FunctionDecl>(d);
        if (f && !f->isDefined() && f->getDeclContext()->getRedeclContext()->isTranslationUnit()) continue;   // declared, and now defined
        return true;
      }
    }
    return false;
  }

  // --- running ------------------------------------------------------------------------------------
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
    declared(parsed->TUPart, ok);
    return ok ? kRan : kFailed;
  }

  /// The new names take the place of the old ones; after a failure the old ones stay.
  void declared(clang::DeclContext* part, bool ok) {
    std::vector<clang::NamedDecl*> fresh;
    auto collect = [&](auto& self, clang::DeclContext* c) -> void {
      for (clang::Decl* d : c->decls()) {
        if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d); space && space->isInline() && space->getName().starts_with("line_")) self(self, space);
        else if (auto* pair = llvm::dyn_cast<clang::DecompositionDecl>(d)) fresh.insert(fresh.end(), pair->bindings().begin(), pair->bindings().end());
        else if (auto* n = llvm::dyn_cast<clang::NamedDecl>(d); n && n->getDeclName() && hideable(n) && !n->isImplicit()) fresh.push_back(n);
      }
    };
    collect(collect, part);
    std::set<std::string> names;
    Step step;
    for (clang::NamedDecl* d : fresh) {
      std::string name = d->getNameAsString();
      if (name.rfind("shown_", 0) == 0) continue;
      if (!ok) {
        hide(d);
        continue;
      }
      if (d->getDeclContext()->isNamespace())
        for (clang::NamedDecl* old : find(d->getDeclName()))
          if (hideable(old) && std::find(fresh.begin(), fresh.end(), old) == fresh.end() && old->getCanonicalDecl() != d->getCanonicalDecl())
            step.hidden.push_back(hide(old));
      step.shown.push_back({d, in_resolver(d)});
      names.insert(name);
    }
    for (const std::string& name : names) step.names += (step.names.empty() ? "" : ", ") + name;
    if (!names.empty()) steps.push_back(std::move(step));
  }

  // --- messages -----------------------------------------------------------------------------------
  std::string hint(const std::string& error) {
    return hint_for(error, [&](const std::string& name) {
      for (clang::NamedDecl* d : find(&context().Idents.get("K")))
        if (clang::DeclContext* k = scope_of(d); k && !k->lookup(&context().Idents.get(name)).empty()) return true;
      return false;
    });
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
  impl_->steps.clear();
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
  if (self.redefines(in) || (lambda && !in.names.empty())) body = "inline namespace line_" + std::to_string(++self.serial) + " {\n" + body + "\n}";
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
  for (clang::NamedDecl* d : self.find(&self.context().Idents.get("main")))
    if (auto* f = llvm::dyn_cast<clang::FunctionDecl>(d)) with_arguments = f->getNumParams() > 0;
  std::string call = "main()";
  if (with_arguments)
    call = "main(" + std::to_string(arguments.size()) + ", reinterpret_cast<char**>(" + std::to_string(reinterpret_cast<std::uintptr_t>(argv.data())) + "ul))";
  return self.execute("const int shown_main = kassette_repl_enter();\n*reinterpret_cast<int*>(" + std::to_string(reinterpret_cast<std::uintptr_t>(status)) + "ul) = " + call + ";") ==
         Impl::kRan;
}

std::string Interpreter::undo() {
  if (impl_->steps.empty()) return "";
  Impl::Step step = std::move(impl_->steps.back());
  impl_->steps.pop_back();
  for (const Hidden& h : step.shown) impl_->hide(h.decl);
  for (const Hidden& h : step.hidden) impl_->unhide(h);
  return step.names;
}

namespace {

void all_parts(clang::DeclContext* c, std::vector<clang::DeclContext*>* out) {
  if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(c)) {
    for (auto* part : space->redecls()) out->push_back(part);
  } else if (auto* unit = llvm::dyn_cast<clang::TranslationUnitDecl>(c)) {
    for (auto* part : unit->redecls()) out->push_back(part);
  } else {
    out->push_back(c);
    if (auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(c); record && record->hasDefinition())
      for (const auto& base : record->bases())
        if (auto* b = base.getType()->getAsCXXRecordDecl()) all_parts(b, out);
  }
}

}  // namespace

std::vector<Interpreter::Completion> Interpreter::complete(const std::string& text) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::size_t at = text.size();
  while (at > 0 && is_word(text[at - 1])) --at;
  std::string prefix = text.substr(at);
  std::vector<std::string> path;   // outermost last
  std::size_t i = at;
  bool member = false;
  while (i > 0) {
    std::size_t step = text[i - 1] == '.' ? 1 : i > 1 && (text.compare(i - 2, 2, "::") == 0 || text.compare(i - 2, 2, "->") == 0) ? 2 : 0;
    if (!step) break;
    member = member || text[i - 1] != ':';
    std::size_t end = i - step;
    // f(x)[0].  - what the call or the index gives is not followed further than a call.
    while (end > 0 && text[end - 1] == ')') {
      int depth = 0;
      while (end > 0) {
        --end;
        if (text[end] == ')') ++depth;
        if (text[end] == '(' && --depth == 0) break;
      }
    }
    std::size_t begin = end;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    if (begin == end) return {};
    path.push_back(text.substr(begin, end - begin));
    i = begin;
  }
  Impl& self = *impl_;
  clang::DeclContext* scope = self.top();
  for (auto name = path.rbegin(); name != path.rend(); ++name) {
    auto found = scope->lookup(&self.context().Idents.get(*name));
    scope = nullptr;
    for (clang::NamedDecl* d : found)
      if ((scope = scope_of(d))) break;
    if (!scope) return {};
  }
  std::vector<clang::DeclContext*> parts;
  all_parts(scope, &parts);
  std::set<std::string> names;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (clang::Decl* d : parts[p]->decls()) {
      if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d); space && space->isInline()) parts.push_back(space);
      auto* n = llvm::dyn_cast<clang::NamedDecl>(d);
      if (!n || !n->getIdentifier() || n->getAccess() == clang::AS_private || n->getAccess() == clang::AS_protected || n->isImplicit()) continue;
      if (member && llvm::isa<clang::TypeDecl>(n)) continue;
      std::string name = n->getName().str();
      if (name.rfind(prefix, 0) == 0 && (name[0] != '_' || !prefix.empty()) && name.rfind("shown_", 0) != 0 && name.rfind("kassette_repl_", 0) != 0) names.insert(name);
    }
  // At the top the C library has hundreds of names: they come once something is typed.
  std::vector<Completion> out;
  for (const std::string& name : names) out.push_back({name.substr(prefix.size()), name});
  return out;
}

std::string Interpreter::declaration(const std::string& name) {
  Impl& self = *impl_;
  clang::DeclContext* scope = self.top();
  std::string out, rest = name;
  while (!rest.empty() && scope) {
    auto end = rest.find("::");
    std::string step = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 2);
    if (step.empty()) continue;
    auto found = scope->lookup(&self.context().Idents.get(step));
    scope = nullptr;
    for (clang::NamedDecl* d : found) {
      if (!rest.empty()) {
        if ((scope = scope_of(d))) break;
        continue;
      }
      d = d->getUnderlyingDecl();
      llvm::raw_string_ostream os(out);
      clang::PrintingPolicy policy = self.context().getPrintingPolicy();
      policy.TerseOutput = true;
      d->print(os, policy);
      out += '\n';
    }
  }
  return out;
}

}  // namespace repl

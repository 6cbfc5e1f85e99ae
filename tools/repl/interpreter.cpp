// tools/repl/interpreter.cpp - runs pieces of C++ by clang's interpreter.
#include "tools/repl/interpreter.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Mangle.h"
#include "clang/Interpreter/Interpreter.h"
#include "clang/Interpreter/PartialTranslationUnit.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <kassette/repl.h>

#include "tools/repl/checker.h"
#include "tools/repl/guard.h"
#include "tools/repl/hints.h"
#include "tools/repl/input.h"
#include "tools/repl/messages.h"
#include "tools/repl/modules.h"
#include "tools/repl/names.h"
#include "tools/repl/namespaces.h"
#include "tools/repl/prelude.h"
#include "tools/repl/values.h"
#include "tools/repl/wrapper.h"

namespace repl {
namespace {

/// The index of the innermost bracket that is open before the token at `end`; tokens.size() if there is none.
std::size_t innermost_open(const std::vector<Token>& tokens, std::size_t end) {
  int closed = 0;
  for (std::size_t i = std::min(end, tokens.size()); i-- > 0;) {
    if (!tokens[i].bracket) continue;
    const bool closes = tokens[i].text == ")" || tokens[i].text == "]" || tokens[i].text == "}";
    closed += closes ? 1 : -1;
    if (closed < 0) return i;
  }
  return tokens.size();
}

}  // namespace

struct Interpreter::Impl {
  std::unique_ptr<clang::ASTConsumer> follower;
  std::unique_ptr<clang::Interpreter> clang_;
  std::optional<Names> names;
  Messages* messages = nullptr;
  int serial = 0;
  bool else_may_follow = false;  // the last input ended in an `if`
  std::string input;             // what the user typed
  std::string where;             // "file:line: " of what runs, where messages carry it
  bool locations = false, colour = false;
  std::ostream* messages_to = nullptr;

  std::ostream& errors() { return messages_to ? *messages_to : std::cerr; }
  clang::CompilerInstance& compiler() { return *clang_->getCompilerInstance(); }
  clang::ASTContext& context() { return compiler().getASTContext(); }

  /// A module with an unresolved symbol must not reach the JIT: every inline function in it would stay unusable for
  /// good.
  std::string unlinkable(const std::string& undefined) {
    for (std::size_t begin = 0, end; (end = undefined.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string name = undefined.substr(begin, end - begin);
      if (dlsym(RTLD_DEFAULT, name.c_str())) continue;
      auto address = clang_->getSymbolAddress(name);
      if (address) continue;
      llvm::consumeError(address.takeError());
      return "declared but defined nowhere: " + llvm::demangle(name) +
             "; a function is defined before the line that calls it";
    }
    return "";
  }

  // Note [Closures]
  // A variable of a closure's type has internal linkage, and clang 19 gives every later input its own copy of it: of
  // zeros, or made anew. So the first definition is exported, and what stands for it in later modules becomes a
  // declaration.
  std::map<std::string, clang::VarDecl*> internal;
  std::set<std::string> exported;
  void export_internal(clang::DeclContext* part, llvm::Module& m) {
    clang::ASTNameGenerator mangle(context());
    auto visit = [&](auto& self, clang::DeclContext* c) -> void {
      for (clang::Decl* d : c->decls()) {
        if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d)) self(self, space);
        auto* v = llvm::dyn_cast<clang::VarDecl>(d);
        if (v && !v->isExternallyVisible() && !v->getName().starts_with("shown_") && in_user_code)
          internal[mangle.getName(v)] = v;
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
  bool directive = false;     // the input is one of the preprocessor
  bool in_user_code = false;  // the prelude's headers are behind us

  void say(const std::string& text) {
    std::cout.flush();
    errors() << (colour ? "\033[1;31m" : "") << where << (colour ? "\033[0m" : "") << text << std::endl;
  }

  // At a prompt: the lines that were typed, by number, the file that they are of, and the first of the current input.
  std::map<int, std::string> typed;
  std::string prompt;
  int first_line = 0;
  void type(const std::string& code, const std::string& file, int line) {
    prompt = file;
    first_line = line;
    std::istringstream lines(code);
    for (std::string text; std::getline(lines, text); ++line) {
      const auto begin = text.find_first_not_of(" \t");
      if (begin != std::string::npos) typed.try_emplace(line, text.substr(begin));
    }
  }
  /// Prints an error of code that ran, with its file and line, or at a prompt with the text of the line, unless it is
  /// the only one of the input.
  void say_at(const SourceLine& at, const std::string& text) {
    const bool at_prompt = !locations && at.file == prompt;
    const std::string before = where;
    if (at.line && !at_prompt) where = at.file + ":" + std::to_string(at.line) + ": ";
    say(text);
    where = before;
    auto line = at_prompt ? typed.find(at.line) : typed.end();
    if (line != typed.end() && (at.line < first_line || typed.count(first_line + 1)))
      errors() << "  at: " << line->second << std::endl;
  }

  Messages::Shown refusal;
  void show(const Messages::Shown& r) {
    std::cout.flush();
    const std::string said = r.text + hint(r.error);
    errors() << (colour ? Messages::coloured(said) : said) << std::flush;
  }

  // ---- in the checker, see Note [The checker] ----
  clang::TranslationUnitDecl* checked = nullptr;
  std::optional<std::string> check(const Record& request, const Checker::Report& report) {
    if (checked) names->declared(checked, request.get("last") == "ok");
    if (chdir(request.get("folder").c_str()) != 0) {  // then no file is found from there
    }
    names->hide_ahead(words(request.get("ahead")));
    messages->on_error = [&](bool first_error) {
      if (!first_error) _exit(1);  // all that is shown is known
      report(messages->text());
    };
    auto parsed = clang_->Parse(request.get("code"));
    if (!parsed) {
      llvm::consumeError(parsed.takeError());
      report(messages->text());
      return std::nullopt;
    }
    messages->take();
    checked = parsed->TUPart;
    if (const std::string name = names->spent(checked); !name.empty()) {
      report("error: redefinition of '" + name + "'\n");
      return std::nullopt;
    }
    if (!parsed->TheModule) return "";
    export_internal(parsed->TUPart, *parsed->TheModule);
    std::string needs = undefined(*parsed->TheModule);
    if (std::string said = assembled(*parsed->TheModule); !said.empty()) {
      report("error: " + said + "\n");
      return std::nullopt;
    }
    return needs;
  }
  Checker checker{[this](const Record& request, const Checker::Report& report) { return check(request, report); }};
  bool last_ok = true;
  std::string ahead;  // the names that the code declares again and that would be ambiguous, with blanks between them

  static std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
  }

  enum Result { kRan, kNotParsed, kFailed };
  /// Has the checker compile the code. Returns how execute() ends, or nullopt if the code may be compiled here.
  std::optional<Result> refused_by_checker(const std::string& code, bool quiet) {
    std::error_code error;
    const std::string folder = std::filesystem::current_path(error).string();
    // `last` is how the input before ended, here, where it ran; `ahead` the names that the code declares again.
    const Record request = {
        "check", {{"last", last_ok ? "ok" : "failed"}, {"folder", folder}, {"ahead", ahead}, {"code", code}}};
    Checker::Verdict verdict = checker.check(request);
    if (verdict.end == Checker::Verdict::kRefused && names->load_for(verdict.text)) verdict = checker.check(request);
    static const char* const kUnchanged = "; nothing was run, and the session is as it was before\n";
    switch (verdict.end) {
      case Checker::Verdict::kPassed: {
        const std::string missing = unlinkable(verdict.text);
        if (missing.empty()) return std::nullopt;
        checker.stop();
        say("error: " + missing);
        return kFailed;
      }
      case Checker::Verdict::kNoCopy: return std::nullopt;
      case Checker::Verdict::kRefused: refusal = Messages::shown(verdict.text); break;
      case Checker::Verdict::kCrashed:
        refusal.text =
            where + "error: the compiler crashes on this input (" + sigdescr_np(verdict.signal) + ")" + kUnchanged;
        break;
      case Checker::Verdict::kEndless:
        refusal.text =
            where + "error: the compiler does not finish this input, or needs more memory than there is" + kUnchanged;
        show(refusal);
        return kFailed;
      case Checker::Verdict::kInterrupted: say("interrupted"); return kFailed;
    }
    if (!quiet) show(refusal);
    return kNotParsed;
  }

  /// Runs what was parsed. Prints its error; returns whether there was none.
  bool run_parsed(clang::PartialTranslationUnit& parsed) {
    const Guarded result = guarded([&] {
      llvm::Error e = clang_->Execute(parsed);
      kassette_repl_leave();
      if (!e) return true;
      say("error: " + llvm::toString(std::move(e)));
      return false;
    });
    std::cout.flush();
    if (!result.error.empty()) say_at(result.at, result.error);
    return result.ok;
  }

  /// Checks, parses, then runs. Only the errors of an attempt that is not `quiet` are shown.
  Result execute(const std::string& code, bool quiet = false, bool check_first = true) {
    refusal = {};
    if (check_first)
      if (const std::optional<Result> refused = refused_by_checker(code, quiet)) return *refused;
    names->hide_ahead(words(ahead));
    auto parsed = clang_->Parse(code);
    close_files(compiler());
    refusal = messages->take();
    if (!parsed) {  // a file that is included has changed since the checker read it
      checker.stop();
      names->show_again();
      llvm::consumeError(parsed.takeError());
      if (!quiet) show(refusal);
      return kNotParsed;
    }
    errors() << refusal.text << std::flush;  // warnings
    std::string missing;
    if (parsed->TheModule) export_internal(parsed->TUPart, *parsed->TheModule);
    if (parsed->TheModule && !check_first) missing = unlinkable(undefined(*parsed->TheModule));
    if (!missing.empty()) say("error: " + missing);
    if (parsed->TheModule && in_user_code) add_stops(*parsed->TheModule);
    last_ok = missing.empty() && (!parsed->TheModule || run_parsed(*parsed));
    names->declared(parsed->TUPart, last_ok, directive ? Names::kKeeps : Names::kUndoes);
    return last_ok ? kRan : kFailed;
  }

  /// Runs the input from in.shown on as an expression whose value is shown, or else as a statement. Returns nullopt if
  /// it is a declaration.
  std::optional<bool> show_value(const Input& in, const Wrapper& wrapper) {
    const std::string& code = wrapper.code;
    const std::string name = wrapper.fresh_name();
    showing = name;
    Result result = execute(wrapper.enter() + wrapper.shown(in.shown, name), /*quiet=*/true);
    if (result == kRan) last_shown = name;
    if (result != kNotParsed) return result == kRan;
    if (!in.names.empty()) return std::nullopt;
    Messages::Shown shown = refusal;
    // The error is about the code around the user's, or has no text.
    const bool ours = shown.text.find("shown_") != std::string::npos ||
                      shown.text.find("show_and_keep") != std::string::npos || shown.error.empty();
    if (ours) {  // a bit-field, or what cannot be copied although it says so
      result = execute(wrapper.enter() + wrapper.function(in.shown, code.size(), "\n))", "::kassette::repl::show((\n"),
                       /*quiet=*/true);
      if (result != kNotParsed) return result == kRan;
      const bool sure = !in.statements.empty() && in.statements.back().begin == in.shown;
      result = execute(wrapper.enter() + (sure ? wrapper.function(in.shown, code.size())
                                               : wrapper.mark(in.shown) + code.substr(in.shown) + "\n;"),
                       /*quiet=*/true);
      if (result != kNotParsed) return result == kRan;
      shown = refusal;
    }
    // of type void?
    result = execute(wrapper.enter() + wrapper.function(in.shown, code.size(), "\n)", "(\n"), /*quiet=*/true);
    if (result != kNotParsed) return result == kRan;
    if (shown.error.find("expected") != std::string::npos && !type_of(wrapper, in.shown, "\n", "\n").empty())
      say("error: a type has no value; " + code.substr(in.shown, code.find_last_not_of(" \t\n") + 1 - in.shown) +
          "{...} makes one");
    else show(shown);
    return false;
  }

  /// The type that the code stands for between `before` and `after`; empty, and an error in `refusal`, if there is
  /// none.
  std::string type_of(const Wrapper& wrapper, std::size_t begin, const char* before, const char* after) {
    const std::string name = wrapper.fresh_name();
    const std::string code =
        "using " + name + " = " + before + wrapper.mark(begin) + wrapper.code.substr(begin) + after + ";\n";
    return execute(code, /*quiet=*/true) == kRan ? names->type(name) : "";
  }

  /// Whether the last refusal was because a name has a definition already.
  bool refused_again() const {
    for (const char* words : {"redefinition", "differ only in their return type", "conflicting types", "redeclar"})
      if (refusal.error.find(words) != std::string::npos) return true;
    return false;
  }

  /// The code of an input that shows nothing, and the same with what it declares in namespaces of its own.
  struct Body {
    std::string plain, again;
    bool only_again;
  };
  Body body_of(const Input& in, const Wrapper& wrapper) {
    const std::string own = "line_" + std::to_string(++serial);
    std::string body = wrapper.statements(in);
    // Else clang would put off a variable of internal linkage until it is used, and its initialiser until after that.
    // See Note [Closures].
    const std::string& first = in.tokens[0].text;
    if (!in.names.empty() && (first == "auto" || first == "const" || first == "static"))
      body = "[[gnu::used]]\n" + body;
    if (has_namespace(in))
      return {wrapper.enter() + body, wrapper.enter() + wrapper.mark(0) + in_own_spaces(wrapper, in, own), false};
    return {wrapper.enter() + body, wrapper.enter() + "inline namespace " + own + " {\n" + body + "\n}",
            names->redefines(in) || (has_lambda(in) && !in.names.empty())};
  }

  /// Executes what declares names again.
  Result execute_again(const Input& in, const std::string& code, const std::string& again) {
    if (has_namespace(in))
      for (const std::string& name : members(code, in)) ahead += name + ' ';
    const Result result = execute(again, /*quiet=*/true);
    ahead.clear();
    return result;
  }

  bool run_body(const Input& in, const Wrapper& wrapper) {
    const Body body = body_of(in, wrapper);
    if (body.only_again) return execute(body.again) == kRan;
    Result result = execute(body.plain, /*quiet=*/true);
    if (result != kNotParsed) return result == kRan;
    const Messages::Shown shown = refusal;
    if (refused_again()) result = execute_again(in, wrapper.code, body.again);
    if (result == kNotParsed) show(refused_again() ? shown : refusal);
    return result == kRan;
  }

  /// Runs the declarations and statements of an input one after the other. First they are checked as a whole: a mistake
  /// in one leaves all undone.
  bool run_pieces(const Input& in, const Wrapper& wrapper) {
    const Body body = body_of(in, wrapper);
    if (has_namespace(in)) {
      for (const std::string& name : members(wrapper.code, in)) ahead += name + ' ';
      for (const Input::Name& name : in.names) ahead += name.name + ' ';
    }
    const std::optional<Result> refused = refused_by_checker(body.only_again ? body.again : body.plain, /*quiet=*/true);
    ahead.clear();
    if (refused && !(*refused == kNotParsed && refused_again())) {
      if (*refused == kNotParsed) show(refusal);
      return false;
    }
    checker.stop();  // it has seen what has not run
    const std::size_t before = names->changes();
    bool ok = true;
    for (std::size_t i = 0; ok && i < in.pieces.size(); ++i) {
      const std::size_t begin = in.pieces[i].begin;
      const std::string code =
          std::string(wrapper.column(begin), ' ') + wrapper.code.substr(begin, in.pieces[i].end - begin);
      const Input piece = read_input(code);
      ok = run_body(piece, {code, wrapper.file, wrapper.line_of(begin), serial});
    }
    names->join_changes(before);
    return ok;
  }

  // What the library asks of a type: on this thread only, for the compiler may be busy on it.
  std::string showing;  // the function whose type is that of a pointer to the value that is being shown
  static Impl* describing;
  const std::thread::id thread = std::this_thread::get_id();
  static bool describe(const char* type, const void* value, std::ostream& out) {
    if (!describing || describing->thread != std::this_thread::get_id()) return false;
    const clang::QualType found = describing->names->type_named(type, describing->showing);
    if (!has_text(found)) return false;
    write_value(describing->context(), found, value, out);
    return true;
  }

  // `_` is a reference to the value that was shown last, declared where it is used.
  std::string last_shown;                  // the function whose type is that of a pointer to the value
  clang::NamedDecl* underscore = nullptr;  // what this declared
  bool declare_last(const Input& in) {
    const bool used = std::any_of(in.tokens.begin(), in.tokens.end(), [](const Token& t) { return t.text == "_"; });
    if (!used || last_shown.empty() || !kassette::repl::detail::last_value()) return true;
    auto found = names->find("_");
    if (!found.empty() && found[0] != underscore) return true;  // the user's own
    const std::string function = std::exchange(last_shown, "");
    const bool before = std::exchange(directive, true);  // not for .undo
    const Result result =
        execute("inline namespace line_" + std::to_string(++serial) + " { auto& _ = *static_cast<decltype(" + function +
                "())>(::kassette::repl::detail::last_value()); }");
    directive = before;
    found = names->find("_");
    underscore = found.empty() ? nullptr : found[0];
    return result == kRan;
  }

  std::string hint(const std::string& error) {
    OurNames ours = names->ours(/*numpy=*/input.find("np::") != std::string::npos);
    ours.system_proposed = error.find(Messages::kOfSystem) != std::string::npos;
    return hint_for(error, input, ours);
  }
};

Interpreter::Impl* Interpreter::Impl::describing = nullptr;

Interpreter::Interpreter(const InterpreterOptions& options) : impl_(new Impl) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::InitializeNativeTargetAsmParser();  // `asm` in a line or a header
  Prelude prelude(options.include_dir);
  auto made = clang::Interpreter::create(make_compiler(compiler_options(options.include_dir, prelude.file())));
  if (!made && !prelude.file().empty()) {
    llvm::consumeError(made.takeError());
    prelude.discard();
    made = clang::Interpreter::create(make_compiler(compiler_options(options.include_dir)));
  }
  if (!made) throw std::runtime_error("clang's interpreter does not start: " + llvm::toString(made.takeError()));
  impl_->clang_ = std::move(*made);
  impl_->follower = follow_precompiled(&impl_->compiler());
  impl_->names.emplace(impl_->compiler());
  impl_->locations = options.locations;
  impl_->colour = options.colour;
  impl_->messages_to = options.errors;
  auto& diagnostics = impl_->compiler().getDiagnostics();
  auto* shown = &diagnostics.getDiagnosticOptions();
  shown->ShowColors = options.colour;
  shown->ShowLocation = options.locations;
  shown->ShowColumn = options.locations;
  shown->ShowLineNumbers = 0;
  shown->ShowNoteIncludeStack = 0;
  shown->SnippetLineLimit = 4;
  diagnostics.setShowOverloads(clang::Ovl_Best);
  impl_->messages = new Messages(shown);
  impl_->messages->BeginSourceFile(impl_->compiler().getLangOpts(), &impl_->compiler().getPreprocessor());
  diagnostics.setClient(impl_->messages, true);
  // Headers that do not compile would end the process: clang cannot take back its first input.
  const bool read_here = prelude.file().empty();
  if (impl_->execute((read_here ? kHeaders : "") + options.prelude, /*quiet=*/false, read_here) != Impl::kRan)
    throw std::runtime_error("the headers of kassette do not compile");
  impl_->names->keep_all();
  impl_->in_user_code = true;
  Impl::describing = impl_.get();
  kassette::repl::set_describe(Impl::describe);
}

Interpreter::~Interpreter() {
  kassette::repl::set_describe(nullptr);
  Impl::describing = nullptr;
  kassette::repl::detail::keep_last(nullptr, nullptr);
}

bool Interpreter::run(const std::string& code, const std::string& file, int line) {
  Impl& self = *impl_;
  if (self.locations) self.where = file + ":" + std::to_string(line) + ": ";
  self.input = code;
  if (!self.locations) self.type(code, file, line);
  const Input in = read_input(code);
  if (in.tokens.empty()) return true;
  const Wrapper wrapper{code, file, line, self.serial};
  if (in.tokens[0].text == "#") {
    // The lines of a header that is pasted are no file; clang 19 crashes on it.
    if (in.tokens.size() == 3 && in.tokens[1].text == "pragma" && in.tokens[2].text == "once") return true;
    self.directive = true;
    const bool ran = self.execute(wrapper.enter() + wrapper.mark(0) + code) == Impl::kRan;
    self.directive = false;
    return ran;
  }
  const bool else_may_follow = std::exchange(self.else_may_follow, false);
  if (in.tokens[0].text == "else") {
    if (else_may_follow) return run(with_if(in, code), file, line - 1);
    self.say("error: there is no `if` in the line before that this `else` could belong to");
    return false;
  }
  if (const std::string broken = in.broken.empty() ? python_list(code, in) : in.broken; !broken.empty()) {
    self.say("error: " + broken);
    return false;
  }
  if (!self.declare_last(in)) return false;
  self.input = code;
  self.errors() << hints_before(code, in) << (self.locations ? "" : hints_at_prompt(in)) << std::flush;
  if (in.shown != std::string::npos) {
    if (in.shown > 0 && !run(code.substr(0, in.shown), file, line)) return false;
    self.input = code;
    if (const std::optional<bool> ran = self.show_value(in, wrapper)) return *ran;
  }
  const bool ran = in_order(in) ? self.run_body(in, wrapper) : self.run_pieces(in, wrapper);
  self.else_may_follow = ran && in.takes_else;
  return ran;
}

bool Interpreter::run_program(const std::string& code, const std::string& file,
                              const std::vector<std::string>& arguments, int* status) {
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
    call = "main(" + std::to_string(arguments.size()) + ", reinterpret_cast<char**>(" +
           std::to_string(reinterpret_cast<std::uintptr_t>(argv.data())) + "ul))";
  return self.execute("const int shown_main = kassette_repl_enter();\n*reinterpret_cast<int*>(" +
                      std::to_string(reinterpret_cast<std::uintptr_t>(status)) + "ul) = " + call + ";") == Impl::kRan;
}

bool Interpreter::declares(const std::string& name) { return !impl_->names->find(name).empty(); }
std::string Interpreter::names() { return impl_->names->listed(); }

bool Interpreter::set_locations(bool locations) {
  impl_->checker.stop();  // it would go on as before
  auto& shown = impl_->compiler().getDiagnostics().getDiagnosticOptions();
  shown.ShowLocation = shown.ShowColumn = locations;
  if (!locations) impl_->where.clear();
  return std::exchange(impl_->locations, locations);
}

bool Interpreter::show_type(const std::string& expression, const std::string& file, int line) {
  Impl& self = *impl_;
  if (self.locations) self.where = file + ":" + std::to_string(line) + ": ";
  self.input = expression;
  const Wrapper wrapper{expression, file, line, self.serial};
  std::string type = self.type_of(wrapper, 0, "decltype(\n", "\n)");
  const Messages::Shown shown = self.refusal;
  if (type.empty()) type = self.type_of(wrapper, 0, "\n", "\n");
  if (type.empty()) self.show(shown);
  else std::cout << type << std::endl;
  return !type.empty();
}

std::string Interpreter::undo() {
  impl_->checker.stop();  // it does not know of this
  return impl_->names->undo();
}
std::vector<Interpreter::Completion> Interpreter::complete(const std::string& text) {
  // f(x, {.na
  const std::vector<Token> tokens = read_input(text).tokens;
  std::size_t n = tokens.size();
  const std::string prefix = n > 0 && tokens[n - 1].word && tokens[n - 1].end == text.size() ? tokens[--n].text : "";
  if (n > 1 && tokens[n - 1].text == "." && (tokens[n - 2].text == "{" || tokens[n - 2].text == ",")) {
    const std::size_t brace = innermost_open(tokens, n - 1);
    const std::size_t paren = innermost_open(tokens, brace);
    if (brace < n && tokens[brace].text == "{" && paren < brace && tokens[paren].text == "(")
      return impl_->names->options(text.substr(0, tokens[paren].begin), prefix);
  }
  return impl_->names->complete(text);
}

Interpreter::Call Interpreter::call_around(const std::string& text) {
  const std::vector<Token> tokens = read_input(text).tokens;
  std::size_t open = innermost_open(tokens, tokens.size());
  while (open < tokens.size() && tokens[open].text != "(") {
    const std::size_t outer = innermost_open(tokens, open);
    if (outer >= open) return {};
    open = outer;
  }
  Call call;
  if (open < tokens.size()) call.signatures = impl_->names->signatures(text.substr(0, tokens[open].begin), &call.name);
  return call;
}
std::string Interpreter::declaration(const std::string& name) { return impl_->names->declaration(name); }

}  // namespace repl

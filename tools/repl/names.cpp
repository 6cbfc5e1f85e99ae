// tools/repl/names.cpp - the names of a session.
#include "tools/repl/names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "clang/AST/DeclContextInternals.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Sema/IdentifierResolver.h"
#include "clang/Sema/Sema.h"
#include "llvm/Support/raw_ostream.h"

#include "tools/repl/cell.h"

namespace repl {
namespace {

/// The scope that a name stands for: a namespace, or the class of a variable.
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

bool hideable(clang::NamedDecl* d) {
  return llvm::isa<clang::VarDecl, clang::FunctionDecl, clang::TagDecl, clang::TypedefNameDecl, clang::TemplateDecl,
                   clang::UsingShadowDecl, clang::UsingDecl, clang::BindingDecl>(d);
}

/// The namespace that an input has of its own, so that it may declare names again.
bool is_own_space(const clang::DeclContext* c) {
  auto* space = llvm::dyn_cast<clang::NamespaceDecl>(c);
  return space && space->isInline() && space->getName().starts_with("line_");
}

/// The namespace or unit that a declaration is a member of for those who look it up.
clang::DeclContext* home(clang::NamedDecl* d) {
  clang::DeclContext* c = d->getDeclContext()->getRedeclContext();
  while (is_own_space(c)) c = c->getParent()->getRedeclContext();
  return c->getPrimaryContext();
}

/// A name with its namespaces: "my::f".
std::string path_of(clang::NamedDecl* d) {
  std::string path = d->getNameAsString();
  for (clang::DeclContext* c = d->getDeclContext(); c; c = c->getParent())
    if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(c); space && !is_own_space(c))
      path = space->getNameAsString() + "::" + path;
  return path;
}

/// The declarations of an input that can be hidden, in namespaces too.
void collect(clang::DeclContext* part, std::vector<clang::NamedDecl*>* out) {
  for (clang::Decl* d : part->decls()) {
    if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d)) collect(space, out);
    else if (auto* pair = llvm::dyn_cast<clang::DecompositionDecl>(d))
      out->insert(out->end(), pair->bindings().begin(), pair->bindings().end());
    else if (auto* n = llvm::dyn_cast<clang::NamedDecl>(d);
             n && n->getDeclName() && hideable(n) && !n->isImplicit() && n->getNameAsString().rfind("shown_", 0) != 0)
      out->push_back(n);
  }
}

/// Whether two members of a namespace are overloads of each other.
bool overloads(clang::NamedDecl* a, clang::NamedDecl* b) {
  auto *f = a->getAsFunction(), *g = b->getAsFunction();
  if (!f || !g) return false;
  if (f->getNumParams() != g->getNumParams() || llvm::isa<clang::TemplateDecl>(a) != llvm::isa<clang::TemplateDecl>(b))
    return true;
  for (unsigned i = 0; i < f->getNumParams(); ++i)
    if (f->getParamDecl(i)->getType().getCanonicalType() != g->getParamDecl(i)->getType().getCanonicalType())
      return true;
  return false;
}

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

// ---- hiding: `auto x = 2;` after `int x = 1;` -----------------------------------------------------------------------

std::vector<clang::NamedDecl*> Names::find(const std::string& name) { return find(named(name)); }
std::vector<clang::NamedDecl*> Names::find(clang::DeclarationName name) {
  std::vector<clang::NamedDecl*> out;
  for (clang::NamedDecl* d : top()->lookup(name)) out.push_back(d);
  return out;
}

bool Names::in_resolver(clang::NamedDecl* d) {
  auto& resolver = compiler_.getSema().IdResolver;
  for (auto i = resolver.begin(d->getDeclName()); i != resolver.end(); ++i)
    if (*i == d) return true;
  return false;
}

Names::Hidden Names::hide(clang::NamedDecl* d) {
  auto& sema = compiler_.getSema();
  Hidden out{d, in_resolver(d), {}};
  if (out.in_scope) {
    sema.TUScope->RemoveDecl(d);
    sema.IdResolver.RemoveDecl(d);
  }
  std::set<clang::DeclContext*> contexts = {d->getDeclContext()->getPrimaryContext(), home(d)};
  for (clang::DeclContext* c : contexts)
    if (auto* map = c->getLookupPtr())
      if (auto p = map->find(d->getDeclName()); p != map->end() && llvm::is_contained(p->second.getLookupResult(), d)) {
        p->second.remove(d);
        out.found_in.push_back(c);
      }
  spent_.insert(path_of(d));
  return out;
}

void Names::unhide(const Hidden& h) {
  auto& sema = compiler_.getSema();
  if (h.in_scope) {
    sema.TUScope->AddDecl(h.decl);
    sema.IdResolver.AddDecl(h.decl);
  }
  for (clang::DeclContext* c : h.found_in)
    if (auto* map = c->getLookupPtr()) (*map)[h.decl->getDeclName()].addOrReplaceDecl(h.decl);
}

/// Whether the words before a name are a type: `a * b` declares nothing if a is a variable.
bool Names::names_type(const std::string& words) {
  Input in = read_input(words + ";");
  for (const Token& t : in.tokens) {
    if (!t.word) continue;
    auto found = find(t.text);
    if (found.empty()) return true;  // a keyword
    return std::any_of(found.begin(), found.end(), [](clang::NamedDecl* d) {
      return llvm::isa<clang::TypeDecl, clang::TemplateDecl, clang::NamespaceDecl, clang::NamespaceAliasDecl>(
          d->getUnderlyingDecl());
    });
  }
  return true;
}

bool Names::redefines(const Input& in) {
  for (const auto& [name, type] : in.names) {
    bool again = spent_.count(name) != 0;
    for (clang::NamedDecl* d : find(name)) {
      if (!hideable(d)) continue;
      auto* f = llvm::dyn_cast<clang::FunctionDecl>(d);
      // Declared, and now defined: no redefinition.
      again = !f || f->isDefined() || !f->getDeclContext()->getRedeclContext()->isTranslationUnit();
      if (again) break;
    }
    if (again && names_type(type)) return true;
  }
  return false;
}

void Names::hide_ahead(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    clang::DeclContext* scope = top();
    std::size_t begin = 0;
    for (std::size_t end; scope && (end = path.find("::", begin)) != std::string::npos; begin = end + 2) {
      clang::DeclContext* inner = nullptr;
      for (clang::NamedDecl* d : scope->lookup(named(path.substr(begin, end - begin))))
        if (llvm::isa<clang::NamespaceDecl>(d)) inner = llvm::cast<clang::NamespaceDecl>(d)->getPrimaryContext();
      scope = inner;
    }
    if (!scope) continue;
    const auto found = scope->lookup(named(path.substr(begin)));
    for (clang::NamedDecl* d : std::vector<clang::NamedDecl*>(found.begin(), found.end()))
      if (hideable(d)) ahead_.push_back(hide(d));
  }
}

void Names::show_again() {
  for (const Hidden& h : ahead_) unhide(h);
  ahead_.clear();
}

/// Whether another input has declared this in a namespace without a name.
bool Names::declared_unnamed(clang::NamedDecl* d) {
  auto* space = llvm::dyn_cast<clang::NamespaceDecl>(home(d));
  if (!space || !space->isAnonymousNamespace()) return false;
  const auto& known = unnamed_[path_of(d)];
  return std::any_of(known.begin(), known.end(), [&](clang::NamedDecl* old) { return !overloads(old, d); });
}

std::string Names::spent(clang::DeclContext* part) {
  std::vector<clang::NamedDecl*> fresh;
  collect(part, &fresh);
  for (clang::NamedDecl* d : fresh) {
    const bool first = d->getCanonicalDecl() == d;  // not the definition of what another input has declared
    if (!first || is_own_space(d->getDeclContext())) continue;
    if (spent_.count(path_of(d)) || declared_unnamed(d)) return d->getNameAsString();
  }
  return "";
}

void Names::declared(clang::DeclContext* part, bool ok, Undo undo) {
  std::vector<clang::NamedDecl*> fresh;
  collect(part, &fresh);
  std::set<std::string> names;
  Change change;
  for (const Hidden& h : std::exchange(ahead_, {})) {
    const bool replaced = ok && std::any_of(fresh.begin(), fresh.end(), [&](clang::NamedDecl* d) {
                            return path_of(d) == path_of(h.decl) && !overloads(h.decl, d);
                          });
    if (replaced) change.hidden.push_back(h);
    else unhide(h);
  }
  for (clang::NamedDecl* d : fresh) {
    if (!ok) {
      hide(d);
      continue;
    }
    auto* space = llvm::dyn_cast<clang::NamespaceDecl>(home(d));
    if (space && space->isAnonymousNamespace()) {
      auto& known = unnamed_[path_of(d)];
      for (clang::NamedDecl* old : std::exchange(known, {d}))
        if (overloads(old, d)) known.push_back(old);
        else change.hidden.push_back(hide(old));
    }
    if (is_own_space(d->getDeclContext())) {
      const auto found = home(d)->lookup(d->getDeclName());
      for (clang::NamedDecl* old : std::vector<clang::NamedDecl*>(found.begin(), found.end()))
        if (hideable(old) && std::find(fresh.begin(), fresh.end(), old) == fresh.end() &&
            old->getCanonicalDecl() != d->getCanonicalDecl() && (home(d)->isTranslationUnit() || !overloads(old, d)))
          change.hidden.push_back(hide(old));
    }
    change.shown.push_back({d, in_resolver(d), {}});
    names.insert(path_of(d));
  }
  for (const std::string& name : names) change.names += (change.names.empty() ? "" : ", ") + name;
  if (!names.empty() && undo == kUndoes) changes_.push_back(std::move(change));
}

void Names::join_changes(std::size_t from) {
  while (changes_.size() > from + 1) {
    Change last = std::move(changes_.back());
    changes_.pop_back();
    Change& joined = changes_.back();
    joined.shown.insert(joined.shown.end(), last.shown.begin(), last.shown.end());
    joined.hidden.insert(joined.hidden.end(), last.hidden.begin(), last.hidden.end());
    joined.names += ", " + last.names;
  }
}

std::string Names::undo() {
  if (changes_.empty()) return "";
  Change change = std::move(changes_.back());
  changes_.pop_back();
  for (const Hidden& h : change.shown) hide(h.decl);
  for (const Hidden& h : change.hidden) unhide(h);
  return change.names;
}

// -- looking up -------------------------------------------------------------------------------------------------------

bool Names::has_member(const std::string& space, const std::string& member) {
  clang::DeclContext* scope = last_name(space + "::" + member).scope;
  return scope && !scope->getPrimaryContext()->lookup(named(member)).empty();
}

bool Names::load_for(const std::string& error) {
  const bool unknown = error.find("no member named") != std::string::npos ||
                       error.find("undeclared identifier") != std::string::npos ||
                       error.find(" named '") != std::string::npos;
  if (!unknown || error.find("did you mean") != std::string::npos) return false;
  if (std::exchange(all_loaded_, true)) return false;
  for (const char* space : {"std", "kassette", "kassette::Tensor", "kassette::Tensors", "kassette::Shape", "K", "nn",
                            "np", "np::linalg", "np::random", "np::fft", "np::optimize", "np::integrate"})
    complete(space + std::string("::"));
  return true;
}

OurNames Names::ours(bool numpy) {
  OurNames ours;
  ours.whole = [this, numpy](const std::string& name) -> std::string {
    for (const char* space : {numpy ? "np" : "K", numpy ? "K" : "np", "nn", "np::linalg", "np::random", "np::fft",
                              "np::optimize", "np::integrate", "kassette"})
      if (has_member(space, name)) return space + ("::" + name);
    return "";
  };
  ours.beginning = [this](const std::string& begin) {
    std::vector<std::string> out;
    for (const Interpreter::Completion& c : complete(begin)) out.push_back(c.name);
    return out;
  };
  return ours;
}

Names::LastName Names::last_name(const std::string& text) {
  std::size_t at = text.size();
  while (at > 0 && is_word(text[at - 1])) --at;
  std::vector<std::string> path;  // outermost last
  std::size_t i = at;
  bool member = false;
  while (i > 0) {
    std::size_t step = text[i - 1] == '.'                                                                  ? 1
                       : i > 1 && (text.compare(i - 2, 2, "::") == 0 || text.compare(i - 2, 2, "->") == 0) ? 2
                                                                                                           : 0;
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
    if (begin == end) return {nullptr, "", member};
    path.push_back(text.substr(begin, end - begin));
    i = begin;
  }
  clang::DeclContext* scope = top();
  for (auto name = path.rbegin(); scope && name != path.rend(); ++name) {
    auto found = scope->lookup(named(*name));
    scope = nullptr;
    for (clang::NamedDecl* d : found)
      if ((scope = scope_of(d))) break;
  }
  return {scope, text.substr(at), member};
}

std::vector<Interpreter::Completion> Names::complete(const std::string& text) {
  const auto [scope, prefix, member] = last_name(text);
  if (!scope) return {};
  std::vector<clang::DeclContext*> parts;
  all_parts(scope, &parts);
  std::set<std::string> names;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (clang::Decl* d : parts[p]->decls()) {
      if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d); space && space->isInline()) parts.push_back(space);
      auto* n = llvm::dyn_cast<clang::NamedDecl>(d);
      if (!n || !n->getIdentifier() || n->getAccess() == clang::AS_private || n->getAccess() == clang::AS_protected ||
          n->isImplicit())
        continue;
      if (member && llvm::isa<clang::TypeDecl>(n)) continue;
      std::string name = n->getName().str();
      if (name.rfind(prefix, 0) == 0 && (name[0] != '_' || !prefix.empty()) && name.rfind("shown_", 0) != 0 &&
          name.rfind("kassette_repl_", 0) != 0)
        names.insert(name);
    }
  // At the top the C library has hundreds of names: they come once something is typed. Functions come before classes.
  names.erase("detail");
  std::vector<Interpreter::Completion> out;
  for (const bool upper : {false, true})
    for (const std::string& name : names)
      if ((std::isupper(static_cast<unsigned char>(name[0])) != 0) == upper)
        out.push_back({name.substr(prefix.size()), name});
  return out;
}

/// The functions that the name at the end of a text stands for.
std::vector<clang::FunctionDecl*> Names::functions(const std::string& text) {
  std::size_t end = text.size();
  if (end > 0 && text[end - 1] == '>') {  // x.item<float>
    int angles = 0;
    do angles += text[end - 1] == '>' ? 1 : text[end - 1] == '<' ? -1 : 0;
    while (--end > 0 && angles > 0);
  }
  const auto [scope, name, member] = last_name(text.substr(0, end));
  std::vector<clang::FunctionDecl*> out;
  std::vector<clang::DeclContext*> parts;
  if (scope) all_parts(scope, &parts);
  for (clang::DeclContext* part : parts)
    for (clang::NamedDecl* d : part->getPrimaryContext()->lookup(named(name)))
      if (auto* f = d->getUnderlyingDecl()->getAsFunction(); f && std::find(out.begin(), out.end(), f) == out.end())
        out.push_back(f);
  return out;
}

std::string Names::signatures(const std::string& text, std::string* name) {
  std::string out;
  for (clang::FunctionDecl* f : functions(text)) {
    if (name->empty()) {
      *name = f->getQualifiedNameAsString();
    }
    out += printed(f) + '\n';
  }
  return out;
}

std::vector<Interpreter::Completion> Names::options(const std::string& callee, const std::string& prefix) {
  std::set<std::string> names;
  for (clang::FunctionDecl* f : functions(callee))
    for (clang::ParmVarDecl* parameter : f->parameters()) {
      auto* record = parameter->getType().getNonReferenceType()->getAsCXXRecordDecl();
      if (!record || !record->hasDefinition() || !record->isAggregate()) continue;
      for (clang::FieldDecl* field : record->fields()) {
        // What keeps arguments from standing in their order is no option.
        const std::string name = field->getNameAsString();
        if (name.rfind(prefix, 0) == 0 && name != "only_by_name") names.insert(name);
      }
    }
  std::vector<Interpreter::Completion> out;
  for (const std::string& name : names) out.push_back({name.substr(prefix.size()), name});
  return out;
}

/// As it would be written in a header.
std::string Names::printed(clang::NamedDecl* d) {
  std::string out;
  llvm::raw_string_ostream os(out);
  clang::PrintingPolicy policy = context().getPrintingPolicy();
  policy.TerseOutput = true;
  d->print(os, policy);
  for (const std::string ours : {"[[gnu::used]] ", "__attribute__((visibility(\"default\"))) "})
    if (out.rfind(ours, 0) == 0) out.erase(0, ours.size());  // see Interpreter::run, KASSETTE_API
  return out;
}

std::string Names::declaration(const std::string& name) {
  clang::DeclContext* scope = top();
  std::string out, rest = name;
  while (!rest.empty() && scope) {
    auto end = rest.find("::");
    std::string step = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 2);
    if (step.empty()) continue;
    auto found = scope->lookup(named(step));
    scope = nullptr;
    for (clang::NamedDecl* d : found) {
      if (!rest.empty()) {
        if ((scope = scope_of(d))) break;
        continue;
      }
      out += printed(d->getUnderlyingDecl()) + '\n';
    }
  }
  return out;
}

std::string Names::type(const std::string& name) {
  for (clang::NamedDecl* d : find(name))
    if (auto* alias = llvm::dyn_cast<clang::TypedefNameDecl>(d)) {
      const std::string text = type_text(alias->getUnderlyingType());
      auto* other = alias->getUnderlyingType()->getAs<clang::TypedefType>();
      return text + (other ? " = " + type_text(other->desugar()) : "");
    }
  return "";
}

namespace {
/// The type of this name among a type and the arguments of its template.
clang::QualType among(clang::QualType type, const std::string& name, const clang::PrintingPolicy& policy) {
  if (type.getCanonicalType().getUnqualifiedType().getAsString(policy) == name) return type;
  if (auto* of = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(type->getAsCXXRecordDecl()))
    for (const clang::TemplateArgument& argument : of->getTemplateArgs().asArray())
      if (argument.getKind() == clang::TemplateArgument::Type)
        if (clang::QualType found = among(argument.getAsType(), name, policy); !found.isNull()) return found;
  return {};
}
}  // namespace

clang::QualType Names::type_named(const std::string& name, const std::string& shown) {
  for (clang::NamedDecl* d : find(shown))
    if (auto* f = llvm::dyn_cast<clang::FunctionDecl>(d); f && f->getReturnType()->isPointerType())
      if (clang::QualType type = among(f->getReturnType()->getPointeeType(), name, context().getPrintingPolicy());
          !type.isNull())
        return type;
  const std::size_t last = name.rfind("::");
  const auto [scope, word, member] = last_name(name);
  if (!scope || word.empty() || word.size() != name.size() - (last == std::string::npos ? 0 : last + 2)) return {};
  for (clang::NamedDecl* d : scope->getPrimaryContext()->lookup(named(word)))
    if (auto* type = llvm::dyn_cast<clang::TypeDecl>(d->getUnderlyingDecl())) return context().getTypeDeclType(type);
  return {};
}

/// A type as it was written, behind decltype, and what it stands for if that is another.
std::string Names::type_text(clang::QualType t) {
  while (auto* deduced = t->getAs<clang::DecltypeType>()) {
    if (t.getTypePtr() != deduced) break;
    t = deduced->getUnderlyingType();
  }
  std::string text = t.getAsString(context().getPrintingPolicy());
  for (std::size_t at; (at = text.find("line_")) != std::string::npos;) {
    const std::size_t end = text.find_first_not_of("0123456789", at + 5);
    if (end == at + 5 || text.compare(end, 2, "::") != 0) break;
    text.erase(at, end + 2 - at);
  }
  return text.rfind("(lambda at", 0) == 0 ? "lambda" : text;
}

std::string Names::listed() {
  std::vector<std::pair<std::string, std::string>> rows;
  std::size_t widest = 0;
  for (const Change& change : changes_)
    for (const Hidden& h : change.shown) {
      const auto found = home(h.decl)->lookup(h.decl->getDeclName());
      if (std::find(found.begin(), found.end(), h.decl) == found.end()) continue;
      std::string what = llvm::isa<clang::TemplateDecl>(h.decl) ? "template"
                         : llvm::isa<clang::EnumDecl>(h.decl)   ? "enum"
                         : llvm::isa<clang::TagDecl>(h.decl)    ? "class"
                                                                : "";
      if (auto* alias = llvm::dyn_cast<clang::TypedefNameDecl>(h.decl)) what = type_text(alias->getUnderlyingType());
      if (auto* value = llvm::dyn_cast<clang::ValueDecl>(h.decl)) what = type_text(value->getType());
      rows.push_back({path_of(h.decl), what});
      widest = std::max(widest, rows.back().first.size());
    }
  std::string out;
  for (const auto& [name, what] : rows)
    out += name + (what.empty() ? "" : std::string(widest + 2 - name.size(), ' ') + what) + '\n';
  return out.empty() ? "this session has declared nothing\n" : out;
}

}  // namespace repl

// tools/repl/names.cpp - the names of a session.
#include "tools/repl/names.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "clang/AST/DeclContextInternals.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Sema/IdentifierResolver.h"
#include "clang/Sema/Sema.h"
#include "llvm/Support/raw_ostream.h"

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
  Hidden out{d, in_resolver(d)};
  if (out.in_scope) {
    sema.TUScope->RemoveDecl(d);
    sema.IdResolver.RemoveDecl(d);
  }
  for (clang::DeclContext* c : {top(), d->getDeclContext()->getPrimaryContext()})
    if (auto* map = c->getLookupPtr())
      if (auto p = map->find(d->getDeclName()); p != map->end() && llvm::is_contained(p->second.getLookupResult(), d))
        p->second.remove(d);
  return out;
}

void Names::unhide(const Hidden& h) {
  auto& sema = compiler_.getSema();
  if (h.in_scope) {
    sema.TUScope->AddDecl(h.decl);
    sema.IdResolver.AddDecl(h.decl);
  }
  if (auto* map = top()->getLookupPtr()) (*map)[h.decl->getDeclName()].addOrReplaceDecl(h.decl);
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
    for (clang::NamedDecl* d : find(name)) {
      if (!hideable(d) || !names_type(type)) continue;
      auto* f = llvm::dyn_cast<clang::FunctionDecl>(d);
      if (f && !f->isDefined() && f->getDeclContext()->getRedeclContext()->isTranslationUnit())
        continue;  // declared, and now defined
      return true;
    }
  }
  return false;
}

void Names::declared(clang::DeclContext* part, bool ok) {
  std::vector<clang::NamedDecl*> fresh;
  auto collect = [&](auto& self, clang::DeclContext* c) -> void {
    for (clang::Decl* d : c->decls()) {
      if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(d);
          space && space->isInline() && space->getName().starts_with("line_"))
        self(self, space);
      else if (auto* pair = llvm::dyn_cast<clang::DecompositionDecl>(d))
        fresh.insert(fresh.end(), pair->bindings().begin(), pair->bindings().end());
      else if (auto* n = llvm::dyn_cast<clang::NamedDecl>(d); n && n->getDeclName() && hideable(n) && !n->isImplicit())
        fresh.push_back(n);
    }
  };
  collect(collect, part);
  std::set<std::string> names;
  Change change;
  for (clang::NamedDecl* d : fresh) {
    std::string name = d->getNameAsString();
    if (name.rfind("shown_", 0) == 0) continue;
    if (!ok) {
      hide(d);
      continue;
    }
    if (d->getDeclContext()->isNamespace())
      for (clang::NamedDecl* old : find(d->getDeclName()))
        if (hideable(old) && std::find(fresh.begin(), fresh.end(), old) == fresh.end() &&
            old->getCanonicalDecl() != d->getCanonicalDecl())
          change.hidden.push_back(hide(old));
    change.shown.push_back({d, in_resolver(d)});
    names.insert(name);
  }
  for (const std::string& name : names) change.names += (change.names.empty() ? "" : ", ") + name;
  if (!names.empty()) changes_.push_back(std::move(change));
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

bool Names::has_member(const std::string& name, const std::string& member) {
  for (clang::NamedDecl* d : find(name))
    if (clang::DeclContext* k = scope_of(d); k && !k->lookup(named(member)).empty()) return true;
  return false;
}

std::vector<Interpreter::Completion> Names::complete(const std::string& text) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::size_t at = text.size();
  while (at > 0 && is_word(text[at - 1])) --at;
  std::string prefix = text.substr(at);
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
    if (begin == end) return {};
    path.push_back(text.substr(begin, end - begin));
    i = begin;
  }
  clang::DeclContext* scope = top();
  for (auto name = path.rbegin(); name != path.rend(); ++name) {
    auto found = scope->lookup(named(*name));
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
      if (!n || !n->getIdentifier() || n->getAccess() == clang::AS_private || n->getAccess() == clang::AS_protected ||
          n->isImplicit())
        continue;
      if (member && llvm::isa<clang::TypeDecl>(n)) continue;
      std::string name = n->getName().str();
      if (name.rfind(prefix, 0) == 0 && (name[0] != '_' || !prefix.empty()) && name.rfind("shown_", 0) != 0 &&
          name.rfind("kassette_repl_", 0) != 0)
        names.insert(name);
    }
  // At the top the C library has hundreds of names: they come once something is typed.
  std::vector<Interpreter::Completion> out;
  for (const std::string& name : names) out.push_back({name.substr(prefix.size()), name});
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
      d = d->getUnderlyingDecl();
      llvm::raw_string_ostream os(out);
      clang::PrintingPolicy policy = context().getPrintingPolicy();
      policy.TerseOutput = true;
      d->print(os, policy);
      if (const char* ours = "[[gnu::used]] "; out.rfind(ours, 0) == 0)
        out.erase(0, std::string(ours).size());  // see Interpreter::run
      out += '\n';
    }
  }
  return out;
}

}  // namespace repl

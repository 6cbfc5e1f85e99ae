// tools/repl/names.h - the names of a session: declared again, undone, looked up. Includes clang's headers.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/Frontend/CompilerInstance.h"

#include "tools/repl/hints.h"
#include "tools/repl/input.h"
#include "tools/repl/interpreter.h"

namespace repl {

/// The names that a session has declared: lookup, redefinition, undo.
class Names {
 public:
  explicit Names(clang::CompilerInstance& compiler) : compiler_(compiler) {}
  std::vector<clang::NamedDecl*> find(const std::string& name);
  /// Whether the input declares a name again: then it goes into a namespace of its own.
  bool redefines(const Input& in);
  /// Call after running an input, whose declarations are `part`: if `ok`, its names hide earlier ones of the same
  /// spelling, else they are hidden themselves. undo() passes over what is kept: the names of a header, which would not
  /// come back when it is included again.
  enum Undo { kUndoes, kKeeps };
  void declared(clang::DeclContext* part, bool ok, Undo undo = kUndoes);
  /// Hides what has these names ("my::f"), until the input that declares them again has run, or is refused.
  void hide_ahead(const std::vector<std::string>& paths);
  void show_again();
  /// The first name that `part` declares outside of a namespace of its own, although a declaration of it was hidden;
  /// empty if there is none.
  std::string spent(clang::DeclContext* part);
  /// What undo() would take back, one at a time; and has it take back all from the `from`th on at once.
  std::size_t changes() const { return changes_.size(); }
  void join_changes(std::size_t from);
  /// What was declared up to now is the session's own and is not undone.
  void keep_all() { changes_.clear(); }
  /// Whether a namespace, "np::linalg", has a member.
  bool has_member(const std::string& space, const std::string& member);
  /// Reads all names of ours and of the standard library from the precompiled header, where clang proposes only what
  /// has been read, at the first error of a name that is unknown. Returns whether it did, and the input may be tried
  /// again.
  bool load_for(const std::string& error);
  /// What hints need to know; with `numpy`, of two functions of one name they propose np's.
  OurNames ours(bool numpy);
  std::string undo();
  std::vector<Interpreter::Completion> complete(const std::string& text);
  /// The declarations of the function whose name ends a text, a line each; `name` is how documentation knows it.
  std::string signatures(const std::string& text, std::string* name);
  /// The fields of the structs that the function takes: what may follow `f({.`.
  std::vector<Interpreter::Completion> options(const std::string& callee, const std::string& prefix);
  std::string declaration(const std::string& name);
  /// What undo() could take back: a line for each name, with what it is.
  std::string listed();
  /// The type that a name stands for.
  std::string type(const std::string& name);
  /// A class or enumeration by its whole name, as the compiler writes it in __PRETTY_FUNCTION__: it may also be the
  /// type of what the function `shown` returns a pointer to, or an argument of that type's template. Null if there is
  /// none.
  clang::QualType type_named(const std::string& name, const std::string& shown);

 private:
  /// A declaration that another hides, and how it was found before.
  struct Hidden {
    clang::NamedDecl* decl;
    bool in_scope;
    std::vector<clang::DeclContext*> found_in;
  };
  /// What one input changed: the declarations that it showed and hid, and their names as undo() tells them.
  struct Change {
    std::vector<Hidden> shown, hidden;
    std::string names;
  };
  clang::ASTContext& context() { return compiler_.getASTContext(); }
  clang::DeclContext* top() { return context().getTranslationUnitDecl()->getPrimaryContext(); }
  clang::DeclarationName named(const std::string& name) { return &context().Idents.get(name); }
  std::vector<clang::NamedDecl*> find(clang::DeclarationName name);
  bool in_resolver(clang::NamedDecl* d);
  Hidden hide(clang::NamedDecl* d);
  void unhide(const Hidden& h);
  bool names_type(const std::string& words);
  std::string type_text(clang::QualType t);
  std::string printed(clang::NamedDecl* d);
  /// "a.b::nam" ends in "nam", to be looked up in the scope of b, as a member of a value or of a namespace or class.
  struct LastName {
    clang::DeclContext* scope;
    std::string name;
    bool member;
  };
  LastName last_name(const std::string& text);
  std::vector<clang::FunctionDecl*> functions(const std::string& text);

  clang::CompilerInstance& compiler_;
  std::vector<Change> changes_;
  bool all_loaded_ = false;
  std::vector<Hidden> ahead_;
  // Members of namespaces without a name: each input has its own such namespace, and their names would be ambiguous.
  std::map<std::string, std::vector<clang::NamedDecl*>> unnamed_;
  bool declared_unnamed(clang::NamedDecl* d);
  // Note [Spent names]
  // A declaration can be hidden, but not its symbol in the JIT, which would refuse a second one of the same name or
  // silently take the first for it. So a name that was ever hidden, with its namespaces, is declared again in a
  // namespace of the input's own, `line_N`, which gives it another symbol.
  std::set<std::string> spent_;
};

}  // namespace repl

// tools/repl/names.h - the names of a session: declared again, undone, looked up. Includes clang's headers.
#pragma once
#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/Frontend/CompilerInstance.h"

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
  /// spelling, else they are hidden themselves.
  void declared(clang::DeclContext* part, bool ok);
  /// What was declared up to now is the session's own and is not undone.
  void keep_all() { changes_.clear(); }
  /// Whether the namespace or class of a name has a member.
  bool has_member(const std::string& name, const std::string& member);
  std::string undo();
  std::vector<Interpreter::Completion> complete(const std::string& text);
  std::string declaration(const std::string& name);

 private:
  /// A declaration that another hides, and how it was found before.
  struct Hidden {
    clang::NamedDecl* decl;
    bool in_scope;
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

  clang::CompilerInstance& compiler_;
  std::vector<Change> changes_;
};

}  // namespace repl

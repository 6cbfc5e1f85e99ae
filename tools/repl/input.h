// tools/repl/input.h - what a piece of input is, by clang's lexer: whether it goes on, what it shows, what it declares.
#pragma once
#include <string>
#include <vector>

namespace repl {

/// A token of clang's lexer.
struct Token {
  std::string text;
  std::size_t begin, end;  // in the input
  int depth;               // how many brackets are open around it
  bool word, bracket;      // an identifier or keyword; one of ()[]{}
};

/// What read_input() found out about a piece of input.
struct Input {
  std::vector<Token> tokens;
  bool open = false;  // brackets, a comment, an operator at the end: more lines are to come
  // what is wrong with its brackets or strings; clang would look for the end of a block for ever
  std::string broken;
  std::string opener;  // the innermost open bracket, where there is one
  /// Where the last statement begins if it has no `;` and may be an expression to show; else npos.
  std::size_t shown = std::string::npos;
  bool closed = false;  // ends with `;`, or is a directive of the preprocessor
  /// A name that is declared at the outer level: a guess by its neighbours. `type` are the first tokens, up to the
  /// name.
  struct Name {
    std::string name, type;
  };
  std::vector<Name> names;
  /// What stands at the outer level, one after the other, and where in the input it is.
  struct Piece {
    std::size_t begin, end;
  };
  std::vector<Piece> pieces;
  std::vector<Piece> statements;  // those that cannot be declarations
  bool takes_else = false;        // the last of them is an `if` that an `else` may still follow
};

Input read_input(const std::string& text);

/// Whether the token at i is the `[` of a lambda: neither that of an index nor that of an attribute.
bool begins_lambda(const std::vector<Token>& tokens, std::size_t i);

/// Whether there is an `int main(` at the outer level.
bool has_main(const std::vector<Token>& tokens);

/// The index of the first token behind the declaration, or what may be one, that begins at i.
std::size_t behind_declaration(const std::vector<Token>& tokens, std::size_t i);

/// The word of `among` that is nearest to a misspelt one; empty where none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& among);

}  // namespace repl

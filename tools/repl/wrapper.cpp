// tools/repl/wrapper.cpp - the code that is compiled, made from the code that was typed.
#include "tools/repl/wrapper.h"

#include "tools/repl/namespaces.h"

namespace repl {

bool has_lambda(const Input& in) {
  for (std::size_t i = 0; i < in.tokens.size(); ++i)
    if (begins_lambda(in.tokens, i)) return true;
  return false;
}

bool in_order(const Input& in) {
  if (in.pieces.size() < 2 || in.pieces.back().begin == in.shown) return true;
  if (has_namespace(in)) return false;
  for (std::size_t i = 0; i < in.tokens.size(); ++i) {
    const Token& t = in.tokens[i];
    if (t.depth == 0 && t.begin >= in.pieces[1].begin && (t.text == "const" || t.text == "static")) return false;
  }
  return !has_lambda(in);
}

std::string with_if(const Input& in, const std::string& code) {
  const bool again = in.tokens.size() > 1 && in.tokens[1].text == "if";
  const std::string rest = std::string(in.tokens[0].end, ' ') + code.substr(in.tokens[0].end);
  return "if (::kassette_repl_take_else())" + std::string(again ? "\n" : " {\n") + rest + (again ? "" : "\n}");
}

}  // namespace repl

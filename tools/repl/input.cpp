// tools/repl/input.cpp - reading input by tokens.
#include "tools/repl/input.h"

#include <algorithm>
#include <set>

#include "clang/Basic/LangOptions.h"
#include "clang/Lex/Lexer.h"

namespace repl {
namespace {

bool in(const std::string& word, const std::set<std::string>& set) { return set.count(word) != 0; }

const std::set<std::string> kStatements = {
    "for",   "if",    "while", "do",       "switch",  "return", "using",  "namespace",     "struct",
    "class", "union", "enum",  "template", "typedef", "extern", "static", "constexpr",     "inline",
    "try",   "goto",  "break", "continue", "else",    "auto",   "const",  "static_assert", "{"};
// Words that may precede a declared name, besides identifiers.
const std::set<std::string> kTypeWords = {"auto",  "bool",  "char",   "double",   "float", "int",
                                          "long",  "short", "signed", "unsigned", "void",  "struct",
                                          "class", "union", "enum",   "using",    "const", "constexpr"};
const std::set<std::string> kNotNames = {"operator",      "return", "sizeof", "new",   "delete",  "throw",
                                         "static_assert", "this",   "true",   "false", "nullptr", "if",
                                         "for",           "while",  "switch", "do",    "else"};
const std::set<std::string> kAssignments = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
const std::set<std::string> kGoesOn = {
    "+",  "-",  "*",  "/", "%",  "=",  ",",  ".",  "->", "::", "<<", "&&", "||", "==",
    "!=", "<=", ">=", "<", "+=", "-=", "*=", "/=", "?",  ":",  "&",  "|",  "!",  "template"};

std::vector<Token> lex(const std::string& text, std::string* unfinished) {
  clang::LangOptions options;
  options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = options.LineComment =
      options.Digraphs = true;
  options.RawStringLiterals = true;
  clang::Lexer lexer(clang::SourceLocation::getFromRawEncoding(1), options, text.data(), text.data(),
                     text.data() + text.size());
  std::vector<Token> out;
  int depth = 0;
  for (clang::Token t;;) {
    bool last = lexer.LexFromRawLexer(t);
    if (t.is(clang::tok::eof)) break;
    std::size_t end = static_cast<std::size_t>(lexer.getBufferLocation() - text.data());
    Token token{text.substr(end - t.getLength(), t.getLength()),
                end - t.getLength(),
                end,
                depth,
                t.is(clang::tok::raw_identifier),
                false};
    if (t.is(clang::tok::unknown) && (token.text[0] == '"' || token.text[0] == '\'' || token.text.rfind("R\"", 0) == 0))
      *unfinished = token.text;
    if (token.text == "(" || token.text == "[" || token.text == "{") {
      token.bracket = true;
      ++depth;
    } else if (token.text == ")" || token.text == "]" || token.text == "}") {
      token.bracket = true;
      token.depth = --depth;
    }
    out.push_back(token);
    if (last) break;
  }
  return out;
}

/// `if (...)` and the like without a body.
bool lacks_body(const std::vector<Token>& tokens) {
  const Token& first = tokens[0];
  if (first.text == "else" && tokens.size() > 1 && tokens[1].text == "if")
    return lacks_body({tokens.begin() + 1, tokens.end()});
  if (first.text == "else") return tokens.size() == 1;
  if (first.text == "try" || first.text == "do")
    return std::none_of(tokens.begin(), tokens.end(), [&](const Token& t) {
      return t.depth == 0 && t.text == (first.text == "try" ? "catch" : "while");
    });
  if (in(first.text, {"struct", "class", "union", "enum", "namespace"}))
    return std::none_of(tokens.begin(), tokens.end(),
                        [](const Token& t) {
                          return in(t.text, {"{", ";", "="});
                        }) &&
           (tokens.size() <= 2 || first.text == "namespace");
  if (first.text == "template")
    return std::none_of(tokens.begin(), tokens.end(), [](const Token& t) { return t.text == "{" || t.text == ";"; });
  if (!in(first.text, {"if", "for", "while", "switch"})) return false;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i].text == ")" && tokens[i].depth == 0) return i + 1 == tokens.size();
  return false;
}

bool declares_before(const Token& t) {
  return (t.word && !kNotNames.count(t.text)) || in(t.text, {">", "*", "&", "&&"}) || in(t.text, kTypeWords);
}

std::vector<Input::Name> declared(const std::string& text, const std::vector<Token>& tokens) {
  std::vector<Input::Name> out;
  bool value = false;  // behind a `=`
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (t.depth == 1 && t.word && i + 1 < tokens.size() && tokens[0].text != "struct") {  // auto [a, b] = ...
      std::size_t open = i;
      while (open > 0 && tokens[open].depth >= 1) --open;
      if (tokens[open].text == "[" && open > 0 &&
          (tokens[open - 1].text == "auto" || tokens[open - 1].text == "&" || tokens[open - 1].text == "&&") &&
          tokens[0].text.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos && !value)
        out.push_back({t.text, "auto"});
      continue;
    }
    if (t.depth != 0) continue;
    if (t.text == "=") value = true;
    if (t.text == ";") break;
    if (t.text == ",") value = false;
    if (value || !t.word || in(t.text, kTypeWords) || in(t.text, kNotNames)) continue;
    const Token& before = tokens[i - 1];
    std::string after = i + 1 < tokens.size() ? tokens[i + 1].text : ";";
    if (!in(after, {"=", "(", "{", ";", ",", "[", ":"}) ||
        (!declares_before(before) && (before.text != "," || out.empty())))
      continue;
    out.push_back({t.text, text.substr(tokens[0].begin, tokens[i].begin - tokens[0].begin)});
  }
  return out;
}

// ---- statements -----------------------------------------------------------------------------------------------------

/// The index of the first token behind the bracket that opens at i.
std::size_t behind_bracket(const std::vector<Token>& tokens, std::size_t i) {
  if (i >= tokens.size() || !tokens[i].bracket) return i;
  const int depth = tokens[i].depth;
  for (++i; i < tokens.size(); ++i)
    if (tokens[i].bracket && tokens[i].depth == depth) return i + 1;
  return i;
}

/// The index of the first token behind the statement that begins at i.
std::size_t behind_statement(const std::vector<Token>& tokens, std::size_t i) {
  auto is = [&](std::size_t at, const char* text) { return at < tokens.size() && tokens[at].text == text; };
  if (i >= tokens.size()) return i;
  if (is(i, "{")) return behind_bracket(tokens, i);
  if (is(i, "if")) {
    const std::size_t end = behind_statement(tokens, behind_bracket(tokens, is(i + 1, "constexpr") ? i + 2 : i + 1));
    return is(end, "else") ? behind_statement(tokens, end + 1) : end;
  }
  if (is(i, "for") || is(i, "while") || is(i, "switch")) return behind_statement(tokens, behind_bracket(tokens, i + 1));
  if (is(i, "do")) {
    const std::size_t end = behind_statement(tokens, i + 1);
    return is(end, "while") ? behind_bracket(tokens, end + 1) + 1 : end;
  }
  if (is(i, "try")) {
    std::size_t end = behind_bracket(tokens, i + 1);
    while (is(end, "catch")) end = behind_bracket(tokens, behind_bracket(tokens, end + 1));
    return end;
  }
  const int depth = tokens[i].depth;
  while (i < tokens.size() && !(tokens[i].text == ";" && tokens[i].depth == depth)) ++i;
  return i + 1;
}

/// Whether an `else` may follow the statement that begins at i and ends the input. False if the `if` is the body of a
/// loop.
bool takes_else(const std::vector<Token>& tokens, std::size_t i) {
  if (i >= tokens.size() || tokens[i].text != "if") return false;
  const std::size_t body =
      behind_bracket(tokens, i + 1 < tokens.size() && tokens[i + 1].text == "constexpr" ? i + 2 : i + 1);
  if (body >= tokens.size()) return false;
  const std::size_t end = behind_statement(tokens, body);
  if (end < tokens.size()) return tokens[end].text == "else" && takes_else(tokens, end + 1);
  if (tokens[body].text == "if") return takes_else(tokens, body);
  return tokens[body].text == "{" ||
         (tokens.back().text == ";" && !in(tokens[body].text, {"for", "while", "do", "switch", "try"}));
}

/// The index of the first token behind the template arguments that open at i; tokens.size() if they do not end.
std::size_t behind_angles(const std::vector<Token>& tokens, std::size_t i) {
  const int depth = tokens[i].depth;
  int open = 0;
  for (; i < tokens.size() && tokens[i].depth >= depth; ++i) {
    const Token& t = tokens[i];
    if (t.depth != depth) continue;
    if (t.text == ";") break;
    open += t.text == "<" ? 1 : t.text == ">" ? -1 : t.text == ">>" ? -2 : 0;
    if (open <= 0) return i + 1;
  }
  return tokens.size();
}

/// The index of the last part of a qualified name that begins at i: that of `f` in `::a::b<int>::f`.
std::size_t last_part(const std::vector<Token>& tokens, std::size_t i) {
  const auto is = [&](std::size_t at, const char* text) { return at + 1 < tokens.size() && tokens[at].text == text; };
  if (is(i, "::")) ++i;
  while (tokens[i].word) {
    const std::size_t behind = is(i + 1, "<") ? behind_angles(tokens, i + 1) : i + 1;
    if (!is(behind, "::")) break;
    i = behind + 1;
  }
  return i;
}

/// Whether no declaration can begin with the tokens at i.
bool begins_sure_statement(const std::vector<Token>& tokens, std::size_t i) {
  const std::string& first = tokens[i].text;
  if (first == "[") return i + 1 < tokens.size() && tokens[i + 1].text != "[";
  if (in(first, {"if",
                 "for",
                 "while",
                 "do",
                 "switch",
                 "try",
                 "throw",
                 "new",
                 "delete",
                 "this",
                 "sizeof",
                 "true",
                 "false",
                 "nullptr",
                 "static_cast",
                 "const_cast",
                 "reinterpret_cast",
                 "dynamic_cast",
                 "typeid",
                 "noexcept",
                 "alignof",
                 "not",
                 "compl",
                 "goto",
                 "break",
                 "continue",
                 "return"}))
    return true;
  if (!tokens[i].word && first != "::") return !in(first, {"#", ";", "}", ")", "]"});
  i = last_part(tokens, i);
  if (!tokens[i].word || in(tokens[i].text, kTypeWords)) return false;
  if (i + 1 >= tokens.size() || tokens[i + 1].text == ";") return !in(tokens[i].text, kStatements);
  const std::string& next = tokens[i + 1].text;
  if (first == "asm" || first == "__asm__" || first == "__asm") {  // with operands it stands in functions only
    const std::size_t end = std::min(behind_statement(tokens, i), tokens.size());
    return next != "(" || std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(end), [&](const Token& t) {
                                        return t.depth == tokens[i].depth + 1 && (t.text == ":" || t.text == "::");
                                      });
  }
  // A call, as f(...) or f<T>(...), may be of a macro that declares something, but hardly with a lambda among its
  // arguments.
  const std::size_t open = next == "<" ? behind_angles(tokens, i + 1) : i + 1;
  if (open < tokens.size() && tokens[open].text == "(" && !in(first, kStatements)) {
    const std::size_t end = behind_bracket(tokens, open);
    for (std::size_t j = open + 1; j < end; ++j)
      if (begins_lambda(tokens, j)) return true;
  }
  return in(next, kAssignments) ||
         in(next, {".", "->", "++", "--", "<<", ">>", "==", "!=", "+", "-", "/", "%", "?", "||"}) ||
         (next == "[" && i + 2 < tokens.size() && tokens[i + 2].text != "[" && !in(first, {"auto"}));
}

}  // namespace

bool begins_lambda(const std::vector<Token>& tokens, std::size_t i) {
  if (tokens[i].text != "[" || (i + 1 < tokens.size() && tokens[i + 1].text == "[")) return false;
  if (i == 0) return true;
  const Token& before = tokens[i - 1];
  return before.text == "return" || (!before.word && !in(before.text, {")", "]", "["}));
}

bool has_main(const std::vector<Token>& tokens) {
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
    if (tokens[i].depth == 0 && tokens[i].text == "int" && tokens[i + 1].text == "main" && tokens[i + 2].text == "(")
      return true;
  return false;
}

std::size_t behind_declaration(const std::vector<Token>& tokens, std::size_t i) {
  const int depth = tokens[i].depth;
  const bool type = in(tokens[i].text, {"struct", "class", "union", "enum", "typedef", "using"});
  const bool space = in(tokens[i].text, {"namespace", "extern"}) ||
                     (tokens[i].text == "inline" && i + 1 < tokens.size() && tokens[i + 1].text == "namespace");
  bool value = false, body = space;
  if (tokens[i].text == "template" && i + 1 < tokens.size() && tokens[i + 1].text == "<") {
    i = behind_angles(tokens, i + 1);
    return i < tokens.size() ? behind_declaration(tokens, i) : i;
  }
  for (; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (t.depth < depth) return i;
    if (t.depth != depth) continue;
    if (t.text == ";") return i + 1;
    if (t.text == "=") value = true;
    if (t.text == "->" && !value) body = true;
    if (t.text == "{" && i > 0 &&
        in(tokens[i - 1].text, {")", "const", "noexcept", "override", "final", "try", "else"}))
      body = true;
    if (t.text == "}" && body && !type && !value &&
        !(i + 1 < tokens.size() && in(tokens[i + 1].text, {"catch", ";", ",", ".", "("})))
      return i + 1;
  }
  return i;
}

namespace {

/// Finds the parts of an input at the outer level; returns the index of the first token of the last one.
std::size_t find_pieces(Input* input) {
  const std::vector<Token>& tokens = input->tokens;
  std::size_t last = 0;
  for (std::size_t i = 0; i < tokens.size();) {
    const bool sure = begins_sure_statement(tokens, i);
    const std::size_t end = std::max(i + 1, sure ? behind_statement(tokens, i) : behind_declaration(tokens, i));
    const Input::Piece piece{tokens[i].begin, end <= tokens.size() ? tokens[end - 1].end : tokens.back().end};
    input->pieces.push_back(piece);
    if (sure) input->statements.push_back(piece);
    input->takes_else = sure && end >= tokens.size() && takes_else(tokens, i);
    last = i;
    i = end;
  }
  return last;
}

/// How many `#if` are open.
int open_conditionals(const std::vector<Token>& tokens, const std::string& text) {
  int open = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].text != "#") continue;
    const std::size_t line = text.rfind('\n', tokens[i].begin);
    if (text.find_first_not_of(" \t", line == std::string::npos ? 0 : line + 1) != tokens[i].begin) continue;
    if (in(tokens[i + 1].text, {"if", "ifdef", "ifndef"})) ++open;
    if (tokens[i + 1].text == "endif") --open;
  }
  return open;
}

/// Whether the input ends inside of something other than brackets: a line that ends in a backslash, a raw string, a
/// comment.
bool ends_inside(const std::string& text, const std::vector<Token>& tokens, const std::string& unfinished) {
  const std::size_t last = text.find_last_not_of(" \t\n");
  if (text.size() > 1 && last != std::string::npos && text[last] == '\\') return true;
  if (unfinished.rfind("R\"", 0) == 0) return true;
  // A comment that is not closed is one unknown token, or nothing at all.
  const std::size_t comment = text.rfind("/*");
  return comment != std::string::npos && text.find("*/", comment + 2) == std::string::npos &&
         std::none_of(tokens.begin(), tokens.end(),
                      [&](const Token& t) { return t.begin < comment && t.end > comment; });
}

/// The brackets of an input that are open at its end, or up to the first one that is closed by another kind.
struct Brackets {
  std::vector<std::string> open;
  std::vector<std::size_t> blocks;  // the indices of open braces
  std::string complaint;            // what the compiler will say, if it is known
  bool crossed;                     // closed by another kind, or there is a string without its end
};

/// `complaint`: of a string without its end; empty if there is none.
Brackets match_brackets(const std::vector<Token>& tokens, const std::string& complaint) {
  Brackets b{{}, {}, complaint, !complaint.empty()};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (!t.bracket) continue;
    if (t.text == "{") b.blocks.push_back(i);
    if (t.text == "}" && !b.blocks.empty()) b.blocks.pop_back();
    if (in(t.text, {"(", "[", "{"})) {
      b.open.push_back(t.text);
      continue;
    }
    const char* wanted = t.text == ")" ? "(" : t.text == "]" ? "[" : "{";
    if (b.open.empty() || b.open.back() != wanted) {
      if (!b.crossed && !b.open.empty())
        b.complaint = std::string("expected '") + (b.open.back() == "(" ? ')' : b.open.back() == "[" ? ']' : '}') + "'";
      b.crossed = true;  // the compiler is to say what is wrong
      break;
    }
    b.open.pop_back();
  }
  return b;
}

/// Whether clang would look for the end of one of these blocks for ever. Of lists in braces it finds the end, and says
/// more.
bool any_block_of_code(const std::vector<Token>& tokens, const std::vector<std::size_t>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [&](std::size_t i) {
    return i > 0 && (tokens[i - 1].word || in(tokens[i - 1].text, {")", "]", ";"}));
  });
}

/// Whether the statement that begins at `start` and ends the input may be an expression to show.
bool may_be_shown(const std::vector<Token>& tokens, std::size_t start) {
  if (tokens.back().text == ";" || in(tokens[start].text, kStatements)) return false;
  return std::none_of(tokens.begin() + static_cast<std::ptrdiff_t>(start), tokens.end(),
                      [](const Token& t) { return t.depth == 0 && in(t.text, kAssignments); });
}

}  // namespace

Input read_input(const std::string& text) {
  Input in_;
  std::string unfinished;
  in_.tokens = lex(text, &unfinished);
  auto& tokens = in_.tokens;
  in_.open = ends_inside(text, tokens, unfinished);
  if (tokens.empty()) return in_;
  if (tokens[0].text == "#") {
    in_.closed = true;
    if (open_conditionals(tokens, text) > 0) {
      in_.open = true;
      in_.opener = "#if";
    }
    return in_;
  }
  const bool cut_string = !unfinished.empty() && !in_.open;
  const Brackets brackets =
      match_brackets(tokens, cut_string ? std::string("missing terminating '") + unfinished[0] + "' character" : "");
  if (brackets.crossed) {
    if (any_block_of_code(tokens, brackets.blocks)) in_.broken = brackets.complaint;
    return in_;
  }
  if (!brackets.open.empty()) {
    in_.open = true;
    in_.opener = brackets.open.back();
  }
  std::size_t start = 0;  // of the last statement
  if (!in_.open) start = find_pieces(&in_);
  if (in(tokens.back().text, kGoesOn) ||
      lacks_body({tokens.begin() + static_cast<std::ptrdiff_t>(start), tokens.end()}))
    in_.open = true;
  if (in_.open) return in_;

  in_.closed = tokens.back().text == ";";
  in_.names = declared(text, tokens);
  if (may_be_shown(tokens, start)) in_.shown = tokens[start].begin;
  return in_;
}

std::string nearest(const std::string& word, const std::vector<std::string>& among) {
  std::string best;
  std::size_t least = word.size() / 3 + 1;
  for (const std::string& other : among) {
    std::vector<std::size_t> row(other.size() + 1);
    for (std::size_t j = 0; j <= other.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= other.size(); ++j) {
        std::size_t changed = diagonal + (word[i - 1] != other[j - 1]);
        diagonal = row[j];
        row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
      }
    }
    // Two letters that changed places are one mistake.
    for (std::size_t i = 1; row.back() > 1 && i < word.size(); ++i) {
      std::string swapped = word;
      std::swap(swapped[i - 1], swapped[i]);
      if (swapped == other) row.back() = 1;
    }
    if (row.back() < least) {
      least = row.back();
      best = other;
    }
  }
  return best;
}

}  // namespace repl

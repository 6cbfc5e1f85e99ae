// tools/repl/input.cpp - reading input by tokens.
#include "tools/repl/input.h"

#include <algorithm>
#include <set>

#include "clang/Basic/LangOptions.h"
#include "clang/Lex/Lexer.h"

namespace repl {
namespace {

bool in(const std::string& word, const std::set<std::string>& set) { return set.count(word) != 0; }

const std::set<std::string> kStatements = {"for",    "if",     "while",  "do",      "switch",    "return", "using",  "namespace", "struct",
                                           "class",  "union",  "enum",   "template", "typedef",  "extern", "static", "constexpr", "inline",
                                           "try",    "goto",   "break",  "continue", "else",     "auto",   "const",  "static_assert"};
// What may stand before a name that is declared, beside identifiers.
const std::set<std::string> kTypeWords = {"auto",  "bool",   "char",     "double", "float",  "int",    "long",  "short", "signed",
                                          "unsigned", "void", "struct",  "class",  "union",  "enum",   "using", "const", "constexpr"};
const std::set<std::string> kNotNames = {"operator", "return", "sizeof", "new", "delete", "throw", "static_assert", "this", "true", "false", "nullptr",
                                         "if", "for", "while", "switch", "do", "else"};
const std::set<std::string> kAssignments = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
const std::set<std::string> kGoesOn = {"+", "-", "*", "/", "%", "=", ",", ".", "->", "::", "<<", "&&", "||", "==", "!=", "<=", ">=", "<",
                                       "+=", "-=", "*=", "/=", "?", ":", "&", "|", "!", "template"};

std::vector<Token> lex(const std::string& text, std::string* unfinished) {
  clang::LangOptions options;
  options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = options.LineComment = options.Digraphs = true;
  options.RawStringLiterals = true;
  clang::Lexer lexer(clang::SourceLocation::getFromRawEncoding(1), options, text.data(), text.data(), text.data() + text.size());
  std::vector<Token> out;
  int depth = 0;
  for (clang::Token t;;) {
    bool last = lexer.LexFromRawLexer(t);
    if (t.is(clang::tok::eof)) break;
    std::size_t end = static_cast<std::size_t>(lexer.getBufferLocation() - text.data());
    Token token{text.substr(end - t.getLength(), t.getLength()), end - t.getLength(), end, depth, t.is(clang::tok::raw_identifier), false};
    if (t.is(clang::tok::unknown) && (token.text[0] == '"' || token.text[0] == '\'' || token.text.rfind("R\"", 0) == 0)) *unfinished = token.text;
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
  if (in(first.text, {"do", "else", "try"})) return tokens.size() == 1;
  if (first.text == "template") return std::none_of(tokens.begin(), tokens.end(), [](const Token& t) { return t.text == "{" || t.text == ";"; });
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
  bool value = false;   // behind a `=`
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (t.depth == 1 && t.word && i + 1 < tokens.size() && tokens[0].text != "struct") {   // auto [a, b] = ...
      std::size_t open = i;
      while (open > 0 && tokens[open].depth >= 1) --open;
      if (tokens[open].text == "[" && open > 0 && (tokens[open - 1].text == "auto" || tokens[open - 1].text == "&" || tokens[open - 1].text == "&&") &&
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
    if (!in(after, {"=", "(", "{", ";", ",", "[", ":"}) || (!declares_before(before) && (before.text != "," || out.empty()))) continue;
    out.push_back({t.text, text.substr(tokens[0].begin, tokens[i].begin - tokens[0].begin)});
  }
  return out;
}

}  // namespace

Input read_input(const std::string& text) {
  Input in_;
  std::string unfinished;
  in_.tokens = lex(text, &unfinished);
  auto& tokens = in_.tokens;
  if (text.size() > 1 && text.find_last_not_of(" \t\n") != std::string::npos && text[text.find_last_not_of(" \t\n")] == '\\') in_.open = true;
  if (unfinished.rfind("R\"", 0) == 0) in_.open = true;
  // A comment that is not closed is one unknown token, or nothing at all.
  auto comment = text.rfind("/*");
  if (comment != std::string::npos && text.find("*/", comment + 2) == std::string::npos &&
      std::none_of(tokens.begin(), tokens.end(), [&](const Token& t) { return t.begin < comment && t.end > comment; }))
    in_.open = true;
  if (tokens.empty()) return in_;
  if (tokens[0].text == "#") {
    in_.closed = true;
    return in_;
  }
  std::vector<std::string> brackets;
  bool crossed = !unfinished.empty() && !in_.open;   // a string without its end
  std::string complaint = crossed ? std::string("missing terminating '") + unfinished[0] + "' character" : "";
  std::vector<std::size_t> blocks;   // open braces
  for (const Token& t : tokens) {
    if (!t.bracket) continue;
    if (t.text == "{") blocks.push_back(static_cast<std::size_t>(&t - tokens.data()));
    if (t.text == "}" && !blocks.empty()) blocks.pop_back();
    if (t.text == "(" || t.text == "[" || t.text == "{") {
      brackets.push_back(t.text);
    } else {
      std::string wanted = t.text == ")" ? "(" : t.text == "]" ? "[" : "{";
      if (brackets.empty() || brackets.back() != wanted) {
        if (!crossed && !brackets.empty()) complaint = std::string("expected '") + (brackets.back() == "(" ? ')' : brackets.back() == "[" ? ']' : '}') + "'";
        crossed = true;   // the compiler is to say what is wrong
        break;
      }
      brackets.pop_back();
    }
  }
  if (crossed) {
    // Of lists in braces clang finds the end, and says more.
    for (std::size_t i : blocks)
      if (i > 0 && (tokens[i - 1].word || tokens[i - 1].text == ")" || tokens[i - 1].text == "]" || tokens[i - 1].text == ";")) in_.broken = complaint;
    return in_;
  }
  if (!brackets.empty()) {
    in_.open = true;
    in_.opener = brackets.back();
  }
  const Token& last = tokens.back();
  if (in(last.text, kGoesOn) || lacks_body(tokens)) in_.open = true;
  if (in_.open) return in_;

  in_.closed = last.text == ";";
  in_.names = declared(text, tokens);
  if (last.text == ";") return in_;
  std::size_t start = 0;
  if (!in(tokens[0].text, {"for", "if", "while", "do", "template", "namespace", "try", "switch"}))
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i].text == ";" && tokens[i].depth == 0) start = i + 1;
  if (in(tokens[start].text, kStatements)) return in_;
  for (std::size_t i = start; i < tokens.size(); ++i)
    if (tokens[i].depth == 0 && in(tokens[i].text, kAssignments)) return in_;
  in_.shown = tokens[start].begin;
  return in_;
}

bool begins_statement(const std::string& word) { return in(word, kStatements); }

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
    if (row.back() < least) {
      least = row.back();
      best = other;
    }
  }
  return best;
}

}  // namespace repl

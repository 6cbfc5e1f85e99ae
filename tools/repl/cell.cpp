// tools/repl/cell.cpp - splits a text into inputs, looking at what comes next.
#include "tools/repl/cell.h"

#include <algorithm>
#include <set>

#include "tools/repl/input.h"

namespace repl {
namespace {

using Words = std::set<std::string>;
using Tokens = std::vector<Token>;

// What no statement begins with.
const Words kNeverFirst = {".",  "->",  ".*",  "->*", ",",  ")",   "]",      "?",     ":",     ";",  "=",
                           "==", "!=",  "<",   "<=",  ">",  ">=",  "<=>",    "/",     "%",     "^",  "|",
                           "||", "&&",  "<<",  ">>",  "+=", "-=",  "*=",     "/=",    "%=",    "&=", "|=",
                           "^=", "<<=", ">>=", "and", "or", "xor", "bitand", "bitor", "not_eq"};
// What goes on whatever it stands behind, a block too: `}` may be the end of a lambda.
const Words kBehindBlocks = {".", "->", ",", ")", "]", "?", ":", ";"};
// Operators with one operand as well. C++ goes on with them; behind an empty line, somebody shows two values.
const Words kOneOrTwo = {"+", "-", "*", "&"};
// What may stand behind the parameters of a function.
const Words kBehindParameters = {"noexcept", "override", "final", "mutable", "const", "volatile", "&", "&&"};
const Words kSpecifiers = {"auto",     "bool",     "char",    "double", "float",   "int",       "long",        "short",
                           "signed",   "unsigned", "void",    "const",  "static",  "constexpr", "inline",      "extern",
                           "volatile", "virtual",  "typedef", "friend", "mutable", "typename",  "thread_local"};
const Words kTypeHeads = {"struct", "class", "union", "enum", "namespace"};
const Words kNotTypes = {"return", "break", "continue", "throw",   "delete",   "goto", "this",
                         "new",    "true",  "false",    "nullptr", "operator", "else", "using"};

bool in(const std::string& word, const Words& set) { return set.count(word) != 0; }
bool is_string(const std::string& token) { return token.size() > 1 && token.back() == '"'; }

/// The index of the bracket that the last token closes.
std::size_t opening(const Tokens& tokens) {
  std::size_t i = tokens.size() - 1;
  while (i > 0 && !(tokens[i - 1].bracket && tokens[i - 1].depth == tokens.back().depth)) --i;
  return i > 0 ? i - 1 : 0;
}

/// Whether the `}` at the end closes the body of a function, class, loop or the like, behind which a new statement may
/// begin; not that of a lambda, or a list of values.
bool ends_block(const Tokens& tokens) {
  const std::size_t brace = opening(tokens);
  std::size_t start = brace;  // of the statement
  bool value = false;
  for (; start > 0 && !(tokens[start - 1].depth == 0 && in(tokens[start - 1].text, {";", "}"})); --start) {
    const Token& t = tokens[start - 1];
    value = value || (t.depth == 0 && in(t.text, {"=", "return", "throw"}) &&
                      !(start > 1 && tokens[start - 2].text == "operator"));
  }
  if (value || tokens[start].text == "[") return false;
  if (brace == start || in(tokens[start].text, kTypeHeads) || tokens[start].text == "template") return true;
  const Token& before = tokens[brace - 1];
  return before.text == ")" || in(before.text, kBehindParameters) || in(before.text, {"else", "do", "try"});
}

/// Whether this is the beginning of a declaration and nothing else: `static inline int`, `[[nodiscard]]`.
bool only_specifiers(const Tokens& tokens) {
  const bool attribute = tokens.size() > 3 && tokens[0].text == "[" && tokens[1].text == "[";
  std::size_t i = 0;
  if (attribute)
    while (i < tokens.size() && (tokens[i].depth > 0 || i == 0 || tokens[i].text == "]")) ++i;
  return std::all_of(tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end(),
                     [](const Token& t) { return in(t.text, kSpecifiers) || t.text == "\"C\""; });
}

/// Whether this may be the type of what a function gives, on a line of its own as GNU and Mozilla write it, and a
/// function's head and body follow.
bool type_before_function(const Tokens& type, const Tokens& next) {
  for (const Token& t : type)
    if (in(t.text, kNotTypes) || !(t.word || in(t.text, {"::", "<", ">", ">>", ",", "*", "&"}))) return false;
  if (!next[0].word || in(next[0].text, {"if", "for", "while", "switch"})) return false;
  std::size_t i = 1;
  while (i + 1 < next.size() && next[i].text == "::") i += 2;
  if (i >= next.size() || next[i].text != "(") return false;
  for (++i; i < next.size() && next[i].depth > 0;) ++i;
  for (++i; i < next.size() && in(next[i].text, kBehindParameters);) ++i;
  return i < next.size() && next[i].text == "{";
}

/// What follows an input in its text.
struct Following {
  Tokens tokens;          // of some lines
  std::string line;       // the first with tokens, as it is
  bool gap = false;       // there is an empty line before it
  bool indented = false;  // deeper than the input's first line
};

bool goes_on(const Input& input, const Following& next) {
  if (next.tokens.empty() || !input.broken.empty()) return false;
  const std::string &first = next.tokens[0].text, &last = input.tokens.back().text;
  if (first == "else") return input.takes_else;
  if (input.closed || first == "#") return false;
  if (first == "catch") return last == "}";
  if (!next.indented && is_command(next.line)) return false;
  if (in(first, kBehindBlocks)) return true;
  if (last == "}" && ends_block(input.tokens)) return false;
  if (in(first, kNeverFirst)) return true;
  if (in(first, kOneOrTwo)) return !next.gap;
  if (first == "{" && (next.gap || input.tokens.size() == 1)) return false;
  if (first == "{") return in(last, {")", "]", ">"}) || input.tokens.back().word || is_string(last);
  if (first == "(" || first == "[") return !next.gap && next.indented;
  if (is_string(first) && is_string(last)) return true;
  if (last == ")" && in(first, {"noexcept", "override", "final", "mutable"})) return true;
  return only_specifiers(input.tokens) || type_before_function(input.tokens, next.tokens);
}

std::size_t indentation(const std::string& line) { return std::min(line.find_first_not_of(" \t"), line.size()); }

/// What stands in the lines from `at` on.
Following following(const std::vector<std::string>& lines, std::size_t at, std::size_t indent) {
  constexpr int kAhead = 8;  // lines with tokens: a function's head has hardly more
  Following next;
  std::string text;
  int seen = 0;
  for (; at < lines.size() && seen < kAhead; ++at) {
    if (seen == 0 && text.empty() && trimmed(lines[at]).empty()) next.gap = true;
    text += lines[at] + '\n';
    if (trimmed(lines[at]).empty()) continue;
    const Input input = read_input(text);
    if (input.tokens.empty() && !input.open) text.clear();  // comments
    if (input.tokens.empty() || (!input.tokens[0].word && input.tokens[0].text.rfind("/*", 0) == 0)) continue;
    if (seen++ == 0) {
      next.line = lines[at];
      next.indented = indentation(lines[at]) > indent;
    }
    next.tokens = input.tokens;
  }
  return next;
}

}  // namespace

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_command(const std::string& line) {
  const std::string text = trimmed(line);
  if (text.size() < 2 || text.find('\n') != std::string::npos) return false;
  auto name_until = [&](std::size_t i) {
    while (i < text.size() && (is_word(text[i]) || text[i] == ':')) ++i;
    return i;
  };
  if (text[0] == '?') return text[1] != ' ';
  if (text.back() == '?') return is_letter(text[0]) && text.find_first_of(" (\"/") == std::string::npos;
  if (text[0] == '.') return is_letter(text[1]) && (name_until(1) == text.size() || text[name_until(1)] == ' ');
  if (text[0] != '!') return false;
  if (text[1] == ' ') return true;
  const std::size_t end = name_until(1);  // `!ls` alone may be C++ too: it is whole in either case
  if (end == 1 || end == text.size()) return end != 1;
  return text[end] == ' ' && end + 1 < text.size() &&
         (is_word(text[end + 1]) || std::string("./~\"'$").find(text[end + 1]) < 6 ||
          (text[end + 1] == '-' && end + 2 < text.size() && text[end + 2] != ' '));
}

std::vector<CellInput> split_cell(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    begin = end + 1;
  }
  std::vector<CellInput> out;
  CellInput part{"", 0};
  std::size_t indent = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (part.code.empty()) {
      part.line = static_cast<int>(i) + 1;
      indent = indentation(lines[i]);
    }
    part.code += lines[i] + '\n';
    if (!is_command(part.code)) {
      const Input input = read_input(part.code);
      if (input.tokens.empty() && !input.open) {
        part.code.clear();
        continue;
      }
      const bool may_go_on = !input.closed || input.takes_else;
      if (input.open || (may_go_on && goes_on(input, following(lines, i + 1, indent)))) continue;
    }
    out.push_back(part);
    part.code.clear();
  }
  if (!trimmed(part.code).empty()) {
    part.open = read_input(part.code).open;
    out.push_back(part);
  }
  return out;
}

}  // namespace repl

// tools/repl/namespaces.cpp - members of a user's namespace, declared again.
#include "tools/repl/namespaces.h"

#include <algorithm>
#include <vector>

namespace repl {
namespace {

/// If a namespace with a body begins at i, the index of its `{`; else 0.
std::size_t body_of(const std::vector<Token>& tokens, std::size_t i) {
  if (i < tokens.size() && tokens[i].text == "inline") ++i;
  if (i >= tokens.size() || tokens[i].text != "namespace") return 0;
  const int depth = tokens[i].depth;
  for (++i; i < tokens.size() && !(tokens[i].depth == depth && (tokens[i].text == ";" || tokens[i].text == "=")); ++i)
    if (tokens[i].depth == depth && tokens[i].text == "{") return i;
  return 0;
}

/// The name before the body at `open`: "o::i"; empty for one without a name.
std::string name_before(const std::vector<Token>& tokens, std::size_t open) {
  std::string name;
  for (std::size_t i = open; i > 0 && tokens[i - 1].text != "namespace"; --i)
    if (tokens[i - 1].depth == tokens[open].depth && tokens[i - 1].text != "inline") name = tokens[i - 1].text + name;
  return name;
}

/// A part of a namespace's body without namespaces in it.
struct Group {
  std::string space;  // "o::i"
  std::size_t begin, end;
};

/// The groups of the body that opens at `open`, in their order.
void find_groups(const std::vector<Token>& tokens, std::size_t open, const std::string& outer,
                 std::vector<Group>* groups) {
  const std::string space = (outer.empty() ? "" : outer + "::") + name_before(tokens, open);
  const int depth = tokens[open].depth + 1;
  bool goes_on = false;
  for (std::size_t i = open + 1; i < tokens.size() && tokens[i].depth >= depth;) {
    const std::size_t behind = std::min(std::max(i + 1, behind_declaration(tokens, i)), tokens.size());
    if (const std::size_t body = body_of(tokens, i)) {
      find_groups(tokens, body, space, groups);
      goes_on = false;
    } else {
      if (!goes_on) groups->push_back({space, tokens[i].begin, 0});
      groups->back().end = tokens[behind - 1].end;
      goes_on = true;
    }
    i = behind;
  }
}

std::vector<Group> groups_of(const Input& in) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < in.tokens.size(); ++i)
    if (const std::size_t body = in.tokens[i].depth == 0 ? body_of(in.tokens, i) : 0) {
      find_groups(in.tokens, body, "", &groups);
      i = body;
    }
  return groups;
}

}  // namespace

bool has_namespace(const Input& in) {
  for (std::size_t i = 0; i < in.tokens.size(); ++i)
    if (in.tokens[i].depth == 0 && body_of(in.tokens, i)) return true;
  return false;
}

std::vector<std::string> members(const std::string& code, const Input& in) {
  std::vector<std::string> out;
  for (const Group& group : groups_of(in)) {
    const std::string text = code.substr(group.begin, group.end - group.begin);
    for (const Input::Piece& piece : read_input(text).pieces)
      for (const Input::Name& name : read_input(text.substr(piece.begin, piece.end - piece.begin)).names)
        out.push_back(group.space + "::" + name.name);
  }
  return out;
}

std::string in_own_spaces(const Wrapper& wrapper, const Input& in, const std::string& own_space) {
  const std::string& code = wrapper.code;
  std::string out;
  std::size_t at = 0;
  // What goes on behind `text` keeps its line and column.
  auto put = [&](std::size_t offset, const std::string& text) {
    out += code.substr(at, offset - at) + "\n" + text + "\n" + wrapper.mark(offset) +
           std::string(wrapper.column(offset), ' ');
    at = offset;
  };
  for (const Group& group : groups_of(in)) {
    put(group.begin, "inline namespace " + own_space + " {");
    put(group.end, "}");
  }
  return out + code.substr(at);
}

}  // namespace repl

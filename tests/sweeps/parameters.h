// tests/sweeps/parameters.h - the parameters of K functions, read from the public headers.
#pragma once
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/sources.h"

namespace kassette::test {

/// What is written between the commas of a list.
using Strings = std::vector<std::string>;

inline std::string trimmed(const std::string& s) {
  const std::size_t from = s.find_first_not_of(" \n"), to = s.find_last_not_of(" \n");
  return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}

/// The arguments of a call or a declaration, starting after its opening parenthesis.
inline Strings arguments(const std::string& text, std::size_t at) {
  Strings all{""};
  bool quoted = false;
  for (int depth = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '(' || c == '{' || c == '[')) ++depth;
    if (!quoted && (c == ')' || c == '}' || c == ']') && depth-- == 0) break;
    if (!quoted && c == ',' && depth == 0) all.emplace_back();
    else all.back() += c;
  }
  for (std::string& one : all) one = trimmed(std::regex_replace(one, std::regex("/\\*.*?\\*/"), ""));
  return all;
}

/// The parameters of each K function by its headers, one list for each overload.
inline std::multimap<std::string, Strings> parameters() {
  std::multimap<std::string, Strings> all;
  const std::regex declaration(R"(\nKASSETTE_API\s+[\w:]+\s+(\w+)\()"), name(R"((\w+)\s*(=.*)?$)");
  for (const auto& path : files_of("include/kassette/backend", ".h")) {
    const std::string text = text_of(path);
    for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) {
      Strings names = arguments(text, static_cast<std::size_t>(at->position() + at->length()));
      for (std::string& one : names) {
        std::smatch found;
        std::string flat = std::regex_replace(one, std::regex("\\s*\n\\s*"), " ");
        one = std::regex_search(flat, found, name) ? found[1].str() : "";
      }
      all.emplace((*at)[1], names);
    }
  }
  return all;
}

}  // namespace kassette::test

// tests/sweeps/wrong_argument_test.cpp - one argument of a K function is wrong, and the error names that one.
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;

namespace {

using Names = std::vector<std::string>;

std::string trimmed(const std::string& s) {
  const std::size_t from = s.find_first_not_of(" \n"), to = s.find_last_not_of(" \n");
  return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}

/// The arguments of a call or a declaration, from behind its parenthesis on.
Names arguments(const std::string& text, std::size_t at) {
  Names all{""};
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
std::multimap<std::string, Names> parameters() {
  std::multimap<std::string, Names> all;
  const std::regex declaration(R"(\nKASSETTE_API\s+[\w:]+\s+(\w+)\()"), name(R"((\w+)\s*(=.*)?$)");
  for (const auto& path : files_of("nn_backend", ".h")) {
    const std::string text = text_of(path);
    for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) {
      Names names = arguments(text, static_cast<std::size_t>(at->position() + at->length()));
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

/// Arguments that messages leave unnamed so far, or call by another word than the header. Each that is mended leaves this list.
const std::set<std::string> kUnnamed{"clip min_value",
                                     "clip max_value",
                                     "sparse_categorical_crossentropy target",
                                     "depthwise_conv2d depthwise_kernel",
                                     "separable_conv2d x",
                                     "separable_conv2d depthwise_kernel",
                                     "separable_conv2d pointwise_kernel",
                                     "separable_conv1d x",
                                     "separable_conv1d depthwise_kernel",
                                     "separable_conv1d pointwise_kernel",
                                     "switch_ then_expression",
                                     "switch_ else_expression",
                                     "foldl elems",
                                     "foldl initializer",
                                     "foldr elems",
                                     "foldr initializer",
                                     "cast x",
                                     "zeros_like x",
                                     "ones_like x",
                                     "repeat x",
                                     "slice start",
                                     "slice size",
                                     "dot x",
                                     "dot y"};

/// Whether a message says which argument it is about: by name as a word that something is said of, or "argument 2", counted from 1.
bool names_it(const std::string& message, const std::string& name, std::size_t position) {
  const std::string said = message.substr(std::min(message.size(), message.find(':')));
  return std::regex_search(said, std::regex("\\b" + name + "\\b[^:,;]* (is|has|are|holds|must|of|takes)\\b")) ||
         std::regex_search(said, std::regex("\\b(argument|input|operand) " + std::to_string(position + 1) + "\\b"));
}

}  // namespace

TEST_CASE("an argument that is an empty Tensor is named where there are several", "[sweep][bad]") {
  const auto declared = parameters();
  std::set<std::string> unnamed;
  int named = 0;
  for (const Sample& s : op_samples()) {
    if (!s.traits.k) continue;
    const std::string expression = s.expression, opening = "K::" + std::string(s.name) + "(";
    const std::size_t at = expression.find(opening);
    if (at == std::string::npos) continue;
    const Names given = arguments(expression, at + opening.size());
    Names names;
    const auto [from, to] = declared.equal_range(s.name);
    for (auto it = from; it != to; ++it)
      if (it->second.size() >= given.size() && (names.empty() || it->second.size() < names.size())) names = it->second;
    if (names.size() < 2) continue;
    const Shapes shapes = cases_of(s)[0];
    const DType dtype = dtypes_of(s.takes).front();
    for (std::size_t i = 0; i < shapes.size() && i < 4; ++i) {
      const auto position = std::find(given.begin(), given.end(), std::string(1, "xyzw"[i]));
      if (position == given.end() || s.in[i].optional) continue;
      const std::size_t p = static_cast<std::size_t>(position - given.begin());
      Tensors in = make_inputs(s, shapes, dtype);
      in[static_cast<std::int64_t>(i)] = Tensor();
      const std::string message = error_of([&] { call(s, in); });
      INFO(message << "\n  of " << expression << ", where " << names[p] << " is an empty Tensor");
      CHECK(message != "no error");
      if (message.rfind(std::string(s.name) + ":", 0) != 0) continue;  // a call among the arguments has refused it
      const std::string which = std::string(s.name) + " " + names[p];
      if (names_it(message, names[p], p)) {
        ++named;
      } else {
        unnamed.insert(which);
        CHECK(kUnnamed.count(which) == 1);
      }
    }
  }
  CHECK(unnamed == kUnnamed);
  CHECK(named > 100);
}

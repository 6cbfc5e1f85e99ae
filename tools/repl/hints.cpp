// tools/repl/hints.cpp - what people who come from Python type, and what to write instead.
#include "tools/repl/hints.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

namespace repl {
namespace {

/// Whether the token at i, which is not the first, is the `[` of an index: x[...], f()[...].
bool begins_index(const Input& in, std::size_t i) {
  const Token& before = in.tokens[i - 1];
  return in.tokens[i].text == "[" && (before.text == ")" || before.text == "]" ||
                                      (before.word && before.text != "auto" && before.text != "return"));
}

/// x[i, j], which is another thing in NumPy.
bool has_comma_index(const Input& in) {
  for (std::size_t i = 1; i < in.tokens.size(); ++i) {
    if (!begins_index(in, i)) continue;
    for (std::size_t j = i + 1; j < in.tokens.size() && in.tokens[j].depth > in.tokens[i].depth; ++j)
      if (in.tokens[j].text == "," && in.tokens[j].depth == in.tokens[i].depth + 1) return true;
  }
  return false;
}

/// X[:, 0], as NumPy has it, or empty.
std::string slice_index(const std::string& code, const Input& in) {
  for (std::size_t i = 1; i < in.tokens.size(); ++i) {
    if (!begins_index(in, i)) continue;
    const Token& open = in.tokens[i];
    bool slice = false, choice = false;
    std::size_t j = i + 1;
    for (; j < in.tokens.size() && in.tokens[j].depth > open.depth; ++j) {
      if (in.tokens[j].depth != open.depth + 1) continue;
      slice = slice || in.tokens[j].text == ":" || (in.tokens[j].text == "::" && !in.tokens[j - 1].word);
      choice = choice || in.tokens[j].text == "?";
    }
    if (slice && !choice && j < in.tokens.size())
      return in.tokens[i - 1].text + "[\"" + code.substr(open.end, in.tokens[j].begin - open.end) + "\"]";
  }
  return "";
}

/// f((a, b)), which is f(b).
bool has_comma_tuple(const Input& in) {
  for (std::size_t i = 1; i < in.tokens.size(); ++i) {
    if (in.tokens[i].text != "(" || (in.tokens[i - 1].text != "(" && in.tokens[i - 1].text != ",")) continue;
    for (std::size_t j = i + 1; j < in.tokens.size() && in.tokens[j].depth > in.tokens[i].depth; ++j)
      if (in.tokens[j].text == "," && in.tokens[j].depth == in.tokens[i].depth + 1) return true;
  }
  return false;
}

// Headers of the standard library that a session does not begin with, and what people use of them.
struct Header {
  const char *name, *members;
};
const Header kStdHeaders[] = {
    {"any", "any any_cast make_any"},
    {"charconv", "from_chars to_chars"},
    {"condition_variable", "condition_variable condition_variable_any"},
    {"forward_list", "forward_list"},
    {"future", "async future promise packaged_task shared_future"},
    {"regex", "regex smatch cmatch regex_match regex_search regex_replace sregex_iterator"},
    {"shared_mutex", "shared_mutex shared_lock"},
    {"stack", "stack"},
    {"typeindex", "type_index"},
    {"valarray", "valarray"},
};

}  // namespace

namespace {

/// "np" of "kassette::numpy": as a prompt has it.
std::string as_typed(const std::string& space) {
  static const std::pair<std::string, std::string> kPrompt[] = {
      {"kassette::backend", "K"}, {"kassette::numpy", "np"}, {"kassette::nn", "nn"}};
  for (const auto& [whole, name] : kPrompt)
    if (space.rfind(whole, 0) == 0) return name + space.substr(whole.size());
  return space;
}

/// What has another name here than in NumPy: in a namespace, or as a member of an array.
std::string other_name(const std::string& name) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"T", "np::transpose(x)"},
      {"astype", "K::cast(x, \"int32\")"},
      {"choice", "np::random::choice(x, {2, 3})"},
      {"copy", "y = x is enough: tensors do not change"},
      {"determinant", "np::linalg::det(x)"},
      {"flatten", "np::ravel(x)"},
      {"itemsize", "kassette::itemsize(x.dtype())"},
      {"numpy", "x.data<float>() or x.to_vector<float>()"},
      {"rand", "np::random::uniform(0, 1, {2, 3})"},
      {"randint", "np::random::integers(0, 10, {2, 3})"},
      {"randn", "np::random::normal(0, 1, {2, 3})"},
      {"random_sample", "np::random::random({2, 3})"},
      {"tolist", "x.to_vector<float>()"},
  };
  for (const auto& [theirs, here] : kNames)
    if (name == theirs) return here;
  return "";
}

/// What somebody meant who typed a name that a namespace of ours, "np::linalg", does not have.
std::string meant_in(const std::string& space, const std::string& name, const OurNames& ours) {
  if (std::string known = other_name(name); !known.empty()) return known;
  if (std::string elsewhere = ours.whole(name); !elsewhere.empty()) return elsewhere;
  std::string small = name;
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  for (std::size_t n = small.size(); n >= std::min<std::size_t>(small.size(), 3); --n)
    for (const std::string& other : ours.beginning(space + "::" + small.substr(0, n)))
      if (n == small.size() || other.size() == n) return space + "::" + other;  // more of it, or less: inverse, inv
  const std::string near = nearest(name, ours.beginning(space + "::"));
  return near.empty() ? "" : space + "::" + near;
}

/// A function of ours that takes several tensors as one argument, and was called with one after the other.
bool takes_list(const std::string& error) {
  return error.find("too many arguments") != std::string::npos && error.find("const Tensors&") != std::string::npos;
}

}  // namespace

std::string hint_for(const std::string& error, const std::string& code, const OurNames& ours) {
  auto quoted = [&](const char* before) -> std::string {
    auto at = error.find(before);
    if (at == std::string::npos) return "";
    at += std::string(before).size();
    return error.substr(at, error.find('\'', at) - at);
  };
  auto line = [](const std::string& text) { return "hint: " + text + "\n"; };
  auto include = [&](const std::string& name) -> std::string {
    for (const auto& [header, names] : kStdHeaders)
      if ((' ' + std::string(names) + ' ').find(' ' + name + ' ') != std::string::npos)
        return line(std::string("#include <") + header + ">");
    return "";
  };
  auto has = [&](const char* part) { return error.find(part) != std::string::npos; };
  const auto first = code.find_first_not_of(" \t\n");
  if (first != std::string::npos && (code[first] == '.' || code.compare(first, 2, "->") == 0))
    return line("at a prompt a line goes on in the next one if it ends with an operator or has a bracket open");
  if (has("expected ';'") && code.find('@') != std::string::npos)
    return line("there is no @; K::dot(x, y) multiplies matrices");
  if (has("too few arguments") && code.find("where(") != std::string::npos)
    return line("the indices where a condition holds: np::nonzero(condition), np::argwhere(condition)");
  if (has("no matching member function for call to 'item'"))
    return line("x.item<float>(), with the type of the element");
  if (has("'random' is not a class") || has("no member named 'random' in namespace 'kassette::backend'"))
    return line("K::random_normal, K::random_uniform, K::random_binomial, or np::random::normal");
  if (std::string type = quoted("no known conversion from '"); !type.empty() && has(("to '" + type + "'").c_str()))
    return line(type + " was declared again: this value, or the function, has the one of before");
  if (has("unknown type name 'import'") || has("unknown type name 'from'"))
    return line("the headers are here already; K:: and np:: hold the functions, and .help says more");
  if (has("invalid operands to binary expression") && has("Tensor"))
    return line("tensors have + - * / % < <= > >= & | ~; the others are functions: K::equal, K::pow, K::dot");
  if (has("'operator bool' is unavailable") && code.find_first_of("!&|") != std::string::npos)
    return line("of bool tensors ~x is the opposite, x & y and x | y combine");
  if (has("indirection requires pointer operand")) return line("there is no **; write K::pow(x, 2) or K::square(x)");
  if (std::string name = quoted("no member named '"); !name.empty() && has("in 'kassette::Tensor'")) {
    if (const std::string other = other_name(name); !other.empty()) return line(other);
    const bool more = code.find(name + "(") != std::string::npos && code.find(name + "()") == std::string::npos;
    if (const std::string whole = ours.whole(name); !whole.empty()) return line(whole + (more ? "(x, ...)" : "(x)"));
  }
  // clang 19 proposes no members of classes in namespaces that come from a precompiled header.
  if (const std::string type = quoted("' in 'kassette::"), name = quoted("no member named '");
      !type.empty() && !name.empty() && !has("did you mean"))
    if (const std::string near = nearest(name, ours.beginning("kassette::" + type + "::")); !near.empty())
      return line("did you mean " + near + "?");
  if (const std::string space = quoted("unexpected namespace name '"); !space.empty()) {
    const std::string typed = space == "backend" ? "K" : space == "numpy" ? "np" : space;
    return line(typed + " is a namespace: " + typed + "::name");
  }
  if (has("no viable overloaded '") && has("='"))
    return line("write x = x + y; a variable changes by K::update, K::update_add, K::update_sub");
  if (has("reference to overloaded function could not be resolved") ||
      has("reference to non-static member function must be called"))
    return line("a function is called with (...); ?name shows what it does");
  if (takes_list(error) || has("no viable conversion from 'Tensor' to 'int'") ||
      has("no viable conversion from 'Tensor' to 'const Axes'"))
    return line("several tensors are one argument, in braces: f({x, y})");
  if (has("incomplete type 'void'")) return line("this call gives no value: write it without a variable");
  if (std::string name = quoted("use of undeclared identifier '");
      !name.empty() && (name == "print" || !has("did you mean") || ours.system_proposed ||
                        (!has("did you mean 'kassette::") && !ours.whole(name).empty()))) {
    if (name == "_") return line("_ is the last value that was shown; there is none that could be kept");
    if (name == "len") return line("x.size(), or x.shape()[0]");
    if (name == "numpy") return line("np::zeros({2, 3})");
    if (name == "tf" || name == "torch" || name == "keras") return line("K:: holds the functions: K::zeros({2, 3})");
    if (name == "print") return line("a line without `;` shows its value");
    if (name == "True" || name == "False") return line("C++ writes true and false");
    static const std::set<std::string> kArguments = {"axis",  "keepdims", "dtype",   "shape",    "name",
                                                     "alpha", "padding",  "strides", "training", "seed"};
    if (kArguments.count(name) && code.find("K::") == std::string::npos && code.find("np::") != std::string::npos)
      return line("arguments by name stand in braces: np::sum(x, {.axis = 0})");
    if (kArguments.count(name))
      return line("C++ has no arguments by name: they stand in their order, which ?function shows");
    if (const std::string whole = ours.whole(name); !whole.empty()) return line(whole);
    // Only what could be a variable: not what is called, or names a scope or a template.
    for (const Input in = read_input(code); const Token& t : in.tokens)
      if (t.text == name && &t != &in.tokens.back() && (*(&t + 1)).begin == t.end &&
          ((&t + 1)->text == "(" || (&t + 1)->text == "::" || (&t + 1)->text == "<"))
        return "";
    return line("a new variable is declared: auto " + name + " = ...;");
  }
  if (std::string name = quoted("variable '"); has("cannot be implicitly captured") || has("cannot be captured")) {
    if (name.empty()) name = quoted("'");
    return line("variables of the prompt are global: write [] and use " + (name.empty() ? "it" : name) + ", or [" +
                name + " = " + name + "] for its value now");
  }
  std::string name = quoted("no member named '");
  if (name.empty()) name = quoted("no template named '");
  if (name.empty()) name = quoted("no type named '");
  if (name.empty()) return "";
  if (has("in namespace 'std'")) {
    if (std::string known = include(name); !known.empty()) return known;
    if (const std::string near = nearest(name, ours.beginning("std::")); !near.empty() && !has("did you mean"))
      return line("did you mean std::" + near + "?");
  }
  if (const std::string space = quoted("' in namespace '");
      space.rfind("kassette", 0) == 0 && !has("did you mean 'kassette::")) {
    if (const std::string elsewhere = ours.whole(name); has("did you mean"))
      return elsewhere.empty() ? "" : line(elsewhere);
    static const std::vector<std::pair<std::string, std::string>> kHeaders = {{"from_dlpack", "dlpack"},
                                                                              {"to_dlpack", "dlpack"},
                                                                              {"from_xtensor", "xtensor"},
                                                                              {"to_xarray", "xtensor"},
                                                                              {"xview", "xtensor"}};
    for (const auto& [begin, header] : kHeaders)
      if (name.compare(0, begin.size(), begin) == 0)
        return line("#include <kassette/" + header + ".h>; then kassette::" + name);
    if (const std::string meant = meant_in(as_typed(space), name, ours); !meant.empty()) return line(meant);
  }
  return "";
}

std::string python_list(const std::string& code, const Input& in) {
  static const std::set<std::string> kBehindCaptures = {"(", "{", "<", "->", "mutable", "constexpr", "noexcept"};
  for (std::size_t i = 0; i < in.tokens.size(); ++i) {
    const Token& open = in.tokens[i];
    const std::string before = i ? in.tokens[i - 1].text : ";";
    if (open.text != "[") continue;
    if (before != "(" && before != "," && before != "=" && before != "{" && before != "return") continue;
    std::size_t j = i + 1;
    while (j < in.tokens.size() && in.tokens[j].depth > open.depth) ++j;
    if (j >= in.tokens.size() || in.tokens[j].text != "]") continue;
    const bool attribute = before == "{" && in.tokens[i + 1].text == "[";
    if (attribute) {
      i = j;
      continue;
    }
    if (j + 1 < in.tokens.size() && kBehindCaptures.count(in.tokens[j + 1].text)) continue;
    const std::string list = code.substr(open.begin, in.tokens[j].end - open.begin);
    std::string braces = list;
    std::replace(braces.begin(), braces.end(), '[', '{');
    std::replace(braces.begin(), braces.end(), ']', '}');
    return list + " is no list in C++; write " + braces;
  }
  return "";
}

std::string hints_before(const std::string& code, const Input& in) {
  std::string hints;
  if (std::string index = slice_index(code, in); !index.empty()) hints += "hint: a slice is a text: " + index + "\n";
  else if (has_comma_index(in)) hints += "hint: x[i, j] is x[j] in C++; write x(i, j)\n";
  if (has_comma_tuple(in)) hints += "hint: (a, b) is b in C++; a shape or a list is written {a, b}\n";
  return hints;
}

std::string hints_at_prompt(const Input& in) {
  const std::string& first = in.tokens[0].text;
  if (in.closed && (first == "+" || first == "-"))
    return "hint: this line stands alone; one goes on in the next if it ends with an operator or has a bracket open\n";
  if (has_main(in.tokens) && in.tokens.back().text == "}")
    return "hint: here main() is a function like others, which main() calls; a script's runs by itself\n";
  return "";
}

}  // namespace repl

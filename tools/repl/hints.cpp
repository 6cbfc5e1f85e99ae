// tools/repl/hints.cpp - what people who come from Python type, and what to write instead.
#include "tools/repl/hints.h"

#include <algorithm>
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

// Headers of the standard library, and what people use of them.
struct Header {
  const char *name, *members;
};
const Header kStdHeaders[] = {
    {"algorithm", "sort max_element transform shuffle"},
    {"any", "any"},
    {"array", "array"},
    {"atomic", "atomic"},
    {"bitset", "bitset"},
    {"chrono", "chrono"},
    {"complex", "complex"},
    {"deque", "deque"},
    {"filesystem", "filesystem"},
    {"fstream", "fstream ifstream ofstream"},
    {"functional", "function bind plus"},
    {"future", "async future"},
    {"iomanip", "setprecision setw"},
    {"iostream", "cout cin endl cerr istream ostream"},
    {"limits", "numeric_limits"},
    {"list", "list"},
    {"map", "map multimap"},
    {"memory", "shared_ptr make_shared unique_ptr make_unique"},
    {"mutex", "mutex lock_guard"},
    {"numeric", "accumulate iota"},
    {"optional", "optional"},
    {"queue", "queue priority_queue"},
    {"random", "mt19937 normal_distribution uniform_real_distribution uniform_int_distribution random_device"},
    {"regex", "regex"},
    {"set", "set"},
    {"sstream", "stringstream istringstream ostringstream"},
    {"stack", "stack"},
    {"stdexcept", "runtime_error invalid_argument out_of_range logic_error domain_error"},
    {"string", "string to_string"},
    {"string_view", "string_view"},
    {"thread", "thread this_thread"},
    {"tuple", "tuple"},
    {"unordered_map", "unordered_map"},
    {"unordered_set", "unordered_set"},
    {"variant", "variant"},
    {"vector", "vector"},
};

}  // namespace

std::string hint_for(const std::string& error, const std::string& code,
                     const std::function<bool(const std::string&)>& in_k) {
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
  if (has("no matching member function for call to 'item'"))
    return line("x.item<float>(), with the type of the element");
  if (has("'random' is not a class") || has("no member named 'random' in namespace 'kassette::backend'"))
    return line("K::random_normal, K::random_uniform, K::random_binomial, or np::random::normal");
  if (std::string type = quoted("no known conversion from '"); !type.empty() && has(("to '" + type + "'").c_str()))
    return line(type + " was declared again: this value, or the function, has the one of before");
  if (has("unknown type name 'import'") || has("unknown type name 'from'"))
    return line("the headers are here already; K:: holds the functions, and .help says more");
  if (has("invalid operands to binary expression") && has("Tensor"))
    return line("tensors have + - * / % < <= > >= & | ~; the others are functions: K::equal, K::pow, K::dot");
  if (has("'operator bool' is unavailable") && code.find_first_of("!&|") != std::string::npos)
    return line("of bool tensors ~x is the opposite, x & y and x | y combine");
  if (has("indirection requires pointer operand")) return line("there is no **; write K::pow(x, 2) or K::square(x)");
  if (std::string name = quoted("no member named '"); !name.empty() && has("in 'kassette::Tensor'") && in_k(name))
    return line("K::" + name + "(x)");
  if (has("unexpected namespace name")) return line("K is a namespace: K::name");
  if (has("no viable overloaded '") && has("='"))
    return line("write x = x + y; a variable changes by K::update, K::update_add, K::update_sub");
  if (has("reference to overloaded function could not be resolved") ||
      has("reference to non-static member function must be called"))
    return line("a function is called with (...); ?name shows what it does");
  if (const std::string type = quoted("implicit instantiation of undefined template 'std::basic_"); !type.empty())
    return include(type.substr(0, type.find('<')));
  if (has("incomplete type 'void'")) return line("this call gives no value: write it without a variable");
  if (std::string name = quoted("use of undeclared identifier '");
      !name.empty() && (name == "print" || !has("did you mean"))) {
    if (name == "_") return line("_ is the last value that was shown; there is none that could be kept");
    if (name == "len") return line("x.size(), or x.shape()[0]");
    if (name == "np" || name == "tf" || name == "torch" || name == "keras")
      return line("K:: holds the functions: K::zeros({2, 3})");
    if (name == "print") return line("a line without `;` shows its value");
    if (name == "True" || name == "False") return line("C++ writes true and false");
    static const std::set<std::string> kArguments = {"axis",  "keepdims", "dtype",   "shape",    "name",
                                                     "alpha", "padding",  "strides", "training", "seed"};
    if (kArguments.count(name))
      return line("C++ has no arguments by name: they stand in their order, which ?function shows");
    if (in_k(name)) return line("K::" + name);
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
  if (name.empty()) return "";
  if (has("in namespace 'std'")) {
    if (std::string known = include(name); !known.empty()) return known;
  }
  if (has("in namespace 'kassette") && !has("did you mean")) {
    static const std::vector<std::pair<std::string, std::string>> kHeaders = {{"load_", "io"},
                                                                              {"save_", "io"},
                                                                              {"from_dlpack", "dlpack"},
                                                                              {"to_dlpack", "dlpack"},
                                                                              {"from_xtensor", "xtensor"},
                                                                              {"to_xarray", "xtensor"},
                                                                              {"xview", "xtensor"}};
    for (const auto& [begin, header] : kHeaders)
      if (name.compare(0, begin.size(), begin) == 0)
        return line("#include <kassette/" + header + ".h>; then kassette::" + name);
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

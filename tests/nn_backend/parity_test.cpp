// tests/nn_backend/parity_test.cpp - docs/parity.md: the 153 functions of Keras' backend, what is declared here, where
// it is tested. Its index is tests/data/parity.tsv, the rest is read from the headers and tests. `kassette_tests
// "[.parity_page]"` writes the page; the other test compares it with the headers.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sources.h"

namespace {

namespace fs = std::filesystem;
using namespace kassette::test;
using Strings = std::vector<std::string>;

const fs::path kPage = kSourceTree / "docs/parity.md";

Strings split(const std::string& line, char by) {
  Strings out(1);
  for (char c : line) {
    if (c == by) out.emplace_back();
    else out.back() += c;
  }
  return out;
}
std::string trim(const std::string& s) {
  std::size_t from = s.find_first_not_of(" \n"), to = s.find_last_not_of(" \n");
  return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}
/// A list of parameters at its commas, not at those inside brackets.
Strings arguments(const std::string& list) {
  Strings out;
  std::string one;
  int depth = 0;
  for (char c : list + ',') {
    depth += (c == '<' || c == '(' || c == '{') - (c == '>' || c == ')' || c == '}');
    if (c == ',' && depth == 0) {
      if (!trim(one).empty()) out.push_back(trim(one));
      one.clear();
    } else {
      one += c;
    }
  }
  return out;
}

// ---- the headers ----------------------------------------------------------------------------------------------------

struct Declaration {
  std::string header, signature, parameters;
};

/// The functions of namespace backend that a header declares, by name.
void read_header(const fs::path& path, std::multimap<std::string, Declaration>& to) {
  std::string text = std::regex_replace(text_of(path), std::regex("//[^\n]*|\n#[^\n]*"), "");
  std::size_t at = text.find("namespace backend {");
  if (at == std::string::npos) return;
  int depth = 0;
  std::string statement;
  for (at += 19; at < text.size() && depth >= 0; ++at) {
    char c = text[at];
    bool ends = depth == 0 && (c == ';' || c == '{');
    depth += (c == '{') - (c == '}');
    if (depth == 0 && !ends && c != '}') statement += c;
    if (!ends) continue;
    statement = std::regex_replace(trim(statement), std::regex("\\s+"), " ");
    statement = std::regex_replace(
        statement, std::regex("(KASSETTE_API|inline|\\[\\[nodiscard\\]\\]|template <class [A-Z]>|template <int = 0>) "),
        "");
    if (c == '{' && statement.find('(') == std::string::npos) statement.clear();         // a class
    if (statement.find("KASSETTE_UNAVAILABLE") != std::string::npos) statement.clear();  // says what to write instead
    std::smatch m;
    // Defaults such as `= {}` hold braces; the statement goes on behind them.
    if (c == '{' &&
        std::count(statement.begin(), statement.end(), '(') > std::count(statement.begin(), statement.end(), ')')) {
      std::size_t close = at;
      for (int open = 0; close < text.size(); ++close)
        if ((open += (text[close] == '{') - (text[close] == '}')) == 0) break;
      statement = trim(statement) + ' ' + text.substr(at, close + 1 - at);
      at = close;
      --depth;
      continue;
    }
    if (std::regex_match(statement, m, std::regex("([^=(]*[ &>])([a-z][a-z_0-9]*)\\((.*)\\)")) &&
        statement.rfind("using", 0) != 0)
      to.insert({m[2], {path.filename().string(), m[0], m[3]}});
    statement.clear();
  }
}
std::multimap<std::string, Declaration> declared() {
  std::multimap<std::string, Declaration> out;
  std::vector<fs::path> headers = files_of("include/kassette/backend", ".h");
  std::sort(headers.begin(), headers.end());
  for (const fs::path& path : headers)
    if (text_of(path).find("#pragma once") == std::string::npos) read_header(path, out);  // private ones have that
  return out;
}

// ---- the tests ------------------------------------------------------------------------------------------------------

struct Case {
  std::string name, body;
};
std::vector<Case> test_cases() {
  std::vector<Case> out;
  for (const char* folder : {"tests/nn_backend", "tests/autograd", "tests/ops"})
    for (const fs::path& path : files_of(folder, ".cpp")) {
      if (path.filename() == "parity_test.cpp") continue;
      std::string text = text_of(path);
      std::regex start("\nTEST_CASE\\(\"([^\"]*)\"");
      for (std::sregex_iterator it(text.begin(), text.end(), start), end; it != end; ++it) {
        auto from = static_cast<std::size_t>(it->position(0));
        out.push_back({(*it)[1], text.substr(from, text.find("\n}\n", from) - from)});
      }
    }
  std::sort(out.begin(), out.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return out;
}
std::size_t calls(const std::string& body, const std::string& function) {
  std::size_t n = 0;
  std::string call = function.empty() ? "K::" : "K::" + function + "(";
  for (std::size_t at = 0; (at = body.find(call, at)) != std::string::npos; ++at) ++n;
  return n;
}
/// The two test cases that are most about a function: by their names, else by the part of their calls that call it.
std::string tests_of(const std::string& function, const std::vector<Case>& cases) {
  std::vector<std::pair<std::size_t, const Case*>> by;
  std::regex word("\\b" + function + "\\b");
  for (const Case& c : cases)
    if (std::size_t n = calls(c.body, function), all = calls(c.body, ""); n > 0)
      by.push_back(
          {(std::regex_search(c.name, word) ? 1000000 : 0) + 1000 * n * n / std::max<std::size_t>(all, 1), &c});
  std::stable_sort(by.begin(), by.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (std::size_t i = 0; i < by.size() && i < 2; ++i)
    out += (i ? "; " : "") + std::string("*") + by[i].second->name + "*";
  return out;
}

/// The tests that a line of the page names: its last cell.
Strings named_tests(const std::string& line) {
  std::size_t close = line.rfind(" |"), open = line.rfind("| ", close == std::string::npos ? close : close - 1);
  if (close == std::string::npos || open == std::string::npos) return {};
  std::string cell = line.substr(open, close - open);
  static const std::regex kName("\\*([^*]+)\\*");
  Strings out;
  for (std::sregex_iterator it(cell.begin(), cell.end(), kName), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

// ---- the page -------------------------------------------------------------------------------------------------------

struct Entry {
  std::string number, function, group, keras, note;
};
/// A K function's name here: keywords of C++ get an underscore at the end.
std::string name_here(const std::string& name) { return name == "switch" ? "switch_" : name; }
/// What the file lists, then the functions that a header declares beside those.
std::vector<Entry> index() {
  std::vector<Entry> out;
  for (const std::string& line : split(text_of(kSourceTree / "tests/data/parity.tsv"), '\n')) {
    Strings cells = split(line, '\t');
    if (cells.size() == 5 && cells[0] != "number") out.push_back({cells[0], cells[1], cells[2], cells[3], cells[4]});
  }
  std::set<std::string> listed;
  for (const Entry& e : out) listed.insert(name_here(e.function));
  for (const auto& [name, d] : declared())
    if (listed.insert(name).second) out.push_back({"-", name, "Beside the index", "", ""});
  return out;
}

struct Row {
  std::string function, fixed, tests;  // `fixed` is all but the tests
};
Row row_of(const Entry& e, const std::multimap<std::string, Declaration>& all, const std::vector<Case>& cases) {
  std::string name = name_here(e.function), signatures, header = "not yet", tests;
  for (auto [it, end] = all.equal_range(name); it != end; ++it) {
    signatures += (signatures.empty() ? "`" : "<br>`") + it->second.signature + "`";
    header = it->second.header;
  }
  if (!signatures.empty()) tests = tests_of(name, cases);
  std::string note = e.note.rfind("signature: ", 0) == 0 ? e.note.substr(11) : e.note;
  return {e.function,
          "| " + e.number + " | " + e.function + " | " + (signatures.empty() ? "-" : signatures) + " | " + header +
              " | " + note + " |",
          tests};
}

std::string default_of(const std::string& text) {
  static const std::map<std::string, std::string> kPython = {{"False", "false"}, {"True", "true"}, {"''", "\"\""}};
  if (auto it = kPython.find(text); it != kPython.end()) return it->second;
  if (text.size() > 2 && text[0] == '\'') return '"' + text.substr(1, text.size() - 2) + '"';
  if (!text.empty() && text[0] == '(') {  // a tuple
    std::string list = text;
    for (char& c : list) c = c == '(' ? '{' : c == ')' ? '}' : c;
    return list;
  }
  char* end = nullptr;
  double v = std::strtod(text.c_str(), &end);
  return !text.empty() && !*end ? std::to_string(v) : text;
}
/// "x=None" or "const Operand& x = None" as "x=None".
std::string argument_of(const std::string& text) {
  std::size_t eq = text.find('=');
  std::string name = trim(text.substr(0, eq));
  name = name.substr(name.find_last_of(" &*") + 1);
  while (!name.empty() && name.back() == '_') name.pop_back();
  return eq == std::string::npos ? name : name + "=" + default_of(trim(text.substr(eq + 1)));
}
std::string argument_list(const std::string& parameters) {
  std::string out;
  for (const std::string& a : arguments(parameters)) out += (out.empty() ? "" : ", ") + argument_of(a);
  return out;
}

constexpr const char* kHead = R"(# The functions of Keras' backend, and where they are here

`K` is `kassette::backend`. Functions are numbered for reference.
Names, order and defaults of arguments are Keras', except where a note says so. Two tests are named for each function. In addition,
every function of tensors has a line in tests/op_samples.h, and the sweeps (tests/sweeps) call it with every dtype, with invalid
input, on placeholders of every size and, for gradients, compare it with central differences.

This page is generated by `kassette_tests "[.parity_page]"` from tests/data/parity.tsv and the headers; a test checks that it is up
to date.
)";
constexpr const char* kColumns = R"(
| number | function | here | header | differences from Keras | tested by |
| --- | --- | --- | --- | --- | --- |
)";

}  // namespace

// A line keeps the tests that it names while they call the function: a page that followed every new test would conflict
// in every merge.
TEST_CASE("the parity page is written", "[.parity_page]") {
  auto all = declared();
  auto cases = test_cases();
  std::map<std::string, std::string> bodies, before;
  for (const Case& c : cases) bodies[c.name] += c.body;
  if (fs::exists(kPage))
    for (const std::string& line : split(text_of(kPage), '\n')) {
      Strings cells = split(line, '|');
      if (cells.size() > 3) before[trim(cells[2])] = line;
    }
  auto kept = [&](const Entry& e) {
    std::string out;
    for (const std::string& name : named_tests(before[e.function]))
      if (calls(bodies[name], name_here(e.function)) > 0) out += (out.empty() ? "*" : "; *") + name + "*";
    return out;
  };
  fs::create_directories(kPage.parent_path());
  std::ofstream out(kPage);
  out << kHead;
  std::string group;
  for (const Entry& e : index()) {
    if (e.group != group) out << "\n## " << (group = e.group) << '\n' << kColumns;
    Row row = row_of(e, all, cases);
    if (std::string tests = kept(e); !tests.empty()) row.tests = tests;
    out << row.fixed << ' ' << row.tests << (row.tests.empty() ? "|\n" : " |\n");
  }
}

TEST_CASE("the index has 153 functions once each, in order", "[parity]") {
  int next = 1;
  for (const Entry& e : index())
    if (e.number != "-") {
      CHECK(e.number == std::to_string(next));
      ++next;
    }
  CHECK(next == 154);
}

TEST_CASE("no function is in the parity index twice", "[parity]") {
  std::set<std::string> seen;
  for (const Entry& e : index())
    if (!seen.insert(e.function).second) FAIL_CHECK("K::" << e.function << " has two lines in tests/data/parity.tsv");
}

TEST_CASE("arguments have Keras' names, order and defaults, or the index says why not", "[parity]") {
  auto all = declared();
  for (const Entry& e : index()) {
    auto it = all.find(name_here(e.function));
    if (it == all.end() || e.keras.empty()) continue;
    std::size_t open = e.keras.find('(');
    std::string keras = argument_list(e.keras.substr(open + 1, e.keras.size() - open - 2)),
                here = argument_list(it->second.parameters);
    bool excused = e.note.rfind("signature: ", 0) == 0;
    if (keras != here && !excused)
      FAIL_CHECK("K::" << e.function << " takes (" << here << "), Keras (" << keras << ")");
  }
}

TEST_CASE("the parity page says what the headers say, and names tests that call the function", "[parity][serial]") {
  auto all = declared();
  auto cases = test_cases();
  std::map<std::string, std::string> bodies;
  for (const Case& c : cases) bodies[c.name] += c.body;
  std::string page = text_of(kPage);
  CHECK(page.rfind(kHead, 0) == 0);
  Strings lines = split(page, '\n');
  for (const Entry& e : index()) {
    Row row = row_of(e, all, cases);
    auto line =
        std::find_if(lines.begin(), lines.end(), [&](const std::string& l) { return l.rfind(row.fixed, 0) == 0; });
    if (line == lines.end()) {
      FAIL_CHECK("docs/parity.md is not up to date about K::"
                 << e.function << "; write it with kassette_tests \"[.parity_page]\": " << row.fixed);
      continue;
    }
    bool here = all.count(name_here(e.function)) > 0;
    Strings named = named_tests(*line);
    for (const std::string& test : named)
      if (calls(bodies[test], name_here(e.function)) == 0)
        FAIL_CHECK("docs/parity.md: no test \"" << test << "\" calls K::" << e.function << "; write the page again");
    if (here && named.empty()) FAIL_CHECK("no test calls K::" << e.function);
  }
}

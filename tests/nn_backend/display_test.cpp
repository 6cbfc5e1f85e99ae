// tests/nn_backend/display_test.cpp - the forms that a notebook is given of values.
#include <kassette/display.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace kassette;
namespace K = kassette::backend;

namespace {

struct Given {
  repl::Shown::Kind kind;
  std::int64_t id;
  std::map<std::string, std::string> forms;
};
std::vector<Given> given;

/// While it lives, values come to `given`.
struct Notebook {
  Notebook() {
    given.clear();
    repl::set_front_end([](const repl::Shown& shown) {
      Given g{shown.kind, shown.id, {}};
      for (int i = 0; i < shown.n_forms; ++i)
        g.forms[shown.forms[i].mime] = std::string(shown.forms[i].data, static_cast<std::size_t>(shown.forms[i].size));
      given.push_back(g);
    });
  }
  ~Notebook() { repl::set_front_end(nullptr); }
};

/// What stands between tags, with a blank for each run of tags.
std::string words(const std::string& html) {
  std::string out;
  bool tag = false;
  for (char c : html) {
    if (c == '<') tag = true;
    if (!tag) out += c;
    if (c == '>') tag = false;
    if (c == '>' && (out.empty() || out.back() != ' ')) out += ' ';
  }
  return out;
}
std::string html_of(const Tensor& x) {
  Notebook notebook;
  repl::show(x);
  return given.at(0).forms.count("text/html") ? words(given[0].forms.at("text/html")) : "";
}

struct Money {
  int cents;
};
std::vector<std::pair<std::string, std::string>> mime_bundle_repr(const Money& m) {
  return {{"text/html", "<b>" + std::to_string(m.cents) + "</b>"}};
}

}  // namespace

TEST_CASE("a matrix is a table with the numbers of its rows and columns", "[display]") {
  CHECK(html_of(K::constant({{1, 2.5, -3}, {0.1, 1e-10, 1e10}})) ==
        " 0 1 2 0 1 2.5 -3 1 0.1 1e-10 1e+10 (2, 3) float32 cpu ");
  CHECK(html_of(K::constant({1, 0}, "bool")) == " 0 1 True False (2,) bool cpu ");
  CHECK(html_of(K::constant({INFINITY, -INFINITY, NAN})) == " 0 1 2 inf -inf nan (3,) float32 cpu ");
  CHECK(html_of(K::constant({INT64_MAX}, "int64")) == " 0 9223372036854775807 (1,) int64 cpu ");
}

TEST_CASE("long axes of a table have gaps, and of many matrices the first and last are shown", "[display]") {
  CHECK(html_of(K::arange(20)) == " 0 1 2 3 4 5 … 14 15 16 17 18 19 0 1 2 3 4 5 … 14 15 16 17 18 19 (20,) int32 cpu ");
  const std::string rows = html_of(K::reshape(K::arange(40), {20, 2}));
  CHECK(rows.find(" 5 10 11 ⋮ ⋮ ⋮ 14 28 29 ") != std::string::npos);
  const std::string both = html_of(K::reshape(K::arange(400), {20, 20}));
  CHECK(both.find(" 5 100 101 102 103 104 105 … 114 115 116 117 118 119 ⋮ ⋮ ⋮ ⋮ ⋮ ⋮ ⋮ ⋱ ⋮ ⋮ ⋮ ⋮ ⋮ ⋮ 14 280 ") !=
        std::string::npos);
  const std::string matrices = html_of(K::reshape(K::arange(12), {3, 2, 2, 1}));
  CHECK(matrices ==
        " [0, 0, …] 0 0 0 1 1 [0, 1, …] 0 0 2 1 3 ⋮ [2, 0, …] 0 0 8 1 9 [2, 1, …] 0 0 10 1 11 (3, 2, 2, 1) int32 cpu ");
}

TEST_CASE("what has no elements to look at is text alone", "[display]") {
  CHECK(html_of(Tensor()).empty());
  CHECK(html_of(K::constant(3)).empty());
  CHECK(html_of(K::zeros({0, 3})).empty());
  CHECK(html_of(K::placeholder({2})).empty());
}

TEST_CASE("a type has the forms of mime_bundle_repr beside it", "[display]") {
  Notebook notebook;
  repl::display(Money{5});
  REQUIRE(given.size() == 1);
  CHECK(given[0].kind == repl::Shown::display);
  CHECK(given[0].forms.at("text/html") == "<b>5</b>");
}

TEST_CASE("Live replaces what it has shown, and so does a progress bar", "[display]") {
  Notebook notebook;
  repl::Live one, other;
  one.show(1);
  other.show(2);
  one.show(3);
  REQUIRE(given.size() == 3);
  CHECK(given[0].kind == repl::Shown::display);
  CHECK(given[1].kind == repl::Shown::display);
  CHECK(given[2].kind == repl::Shown::update);
  CHECK(given[0].id == given[2].id);
  CHECK(given[0].id != given[1].id);
  given.clear();
  for (int i : progress(3, "<steps>")) static_cast<void>(i);
  REQUIRE(given.size() >= 2);
  CHECK(given.front()
            .forms.at("text/html")
            .find("&lt;steps&gt;   0% <progress value=\"0\" max=\"3\"></progress> 0/3, ") != std::string::npos);
  CHECK(given.back().forms.at("text/html").find("100% <progress value=\"3\" max=\"3\"></progress> 3/3, ") !=
        std::string::npos);
  CHECK(given.back().forms.at("text/html").find("▏") == std::string::npos);
  CHECK(given.back().kind == repl::Shown::update);
  CHECK(given.back().id == given.front().id);
}

TEST_CASE("a description is a table with a histogram", "[display]") {
  Notebook notebook;
  repl::show(describe({0, 1, 2, 3}));
  const std::string html = given.at(0).forms.at("text/html");
  CHECK(words(html).find(" elements 4 min 0 max 3 mean 1.5 std 1.11803 zeros 1 NaN 0 inf 0 ") != std::string::npos);
  CHECK(html.find("<svg ") != std::string::npos);
}

TEST_CASE("a histogram has bars as high as there are elements in their part, and its ends below", "[display]") {
  Notebook notebook;
  repl::show(describe({-1, -1, -1, -1, 1, 7}));  // of 40 parts from -1 to 7 the first, the eleventh and the last
  const std::string html = given.at(0).forms.at("text/html");
  const auto bar = [](int x, const char* y, const char* height) {
    return "<rect x=\"" + std::to_string(x) + "\" y=\"" + y + "\" width=\"5\" height=\"" + height + "\"";
  };
  const std::string bars[] = {bar(0, "0.0", "60.0"), bar(6 * 10, "45.0", "15.0"), bar(6 * 39, "45.0", "15.0"),
                              bar(6, "60.0", "0.0")};
  for (const std::string& part : bars) CHECK(html.find(part) != std::string::npos);
  CHECK(html.find("height=\"15.0\"") != html.rfind("height=\"15.0\""));
  CHECK(words(html).find(" -1 7 ") != std::string::npos);
}

TEST_CASE("a tape is drawn from variables to the result, with each op behind its inputs", "[display]") {
  const Tensor w = K::variable({{1., 2.}, {3., 4.}, {5., 6.}});
  const Tensor loss = K::mean(K::square(K::dot({{1, 2, 3}}, w))) + 0.5;
  const Drawing tape = show_tape(loss);
  CHECK(std::string(tape.text().c_str()) ==
        "0: variable  (3, 2) float32\n1: constant  (1, 3) float32\n2: matmul of 1, 0  (1, 2) float32\n"
        "3: square of 2  (1, 2) float32\n4: mean of 3  () float32\n5: add 0.5 of 4  () float32  <- result");
  const std::string svg = tape.svg().c_str();
  CHECK(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0) == 0);
  for (const char* part : {">matmul<", ">(3, 2) float32<", ">add 0.5<"}) CHECK(svg.find(part) != std::string::npos);
  CHECK(show_tape(K::constant({1., 2.})).text().empty());
  const Tensor whole = K::placeholder({2}, K::None, "int64"),
               large = K::constant(9007199254740993, "int64");  // 2^53 + 1
  CHECK(std::string(show_tape(whole + large).text().c_str()).find("add 9007199254740993 of 0") != std::string::npos);
  Notebook notebook;
  repl::show(tape);
  CHECK(given.at(0).forms.at("image/svg+xml") == svg);
}

TEST_CASE("the tape of a gradient has the ops of the backward pass", "[display]") {
  const Tensor w = K::variable({1., 2.});
  const std::string tape = show_tape(K::gradients(K::sum(K::square(w)), {w})[0]).text().c_str();
  CHECK(tape.find("deferred") == std::string::npos);
  CHECK(tape.find("multiply 2.0 of ") != std::string::npos);  // d(w^2) = 2 w dy
}

TEST_CASE("a tape of many ops is cut", "[display]") {
  Tensor x = K::variable({1., 2.});
  for (int i = 0; i < 1000; ++i) x = K::sin(x);
  const std::string tape = show_tape(x).text().c_str();
  CHECK(tape.rfind("0: what came before\n1: sin of 0  (2,) float32\n", 0) == 0);
  CHECK(std::count(tape.begin(), tape.end(), '\n') == 200);
}

TEST_CASE("a function is drawn with its inputs, variables and updates", "[display]") {
  const Tensor w = K::variable({1., 2.}, DType(), "w"), in = K::placeholder({K::None, 2});
  const Function f = K::function({in}, {in * w}, {{w, w - 0.1}});
  const std::string program = show_program(f).text().c_str();
  CHECK(program.find("input  (None, 2) float32") != std::string::npos);
  CHECK(program.find(": w  (2,) float32") != std::string::npos);
  CHECK(program.find("(None, 2) float32  <- result") != std::string::npos);
  CHECK(program.find("subtract 0.1 of ") != std::string::npos);
  CHECK(program.find("new value of w") != std::string::npos);
  CHECK_THROWS_WITH(show_program(Function()), "show_program: an empty Function (an uninitialised variable?)");
}

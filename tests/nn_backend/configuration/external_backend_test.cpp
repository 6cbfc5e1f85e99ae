// tests/nn_backend/configuration/external_backend_test.cpp - external backends: what they get, what they may return,
// how they fail.
#include <kassette/backend.h>
#include <kassette/external_backend.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
namespace external = kassette::external;
using kassette::Shape;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::printed;

namespace {

// A backend of words: its tensors are strings, and every op writes down what it was asked for.
int alive = 0;
const external::TensorKind kWords{
    "words",
    [](void* handle) {
      --alive;
      delete static_cast<std::string*>(handle);
    },
    [](const void* handle) { return kassette::Text(*static_cast<const std::string*>(handle)); }};
Tensor word(const std::string& s) {
  ++alive;
  return external::wrap(new std::string(s), &kWords, {2, 3}, "float32");
}
std::string said(const external::Value& v) {
  if (v.kind() == external::Value::kTensor)
    if (void* handle = external::unwrap(v.as_tensor(), &kWords)) return *static_cast<std::string*>(handle);
  if (v.kind() == external::Value::kTensor) return printed(kassette::array_text(v.as_tensor()));
  if (v.kind() != external::Value::kList) return printed(v);
  std::string s = "[";
  for (int i = 0; i < v.size(); ++i) s += (i ? ", " : "") + said(v[i]);
  return s + "]";
}
external::Value write_down(const external::Call& call) {
  std::string s = std::string(call.name()) + "(";
  for (int i = 0; i < call.size(); ++i) s += (i ? ", " : "") + said(call[i]);
  return word(s + ")");
}
external::Value run_words(void*, const external::Value* args, int) {
  return external::Value::list({word("ran " + said(args[0]))});
}

struct Unknown {};
const external::Entry kEntries[] = {
    {"placeholder", write_down},
    {"variable", write_down},
    {"function",
     [](const external::Call&) -> external::Value {
       return external::Code{run_words, nullptr, nullptr};
     }},
    {"relu", write_down},
    {"sum", write_down},
    {"add", write_down},
    {"index", write_down},
    {"dropout", write_down},
    {"int_shape",
     [](const external::Call&) {
       return external::Value::list({2, K::None});
     }},
    {"ndim", [](const external::Call&) { return external::Value(2); }},
    {"dtype", [](const external::Call&) { return external::Value("float64"); }},
    {"is_tensor", [](const external::Call&) { return external::Value(true); }},
    {"gradients",
     [](const external::Call& call) {
       return external::Value::list({call[0], K::None});
     }},
    {"foldl",
     [](const external::Call& call) {
       return call[0]({call[1], 2.5});
     }},
    {"foldr",
     [](const external::Call& call) {
       return call[0]({call[1], call[1]});
     }},
    {"softmax", [](const external::Call& call) { return call.built_in(); }},
    {"exp", [](const external::Call&) -> external::Value { return 1.5; }},
    {"log", [](const external::Call&) -> external::Value { throw std::runtime_error("it is\nbroken"); }},
    {"sin", [](const external::Call&) -> external::Value { throw Unknown(); }},
    {"cos", [](const external::Call&) -> external::Value { throw kassette::ValueError("cos: no such luck"); }},
    {"tanh", [](const external::Call& call) -> external::Value { return K::tanh(call[0].as_tensor()); }},
    {"floatx", [](const external::Call&) { return external::Value("float16"); }},
    {"greet", [](const external::Call& call) { return external::Value(call.size()); }},
};
const external::Table* words() {
  static const external::Table table{external::kAbi, sizeof kEntries / sizeof *kEntries, kEntries};
  return &table;
}

/// Uses a registered backend for a while.
struct Using : kassette::test::SettingsScope {
  explicit Using(const char* name) {
    setenv("KERAS_BACKEND", name, 1);
    K::reload();
  }
};
struct Words : Using {
  Words() : Using((external::register_backend("my.words", words), "my.words")) {}
};

}  // namespace

TEST_CASE("K functions and operators run on a registered backend", "[external]") {
  Words backend;
  CHECK(K::backend() == "my.words");
  Tensor x = K::variable({1, 2.5}, "float32", "w");
  CHECK(said(x) == "variable([1, 2.5], 'float32', 'w', None)");
  CHECK(said(K::relu(x, 0.5)) == "relu(variable([1, 2.5], 'float32', 'w', None), 0.5, None, 0)");
  Tensor p = K::placeholder({2, K::None});
  CHECK(said(p) == "placeholder([2, None], None, None, False, None)");
  CHECK(said(K::sum(p, {0, -1}, true)) == "sum(" + said(p) + ", [0, -1], True)");
  Tensor w = word("w");
  CHECK(said(w + 1) == "add(w, 1)");
  CHECK(said(2.5 + w) == "add(2.5, w)");
  CHECK(said(w[0]) == "index(w, [0])");
  CHECK(said(w(kassette::ellipsis, kassette::slice(1, K::None, 2), K::None)) == "index(w, ['...', '1::2', 'newaxis'])");
  CHECK(said(K::dropout(w, 0.5, {K::None, w})) == "dropout(w, 0.5, [None, w], None)");
  CHECK(said(K::relu(std::vector<double>{1, 2})) == "relu([1. 2.], 0, None, 0)");
  CHECK(K::int_shape(w)[0] == 2);
  CHECK(K::int_shape(w)[1] == K::None);
  CHECK(K::ndim(w) == 2);
  CHECK(K::dtype(w) == "float64");
  CHECK(K::is_tensor(w));
  Tensors g = K::gradients(w, {w, w});
  CHECK((said(g[0]) == "w" && !g[1].defined()));
}

TEST_CASE("functions and callables of a backend are called", "[external]") {
  Words backend;
  Tensor w = word("w");
  auto f = K::function({w}, {w});
  CHECK(printed(f) == "Function(of an external backend)");
  Tensors out = f({w, w});
  REQUIRE(out.size() == 1);
  CHECK(said(out[0]) == "ran [w, w]");
  // Inside the user's callable K functions are the backend's again.
  Tensor folded = K::foldr([](const Tensor& a, const Tensor&) { return K::relu(a); }, w);
  CHECK(said(folded) == "relu(w, 0, None, 0)");
  CHECK_THROWS_AS(K::foldr([](const Tensor&, const Tensor&) -> Tensor { throw Unknown(); }, w), Unknown);
  CHECK_THROWS_WITH(K::foldl([](const Tensor& a, const Tensor&) { return a; }, w),
                    "external: a float; it must be a tensor");
}

TEST_CASE("inside a call of a backend K functions are our own", "[external]") {
  Words backend;
  Tensor x;
  {
    external::BuiltInScope ours;
    x = K::constant({0.0, 0.0});
  }
  CHECK(K::tanh(x).to_vector<float>()[0] == 0);
  CHECK(K::softmax(x).to_vector<float>()[1] == 0.5f);
}

TEST_CASE("what a backend lacks names function and backend", "[external]") {
  Words backend;
  CHECK_THROWS_AS(K::square(word("w")), kassette::NotImplementedError);
  CHECK_THROWS_WITH(K::square(word("w")), "square: the backend 'my.words' does not provide it");
  CHECK_THROWS_WITH(word("w") - 1, "subtract: the backend 'my.words' does not provide it");
  CHECK(external::call("greet", {1, "two", K::None}).as_int() == 3);
  CHECK_THROWS_WITH(external::call("leave"), "leave: the backend 'my.words' does not provide it");
}

TEST_CASE("what a backend throws or answers wrongly is one line", "[external]") {
  Words backend;
  Tensor w = word("w");
  CHECK_THROWS_WITH(K::log(w), "log: the backend 'my.words' failed: it is");
  CHECK_THROWS_AS(K::log(w), kassette::RuntimeError);
  CHECK_THROWS_WITH(K::sin(w), "sin: the backend 'my.words' threw something that is not a std::exception");
  CHECK_THROWS_WITH(K::cos(w), "cos: no such luck");
  CHECK_THROWS_AS(K::cos(w), kassette::ValueError);
  CHECK_THROWS_WITH(K::exp(w), "exp: the backend 'my.words' returned 1.5: a float; it must be a tensor");
  CHECK(said(K::relu(w)) == "relu(w, 0, None, 0)");
}

TEST_CASE("the configuration is never a backend's", "[external]") {
  Words backend;
  CHECK(K::floatx() == "float32");
  CHECK(K::normalize_data_format("CHANNELS_first") == "channels_first");
}

TEST_CASE("a backend's tensors are opaque to the built-in backend, print, and are freed", "[external]") {
  {
    Tensor w = word("a word"), copy = w;
    CHECK(printed(w) == "a word (2, 3) float32 words");
    CHECK(w.shape() == Shape{2, 3});
    std::string refused =
        ": a tensor (2, 3) of the backend 'words' is opaque to the built-in backend; use that backend's get_value or eval";
    CHECK_THROWS_WITH(K::square(w), "square" + refused);
    CHECK_THROWS_WITH(w + K::ones({2, 3}), "add" + refused);
    CHECK_THROWS_WITH(K::concatenate({w, w}), "concatenate" + refused);
    CHECK_THROWS_WITH(w.data<float>(), "data" + refused);
    CHECK_THROWS_WITH(w.to_vector<float>(), "to_vector" + refused);
    CHECK_THROWS_WITH(w.detach(), "detach" + refused);
    CHECK(external::unwrap(K::ones({2}), &kWords) == nullptr);
  }
  CHECK(alive == 0);
}

TEST_CASE("a backend without its required entries names all of them", "[external]") {
  external::register_backend("half", []() -> const external::Table* {
    static const external::Entry entries[] = {{"variable", write_down}};
    static const external::Table table{external::kAbi, 1, entries};
    return &table;
  });
  kassette::test::SettingsScope restore;
  setenv("KERAS_BACKEND", "half", 1);
  CHECK_THROWS_AS(K::reload(), kassette::ValueError);
  CHECK_THROWS_WITH(
      K::zeros({2}),
      "Invalid backend. Missing required entry : placeholder, function (backend half, registered by the program)");
  unsetenv("KERAS_BACKEND");
  K::reload();
  CHECK(K::zeros({2}).shape() == Shape{2});
}

TEST_CASE("a factory that is broken is one line", "[external]") {
  external::register_backend("throws", []() -> const external::Table* { throw std::runtime_error("no\nlicence"); });
  external::register_backend("nothing", []() -> const external::Table* { return nullptr; });
  external::register_backend("old", []() -> const external::Table* {
    static const external::Table table{external::kAbi + 1, 0, nullptr};
    return &table;
  });
  kassette::test::SettingsScope restore;
  auto why = [](const char* name) {
    setenv("KERAS_BACKEND", name, 1);
    std::string message;
    try {
      K::reload();
    } catch (const kassette::ValueError& e) {
      message = e.what();
    }
    return message;
  };
  CHECK(why("throws") ==
        "Unable to import backend : throws: registered by the program: kassette_external_backend threw: no");
  CHECK(why("nothing") ==
        "Unable to import backend : nothing: registered by the program: kassette_external_backend returned nothing");
  CHECK(
      why("old") ==
      "Unable to import backend : old: registered by the program is built for version 4 of <kassette/external_backend.h>, this kassette has 3; build it anew");
  unsetenv("KERAS_BACKEND");
  K::reload();
  for (std::string name : {"", "tensorflow", "kassette", "kassette.keras", "theano", "cntk"})
    CHECK_THROWS_WITH(external::register_backend(name, words), "register_backend: name '" + name + "' is taken");
}

TEST_CASE("boxed values are what they were made from", "[external]") {
  using external::Value;
  CHECK(printed(Value()) == "None");
  CHECK(printed(Value::list({true, 2, 2.5, "x", K::None, Value::list({})})) == "[True, 2, 2.5, 'x', None, []]");
  CHECK(Value(3).as_float() == 3);
  CHECK(Value(Tensor()).is_none());
  CHECK_THROWS_WITH(Value("x").as_int(), "external: text; it must be an int");
  CHECK_THROWS_WITH(Value::list({1})[1], "external: element 1 of a list of 1");
  Value a = Value::list({"deep"}), b = a;
  a = 1;
  CHECK(printed(b) == "['deep']");
}

TEST_CASE("a boxed value of another kind than the one that is asked for is a TypeError that names both", "[external]") {
  using external::Value;
  const Value code = external::Code{run_words, nullptr, nullptr};
  auto refused = [](const char* words, auto&& f) {
    CHECK(kassette::test::error_of<kassette::TypeError>(f) == std::string("external: ") + words);
  };
  refused("None; it must be a bool", [] { Value().as_bool(); });
  refused("a float; it must be an int", [] { Value(2.5).as_int(); });
  refused("a list; it must be a float", [] { Value::list({1}).as_float(); });
  refused("an int; it must be text", [] { Value(1).as_text(); });
  refused("a bool; it must be a tensor", [] { Value(true).as_tensor(); });
  refused("code; it must be a list of tensors", [&] { code.as_tensors(); });
  refused("an int; it must be a tensor", [] { Value::list({1}).as_tensors(); });
  refused("a tensor; it must be a list", [] { Value(K::ones({2})).size(); });
  refused("text; it must be a list", [] { Value("x")[0]; });
  refused("a list; it must be code", [] { Value::list({1})({1}); });
  CHECK_THROWS_WITH(Value::list({1, 2})[-1], "external: element -1 of a list of 2");
}

TEST_CASE("a boxed value is read as what it can stand for, and prints as what it is", "[external]") {
  using external::Value;
  CHECK(Value(2).as_bool());
  CHECK_FALSE(Value(false).as_bool());
  CHECK(Value(true).as_int() == 1);
  CHECK(Value(true).as_float() == 1);
  CHECK(Value(2.5).as_float() == 2.5);
  CHECK(Value().as_text() == nullptr);
  CHECK_FALSE(Value().as_tensor().defined());
  CHECK(Value(K::ones({2})).as_tensors().size() == 1);
  CHECK(Value(Tensors{K::ones({2}), Tensor()}).size() == 2);
  CHECK(printed(Value(K::ones({2}))) == printed(K::ones({2})));
  CHECK(printed(Value(external::Code{run_words, nullptr, nullptr})) == "<code>");
}

// tests/nn_backend/dispatch_test.cpp - every K function and operator is passed on to an external backend if one is in
// use.
#include <kassette/backend.h>
#include <kassette/external_backend.h>

#include <cmath>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ops/engine/dispatch.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sources.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using Texts = std::vector<std::string>;
Texts reached, boxed;

/// A backend that has a function of every name, notes which was called and with which arguments, and returns nothing.
struct Recorder {
  Recorder() {
    reached.clear();
    boxed.clear();
    backend.name = "recorder";
    backend.any = [](const external::Call& call) {
      reached.push_back(call.name());
      for (int i = 0; i < call.size(); ++i) boxed.push_back(printed(call[i]));
      return external::Value();
    };
    K::floatx();
    use_backend(&backend);
  }
  ~Recorder() { use_backend(nullptr); }
  ExternalBackend backend;
};

/// Argument number i of a call, of each type, and what the backend gets for it: neighbours are never alike.
template <class T>
struct Given;

template <class T>
struct GivenNumber {
  static T value(int i) { return T(100 + i); }
  static Texts texts(int i) { return {std::to_string(100 + i)}; }
};
template <>
struct Given<int> : GivenNumber<int> {};
template <>
struct Given<std::int64_t> : GivenNumber<std::int64_t> {};
template <>
struct Given<Scalar> : GivenNumber<Scalar> {};
template <>
struct Given<bool> {
  static bool value(int i) { return i % 2; }
  static Texts texts(int i) { return {i % 2 ? "True" : "False"}; }
};
template <class T>
struct GivenFraction {
  static T value(int i) { return T(i + 0.5); }
  static Texts texts(int i) { return {std::to_string(i) + ".5"}; }
};
template <>
struct Given<double> : GivenFraction<double> {};
template <>
struct Given<Operand> : GivenFraction<Operand> {};
template <>
struct Given<Branch> : GivenFraction<Branch> {};
template <>
struct Given<Tensor> {
  static Tensor value(int i) {
    external::BuiltInScope ours;
    return K::constant(1000 + i, int32);
  }
  static Texts texts(int i) { return {std::to_string(1000 + i) + " () int32 cpu"}; }
};
template <>
struct Given<Tensors> {
  static Tensors value(int i) { return {Given<Tensor>::value(2 * i), Given<Tensor>::value(2 * i + 1)}; }
  static Texts texts(int i) {
    return {"[" + Given<Tensor>::texts(2 * i)[0] + ", " + Given<Tensor>::texts(2 * i + 1)[0] + "]"};
  }
};
template <>
struct Given<DType> {
  static inline const std::string kNames[] = {"float64", "int32", "uint8", "float16", "int64", "bool", "int8"};
  static DType value(int i) { return DType(kNames[i % 7]); }
  static Texts texts(int i) { return {"'" + kNames[i % 7] + "'"}; }
};
template <>
struct Given<K::DTypes> {
  static K::DTypes value(int i) {
    static DType held[2];  // a DTypes borrows its list
    for (int k = 0; k < 2; ++k) held[k] = Given<DType>::value(i + k);
    return {held, 2};
  }
  static Texts texts(int i) { return {"[" + Given<DType>::texts(i)[0] + ", " + Given<DType>::texts(i + 1)[0] + "]"}; }
};
template <>
struct Given<Name> {
  static inline const std::string kNames[] = {"zero", "one", "two", "three", "four", "five", "six"};
  static Name value(int i) { return kNames[i]; }
  static Texts texts(int i) { return {"'" + kNames[i] + "'"}; }
};
template <>
struct Given<Dims> {
  static Dims value(int i) { return {20 + i, K::None, 3}; }
  static Texts texts(int i) { return {"[" + std::to_string(20 + i) + ", None, 3]"}; }
};
template <>
struct Given<Axes> {
  static Axes value(int i) { return {-1, i}; }
  static Texts texts(int i) { return {"[-1, " + std::to_string(i) + "]"}; }
};
template <>
struct Given<K::Updates> {
  static K::Updates value(int i) {
    return {{Given<Tensor>::value(3 * i), Given<Tensor>::value(3 * i + 1)}, Given<Tensor>::value(3 * i + 2)};
  }
  static Texts texts(int i) {
    auto text = [&](int k) { return Given<Tensor>::texts(3 * i + k)[0]; };
    return {"[[" + text(0) + ", " + text(1) + "], " + text(2) + "]"};
  }
};
template <>
struct Given<K::FunctionOptions> {
  static K::FunctionOptions value(int i) {
    return {.updates = Given<K::Updates>::value(i),
            .fetches = Given<Tensors>::value(i + 10),
            .feed_dict = Given<K::Updates>::value(i + 20)};
  }
  static Texts texts(int i) {
    return {Given<K::Updates>::texts(i)[0], Given<Tensors>::texts(i + 10)[0], Given<K::Updates>::texts(i + 20)[0]};
  }
};
template <>
struct Given<std::initializer_list<K::ValuePair>> {
  static std::initializer_list<K::ValuePair> value(int) {
    static const std::initializer_list<K::ValuePair> pairs{{Given<Tensor>::value(0), 0.5},
                                                           {Given<Tensor>::value(1), 1.5}};
    return pairs;
  }
  static Texts texts(int) {
    return {"[[" + Given<Tensor>::texts(0)[0] + ", 0.5], [" + Given<Tensor>::texts(1)[0] + ", 1.5]]"};
  }
};
struct GivenCode {
  static Texts texts(int) { return {"<code>"}; }
};
template <class R, class... A>
struct Given<KeptCallable<R(A...)>> : GivenCode {
  static KeptCallable<R(A...)> value(int) {
    return [](A...) { return R(); };
  }
};
template <class R, class... A>
struct Given<K::ElementFn<R(A...)>> : GivenCode {
  static R never(const Tensors&, A...) { return R(); }
  static K::ElementFn<R(A...)> value(int) { return never; }
};
template <class R, class... A>
struct Given<Callable<R(A...)>> : GivenCode {
  static R never(A...) { return R(); }
  static Callable<R(A...)> value(int) { return Callable<R(A...)>(never); }
};

struct Reach {
  const char* name;
  std::function<void()> call;
  Texts texts;  // of all arguments
};
template <class R, class... A, std::size_t... I>
Reach reach_each(const char* name, R (*f)(A...), std::index_sequence<I...>) {
  Texts all;
  for (const Texts& one : std::initializer_list<Texts>{Given<std::decay_t<A>>::texts(static_cast<int>(I))...})
    all.insert(all.end(), one.begin(), one.end());
  return {name, [f] { static_cast<void>(f(Given<std::decay_t<A>>::value(static_cast<int>(I))...)); }, all};
}
template <class R, class... A>
Reach reach(const char* name, R (*f)(A...)) {
  return reach_each(name, f, std::index_sequence_for<A...>());
}
#define REACH(f) reach(#f, &K::f)
using DrawOfTwo = Tensor (*)(const Dims&, const Operand&, const Operand&, DType, Scalar);

// clang-format off
const std::vector<Reach>& functions() {
  static const std::vector<Reach> list{
#include "k_functions.inc"  // those that the headers declare once; tests/CMakeLists.txt writes it
      reach("batch_set_value", static_cast<void (*)(std::initializer_list<K::ValuePair>)>(&K::batch_set_value)),
      // Two lists are pairs to a backend, as Keras has them.
      {"batch_set_value", [] { K::batch_set_value(Given<Tensors>::value(0), Given<Tensors>::value(1)); },
       {"[[1000 () int32 cpu, 1002 () int32 cpu], [1001 () int32 cpu, 1003 () int32 cpu]]"}},
      reach("function", static_cast<Function (*)(const Tensors&, const Tensors&, const K::Updates&)>(&K::function)),
      reach("function", static_cast<Function (*)(const Tensors&, const Tensors&, const K::FunctionOptions&)>(&K::function)),
      reach("function", static_cast<Function (*)(kassette::Callable<Tensors(const Tensors&)>, const Tensors&)>(&K::function)),
      reach("gradients", static_cast<Tensors (*)(const Tensor&, const Tensors&)>(&K::gradients)),
      reach("gradients", static_cast<Tensors (*)(Tensor&&, const Tensors&)>(&K::gradients)),
      reach("stop_gradient", static_cast<Tensor (*)(const Tensor&)>(&K::stop_gradient)),
      reach("stop_gradient", static_cast<Tensors (*)(const Tensors&)>(&K::stop_gradient)),
      reach("concatenate", static_cast<Tensor (*)(const Tensors&, int)>(&K::concatenate)), reach("stack", static_cast<Tensor (*)(const Tensors&, int)>(&K::stack)),
      reach("random_normal", static_cast<DrawOfTwo>(&K::random_normal)), reach("truncated_normal", static_cast<DrawOfTwo>(&K::truncated_normal)),
      reach("random_uniform", static_cast<DrawOfTwo>(&K::random_uniform)),
      reach("placeholder", static_cast<Tensor (*)(const Dims&, Scalar, DType, bool, Name)>(&K::placeholder)),
      reach("random_binomial", static_cast<Tensor (*)(const Dims&, const Operand&, DType, Scalar)>(&K::random_binomial)),
      reach("rnn", static_cast<K::RnnResult (*)(K::StepFn, const Tensors&, const Tensors&, bool, const Operand&, const Tensors&, bool, const Operand&, bool, bool)>(&K::rnn)),
      reach("map_fn", static_cast<Tensor (*)(K::ElementFn<Tensor()>, const Tensors&, Name, DType)>(&K::map_fn)),
      reach("map_fn", static_cast<Tensors (*)(K::ElementFn<Tensors()>, const Tensors&, const K::DTypes&)>(&K::map_fn)),
      reach("conv1d", &K::conv1d<0>), reach("conv2d", &K::conv2d<0>), reach("conv3d", &K::conv3d<0>),
      reach("conv2d_transpose", &K::conv2d_transpose<0>), reach("conv3d_transpose", &K::conv3d_transpose<0>),
      reach("depthwise_conv2d", &K::depthwise_conv2d<0>), reach("separable_conv1d", &K::separable_conv1d<0>),
      reach("separable_conv2d", &K::separable_conv2d<0>)};
  return list;
}
// clang-format on

/// What no backend overrides, the settings, and what only looks at our own library.
const std::set<std::string> kOurs{
    "backend",      "reload",         "epsilon",           "set_epsilon",           "floatx",
    "set_floatx",   "cast_to_floatx", "image_data_format", "set_image_data_format", "normalize_data_format",
    "constraint_of"};

}  // namespace

TEST_CASE("every K function reaches an external backend, with all its arguments in their order", "[external]") {
  std::set<std::string> seen;
  for (const Reach& f : functions()) {
    if (kOurs.count(f.name)) continue;
    Recorder recorder;
    try {
      f.call();
    } catch (const TypeError&) {  // nothing is no answer to some
    }
    INFO(f.name);
    CHECK(reached == std::vector<std::string>{f.name});
    CHECK(boxed == f.texts);
    seen.insert(f.name);
  }
  for (const std::string& name : declared_functions()) {
    INFO("K::" << name << " is overloaded: add a reach() of each to the list above");
    CHECK((seen.count(name) || kOurs.count(name)));
  }
}

TEST_CASE("every K function begins with the macro that dispatches", "[external]") {
  std::map<std::string, int> overloads;
  for (const auto& path : files_of("nn_backend", ".cpp")) {
    const std::string source = text_of(path);
    static const std::regex dispatch("KASSETTE_(DISPATCH\\(|ONE_OP\\(|ONE_OP_OF_TWO\\(|ROUTE\\(\")(\\w+)");
    for (std::sregex_iterator at(source.begin(), source.end(), dispatch), end; at != end; ++at) ++overloads[(*at)[2]];
  }
  for (const std::string& name : declared_functions()) {
    INFO("K::" << name << " does not begin with KASSETTE_DISPATCH(" << name << ", ...); see ops/engine/dispatch.h");
    CHECK(((overloads[name] > 0) != (kOurs.count(name) > 0)));
  }
}

TEST_CASE("operators and indexing reach an external backend", "[external]") {
  Tensor x = K::constant({1.0, 2.0});
  Recorder recorder;
  Tensor answers[]{
      x + 1.0, x - 1.0, x * 1.0, x / 1.0,   x % 1.0, floor_divide(x, 1.0), -x, x<1.0, x <= 1.0, x> 1.0, x >= 1.0, x & x,
      x | x,   ~x,      x[0],    x(0, all), x["::2"]};
  for (const Tensor& answer : answers) CHECK_FALSE(answer.defined());
  { auto after = K::control_dependencies(Tensors()); }
  CHECK(reached == std::vector<std::string>{"add", "subtract", "multiply", "divide", "remainder", "floor_divide",
                                            "negative", "less", "less_equal", "greater", "greater_equal", "logical_and",
                                            "logical_or", "logical_not", "index", "index", "index",
                                            "control_dependencies"});
}

namespace {

std::string asked;

/// A backend that writes down what it was asked for with which arguments, and answers nothing.
struct Writer {
  Writer() {
    asked.clear();
    backend.name = "writer";
    backend.any = [](const external::Call& call) {
      std::ostringstream os;
      os << call.name() << '(';
      for (int i = 0; i < call.size(); ++i) {
        os << (i ? ", " : "");
        if (call[i].kind() == external::Value::kCode) os << "code";
        else os << call[i];
      }
      asked = os.str() + ")";
      return external::Value();
    };
    K::floatx();
    use_backend(&backend);
  }
  ~Writer() { use_backend(nullptr); }
  ExternalBackend backend;
};

/// What the backend was asked for by f, whatever becomes of its answer.
template <class F>
std::string asked_by(F&& f) {
  asked.clear();
  try {
    f();
  } catch (const Error&) {
  }
  return asked;
}

}  // namespace

TEST_CASE("a backend gets every argument by its value, in Keras' order", "[external]") {
  Tensor x = K::constant(2.0, int32), y = K::constant(3, int32), z = K::constant(5, int32);
  Writer writer;
  const auto scalar = [](const Tensor& t) {
    std::ostringstream os;
    os << external::Value(t);
    return os.str();
  };
  const std::string xs = scalar(x), ys = scalar(y), zs = scalar(z);
  REQUIRE(xs != ys);
  // The updates of a function: pairs of a variable and its value, and of feed_dict likewise.
  CHECK(asked_by([&] {
          K::function({x}, {y}, {{x, z}, {y, x}});
        }) == "function([" + xs + "], [" + ys + "], [[" + xs + ", " + zs + "], [" + ys + ", " + xs + "]])");
  CHECK(asked_by([&] {
          K::function({x}, {y}, {.updates = {{z, y}}, .fetches = {x}, .feed_dict = {{y, z}}});
        }) ==
        "function([" + xs + "], [" + ys + "], [[" + zs + ", " + ys + "]], [" + xs + "], [[" + ys + ", " + zs + "]])");
  CHECK(asked_by([&] {
          K::function([](const Tensors& in) { return in; }, {x, y});
        }) == "function(code, [" + xs + ", " + ys + "])");
  // Numbers, bools, text, None, axes, shapes, dtypes: as they were given, and their defaults.
  CHECK(asked_by([&] { K::dropout(x, 0.25, {2, 3}, 7); }) == "dropout(" + xs + ", 0.25, [2, 3], 7)");
  CHECK(asked_by([&] { K::sum(x, {0, -1}, true); }) == "sum(" + xs + ", [0, -1], True)");
  CHECK(asked_by([&] { K::sum(x); }) == "sum(" + xs + ", None, False)");
  CHECK(asked_by([&] {
          K::random_uniform({2, 3}, -1.5, 4, "float64", 9);
        }) == "random_uniform([2, 3], -1.5, 4, 'float64', 9)");
  CHECK(asked_by([&] { K::reshape(x, {2, -1}); }) == "reshape(" + xs + ", [2, -1])");
  CHECK(asked_by([&] { K::cast(x, "int8"); }) == "cast(" + xs + ", 'int8')");
  CHECK(asked_by([&] { K::clip(x, 1, 2); }) == "clip(" + xs + ", 1, 2)");
  CHECK(asked_by([&] { K::batch_normalization(x, y, z, x, y, 1, 0.5); }) ==
        "batch_normalization(" + xs + ", " + ys + ", " + zs + ", " + xs + ", " + ys + ", 1, 0.5)");
  CHECK(asked_by([&] { K::concatenate({x, y}, 1); }) == "concatenate([" + xs + ", " + ys + "], 1)");
  CHECK(asked_by([&] { K::gradients(x, {y, z}); }) == "gradients(" + xs + ", [" + ys + ", " + zs + "])");
  CHECK(asked_by([&] { K::switch_(x, y, z); }) == "switch_(" + xs + ", " + ys + ", " + zs + ")");
  CHECK(asked_by([&] {
          K::switch_(
              x, [&] { return y; }, [&] { return z; });
        }) == "switch_(" + xs + ", code, code)");
  CHECK(asked_by([&] { x[y]; }) == "index(" + xs + ", [" + ys + "])");
  CHECK(asked_by([&] { K::dropout(x, 0.5, K::None, 0x8000000000000000u); }) ==
        "dropout(" + xs + ", 0.5, None, 9.22337e+18)");
  CHECK(asked_by([&] { K::in_train_phase(x, y, true); }) == "in_train_phase(" + xs + ", " + ys + ", True)");
  CHECK(asked_by([&] { K::categorical_crossentropy(x, y, true, 1); }) ==
        "categorical_crossentropy(" + xs + ", " + ys + ", True, 1)");
  CHECK(asked_by([&] { K::ctc_decode(x, y, false, 9, 2, true); }) ==
        "ctc_decode(" + xs + ", " + ys + ", False, 9, 2, True)");
  CHECK(asked_by([&] { K::update_add(x, y); }) == "update_add(" + xs + ", " + ys + ")");
  CHECK(asked_by([&] { K::set_value(x, 4); }) == "set_value(" + xs + ", 4)");
  CHECK(asked_by([&] { x - y; }) == "subtract(" + xs + ", " + ys + ")");
  CHECK(asked_by([&] { x / 2; }) == "divide(" + xs + ", 2)");
}

TEST_CASE("what a backend hands back to the built-in backend is computed of the same arguments in the same order",
          "[external]") {
  struct Passing {
    Passing() {
      backend.name = "passing";
      backend.any = [](const external::Call& call) { return call.built_in(); };
      K::floatx();
      use_backend(&backend);
    }
    ~Passing() { use_backend(nullptr); }
    ExternalBackend backend;
  };
  Tensor x = K::constant({7.5, -2.5, 9}), y = K::constant({2, 4, -5}), z = K::constant({1.5, 0.5, 3}),
         m = K::constant({{1, 2, 3}, {4, 5, 6}});
  // Every pair of arguments that could be swapped is of different values; expected are the numbers of NumPy.
  const auto check = [](const Tensor& got, const std::vector<double>& wanted) {
    auto v = K::eval(got).to_vector<double>();
    REQUIRE(static_cast<std::size_t>(v.size()) == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(v.data()[i] == Approx(wanted[i]).epsilon(1e-6));
  };
  Passing backend;
  check(x + y, {9.5, 1.5, 4});
  check(x - y, {5.5, -6.5, 14});
  check(x * y, {15, -10, -45});
  check(x / y, {3.75, -0.625, -1.8});
  check(x % y, {1.5, 1.5, -1});
  check(kassette::floor_divide(x, y), {3, -1, -2});
  check(-x, {-7.5, 2.5, -9});
  check(x < y, {0, 1, 0});
  check(x <= y, {0, 1, 0});
  check(x > y, {1, 0, 1});
  check(x >= y, {1, 0, 1});
  check(K::maximum(x, y), {7.5, 4, 9});
  check(K::minimum(x, y), {2, -2.5, -5});
  check(K::less(x, y), {0, 1, 0});
  check(K::greater_equal(x, y), {1, 0, 1});
  check(K::pow(z, 2), {2.25, 0.25, 9});
  check(K::clip(x, -1, 8), {7.5, -1, 8});
  check(K::switch_(K::constant(0), x, y), {2, 4, -5});
  check(K::in_train_phase(x, y, false), {2, 4, -5});
  check(K::in_test_phase(x, y, false), {7.5, -2.5, 9});
  check(K::dot(m, K::reshape(x, {3, 1})), {29.5, 71.5});
  check(K::sum(m, 0), {5, 7, 9});
  check(K::concatenate({x, y}, 0), {7.5, -2.5, 9, 2, 4, -5});
  check(K::gather(x, K::constant({2, 0}, int32)), {9, 7.5});
  check(K::repeat_elements(y, 2, 0), {2, 2, 4, 4, -5, -5});
  check(K::permute_dimensions(m, {1, 0}), {1, 4, 2, 5, 3, 6});
  check(x(slice(1, 3)), {-2.5, 9});
  check(K::foldl([](const Tensor& a, const Tensor& e) { return a - e; }, x, K::constant(1.0)), {-13});
  check(K::foldr([](const Tensor& a, const Tensor& e) { return a * 2.0 - e; }, x, K::constant(0.0)), {-38.5});
}

TEST_CASE("answers of several tensors come back from a backend in their order", "[external]") {
  struct Passing {
    Passing() {
      backend.name = "passing";
      backend.any = [](const external::Call& call) { return call.built_in(); };
      K::floatx();
      use_backend(&backend);
    }
    ~Passing() { use_backend(nullptr); }
    ExternalBackend backend;
  };
  Tensor x = K::constant({{1, 2}, {5, 10}}), sparse = K::to_sparse(K::constant({{0, 7}}));
  Passing backend;
  K::NormalizedBatch n = K::normalize_batch_in_training(x, None, None, {0}, 0.0);
  CHECK(n.mean.to_vector<double>()[0] == Approx(3));
  CHECK(n.variance.to_vector<double>()[0] == Approx(4));
  CHECK(n.normalized.to_vector<double>()[0] == Approx(-1));
  K::SparseParts parts = K::sparse_parts(sparse);
  CHECK(parts.indices.to_vector<double>()[1] == 1);
  CHECK(parts.values.to_vector<double>()[0] == 7);
  CHECK(parts.dense_shape.to_vector<double>()[1] == 2);
  K::CtcDecoded ctc = K::ctc_decode(K::constant({{{.75, .25}}}), K::constant({1}, int32));
  CHECK(ctc.decoded[0].to_vector<double>()[0] == 0);
  CHECK(ctc.log_prob.to_vector<double>()[0] == Approx(-std::log(.75)).epsilon(1e-5));
  K::RnnResult r = K::rnn(
      [](const Tensor& in, const Tensors& s) {
        return K::Step{in * 2, {s[0] + in}};
      },
      K::constant({{{1}, {2}}}), {K::constant({{10}})});
  CHECK(r.last_output.to_vector<double>()[0] == 4);
  CHECK(r.outputs.to_vector<double>()[0] == 2);
  CHECK(r.new_states[0].to_vector<double>()[0] == 13);
}

// tests/nn_backend/dispatch_test.cpp - every K function and operator goes to an external backend where one is in use.
#include <kassette/backend.h>
#include <kassette/engine.h>

#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ops/dispatch.h"
#include "tests/catch.h"
#include "tests/sources.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

std::vector<std::string> reached;

/// A backend that offers every name, notes which was asked for, and answers nothing.
struct Recorder {
  Recorder() {
    reached.clear();
    backend.name = "recorder";
    backend.any = [](const engine::Call& call) {
      reached.push_back(call.name());
      return engine::Value();
    };
    K::floatx();
    use_backend(&backend);
  }
  ~Recorder() { use_backend(nullptr); }
  ExternalBackend backend;
};

/// An argument of each type; the recorder looks at none.
template <class T>
struct Any {
  static T make() { return T(1); }
};
template <>
struct Any<Tensor> {
  static Tensor make() { return Tensor(); }
};
template <>
struct Any<Tensors> {
  static Tensors make() { return Tensors(); }
};
template <>
struct Any<DType> {
  static DType make() { return float32; }
};
template <>
struct Any<Name> {
  static Name make() { return "name"; }
};
template <>
struct Any<K::Updates> {
  static K::Updates make() { return {}; }
};
template <>
struct Any<K::FunctionOptions> {
  static K::FunctionOptions make() { return {}; }
};
template <>
struct Any<std::initializer_list<K::ValuePair>> {
  static std::initializer_list<K::ValuePair> make() { return {}; }
};
template <class F>
struct Any<KeptCallable<F>> {
  static KeptCallable<F> make() { return None; }
};
template <>
struct Any<Branch> {
  static Branch make() { return Branch(1.0); }
};
template <class R, class... A>
struct Any<K::ElementFn<R(A...)>> {
  static R never(const Tensors&, A...) { return R(); }
  static K::ElementFn<R(A...)> make() { return never; }
};
template <class R, class... A>
struct Any<Callable<R(A...)>> {
  static R never(A...) { return R(); }
  static Callable<R(A...)> make() { return Callable<R(A...)>(never); }
};

struct Reach {
  const char* name;
  std::function<void()> call;
};
template <class R, class... A>
Reach reach(const char* name, R (*f)(A...)) {
  return {name, [f] { static_cast<void>(f(Any<std::decay_t<A>>::make()...)); }};
}
#define REACH(f) reach(#f, &K::f)

const std::vector<Reach>& functions() {
  static const std::vector<Reach> list{
      REACH(get_uid), REACH(reset_uids), REACH(clear_session), REACH(learning_phase), REACH(set_learning_phase), REACH(manual_variable_initialization),
      REACH(variable), REACH(constant), REACH(placeholder), REACH(zeros), REACH(ones), REACH(eye), REACH(zeros_like),
      REACH(ones_like), REACH(identity), REACH(arange), REACH(random_uniform_variable), REACH(random_normal_variable),
      REACH(is_variable), REACH(is_placeholder), REACH(is_tensor), REACH(is_keras_tensor), REACH(mark_keras_tensor), REACH(shape), REACH(size),
      REACH(int_shape), REACH(get_variable_shape), REACH(ndim), REACH(dtype), REACH(cast), REACH(count_params),
      REACH(sparse_coo), REACH(sparse_csr), REACH(to_sparse), REACH(is_sparse), REACH(to_dense), REACH(sparse_parts),
      REACH(update), REACH(update_add), REACH(update_sub), REACH(moving_average_update),
      REACH(eval), REACH(get_value), REACH(batch_get_value), REACH(set_value),
      reach("batch_set_value", static_cast<void (*)(std::initializer_list<K::ValuePair>)>(&K::batch_set_value)),
      reach("batch_set_value", static_cast<void (*)(const Tensors&, const Tensors&)>(&K::batch_set_value)),
      REACH(dot), REACH(batch_dot), REACH(transpose), REACH(gather),
      REACH(max), REACH(min), REACH(sum), REACH(prod), REACH(mean), REACH(var), REACH(std), REACH(any), REACH(all),
      REACH(argmax), REACH(argmin), REACH(logsumexp), REACH(cumsum), REACH(cumprod),
      REACH(square), REACH(abs), REACH(sqrt), REACH(exp), REACH(log), REACH(round), REACH(sign), REACH(pow), REACH(clip),
      REACH(maximum), REACH(minimum), REACH(sin), REACH(cos),
      REACH(equal), REACH(not_equal), REACH(greater), REACH(greater_equal), REACH(less), REACH(less_equal),
      REACH(normalize_batch_in_training), REACH(batch_normalization), REACH(l2_normalize), REACH(concatenate), REACH(stack), REACH(reshape), REACH(permute_dimensions),
      REACH(repeat_elements), REACH(repeat), REACH(tile), REACH(flatten), REACH(batch_flatten), REACH(expand_dims),
      REACH(squeeze), REACH(reverse), REACH(slice), REACH(one_hot),
      reach("function", static_cast<Function (*)(const Tensors&, const Tensors&, const K::Updates&)>(&K::function)),
      reach("function", static_cast<Function (*)(const Tensors&, const Tensors&, const K::FunctionOptions&)>(&K::function)),
      reach("function", static_cast<Function (*)(kassette::Callable<Tensors(const Tensors&)>, const Tensors&)>(&K::function)),
      reach("gradients", static_cast<Tensors (*)(const Tensor&, const Tensors&)>(&K::gradients)),
      reach("gradients", static_cast<Tensors (*)(Tensor&&, const Tensors&)>(&K::gradients)), reach("stop_gradient", static_cast<Tensor (*)(const Tensor&)>(&K::stop_gradient)),
      reach("stop_gradient", static_cast<Tensors (*)(const Tensors&)>(&K::stop_gradient)),
      REACH(switch_), REACH(in_train_phase), REACH(in_test_phase), REACH(foldl), REACH(foldr), REACH(map_fn),
      reach("rnn", static_cast<K::RnnResult (*)(K::StepFn, const Tensors&, const Tensors&, bool, const Operand&, const Tensors&, bool, const Operand&, bool, bool)>(&K::rnn)),
      REACH(relu), REACH(elu), REACH(softmax), REACH(softplus), REACH(softsign), REACH(sigmoid), REACH(hard_sigmoid),
      REACH(tanh), REACH(categorical_crossentropy), REACH(sparse_categorical_crossentropy), REACH(binary_crossentropy),
      REACH(ctc_label_dense_to_sparse), REACH(ctc_batch_cost), REACH(ctc_decode),
      REACH(in_top_k), REACH(dropout), REACH(random_normal), REACH(random_uniform), REACH(random_binomial),
      REACH(truncated_normal), REACH(set_random_seed), REACH(print_tensor)};
  return list;
}

/// What no backend overrides (specification 0.4), and what only looks at our own library.
const std::set<std::string> kOurs{"backend", "reload", "epsilon", "set_epsilon", "floatx", "set_floatx", "cast_to_floatx",
                                  "image_data_format", "set_image_data_format", "normalize_data_format", "constraint_of"};

}  // namespace

TEST_CASE("every K function reaches an external backend", "[engine]") {
  std::set<std::string> seen;
  for (const Reach& f : functions()) {
    Recorder recorder;
    try {
      f.call();
    } catch (const TypeError&) {   // nothing is no answer to some
    }
    INFO(f.name);
    CHECK(reached == std::vector<std::string>{f.name});
    seen.insert(f.name);
  }
  for (const std::string& name : declared_functions()) {
    INFO("K::" << name << " is not tried: add REACH(" << name << ") to tests/nn_backend/dispatch_test.cpp");
    CHECK((seen.count(name) || kOurs.count(name)));
  }
}

TEST_CASE("every K function begins with the macro that dispatches", "[engine]") {
  std::map<std::string, int> overloads;
  for (const auto& path : files_of("nn_backend", ".cpp")) {
    const std::string source = text_of(path);
    static const std::regex dispatch("KASSETTE_(DISPATCH\\(|ROUTE\\(\")(\\w+)");
    for (std::sregex_iterator at(source.begin(), source.end(), dispatch), end; at != end; ++at) ++overloads[(*at)[2]];
  }
  for (const std::string& name : declared_functions()) {
    INFO("K::" << name << " does not begin with KASSETTE_DISPATCH(" << name << ", ...); see ops/dispatch.h");
    CHECK(((overloads[name] > 0) != (kOurs.count(name) > 0)));
  }
}

TEST_CASE("operators and indexing reach an external backend", "[engine]") {
  Tensor x = K::constant({1.0, 2.0});
  Recorder recorder;
  Tensor answers[]{x + 1.0, x - 1.0, x * 1.0, x / 1.0, x % 1.0, floor_divide(x, 1.0), -x, x < 1.0, x <= 1.0, x > 1.0, x >= 1.0,
                   x & x,   x | x,   ~x,      x[0],    x(0, all), x["::2"]};
  for (const Tensor& answer : answers) CHECK_FALSE(answer.defined());
  { auto after = K::control_dependencies(Tensors()); }
  CHECK(reached == std::vector<std::string>{"add", "subtract", "multiply", "divide", "remainder", "floor_divide", "negative", "less",
                                            "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not",
                                            "index", "index", "index", "control_dependencies"});
}

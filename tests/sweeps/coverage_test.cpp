// tests/sweeps/coverage_test.cpp - nothing is left out of the sweeps: every op and K function is in a sample, or listed
// here.
#include <kassette/testing.h>

#include <map>
#include <regex>
#include <set>

#include "ops/engine/op_registry.h"
#include "tests/catch.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

struct Exempt {
  const char *name, *why;
};
constexpr Exempt kFunctions[] = {
    {"backend", "configuration: config_test"},
    {"epsilon", "configuration: config_test"},
    {"set_epsilon", "configuration: config_test"},
    {"floatx", "configuration: config_test"},
    {"set_floatx", "configuration: config_test"},
    {"cast_to_floatx", "follows the configuration: config_test"},
    {"image_data_format", "configuration: config_test"},
    {"set_image_data_format", "configuration: config_test"},
    {"normalize_data_format", "configuration: config_test"},
    {"reload", "configuration: settings_test"},
    {"manual_variable_initialization", "configuration: config_test"},
    {"get_variable_shape", "gives no tensor: config_test"},
    {"get_uid", "configuration: config_test"},
    {"reset_uids", "configuration: config_test"},
    {"variable", "makes a leaf: creation_test, and in every sweep"},
    {"constant", "makes a value: creation_test, and in every sweep"},
    {"placeholder", "makes a leaf: creation_test, and in every sweep"},
    {"random_uniform_variable", "makes a leaf: random_test"},
    {"random_normal_variable", "makes a leaf: random_test"},
    {"set_random_seed", "configuration: random_test"},
    {"is_variable", "gives no tensor: introspection_test"},
    {"is_placeholder", "gives no tensor: introspection_test"},
    {"is_tensor", "gives no tensor: introspection_test"},
    {"is_keras_tensor", "gives no tensor: introspection_test"},
    {"mark_keras_tensor", "gives its argument: documents_test"},
    {"is_sparse", "gives no tensor: sparse_test"},
    {"sparse_csr", "takes numbers, not tensors of the tape: sparse_test"},
    {"sparse_parts", "gives what sparse_coo was given: sparse_test"},
    {"int_shape", "gives no tensor: introspection_test, and in every sweep"},
    {"ndim", "gives no tensor: introspection_test"},
    {"dtype", "gives no tensor: introspection_test"},
    {"count_params", "gives no tensor: introspection_test"},
    {"function", "what the sweeps are made of; tape_test"},
    {"gradients", "what the sweeps are made of; tape_test"},
    {"learning_phase", "a leaf: tape_test"},
    {"set_learning_phase", "configuration: tape_test"},
    {"clear_session", "configuration: tape_test"},
    {"update", "changes a variable: tape_test"},
    {"update_add", "changes a variable: tape_test"},
    {"update_sub", "changes a variable: tape_test"},
    {"moving_average_update", "changes a variable: tape_test"},
    {"eval", "gives values: in every sweep"},
    {"get_value", "gives values: tape_test"},
    {"batch_get_value", "gives values: tape_test"},
    {"set_value", "changes a variable: tape_test"},
    {"batch_set_value", "changes variables: tape_test"},
};
constexpr Exempt kNumpyFunctions[] = {
    {"seed", "configuration: numpy/random_test"},
    {"empty", "gives no value that is known: numpy/creation_test"},
    {"empty_like", "gives no value that is known: numpy/creation_test"},
    {"eye", "takes no tensor: numpy/creation_test"},
    {"identity", "takes no tensor: numpy/creation_test"},
    {"arange", "takes no tensor: numpy/creation_test"},
    {"indices", "takes no tensor: numpy/creation_test"},
    {"fromfunction", "takes no tensor: numpy/creation_test"},
    {"hanning", "takes no tensor: numpy/creation_test"},
    {"hamming", "takes no tensor: numpy/creation_test"},
    {"blackman", "takes no tensor: numpy/creation_test"},
    {"bartlett", "takes no tensor: numpy/creation_test"},
    {"kaiser", "takes no tensor: numpy/creation_test"},
    {"lu_factor", "no gradient, and pivots: numpy/linalg_test"},
    {"eig", "no gradient, and no order: numpy/linalg_test"},
    {"eigvals", "no gradient, and no order: numpy/linalg_test"},
    {"broadcast_shapes", "gives no tensor: numpy/dtypes_test"},
    {"can_cast", "gives no tensor: numpy/dtypes_test"},
    {"isdtype", "gives no tensor: numpy/dtypes_test"},
    {"promote_types", "gives no tensor: numpy/dtypes_test"},
    {"result_type", "gives no tensor: numpy/dtypes_test"},
    {"fftfreq", "takes no tensor: numpy/fft_test"},
    {"rfftfreq", "takes no tensor: numpy/fft_test"},
};
constexpr Exempt kOps[] = {
    {"custom_gradient", "a function of the user: transforms_test"},
    {"host_call", "a function of the user: transforms_test"},
    {"lu", "no gradient, and pivots: numpy/linalg_test"},
    {"eig", "no gradient, and no order: numpy/linalg_test"},
    {"to", "copies to another device: on one it is the tensor itself"},
    {"send", "goes to another rank: tests/ranks/messages_test.cpp"},
    {"all_reduce_start", "of D::gradients: tests/ranks/gradients_test.cpp"},
    {"all_reduce_wait", "of D::gradients: tests/ranks/gradients_test.cpp"},
    {"recv", "comes from another rank: tests/ranks/messages_test.cpp"},
};

template <std::size_t N>
bool exempt(const Exempt (&list)[N], const std::string& name) {
  for (const Exempt& e : list)
    if (name == e.name) return true;
  return false;
}

/// The ops that a sample and its first and second gradients record.
std::set<std::string> recorded_by(const Sample& s, const Shapes& shapes) {
  DType dtype = s.takes == Takes::bools ? bool_ : takes_integers(s) ? int32 : float32;
  Tensors xs;
  for (std::size_t i = 0; i < shapes.size(); ++i) xs.push_back(placeholder_for(s, i, shapes[i], dtype));
  Tensors all = call(s, xs), ys = all;
  if (s.order == Order::second)
    for (int order = 1; order <= 2; ++order) {
      Tensor loss;
      for (const Tensor& y : ys)
        if (y.defined() && y.dtype().is_float())
          loss = loss.defined() ? loss + K::sum(K::square(y)) : K::sum(K::square(y));
      if (!loss.defined()) break;
      ys = K::gradients(loss, xs);
      for (const Tensor& y : ys)
        if (y.defined()) all.push_back(y);
    }
  std::vector<std::string> names = ops_behind(all);
  return {names.begin(), names.end()};
}

}  // namespace

TEST_CASE("every op is on the tape of a sample or of its gradients, or is exempt with a reason", "[sweep][coverage]") {
  std::set<std::string> seen;
  for (const Sample& s : op_samples()) {
    auto cases = cases_of(s);
    std::set<std::string> ops = recorded_by(s, cases[0]);
    if (!s.traits.k && !s.traits.np && !s.traits.nn && !ops.count(s.name))
      FAIL_CHECK("the sample of op " << s.name << " does not record it");
    seen.insert(ops.begin(), ops.end());
  }
  for (const OpDef* op : all_ops())
    if (!seen.count(op->name) && !exempt(kOps, op->name))
      FAIL_CHECK("op " << op->name << " is in no sample: give it a line in tests/op_samples.h");
}

TEST_CASE("every K function is called by a sample, or is exempt with a reason", "[sweep][coverage]") {
  std::set<std::string> declared = declared_functions(), sampled;
  CHECK(declared.size() > 60);
  for (const Sample& s : op_samples())
    if (s.traits.k) sampled.insert(s.name);
  for (const std::string& name : declared)
    if (!sampled.count(name) && !exempt(kFunctions, name))
      FAIL_CHECK("K::" << name << " is in no sample: give it a line in tests/op_samples.h");
  for (const std::string& name : sampled)
    if (!declared.count(name)) FAIL_CHECK("the sample of K::" << name << ": no header of nn_backend declares it");
  for (const Exempt& e : kFunctions)
    if (!declared.count(e.name)) FAIL_CHECK("K::" << e.name << " is exempt, and no header of nn_backend declares it");
}

TEST_CASE("every function of np is called by a sample, or is exempt with a reason", "[sweep][coverage]") {
  const std::set<std::string> declared = declared_functions("numpy");
  CHECK(declared.size() > 60);
  std::set<std::string> sampled;
  for (const Sample& s : op_samples())
    if (s.traits.np) sampled.insert(s.name);
  for (const std::string& name : declared)
    if (!sampled.count(name) && !exempt(kNumpyFunctions, name))
      FAIL_CHECK("np::" << name << " is in no sample: give it a line in tests/np_samples.h");
  for (const std::string& name : sampled)
    if (!declared.count(name)) FAIL_CHECK("the sample of np::" << name << ": no header of np declares it");
  for (const Exempt& e : kNumpyFunctions)
    if (!declared.count(e.name)) FAIL_CHECK("np::" << e.name << " is exempt, and no header of np declares it");
}

TEST_CASE("every function of nn is called by a sample", "[sweep][coverage]") {
  const std::set<std::string> declared = declared_functions("nn");
  CHECK(declared.size() > 40);
  std::set<std::string> sampled;
  for (const Sample& s : op_samples())
    if (s.traits.nn) sampled.insert(s.name);
  for (const std::string& name : declared)
    if (!sampled.count(name)) FAIL_CHECK("nn::" << name << " is in no sample: give it a line in tests/nn_samples.h");
  for (const std::string& name : sampled)
    if (!declared.count(name)) FAIL_CHECK("the sample of nn::" << name << ": no header of nn declares it");
}

TEST_CASE("the list of ops has every op that is defined, and no name twice", "[sweep][coverage]") {
  std::map<std::string, int> names;
  for (const OpDef* op : all_ops()) ++names[op->name];
  for (const auto& [name, n] : names)
    if (n > 1) FAIL_CHECK(n << " ops are called " << name);
  std::string list = text_of(kSourceTree / "ops/engine/op_registry.cpp");
  std::regex definition("const OpDef ([a-z0-9_]+_op)\\s*[{=]");
  int defined = 0;
  for (const auto& path : files_of("ops", ".cpp")) {
    std::string text = text_of(path);
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it, ++defined)
      if (list.find("&" + (*it)[1].str()) == std::string::npos)
        FAIL_CHECK((*it)[1].str() << " of " << path.filename() << " is not in ops/engine/op_registry.cpp");
  }
  CHECK(defined > 100);
}

TEST_CASE("every sample that is replayed has two cases of the same ranks", "[sweep][coverage]") {
  for (const Sample& s : op_samples()) {
    std::size_t most = 0;
    for (const auto& group : cases_by_ranks(s)) most = std::max(most, group.size());
    if (most < 2 && !s.traits.sized)
      FAIL_CHECK(title(s, cases_of(s)[0], float64) << ": only one case of each signature");
  }
}

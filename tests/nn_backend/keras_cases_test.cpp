// tests/nn_backend/keras_cases_test.cpp - parity: values, gradients, errors and static shapes of tf.keras.backend,
// as recorded by tests/data/keras_cases/make.py, for plain tensor functions and for loops of them.
#include <kassette/testing.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "tests/catch.h"
#include "tests/nn_backend/case_runs.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// Where K differs from TensorFlow 2.15, and what K returns; each case is in the file, and is checked to differ.
const std::map<std::string, const char*> kNotes = {
    {"a_batch_dot_that_tensorflow_takes", "one axis of each operand, never that of the batch"},
    {"arithmetic_of_bool", "numbers only"},
    {"an_axis_twice", "an error"},
    {"argmax_over_all", "axis None is the flattened tensor; TensorFlow reduces axis 0"},
    {"batch_flatten_of_an_image", "the second size is None only if an inner one is"},
    {"binary_crossentropy_of_shapes_that_differ", "a ValueError; TensorFlow broadcasts"},
    {"concatenate_far_below_the_rank", "an error; TensorFlow takes the axis modulo the rank"},
    {"cumprod_gradient_with_zeros", "the exact formula"},
    {"epsilon_twice", "the logit form, which adds epsilon once"},
    {"equal_of_shapes_that_differ", "a ValueError; TensorFlow answers False"},
    {"logits_gradient_of_targets_that_do_not_sum_to_1", "the true derivative"},
    {"pow_gradient_at_infinity", "0 for the exponent of what is not above 0"},
    {"pow_gradient_of_a_fraction_of_a_negative", "0 for the exponent of what is not above 0"},
    {"pow_of_zero_to_zero", "the gradient of the base is 0"},
    {"relu_at_its_threshold", "x itself"},
    {"relu_gradient_at_six", "as any other max_value; TensorFlow has an op of its own for 6"},
    {"relu_of_infinity_below_a_threshold", "selected, not multiplied by 0"},
    {"sparse_axis_beyond_the_rank", "a ValueError; TensorFlow takes the axis modulo the rank"},
    {"std_gradient_of_equal_elements", "0 preferred"},
};

using OpCall = Tensor (*)(const Tensors& in, const KerasCase& c);

#define K_OF_ONE(f) \
  { \
#f, [](const Tensors& x, const KerasCase&) { return K::f(x[0]); } \
  }
#define K_OF_TWO(f) \
  { \
#f, [](const Tensors& x, const KerasCase& c) { return K::f(x[0], other(x, c)); } \
  }
#define K_REDUCTION(f) \
  { \
#f, [](const Tensors& x, const KerasCase& c) { return K::f(x[0], c.axes("axis"), c.integer("keepdims", 0) != 0); } \
  }
#define K_CALL(f, expression) \
  { \
#f, [](const Tensors& x, const KerasCase& c) -> Tensor { (void)c; return expression; } \
  }

/// A number of Python beside a tensor.
Operand weak(const Scalar& s) {
  Operand o(None);
  static_cast<Scalar&>(o) = s;
  return o;
}
/// The second tensor, or the number.
Operand other(const Tensors& x, const KerasCase& c) {
  if (x.size() > 1) return x[1];
  return weak(c.find("y")->scalar());
}
/// A bound of clip is an argument or one of the tensors.
Operand bound(const Tensors& x, const KerasCase& c, const char* name) {
  if (const Argument* a = c.find(name)) return weak(a->scalar());
  return x[std::string(name) == "min_value" ? 1 : x.size() - 1];
}
Scalar max_value(const KerasCase& c) { return c.find("max_value") ? c.find("max_value")->scalar() : Scalar(None); }
bool from_logits(const KerasCase& c) { return c.integer("from_logits", 0) != 0; }

Tensor call(const Tensors& in, const KerasCase& c);

/// Runs the body of a loop on the tensors that it begins with: those, and what its steps made.
Tensors run_body(const std::vector<BodyStep>& body, Tensors v) {
  for (const BodyStep& s : body) {
    Tensors in;
    for (int i : s.operands) in.push_back(v[i]);
    v.push_back(call(in, s.call));
  }
  return v;
}

/// The loops of loops.py: all that they give, flat.
class LoopCase {
 public:
  LoopCase(const Tensors& x, const KerasCase& c)
      : x_(x), case_(c), body_(parse_body(c.find("body")->text)), output_(c.integer("output", 0)) {
    if (int steps = c.integer("checkpoint", 0)) checkpoints_.emplace(steps);
  }

  Tensor rnn() const {
    std::vector<int> next = case_.find("new")->list();
    auto n_states = static_cast<std::int64_t>(next.size());
    bool masked = case_.integer("masked", 0) != 0;
    Tensors states, captured;
    for (std::int64_t i = 1; i < x_.size() - masked; ++i) (i <= n_states ? states : captured).push_back(x_[i]);
    auto step = [&](const Tensor& e, const Tensors& s) {
      Tensors v = run_body(body_, joined({e}, s, captured)), now;
      for (int i : next) now.push_back(v[i]);
      return K::Step{v[output_], now};
    };
    K::RnnResult r = K::rnn(step, x_[0], states,
                            {.go_backwards = case_.integer("backwards", 0) != 0,
                             .mask = masked ? x_[-1] : Tensor(),
                             .zero_output_for_mask = case_.integer("zeros", 0) != 0});
    return flat(joined({r.last_output, r.outputs}, r.new_states, {}));
  }
  Tensor fold() const {
    auto fn = [&](const Tensor& acc, const Tensor& e) {
      return run_body(body_, joined({e, acc}, from(2), {}))[output_];
    };
    return flat(case_.integer("right", 0) ? K::foldr(fn, x_[0], x_[1]) : K::foldl(fn, x_[0], x_[1]));
  }
  Tensor map() const {
    return flat(K::map_fn([&](const Tensor& e) { return run_body(body_, joined({e}, from(1), {}))[output_]; }, x_[0]));
  }

 private:
  Tensors from(std::int64_t first) const {
    Tensors rest;
    for (std::int64_t i = first; i < x_.size(); ++i) rest.push_back(x_[i]);
    return rest;
  }
  static Tensors joined(Tensors a, const Tensors& b, const Tensors& c) {
    for (const Tensors* more : {&b, &c})
      for (const Tensor& t : *more) a.push_back(t);
    return a;
  }
  static Tensor flat(const Tensors& all) {
    Tensors parts;
    for (const Tensor& t : all) parts.push_back(K::flatten(t));
    return K::concatenate(parts, 0);
  }

  const Tensors& x_;
  const KerasCase& case_;
  std::vector<BodyStep> body_;
  int output_;
  std::optional<K::CheckpointScope> checkpoints_;
};

const std::map<std::string, OpCall> kCalls = {
    K_OF_ONE(square),
    K_OF_ONE(abs),
    K_OF_ONE(sqrt),
    K_OF_ONE(exp),
    K_OF_ONE(log),
    K_OF_ONE(round),
    K_OF_ONE(sign),
    K_OF_ONE(sin),
    K_OF_ONE(cos),
    K_OF_ONE(softplus),
    K_OF_ONE(softsign),
    K_OF_ONE(sigmoid),
    K_OF_ONE(hard_sigmoid),
    K_OF_ONE(tanh),
    K_OF_ONE(transpose),
    K_OF_ONE(flatten),
    K_OF_ONE(batch_flatten),
    K_OF_TWO(pow),
    K_OF_TWO(maximum),
    K_OF_TWO(minimum),
    K_OF_TWO(equal),
    K_OF_TWO(not_equal),
    K_OF_TWO(greater),
    K_OF_TWO(greater_equal),
    K_OF_TWO(less),
    K_OF_TWO(less_equal),
    {"add", [](const Tensors& x, const KerasCase& c) { return x[0] + other(x, c); }},
    {"subtract", [](const Tensors& x, const KerasCase& c) { return x[0] - other(x, c); }},
    {"multiply", [](const Tensors& x, const KerasCase& c) { return x[0] * other(x, c); }},
    {"divide", [](const Tensors& x, const KerasCase& c) { return x[0] / other(x, c); }},
    {"floor_divide", [](const Tensors& x, const KerasCase& c) { return floor_divide(x[0], other(x, c)); }},
    {"remainder", [](const Tensors& x, const KerasCase& c) { return x[0] % other(x, c); }},
    {"and", [](const Tensors& x, const KerasCase& c) { return x[0] & other(x, c); }},
    {"or", [](const Tensors& x, const KerasCase& c) { return x[0] | other(x, c); }},
    {"negative", [](const Tensors& x, const KerasCase&) { return -x[0]; }},
    {"not", [](const Tensors& x, const KerasCase&) { return ~x[0]; }},
    K_REDUCTION(max),
    K_REDUCTION(min),
    K_REDUCTION(sum),
    K_REDUCTION(prod),
    K_REDUCTION(mean),
    K_REDUCTION(var),
    K_REDUCTION(std),
    K_REDUCTION(any),
    K_REDUCTION(all),
    K_REDUCTION(logsumexp),
    K_CALL(argmax, K::argmax(x[0], c.axes("axis", -1))),
    K_CALL(argmin, K::argmin(x[0], c.axes("axis", -1))),
    K_CALL(cumsum, K::cumsum(x[0], c.integer("axis", 0))),
    K_CALL(cumprod, K::cumprod(x[0], c.integer("axis", 0))),
    K_CALL(clip, K::clip(x[0], bound(x, c, "min_value"), bound(x, c, "max_value"))),
    K_CALL(relu, K::relu(x[0], c.real("alpha", 0), max_value(c), c.real("threshold", 0))),
    K_CALL(elu, K::elu(x[0], c.real("alpha", 1))),
    K_CALL(softmax, K::softmax(x[0], c.integer("axis", -1))),
    K_CALL(l2_normalize, K::l2_normalize(x[0], c.axes("axis"))),
    K_CALL(dot, K::dot(x[0], x[1])),
    K_CALL(batch_dot, K::batch_dot(x[0], x[1], c.axes("axes"))),
    K_CALL(gather, K::gather(x[0], x[1])),
    K_CALL(concatenate, K::concatenate(x, c.integer("axis", -1))),
    K_CALL(stack, K::stack(x, c.integer("axis", 0))),
    K_CALL(reshape, K::reshape(x[0], c.dims("shape"))),
    K_CALL(permute_dimensions, K::permute_dimensions(x[0], c.axes("pattern"))),
    K_CALL(repeat_elements, K::repeat_elements(x[0], c.integer("rep", 0), c.integer("axis", 0))),
    K_CALL(repeat, K::repeat(x[0], c.integer("n", 0))),
    K_CALL(tile, c.find("n")->is_list() ? K::tile(x[0], c.dims("n")) : K::tile(x[0], c.integer("n", 0))),
    K_CALL(expand_dims, K::expand_dims(x[0], c.integer("axis", -1))),
    K_CALL(squeeze, K::squeeze(x[0], c.integer("axis", 0))),
    K_CALL(reverse, K::reverse(x[0], c.axes("axes"))),
    K_CALL(slice, K::slice(x[0], c.dims("start"), c.dims("size"))),
    K_CALL(one_hot, K::one_hot(x[0], c.integer("num_classes", 0))),
    K_CALL(categorical_crossentropy, K::categorical_crossentropy(x[0], x[1], from_logits(c), c.integer("axis", -1))),
    K_CALL(sparse_categorical_crossentropy,
           K::sparse_categorical_crossentropy(x[0], x[1], from_logits(c), c.integer("axis", -1))),
    K_CALL(binary_crossentropy, K::binary_crossentropy(x[0], x[1], from_logits(c))),
    K_CALL(in_top_k, K::in_top_k(x[0], x[1], c.integer("k", 0))),
    K_CALL(rnn, LoopCase(x, c).rnn()),
    K_CALL(fold, LoopCase(x, c).fold()),
    K_CALL(map_fn, LoopCase(x, c).map()),
};

Tensor call(const Tensors& in, const KerasCase& c) { return kCalls.at(c.function)(in, c); }

std::string wrong_statically(const KerasCase& c) {
  try {
    Tensors in;
    for (const GivenTensor& t : c.in)
      in.push_back(K::placeholder(t.shape.rank() < 0 ? Dims(None) : Dims(t.shape), None, t.dtype));
    Tensor y = call(in, c);
    if (y.dtype() != c.out.dtype) return std::string("gives ") + y.dtype().name();
    return y.shape() == c.out.shape ? "" : "gives " + printed(y.shape());
  } catch (const std::exception& e) {
    return std::string("threw ") + e.what();
  }
}

}  // namespace

TEST_CASE("K gives the values, gradients and errors of TensorFlow's Keras", "[keras]") {
  CHECK(keras_cases().size() > 2000);
  for (const KerasCase& c : keras_cases()) {
    std::string said;
    if (c.is_static || !c.note.empty()) continue;
    if (std::string w = wrong_eagerly(c, call, &said); !w.empty()) FAIL_CHECK(c.line << "\n  " << w);
  }
}

TEST_CASE("K gives the same on placeholders, of known and of unknown sizes, and errors in the same words",
          "[keras][serial]") {
  for (const KerasCase& c : keras_cases()) {
    if (c.is_static || !c.note.empty()) continue;
    std::string eager, known, unknown;
    wrong_eagerly(c, call, &eager);
    if (std::string w = wrong_on_placeholders(c, call, Known::sizes, &known); !w.empty())
      FAIL_CHECK(c.line << "\n  sizes known: " << w);
    if (std::string w = wrong_on_placeholders(c, call, Known::rank, &unknown); !w.empty())
      FAIL_CHECK(c.line << "\n  sizes unknown: " << w);
    if (known != eager) FAIL_CHECK(c.line << "\n  eager says: " << eager << "\n  placeholders say: " << known);
  }
}

TEST_CASE("K gives the same on placeholders of unknown rank, or asks for the rank", "[keras]") {
  for (const KerasCase& c : keras_cases()) {
    if (c.is_static || !c.note.empty()) continue;
    std::string said, w = wrong_on_placeholders(c, call, Known::nothing, &said);
    bool asks = said.find("rank") != std::string::npos || said.find("(...)") != std::string::npos;
    if (!w.empty() && !asks) FAIL_CHECK(c.line << "\n  " << w);
  }
}

TEST_CASE("K infers the static shapes of TensorFlow's Keras", "[keras]") {
  for (const KerasCase& c : keras_cases()) {
    if (!c.is_static || !c.note.empty()) continue;
    if (std::string w = wrong_statically(c); !w.empty()) FAIL_CHECK(c.line << "\n  " << w);
  }
}

TEST_CASE("K differs from TensorFlow's Keras in what the notes list, and in every one of them", "[keras]") {
  std::set<std::string> seen;
  for (const KerasCase& c : keras_cases()) {
    std::string said;
    if (c.note.empty()) continue;
    seen.insert(c.note);
    if (!kNotes.count(c.note)) FAIL_CHECK("no note " << c.note << ": " << c.line);
    std::string w = c.is_static ? wrong_statically(c) : wrong_eagerly(c, call, &said);
    if (c.error.empty() && w.empty()) FAIL_CHECK("no difference: " << c.line);
    if (!c.error.empty() && !w.empty()) FAIL_CHECK(c.line << "\n  " << w);  // refused here, not there
  }
  for (const auto& [note, text] : kNotes)
    if (!seen.count(note)) FAIL_CHECK("no case for " << note << ": " << text);
}

// tests/nn_backend/program_cases_test.cpp - random programs, with nested loops, maps and branches: their values, first
// and second gradients are TensorFlow's (tests/data/keras_cases/programs.py), eagerly, with checkpoints, on
// placeholders and on variables.
#include <kassette/testing.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "tests/catch.h"
#include "tests/nn_backend/keras_cases.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

struct Program {
  std::vector<BodyStep> main;
  std::vector<std::vector<BodyStep>> bodies;
  std::vector<int> outputs;

  explicit Program(const KerasCase& c) : main(parse_body(c.find("body")->text)), outputs(c.find("outputs")->list()) {
    for (int i = 0; const Argument* a = c.find(("body" + std::to_string(i)).c_str()); ++i)
      bodies.push_back(parse_body(a->text));
  }
  const std::vector<BodyStep>& body(const KerasCase& step, const char* name = "body") const {
    return bodies[static_cast<std::size_t>(std::atoi(step.find(name)->text.c_str() + 1))];
  }
};

Tensors run(const Program& p, const std::vector<BodyStep>& body, Tensors v);

Tensors joined(Tensors a, const Tensors& b) {
  for (const Tensor& t : b) a.push_back(t);
  return a;
}
Tensors part(const Tensors& all, std::int64_t from, std::int64_t to) {
  Tensors t;
  for (std::int64_t i = from; i < to; ++i) t.push_back(all[i]);
  return t;
}
bool flag(const KerasCase& c, const char* name) { return c.integer(name, 0) != 0; }
DType dtype_of(const KerasCase& c) {
  const std::string& name = c.find("dtype")->text;
  return name == "float64" ? float64 : name == "int32" ? int32 : bool_;
}

Tensor fold(const Program& p, const Tensors& t, const KerasCase& c) {
  Tensors captured = part(t, flag(c, "alone") ? 1 : 2, t.size());
  auto fn = [&](const Tensor& acc, const Tensor& e) {
    return run(p, p.body(c), joined({e, acc}, captured))[c.integer("output", 0)];
  };
  if (flag(c, "alone")) return flag(c, "right") ? K::foldr(fn, t[0]) : K::foldl(fn, t[0]);
  return flag(c, "right") ? K::foldr(fn, t[0], t[1]) : K::foldl(fn, t[0], t[1]);
}

Tensor map(const Program& p, const Tensors& t, const KerasCase& c) {
  int nx = c.integer("nx", 1);
  Tensors captured = part(t, nx, t.size());
  return K::map_fn([&](const Tensors& e) { return run(p, p.body(c), joined(e, captured))[c.integer("output", 0)]; },
                   part(t, 0, nx), None, dtype_of(c));
}

Tensors rnn(const Program& p, const Tensors& t, const KerasCase& c) {
  std::vector<int> next = c.find("new")->list();
  int nx = c.integer("nx", 1), first = nx + static_cast<int>(next.size()), nc = c.integer("constants", 0);
  const std::string& mask = c.find("mask")->text;
  Tensors constants = part(t, first, first + nc), captured = part(t, first + nc, t.size() - (mask == "none" ? 0 : 1));
  auto step = [&](const Tensors& e, const Tensors& states_and_constants) {
    Tensors v = run(p, p.body(c), joined(joined(e, states_and_constants), captured)), now;
    for (int i : next) now.push_back(v[i]);
    return K::Step{v[c.integer("output", 0)], now};
  };
  K::RnnOptions o;
  o.go_backwards = flag(c, "backwards");
  o.constants = constants;
  o.unroll = flag(c, "unroll");
  o.time_major = flag(c, "major");
  o.zero_output_for_mask = flag(c, "zeros");
  if (mask == "lengths") o.input_length = t[-1];
  else if (mask != "none") o.mask = t[-1];
  K::RnnResult r = K::rnn(step, part(t, 0, nx), part(t, nx, first), o);
  return joined({r.last_output, r.outputs}, r.new_states);
}

Tensor choose(const Program& p, const Tensors& t, const KerasCase& c) {
  std::vector<int> outputs = c.find("outputs")->list();
  Tensors captured = part(t, 1, t.size());
  return K::switch_(
      t[0], [&] { return run(p, p.body(c, "yes"), captured)[outputs[0]]; },
      [&] { return run(p, p.body(c, "no"), captured)[outputs[1]]; });
}

Tensor phase(const Tensors& t, const KerasCase& c) {
  int training = c.integer("training", 0);
  auto yes = [&] { return t[0]; };
  auto no = [&] { return t[1]; };
  if (flag(c, "test"))
    return flag(c, "lazy") ? K::in_test_phase(yes, no, training) : K::in_test_phase(t[0], t[1], training);
  return flag(c, "lazy") ? K::in_train_phase(yes, no, training) : K::in_train_phase(t[0], t[1], training);
}

Tensor index(const Tensor& x, const std::string& text) {
  char copy[80] = {};  // what an Index is made of is an array
  text.copy(copy, sizeof copy - 1);
  return x[copy];
}

using Step = std::function<Tensors(const Program& p, const Tensors& t, const KerasCase& c)>;
#define STEP(name, expression) \
  { \
#name, [](const Program&, const Tensors& t, const KerasCase& c) -> Tensors { (void)t, (void)c; return expression; } \
  }
#define REDUCTION(name) STEP(name, K::name(t[0], c.axes("axis"), flag(c, "keepdims")))

const std::map<std::string, Step> kSteps = {
    {"fold", fold},
    {"map", map},
    {"rnn", rnn},
    {"switch", choose},
    STEP(phase, phase(t, c)),
    STEP(select, K::switch_(t[0], t[1], t[2])),
    STEP(tanh, K::tanh(t[0])),
    STEP(sigmoid, K::sigmoid(t[0])),
    STEP(square, K::square(t[0])),
    STEP(softplus, K::softplus(t[0])),
    STEP(negative, -t[0]),
    STEP(abs, K::abs(t[0])),
    STEP(sin, K::sin(t[0])),
    STEP(cos, K::cos(t[0])),
    STEP(round, K::round(t[0])),
    STEP(sign, K::sign(t[0])),
    STEP(hard_sigmoid, K::hard_sigmoid(t[0])),
    STEP(elu, K::elu(t[0])),
    STEP(general_relu, K::relu(t[0], 0.25, 1.0, 0.125)),
    STEP(bell, K::exp(-K::square(t[0]))),
    STEP(same, t[0] * 1.0),
    STEP(stop_gradient, K::stop_gradient(t[0])),
    STEP(root, K::sqrt(K::square(t[0]) + 0.5)),
    STEP(logarithm, K::log(K::square(t[0]) + 0.5)),
    STEP(add, t[0] + t[1]),
    STEP(subtract, t[0] - t[1]),
    STEP(multiply, t[0] * t[1]),
    STEP(maximum, K::maximum(t[0], t[1])),
    STEP(minimum, K::minimum(t[0], t[1])),
    STEP(quotient, t[0] / (K::square(t[1]) + 1.0)),
    STEP(power, K::pow(K::square(t[0]) + 0.5, t[1])),
    STEP(positive, t[0] > 0.0),
    STEP(inc, t[0] + 1),
    REDUCTION(sum),
    REDUCTION(mean),
    REDUCTION(prod),
    REDUCTION(var),
    REDUCTION(logsumexp),
    REDUCTION(max),
    REDUCTION(min),
    STEP(cumsum, K::cumsum(t[0], c.integer("axis", 0))),
    STEP(cumprod, K::cumprod(t[0], c.integer("axis", 0))),
    STEP(softmax, K::softmax(t[0], c.integer("axis", -1))),
    STEP(l2_normalize, K::l2_normalize(t[0], c.axes("axis"))),
    STEP(permute_dimensions, K::permute_dimensions(t[0], c.axes("pattern"))),
    STEP(reverse, K::reverse(t[0], c.axes("axes"))),
    STEP(transpose, K::transpose(t[0])),
    STEP(expand_dims, K::expand_dims(t[0], c.integer("axis", -1))),
    STEP(squeeze, K::squeeze(t[0], c.integer("axis", 0))),
    STEP(reshape, K::reshape(t[0], c.dims("shape"))),
    STEP(repeat_elements, K::repeat_elements(t[0], c.integer("rep", 0), c.integer("axis", 0))),
    STEP(tile, K::tile(t[0], c.dims("n"))),
    STEP(stack, K::stack(t, c.integer("axis", 0))),
    STEP(concatenate, K::concatenate(t, c.integer("axis", -1))),
    STEP(index, index(t[0], c.find("text")->text)),
    STEP(dot, K::dot(t[0], t[1])),
    STEP(gather, K::gather(t[0], t[1])),
    STEP(fill, t[0] + K::zeros(c.dims("shape"), "float64")),
    STEP(fill_int, K::constant(c.integer("value", 0), "int32", c.dims("shape"))),
    STEP(ints, K::constant(c.find("values")->list(), "int32")),
    STEP(bits, K::cast(K::constant(c.find("values")->list(), "int32", c.dims("shape")), dtype_of(c))),
};

Tensors run(const Program& p, const std::vector<BodyStep>& body, Tensors v) {
  for (const BodyStep& s : body) {
    Tensors in;
    for (int i : s.operands) in.push_back(v[i]);
    v = joined(std::move(v), kSteps.at(s.call.function)(p, in, s.call));
  }
  return v;
}

Tensor result_of(const Program& p, const Tensors& in) {
  Tensors v = run(p, p.main, in), parts;
  for (int i : p.outputs) parts.push_back(K::flatten(K::cast(v[i], "float64")));
  return K::concatenate(parts, 0);
}

/// The sum of all elements, element i weighted with 1 + by * (i mod period).
Tensor weighted(const Tensor& t, const Shape& shape, double by, int period) {
  std::vector<double> w(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 1 + by * static_cast<double>(i % static_cast<std::size_t>(period));
  return K::sum(t * K::constant(w, "float64", shape));
}

/// The first gradients, then the second.
Tensors gradients_of(const Tensor& y, const Tensors& in, const KerasCase& c) {
  Tensors first = K::gradients(weighted(y, c.out.shape, 0.5, 3), in);
  Tensor total;
  for (std::int64_t i = 0; i < first.size(); ++i)
    if (first[i].defined()) {
      Tensor share = weighted(first[i], c.in[static_cast<std::size_t>(i)].shape, 0.25, 5);
      total = total.defined() ? total + share : share;
    }
  if (!total.defined()) return joined(first, first);
  return joined(first, K::gradients(total, in));
}

/// What differs from the file; empty if nothing does. A loop may give zeros if there is no path.
std::string difference(const Tensor& y, const Tensors& gradients, const KerasCase& c) {
  testing::Tolerance tolerance;
  tolerance.rtol = 1e-8;
  tolerance.atol = 1e-7;  // TensorFlow's own differences of what is 0 are that large
  if (auto d = testing::compare(y, c.out.value(), tolerance); !d) return d.message;
  for (std::size_t i = 0; i < c.gradients.size(); ++i) {
    const Shape& shape = c.in[i % c.in.size()].shape;
    const Tensor& ours = gradients[static_cast<std::int64_t>(i)];
    Tensor expected = c.gradients[i].dtype.given() ? c.gradients[i].value() : K::zeros(shape, "float64");
    if (auto d = testing::compare(ours.defined() ? ours : K::zeros(shape, "float64"), expected, tolerance); !d)
      return "gradient " + std::to_string(i) + ": " + d.message;
  }
  return "";
}

enum class Given { variables, placeholders, of_unknown_sizes, both };

std::string run_case(const KerasCase& c, Given given) {
  Program p(c);
  Tensors in, feeds, values;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const GivenTensor& t = c.in[i];
    if (given == Given::variables || (given == Given::both && i % 2)) {
      in.push_back(K::variable(t.value(), t.dtype));
      continue;
    }
    in.push_back(K::placeholder(given == Given::placeholders ? t.shape : t.of_unknown_sizes(), None, t.dtype));
    feeds.push_back(in[-1]);
    values.push_back(t.value());
  }
  auto all = [&] {
    Tensor y = result_of(p, in);
    return joined({y}, gradients_of(y, in, c));
  };
  Tensors found = given == Given::variables ? all() : K::symbolic(all)();
  if (given != Given::variables) {
    Tensors outputs;
    for (const Tensor& t : found) outputs.push_back(t.defined() ? t : K::constant(0));
    Tensors played = K::function(feeds, outputs)(values);
    for (std::int64_t i = 0; i < found.size(); ++i)
      if (found[i].defined()) found[i] = played[i];
  }
  return difference(found[0], part(found, 1, found.size()), c);
}

}  // namespace

TEST_CASE(
    "programs of loops, maps and branches in one another have TensorFlow's values and gradients, first and second",
    "[keras]") {
  const char* others = std::getenv("KASSETTE_TEST_PROGRAMS");  // a file of other seeds
  std::vector<KerasCase> cases =
      cases_of(others ? std::filesystem::path(others) : kSourceTree / "tests/data/program_cases.txt");
  CHECK(cases.size() > 100);
  for (const KerasCase& c : cases)
    for (bool checkpoints : {false, true})
      for (Given given : {Given::variables, Given::placeholders, Given::of_unknown_sizes, Given::both}) {
        std::optional<K::CheckpointScope> scope;
        if (checkpoints) scope.emplace(2);
        std::string w;
        try {
          w = run_case(c, given);
        } catch (const std::exception& e) {
          w = e.what();
          if (given != Given::variables && w.find("it needs a known time") != std::string::npos) w.clear();
        }
        if (!w.empty())
          FAIL_CHECK(c.line << "\n  " << static_cast<int>(given) << (checkpoints ? " with checkpoints: " : ": ") << w);
      }
}

// tests/nn_backend/replay_refusals_test.cpp - an error of an eager call is also thrown, with the same words, by a
// function that learns the shapes only in a call.
#include <kassette/backend.h>
#include <kassette/error.h>

#include <functional>
#include <regex>
#include <string>

#include "tests/catch.h"
#include "tests/results.h"

using kassette::Shape;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::error_of;
using kassette::test::values;
using kassette::test::without_steps;
namespace K = kassette::backend;
using Vec = std::vector<double>;

namespace {

const std::regex kSize("[0-9]+(?=[,)])");

/// The error of f on values, and that of a function of it on placeholders of unknown sizes, then of unknown rank.
void check_refused(const std::string& said, const Tensors& in, const std::function<Tensor(const Tensors&)>& f) {
  CHECK(error_of<kassette::ValueError>([&] { f(in); }) == said);
  for (bool ranked : {true, false}) {
    INFO((ranked ? "known ranks" : "unknown ranks"));
    Tensors inputs;
    for (const Tensor& t : in)
      inputs.push_back(ranked ? K::placeholder(K::None, t.ndim(), t.dtype())
                              : K::placeholder(K::None, K::None, t.dtype()));
    std::string replayed = error_of<kassette::ValueError>([&] { K::function(inputs, {f(inputs)})(in); });
    if (ranked && replayed != said)
      CHECK(replayed == std::regex_replace(said, kSize, "None"));  // the rank tells while it is recorded
    else CHECK(replayed == said);
  }
}

Tensor ints(const kassette::Operand& v) { return K::constant(v, "int32"); }

}  // namespace

TEST_CASE("a shape that is a tensor of rank 2 is refused when its shape is known", "[bad]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}), two = ints({{3, 2}});
  const std::string said = " is a tensor of shape (1, 2); it must have one axis";
  check_refused("reshape: shape" + said, {x, two}, [](const Tensors& t) { return K::reshape(t[0], t[1]); });
  check_refused("tile: n" + said, {x, two}, [](const Tensors& t) { return K::tile(t[0], t[1]); });
  check_refused("slice: start" + said, {x, two}, [](const Tensors& t) { return K::slice(t[0], t[1], {1, 1}); });
  check_refused("slice: size" + said, {x, two}, [](const Tensors& t) { return K::slice(t[0], {0, 0}, t[1]); });
  check_refused("dropout: noise_shape" + said, {x, two}, [](const Tensors& t) { return K::dropout(t[0], 0.5, t[1]); });
  check_refused("random_uniform: shape" + said, {two}, [](const Tensors& t) { return K::random_uniform(t[0]); });
  check_refused("random_normal: shape" + said, {two}, [](const Tensors& t) { return K::random_normal(t[0]); });
  check_refused("truncated_normal: shape" + said, {two}, [](const Tensors& t) { return K::truncated_normal(t[0]); });
  check_refused("random_binomial: shape" + said, {two}, [](const Tensors& t) { return K::random_binomial(t[0], 0.5); });
  check_refused("reshape: shape holds a tensor of shape (1, 2); sizes must be scalars", {x, two}, [](const Tensors& t) {
    return K::reshape(t[0], {t[1], 2});
  });
  Tensor p = K::placeholder({K::None, K::None}), k = K::placeholder(K::None, K::None, "int32");
  // Rank 0 is one size.
  CHECK(values(K::function({p, k}, {K::reshape(p, k)})({x, ints(6)})[0]) == Vec{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a step of rnn that loses rows is refused when the number of samples is known", "[bad][rnn]") {
  Tensor x = K::ones({3, 2, 2}), s = K::ones({3, 2});
  for (bool masked : {false, true})
    for (bool zeros : {false, true})
      for (int rows : {1, 2}) {
        INFO((masked ? "masked, " : "") << (zeros ? "zeros, " : "") << rows << " rows");
        auto run = [&](const Tensor& in, const Tensor& state) {
          K::RnnOptions o;
          Tensor mask = K::ones_like(in(kassette::all, kassette::all, 0));
          if (masked) o.mask = mask;
          o.zero_output_for_mask = zeros;
          return K::rnn(
                     [&](const Tensor& e, const Tensors& states) {
                       return K::Step{e(kassette::slice(0, rows)), states};
                     },
                     in, {state}, o)
              .outputs;
        };
        const std::string said =
            "rnn: an output has shape (" + std::to_string(rows) + ", 2); it must be (3, ...), a row for each sample";
        CHECK(error_of<kassette::ValueError>([&] { run(x, s); }) == said);
        Tensor in = K::placeholder({K::None, K::None, 2}), state = K::placeholder({K::None, 2});
        Tensor y = run(in, state);
        std::string replayed = error_of<kassette::ValueError>([&] { K::function({in, state}, {y})({x, s}); });
        if (masked && !zeros) CHECK(replayed != "no error");  // the mask is the first to see it
        else CHECK(without_steps(replayed) == said);
        CHECK(error_of<kassette::ValueError>([&] {
                K::function({in, state}, {y, K::gradients(y, {in})[0]})({x, s});
              }) != "no error");
      }
  // The shape of what this step gives is known only when it has run.
  Tensor in = K::placeholder({K::None, K::None, 2}), state = K::placeholder({K::None, 2}),
         n = K::placeholder({}, K::None, "int32");
  Tensor y = K::rnn(
                 [&](const Tensor& e, const Tensors& states) {
                   return K::Step{K::reshape(K::tile(e, {n, 1}), {-1, 2}), states};
                 },
                 in, {state})
                 .outputs;
  auto f = K::function({in, state, n}, {y});
  CHECK(f({x, s, 1})[0].shape() == Shape{3, 2, 2});
  CHECK(error_of<kassette::ValueError>([&] { f({x, s, 2}); }).substr(0, 33) == "rnn: an output has shape (6, 2); ");
}

TEST_CASE("an unrolled step that gives other shapes is refused when they are known", "[bad][rnn]") {
  Tensor x = K::ones({3, 2, 2}), s = K::ones({3, 2}), one = K::ones({1, 2});
  Tensor in = K::placeholder({K::None, 2, 2}), state = K::placeholder({K::None, 2}),
         other = K::placeholder({K::None, 2});
  K::RnnOptions o;
  o.unroll = true;
  auto sum = [&](const Tensor& e, const Tensors& states) { return K::Step{e, {states[0] + e}}; };
  auto f = K::function({in, state}, K::rnn(sum, in, {state}, o).new_states);
  CHECK(values(f({x, s})[0]) == Vec{3, 3, 3, 3, 3, 3});
  CHECK(error_of<kassette::ValueError>([&] {
          f({x, one});
        }) == "rnn: the step returned a state of shape (3, 2), it was (1, 2); the shape must stay the same");
  CHECK(error_of<kassette::ValueError>([&] { K::rnn(sum, x, {one}, o); }) ==
        "rnn: the step returned state 0 of shape (3, 2), it was (1, 2); the shape must stay the same");
  auto row = [&](const Tensor&, const Tensors& states) { return K::Step{other, states}; };
  auto g = K::function({in, state, other}, {K::rnn(row, in, {state}, o).outputs});
  CHECK(g({x, s, s})[0].shape() == Shape{3, 2, 2});
  CHECK(error_of<kassette::ValueError>([&] {
          g({x, s, one});
        }) == "rnn: an output has shape (1, 2); it must be (3, ...), a row for each sample");
  // A mask takes states by rows, too.
  auto keep = [&](const Tensor& e, const Tensors& states) { return K::Step{e, states}; };
  Tensor mask = K::placeholder({K::None, 2});
  o.mask = mask;
  auto h = K::function({in, state, mask}, K::rnn(keep, in, {state}, o).new_states);
  CHECK(h({x, s, K::ones({3, 2})})[0].shape() == Shape{3, 2});
  CHECK(error_of<kassette::ValueError>([&] {
          h({x, one, K::ones({3, 2})});
        }) == "rnn: a state has shape (1, 2); it must be (3, ...), a row for each sample");
  Tensor seen = K::ones({3, 2});
  o.mask = seen;
  CHECK(error_of<kassette::ValueError>([&] { K::rnn(keep, x, {one}, o); }) ==
        "rnn: state 0 has shape (1, 2); it must be (3, ...), a row for each sample");
}

TEST_CASE("branches of two shapes are refused, at once and when a function learns the shapes", "[bad][phase]") {
  Tensor a = K::ones({2, 3}), b = K::ones({1, 3});
  const std::string said = ": the branches have shapes (2, 3) and (1, 3); they must be equal";
  check_refused("switch_" + said, {a, b}, [](const Tensors& t) { return K::switch_(K::sum(t[0]) > 0, t[0], t[1]); });
  check_refused("switch_" + said, {a, b}, [](const Tensors& t) { return K::switch_(K::sum(t[0]) < 0, t[0], t[1]); });
  check_refused("in_train_phase" + said, {a, b}, [](const Tensors& t) { return K::in_train_phase(t[0], t[1]); });
  check_refused("in_test_phase" + said, {b, a}, [](const Tensors& t) { return K::in_test_phase(t[0], t[1]); });
  check_refused("in_train_phase" + said, {a, b},
                [](const Tensors& t) { return K::in_train_phase(t[0], t[1], K::sum(t[0]) > 0); });
}

TEST_CASE("a number takes the shape of the branch that it stands beside", "[phase]") {
  Tensor x = K::constant({1, 2});
  auto check = [&](const Vec& expected, const std::function<Tensor(const Tensor&)>& f) {
    Tensor p = K::placeholder({K::None});
    CHECK(values(f(x)) == expected);
    CHECK(values(f(K::variable(x))) == expected);
    CHECK(values(K::function({p}, {f(p)})({x})[0]) == expected);
  };
  check({5, 5}, [](const Tensor& t) { return K::switch_(false, t, 5); });
  check({5, 5}, [](const Tensor& t) { return K::switch_(K::constant(1), 5, t); });
  check({5, 5}, [](const Tensor& t) { return K::in_train_phase(t, 5); });
  check({1, 2}, [](const Tensor& t) { return K::in_train_phase(5, t); });
  check({5, 5}, [](const Tensor& t) { return K::in_test_phase(5, t); });
}

TEST_CASE("a local convolution of too few elements is refused when the sizes are known, without channels too",
          "[bad][convolution]") {
  for (int channels : {0, 2}) {
    INFO(channels << " channels");
    Tensor x = K::ones({1, 3, channels}), kernel = K::ones({4, channels, 2});
    auto run = [&](const Tensor& in) { return K::local_conv1d(in, kernel, 1, 1); };
    CHECK(error_of<kassette::ValueError>([&] { run(x); }).find("have 3 elements along an axis, and 4 patches take 4") !=
          std::string::npos);
    for (const Tensor& in :
         {K::placeholder({K::None, K::None, channels}), K::placeholder(K::None, 3), K::placeholder()}) {
      auto f = K::function({in}, {run(in)});
      CHECK(error_of<kassette::ValueError>([&] { f({x}); }).find("must end within the axis") != std::string::npos);
      CHECK(f({K::ones({1, 4, channels})})[0].shape() == Shape{1, 4, 2});
    }
    auto plane = [&](const Tensor& in) {
      return K::local_conv2d(in, K::ones({2 * 3, channels, 2}), {1, 1}, {1, 1}, {2, 3}, "channels_first");
    };
    Tensor in = K::placeholder({1, channels, K::None, K::None});
    auto f = K::function({in}, {plane(in)});
    CHECK(f({K::ones({1, channels, 2, 3})})[0].shape() == Shape{1, 2, 2, 3});
    for (const Shape& small : {Shape{1, channels, 1, 3}, Shape{1, channels, 2, 2}})
      CHECK(error_of<kassette::ValueError>([&] { f({K::ones(small)}); }) != "no error");
  }
  const std::string said = error_of<kassette::ValueError>([] {
    K::local_conv1d(K::placeholder({K::None, K::None, 0}), K::zeros({int64_t(1) << 40, 0, 1}), 1, 1 << 30);
  });
  CHECK(said.find("more elements than a tensor can have") != std::string::npos);
}

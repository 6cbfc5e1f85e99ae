// tests/nn_backend/rnn/rnn_refusals_test.cpp - calls that rnn, map_fn, folds and switch_ refuse, with the same words
// eagerly and when recorded; a call that throws leaves nothing behind.
#include <kassette/backend.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::error_of;
using kassette::test::number;
using kassette::test::values;
using Vec = std::vector<double>;

namespace {

K::Step keep(const Tensor& x, const Tensors& states) { return {x, states}; }

/// f on a concrete tensor and on a placeholder of its shape.
void refuses(const Tensor& x, const std::string& message, const std::function<void(const Tensor&)>& f) {
  CHECK(error_of([&] { f(x); }) == message);
  Tensor p = K::placeholder(x.shape(), K::None, x.dtype());
  CHECK(error_of([&] { f(p); }) == message);
}

}  // namespace

TEST_CASE("rnn refuses inputs, masks and lengths of other shapes, eager and symbolic in the same words", "[rnn][bad]") {
  Tensor x = K::ones({4, 6, 5}), h = K::zeros({4, 5});
  refuses(K::ones({4, 6}), "rnn: inputs have shape (4, 6); they must be (samples, time, ...) of rank 3 at least",
          [&](const Tensor& in) { K::rnn(keep, in, {h}); });
  refuses(K::ones({4, 6}), "rnn: inputs have shape (4, 6); they must be (time, samples, ...) of rank 3 at least",
          [&](const Tensor& in) { K::rnn(keep, in, {h}, false, K::None, K::None, false, K::None, true); });
  for (const Tensor& mask :
       {K::ones({4}), K::ones({4, 5}), K::ones({6, 4}), K::ones({4, 6, 2}), K::ones({4, 6, 1, 1})}) {
    std::string shape = kassette::test::printed(mask.shape());
    refuses(
        x,
        "rnn: mask has shape " + shape +
            ", the inputs (4, 6, 5); it must be (samples, time) as they are, or the same with an axis of size 1 appended",
        [&](const Tensor& in) { K::rnn(keep, in, {h}, false, mask); });
  }
  refuses(
      x,
      "rnn: mask has shape (6, 4), the inputs (4, 6, 5); it must be (time, samples) as they are, or the same with an axis of size 1 appended",
      [&](const Tensor& in) {
        K::rnn(keep, in, {K::zeros({6, 5})}, false, K::ones({6, 4}), K::None, false, K::None, true);
      });
  refuses(x, "rnn: initial_states is empty; a mask needs states to keep", [&](const Tensor& in) {
    K::rnn(keep, in, {}, false, K::ones({4, 6}));
  });
  refuses(x, "rnn: input_length is 5, the inputs have 6 steps",
          [&](const Tensor& in) { K::rnn(keep, in, {h}, false, K::None, K::None, false, 5); });
  refuses(x, "rnn: input_length is -1; it must not be negative",
          [&](const Tensor& in) { K::rnn(keep, in, {h}, false, K::None, K::None, false, -1); });
  refuses(x, "rnn: input_length is float32; it must be integers", [&](const Tensor& in) {
    K::rnn(keep, in, {h}, false, K::None, K::None, false, K::constant({1.0, 1.0, 1.0, 1.0}));
  });
  refuses(x, "rnn: input_length has shape (4, 1); it must be a number of steps or (samples,)", [&](const Tensor& in) {
    K::rnn(keep, in, {h}, false, K::None, K::None, false, K::ones({4, 1}, "int32"));
  });
  refuses(x, "rnn: inputs is an empty list; at least one tensor is needed",
          [&](const Tensor&) { K::rnn(keep, {}, {h}); });
  refuses(x, "rnn: initial_states holds an empty Tensor (a gradient that is None, or an uninitialised variable?)",
          [&](const Tensor& in) { K::rnn(keep, in, {Tensor()}); });
  refuses(x, "rnn: constants holds an empty Tensor (a gradient that is None, or an uninitialised variable?)",
          [&](const Tensor& in) { K::rnn(keep, in, {h}, false, K::None, {Tensor()}); });
  Tensor any_time = K::placeholder({4, K::None, 5}), any_rank = K::placeholder(K::None);
  CHECK(error_of([&] { K::rnn(keep, any_time, {h}, false, K::None, K::None, true); }) ==
        "rnn: unroll is true for inputs of shape (4, None, 5); it needs a known time of at least one step");
  refuses(K::ones({4, 0, 5}),
          "rnn: unroll is true for inputs of shape (4, 0, 5); it needs a known time of at least one step",
          [&](const Tensor& in) { K::rnn(keep, in, {h}, false, K::None, K::None, true); });
  CHECK(error_of([&] { K::rnn(keep, any_rank, {h}); }) ==
        "rnn: inputs of unknown rank; declare the rank in the placeholder");
  CHECK(error_of([&] { K::rnn(keep, x, {h}, false, any_rank); }) ==
        "rnn: mask of unknown rank; declare the rank in the placeholder");
  // At replay.
  auto f = K::function({any_time}, {K::rnn(keep, any_time, {h}, false, K::None, K::None, false, 6).outputs});
  CHECK(error_of([&] { f({K::ones({4, 5, 5})}); }) == "rnn: input_length is 6, the inputs have 5 steps");
  CHECK(values(f({x})[0]) == Vec(4 * 6 * 5, 1));
  Tensor mask = K::placeholder({4, K::None});
  auto masked = K::function({any_time, mask}, {K::rnn(keep, any_time, {h}, false, mask).outputs});
  CHECK(
      error_of([&] {
        masked({x, K::ones({4, 5})});
      }) ==
      "rnn: mask has shape (4, 5), the inputs (4, 6, 5); it must be (samples, time) as they are, or the same with an axis of size 1 appended");
}

TEST_CASE("a mask whose sizes only a replay knows is refused in rnn's words", "[rnn][bad]") {
  Tensor x = K::ones({4, 6, 5}), h = K::zeros({4, 5}), bad = K::ones({3, 6});
  for (bool unroll : {false, true})
    for (int axis : {0, 1}) {
      Tensor in = axis ? K::placeholder({K::None, 6, 5}) : K::placeholder({6, K::None, 5}),
             state = K::placeholder({K::None, 5});
      Tensor mask = axis ? K::placeholder({K::None, 6}) : K::placeholder({6, K::None});
      Tensor fed = axis ? x : K::permute_dimensions(x, {1, 0, 2}), wrong = axis ? bad : K::transpose(bad);
      auto run = [&](const Tensor& i, const Tensor& s, const Tensor& m) {
        return K::rnn(keep, i, {s}, false, m, Tensors(), unroll, K::None, axis == 0).outputs;
      };
      std::string said = error_of([&] { run(fed, h, wrong); });
      CHECK(said.find("rnn: mask has shape ") == 0);
      Tensor y = run(in, state, mask);
      auto f = K::function({in, state, mask}, {y, K::gradients(K::sum(y), {in})[0]});
      CHECK(error_of([&] { f({fed, h, wrong}); }) == said);
      CHECK(values(f({fed, h, K::ones_like(axis ? K::sum(x, 2) : K::sum(fed, 2))})[0]) == Vec(4 * 6 * 5, 1));
    }
}

TEST_CASE("rnn refuses states and outputs that do not stay what they were, eager and symbolic in the same words",
          "[rnn][bad]") {
  Tensor x = K::ones({2, 3, 2}), h = K::zeros({2, 2});
  auto step = [&](const std::function<K::Step(const Tensor&, const Tensors&)>& f) {
    return [&, f](const Tensor& in) { K::rnn(f, in, {h}); };
  };
  refuses(x, "rnn: the step returned 2 states, it was given 1; it must return as many",
          step([](const Tensor& t, const Tensors& s) {
            return K::Step{t, {s[0], t}};
          }));
  refuses(x, "rnn: the step returned 0 states, it was given 1; it must return as many",
          step([](const Tensor& t, const Tensors&) {
            return K::Step{t, {}};
          }));
  refuses(x, "rnn: the step returned state 0 of shape (2, 4), it was (2, 2); the shape must stay the same",
          step([](const Tensor& t, const Tensors& s) {
            return K::Step{t, {K::concatenate({s[0], t})}};
          }));
  refuses(x, "rnn: the step returned state 0 as float64, it was float32", step([](const Tensor& t, const Tensors& s) {
            return K::Step{t, {K::cast(s[0], "float64")}};
          }));
  refuses(x, "rnn: an output has shape (); it must be (2, ...), a row for each sample",
          step([](const Tensor& t, const Tensors& s) {
            return K::Step{K::sum(t), s};
          }));
  refuses(x, "rnn: an output has shape (3, 2); it must be (2, ...), a row for each sample",
          step([](const Tensor&, const Tensors& s) {
            return K::Step{K::ones({3, 2}), s};
          }));
  refuses(x, "rnn: the function returned an empty Tensor (a gradient that is None, or an uninitialised variable?)",
          step([](const Tensor&, const Tensors& s) {
            return K::Step{Tensor(), s};
          }));
  refuses(x, "rnn: the function returned an empty Tensor (a gradient that is None, or an uninitialised variable?)",
          step([](const Tensor& t, const Tensors&) {
            return K::Step{t, {Tensor()}};
          }));
  // A state without a batch axis is allowed only without a mask.
  auto counting = [](const Tensor& t, const Tensors& s) { return K::Step{t, {s[0] + 1}}; };
  CHECK(number(K::rnn(counting, x, {K::constant(0)}).new_states[0]) == 3);
  refuses(x, "rnn: state 0 has shape (); it must be (2, ...), a row for each sample", [&](const Tensor& in) {
    K::rnn(counting, in, {K::constant(0)}, false, K::ones({2, 3}));
  });
  // What changes from step to step is seen only where steps are run one by one.
  int calls = 0;
  auto grows = [&](const Tensor& t, const Tensors& s) { return K::Step{++calls == 3 ? K::concatenate({t, t}) : t, s}; };
  CHECK(error_of([&] { K::rnn(grows, x, {h}); }) ==
        "rnn: the step returned an output of shape (2, 4), it was (2, 2); the shape must stay the same");
  calls = 0;
  auto forgets = [&](const Tensor& t, const Tensors& s) { return ++calls == 2 ? K::Step{t, {}} : K::Step{t, s}; };
  CHECK(error_of([&] { K::rnn(forgets, x, {h}); }) ==
        "rnn: the step returned 0 states, it was given 1; it must return as many");
}

TEST_CASE("a step that throws in the middle leaves nothing, and the recording state as it was", "[rnn][bad]") {
  Tensor x = K::variable(K::ones({2, 5, 2})), h = K::variable(K::zeros({2, 2})),
         p = K::placeholder({K::None, K::None, 2});
  Tensor mask = K::ones({2, 5});
  auto before = kassette::totals();
  for (const Tensor& in : {x, p})
    for (bool masked : {false, true}) {
      int calls = 0;
      auto step = [&](const Tensor& t, const Tensors& s) -> K::Step {
        Tensor y = K::tanh(t + s[0]);
        if (++calls == (in.symbolic() ? 1 : 3)) throw std::runtime_error("enough");
        return {y, {y}};
      };
      CHECK_THROWS_WITH(K::rnn(step, in, {h}, false, masked ? mask : Tensor()), "enough");
      CHECK_THROWS_WITH(K::map_fn([&](const Tensor&) -> Tensor { throw std::runtime_error("enough"); }, in), "enough");
      CHECK_THROWS_WITH(
          K::foldl([&](const Tensor&, const Tensor&) -> Tensor { throw std::runtime_error("enough"); }, in), "enough");
    }
  auto after = kassette::totals();
  CHECK(after.live_nodes == before.live_nodes);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.saved_bytes == before.saved_bytes);
  CHECK_FALSE(K::sum(x).symbolic());
  CHECK(values(K::gradients(K::sum(K::square(h + 1.0)), {h})[0]) == Vec{2, 2, 2, 2});
  // At replay the error says where it was, and the next call works.
  Tensor q = K::placeholder({K::None, K::None, 2});
  auto f = K::function({q, p}, {K::rnn(
                                    [&](const Tensor& t, const Tensors& s) {
                                      return K::Step{t, {s[0] + K::sum(p, 1)}};
                                    },
                                    q, {h})
                                    .new_states[0]});
  CHECK(error_of([&] { f({x, K::ones({3, 1, 2})}); }).find("of rnn)") != std::string::npos);
  CHECK(values(f({x, K::ones({2, 1, 2})})[0]) == Vec{5, 5, 5, 5});
}

TEST_CASE("map_fn maps slices in order: several elems, other dtypes, unknown and no length", "[map_fn]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK(values(K::map_fn([](const Tensor& row) { return K::sum(row); }, x)) == Vec{6, 15});
  // A Keras test: a function that indexes an outer variable, with another dtype than its elements.
  Tensor v = K::variable(K::constant({3.5, -1, 2}));
  auto at = [&](const Tensor& i) { return v[i]; };
  CHECK(values(K::map_fn(at, K::arange(3), K::None, "float32")) == Vec{3.5, -1, 2});
  Tensor p = K::placeholder({K::None}, K::None, "int32");
  Tensor picked = K::map_fn(at, p, K::None, "float32");
  CHECK(K::int_shape(picked) == kassette::Shape({-1}));
  auto f = K::function({p}, {picked, K::gradients(K::sum(K::square(picked)), {v})[0]});
  Tensors o = f({K::constant({2, 2, 0}, "int32")});
  CHECK(values(o[0]) == Vec{2, 2, 3.5});
  CHECK(values(o[1]) == Vec{7, 0, 8});
  CHECK(values(f({K::zeros({0}, "int32")})[0]).empty());
  CHECK(values(K::map_fn(at, K::zeros({0}, "int32"), K::None, "float32")).empty());
  CHECK(K::int_shape(K::map_fn([](const Tensor& row) { return K::expand_dims(row, 0); }, K::zeros({0, 3}))) ==
        kassette::Shape({0, 1, 3}));
  int next = 0;
  K::map_fn(
      [&](const Tensor& row) {
        CHECK(row.item<int>() == next++);
        return row;
      },
      K::arange(4));
  CHECK(values(K::map_fn([](const Tensors& rows) { return rows[0] * K::sum(rows[1]); }, {x, x})) ==
        Vec{6, 12, 18, 60, 75, 90});
}

TEST_CASE("map_fn and folds refuse what they cannot go through, eager and symbolic in the same words",
          "[map_fn][bad]") {
  Tensor x = K::ones({2, 3}), one = K::ones({});
  auto same = [](const Tensor& t) { return t; };
  refuses(one, "map_fn: elems holds a scalar; it needs an axis to iterate over",
          [&](const Tensor& in) { K::map_fn(same, in); });
  refuses(x, "map_fn: fn returned float64; it must be float32, the dtype of elems; name the other one as dtype",
          [](const Tensor& in) { K::map_fn([](const Tensor& t) { return K::cast(t, "float64"); }, in); });
  refuses(x, "map_fn: fn returned float32; it must be int32, the dtype asked for",
          [&](const Tensor& in) { K::map_fn(same, in, K::None, "int32"); });
  refuses(x, "map_fn: the function returned an empty Tensor (a gradient that is None, or an uninitialised variable?)",
          [](const Tensor& in) { K::map_fn([](const Tensor&) { return Tensor(); }, in); });
  refuses(x, "map_fn: elems are 2 tensors, and the function takes one; let it take `const Tensors&`",
          [&](const Tensor& in) {
            K::map_fn(same, {in, x});
          });
  refuses(x, "map_fn: elems have 2 and 3 elements to iterate over; all must have the same number",
          [](const Tensor& in) {
            K::map_fn([](const Tensors& t) { return t[0]; }, {in, K::ones({3})});
          });
  auto plus = [](const Tensor& a, const Tensor& e) { return a + e; };
  refuses(one, "foldl: elems is a scalar; it needs an axis to iterate over",
          [&](const Tensor& in) { K::foldl(plus, in); });
  refuses(x, "foldr: the step returned state 0 of shape (1, 3), it was (3,); the shape must stay the same",
          [](const Tensor& in) {
            K::foldr([](const Tensor& a, const Tensor& e) { return K::expand_dims(a + e, 0); }, in);
          });
  refuses(K::ones({0, 3}), "foldl: elems has no elements, and there is no initializer",
          [&](const Tensor& in) { K::foldl(plus, in); });
}

TEST_CASE("switch_ refuses branches of other shapes, also where it need not look at one", "[control][bad]") {
  Tensor a = K::ones({2}), b = K::ones({3}), c = K::placeholder({}, K::None, "bool");
  std::string message = "switch_: the branches have shapes (2,) and (3,); they must be equal";
  CHECK(error_of([&] { K::switch_(true, a, b); }) == message);
  CHECK(error_of([&] { K::switch_(c, a, b); }) == message);
  CHECK(error_of([&] {
          K::switch_(
              c, [&] { return a; }, [&] { return b; });
        }) == message);
  CHECK(error_of([&] { K::switch_(true, a, K::cast(a, "int32")); }) ==
        "switch_: one branch is float32, the other int32; cast one of them (K::cast)");
  CHECK(error_of([&] { K::switch_(c, a, K::cast(a, "int32")); }) ==
        "switch_: one branch is float32, the other int32; cast one of them (K::cast)");
  CHECK(values(K::switch_(true, a, 0)) == Vec{1, 1});  // a number fits any shape
}

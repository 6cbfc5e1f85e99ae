// tests/nn_backend/rnn/rnn_test.cpp - rnn against a loop over rows of doubles, in every way it can be run.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;
using Vec = std::vector<double>;

namespace {

void close(const Vec& got, const Vec& expected, double tolerance = 1e-12) { check_close(got, expected, tolerance); }

// ---- the reference: one sample after the other, rows of doubles -----------------------------------------------------

using Rows = std::vector<Vec>;
using RowStep = std::function<std::pair<Vec, Rows>(const Vec& x, const Rows& states)>;

struct Settings {
  bool go_backwards = false, zero_output_for_mask = false;
};
struct Expected {
  Vec last, outputs;
  Rows states;  // per state: all samples
};

/// x: (samples, time, width) flat; mask: (samples, time) flat or empty; states: per state all samples flat.
Expected reference(const RowStep& step, const Vec& x, int samples, int time, const Rows& states, const Vec& mask,
                   Settings s) {
  auto row = [](const Vec& of, int i, int n) {
    auto width = static_cast<std::ptrdiff_t>(of.size()) / n;
    return Vec(of.begin() + i * width, of.begin() + (i + 1) * width);
  };
  auto append = [](Vec& to, const Vec& v) { to.insert(to.end(), v.begin(), v.end()); };
  Expected e;
  e.states.resize(states.size());
  for (int n = 0; n < samples; ++n) {
    Rows now;
    for (const Vec& all : states) now.push_back(row(all, n, samples));
    Vec before;
    for (int t = 0; t < time; ++t) {
      int at = s.go_backwards ? time - 1 - t : t;
      auto [o, next] = step(row(x, n * time + at, samples * time), now);
      if (t == 0) before = Vec(o.size(), 0);
      if (mask.empty() || mask[static_cast<std::size_t>(n * time + at)] != 0) {
        now = next;
        before = o;
      } else if (s.zero_output_for_mask) {
        before = Vec(o.size(), 0);
      }
      append(e.outputs, before);
    }
    append(e.last, before);
    for (std::size_t k = 0; k < now.size(); ++k) append(e.states[k], now[k]);
  }
  return e;
}

Vec times(const Vec& row, const Vec& matrix) {
  std::size_t n = matrix.size() / row.size();
  Vec y(n, 0);
  for (std::size_t i = 0; i < row.size(); ++i)
    for (std::size_t j = 0; j < n; ++j) y[j] += row[i] * matrix[i * n + j];
  return y;
}
Vec plus(Vec a, const Vec& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// One call of rnn in every way there is: eagerly, unrolled, time-major, on placeholders with nothing known.
struct Ways {
  K::StepFn step;
  Tensor x;
  Tensors states;
  Tensor mask;  // (samples, time), any dtype, or empty
  Tensors constants;
  Settings settings;

  K::RnnOptions options() const {
    K::RnnOptions o;
    o.go_backwards = settings.go_backwards;
    o.zero_output_for_mask = settings.zero_output_for_mask;
    o.mask = mask;
    o.constants = constants;
    return o;
  }
  static Tensor swapped(const Tensor& t) {  // (samples, time, ...) and back
    std::vector<int> axes{1, 0};
    for (int i = 2; i < t.ndim(); ++i) axes.push_back(i);
    return K::permute_dimensions(t, axes);
  }
  static void same(const K::RnnResult& r, const Expected& e) {
    close(values(r.outputs), e.outputs);
    close(values(r.last_output), e.last);
    REQUIRE(static_cast<std::size_t>(r.new_states.size()) == e.states.size());
    for (std::size_t i = 0; i < e.states.size(); ++i)
      close(values(r.new_states[static_cast<std::int64_t>(i)]), e.states[i]);
  }

  void check(const Expected& e) const {
    same(K::rnn(step, x, states, options()), e);
    K::RnnOptions o = options();
    o.unroll = true;
    o.input_length = K::constant(std::int64_t(x.shape()[1]), "int32");
    same(K::rnn(step, x, states, o), e);
    o = options();
    o.time_major = true;
    if (mask.defined()) o.mask = K::expand_dims(swapped(mask), -1);
    K::RnnResult r = K::rnn(step, swapped(x), states, o);
    r.outputs = swapped(r.outputs);
    same(r, e);
    for (bool unroll : {false, true}) check_symbolic(e, unroll);
  }

  void check_symbolic(const Expected& e, bool unroll) const {
    auto like = [&](const Tensor& t, int known_axis) {  // batch and time unknown
      std::vector<int> dims;
      kassette::Shape s = t.shape();
      kassette::Dims shape(K::None);
      shape.size_ = t.ndim();
      for (int i = 0; i < t.ndim(); ++i) {
        if (i == 0 || (i == 1 && i != known_axis)) shape.dims_[i] = K::None;
        else shape.dims_[i] = std::int64_t(s[i]);
      }
      return K::placeholder(shape, K::None, t.dtype());
    };
    Tensors in(like(x, unroll ? 1 : -1)), feeds(x), in_states;
    K::RnnOptions o = options();
    for (const Tensor& s : states) {
      in_states.push_back(like(s, 1));
      in.push_back(in_states[in_states.size() - 1]);
      feeds.push_back(s);
    }
    if (mask.defined()) {
      o.mask = like(mask, -1);
      in.push_back(o.mask);
      feeds.push_back(mask);
    }
    o.unroll = unroll;
    auto [last, outputs, new_states] = K::rnn(step, in[0], in_states, o);
    CHECK(outputs.ndim() >= 3);
    Tensors out{last, outputs};
    for (const Tensor& s : new_states) out.push_back(s);
    Tensors got = K::function(in, out)(feeds);
    K::RnnResult r{got[0], got[1], {}};
    for (std::int64_t i = 2; i < got.size(); ++i) r.new_states.push_back(got[i]);
    same(r, e);
  }
};

// The sizes of Keras' own tests.
constexpr int kSamples = 4, kTime = 6, kIn = 5, kOut = 3;
const Vec kX = numbers(kSamples * kTime * kIn, 1), kH = numbers(kSamples * kOut, 2), kWi = numbers(kIn * kOut, 3),
          kWh = numbers(kOut * kOut, 4);
const Vec kMask{1, 0, 1, 1, 0, 1, /**/ 0, 0, 1, 1, 1, 0, /**/ 1, 1, 1, 1, 1, 1, /**/ 0, 0, 0, 0, 0, 0};

const Settings kSettings[] = {
    {}, {.go_backwards = true}, {.zero_output_for_mask = true}, {.go_backwards = true, .zero_output_for_mask = true}};

}  // namespace

TEST_CASE("rnn of running sums, in both directions and with masks", "[rnn]") {
  Tensor x = K::constant({{{1}, {2}, {3}, {4}}}), h = K::constant({{10}});
  auto step = [](const Tensor& in, const Tensors& states) {
    Tensor y = in + states[0];
    return K::Step{y, {y}};
  };
  auto gives = [&](const K::RnnOptions& o, const Vec& outputs, double state) {
    auto [last, y, states] = K::rnn(step, x, {h}, o);
    CHECK(values(y) == outputs);
    CHECK(values(last) == Vec{outputs.back()});
    CHECK(values(states[0]) == Vec{state});
    CHECK(K::int_shape(y) == kassette::Shape({1, 4, 1}));
  };
  auto with = [](bool backwards, const Tensor& mask, bool zero) {
    K::RnnOptions o;
    o.go_backwards = backwards;
    o.mask = mask;
    o.zero_output_for_mask = zero;
    return o;
  };
  gives(with(false, {}, false), {11, 13, 16, 20}, 20);
  gives(with(true, {}, false), {14, 17, 19, 20}, 20);
  Tensor outer = K::constant({{1, 0, 0, 1}}), inner = K::constant({{0, 1, 1, 0}});
  gives(with(false, outer, false), {11, 11, 11, 15}, 15);
  gives(with(false, outer, true), {11, 0, 0, 15}, 15);
  gives(with(true, outer, false), {14, 14, 14, 15}, 15);
  gives(with(false, inner, false), {0, 12, 15, 15}, 15);
  gives(with(false, inner, true), {0, 12, 15, 0}, 15);
  gives(with(true, inner, false), {0, 13, 15, 15}, 15);
}

TEST_CASE("rnn is the loop over rows: every direction and mask, eager, unrolled, time-major, recorded", "[rnn]") {
  Tensor wi = var64(kWi, {kIn, kOut}), wh = var64(kWh, {kOut, kOut});
  auto step = [&](const Tensor& x, const Tensors& states) {
    REQUIRE(states.size() == 1);
    Tensor y = K::dot(x, wi) + K::dot(states[0], wh);
    return K::Step{y, {y}};
  };
  auto row_step = [](const Vec& x, const Rows& h) {
    Vec y = plus(times(x, kWi), times(h[0], kWh));
    return std::pair<Vec, Rows>(y, {y});
  };
  for (Settings s : kSettings)
    for (bool masked : {false, true}) {
      Vec mask = masked ? kMask : Vec();
      Expected e = reference(row_step, kX, kSamples, kTime, {kH}, mask, s);
      Ways w{step, f64(kX, {kSamples, kTime, kIn}), {f64(kH, {kSamples, kOut})}, {}, {}, s};
      if (masked) w.mask = K::cast(f64(kMask, {kSamples, kTime}), "int32");
      w.check(e);
    }
}

TEST_CASE("rnn over one step, in both directions", "[rnn]") {
  Tensor wi = var64(kWi, {kIn, kOut}), wh = var64(kWh, {kOut, kOut});
  Vec x0 = numbers(kSamples * kIn, 5);
  for (bool backwards : {false, true}) {
    Expected e = reference(
        [](const Vec& x, const Rows& h) {
          Vec y = plus(times(x, kWi), times(h[0], kWh));
          return std::pair<Vec, Rows>(y, {y});
        },
        x0, kSamples, 1, {kH}, {}, {backwards, false});
    Ways{[&](const Tensor& x, const Tensors& h) {
           Tensor y = K::dot(x, wi) + K::dot(h[0], wh);
           return K::Step{y, {y}};
         },
         f64(x0, {kSamples, 1, kIn}),
         {f64(kH, {kSamples, kOut})},
         {},
         {},
         {backwards, false}}
        .check(e);
  }
}

TEST_CASE("rnn with states of several widths and dtypes, and constants behind them", "[rnn]") {
  Vec wide = numbers(kSamples * 2 * kOut, 6), constant = numbers(kSamples * kOut, 7);
  Tensor wi = var64(kWi, {kIn, kOut}), wh = var64(kWh, {kOut, kOut});
  auto step = [&](const Tensor& x, const Tensors& s) {
    REQUIRE(s.size() == 4);
    Tensor y = K::dot(x, wi) + K::dot(s[0], wh) * s[3];
    return K::Step{y, {y, K::concatenate({y, y}), s[2] + 1}};
  };
  for (Settings s : kSettings)
    for (bool masked : {false, true}) {
      // The constant of a sample is its row: the reference gets it by a state that stays.
      Expected e = reference(
          [](const Vec& x, const Rows& h) {
            Vec a = times(x, kWi), b = times(h[0], kWh);
            for (std::size_t i = 0; i < b.size(); ++i) a[i] += b[i] * h[3][i];
            Vec twice = a;
            twice.insert(twice.end(), a.begin(), a.end());
            return std::pair<Vec, Rows>(a, {a, twice, {h[2][0] + 1}, h[3]});
          },
          kX, kSamples, kTime, {kH, wide, Vec(kSamples, 5), constant}, masked ? kMask : Vec(), s);
      e.states.pop_back();
      Ways w{step,
             f64(kX, {kSamples, kTime, kIn}),
             {f64(kH, {kSamples, kOut}), f64(wide, {kSamples, 2 * kOut}), K::constant(5, "int32", {kSamples, 1})},
             {},
             {f64(constant, {kSamples, kOut})},
             s};
      if (masked) w.mask = K::cast(f64(kMask, {kSamples, kTime}), "bool");
      w.check(e);
    }
}

TEST_CASE("rnn without states", "[rnn]") {
  Vec x0 = numbers(3 * 5 * 8, 8), w0 = numbers(8 * 4, 9);
  Tensor w = var64(w0, {8, 4});
  for (bool backwards : {false, true}) {
    Expected e = reference([&](const Vec& x, const Rows&) { return std::pair<Vec, Rows>(times(x, w0), {}); }, x0, 3, 5,
                           {}, {}, {backwards, false});
    Ways{[&](const Tensor& x, const Tensors& states) {
           CHECK(states.empty());
           return K::Step{K::dot(x, w), {}};
         },
         f64(x0, {3, 5, 8}),
         {},
         {},
         {},
         {backwards, false}}
        .check(e);
  }
}

TEST_CASE("output and state are masked independently", "[rnn]") {
  // Two samples, four steps: the step gives back its input and counts; the second sample is masked from the third step
  // on.
  Vec x0 = numbers(2 * 4 * 5, 10);
  Vec mask{1, 1, 1, 1, 1, 1, 0, 0};
  Expected e = reference(
      [](const Vec& x, const Rows& s) {
        return std::pair<Vec, Rows>(x, {{s[0][0] + 1, s[0][1] + 1, s[0][2] + 1, s[0][3] + 1, s[0][4] + 1}});
      },
      x0, 2, 4, {Vec(10, 0)}, mask, {});
  CHECK(e.states[0] == Vec{4, 4, 4, 4, 4, 2, 2, 2, 2, 2});
  Ways{[](const Tensor& x, const Tensors& s) {
         return K::Step{x, {s[0] + 1}};
       },
       f64(x0, {2, 4, 5}),
       {f64(Vec(10, 0), {2, 5})},
       f64(mask, {2, 4}),
       {},
       {}}
      .check(e);
}

TEST_CASE("a mask is aligned with the leading axes of outputs and states of more axes", "[rnn]") {
  Vec x0 = numbers(3 * 4 * 5, 11), mask{1, 1, 1, 1, /**/ 1, 1, 1, 1, /**/ 1, 1, 1, 0},
      first{1, 1, 0, 0, /**/ 1, 1, 1, 1, /**/ 1, 1, 1, 1};
  auto repeat_op = [](const Vec& x) {
    Vec y;
    for (double v : x) y.insert(y.end(), {v, v});
    return y;
  };
  auto step = [](const Tensor& x, const Tensors& s) {
    return K::Step{K::repeat_elements(K::expand_dims(x, -1), 2, 2), {s[0], s[1] + 1.0}};
  };
  for (const Vec& m : {mask, first}) {
    Expected e = reference(
        [&](const Vec& x, const Rows& s) {
          Vec next = s[1];
          for (double& v : next) ++v;
          return std::pair<Vec, Rows>(repeat_op(x), {s[0], next});
        },
        x0, 3, 4, {Vec(3 * 6, 0.5), Vec(3 * 6 * 7, 0)}, m, {});
    Ways w{
        step, f64(x0, {3, 4, 5}), {f64(Vec(3 * 6, 0.5), {3, 6}), f64(Vec(3 * 6 * 7, 0), {3, 6, 7})}, f64(m, {3, 4}), {},
        {}};
    w.check(e);
    CHECK(K::int_shape(K::rnn(w.step, w.x, w.states).outputs) == kassette::Shape({3, 4, 5, 2}));
  }
}

TEST_CASE("axes of size 1 stay", "[rnn]") {
  auto [last, outputs, states] = K::rnn(
      [](const Tensor& x, const Tensors& s) {
        return K::Step{x + s[0], {x + s[0]}};
      },
      K::ones({1, 1, 1}), {K::ones({1, 1})});
  CHECK(K::int_shape(last) == kassette::Shape({1, 1}));
  CHECK(K::int_shape(outputs) == kassette::Shape({1, 1, 1}));
  CHECK(K::int_shape(states[0]) == kassette::Shape({1, 1}));
}

TEST_CASE("static shapes of a recorded rnn are those of its inputs and of the step", "[rnn]") {
  Tensor x = K::placeholder({K::None, 7, 2}), h = K::placeholder({3, 4}), w = K::ones({2, 4});
  auto step = [&](const Tensor& in, const Tensors& s) { return K::Step{K::expand_dims(K::dot(in, w), 1), {s[0]}}; };
  auto [last, outputs, states] = K::rnn(step, x, {h});
  CHECK(K::int_shape(last) == kassette::Shape({-1, 1, 4}));
  CHECK(K::int_shape(outputs) == kassette::Shape({-1, 7, 1, 4}));
  CHECK(K::int_shape(states[0]) == kassette::Shape({3, 4}));
  CHECK(K::int_shape(K::rnn(step, K::placeholder({5, K::None, 2}), {h}).outputs) == kassette::Shape({5, -1, 1, 4}));
}

TEST_CASE("several inputs go through time together", "[rnn]") {
  Vec a0 = numbers(2 * 3 * 2, 12), b0 = numbers(2 * 3 * 2, 13);
  Tensor a = f64(a0, {2, 3, 2}), b = f64(b0, {2, 3, 2}), h = f64(Vec(4, 0), {2, 2});
  auto step = [](const Tensors& xs, const Tensors& s) {
    REQUIRE(xs.size() == 2);
    Tensor y = xs[0] * xs[1] + s[0];
    return K::Step{y, {y}};
  };
  Vec want = values(K::cumsum(a * b, 1));
  close(values(K::rnn(step, {a, b}, {h}).outputs), want);
  Tensor p = K::placeholder({K::None, K::None, 2}, K::None, "float64"),
         q = K::placeholder({K::None, K::None, 2}, K::None, "float64");
  auto f = K::function({p, q}, {K::rnn(step, {p, q}, {h}).outputs});
  close(values(f({a, b})[0]), want);
  CHECK_THROWS_WITH(f({a, f64(numbers(8, 1), {2, 2, 2})}),
                    "rnn: inputs have 3 and 2 elements to iterate over; all must have the same number");
  CHECK_THROWS_WITH(K::rnn(step, {a, f64(numbers(8, 1), {2, 2, 2})}, {h}),
                    "rnn: inputs have 3 and 2 elements to iterate over; all must have the same number");
  CHECK_THROWS_WITH(K::rnn(step, {a, f64(numbers(18, 1), {3, 3, 2})}, {h}),
                    "rnn: inputs of shapes (2, 3, 2) and (3, 3, 2); their first two sizes must be equal");
  CHECK_THROWS_WITH(K::rnn(
                        [](const Tensor& x, const Tensors& s) {
                          return K::Step{x, {s[0]}};
                        },
                        {a, b}, {h}),
                    "rnn: inputs are 2 tensors, and the function takes one; let it take `const Tensors&`");
}

TEST_CASE("rnn without any time", "[rnn]") {
  Tensor wi = var64(kWi, {kIn, kOut}), h = f64(kH, {kSamples, kOut}), none = K::zeros({kSamples, 0, kIn}, "float64");
  auto step = [&](const Tensor& x, const Tensors& s) {
    Tensor y = K::dot(x, wi) + s[0];
    return K::Step{K::concatenate({y, y}), {y}};
  };
  auto check = [&](const Tensor& last, const Tensor& outputs, const Tensor& state) {
    CHECK(K::int_shape(outputs) == kassette::Shape({kSamples, 0, 2 * kOut}));
    CHECK(values(last) == Vec(kSamples * 2 * kOut, 0));
    CHECK(values(state) == kH);
  };
  auto r = K::rnn(step, none, {h});
  check(r.last_output, r.outputs, r.new_states[0]);
  Tensor p = K::placeholder({K::None, K::None, kIn}, K::None, "float64"), m = K::placeholder({K::None, K::None});
  K::RnnOptions masked;
  masked.mask = m;
  auto s = K::rnn(step, p, {h}, masked);
  Tensor g = K::gradients(K::sum(s.last_output) + K::sum(s.outputs) + K::sum(s.new_states[0]), {wi})[0];
  Tensors o = K::function({p, m}, {s.last_output, s.outputs, s.new_states[0], g})({none, K::zeros({kSamples, 0})});
  check(o[0], o[1], o[2]);
  CHECK(values(o[3]) == Vec(kIn * kOut, 0));
}

TEST_CASE("lengths of the samples mask the times beyond, in both directions", "[rnn]") {
  Tensor wi = var64(kWi, {kIn, kOut}), wh = var64(kWh, {kOut, kOut});
  Tensor x = f64(kX, {kSamples, kTime, kIn}), h = f64(kH, {kSamples, kOut});
  auto step = [&](const Tensor& in, const Tensors& s) {
    Tensor y = K::dot(in, wi) + K::dot(s[0], wh);
    return K::Step{y, {y}};
  };
  Tensor lengths = K::constant({6, 2, 0, 4}, "int32");
  Tensor mask =
      f64({1, 1, 1, 1, 1, 1, /**/ 1, 1, 0, 0, 0, 0, /**/ 0, 0, 0, 0, 0, 0, /**/ 1, 1, 1, 1, 0, 0}, {kSamples, kTime});
  for (bool backwards : {false, true}) {
    K::RnnOptions by_mask, by_length;
    by_mask.go_backwards = by_length.go_backwards = backwards;
    by_mask.mask = mask;
    by_length.input_length = lengths;
    Vec want = values(K::rnn(step, x, {h}, by_mask).outputs);
    close(values(K::rnn(step, x, {h}, by_length).outputs), want);
    Tensor p = K::placeholder({K::None, K::None, kIn}, K::None, "float64"),
           n = K::placeholder({K::None}, K::None, "int32");
    by_length.input_length = n;
    close(values(K::function({p, n}, {K::rnn(step, p, {h}, by_length).outputs})({x, lengths})[0]), want);
    K::RnnOptions both = by_mask;  // a mask goes before
    both.input_length = K::constant({1, 1, 1, 1}, "int32");
    close(values(K::rnn(step, x, {h}, both).outputs), want);
    by_mask.time_major = by_length.time_major = true;
    by_mask.mask = K::transpose(mask);
    by_length.input_length = lengths;
    close(values(K::rnn(step, Ways::swapped(x), {h}, by_length).outputs),
          values(K::rnn(step, Ways::swapped(x), {h}, by_mask).outputs));
  }
}

TEST_CASE("Step and RnnResult print", "[rnn]") {
  std::ostringstream os;
  os << K::Step{} << ' ' << K::RnnResult{};
  CHECK(os.str() ==
        "Step(output=Tensor(), states=[]) RnnResult(last_output=Tensor(), outputs=Tensor(), new_states=[])");
}

namespace {
K::Step keep(const Tensor& x, const Tensors& states) { return {x, states}; }
K::Step keep_list(const Tensors& xs, const Tensors& states) { return {xs[0], states}; }
}  // namespace

TEST_CASE("functions, lambdas with auto and std::function are steps", "[rnn]") {
  Tensor x = K::ones({2, 3, 1}), h = K::zeros({2, 1});
  CHECK(values(K::rnn(keep, x, {h}).last_output) == Vec{1, 1});
  CHECK(values(K::rnn(&keep, x, {h}).last_output) == Vec{1, 1});
  CHECK(values(K::rnn(keep_list, {x, x}, {h}).last_output) == Vec{1, 1});
  CHECK(values(K::rnn([](auto in, auto s) { return K::Step{in + s[0], s}; }, x, {h}).last_output) == Vec{1, 1});
  std::function<K::Step(const Tensors&, const Tensors&)> f = keep_list;
  CHECK(values(K::rnn(f, {x, x}, {h}).last_output) == Vec{1, 1});
  CHECK(values(K::rnn(
                   [n = 0](const Tensor& in, const Tensors& s) mutable {
                     return K::Step{in * ++n, s};
                   },
                   x, {h})
                   .outputs) == Vec{1, 2, 3, 1, 2, 3});
}

TEST_CASE("over no steps a step may read its values: it is called on zeros, for shape and dtype alone", "[rnn]") {
  Tensor x = K::zeros({2, 0, 3}, "float64"), start = K::constant({{1, 2}, {3, 4}}, "float64");
  int calls = 0;
  auto [last, outputs, states] = K::rnn(
      [&](const Tensor& in, const Tensors& s) {
        ++calls;
        CHECK(in.shape() == kassette::Shape{2, 3});
        double total = K::eval(K::sum(in)).item<double>();  // of zeros
        CHECK(total == 0);
        Tensor h = s[0] + total;
        if (in(0, 0).item<double>() > 0) return K::Step{h, {h + 1}};  // a step of values may branch
        return K::Step{K::concatenate({h, h}, 1), {h}};
      },
      x, {start});
  CHECK(calls >= 1);
  CHECK(last.shape() == kassette::Shape{2, 4});
  CHECK(last.dtype() == "float64");
  CHECK(values(last) == Vec(8, 0.0));
  CHECK(outputs.shape() == kassette::Shape{2, 0, 4});
  CHECK(values(states[0]) == Vec{1, 2, 3, 4});
}

TEST_CASE("map_fn stacks each of several results, eagerly, in a function and with gradients", "[rnn]") {
  auto fn = [](const Tensor& v) { return Tensors{v * v, K::cast(K::sum(v), "int32")}; };
  const Tensor x = K::variable({{1, 2}, {3, 4}, {5, 6}}), p = K::placeholder({K::None, 2});
  auto check = [](const Tensor& squares, const Tensor& sums) {
    CHECK(values(squares) == Vec{1, 4, 9, 16, 25, 36});
    CHECK(squares.shape() == kassette::Shape{3, 2});
    CHECK(sums.dtype() == "int32");
    CHECK(values(sums) == Vec{3, 7, 11});
  };
  const Tensors now = K::map_fn(fn, x, {K::None, "int32"});
  check(now[0], now[1]);
  CHECK(values(K::gradients(K::sum(now[0]), {x})[0]) == Vec{2, 4, 6, 8, 10, 12});

  const Tensors later = K::map_fn(fn, p, {"float32", "int32"});
  const Tensors found = K::function({p}, {later[0], later[1], K::gradients(K::sum(later[0]), {p})[0]})({x});
  check(found[0], found[1]);
  CHECK(values(found[2]) == Vec{2, 4, 6, 8, 10, 12});

  auto pair = [](const Tensors& v) { return Tensors{v[0] + v[1], v[0] - v[1]}; };
  const std::vector<kassette::DType> dtypes(2, "float32");
  const Tensors both = K::map_fn(pair, {x, x * 2}, dtypes);
  CHECK(values(both[0]) == Vec{3, 6, 9, 12, 15, 18});
  CHECK(values(both[1]) == Vec{-1, -2, -3, -4, -5, -6});

  CHECK_THROWS_WITH(K::map_fn(fn, x, {"float32"}),
                    "map_fn: fn returned 2 tensors; it must return 1, as many as there are dtypes");
  CHECK_THROWS_WITH(K::map_fn(fn, x, {"float32", "int64"}),
                    "map_fn: fn returned int32; it must be int64, the dtype asked for");
  CHECK_THROWS_WITH(K::map_fn(fn, x, K::DTypes(nullptr, 0)),
                    "map_fn: dtypes is an empty list; there must be one for each result");
}

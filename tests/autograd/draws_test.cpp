// tests/autograd/draws_test.cpp - draws in functions and in the bodies of control flow: which random numbers follow
// from a seed there.
#include <kassette/backend.h>

#include <functional>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

using Rows = std::vector<std::vector<double>>;
constexpr int kWidth = 32;

Tensor ones(std::initializer_list<kassette::Dim> shape) { return K::constant(1, "float32", shape); }
Tensor dropped(const Tensor& x) { return K::dropout(x, 0.5, K::None, 3); }

Rows rows(const Tensor& t) {
  std::vector<double> all = values(K::reshape(K::eval(t), {-1}));
  Rows found;
  for (std::size_t i = 0; i < all.size(); i += kWidth)
    found.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                       all.begin() + static_cast<std::ptrdiff_t>(i + kWidth));
  return found;
}

/// The series of a seed: the results that a function which only draws returns at its calls.
const Rows& series() {
  static const Rows found = [] {
    Tensor x = K::placeholder({kWidth});
    auto f = K::function({x}, {dropped(x)});
    Rows r;
    for (int i = 0; i < 40; ++i) r.push_back(rows(f({ones({kWidth})})[0])[0]);
    return r;
  }();
  return found;
}
Rows part(std::size_t begin, std::size_t n) {
  return Rows(series().begin() + static_cast<std::ptrdiff_t>(begin),
              series().begin() + static_cast<std::ptrdiff_t>(begin + n));
}

K::Step drop_step(const Tensor& x, const Tensors& states) { return {dropped(x), {states[0] + dropped(x)}}; }

/// The results of a function of x eagerly, and in two calls of a K::function made from it with known and with unknown
/// shapes.
struct Seen {
  Rows eager, symbolic, first, second, unknown;
};
Seen look(const Tensor& at, const std::function<Tensor(const Tensor&)>& f) {
  Seen seen;
  seen.eager = rows(f(at));
  seen.symbolic = rows(K::symbolic([&] { return f(K::variable(at)); })());
  Tensor x = K::placeholder(at.shape());
  auto g = K::function({x}, {f(x)});
  seen.first = rows(g({at})[0]);
  seen.second = rows(g({at})[0]);
  Tensor any = K::placeholder(K::None, at.ndim());
  seen.unknown = rows(K::function({any}, {f(any)})({at})[0]);
  return seen;
}
void check_series(const Tensor& at, std::size_t n, const std::function<Tensor(const Tensor&)>& f) {
  Seen seen = look(at, f);
  CHECK(seen.eager == part(0, n));
  CHECK(seen.symbolic == part(0, n));
  CHECK(seen.first == part(0, n));
  CHECK(seen.second == part(n, n));
  CHECK(seen.unknown == part(0, n));
}

}  // namespace

TEST_CASE("the series of a seed has no draw twice", "[draws]") {
  CHECK(std::set<std::vector<double>>(series().begin(), series().end()).size() == series().size());
  CHECK(rows(dropped(ones({kWidth}))) == part(0, 1));
}

TEST_CASE("a seeded draw in a branch gives the series of its seed", "[draws]") {
  Tensor one = ones({kWidth});
  check_series(one, 1, [](const Tensor& x) {
    return K::switch_(
        K::sum(x) > 0, [&] { return dropped(x); }, x);
  });
  check_series(one, 1, [](const Tensor& x) {
    return K::switch_(
        K::sum(x) < 0, [&] { return x; }, [&] { return dropped(x); });
  });
  check_series(one, 1, [](const Tensor& x) {
    return K::switch_(
        K::sum(x) > 0,
        [&] {
          return K::switch_(
              K::sum(x) > 1, [&] { return dropped(x); }, x);
        },
        x);
  });
  Tensor x = K::placeholder({kWidth});
  Tensor y = K::in_train_phase([&] { return dropped(x); }, x);
  auto f = K::function({x, K::learning_phase()}, {y}),
       g = K::function({x, K::learning_phase()}, {K::in_train_phase([&] { return dropped(x); }, x)});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows(f({one, 1})[0]) == part(i, 1));
    CHECK(rows(g({one, 1})[0]) == part(i, 1));
  }
}

TEST_CASE("a seeded draw in a loop goes on with the series of its seed from step to step", "[draws][loops]") {
  check_series(ones({4, kWidth}), 4,
               [](const Tensor& x) { return K::map_fn([](const Tensor& e) { return dropped(e); }, x); });
  // Digits of base 4 keep the masks of the steps apart.
  auto digits = [](bool right) {
    return [right](const Tensor& x) {
      auto add = [](const Tensor& sum, const Tensor& e) { return 4 * sum + dropped(e); };
      Tensor zero = K::zeros_like(K::gather(x, 0));
      return right ? K::foldr(add, x, zero) : K::foldl(add, x, zero);
    };
  };
  std::vector<double> expected(kWidth, 0);
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t i = 0; i < kWidth; ++i) expected[i] = 4 * expected[i] + series()[t][i];
  for (bool right : {false, true}) {
    Seen seen = look(ones({3, kWidth}), digits(right));
    CHECK(seen.eager == Rows{expected});
    CHECK(seen.first == Rows{expected});
    CHECK(seen.unknown == Rows{expected});
    CHECK(seen.second != seen.first);
  }
}

TEST_CASE("a seeded draw in rnn gives one series, unrolled, backwards and with checkpoints too", "[draws][rnn]") {
  for (bool unroll : {false, true})
    for (bool backwards : {false, true}) {
      INFO("unroll " << unroll << ", backwards " << backwards);
      Tensor at = ones({4, 3, kWidth});  // time first
      auto run = [&](const Tensor& x) {
        K::RnnOptions options;
        options.unroll = unroll;
        options.go_backwards = backwards;
        options.time_major = true;
        Tensor zero = K::constant(0, "float32", {3, kWidth});
        return K::rnn(drop_step, x, {zero}, options).outputs;
      };
      Tensor batch = ones({3, kWidth});
      Tensor px = K::placeholder({3, kWidth});
      auto alone = K::function({px}, {dropped(px)});
      Rows expected;
      for (int i = 0; i < 8; ++i)
        for (const std::vector<double>& r : rows(alone({batch})[0])) expected.push_back(r);
      Rows now(expected.begin(), expected.begin() + 12), next(expected.begin() + 12, expected.end());
      Tensor x = K::placeholder({4, 3, kWidth});
      auto f = K::function({x}, {run(x)});
      CHECK(rows(run(at)) == now);
      CHECK(rows(f({at})[0]) == now);
      CHECK(rows(f({at})[0]) == next);
      K::CheckpointScope scope(2);
      CHECK(rows(run(K::variable(at))) == now);
    }
}

TEST_CASE("nested bodies give one series", "[draws][loops]") {
  auto inner = [](const Tensor& row) { return K::map_fn([](const Tensor& e) { return dropped(e); }, row); };
  check_series(ones({3, 2, kWidth}), 6, [&](const Tensor& x) { return K::map_fn(inner, x); });
  check_series(ones({2, 3, 2, kWidth}), 12, [&](const Tensor& x) {
    return K::map_fn([&](const Tensor& rows) { return K::map_fn(inner, rows); }, x);
  });
  check_series(ones({3, kWidth}), 3, [](const Tensor& x) {
    return K::map_fn(
        [](const Tensor& e) {
          return K::switch_(
              K::sum(e) > 0, [&] { return dropped(e); }, e);
        },
        x);
  });
  check_series(ones({3, kWidth}), 3, [](const Tensor& x) {
    return K::switch_(
        K::sum(x) > 0, [&] { return K::map_fn([](const Tensor& e) { return dropped(e); }, x); }, x);
  });
  // A function that is called in a body.
  Tensor p = K::placeholder({K::None, kWidth});
  auto f = K::function({p}, {K::map_fn([](const Tensor& e) { return dropped(e); }, p)});
  Tensor x = K::placeholder({3, 2, kWidth});
  auto g = K::function({x}, {K::map_fn([&](const Tensor& e) { return f({e})[0]; }, x)});
  CHECK(rows(g({ones({3, 2, kWidth})})[0]) == part(0, 6));
}

TEST_CASE("loops of other lengths go on with the series", "[draws][loops]") {
  Tensor x = K::placeholder({K::None, kWidth});
  auto f = K::function({x}, {K::map_fn([](const Tensor& e) { return dropped(e); }, x)});
  std::size_t at = 0;
  for (int n : {3, 1, 0, 5, 2}) {
    CHECK(rows(f({ones({n, kWidth})})[0]) == part(at, static_cast<std::size_t>(n)));
    at += static_cast<std::size_t>(n);
  }
}

TEST_CASE("two draws of one seed in a body are equal, of two seeds are not, and without a seed every one is new",
          "[draws]") {
  auto both = [](kassette::Scalar a, kassette::Scalar b) {
    return [a, b](const Tensor& e) {
      return K::concatenate({K::dropout(e, 0.5, K::None, a), K::dropout(e, 0.5, K::None, b)}, 0);
    };
  };
  Tensor x = K::placeholder({2, kWidth});
  Tensor at = ones({2, kWidth});
  auto run = [&](kassette::Scalar a, kassette::Scalar b) {
    return rows(K::function({x}, {K::map_fn(both(a, b), x)})({at})[0]);
  };
  Rows same = run(3, 3), other = run(3, 4), free = run(K::None, K::None);
  CHECK((same[0] == same[1] && same[2] == same[3] && same[0] != same[2]));
  CHECK((other[0] != other[1] && other[2] != other[3] && other[0] == same[0]));
  CHECK(std::set<std::vector<double>>(free.begin(), free.end()).size() == 4);
  CHECK(run(K::None, K::None) != free);
}

TEST_CASE("gradients of both orders see the masks of the forward pass", "[draws][loops]") {
  // d/dx sum(m^2 x^3) = 3 m^2 x^2, and once more 6 m^2 x; m is 0 or 2, x is 1.
  auto cubes = [](const Tensor& e) { return K::square(dropped(e)) * e; };
  auto check = [&](const Tensor& y, const Tensor& x, const std::function<Tensors(const Tensors&)>& value) {
    Tensor g = K::gradients(K::sum(y), {x})[0];
    Tensor h = K::gradients(K::sum(g), {x})[0];
    Tensors out = value({y, g, h});
    std::vector<double> v = values(out[0]), first = values(out[1]), second = values(out[2]);
    int kept = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      CHECK((v[i] == 0 || v[i] == 4));
      CHECK(first[i] == 3 * v[i]);
      CHECK(second[i] == 6 * v[i]);
      kept += v[i] > 0;
    }
    CHECK((kept > 0 && kept < static_cast<int>(v.size())));
  };
  auto body = [&](const Tensor& x, int way) {
    if (way == 0) return K::map_fn(cubes, x);
    if (way == 1)
      return K::switch_(
          K::sum(x) > 0, [&] { return cubes(x); }, x);
    return K::map_fn([&](const Tensor& e) { return K::map_fn(cubes, e); }, K::expand_dims(x, 1));
  };
  Tensor at = ones({3, kWidth});
  for (int way : {0, 1, 2}) {
    INFO("body " << way);
    Tensor v = K::variable(at), x = K::placeholder({3, kWidth});
    check(body(v, way), v, [](const Tensors& t) { return t; });
    check(body(x, way), x, [&](const Tensors& t) {
      auto f = K::function({x}, t);
      f({at});
      return f({at});
    });
    K::CheckpointScope scope(2);
    check(body(v, way), v, [](const Tensors& t) { return t; });
  }
}

TEST_CASE("a draw that a function uses is drawn anew at each call; what was computed from one, or detached, is a value",
          "[draws]") {
  Tensor p = K::placeholder({kWidth}), zero = K::constant(0, "float32", {kWidth});
  Tensor noise = K::random_normal({kWidth}), held = K::eval(noise), detached = noise.detach(), twice = noise * 2;
  CHECK(values(held) == values(noise));
  auto f = K::function({p}, {p + noise, noise, p + held, p + detached, p + twice});
  Tensors a = f({zero}), b = f({zero});
  CHECK(values(a[0]) == values(a[1]));  // one draw in a call
  CHECK(values(a[0]) != values(b[0]));
  CHECK(values(a[0]) != values(noise));
  for (std::int64_t i : {2, 3}) {
    CHECK(values(a[i]) == values(noise));
    CHECK(values(b[i]) == values(noise));
  }
  CHECK(values(a[4]) == values(twice));
  CHECK(values(b[4]) == values(twice));
  Tensor seeded = dropped(ones({kWidth}));  // the series goes on from the value that it has
  auto g = K::function({p}, {p + seeded});
  CHECK(rows(seeded) == part(0, 1));
  CHECK(rows(g({zero})[0]) == part(1, 1));
  CHECK(rows(g({zero})[0]) == part(2, 1));
}

TEST_CASE("a call of a function whose loop draws and which throws then has drawn nothing", "[draws][loops]") {
  Tensor x = K::placeholder({K::None, kWidth}), i = K::placeholder({}, K::None, "int32");
  Tensor y = K::map_fn([](const Tensor& e) { return dropped(e); }, x);
  Tensor picked = K::gather(y, i);  // the loop runs before
  auto f = K::function({x, i}, {y, picked});
  for (int steps : {3, 5}) CHECK_THROWS_AS(f({ones({steps, kWidth}), 99}), kassette::ValueError);
  CHECK(rows(f({ones({3, kWidth}), 0})[0]) == part(0, 3));
  CHECK_THROWS_AS(f({ones({2, kWidth}), 99}), kassette::ValueError);
  CHECK(rows(f({ones({4, kWidth}), 0})[0]) == part(3, 4));
}

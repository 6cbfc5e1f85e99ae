// tests/ops/shape/at_test.cpp - x.at(i, j, ...): order, gradients, updates of variables in place, and what is refused.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <vector>

#include "core/fast_paths.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;
Tensor ints(const Operand& v) { return K::constant(v, "int32"); }

/// The address of a variable's elements.
const void* home(const Tensor& w) { return place<float>(K::identity(w)); }

}  // namespace

TEST_CASE("at() leaves x as it is, and get() is x(...)", "[indexing]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}), y = x.at(all, 1).set(0);
  CHECK(values(x) == Doubles{1, 2, 3, 4, 5, 6});
  CHECK(values(y) == Doubles{1, 0, 3, 4, 0, 6});
  CHECK(values(x.at(1, ints({2, 0})).get()) == Doubles{6, 4});
  CHECK(values(x.at("..., 0").add({10, 20})) == Doubles{11, 2, 3, 24, 5, 6});
  CHECK(values(x.at(x > 4).set(-1)) == Doubles{1, 2, 3, 4, -1, -1});
  CHECK(values(x.at(0).divide(2)) == Doubles{0.5, 1, 1.5, 4, 5, 6});
  CHECK(values(x.at(ints({0, 0})).divide({{2, 1, 1}, {2, 1, 3}})) == Doubles{0.25, 2, 1, 4, 5, 6});
  auto some = x.at(ints({0, -1}), ints({1, 1}));  // keeps its indices
  CHECK(values(some.max(5.5)) == Doubles{1, 5.5, 3, 4, 5.5, 6});
}

TEST_CASE("values at one element come one after another, for any number of threads", "[indexing]") {
  // (1 + 1e8) - 1e8 is 0 in float32, 1 + (1e8 - 1e8) is 1
  Tensor v = K::constant({1e8, -1e8, 1, 1e8}), x = K::zeros({3}) + 1;
  CHECK(values(x.at(ints({2, 2, 2, 1})).add(v)) == Doubles{1, 1e8, 1});
  CHECK(values(x.at(ints({2, 2, 0, 2})).set(v)) == Doubles{1, 1, 1e8});
  const int threads = num_threads();
  Tensor at = K::cast(K::arange(300000, None, 1, "int64") * 7919 % 50000, int32), table = K::zeros({50000}),
         add = K::sin(K::arange(300000, None, 1, "float32"));
  set_num_threads(1);
  const Doubles one = values(table.at(at).add(add)), last = values(table.at(at).set(add));
  set_num_threads(3);
  CHECK(values(table.at(at).add(add)) == one);
  CHECK(values(table.at(at).set(add)) == last);
  set_num_threads(threads);
}

TEST_CASE("indices of each integer type, also from the end, are the same elements", "[indexing]") {
  const Tensor x = K::constant({{1, 2}, {3, 4}, {5, 6}}), v = K::constant({{10, 20}, {30, 40}});
  const Doubles set{30, 40, 3, 4, 10, 20}, add{31, 42, 3, 4, 15, 26};
  for (const char* dtype : {"int8", "int32", "uint32", "int64"}) {
    INFO(dtype);
    const Tensor front = K::constant({2, 0}, dtype);
    CHECK(values(x.at(front).set(v)) == set);
    CHECK(values(x.at(front).add(v)) == add);
    if (std::string(dtype)[0] == 'u') continue;
    const Tensor end = K::constant({-1, 0}, dtype);
    CHECK(values(x.at(end).set(v)) == set);
    CHECK(values(x.at(all, end).add({{100, 200}})) == Doubles{201, 102, 203, 104, 205, 106});
    CHECK_THROWS_WITH(x.at(K::constant({-4, 0}, dtype)).set(0), "index: index -4 is out of range for axis 0 of size 3");
  }
  CHECK(values(x.at(-1).set({7, 8})) == Doubles{1, 2, 3, 4, 7, 8});
  CHECK(values(x.at(1).get()) == Doubles{3, 4});
  CHECK(values(x.at(1).divide(2)) == Doubles{1, 2, 1.5, 2, 5, 6});
  CHECK_THROWS_WITH(x.at(3), "index: 3 is out of range for axis 0 of a tensor of shape (3, 2)");
}

TEST_CASE("a variable of indices may change after it was read", "[indexing]") {
  const Tensor i = K::variable(K::constant({0, 2}, "int32"), "int32"), x = K::variable({1, 2, 3}),
               y = K::sum(x.at(i).multiply({10, 100}));
  K::update(i, {1, 1});
  CHECK(y.item<float>() == 312);
  CHECK(values(K::gradients(y, {x})[0]) == Doubles{10, 1, 100});
}

TEST_CASE("gradients of values that meet in one element", "[indexing]") {
  Tensor x = K::constant({2, 3, 4}, "float64"), v = K::constant({5, 6, 7, 8}, "float64"), i = ints({0, 2, 0, 2});
  Tensor p = K::placeholder(3, None, "float64"), q = K::placeholder(4, None, "float64");
  const Tensor weights = K::constant({10, 100, 1000}, "float64");
  auto check = [&](const Tensor& y, const Tensor& value, const Doubles& dx, const Doubles& dv) {
    auto g = K::function({p, q}, K::gradients(K::sum(y * weights), {p, q}))({x, value});
    CHECK(values(g[0]) == dx);
    CHECK(values(g[1]) == dv);
  };
  check(p.at(i).set(q), v, {0, 100, 0}, {0, 0, 10, 1000});
  check(p.at(i).add(q), v, {10, 100, 1000}, {10, 1000, 10, 1000});
  check(p.at(i).multiply(q), v, {350, 100, 48000}, {140, 32000, 100, 24000});
  // one of the factors is 0, then both
  const Tensor zeros = K::constant({0, 0, 7, 0}, "float64");
  check(p.at(i).multiply(q), zeros, {0, 100, 0}, {140, 0, 0, 0});
  check(p.at(i).max(q), v, {0, 100, 0}, {0, 0, 10, 1000});
  // equal ones share
  check(p.at(i).min(q), K::constant({2, 3, 2, 3}, "float64"), {10.0 / 3, 100, 0}, {10.0 / 3, 500, 10.0 / 3, 500});
}

TEST_CASE("a function updates elements of a variable in its memory", "[indexing][update]") {
  Tensor w = K::variable(K::zeros({1000, 8})), i = K::placeholder(None, 1, "int32"), g = K::placeholder(None, 2);
  auto add = K::function({i, g}, {}, {K::update(w, w.at(i).add(g * 2))});
  const void* before = home(w);
  fast_path_counts.on = true;
  const std::int64_t taken = times_taken(FastPath::updated_in_place);
  add({ints({3, 999, 3}), K::ones({3, 8})});
  CHECK(home(w) == before);
  CHECK(times_taken(FastPath::updated_in_place) == taken + 1);
  fast_path_counts.on = false;
  CHECK(values(w[3]) == Doubles(8, 4));
  CHECK(values(w[999]) == Doubles(8, 2));
  CHECK(K::get_value(K::sum(w)).item<float>() == 48);
  // an index out of range changes nothing
  CHECK_THROWS_AS(add({ints({0, 1000}), K::ones({2, 8})}), ValueError);
  CHECK(values(w[0]) == Doubles(8));
  // a value that is held elsewhere is not changed
  Tensor held = K::identity(w);
  add({ints({5}), K::ones({1, 8})});
  CHECK(values(held[5]) == Doubles(8));
  CHECK(values(w[5]) == Doubles(8, 2));
}

TEST_CASE("an update that reads the variable elsewhere too is right", "[indexing][update]") {
  Tensor w = K::variable({1, 2, 3, 4});
  K::symbolic([&] { return K::function({}, {}, {K::update(w, w.at("::-1").add(w))}); })()({});
  CHECK(values(w) == Doubles{5, 5, 5, 5});
  Tensor a = K::variable({1, 2}), b = K::variable({10, 20});
  K::symbolic([&] {
    return K::function({}, {}, {K::update(a, b.at(0).set(a[1])), K::update(b, a.at(1).set(7))});
  })()({});
  CHECK(values(a) == Doubles{2, 20});
  CHECK(values(b) == Doubles{1, 7});
  K::update(a, a.at(0).max(5));  // eager
  CHECK(values(a) == Doubles{5, 20});
}

TEST_CASE("values that do not fit are refused", "[indexing][bad]") {
  Tensor x = K::zeros({2, 3});
  CHECK_THROWS_WITH(x.at(0).set({1, 2}),
                    "at: v of shape (2,) does not broadcast to (3,), the shape of the indexed elements");
  CHECK_THROWS_WITH(x.at(0).set(K::constant(1, "int32")), "at: x is float32, the values int32; cast them (K::cast)");
  CHECK_THROWS_WITH(x.at(ints({0, 2})).add(1), "index: index 2 is out of range for axis 0 of size 2");
  CHECK_THROWS_WITH(x.at(0, 3).add(1), "index: 3 is out of range for axis 1 of a tensor of shape (2, 3)");
  CHECK_THROWS_WITH(K::cast(x, "int32").at(0).divide(2),
                    "at: x is int32, whose elements cannot be divided; cast it (K::cast)");
  CHECK_THROWS_WITH(K::placeholder(None, None).at(0).set(1),
                    "index: a tensor of unknown rank; the rank of all must be known here");
  CHECK_THROWS_AS(Tensor().at(0), ValueError);
  CHECK_THROWS_AS(x.at(0).set(Tensor()), ValueError);
}

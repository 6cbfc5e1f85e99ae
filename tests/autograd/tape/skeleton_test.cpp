// tests/autograd/tape/skeleton_test.cpp - recording, backward passes and runs of programs: the basics.
#include <kassette/backend.h>

#include <cmath>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::number;
using kassette::test::values;
using Vec = std::vector<double>;

TEST_CASE("gradients of a product, first to third order") {
  auto before = kassette::totals();
  {
    Tensor w = K::variable(2, "float64");
    Tensor l = w * w * w * w;
    Tensor g = K::gradients(l, {w})[0];
    CHECK(number(g) == 32);
    Tensor gg = K::gradients(g, {w})[0];
    CHECK(number(gg) == 48);
    Tensor ggg = K::gradients(gg * 1.0, {w})[0];
    CHECK(number(ggg) == 48);
  }
  auto after = kassette::totals();
  CHECK(before.live_nodes == after.live_nodes);
  CHECK(before.live_bytes == after.live_bytes);
  CHECK(before.live_tensors == after.live_tensors);
  CHECK(before.saved_bytes == after.saved_bytes);
}

TEST_CASE("an update between forward and backward does no harm") {
  Tensor w = K::variable(2, "float64");
  Tensor l = w * w * w;
  K::update(w, 5);
  CHECK(number(K::gradients(l, {w})[0]) == 12);
  CHECK(number(w) == 5);
}

TEST_CASE("a function on a placeholder with unknown rows, replayed at two sizes") {
  Tensor w = K::variable({1, 2, 3}, "float64"), x = K::placeholder({K::None, 3}, K::None, "float64");
  Tensor y = kassette::Tensor(x * w) * x;
  Tensor loss = K::sum(y);
  Tensors g = K::gradients(loss, {w, x});
  CHECK(g[1].shape() == kassette::Shape({-1, 3}));
  auto f = K::function({x}, {loss, g[0], g[1]});
  Tensors o = f({{{1, 1, 1}, {2, 2, 2}}});
  CHECK(number(o[0]) == 30);
  CHECK(values(o[1]) == Vec{5, 5, 5});
  CHECK(values(o[2]) == Vec{2, 4, 6, 4, 8, 12});
  o = f({{{1, 0, 2}}});
  CHECK(values(o[1]) == Vec{1, 0, 4});
}

TEST_CASE("updates of a function read the entry snapshot; adds accumulate, the last set wins") {
  Tensor a = K::variable(1, "float64"), p = K::placeholder({}, K::None, "float64");
  auto f = K::function({p}, {a * a + p}, {{a, a * 2.0}});
  CHECK(number(f({10})[0]) == 11);
  CHECK(number(a) == 2);
  K::symbolic([&] {
    auto f2 = K::function({}, {a}, {K::update_add(a, 1.0), K::update_add(a, a)});
    CHECK(number(f2({})[0]) == 2);
    return 0;
  })();
  CHECK(number(a) == 5);
  auto f3 = K::function({}, {}, {{a, 7.0}, {a, a + 1.0}});
  f3({});
  CHECK(number(a) == 6);
  K::update_add(a, 1.0);
  CHECK(number(a) == 7);
  // Pairs and ops of one variable in the order of the list, too.
  Tensor more = K::symbolic([&] { return K::update_add(a, 1.0); })(),
         less = K::symbolic([&] { return K::update_sub(a, 2.0); })();
  K::function({}, {}, {{a, 50.0}, more, less})({});
  CHECK(number(a) == 49);
  K::function({}, {}, {more, {a, 30.0}, less})({});
  CHECK(number(a) == 28);
  K::function({}, {}, {more, less, {a, 7.0}})({});
  CHECK(number(a) == 7);
  Tensor uo = K::symbolic([&] { return K::update_add(a, 2.0); })();
  CHECK(number(a) == 7);
  auto fo = K::function({}, {uo});
  fo({});
  CHECK(number(fo({})[0]) == 11);
  CHECK(number(a) == 11);
}

TEST_CASE("sgd in place leaves no second copy and matches the formula") {
  std::vector<float> big(100000, 2.0f);
  Tensor w = K::variable(big), g = K::placeholder({K::None});
  auto f = K::function({g}, {K::sum(g)}, {{w, w - 0.5 * g}});
  auto f2 = K::function({g}, {K::sum(g)}, K::Updates(K::symbolic([&] { return K::update_sub(w, g * 0.25); })()));
  Tensor step = K::constant(big);
  const float* where = w.data<float>();
  f({step});
  CHECK(w.data<float>() == where);
  CHECK(w.data<float>()[99999] == 1.0f);
  f2({step});
  CHECK(w.data<float>() == where);
  CHECK(w.data<float>()[5] == 0.5f);
}

// tests/ops/collective/reduce_job_test.cpp - the two ops of a reduction in the background, by one rank.
#include <kassette/backend.h>

#include "devices/ranks.h"
#include "ops/collective/reduce_job.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using kassette::test::values;
using Vec = std::vector<double>;

TEST_CASE("a reduction that was started gives all of its tensors, and their gradients", "[reduce_job]") {
  devices::RankGroup& alone = devices::all_ranks();
  REQUIRE(alone.size == 1);
  auto reduced = [&](const Tensors& xs) {
    const Tensor token = all_reduce_start(xs, Tensor(), Reduction::sum, alone, /*in_background=*/true, {});
    return all_reduce_wait(token, xs, Reduction::sum, alone);
  };
  const Tensor a = K::variable({1, 2, 3}, "float64"), b = K::variable({{4, 5}}, "float64");
  const Tensors eager = reduced({a, b});
  REQUIRE(eager.size() == 2);
  CHECK(values(eager[0]) == Vec{1, 2, 3});
  CHECK(values(eager[1]) == Vec{4, 5});
  const Tensor p = K::placeholder({3}, K::None, "float64"), q = K::placeholder({1, 2}, K::None, "float64");
  const Tensors ys = reduced({p, q});
  const Function f = K::function({p, q}, {ys[0], ys[1], K::gradients(K::sum(ys[0] * ys[0]) + K::sum(ys[1]), {p})[0]});
  for (int call = 0; call < 3; ++call) {
    const Tensors got = f({a, b});
    CHECK(values(got[0]) == Vec{1, 2, 3});
    CHECK(values(got[1]) == Vec{4, 5});
    CHECK(values(got[2]) == Vec{2, 4, 6});
  }
}

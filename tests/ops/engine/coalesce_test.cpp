// tests/ops/engine/coalesce_test.cpp - neighbouring axes are joined where the strides of all arrays allow it.
#include "ops/engine/coalesce.h"

#include <vector>

#include "tests/catch.h"

using namespace kassette;
using namespace kassette::ops;

namespace {

using Numbers = std::vector<std::int64_t>;

/// Axes along which two arrays are walked.
struct Pair {
  int rank = 0;
  std::int64_t dims[kMaxRank], a[kMaxRank], b[kMaxRank];
  Pair(const Numbers& sizes, const Numbers& of_a, const Numbers& of_b) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      push_coalesced(rank, dims, sizes[i], 2, [&](int k) { return k == 0 ? Along{a, of_a[i]} : Along{b, of_b[i]}; });
  }
  Numbers first(const std::int64_t* list) const { return Numbers(list, list + rank); }
};

/// The offsets of all elements, row-major.
Numbers offsets(const Numbers& dims, const Numbers& strides) {
  Numbers all{0};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Numbers next;
    for (std::int64_t at : all)
      for (std::int64_t c = 0; c < dims[i]; ++c) next.push_back(at + c * strides[i]);
    all = next;
  }
  return all;
}

Numbers broadcast(const TensorSpec& x, const TensorSpec& out) {
  Numbers strides(out.rank);
  broadcast_strides(x, out, strides.data());
  return strides;
}

}  // namespace

TEST_CASE("an array repeats along the axes that it lacks or has one element of", "[shaping]") {
  // np.broadcast_to(np.zeros(x, 'b'), out).strides; NumPy's stride along an axis of one element does not matter.
  const TensorSpec out(float32, {2, 3, 4});
  CHECK(broadcast({float32, {2, 3, 4}}, out) == Numbers{12, 4, 1});
  CHECK(broadcast({float32, {2, 1, 4}}, out) == Numbers{4, 0, 1});
  CHECK(broadcast({float32, {3, 1}}, out) == Numbers{0, 1, 0});
  CHECK(broadcast({float32, {4}}, out) == Numbers{0, 0, 1});
  CHECK(broadcast({float32, {}}, out) == Numbers{0, 0, 0});
  CHECK(broadcast({float32, {1, 3, 1}}, {float32, {1, 3, 0}}) == Numbers{0, 1, 0});
}

TEST_CASE("axes are joined if all arrays allow it, and those of one element are dropped", "[shaping]") {
  const Pair rows({2, 3, 4}, {12, 4, 1}, {12, 4, 1});
  CHECK(rows.first(rows.dims) == Numbers{24});
  CHECK(rows.first(rows.a) == Numbers{1});
  const Pair repeats({2, 3, 4}, {12, 4, 1}, {0, 0, 1});  // one array repeats along the first two
  CHECK(repeats.first(repeats.dims) == Numbers{6, 4});
  CHECK(repeats.first(repeats.a) == Numbers{4, 1});
  CHECK(repeats.first(repeats.b) == Numbers{0, 1});
  const Pair turned({2, 3, 4}, {12, 4, 1}, {1, 2, 6});
  CHECK(turned.first(turned.dims) == Numbers{2, 3, 4});
  const Pair backwards({2, 3}, {-3, -1}, {6, 2});
  CHECK(backwards.first(backwards.dims) == Numbers{6});
  CHECK(backwards.first(backwards.a) == Numbers{-1});
  CHECK(backwards.first(backwards.b) == Numbers{2});
  const Pair back_and_forth({2, 3}, {-3, 1}, {6, 2});
  CHECK(back_and_forth.first(back_and_forth.dims) == Numbers{2, 3});
  const Pair ones({1, 5, 1}, {7, 1, 3}, {9, 0, 9});
  CHECK(ones.first(ones.dims) == Numbers{5});
  CHECK(Pair({1, 1}, {1, 1}, {1, 1}).rank == 0);
}

TEST_CASE("joined axes visit the same elements in the same order", "[shaping]") {
  const Numbers strides{0, 1, 2, 3, 4, 6, 12};
  for (std::int64_t s0 : strides)
    for (std::int64_t s1 : strides)
      for (std::int64_t s2 : strides)
        for (std::int64_t middle : {1, 3}) {
          const Numbers dims{2, middle, 4}, a{s0, s1, s2}, b{4 * middle, 4, 1};
          const Pair p(dims, a, b);
          INFO(s0 << ", " << s1 << ", " << s2 << " of sizes 2, " << middle << ", 4");
          CHECK(offsets(p.first(p.dims), p.first(p.a)) == offsets(dims, a));
          CHECK(offsets(p.first(p.dims), p.first(p.b)) == offsets(dims, b));
        }
}

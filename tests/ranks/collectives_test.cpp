// tests/ranks/collectives_test.cpp - the result of each collective, against what every rank can compute alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "tests/ranks/ranks.h"

namespace kassette::test {
namespace {

const std::vector<std::vector<std::int64_t>> kShapes{{},     {1}, {5}, {0}, {2, 3}, {3, 0, 2}, {1, 2, 1, 2, 1, 2, 1, 2},
                                                     {70, 3}};
constexpr DType kNumbers[] = {uint8, uint16, uint32,  uint64,   int8,    int16,
                              int32, int64,  float16, bfloat16, float32, float64};

double combined(D::Reduction how, std::int64_t i, int size, DType dtype) {
  auto value = [&](int r) {
    const double v = value_of(r, i);
    return dtype == bool_ ? v > 0 : dtype.is_unsigned() ? std::abs(v) : v;
  };
  double all = value(0);
  for (int r = 1; r < size; ++r) {
    const double v = value(r);
    all = how == D::max ? std::max(all, v) : how == D::min ? std::min(all, v) : how == D::prod ? all * v : all + v;
  }
  return how == D::mean ? all / size : all;
}

/// What an integer dtype makes of a product that does not fit: it wraps around.
double wrapped(double v, DType dtype) {
  if (dtype.is_float() || dtype.size() == 8 || dtype == bool_) return v;
  const double range = std::ldexp(1.0, 8 * dtype.size());
  double m = std::fmod(v, range);
  if (m < 0) m += range;
  return !dtype.is_unsigned() && m >= range / 2 ? m - range : m;
}

}  // namespace

TEST_CASE("ranks count from 0, and init gives the same world again", "[ranks]") {
  const D::World world = D::init();
  CHECK(D::init() == world);
  CHECK(world.rank() >= 0);
  CHECK(world.rank() < world.size());
  CHECK(world.local_rank() == world.rank());  // one machine
  const std::vector<double> all = numbers(D::all_gather(K::constant(world.rank(), int32)));
  REQUIRE(static_cast<int>(all.size()) == world.size());
  for (int r = 0; r < world.size(); ++r) CHECK(all[static_cast<std::size_t>(r)] == r);
  world.barrier();
}

TEST_CASE("split makes worlds by colour, ordered by key", "[ranks]") {
  const D::World world;
  const D::World part = world.split(world.rank() % 2, -world.rank());
  const int peers = (world.size() + 1 - world.rank() % 2) / 2;
  CHECK(part.size() == peers);
  CHECK(part.rank() == peers - 1 - world.rank() / 2);
  const std::vector<double> members = numbers(D::all_gather(K::constant(world.rank(), int32), part));
  for (std::size_t i = 0; i + 1 < members.size(); ++i) CHECK(members[i] == members[i + 1] + 2);
  const double sum = numbers(D::all_reduce(K::constant(world.rank(), int32), D::sum, part))[0];
  CHECK(sum == std::accumulate(members.begin(), members.end(), 0.0));
  CHECK(message_of([&] { world.split(-1); }) == "split: colour is -1; it must not be negative");
}

TEST_CASE("all_reduce is what one rank computes from all values", "[ranks]") {
  const D::World world;
  for (D::Reduction how : {D::sum, D::mean, D::max, D::min, D::prod})
    for (DType dtype : kNumbers) {
      if (how == D::mean && !dtype.is_float()) continue;
      for (const auto& dims : kShapes) {
        const Tensor x = tensor_of(world.rank(), dims, dtype), y = D::all_reduce(x, how);
        CHECK(y.shape() == x.shape());
        CHECK(y.dtype() == dtype);
        const std::vector<double> got = numbers(y);
        for (std::size_t i = 0; i < got.size(); ++i) {
          double expected = wrapped(combined(how, static_cast<std::int64_t>(i), world.size(), dtype), dtype);
          if (how == D::mean) CHECK(got[i] == Approx(expected).epsilon(dtype.size() == 2 ? 0.01 : 1e-6).margin(1e-7));
          else CHECK(got[i] == expected);
        }
      }
    }
}

TEST_CASE("all_reduce of bool: max is any, min is all, a sum is refused on every rank", "[ranks]") {
  const D::World world;
  const Tensor x = tensor_of(world.rank(), {2, 7}, bool_);
  for (D::Reduction how : {D::max, D::min}) {
    const std::vector<double> got = numbers(D::all_reduce(x, how));
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == combined(how, static_cast<std::int64_t>(i), world.size(), bool_));
  }
  CHECK(message_of([&] { D::all_reduce(x); }) ==
        "all_reduce: the sum of bool; it must be of numbers, or max or min, which are any and all; cast it (K::cast)");
  CHECK(message_of([&] { D::all_reduce(K::constant(1, int32), D::mean); }) ==
        "all_reduce: the mean of int32; it must be of floats; cast it (K::cast)");
}

TEST_CASE("the extremes of floats do not depend on the order of ranks", "[ranks]") {
  const D::World world;
  if (world.size() < 2) return;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const bool first = world.rank() == 0;
  for (DType dtype : {float16, bfloat16, float32, float64}) {
    const Tensor x =
        K::cast(K::constant({first ? nan : 1., first ? 1. : nan, first ? -0. : 0., first ? 0. : -0., first ? -inf : 2.},
                            float64),
                dtype);
    const std::vector<double> most = numbers(D::all_reduce(x, D::max)), least = numbers(D::all_reduce(x, D::min));
    CHECK((std::isnan(most[0]) && std::isnan(most[1]) && std::isnan(least[0]) && std::isnan(least[1])));
    CHECK((!std::signbit(most[2]) && !std::signbit(most[3]) && std::signbit(least[2]) && std::signbit(least[3])));
    CHECK((most[4] == 2 && least[4] == -inf));
  }
}

TEST_CASE("all ranks hold the same bits of a sum that rounds", "[ranks]") {
  const D::World world;
  for (std::int64_t n : {3, 1000, 100000}) {
    const Tensor y = D::all_reduce(K::cast(smooth(world.rank(), {n}), float32) * 1e-3);
    const std::vector<double> all = numbers(D::all_gather(y));
    for (int r = 1; r < world.size(); ++r) CHECK(std::equal(all.begin(), all.begin() + n, all.begin() + r * n));
  }
}

TEST_CASE("half types are summed in float32", "[ranks]") {
  const D::World world;
  // 2048 + 1 + 1 + ... loses every 1 where the sum itself is a float16.
  const Tensor x = K::cast(K::constant(world.rank() == 0 ? 2048 : 1, float32), float16);
  double expected = 2048 + world.size() - 1;
  expected = numbers(K::cast(K::constant(expected, float32), float16))[0];
  CHECK(numbers(D::all_reduce(x))[0] == expected);
}

TEST_CASE("a list of many dtypes and sizes is reduced as its tensors are one by one", "[ranks]") {
  const D::World world;
  Tensors xs;
  for (const auto& dims : kShapes)
    for (DType dtype : {float32, int32, float16, float64}) {
      const Tensor x = tensor_of(world.rank(), dims, dtype);
      // float32 cannot hold these int32 and float64: they would change if the list were sent in one dtype.
      xs.push_back(dtype == int32 ? x + 16777217 : dtype == float64 ? x / 3.0 : x);
    }
  xs.push_back(tensor_of(world.rank(), {3000, 1000}, float32));
  xs.push_back(tensor_of(world.rank(), {3000, 2000}, float32));  // more than one buffer
  const Tensors together = D::all_reduce(xs);
  REQUIRE(together.size() == xs.size());
  for (std::int64_t i = 0; i < xs.size(); ++i) {
    CHECK(together[i].dtype() == xs[i].dtype());
    CHECK(numbers(together[i]) == numbers(D::all_reduce(xs[i])));
  }
  CHECK(D::all_reduce(Tensors()).empty());
  xs = Tensors();
  empty_cache(rank_device());  // the emulated device takes longer for each run, the more memory it has
}

TEST_CASE("broadcast gives root's values, and variables take them", "[ranks]") {
  const D::World world;
  for (int root = 0; root < world.size(); ++root) {
    for (DType dtype : {bool_, int8, float16, float64})
      for (const auto& dims : kShapes) {
        const Tensor x = tensor_of(world.rank(), dims, dtype);
        CHECK(numbers(D::broadcast(x, root)) == numbers(tensor_of(root, dims, dtype)));
        CHECK(numbers(x) == numbers(tensor_of(world.rank(), dims, dtype)));
      }
    const Tensor w = K::variable(tensor_of(world.rank(), {2, 3}, float32)),
                 b = K::variable(tensor_of(world.rank(), {4}, float64));
    D::broadcast({w, b}, root);
    CHECK(numbers(w) == numbers(tensor_of(root, {2, 3}, float32)));
    CHECK(numbers(b) == numbers(tensor_of(root, {4}, float64)));
  }
  const std::string message = message_of([&] { D::broadcast(K::zeros({1}), world.size()); });
  CHECK(message.find("broadcast: root is ") == 0);
}

TEST_CASE("all_gather joins what the ranks have, equal or not", "[ranks]") {
  const D::World world;
  for (DType dtype : {bool_, int64, bfloat16, float32})
    for (int kind = 0; kind < 3; ++kind) {
      auto rows = [&](int r) { return std::int64_t(kind == 0 ? 2 : kind == 1 ? r : (r == 1 ? 3 : 0)); };
      std::vector<double> expected;
      for (int r = 0; r < world.size(); ++r) {
        const std::vector<double> part = numbers(tensor_of(r, {rows(r), 3}, dtype));
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const Tensor y = D::all_gather(tensor_of(world.rank(), {rows(world.rank()), 3}, dtype));
      CHECK(numbers(y) == expected);
      CHECK(y.ndim() == 2);
      CHECK(y.shape()[1] == 3);
    }
}

TEST_CASE("shard and all_gather undo each other", "[ranks]") {
  const D::World world;
  for (std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 12, 100}) {
    const Tensor x = tensor_of(0, {n, 2}, float32), mine = D::shard(x);
    CHECK(mine.shape()[0] >= n / world.size());
    CHECK(mine.shape()[0] <= n / world.size() + 1);
    CHECK(numbers(D::all_gather(mine)) == numbers(x));
  }
  CHECK(message_of([&] { D::shard(K::constant(1.)); }) == "shard: x is a scalar, which has no rows");
}

TEST_CASE("reduce_scatter gives each rank its rows of all_reduce", "[ranks]") {
  const D::World world;
  for (D::Reduction how : {D::sum, D::mean, D::max, D::min, D::prod})
    for (DType dtype : {int32, float16, float32, float64})
      for (std::int64_t n : {0, 1, 3, 8, 13}) {
        if (how == D::mean && !dtype.is_float()) continue;
        const Tensor x = tensor_of(world.rank(), {n, 2}, dtype);
        CHECK(numbers(D::reduce_scatter(x, how)) == numbers(D::shard(D::all_reduce(x, how))));
      }
}

TEST_CASE("all_to_all transposes the blocks of all ranks", "[ranks]") {
  const D::World world;
  const int n = world.size();
  for (DType dtype : {uint8, float16, float64}) {
    const std::vector<double> got = numbers(D::all_to_all(tensor_of(world.rank(), {2 * n, 3}, dtype)));
    std::vector<double> expected;
    for (int r = 0; r < n; ++r) {
      const std::vector<double> theirs = numbers(tensor_of(r, {2 * n, 3}, dtype));
      expected.insert(expected.end(), theirs.begin() + 6 * world.rank(), theirs.begin() + 6 * (world.rank() + 1));
    }
    CHECK(got == expected);
  }
  if (n > 1) CHECK(message_of([&] { D::all_to_all(K::zeros({n + 1})); }).find("all_to_all: ") == 0);
}

TEST_CASE("collectives in a function run at each call, with what is fed", "[ranks][function]") {
  const D::World world;
  const Tensor x = K::placeholder({None, 2}), w = K::variable(K::constant({{1., 2.}}));
  const Function f =
      K::function({x}, {D::all_reduce(x * w), D::all_gather(x), K::sum(D::reduce_scatter(x)), D::broadcast(x, 0)});
  for (std::int64_t n : {1, 4, 3, 0}) {
    const Tensor fed = tensor_of(world.rank(), {n, 2}, float32);
    const Tensors got = f({fed});
    CHECK(numbers(got[0]) == numbers(D::all_reduce(fed * w)));
    CHECK(numbers(got[1]) == numbers(D::all_gather(fed)));
    CHECK(numbers(got[2]) == numbers(K::sum(D::reduce_scatter(fed))));
    CHECK(numbers(got[3]) == numbers(D::broadcast(fed, 0)));
  }
  const Function step = K::function({x}, {K::sum(x)}, {{w, w + K::reshape(K::sum(D::all_reduce(x), 0), {1, 2})}});
  const std::vector<double> before = numbers(w);
  step({tensor_of(world.rank(), {2, 2}, float32)});
  const std::vector<double> added = numbers(K::sum(D::all_reduce(tensor_of(world.rank(), {2, 2}, float32)), 0));
  CHECK(numbers(w) == std::vector<double>{before[0] + added[0], before[1] + added[1]});
}

TEST_CASE("collectives inside a loop run at each step", "[ranks][function]") {
  const D::World world;
  const Tensor xs = tensor_of(world.rank(), {4, 2}, float32);
  const Tensor eager = K::map_fn([](const Tensor& row) { return D::all_reduce(row, D::max); }, xs);
  CHECK(numbers(eager) == numbers(D::all_reduce(xs, D::max)));
  const Tensor fed = K::placeholder({None, 2});
  const Function f = K::function({fed}, {K::map_fn([](const Tensor& row) { return D::all_reduce(row, D::max); }, fed)});
  CHECK(numbers(f({xs})[0]) == numbers(eager));
}

TEST_CASE("all_reduce of what is no longer needed computes in its memory, if nothing else refers to it",
          "[ranks][collectives]") {
  const D::World world;
  if (world.size() == 1 || rank_device() != cpu) return;
  const std::vector<std::int64_t> dims{300, 500};
  std::vector<double> expected(static_cast<std::size_t>(count(dims)));
  for (int r = 0; r < world.size(); ++r)
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += value_of(r, static_cast<std::int64_t>(i));
  const Tensor values = tensor_of(world.rank(), dims, float32), w = K::variable(values, float32);
  /// Whether the sum of x, which is given up, is where x was.
  auto in_place = [&](Tensor x) {
    const void* before = x.data<float>();
    const Tensor sum = D::all_reduce(std::move(x));
    CHECK(numbers(sum) == expected);
    return static_cast<const void*>(sum.data<float>()) == before;
  };
  CHECK(in_place(values + 0.0));
  CHECK(in_place(w * 1.0));  // on the tape, where its value is not needed
  // A list, of which the small tensor is packed with another.
  Tensors list;
  list.push_back(values + 0.0);
  list.push_back(K::constant(2., float32, {2}) + 0.0);
  list.push_back(K::constant(3., float32, {3}) + 0.0);
  const void *first = list[0].data<float>(), *second = list[1].data<float>();
  const Tensors sums = D::all_reduce(std::move(list));
  CHECK(static_cast<const void*>(sums[0].data<float>()) == first);
  CHECK(static_cast<const void*>(sums[1].data<float>()) == second);
  CHECK(numbers(sums[0]) == expected);
  CHECK(numbers(sums[1]) == std::vector<double>(2, 2.0 * world.size()));
  CHECK(numbers(sums[2]) == std::vector<double>(3, 3.0 * world.size()));
  // Another handle, a variable, a part of another tensor, memory of others, what the tape reads.
  const Tensor kept = values + 0.0;
  CHECK(!in_place(kept));
  CHECK(numbers(kept) == numbers(values));
  CHECK(!in_place(Tensor(w)));
  CHECK(numbers(w) == numbers(values));
  const Tensor whole = K::concatenate({values, values}, 0);
  CHECK(!in_place(whole[kassette::slice(0, 300)]));
  CHECK(numbers(whole[kassette::slice(0, 300)]) == numbers(values));
  std::vector<float> mine;
  for (double v : numbers(values)) mine.push_back(static_cast<float>(v));
  const std::vector<float> before = mine;
  CHECK(!in_place(kassette::borrow(mine, Shape{300, 500}, [] {})));
  CHECK(mine == before);
  Tensor e = K::exp(w * 0.0);
  const Tensor loss = K::sum(D::all_reduce(std::move(e)) * 1.0);  // the adjoint of exp reads its result
  CHECK(numbers(K::gradients(loss, {w})[0]) == std::vector<double>(expected.size(), 0.0));
  // A gradient through it, and a function of it.
  const Tensor g = K::gradients(K::sum(D::all_reduce(w * 2.0)), {w})[0];
  CHECK(numbers(g) == std::vector<double>(expected.size(), 2.0 * world.size()));
  const Tensor z = D::all_reduce(w * 1.0);
  CHECK(numbers(K::function({}, {z})({})[0]) == expected);
}

}  // namespace kassette::test

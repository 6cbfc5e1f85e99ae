// tests/ops/random/random_test.cpp - philox, keys and draws.
#include "ops/random/random.h"

#include <cmath>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <kassette/runtime.h>

#include "core/half.h"
#include "ops/engine/dims.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/worst.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;

namespace {

PhiloxWords of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) { return {{a, b, c, d}}; }
bool same(const PhiloxWords& a, const PhiloxWords& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// A tensor of that key, off the tape.
Tensor fixed_key(std::uint64_t seed, std::uint64_t draw) {
  Tensor t = empty_tensor(TensorSpec(int64, {2}));
  RandomKey key{seed, draw};
  std::memcpy(Access::desc(t).data(), &key, sizeof key);
  return t;
}
std::vector<std::uint8_t> bytes_of(const Tensor& t) {
  const TensorDesc& b = Access::desc(t);
  auto* p = reinterpret_cast<const std::uint8_t*>(b.data());
  return {p, p + b.bytes()};
}
/// Word number i of a draw, by Note [Order of random words].
std::uint32_t random_word(const RandomKey& key, std::int64_t i) {
  std::uint64_t u = static_cast<std::uint64_t>(i);
  return random_block(key, u / kGroupWords * kGroupBlocks + u % kGroupBlocks).w[u / kGroupBlocks % 4];
}
/// 64-bit number i of a draw.
std::uint64_t random_word64(const RandomKey& key, std::int64_t i) {
  std::uint64_t u = static_cast<std::uint64_t>(i);
  PhiloxWords b = random_block(key, u / 32 * kGroupBlocks + u % kGroupBlocks);
  unsigned k = u / kGroupBlocks % 2 * 2;
  return std::uint64_t(b.w[k]) << 32 | b.w[k + 1];
}
Tensor dims_of(std::initializer_list<Dim> dims) { return dims_tensor(Dims(dims), "test"); }

struct Moments {
  double mean = 0, deviation = 0, skew = 0, kurtosis = 0, low = INFINITY, high = -INFINITY;
  explicit Moments(const Tensor& t) {
    auto v = t.to_vector<double>();
    double n = static_cast<double>(v.size()), m2 = 0;
    for (double x : v) {
      mean += x / n;
      low = std::min(low, x);
      high = std::max(high, x);
    }
    for (double x : v) {
      double d = x - mean;
      m2 += d * d / n;
      skew += d * d * d / n;
      kurtosis += d * d * d * d / n;
    }
    deviation = std::sqrt(m2);
    skew /= m2 * deviation;
    kurtosis /= m2 * m2;
  }
};

constexpr std::int64_t kMany = 1000003;  // not a multiple of a group

}  // namespace

TEST_CASE("philox gives the known answers of Random123", "[random]") {
  CHECK(same(philox(of(0, 0, 0, 0), 0, 0), of(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)));
  CHECK(same(philox(of(~0u, ~0u, ~0u, ~0u), ~0u, ~0u), of(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd)));
  CHECK(same(philox(of(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), 0xa4093822, 0x299f31d0),
             of(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)));
}

TEST_CASE("an element's words depend on key and index alone", "[random]") {
  RandomKey key{0x123456789abcdef0u, 0x1122334455667788u};
  test::at_every_level([&](Level) {
    // Blocks beyond 2^32 and a cut group.
    for (std::int64_t first : {std::int64_t(0), std::int64_t(640), (std::int64_t(1) << 34) - 64}) {
      std::vector<std::uint32_t> words(197);
      KASSETTE_PICK(random_loops).words(key, first, 197, RandomForm{}, words.data());
      int wrong = 0;
      for (int i = 0; i < 197; ++i) wrong += words[static_cast<std::size_t>(i)] != random_word(key, first + i);
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("draws have the same bits for every CPU level and number of threads", "[random]") {
  Tensor key = fixed_key(5, 3), dims = dims_of({70001});
  Tensor mask_dims = dims_of({1, 3});
  test::SettingsScope restore;
  for (DType dtype : {float16, bfloat16, float32, float64}) {
    Draw draw{key, dims, dtype};
    Tensor x = random_uniform({key, dims_of({1001, 3}), dtype}, -1, 1);
    Tensor low = scalar_tensor(-3, dtype), high = scalar_tensor(7, dtype);
    auto all = [&] {
      std::vector<std::vector<std::uint8_t>> r;
      for (const Tensor& t : {random_uniform(draw), random_uniform(draw, -3, 7), random_normal(draw),
                              random_normal(draw, 2, 0.5), truncated_normal(draw), random_between(draw, low, high),
                              bernoulli(draw, 0.3), dropout(x, key, Tensor(), 0.4), dropout(x, key, mask_dims, 0.4)})
        r.push_back(bytes_of(t));
      return r;
    };
    set_cpu_level(kLevels[0]);
    set_num_threads(1);
    auto expected = all();
    for (Level level : kLevels)
      for (int threads : {1, 2, 3}) {
        if (!set_cpu_level(level)) continue;
        set_num_threads(threads);
        INFO(dtype.name() << " " << level_name(level) << " " << threads);
        CHECK(all() == expected);
      }
  }
}

TEST_CASE("a shorter draw is the beginning of a longer one", "[random]") {
  Tensor key = fixed_key(9, 1);
  for (DType dtype : {float32, float64, float16}) {
    auto longer = random_normal({key, dims_of({300}), dtype}).to_vector<double>();
    for (int n : {1, 15, 16, 31, 33, 63, 64, 65, 128, 299}) {
      auto v = random_normal({key, dims_of({n}), dtype}).to_vector<double>();
      CHECK(std::equal(v.begin(), v.end(), longer.begin()));
    }
  }
}

TEST_CASE("uniforms are even and never reach the upper bound", "[random]") {
  Tensor key = fixed_key(1, 1), dims = dims_of({kMany});
  for (DType dtype : {float16, bfloat16, float32, float64}) {
    INFO(dtype.name());
    Moments m(random_uniform({key, dims, dtype}));
    CHECK(std::fabs(m.mean - 0.5) < (dtype == bfloat16 ? 3e-3 : 1e-3));
    CHECK(std::fabs(m.deviation - std::sqrt(1 / 12.0)) < (dtype == bfloat16 ? 3e-3 : 1e-3));
    CHECK(m.low >= 0);
    CHECK(m.high < 1);
    Moments shifted(random_uniform({key, dims, dtype}, -2, -1));
    CHECK(shifted.low >= -2);
    CHECK(shifted.high < -1);
  }
  // float32 has one number in [1, 1.0000001): all samples are it.
  Moments narrow(random_uniform({key, dims_of({1000}), float32}, 1, 1.0000001));
  CHECK(narrow.low == 1);
  CHECK(narrow.high == 1);
  CHECK(Moments(random_uniform({key, dims_of({1000}), float32}, 3, 3)).high == 3);
}

TEST_CASE("uniforms fill their buckets evenly", "[random]") {
  auto v = random_uniform({fixed_key(77, 1), dims_of({kMany}), float32}).to_vector<float>();
  std::vector<double> count(1000);
  for (float x : v) count[static_cast<std::size_t>(x * 1000)] += 1;
  double chi = 0, expected = kMany / 1000.0;
  for (double c : count) chi += (c - expected) * (c - expected) / expected;
  CHECK(chi > 999 - 5 * std::sqrt(2 * 999.0));
  CHECK(chi < 999 + 5 * std::sqrt(2 * 999.0));
}

TEST_CASE("normals have the moments of the normal distribution", "[random]") {
  Tensor dims = dims_of({4000000});
  for (DType dtype : {float16, float32, float64}) {
    INFO(dtype.name());
    Moments m(random_normal({fixed_key(2, 1), dims, dtype}));
    CHECK(std::fabs(m.mean) < 3e-3);
    CHECK(std::fabs(m.deviation - 1) < 3e-3);
    CHECK(std::fabs(m.skew) < 6e-3);
    CHECK(std::fabs(m.kurtosis - 3) < 0.02);
    CHECK(m.high > 4.5);
    CHECK(m.low < -4.5);
    CHECK(m.high < 7);
  }
  Moments m(random_normal({fixed_key(2, 1), dims, float32}, -10, 5));
  CHECK(std::fabs(m.mean + 10) < 0.015);
  CHECK(std::fabs(m.deviation - 5) < 0.015);
}

TEST_CASE("normals are Box and Muller's to four ulp", "[random]") {
  RandomKey key{11, 4};
  const double right_angle = std::acos(0.0);
  auto ulps = [](double exact, double given, double ulp) { return std::fabs(exact - given) / ulp; };
  auto v = random_normal({fixed_key(11, 4), dims_of({64000}), float32}).to_vector<float>();
  double worst = 0;
  for (std::size_t i = 0; i < 64000; ++i) {
    if (i / 16 % 2) continue;
    std::uint32_t a = random_word(key, static_cast<std::int64_t>(i)),
                  b = random_word(key, static_cast<std::int64_t>(i) + 16);
    float u = static_cast<float>(static_cast<std::int32_t>(a >> 1)) * 0x1p-31f + 0x1p-32f;
    double r = std::sqrt(-2 * std::log(static_cast<double>(u)));
    double t = static_cast<double>(static_cast<float>(static_cast<std::int32_t>(b << 2))) * 0x1p-32 * right_angle;
    double sign = b >> 30 & 1 ? -1 : 1, x = sign * r * std::cos(t), y = sign * r * std::sin(t);
    if (b >> 31) std::swap(x, y);
    for (auto [exact, given] : {std::pair<double, double>(x, v[i]), std::pair<double, double>(y, v[i + 16])}) {
      float size = std::fabs(static_cast<float>(exact));
      worst = test::worst_of(worst, ulps(exact, given, std::nextafterf(size, 100) - size));
    }
  }
  CHECK(worst < 4);
  auto w = random_normal({fixed_key(11, 4), dims_of({32000}), float64}).to_vector<double>();
  worst = 0;
  for (std::size_t i = 0; i < 32000; ++i) {
    if (i / 16 % 2) continue;
    std::uint64_t a = random_word64(key, static_cast<std::int64_t>(i)),
                  b = random_word64(key, static_cast<std::int64_t>(i) + 16);
    long double u = static_cast<long double>((static_cast<double>(a >> 11) + 0.5) * 0x1p-53);
    long double r = std::sqrt(-2 * std::log(u)),
                t = static_cast<long double>(static_cast<double>(b >> 11) * 0x1p-53 - 0.5);
    t *= std::acos(0.0L);
    long double sign = b & 2 ? -1 : 1, x = sign * r * std::cos(t), y = sign * r * std::sin(t);
    if (b & 1) std::swap(x, y);
    for (auto [exact, given] :
         {std::pair<long double, double>(x, w[i]), std::pair<long double, double>(y, w[i + 16])}) {
      double size = std::fabs(static_cast<double>(exact));
      worst = test::worst_of(worst, static_cast<double>(std::fabs(exact - given)) / (std::nextafter(size, 100) - size));
    }
  }
  CHECK(worst < 4);
}

TEST_CASE("truncated normals lie within two deviations", "[random]") {
  for (DType dtype : {float32, float64}) {
    INFO(dtype.name());
    Moments m(truncated_normal({fixed_key(3, 1), dims_of({4000000}), dtype}));
    CHECK(std::fabs(m.mean) < 2e-3);
    CHECK(std::fabs(m.deviation - 0.87962566) < 1e-3);
    CHECK(m.low > -2);
    CHECK(m.high < 2);
    CHECK(m.high > 1.9999);
  }
  // The share within one deviation is erf(1/sqrt 2) / erf(sqrt 2).
  auto v = truncated_normal({fixed_key(3, 2), dims_of({kMany}), float32}).to_vector<float>();
  double inside = 0;
  for (float x : v) inside += std::fabs(x) < 1;
  CHECK(std::fabs(inside / kMany - std::erf(std::sqrt(0.5)) / std::erf(std::sqrt(2.0))) < 2e-3);
}

TEST_CASE("bernoulli has the same mask in every dtype", "[random]") {
  Tensor key = fixed_key(4, 1), dims = dims_of({10007});
  std::vector<double> expected = bernoulli({key, dims, float32}, 0.25).to_vector<double>();
  double mean = 0;
  for (double x : expected) mean += x / 10007;
  CHECK(std::fabs(mean - 0.25) < 0.02);
  for (DType dtype : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float64})
    CHECK(std::vector<double>(bernoulli({key, dims, dtype}, 0.25).to_vector<double>()) == expected);
  CHECK(Moments(bernoulli({key, dims, float32}, 0)).high == 0);
  CHECK(Moments(bernoulli({key, dims, int32}, 0)).high == 0);
  CHECK(Moments(bernoulli({key, dims, float32}, 1)).low == 1);
  CHECK(Moments(bernoulli({key, dims, bool_}, 1)).low == 1);
  CHECK(Moments(bernoulli({key, dims, float32}, NAN)).high == 0);
}

TEST_CASE("integers cover their range", "[random]") {
  Tensor key = fixed_key(6, 1);
  for (DType dtype : {uint8, uint16, uint32, uint64, int8, int16, int32, int64}) {
    Tensor t = random_integers({key, dims_of({6000}), dtype}, 3, 9);
    std::vector<int> count(9);
    for (std::int64_t v : t.to_vector<std::int64_t>()) {
      REQUIRE((v >= 3 && v < 9));
      ++count[static_cast<std::size_t>(v)];
    }
    for (int v = 3; v < 9; ++v) CHECK(std::abs(count[static_cast<std::size_t>(v)] - 1000) < 150);
  }
  auto v = random_integers({key, dims_of({1001}), int64}, 0, 1000).to_vector<std::int64_t>();
  int wrong = 0;
  for (std::int64_t i = 0; i < 1001; ++i)
    wrong += v[static_cast<std::size_t>(i)] !=
             static_cast<std::int64_t>(static_cast<unsigned __int128>(random_word64({6, 1}, i)) * 1000 >> 64);
  CHECK(wrong == 0);
  Moments wide(random_integers({key, dims_of({10000}), int64}, INT64_MIN, INT64_MAX));
  CHECK(wide.low < -9e18);
  CHECK(wide.high > 9e18);
}

TEST_CASE("empty draws and scalars work", "[random]") {
  Tensor key = fixed_key(1, 1);
  for (DType dtype : {float16, float32, float64}) {
    CHECK(random_normal({key, dims_of({0, 3}), dtype}).shape() == Shape{0, 3});
    CHECK(random_uniform({key, dims_of({}), dtype}).shape() == Shape{});
    CHECK(dropout(random_uniform({key, dims_of({0}), dtype}), key, Tensor(), 0.5).size() == 0);
  }
}

TEST_CASE("a source counts its draws", "[random]") {
  Tensor a = next_key(7), b = next_key(7);
  CHECK(std::vector<std::int64_t>(a.to_vector<std::int64_t>()) == std::vector<std::int64_t>{7, 1});
  CHECK(bytes_of(a) == bytes_of(b));
  CHECK(Access::desc(a).node->in()[0].node->cell->draws == 1);
}

TEST_CASE("seeds of the global generator are reproducible and distinct", "[random]") {
  set_random_seed(42);
  std::set<std::vector<std::uint8_t>> keys;
  std::vector<std::uint8_t> first = bytes_of(next_key(None));
  for (int i = 0; i < 1000; ++i) keys.insert(bytes_of(next_key(None)));
  CHECK(keys.size() == 1000);
  CHECK(keys.count(first) == 0);
  set_random_seed(42);
  CHECK(bytes_of(next_key(None)) == first);
  set_random_seed(43);
  CHECK(bytes_of(next_key(None)) != first);
}

TEST_CASE("threads take distinct seeds", "[random]") {
  std::vector<std::vector<std::vector<std::uint8_t>>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&mine] {
      for (int i = 0; i < 200; ++i) mine.push_back(bytes_of(next_key(None)));
    });
  for (auto& t : threads) t.join();
  std::set<std::vector<std::uint8_t>> all;
  for (auto& mine : taken) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == 800);
}

TEST_CASE("derived keys differ by key, step and source", "[random]") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
  for (std::uint64_t seed : {1, 2})
    for (std::uint64_t draw : {1, 2})
      for (std::uint64_t step = 0; step < 20; ++step)
        for (std::uint64_t source = 0; source < 5; ++source) {
          RandomKey key{seed, draw}, out, again;
          derive_key(&key, step, 20, source, KeySource(), &out);
          derive_key(&key, step, 20, source, KeySource(), &again);
          CHECK((out.seed == again.seed && out.draw == again.draw));
          keys.insert({out.seed, out.draw});
        }
  CHECK(keys.size() == 2 * 2 * 20 * 5);
}

TEST_CASE("derived keys of a seed count the evaluations of the body", "[random]") {
  std::vector<std::uint64_t> numbers, counted;
  for (std::uint64_t draw = 1; draw <= 2; ++draw)
    for (std::uint64_t step = 0; step < 3; ++step) {
      NodeKey node{99, draw, false}, steps{99, 1 + 3 * (draw - 1), true};
      RandomKey out;
      derive_key(&node, step, 3, 4, {true, 7, 1, 0}, &out);
      CHECK(out.seed == 7);
      numbers.push_back(out.draw);
      derive_key(&steps, step, 3, 4, {true, 7, 1, 0}, &out);
      counted.push_back(out.draw);
    }
  CHECK(numbers == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
  CHECK(counted == numbers);
}

TEST_CASE("dropout keeps, scales and zeroes", "[random]") {
  Tensor key = fixed_key(8, 1);
  for (DType dtype : {float16, bfloat16, float32, float64}) {
    Tensor x = random_uniform({key, dims_of({100003}), dtype}, 1, 2);
    auto in = x.to_vector<double>(), out = dropout(x, key, Tensor(), 0.25).to_vector<double>();
    double dropped = 0;
    int wrong = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      dropped += out[i] == 0;
      wrong += out[i] != 0 && std::fabs(out[i] - in[i] / 0.75) > (dtype.size() == 2 ? 2e-2 : 1e-6);
    }
    CHECK(wrong == 0);
    CHECK(std::fabs(dropped / 100003 - 0.25) < 0.006);
  }
  Tensor bad = as_tensor({INFINITY, NAN, 1, INFINITY, NAN, 1, INFINITY, NAN, 1, INFINITY, NAN, 1}, float32, "test");
  for (int i = 0; i < 3; ++i) {
    auto out = dropout(bad, fixed_key(9, static_cast<std::uint64_t>(i)), Tensor(), 0.5).to_vector<float>();
    int zeros = 0;
    for (float v : out) zeros += v == 0;
    CHECK(zeros > 0);
  }
}

TEST_CASE("a mask of ones and sizes is shared along the ones", "[random]") {
  Tensor key = fixed_key(8, 2), x = random_uniform({key, dims_of({6, 5, 4}), float64}, 1, 2);
  auto in = x.to_vector<double>();
  auto out = dropout(x, key, dims_of({6, 1, 4}), 0.5).to_vector<double>();
  std::set<bool> seen;
  int wrong = 0;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t k = 0; k < 4; ++k) {
      bool kept = out[i * 20 + k] != 0;
      seen.insert(kept);
      for (std::size_t j = 0; j < 5; ++j) {
        std::size_t at = i * 20 + j * 4 + k;
        wrong += out[at] != (kept ? in[at] * 2 : 0);
      }
    }
  CHECK(wrong == 0);
  CHECK(seen.size() == 2);
  // None is x's size; fewer axes align with the last ones.
  CHECK(bytes_of(dropout(x, key, dims_of({None, 1, None}), 0.5)) == bytes_of(dropout(x, key, dims_of({6, 1, 4}), 0.5)));
  CHECK(bytes_of(dropout(x, key, dims_of({1, 4}), 0.5)) == bytes_of(dropout(x, key, dims_of({1, 1, 4}), 0.5)));
  CHECK(bytes_of(dropout(x, key, dims_of({6, 5, 4}), 0.5)) == bytes_of(dropout(x, key, Tensor(), 0.5)));
  CHECK_THROWS_WITH(dropout(x, key, dims_of({5, 1, 4}), 0.5),
                    "dropout: noise_shape (5, 1, 4) does not broadcast to x of shape (6, 5, 4)");
  CHECK_THROWS_WITH(dropout(x, key, dims_of({1, 6, 5, 4}), 0.5),
                    "dropout: noise_shape (1, 6, 5, 4) does not broadcast to x of shape (6, 5, 4)");
}

TEST_CASE("a draw keeps its node without making eager ops record", "[random]") {
  Tensor u = random_uniform({next_key(3), dims_of({2}), float32});
  CHECK(Access::desc(u).node);
  CHECK_FALSE(Access::desc(u + 1.0).node);
}

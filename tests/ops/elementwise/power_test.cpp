// tests/ops/elementwise/power_test.cpp - powers, remainders and casts by vectors: against the C library, element by
// element.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/convert.h"
#include "ops/engine/expr.h"
#include "tests/ops/levels.h"
#include "tests/worst.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
using test::at_every_level;
using test::tensor_of;

namespace {

template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}
/// Zeros, ones, infinities, NaN, whole and broken numbers of every size, of both signs.
template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> v{0,
                   L::denorm_min(),
                   L::min(),
                   T(1e-30),
                   T(.5),
                   T(.75),
                   1,
                   std::nextafter(T(1), T(2)),
                   T(1.5),
                   2,
                   T(2.5),
                   3,
                   7,
                   127,
                   T(1 << 20) + 1,
                   std::ldexp(T(1), L::digits - 1) + 1,
                   std::ldexp(T(1), L::digits),
                   T(1e30),
                   L::max(),
                   L::infinity(),
                   L::quiet_NaN()};
  for (std::size_t i = 0, n = v.size(); i < n; ++i) v.push_back(-v[i]);
  return v;
}
/// All pairs of edges, then pairs of numbers drawn so that the power is a float.
template <class T>
void pairs(std::vector<T>& a, std::vector<T>& b) {
  for (T x : edges<T>())
    for (T y : edges<T>()) {
      a.push_back(x);
      b.push_back(y);
    }
  std::mt19937 random(3);
  const double most = std::numeric_limits<T>::max_exponent - 2;
  std::uniform_real_distribution<double> exponent(-0.8 * most, 0.8 * most), part(-1.2, 1.2);
  for (int i = 0; i < (test::kSanitized ? 20000 : 200000); ++i) {
    double log = exponent(random);
    a.push_back(static_cast<T>(std::exp2(log) * (i % 16 ? 1 : -1)));
    b.push_back(static_cast<T>(i % 16 ? part(random) * most / log : std::floor(part(random) * 20)));
  }
}
template <class T>
std::vector<T> run(Tensor (*f)(const Tensor&, const Tensor&), const std::vector<T>& a, const std::vector<T>& b) {
  return f(tensor_of(a), tensor_of(b)).template to_vector<T>();
}
Tensor power(const Tensor& a, const Tensor& b) { return pow(a, b); }
Tensor modulo(const Tensor& a, const Tensor& b) { return a % b; }
Tensor quotient(const Tensor& a, const Tensor& b) { return floor_divide(a, b); }

}  // namespace

TEMPLATE_TEST_CASE("a power has the C library's value at every edge", "[math][power]", float, double) {
  using T = TestType;
  std::vector<T> a, b;
  for (T x : edges<T>())
    for (T y : edges<T>()) {
      a.push_back(x);
      b.push_back(y);
    }
  at_every_level([&](Level) {
    std::vector<T> y = run(power, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      T exact = std::pow(a[i], b[i]);
      INFO(a[i] << " to the power " << b[i] << ": " << y[i] << " against " << exact);
      if (exact == 0 || !std::isfinite(exact)) CHECK(same(y[i], exact));
      else CHECK(std::abs(y[i] - exact) <= std::abs(exact) * std::numeric_limits<T>::epsilon());
    }
  });
}

TEMPLATE_TEST_CASE("a power of floats is rounded correctly but near ties, one of doubles within 1.1 places",
                   "[math][power]", float, double) {
  using T = TestType;
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  using L = std::numeric_limits<T>;
  std::vector<T> a, b;
  pairs(a, b);
  std::vector<Wide> exact(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) exact[i] = std::pow(static_cast<Wide>(a[i]), static_cast<Wide>(b[i]));
  at_every_level([&](Level) {
    std::vector<T> y = run(power, a, b);
    Wide worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(exact[i]) || std::abs(exact[i]) > L::max()) continue;
      int e;
      std::frexp(exact[i], &e);
      worst = test::worst_of(worst,
                             std::abs(y[i] - exact[i]) / std::ldexp(Wide(1), std::max(e, L::min_exponent) - L::digits));
    }
    if (std::getenv("KASSETTE_TEST_PRINT"))
      std::printf("pow       %s %-7s %.4f\n", sizeof(T) == 4 ? "f32" : "f64", level_name(cpu_level()),
                  static_cast<double>(worst));
    CHECK(worst <= (sizeof(T) == 4 ? 0.51 : 1.1));
  });
}

TEMPLATE_TEST_CASE("powers, remainders and floor divisions have the same bits at avx2 and avx512", "[math][power]",
                   float, double) {
  using T = TestType;
  test::SettingsScope restore;
  if (!set_cpu_level(Level::avx512)) return test::skip("no AVX-512 on this CPU");
  std::vector<T> a, b;
  pairs(a, b);
  for (auto f : {power, modulo, quotient}) {
    set_cpu_level(Level::avx512);
    std::vector<T> wide = run(f, a, b);
    set_cpu_level(Level::avx2);
    std::vector<T> narrow = run(f, a, b);
    bool all = true;
    for (std::size_t i = 0; i < a.size(); ++i) all = all && same(wide[i], narrow[i]);
    CHECK(all);
  }
}

TEMPLATE_TEST_CASE("remainders and floor divisions are the C library's fmod with the divisor's sign", "[math][power]",
                   float, double) {
  using T = TestType;
  std::vector<T> a, b;
  pairs(a, b);
  std::mt19937_64 random(5);
  for (int i = 0; i < 100000; ++i) {  // quotients near whole numbers, where a division rounds up to one
    T y = static_cast<T>(static_cast<double>(random() % 1000000 + 1) / 1024),
      q = static_cast<T>(random() % (1 << (1 + i % 22)));
    T x = q * y;
    for (T near : {x, std::nextafter(x, T(0)), std::nextafter(x, T(1e30))}) {
      a.push_back(i % 3 ? near : -near);
      b.push_back(i % 5 ? y : -y);
    }
  }
  at_every_level([&](Level) {
    std::vector<T> r = run(modulo, a, b), q = run(quotient, a, b);
    long wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      T exact = std::fmod(a[i], b[i]);
      if (exact == 0) exact = std::copysign(T(0), b[i]);
      else if ((exact < 0) != (b[i] < 0)) exact += b[i];
      wrong += !same(r[i], exact);
      bool plain = std::isfinite(a[i]) && std::isfinite(b[i]) && b[i] != 0;
      if (!plain) wrong += !same(q[i], b[i] == 0 ? a[i] / b[i] : std::isnan(exact) ? exact : q[i]);
      else if (std::abs(a[i] / b[i]) < T(1 << 20)) wrong += q[i] != std::nearbyint((a[i] - exact) / b[i]);
      if (wrong == 1)
        UNSCOPED_INFO(a[i] << " by " << b[i] << ": " << r[i] << " against " << exact << ", quotient " << q[i]);
    }
    CHECK(wrong == 0);
  });
}

TEMPLATE_TEST_CASE("floats become integers by truncation, saturate, and NaN gives 0", "[cast]", float, double) {
  using T = TestType;
  std::vector<T> x = edges<T>();
  for (int bits : {7, 8, 15, 16, 31, 32, 63, 64})
    for (T at : {std::ldexp(T(1), bits), -std::ldexp(T(1), bits)})
      for (T v : {at, std::nextafter(at, T(0)), std::nextafter(at, 2 * at), at - T(1), at + T(.5)}) x.push_back(v);
  at_every_level([&](Level) {
    for (std::size_t n = x.size(); n > x.size() - 17; --n) {
      std::vector<T> part(x.end() - static_cast<std::ptrdiff_t>(n), x.end());
      Tensor from = tensor_of(part);
      for (DType to : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64})
        dispatch(to, [&](auto* p) {
          using To = std::remove_pointer_t<decltype(p)>;
          if constexpr (std::is_integral_v<To>) {
            const Tensor made = cast(from, to);
            const To* y = made.template data<To>();
            for (std::size_t i = 0; i < n; ++i) {
              INFO(part[i] << " to " << to.name());
              CHECK(y[i] == convert_one<To>(part[i]));
            }
          }
        });
    }
  });
}

TEST_CASE("integers become floats rounded to nearest", "[cast]") {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> x{0, 1, -1, INT64_MAX, INT64_MIN, (std::int64_t(1) << 53) + 1, (1 << 24) + 1};
  for (int i = 0; i < 500; ++i) x.push_back(static_cast<std::int64_t>(random()) >> (i % 60));
  at_every_level([&](Level) {
    std::vector<float> f = cast(tensor_of(x), float32).to_vector<float>();
    std::vector<double> d = cast(tensor_of(x), float64).to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(f[i] == static_cast<float>(x[i]));
      CHECK(d[i] == static_cast<double>(x[i]));
    }
  });
}

// tests/numpy/fft_test.cpp - np::fft against sums that are written out in long double, for lengths of every kind; by
// identities; and at the borders: lengths that are cut off or filled, unknown sizes, threads, what is refused.
#include <kassette/numpy.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <thread>

#include "ops/fft/fft_plan.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace np = kassette::numpy;
namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using np::fft::ComplexPair;

namespace {

using Exact = std::vector<std::complex<long double>>;

/// The sum of x[j] e^(sign 2 pi i j k / n) for every so many k.
Exact written_out(const Exact& x, int sign, std::size_t every) {
  const std::size_t n = x.size();
  Exact roots(n), y(n);
  for (std::size_t k = 0; k < n; ++k)
    roots[k] = std::polar(
        1.0L, sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n));
  for (std::size_t k = 0; k < n; k += every)
    for (std::size_t j = 0, at = 0; j < n; ++j, at = at + k < n ? at + k : at + k - n) y[k] += x[j] * roots[at];
  return y;
}
/// The error of these numbers, relative to the square root of the sum of squares.
double error(const Exact& expected, const ComplexPair& got, std::size_t every = 1) {
  const std::vector<double> re = values(K::cast(got.real, float64)), im = got.imag.defined()
                                                                              ? values(K::cast(got.imag, float64))
                                                                              : std::vector<double>(re.size());
  long double off = 0, all = 0;
  for (std::size_t k = 0; k < re.size(); k += every) {
    off += std::norm(expected[k] - std::complex<long double>(re[k], im[k]));
    all += std::norm(expected[k]);
  }
  return static_cast<double>(std::sqrt(off / all));
}
/// `rows` rows of pseudo-random numbers.
Tensor drawn(std::int64_t rows, std::int64_t n, DType dtype, std::uint64_t seed) {
  return K::cast(np::reshape(np::array(numbers(static_cast<std::size_t>(rows * n), seed)), {rows, n}), dtype);
}
Exact row_of(const Tensor& re, const Tensor& im, std::int64_t row) {
  const std::vector<double> a = values(K::cast(re, float64)(row)), b = values(K::cast(im, float64)(row));
  Exact x;
  for (std::size_t k = 0; k < a.size(); ++k) x.emplace_back(a[k], b[k]);
  return x;
}
Tensor row(const Tensor& x, std::int64_t at, bool across) { return across ? x(all, at) : x(at); }
ComplexPair row(const ComplexPair& x, std::int64_t at, bool across) {
  return {row(x.real, at, across), row(x.imag, at, across)};
}

/// Transforms of one length along either axis, of the last of some rows, against sums.
void compare_with_sums(std::int64_t n, std::int64_t rows, DType dtype, double bound) {
  const auto every = static_cast<std::size_t>(1 + n / 150);
  INFO(n << " numbers in " << rows << " rows of " << dtype);
  const Tensor re = drawn(rows, n, dtype, 1), im = drawn(rows, n, dtype, 2), none = np::zeros_like(re);
  const std::int64_t last = rows - 1;
  const Exact x = row_of(re, im, last), real = row_of(re, none, last);
  const Exact forward = written_out(x, -1, every), backward = written_out(x, 1, every),
              half = written_out(real, -1, every);
  for (const bool across : {false, true}) {
    const int axis = across ? 0 : 1;
    auto turned = [&](const Tensor& t) { return across ? np::transpose(t) : t; };
    const Tensor a = turned(re), b = turned(im);
    CHECK(error(forward, row(np::fft::fft({a, b}, {.axis = axis}), last, across), every) < bound);
    CHECK(error(backward, row(np::fft::ifft({a, b}, {.axis = axis, .norm = "forward"}), last, across), every) < bound);
    CHECK(error(half, row(np::fft::fft(a, {.axis = axis}), last, across), every) < bound);
    const ComplexPair h = np::fft::rfft(a, {.axis = axis});
    CHECK(error(half, row(h, last, across), every) < bound);
    CHECK(error(real, {row(np::fft::irfft(h, {.n = n, .axis = axis}), last, across), {}}) < 2 * bound);
  }
}

}  // namespace

TEST_CASE("np::fft agrees with sums in long double for every length up to 130", "[numpy][fft]") {
  for (std::int64_t n = 1; n <= 130; ++n)
    for (std::int64_t rows : {1, 19}) {
      compare_with_sums(n, rows, float32, 12 * 0x1p-24);
      compare_with_sums(n, rows, float64, 12 * 0x1p-53);
    }
}

TEST_CASE("np::fft agrees with sums in long double for long rows and large primes", "[numpy][fft][serial]") {
  for (std::int64_t n : {512, 1009, 1022, 1024, 2 * 521, 3000, 2187})
    for (std::int64_t rows : {1, 17}) {
      compare_with_sums(n, rows, float32, 12 * 0x1p-24);
      compare_with_sums(n, rows, float64, 12 * 0x1p-53);
    }
  for (std::int64_t n : {1 << 16, 3 * 5 * 7 * 11 * 13, 65537}) {
    compare_with_sums(n, 1, float32, 12 * 0x1p-24);
    compare_with_sums(n, 1, float64, 12 * 0x1p-53);
  }
}

TEST_CASE("np::fft at every CPU level", "[numpy][fft]") {
  at_every_level([](devices::Level) {
    for (std::int64_t n : {1, 2, 6, 16, 35, 37, 64, 143, 600}) {
      compare_with_sums(n, 17, float32, 12 * 0x1p-24);
      compare_with_sums(n, 3, float64, 12 * 0x1p-53);
    }
  });
}

TEST_CASE("np::fft of long rows: waves have one number, whatever the length", "[numpy][fft]") {
  for (std::int64_t n : {1 << 16, 1 << 20, 1000003, 3 * 5 * 7 * 11 * 13 * 2}) {
    INFO(n);
    const std::int64_t wave = n / 3 + 1;
    std::vector<double> c, s;
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = 2 * np::pi * static_cast<double>(k * wave % n) / static_cast<double>(n);
      c.push_back(std::cos(angle));
      s.push_back(std::sin(angle));
    }
    const ComplexPair y = np::fft::fft({np::array(c), np::array(s)}, {.norm = "forward"});
    CHECK(np::argmax(y.real).item<std::int64_t>() == wave);
    CHECK(std::fabs(np::max(y.real).item<double>() - 1) < 1e-14);
    CHECK(std::fabs(np::sum(np::square(y.real) + np::square(y.imag)).item<double>() - 1) < 1e-13);
    const ComplexPair h = np::fft::rfft(np::array(c), {.norm = "forward"});
    CHECK(np::argmax(h.real).item<std::int64_t>() == wave);
    CHECK(std::fabs(np::max(h.real).item<double>() - 0.5) < 1e-14);
  }
}

TEST_CASE("np::fft keeps what Parseval, shifts and inverses say", "[numpy][fft]") {
  for (std::int64_t n : {1, 2, 7, 12, 34, 600, 1018}) {
    INFO(n);
    const Tensor re = drawn(2, n, float64, 3), im = drawn(2, n, float64, 4);
    auto largest = [](const Tensor& x) { return np::max(np::abs(x)).item<double>(); };
    auto energy = [](const ComplexPair& z) { return np::sum(np::square(z.real) + np::square(z.imag)).item<double>(); };
    const ComplexPair y = np::fft::fft({re, im}, {.norm = "ortho"}), back = np::fft::ifft(y, {.norm = "ortho"});
    CHECK(std::fabs(energy(y) / energy({re, im}) - 1) < 1e-14);
    CHECK(largest(back.real - re) + largest(back.imag - im) < 1e-14);
    // A shift by one element multiplies by e^(-2 pi i k / n).
    const ComplexPair z = np::fft::fft({np::roll(re, 1, 1), np::roll(im, 1, 1)}, {.norm = "ortho"});
    const Tensor angle = np::arange(0, n, 1, float64) * (-2 * np::pi / static_cast<double>(n));
    const Tensor c = np::cos(angle), s = np::sin(angle);
    CHECK(largest(z.real - (y.real * c - y.imag * s)) < 1e-13);
    CHECK(largest(z.imag - (y.real * s + y.imag * c)) < 1e-13);
    CHECK(largest(np::fft::irfftn(np::fft::rfftn(re), {.s = {2, n}}) - re) < 1e-14);
    CHECK(largest(np::fft::irfft2(np::fft::rfft2(re), {.s = {2, n}}) - re) < 1e-14);
    CHECK(largest(np::fft::hfft(np::fft::ihfft(re), {.n = n}) - re) < 1e-14);
    CHECK(largest(np::fft::ifft2(np::fft::fft2({re, im})).imag - im) < 1e-14);
    CHECK(values(np::fft::ifftshift(np::fft::fftshift(re))) == values(re));
  }
}

TEST_CASE("np::fft has the same bits for any number of threads, and in each row of a batch", "[numpy][fft]") {
  const SettingsScope scope;
  devices::grain_divisor = 1 << 20;
  for (const auto& [rows, n] : {std::pair{50, 24}, {50, 37}, {3, 4096}, {1, 1 << 15}, {1, 40009}}) {
    INFO(rows << " x " << n);
    const Tensor re = drawn(rows, n, float32, 5), im = drawn(rows, n, float32, 6);
    Tensors first;
    for (int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const ComplexPair y = np::fft::fft({re, im}), h = np::fft::rfft(re),
                        z = np::fft::fft({np::transpose(re), np::transpose(im)}, {.axis = 0});
      const Tensors results{y.real, y.imag, h.real, h.imag, z.real, np::fft::irfft(h, {.n = n})};
      if (threads == 1) first = results;
      for (std::int64_t i = 0; i < results.size(); ++i) CHECK(values<float>(results[i]) == values<float>(first[i]));
    }
  }
  const Tensor one = drawn(1, 60, float32, 7);
  const Tensor many = np::fft::fft(np::broadcast_to(one, {21, 60})).real;
  for (std::int64_t r = 1; r < 21; ++r) CHECK(values<float>(many(r)) == values<float>(many(0)));
}

TEST_CASE("np::fft has the gradient of a linear function: y'(F x) = (F'y)'x, for lengths and forms of every kind",
          "[numpy][fft]") {
  auto product = [](const Tensor& a, const Tensor& b) { return np::sum(a * b); };
  using Transform = ComplexPair (*)(const Tensor& x, const Tensor& y, const np::fft::FftOptions& options);
  const Transform transforms[] = {
      [](const Tensor& x, const Tensor& y, const np::fft::FftOptions& o) {
        return np::fft::fft({x, y}, o);
      },
      [](const Tensor& x, const Tensor&, const np::fft::FftOptions& o) { return np::fft::ifft(x, o); },
      [](const Tensor& x, const Tensor&, const np::fft::FftOptions& o) { return np::fft::rfft(x, o); },
      [](const Tensor& x, const Tensor&, const np::fft::FftOptions& o) { return np::fft::ihfft(x, o); },
      [](const Tensor& x, const Tensor& y, const np::fft::FftOptions& o) {
        return ComplexPair{np::fft::irfft({x, y}, o), np::fft::hfft({x, y}, o)};
      }};
  for (const auto& [given, n] : {std::pair{6, 6},
                                 {7, 7},
                                 {6, 9},
                                 {9, 6},
                                 {9, 4},
                                 {5, 2},
                                 {3, 1},
                                 {37, 37},
                                 {600, 600},
                                 {600, 1024},
                                 {1024, 521},
                                 {1042, 1042},
                                 {1000, 1063}})
    for (const std::int64_t rows : {1, 9})
      for (const char* norm : {"backward", "ortho"})
        for (int which = 0; which < 5; ++which) {
          INFO(given << " numbers, n = " << n << ", " << rows << " rows, " << norm << ", transform " << which);
          const Tensor x = K::variable(drawn(rows, given, float64, 21), float64),
                       y = K::variable(drawn(rows, given, float64, 22), float64);
          const ComplexPair z = transforms[which](x, y, {.n = n, .norm = norm});
          const Tensor a = drawn(rows, z.real.shape()[1], float64, 23), b = drawn(rows, z.imag.shape()[1], float64, 24);
          const Tensor value = product(z.real, a) + product(z.imag, b);
          const Tensors g = K::gradients(value, {x, y});
          Tensor other = product(g[0], x);
          if (g[1].defined()) other = other + product(g[1], y);
          CHECK(std::fabs(number(value) - number(other)) < 1e-11 * static_cast<double>(n));
        }
}

TEST_CASE("np::fft in functions, of placeholders whose sizes are not known", "[numpy][fft]") {
  const Tensor x = K::placeholder({K::None, K::None}), y = K::placeholder({K::None, K::None});
  const ComplexPair z = np::fft::fft({x, y}), h = np::fft::rfft(x, {.axis = 0});
  CHECK(z.real.shape().rank() == 2);
  CHECK(np::fft::fft(x, {.n = 6}).real.shape()[1] == 6);
  CHECK(np::fft::rfft(x, {.n = 6}).real.shape()[1] == 4);
  const Tensor loss = np::sum(np::square(z.real) * z.imag) + np::sum(h.imag * np::square(h.real)) +
                      np::sum(np::exp(np::fft::irfft({x, y}, {.norm = "ortho"}))) + np::sum(np::fft::fftshift(x) * y);
  const Tensors g = K::gradients(loss, {x, y});
  const auto f = K::function({x, y}, {loss, g[0], g[1], np::fft::fftshift(x), np::fft::ifftshift(x, 1)});
  for (const auto& [rows, n] : {std::pair{3, 5}, {4, 6}, {1, 2}, {0, 4}}) {
    if (rows == 0) {
      CHECK(error_of<ValueError>([&] {
              f({np::zeros({0, 4}), np::zeros({0, 4})});
            }).find("0 elements along axis 0") != std::string::npos);
      continue;
    }
    const Tensor a = K::variable(drawn(rows, n, float32, 8)), b = K::variable(drawn(rows, n, float32, 9));
    const ComplexPair za = np::fft::fft({a, b}), ha = np::fft::rfft(a, {.axis = 0});
    const Tensor eager = np::sum(np::square(za.real) * za.imag) + np::sum(ha.imag * np::square(ha.real)) +
                         np::sum(np::exp(np::fft::irfft({a, b}, {.norm = "ortho"}))) +
                         np::sum(np::fft::fftshift(a) * b);
    const Tensors expected = K::gradients(eager, {a, b}), got = f({a, b});
    CHECK(values<float>(got[0]) == values<float>(eager));
    CHECK(values<float>(got[1]) == values<float>(expected[0]));
    CHECK(values<float>(got[2]) == values<float>(expected[1]));
    CHECK(values<float>(got[3]) == values<float>(np::fft::fftshift(a)));
    CHECK(values<float>(got[4]) == values<float>(np::fft::ifftshift(a, 1)));
  }
}

TEST_CASE("np::fft::fftfreq and rfftfreq", "[numpy][fft]") {
  using Doubles = std::vector<double>;
  CHECK(values(np::fft::fftfreq(4, 0.5)) == Doubles{0, 0.5, -1, -0.5});
  CHECK(values(np::fft::fftfreq(5, 0.2)) == Doubles{0, 1, 2, -2, -1});
  CHECK(values(np::fft::fftfreq(1)) == Doubles{0});
  CHECK(values(np::fft::rfftfreq(4, 0.5)) == Doubles{0, 0.5, 1});
  CHECK(values(np::fft::rfftfreq(5, 0.2)) == Doubles{0, 1, 2});
  CHECK(np::fft::fftfreq(4).dtype() == float32);
  CHECK(np::fft::rfftfreq(4, 1, float64).dtype() == float64);
}

TEST_CASE("np::fft::dct is inverted by idct for all types and norms, and orthogonal where it is said to be",
          "[numpy][fft]") {
  auto largest = [](const Tensor& x) { return np::max(np::abs(x)).item<double>(); };
  for (const std::int64_t n : {2, 3, 8, 37})
    for (const int type : {1, 2, 3, 4})
      for (const char* norm : {"backward", "ortho", "forward"}) {
        INFO(n << ' ' << type << ' ' << norm);
        const Tensor x = drawn(3, n, float64, 12);
        const Tensor y = np::fft::dct(x, {.type = type, .norm = norm});
        CHECK(largest(np::fft::idct(y, {.type = type, .norm = norm}) - x) < 1e-14);
        if (norm[0] == 'o') CHECK(largest(np::sum(np::square(y), -1) - np::sum(np::square(x), -1)) < 1e-13);
        CHECK(largest(np::fft::dct(np::transpose(x), {.type = type, .axis = 0, .norm = norm}) - np::transpose(y)) <
              1e-14);
        CHECK(largest(np::fft::dct(x, {.type = type, .n = n + 2, .norm = norm}) -
                      np::fft::dct(np::pad(x, {{0, 0}, {0, 2}}), {.type = type, .norm = norm})) < 1e-14);
      }
}

TEST_CASE("np::fft::istft inverts stft where windows overlap", "[numpy][fft]") {
  const Tensor x = drawn(2, 83, float64, 13);
  for (const auto& [length, stride, n] : {std::tuple{16, 4, 16}, {12, 5, 16}, {16, 8, 17}, {1, 1, 1}, {7, 3, 10}}) {
    INFO(length << ' ' << stride << ' ' << n);
    for (const np::fft::StftOptions& options :
         {np::fft::StftOptions{}, np::fft::StftOptions{.window = "hamming"}, np::fft::StftOptions{.window = None}}) {
      const ComplexPair y = np::fft::stft(x, length, stride, n, options);
      CHECK(y.real.shape()[2] == n / 2 + 1);
      const Tensor back = np::fft::istft(y, length, stride, n, {.window = options.window});
      const std::int64_t whole = back.shape()[1];
      CHECK(whole > 83 - n - stride);
      const std::int64_t least = std::min<std::int64_t>(whole, 83);
      CHECK(np::max(np::abs(back(all, slice(0, least)) - x(all, slice(0, least)))).item<double>() < 1e-12);
    }
  }
  // A tone has its power in one number of each frame.
  const Tensor tone = np::cos(np::arange(0, 256, 1, float64) * (2 * np::pi * 6 / 32));
  const ComplexPair y = np::fft::stft(tone, 32, 8, 32);
  CHECK(y.real.shape() == Shape{33, 17});
  const Tensor power = np::square(y.real) + np::square(y.imag);  // reflected at the ends, it is another tone there
  CHECK(values<std::int64_t>(np::argmax(power(slice(2, 31)), 1)) == std::vector<std::int64_t>(29, 6));
  CHECK(np::fft::stft(np::ones(3), 8, 4, 8, {.center = false}).real.shape() == Shape{0, 5});
}

TEST_CASE("np::fft keeps the plans of the last lengths, of bounded size, for all threads", "[numpy][fft]") {
  const Tensor x = drawn(2, 1 << 12, float32, 11);
  const std::vector<float> expected = values<float>(np::fft::fft(x).real);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 40; ++k) {
        np::fft::fft(np::ones({2, 30 + (k * 7 + t) % 50}));
        if (values<float>(np::fft::fft(x).real) != expected) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  for (std::int64_t n = 400000; n < 400012; ++n) np::fft::fft(np::ones(n, float64));
  CHECK(ops::kept_plan_bytes() > 0);
  CHECK(ops::kept_plan_bytes() <= std::int64_t(4) * (64 << 20));
  CHECK(values<float>(np::fft::fft(x).real) == expected);
}

TEST_CASE("roots of unity mirror each other to the bit", "[numpy][fft]") {
  for (std::int64_t n : {4, 8, 20, 24, 1000, 1 << 20}) {
    INFO(n);
    for (std::int64_t k = 1; k < n; k += 1 + n / 97) {
      const ops::Root r = ops::root_of_unity(k, n), mirrored = ops::root_of_unity(n - k, n);
      CHECK((r.re == mirrored.re && r.im == -mirrored.im));
      const ops::Root turned = ops::root_of_unity((k + n / 4) % n, n);
      CHECK((turned.re == r.im && turned.im == -r.re));
    }
  }
}

TEST_CASE("np::fft takes a pair in braces, a ComplexPair, real numbers, integers and lists", "[numpy][fft]") {
  using Doubles = std::vector<double>;
  const Tensor re = K::constant({1, 2, 3, 4}), im = K::constant({0, 1, 0, -1});
  const auto [a, b] = np::fft::fft({re, im});
  const ComplexPair c = np::fft::fft(ComplexPair{re, im});
  CHECK(values(a) == Doubles{10, 0, -2, -4});
  CHECK(values(a) == values(c.real));
  CHECK(values(b) == values(c.imag));
  CHECK(values(np::fft::fft({1, 2, 3, 4}).real) == Doubles{10, -2, -2, -2});
  CHECK(values(np::fft::fft({{1, 2}, {3, 5}}).real) == Doubles{3, -1, 8, -2});
  CHECK(np::fft::fft(np::arange(4)).real.dtype() == float32);
  CHECK(np::fft::fft({re, K::cast(im, float64)}).imag.dtype() == float64);
  CHECK(np::fft::fft(std::vector<double>{1, 2}).real.dtype() == float64);
}

TEST_CASE("np::fft refuses what it cannot do in one line", "[numpy][fft]") {
  const Tensor x = np::ones({2, 3}), y = np::ones({3, 2});
  CHECK(error_of<ValueError>([&] { np::fft::fft(x, {.n = 0}); }) == "fft: n is 0; it must be at least 1");
  CHECK(error_of<ValueError>([&] { np::fft::rfft(x, {.n = -3}); }) == "rfft: n is -3; it must be at least 1");
  CHECK(error_of<TypeError>([&] { np::fft::ifft(x, {.n = 2.5}); }) ==
        "ifft: n is no integer; it must be an integer or None");
  CHECK(error_of<ValueError>([&] { np::fft::fft(x, {.norm = "unitary"}); }) ==
        "fft: norm is 'unitary'; it must be 'backward', 'ortho' or 'forward'");
  CHECK(error_of<ValueError>([&] { np::fft::fft(x, {.axis = 2}); }).find("fft: axis 2") == 0);
  CHECK(error_of<ValueError>([&] {
          np::fft::fft({x, y});
        }) == "fft: imag of shape (3, 2) does not fit real of shape (2, 3); their shapes must be equal");
  CHECK(error_of<TypeError>([&] { np::fft::ifft({x, np::ones({2, 3}, int32)}); }).find("ifft: imag is int32") == 0);
  CHECK(error_of<ValueError>([&] {
          np::fft::fft(np::zeros({2, 0}));
        }) == "fft: x of shape (2, 0) has 0 elements along axis 1; there must be one at least, unless n is given");
  CHECK(error_of<ValueError>([&] {
          np::fft::irfft(np::zeros({2, 1}));
        }) == "irfft: x of shape (2, 1) has 1 elements along axis 1; there must be two at least, unless n is given");
  CHECK(error_of<ValueError>([&] { np::fft::fft2(np::ones(3)); }).find("fft2: axes -2 is out of range") == 0);
  CHECK(error_of<ValueError>([&] { np::fft::fftn(x, {.s = {2, 3, 4}}); }) == "fftn: s lists 3 lengths; x has 2 axes");
  CHECK(error_of<ValueError>([&] {
          np::fft::rfftn(x, {.s = 2, .axes = {0, 1}});
        }) == "rfftn: s lists 1 lengths for 2 axes; there must be one for each");
  CHECK(error_of<ValueError>([&] { np::fft::irfftn(x, {.axes = {}}); }) ==
        "irfftn: axes lists no axes; there must be one at least");
  CHECK(error_of<ValueError>([&] { np::fft::dct(x, {.type = 5}); }) == "dct: type is 5; it must be 1, 2, 3 or 4");
  CHECK(error_of<ValueError>([&] {
          np::fft::dct(np::ones({2, 1}), {.type = 1});
        }).find("there must be two at least") != std::string::npos);
  CHECK(error_of<ValueError>([&] { np::fft::stft(x, 4, 0, 4); }) ==
        "stft: sequence_stride is 0; it must be at least 1");
  CHECK(error_of<ValueError>([&] { np::fft::stft(x, 4, 2, 3); }) ==
        "stft: fft_length is 3; it must not be below sequence_length, 4");
  CHECK(error_of<ValueError>([&] { np::fft::stft(x, 2, 1, 2, {.window = "kaiser"}); }) ==
        "stft: window is 'kaiser'; it must be 'hann', 'hamming' or None");
  CHECK(error_of<ValueError>([&] {
          np::fft::stft(x, 2, 1, 2, {.weights = {1, 2, 3}});
        }) == "stft: weights of shape (3,); there must be sequence_length, 2");
  CHECK(error_of<ValueError>([&] { np::fft::istft(np::ones(3), 2, 1, 2); }) ==
        "istft: x of shape (3,); it must have two axes or more");
  CHECK(error_of<ValueError>([&] { np::fft::fftfreq(0); }) == "fftfreq: n is 0; it must be at least 1");
}

TEST_CASE("np::fft of no rows, and of lengths that cut off or fill with zeros", "[numpy][fft]") {
  using Doubles = std::vector<double>;
  CHECK(np::fft::fft(np::zeros({0, 4})).real.shape() == Shape{0, 4});
  CHECK(np::fft::rfft(np::zeros({3, 0, 6})).real.shape() == Shape{3, 0, 4});
  CHECK(values(np::fft::fft(np::zeros({1, 0}), {.n = 3}).real) == Doubles{0, 0, 0});
  CHECK(values(np::fft::fft({1, 2, 3}, {.n = 2}).real) == Doubles{3, -1});
  CHECK(values(np::fft::fft({1, 2}, {.n = 4}).imag) == Doubles{0, -2, 0, 2});
  CHECK(values(np::fft::irfft({4, 2, 9}, {.n = 2})) == Doubles{3, 1});
  CHECK(values(np::fft::fftn(np::ones({2, 2}), {.axes = {}}).real) == Doubles{1, 1, 1, 1});
}

// nn_backend/inspect/summary.cpp - statistics of a tensor's elements.
#include "nn_backend/inspect/summary.h"

#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "devices/cpu/threads.h"
#include "nn_backend/inspect/summary_loops.h"

namespace kassette::inspect {
namespace {

/// Elements per chunk of a thread; it depends on the shape alone, so that the result does not depend on the number of
/// threads.
std::int64_t chunk_of(std::int64_t n) { return std::max<std::int64_t>(1 << 14, (n + 1023) / 1024); }

template <class T>
const SummaryLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(summary_table).f32;
  else return KASSETTE_PICK(summary_table).f64;
}
template <class T>
constexpr bool kHasLoops = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Calls f(numbers, count) for n elements: directly, or converted to doubles in blocks.
template <class T, class F>
void as_numbers(const T* p, std::int64_t n, F f) {
  if constexpr (kHasLoops<T>) {
    f(p, n);
  } else {
    constexpr std::int64_t kBlock = 1024;
    double block[kBlock];
    for (std::int64_t i = 0, m; i < n; i += m) {
      m = std::min(kBlock, n - i);
      for (std::int64_t j = 0; j < m; ++j) block[j] = convert_one<double>(p[i + j]);
      f(static_cast<const double*>(block), m);
    }
  }
}
template <class P>
auto& loops_of(const P*) {
  return loops<P>();
}

/// The sum of f(element) over the finite elements in long double, for sums that overflow a double.
template <class T, class F>
long double wide_sum(const T* p, std::int64_t n, F f) {
  long double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double v = convert_one<double>(p[i]);
    if (v - v == 0) sum += f(static_cast<long double>(v));
  }
  return sum;
}

/// The first finite element, or 0.
template <class T>
double first_finite(const T* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (const double v = convert_one<double>(p[i]); std::isfinite(v)) return v;
  return 0;
}

template <class T>
Summary summarize_chunk(const T* p, std::int64_t n) {
  Summary s;
  s.min = INFINITY;
  s.max = -INFINITY;
  // A mean is the sum of differences to an element, and its rounding to double is taken out of the squares: Note [The
  // rounding of a mean].
  const double from = first_finite(p, n);
  double sum = 0;
  as_numbers(p, n, [&](const auto* numbers, std::int64_t m) {
    Statistics l;
    loops_of(numbers).statistics(numbers, m, from, &l);
    s.finite += l.finite;
    s.nan += l.nan;
    s.zeros += l.zeros;
    s.min = std::min(s.min, l.min);
    s.max = std::max(s.max, l.max);
    sum += l.sum;
  });
  s.inf = n - s.nan - s.finite;
  if (s.finite == 0) return s;
  if constexpr (std::is_integral_v<T>) {
    s.int_min = *std::min_element(p, p + n);
    s.int_max = *std::max_element(p, p + n);
  }
  const auto finite = static_cast<long double>(s.finite);
  s.mean = std::isfinite(sum) ? static_cast<long double>(from) + static_cast<long double>(sum) / finite
                              : wide_sum(p, n, [](long double v) { return v; }) / finite;
  double squares = 0;
  as_numbers(p, n, [&](const auto* numbers, std::int64_t m) {
    squares += loops_of(numbers).squares(numbers, m, static_cast<double>(s.mean));
  });
  const long double rest = s.mean - static_cast<long double>(static_cast<double>(s.mean));
  s.squares = std::isfinite(squares) ? std::max(static_cast<long double>(squares) - finite * rest * rest, 0.0L)
                                     : wide_sum(p, n, [&](long double v) { return (v - s.mean) * (v - s.mean); });
  return s;
}

/// Combines the moments of two samples, by the formula of Chan, Golub and LeVeque.
void join(Summary& a, const Summary& b) {
  a.nan += b.nan;
  a.inf += b.inf;
  a.zeros += b.zeros;
  if (b.finite == 0) return;
  a.min = a.finite ? std::min(a.min, b.min) : b.min;
  a.max = a.finite ? std::max(a.max, b.max) : b.max;
  a.int_min = a.finite ? std::min(a.int_min, b.int_min) : b.int_min;
  a.int_max = a.finite ? std::max(a.int_max, b.int_max) : b.int_max;
  auto n = static_cast<long double>(a.finite + b.finite), part = static_cast<long double>(b.finite) / n;
  long double delta = b.mean - a.mean;
  a.squares += b.squares + delta * delta * static_cast<long double>(a.finite) * part;
  a.mean += delta * part;
  a.finite += b.finite;
}

/// Calls f(part, data, count) for each chunk, on several threads.
template <class T, class F>
void for_chunks(const T* data, std::int64_t n, F f) {
  std::int64_t chunk = chunk_of(n);
  devices::parallel_for((n + chunk - 1) / chunk, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) f(c, data + c * chunk, std::min(chunk, n - c * chunk));
  });
}

}  // namespace

Summary summarize(const TensorSpec& spec, const std::byte* data) {
  std::int64_t n = spec.numel(), chunk = chunk_of(n);
  std::vector<Summary> parts((n + chunk - 1) / chunk);
  dispatch(spec.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for_chunks(reinterpret_cast<const T*>(data), n,
               [&](std::int64_t c, const T* p, std::int64_t count) { parts[c] = summarize_chunk(p, count); });
  });
  Summary whole;
  for (const Summary& s : parts) join(whole, s);
  return whole;
}

std::vector<std::int64_t> count_bins(const TensorSpec& spec, const std::byte* data, double low, double high, int n) {
  std::int64_t elements = spec.numel(), chunk = chunk_of(elements);
  std::vector<std::int64_t> parts((elements + chunk - 1) / chunk * n), bins(n);
  // Halved if the range would overflow a double.
  const double unit = std::isfinite(high - low) ? 1 : 0.5, start = low * unit, range = high * unit - start;
  const double scale = range > 0 ? n / range : 0, bias = range > 0 ? 0 : n / 2;
  const BinRule rule{unit, start, scale, bias, n};
  dispatch(spec.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for_chunks(reinterpret_cast<const T*>(data), elements, [&](std::int64_t c, const T* p, std::int64_t count) {
      // Four counters per bin: neighbouring elements are often in one bin, and increments of one counter would wait for
      // each other.
      constexpr std::int64_t kBlock = 1024;
      const std::int64_t stride = std::int64_t(n) + 1;  // one more for elements that are not finite
      std::vector<std::int64_t> counts(4 * stride);
      std::int64_t *first = counts.data(), *second = first + stride, *third = second + stride, *fourth = third + stride;
      as_numbers(p, count, [&](const auto* numbers, std::int64_t m) {
        std::int32_t bin[kBlock];
        for (std::int64_t at = 0; at < m; at += kBlock) {
          const std::int64_t k = std::min(kBlock, m - at);
          loops_of(numbers).bins(numbers + at, k, rule, bin);
          std::int64_t i = 0;
          for (; i + 4 <= k; i += 4) {
            ++first[bin[i]];
            ++second[bin[i + 1]];
            ++third[bin[i + 2]];
            ++fourth[bin[i + 3]];
          }
          for (; i < k; ++i) ++first[bin[i]];
        }
      });
      std::int64_t* to = parts.data() + c * n;
      for (int i = 0; i < n; ++i) to[i] = first[i] + second[i] + third[i] + fourth[i];
    });
  });
  for (std::size_t i = 0; i < parts.size(); ++i) bins[i % n] += parts[i];
  return bins;
}

}  // namespace kassette::inspect

// nn_backend/comforts/summary.cpp - what a tensor's elements are like.
#include "nn_backend/comforts/summary.h"

#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "devices/cpu/threads.h"

namespace kassette {
namespace {

/// Elements that one thread looks at in one go; by the shape alone, so that the thread count does not show in the result.
std::int64_t chunk_of(std::int64_t n) { return std::max<std::int64_t>(1 << 14, (n + 1023) / 1024); }

template <class T>
double number(T v) {
  return convert_one<double>(v);
}

/// Numbers that are summed side by side: one sum after the other would wait for itself.
constexpr int kLanes = 8;

/// The sum of what `f` makes of each finite element, in double while that holds it.
template <class T, class F>
long double finite_sum(const T* p, std::int64_t n, F f) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) {
      double v = number(p[i + j]);
      lanes[j] += v - v == 0 ? f(v) : 0.0;
    }
  for (; i < n; ++i) {
    double v = number(p[i]);
    lanes[0] += v - v == 0 ? f(v) : 0.0;
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  if (std::isfinite(sum)) return sum;
  long double wide = 0;
  for (i = 0; i < n; ++i) {
    double v = number(p[i]);
    if (v - v == 0) wide += f(static_cast<long double>(v));
  }
  return wide;
}

template <class T>
Summary summarize_chunk(const T* p, std::int64_t n) {
  Summary s;
  s.min = INFINITY;
  s.max = -INFINITY;
  s.int_min = INT64_MAX;
  s.int_max = INT64_MIN;
  double low[kLanes], high[kLanes];
  std::fill(low, low + kLanes, INFINITY);
  std::fill(high, high + kLanes, -INFINITY);
  double nan[kLanes] = {}, zeros[kLanes] = {}, finite[kLanes] = {};   // counts, as wide as what is compared
  auto look_at = [&](std::int64_t i, int j) {
    double v = number(p[i]);
    bool counts = v - v == 0;
    finite[j] += counts ? 1.0 : 0.0;
    nan[j] += v != v ? 1.0 : 0.0;
    zeros[j] += v == 0 ? 1.0 : 0.0;
    double below = counts ? v : INFINITY, above = counts ? v : -INFINITY;
    low[j] = below < low[j] ? below : low[j];
    high[j] = above > high[j] ? above : high[j];
    if constexpr (std::is_integral_v<T>) {
      s.int_min = std::min<std::int64_t>(s.int_min, p[i]);
      s.int_max = std::max<std::int64_t>(s.int_max, p[i]);
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) look_at(i + j, j);
  for (; i < n; ++i) look_at(i, 0);
  double n_finite = 0;
  for (int j = 0; j < kLanes; ++j) {
    n_finite += finite[j];
    s.nan += static_cast<std::int64_t>(nan[j]);
    s.zeros += static_cast<std::int64_t>(zeros[j]);
    s.min = std::min(s.min, low[j]);
    s.max = std::max(s.max, high[j]);
  }
  s.inf = n - s.nan - static_cast<std::int64_t>(n_finite);
  s.finite = n - s.nan - s.inf;
  if (s.finite == 0) return s;
  s.mean = finite_sum(p, n, [](auto v) { return v; }) / static_cast<long double>(s.finite);
  s.squares = finite_sum(p, n, [mean = s.mean](auto v) {
    auto d = v - static_cast<decltype(v)>(mean);
    return d * d;
  });
  return s;
}

/// Chan, Golub and LeVeque's rule for the moments of two samples together.
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

/// f(part, data, count) for each chunk, on several threads.
template <class T, class F>
void for_chunks(const T* data, std::int64_t n, F f) {
  std::int64_t chunk = chunk_of(n);
  parallel_for((n + chunk - 1) / chunk, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) f(c, data + c * chunk, std::min(chunk, n - c * chunk));
  });
}

}  // namespace

Summary summarize(const Spec& spec, const std::byte* data) {
  std::int64_t n = spec.numel(), chunk = chunk_of(n);
  std::vector<Summary> parts(static_cast<std::size_t>((n + chunk - 1) / chunk));
  dispatch(spec.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for_chunks(reinterpret_cast<const T*>(data), n,
               [&](std::int64_t c, const T* p, std::int64_t count) { parts[static_cast<std::size_t>(c)] = summarize_chunk(p, count); });
  });
  Summary whole;
  for (const Summary& s : parts) join(whole, s);
  return whole;
}

std::vector<std::int64_t> count_bins(const Spec& spec, const std::byte* data, double low, double high, int n) {
  std::int64_t elements = spec.numel(), chunk = chunk_of(elements);
  auto width = static_cast<std::size_t>(n);
  std::vector<std::int64_t> parts(static_cast<std::size_t>((elements + chunk - 1) / chunk) * width), bins(width);
  // Halved where the range is more than a double holds.
  const double unit = std::isfinite(high - low) ? 1 : 0.5, start = low * unit, range = high * unit - start;
  const double scale = range > 0 ? n / range : 0, bias = range > 0 ? 0 : n / 2;
  dispatch(spec.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for_chunks(reinterpret_cast<const T*>(data), elements, [&](std::int64_t c, const T* p, std::int64_t count) {
      std::int64_t* to = parts.data() + static_cast<std::size_t>(c) * width;
      for (std::int64_t i = 0; i < count; ++i) {
        double v = number(p[i]);
        if (!(v - v == 0)) continue;
        // The negated test sends NaN (0 times an infinite scale) to the first part.
        double at = (v * unit - start) * scale + bias;
        ++to[!(at >= 0) ? 0 : at >= n ? n - 1 : static_cast<int>(at)];
      }
    });
  });
  for (std::size_t i = 0; i < parts.size(); ++i) bins[i % width] += parts[i];
  return bins;
}

}  // namespace kassette

// nn_backend/comforts/summary_simd.cpp - the loops of summaries and histograms; compiled once per CPU level. Eight doubles side by
// side whatever the level: the order of all sums is one.
#include "nn_backend/comforts/summary_loops.h"

#include <cstring>

namespace kassette {
namespace {

constexpr int kLanes = 8;
typedef double Numbers __attribute__((vector_size(kLanes * sizeof(double))));
typedef std::int64_t Masks __attribute__((vector_size(kLanes * sizeof(double))));
typedef float Singles __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int32_t Indices __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

// Macros, since g++ warns of vectors as parameters at levels without registers of that size, though the functions be inlined.
#define KASSETTE_ALL(x) Numbers{x, x, x, x, x, x, x, x}
#define KASSETTE_SELECT(mask, a, b) reinterpret_cast<Numbers>(((mask) & reinterpret_cast<Masks>(a)) | (~(mask) & reinterpret_cast<Masks>(b)))

inline __attribute__((always_inline)) void read(const float* p, Numbers& to) {
  Singles v;
  std::memcpy(&v, p, sizeof v);
  to = __builtin_convertvector(v, Numbers);
}
inline __attribute__((always_inline)) void read(const double* p, Numbers& to) { std::memcpy(&to, p, sizeof to); }

/// f(i, values, n) for eight elements at a time; `fill` where the last are fewer.
template <class T, class F>
inline __attribute__((always_inline)) void each(const T* p, std::int64_t n, T fill, F f) {
  Numbers v;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    read(p + i, v);
    f(i, v, std::int64_t(kLanes));
  }
  if (i == n) return;
  T rest[kLanes];
  for (int j = 0; j < kLanes; ++j) rest[j] = i + j < n ? p[i + j] : fill;
  read(rest, v);
  f(i, v, n - i);
}

template <class T>
void look(const T* p, std::int64_t n, Looked* out) {
  const double infinity = __builtin_inf();
  const Numbers none = KASSETTE_ALL(0.0), most = KASSETTE_ALL(infinity), least = KASSETTE_ALL(-infinity);
  Masks finite = {}, nan = {}, zeros = {};   // -1 for each
  Numbers low = most, high = least, sum = none;
  each<T>(p, n, static_cast<T>(infinity), [&](std::int64_t, const Numbers& v, std::int64_t) __attribute__((always_inline)) {
    const Masks counts = reinterpret_cast<Masks>(v - v == none);
    finite += counts;
    nan += reinterpret_cast<Masks>(v != v);
    zeros += reinterpret_cast<Masks>(v == none);
    sum += KASSETTE_SELECT(counts, v, none);
    const Numbers below = KASSETTE_SELECT(counts, v, most), above = KASSETTE_SELECT(counts, v, least);
    const Masks less = reinterpret_cast<Masks>(below < low), more = reinterpret_cast<Masks>(above > high);
    low = KASSETTE_SELECT(less, below, low);
    high = KASSETTE_SELECT(more, above, high);
  });
  *out = {0, 0, 0, infinity, -infinity, 0};
  for (int j = 0; j < kLanes; ++j) {
    out->finite -= finite[j];
    out->nan -= nan[j];
    out->zeros -= zeros[j];
    out->min = low[j] < out->min ? low[j] : out->min;
    out->max = high[j] > out->max ? high[j] : out->max;
    out->sum += sum[j];
  }
}

template <class T>
double squares(const T* p, std::int64_t n, double mean) {
  const Numbers none = KASSETTE_ALL(0.0), center = KASSETTE_ALL(mean);
  Numbers sum = none;
  each<T>(p, n, static_cast<T>(__builtin_inf()), [&](std::int64_t, const Numbers& v, std::int64_t) __attribute__((always_inline)) {
    const Masks counts = reinterpret_cast<Masks>(v - v == none);
    const Numbers d = v - center, square = d * d;
    sum += KASSETTE_SELECT(counts, square, none);
  });
  double total = 0;
  for (int j = 0; j < kLanes; ++j) total += sum[j];
  return total;
}

template <class T>
void parts(const T* p, std::int64_t n, const PartRule& rule, std::int32_t* part) {
  const double last = rule.n - 1, outside = rule.n;
  const Numbers none = KASSETTE_ALL(0.0), unit = KASSETTE_ALL(rule.unit), start = KASSETTE_ALL(rule.start), scale = KASSETTE_ALL(rule.scale),
                bias = KASSETTE_ALL(rule.bias), most = KASSETTE_ALL(last), beyond = KASSETTE_ALL(outside);
  each<T>(p, n, T(0), [&](std::int64_t i, const Numbers& v, std::int64_t count) __attribute__((always_inline)) {
    const Masks counts = reinterpret_cast<Masks>(v - v == none);
    Numbers at = (v * unit - start) * scale + bias;
    const Masks positive = reinterpret_cast<Masks>(at >= none);   // NaN (0 times an infinite scale) is not: the first part
    at = KASSETTE_SELECT(positive, at, none);
    const Masks above = reinterpret_cast<Masks>(at > most);
    at = KASSETTE_SELECT(above, most, at);
    at = KASSETTE_SELECT(counts, at, beyond);
    const Indices index = __builtin_convertvector(at, Indices);
    if (count == kLanes) {
      std::memcpy(part + i, &index, sizeof index);
    } else {
      for (std::int64_t j = 0; j < count; ++j) part[i + j] = index[j];
    }
  });
}

template <class T>
constexpr SummaryLoops<T> loops{look<T>, squares<T>, parts<T>};

}  // namespace

constinit const SummaryTable KASSETTE_LEVEL_NAME(summary_table) = {loops<float>, loops<double>};

}  // namespace kassette

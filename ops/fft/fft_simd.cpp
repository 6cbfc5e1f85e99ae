// ops/fft/fft_simd.cpp - Fourier transforms in lanes: lane i of every vector belongs to row i of a group of rows.
// Compiled once per CPU level.
#include "devices/cpu/simd_transpose.h"
#include "ops/fft/fft_butterflies.h"
#include "ops/fft/fft_loops.h"

namespace kassette::ops {
namespace {

/// Vectors of real and of imaginary parts.
template <class T>
struct Parts {
  using V = xsimd::batch<T>;
  T *re, *im;
  static constexpr std::int64_t w = Vec<T>::kWidth;
  KASSETTE_FN Complex<V> load(std::int64_t k) const {
    return {V::load_aligned(re + k * w), V::load_aligned(im + k * w)};
  }
  KASSETTE_FN void store(std::int64_t k, const Complex<V>& v) const {
    v.re.store_aligned(re + k * w);
    v.im.store_aligned(im + k * w);
  }
  KASSETTE_FN void clear(std::int64_t from, std::int64_t to) const {
    for (std::int64_t k = from; k < to; ++k) store(k, {V(T(0)), V(T(0))});
  }
  Parts swapped() const { return {im, re}; }
};
/// The same number in all lanes, from the two parts at p.
template <class T>
KASSETTE_FN Complex<xsimd::batch<T>> everywhere(const T* p) {
  return {xsimd::batch<T>(p[0]), xsimd::batch<T>(p[1])};
}

// --- Stockham's passes -----------------------------------------------------------------------------------------------
/// One pass of radix p: x holds `s` transforms of p * m numbers each, y then p * s of m numbers.
template <int p, class T>
void pass(const Parts<T>& x, const Parts<T>& y, std::int64_t m, std::int64_t s, const T* roots) {
  using V = xsimd::batch<T>;
  auto column = [&](std::int64_t j, auto turn) __attribute__((always_inline)) {
    for (std::int64_t q = 0; q < s; ++q) {
      Complex<V> a[p];
      for (int k = 0; k < p; ++k) a[k] = x.load(q + s * (j + m * k));
      transform(a);
      turn(a);
      for (int k = 0; k < p; ++k) y.store(q + s * (p * j + k), a[k]);
    }
  };
  column(0, [](auto&) __attribute__((always_inline)){});
  for (std::int64_t j = 1; j < m; ++j) {
    roots += 2 * (p - 1);
    column(
        j, [&](auto& a) __attribute__((always_inline)) {
          for (int k = 1; k < p; ++k) a[k] = a[k] * everywhere(roots + 2 * (k - 1));
        });
  }
}
/// A pass of any odd radix p. `circle` has its p roots behind those of the pass.
template <class T>
void pass_of(int p, const Parts<T>& x, const Parts<T>& y, std::int64_t m, std::int64_t s, const T* roots) {
  using V = xsimd::batch<T>;
  const T* circle = roots + 2 * (p - 1) * m;
  const int h = p / 2;
  Complex<V> sum[kLargestRadix / 2], difference[kLargestRadix / 2];
  for (std::int64_t j = 0; j < m; ++j, roots += 2 * (p - 1))
    for (std::int64_t q = 0; q < s; ++q) {
      const Complex<V> first = x.load(q + s * j);
      Complex<V> all = first;
      for (int k = 1; k <= h; ++k) {
        const Complex<V> a = x.load(q + s * (j + m * k)), b = x.load(q + s * (j + m * (p - k)));
        sum[k - 1] = a + b;
        difference[k - 1] = a - b;
        all = all + sum[k - 1];
      }
      y.store(q + s * p * j, all);
      for (int k = 1; k <= h; ++k) {
        Complex<V> even = first, odd{V(T(0)), V(T(0))};
        for (int i = 1, at = k; i <= h; ++i, at = at + k < p ? at + k : at + k - p) {
          const V c(circle[2 * at]), sine(-circle[2 * at + 1]);
          even = {m::fma(sum[i - 1].re, c, even.re), m::fma(sum[i - 1].im, c, even.im)};
          odd = {m::fma(difference[i - 1].re, sine, odd.re), m::fma(difference[i - 1].im, sine, odd.im)};
        }
        y.store(q + s * (p * j + k), (even + turned(odd)) * everywhere(roots + 2 * (k - 1)));
        y.store(q + s * (p * j + p - k), (even - turned(odd)) * everywhere(roots + 2 * (p - k - 1)));
      }
    }
}
template <class T>
void passes(const FftPlan<T>& plan, Parts<T>& x, Parts<T>& y) {
  const T* roots = plan.twiddles.data();
  std::int64_t m = plan.n, s = 1;
  for (const int p : plan.radices) {
    m /= p;
    switch (p) {
      case 2: pass<2>(x, y, m, s, roots); break;
      case 3: pass<3>(x, y, m, s, roots); break;
      case 4: pass<4>(x, y, m, s, roots); break;
      case 5: pass<5>(x, y, m, s, roots); break;
      case 7: pass<7>(x, y, m, s, roots); break;
      case 8: pass<8>(x, y, m, s, roots); break;
      default: pass_of(p, x, y, m, s, roots); roots += 2 * p;
    }
    roots += 2 * (p - 1) * m;
    s *= p;
    const Parts<T> z = x;
    x = y;
    y = z;
  }
}
/// The transform of x, with the sign of a forward one, in x; y is memory to work in.
template <class T>
void transform_lanes(const FftPlan<T>& plan, Parts<T>& x, Parts<T>& y) {
  if (plan.way != FftWay::chirp) return passes(plan, x, y);
  const FftPlan<T>& inner = *plan.convolution;
  auto multiply = [&](std::int64_t n, const T* by) __attribute__((always_inline)) {
    for (std::int64_t k = 0; k < n; ++k) x.store(k, x.load(k) * everywhere(by + 2 * k));
  };
  multiply(plan.n, plan.chirp.data());
  x.clear(plan.n, inner.n);
  passes(inner, x, y);
  multiply(inner.n, plan.spectrum.data());
  x = x.swapped();  // the inverse transform: with the parts exchanged
  y = y.swapped();
  passes(inner, x, y);
  x = x.swapped();
  y = y.swapped();
  multiply(plan.n, plan.chirp.data());
}

// --- rows in memory
// ----------------------------------------------------------------------------------------------------
/// The rows of a group in one of the arrays of a job.
template <class T>
struct Rows {
  using V = xsimd::batch<T>;
  static constexpr std::int64_t w = Vec<T>::kWidth;
  std::int64_t offset[w], step, count;  // of the lanes; those from `count` on repeat the last row
  bool adjacent;                        // whether element k of all rows is one piece of memory

  template <class U>
  Rows(const FftSide<U>& side, std::int64_t first, std::int64_t n) : step(side.inner), count(n) {
    for (std::int64_t l = 0; l < w; ++l) {
      const std::int64_t r = first + (l < n ? l : n - 1);
      offset[l] = r / side.inner * side.length * side.inner + r % side.inner;
    }
    adjacent = step > 1 && offset[n - 1] - offset[0] == n - 1;
  }
  KASSETTE_FN V gather(const T* from, std::int64_t k) const {
    alignas(64) T lanes[w];
    for (std::int64_t l = 0; l < w; ++l) lanes[l] = from[offset[l] + k * step];
    return V::load_aligned(lanes);
  }
  KASSETTE_FN void scatter(T* to, std::int64_t k, const V& v) const {
    alignas(64) T lanes[w];
    v.store_aligned(lanes);
    for (std::int64_t l = 0; l < count; ++l) to[offset[l] + k * step] = lanes[l];
  }
  /// Calls put(k, element k of all rows) for k < n.
  template <class Put>
  KASSETTE_FN void load(const T* from, std::int64_t n, Put put) const {
    std::int64_t k = 0;
    if (adjacent) {
      const Part<T> part{count};
      for (; k < n; ++k) put(k, part.load(from + offset[0] + k * step));
    } else if (step == 1) {
      for (; k + w <= n; k += w) {
        V block[w];
        for (std::int64_t l = 0; l < w; ++l) block[l] = V::load_unaligned(from + offset[l] + k);
        devices::transpose(block);
        for (std::int64_t l = 0; l < w; ++l) put(k + l, block[l]);
      }
    }
    for (; k < n; ++k) put(k, gather(from, k));
  }
  /// Stores get(k) as element k of all rows, for k < n.
  template <class Get>
  KASSETTE_FN void store(T* to, std::int64_t n, Get get) const {
    std::int64_t k = 0;
    if (adjacent) {
      const Part<T> part{count};
      for (; k < n; ++k) part.store(to + offset[0] + k * step, get(k));
    } else if (step == 1) {
      for (; k + w <= n; k += w) {
        V block[w];
        for (std::int64_t l = 0; l < w; ++l) block[l] = get(k + l);
        devices::transpose(block);
        for (std::int64_t l = 0; l < count; ++l) block[l].store_unaligned(to + offset[l] + k);
      }
    }
    for (; k < n; ++k) scatter(to, k, get(k));
  }
};

// --- the forms
// -----------------------------------------------------------------------------------------------------------
/// A group of rows at work: x holds its numbers, y is memory to work in.
template <class T>
struct Group {
  using V = xsimd::batch<T>;
  const FftJob<T>& job;
  Parts<T> x, y;
  std::int64_t n = job.n, half = job.n / 2 + 1;
  bool even = job.n % 2 == 0;

  bool takes_half() const { return job.form == FftForm::half_to_real; }
  bool takes_real() const { return job.form == FftForm::real_to_complex || job.form == FftForm::real_to_half; }
  /// Whether number k of the half has a mirror image.
  KASSETTE_FN bool mirrored(std::int64_t k) const { return k > 0 && 2 * k != n; }
  void swap() {
    x = x.swapped();
    y = y.swapped();
  }

  void load(const Rows<T>& rows) {
    const std::int64_t given = job.from.length, w = Parts<T>::w;
    auto part = [&](const T* from, T* to, std::int64_t count, std::int64_t all) __attribute__((always_inline)) {
      if (!from) count = 0;
      rows.load(
          from, count, [=](std::int64_t k, const V& v) __attribute__((always_inline)) { v.store_aligned(to + k * w); });
      for (std::int64_t k = count; k < all; ++k) V(T(0)).store_aligned(to + k * w);
    };
    if (takes_half()) {
      const std::int64_t count = given < half ? given : half;
      part(job.from.re, x.re, count, half);
      part(job.from.im, x.im, count, half);
      return weigh_half();
    }
    const std::int64_t count = given < n ? given : n;
    if (!takes_real() || !even) {
      part(job.from.re, x.re, count, n);
      part(takes_real() ? nullptr : job.from.im, x.im, count, n);
      return;
    }
    // Pairs of real numbers as complex ones.
    auto place = [&](std::int64_t k) __attribute__((always_inline)) { return (k % 2 ? x.im : x.re) + k / 2 * w; };
    rows.load(
        job.from.re,
        count, [&](std::int64_t k, const V& v) __attribute__((always_inline)) { v.store_aligned(place(k)); });
    for (std::int64_t k = count; k < n; ++k) V(T(0)).store_aligned(place(k));
  }
  /// Multiplies by the weight, and takes the conjugate of the half unless the transform is an inverse one.
  void weigh_half() {
    const V weight(job.weight), sign(job.inverse ? job.weight : -job.weight);
    for (std::int64_t k = 0; k < half; ++k) {
      Complex<V> v = x.load(k);
      if (mirrored(k)) v = {v.re * weight, v.im * sign};
      else v.im = V(T(0));
      x.store(k, v);
    }
  }

  /// Makes the whole spectrum of the half of an odd n.
  void mirror_half() {
    for (std::int64_t k = 1; k < half; ++k) {
      const Complex<V> v = x.load(k);
      x.store(n - k, {v.re, V(T(0)) - v.im});
    }
  }
  /// Of an even n: what n / 2 complex numbers, which are pairs of the real results, have as their spectrum.
  void fold_half() {
    for (std::int64_t k = 0, m = n / 2; k <= m - k; ++k) {
      const Complex<V> a = x.load(k), b = x.load(m - k), root = everywhere(job.roots + 2 * k);
      const Complex<V> s{a.re + b.re, a.im - b.im},
          g = Complex<V>{a.re - b.re, a.im + b.im} * Complex<V>{root.re, V(T(0)) - root.im};
      x.store(k, {s.re - g.im, s.im + g.re});
      if (k) x.store(m - k, {s.re + g.im, g.re - s.im});
    }
  }
  /// Of the spectrum of n / 2 pairs of real numbers, the half of that of the numbers.
  void unfold_half() {
    const V a_half(T(0.5)), zero(T(0));
    const std::int64_t m = n / 2;
    const Complex<V> first = x.load(0);
    x.store(0, {first.re + first.im, zero});
    x.store(m, {first.re - first.im, zero});
    for (std::int64_t k = 1; k <= m - k; ++k) {
      const Complex<V> a = x.load(k), b = x.load(m - k);
      const Complex<V> e{(a.re + b.re) * a_half, (a.im - b.im) * a_half},
          o{(a.im + b.im) * a_half, (b.re - a.re) * a_half};
      const Complex<V> t = o * everywhere(job.roots + 2 * k);
      x.store(k, e + t);
      if (k != m - k) x.store(m - k, {e.re - t.re, t.im - e.im});
    }
  }

  void run() {
    const bool exchanged = takes_half() || (job.inverse && !takes_real());
    if (takes_half()) even ? fold_half() : mirror_half();
    if (exchanged) swap();
    transform_lanes(*job.plan, x, y);
    if (exchanged) swap();
    if (takes_real() && even) unfold_half();
  }

  /// Result k, of which parts that are not wanted may be anything.
  KASSETTE_FN Complex<V> result(std::int64_t k) const {
    const V scale(job.scale);
    Complex<V> v = x.load(k);
    if (job.form == FftForm::real_to_half && mirrored(k)) v = {v.re * V(job.weight), v.im * V(job.weight)};
    return {v.re * scale, v.im * scale};
  }
  void store(const Rows<T>& rows, std::int64_t first) {
    const std::int64_t w = Parts<T>::w, have = job.form == FftForm::real_to_half ? half : n;
    const std::int64_t count = job.to.length < have ? job.to.length : have;
    auto part = [&](T * to, auto get) __attribute__((always_inline)) {
      if (!to) return;
      rows.store(to, count, get);
      if (count < job.to.length)
        rows.store(
            to + count * rows.step, job.to.length - count,
            [](std::int64_t) __attribute__((always_inline)) { return V(T(0)); });
    };
    if (takes_half() && even) {
      const V scale(job.scale);
      return part(
          job.to.re, [&](std::int64_t k) __attribute__((always_inline)) {
            return V::load_aligned((k % 2 ? x.im : x.re) + k / 2 * w) * scale;
          });
    }
    if (job.steps) return store_step(rows, first);
    // Of real numbers there is only the half; the inverse transform has the conjugates.
    const bool only_half = takes_real() && even;
    const V sign(takes_real() && job.inverse ? T(-1) : T(1));
    part(
        job.to.re, [&](std::int64_t k)
                       __attribute__((always_inline)) { return result(only_half && k >= half ? n - k : k).re; });
    part(
        job.to.im, [&](std::int64_t k) __attribute__((always_inline)) {
          if (takes_real() && !mirrored(k)) return V(T(0));
          return only_half && k >= half ? result(n - k).im * (V(T(0)) - sign) : result(k).im * sign;
        });
  }
  /// The results of the first of two steps: multiplied by e^(-2 pi i k l / n) in row l.
  void store_step(const Rows<T>& rows, std::int64_t first) {
    const FftPlan<T>& p = *job.steps;
    const std::int64_t start = first & ~(kMostLanes - 1);
    const T* lanes = p.lane_roots.data() + (first - start);
    const Part<T> part{rows.count};
    for (std::int64_t k = 0; k < n; ++k) {
      const Root r = p.root(k * start);
      const Complex<V> here{V(static_cast<T>(r.re)), V(static_cast<T>(r.im))};
      const T* at = lanes + 2 * kMostLanes * k;
      const Complex<V> v = x.load(k) * (here * Complex<V>{V::load_unaligned(at), V::load_unaligned(at + kMostLanes)});
      part.store(job.to.re + rows.offset[0] + k * rows.step, v.re);
      part.store(job.to.im + rows.offset[0] + k * rows.step, v.im);
    }
  }
};

template <class T>
void run_groups(const FftJob<T>& job, std::int64_t begin, std::int64_t end, T* work) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  const std::int64_t in_span = (job.span + w - 1) / w, size = (job.plan->work + 1) * w;
  for (std::int64_t g = begin; g < end; ++g) {
    const std::int64_t within = g % in_span * w, first = g / in_span * job.span + within;
    const std::int64_t count = job.span - within < w ? job.span - within : w;
    Group<T> group{job, {work, work + size}, {work + 2 * size, work + 3 * size}};
    group.load(Rows<T>(job.from, first, count));
    group.run();
    group.store(Rows<T>(job.to, first, count), first);
  }
}

// --- parts of Bluestein's algorithm for one row
// ------------------------------------------------------------------------
template <class T>
KASSETTE_FN void multiply_row(const ChirpRow<T>& row, const T* by, std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) {
    const T re = row.re ? row.re[k] : T(0), im = row.im ? row.im[k] : T(0), c = by[2 * k], s = by[2 * k + 1];
    row.to_re[k] = re * c - im * s;
    row.to_im[k] = re * s + im * c;
  }
}
template <class T>
void chirp_in(const ChirpRow<T>& row, std::int64_t begin, std::int64_t end) {
  const std::int64_t given = row.given < end ? row.given : end;
  multiply_row(row, row.plan->chirp.data(), begin, given);
  for (std::int64_t k = given > begin ? given : begin; k < end; ++k) row.to_re[k] = row.to_im[k] = 0;
}
template <class T>
void chirp_spectrum(const ChirpRow<T>& row, std::int64_t begin, std::int64_t end) {
  multiply_row(row, row.plan->spectrum.data(), begin, end);
}
template <class T>
void chirp_out(const ChirpRow<T>& row, std::int64_t begin, std::int64_t end) {
  multiply_row(row, row.plan->chirp.data(), begin, end);
}

template <class T>
constexpr FftLoops<T> loops{Vec<T>::kWidth, run_groups<T>, chirp_in<T>, chirp_spectrum<T>, chirp_out<T>};

}  // namespace

constinit const FftTable KASSETTE_LEVEL_NAME(fft_table) = {loops<float>, loops<double>};

}  // namespace kassette::ops

// ops/ctc/ctc_simd.cpp - the CTC loss of a sample in linear space (Note [CTC in linear space]); compiled once per CPU
// level.
#include "ops/elementwise/simd.h"

#include <cmath>
#include <limits>

#include "ops/ctc/ctc_loops.h"

namespace kassette::ops {
namespace {

constexpr double kSmall = 0x1p-880;
constexpr std::int64_t kScaled = 8;  // steps from one scaling to the next; states change little in between

using D = Vec<double>;
using V = D::V;
constexpr std::int64_t kW = D::kWidth;

// ---- rows -----------------------------------------------------------------------------------------------------------
/// The states of a step: labels, then blanks, with zeros before and after them, which are read as neighbours of the
/// first and the last.
struct States {
  double *a, *b;  // labels, blanks
  States(double* row, std::int64_t width) : a(row + 8), b(row + 8 + width) {}
};
inline std::int64_t row_size(std::int64_t width) { return 2 * width + 16; }
KASSETTE_FN void clear(double* p, std::int64_t n) { std::memset(p, 0, static_cast<std::size_t>(n) * sizeof *p); }

template <class T>
KASSETTE_FN xsimd::batch<T> zero_from(const xsimd::batch<T>& v, std::int64_t n) {
  using B = xsimd::batch<T>;
  alignas(64) static constexpr T kLane[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return xsimd::select(B::load_aligned(kLane) < B(static_cast<T>(n)), v, B(T(0)));
}
template <class B, class F>
KASSETTE_FN auto across(const B& v, F f) {
  using T = typename B::value_type;
  alignas(64) T lane[B::size];
  v.store_aligned(lane);
  for (std::size_t half = B::size / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lane[i] = f(lane[i], lane[i + half]);
  return lane[0];
}

/// Returns 1 / sum(y + epsilon) over the classes; NaN if one of them is negative, as its logarithm would be.
template <class T>
KASSETTE_FN double inverse_sum(const T* y, std::int64_t n, double epsilon) {
  using X = Vec<T>;
  using B = typename X::V;
  B total(T(0)), least(T(0));
  std::int64_t i = 0;
  for (; i + X::kWidth <= n; i += X::kWidth) {
    const B v = X::load(y + i);
    total = total + v;
    least = xsimd::min(least, v);
  }
  if (i < n) {
    const B v = zero_from(X::load_part(y + i, n - i), n - i);
    total = total + v;
    least = xsimd::min(least, v);
  }
  const T low = across(least, [](T p, T q) { return p < q ? p : q; });
  if (static_cast<double>(low) + epsilon < 0) return std::numeric_limits<double>::quiet_NaN();
  return 1 / (static_cast<double>(across(total, [](T p, T q) { return p + q; })) + static_cast<double>(n) * epsilon);
}

/// Sets q to the probabilities of the labels at a step, and returns that of the blank.
template <class T>
KASSETTE_FN double emissions(const CtcSample<T>& s, std::int64_t t, double inverse, double* q) {
  const T* y = s.y + t * s.classes;
  for (std::int64_t i = 0; i < s.length; ++i) q[i] = (static_cast<double>(y[s.labels[i]]) + s.epsilon) * inverse;
  return (static_cast<double>(y[s.classes - 1]) + s.epsilon) * inverse;
}

// ---- which states matter --------------------------------------------------------------------------------------------
/// The number of elements below v among n increasing numbers.
KASSETTE_FN std::int64_t below(const std::int64_t* x, std::int64_t n, std::int64_t v) {
  std::int64_t from = 0;
  while (n > 0) {
    const std::int64_t half = n / 2;
    if (x[from + half] < v) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}
/// The states that a complete path can be in at step t: labels [a, a_end) and blanks [b, b_end).
struct Live {
  std::int64_t a, a_end, b, b_end;
  template <class T>
  Live(const CtcSample<T>& s, std::int64_t t)
      : a(below(s.first, s.length, t - s.slack())), a_end(below(s.first, s.length, t + 1)),
        b(below(s.first, s.length, t - s.slack() + 1)), b_end(below(s.first, s.length, t) + 1) {}
};

struct Extremes {
  double least = std::numeric_limits<double>::infinity(), most = 0;
};
KASSETTE_FN void widen(Extremes& e, const double* p, std::int64_t n) {
  std::int64_t i = 0;
  if (n >= kW) {
    V least = D::load(p), most = least;
    for (; i + kW <= n; i += kW) {
      const V v = D::load(p + i);
      least = xsimd::min(least, v);
      most = xsimd::max(most, v);
    }
    const double low = across(least, [](double x, double y) { return x < y ? x : y; }),
                 high = across(most, [](double x, double y) { return x > y ? x : y; });
    e.least = low < e.least ? low : e.least;
    e.most = high > e.most ? high : e.most;
  }
  for (; i < n; ++i) {
    e.least = p[i] < e.least ? p[i] : e.least;
    e.most = p[i] > e.most ? p[i] : e.most;
  }
}
KASSETTE_FN Extremes extremes(const States& x, const Live& live) {
  Extremes e;
  widen(e, x.a + live.a, live.a_end - live.a);
  widen(e, x.b + live.b, live.b_end - live.b);
  return e;
}

/// Divides a whole row by the largest power of two that is not above `most`, a normal number; returns its exponent.
KASSETTE_FN std::int64_t scale(const States& x, std::int64_t width, double most) {
  std::uint64_t bits;
  std::memcpy(&bits, &most, sizeof bits);
  const std::int64_t exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  bits = static_cast<std::uint64_t>(1023 - exponent) << 52;
  double factor;
  std::memcpy(&factor, &bits, sizeof factor);
  for (std::int64_t i = 0; i < width; i += kW) {
    D::store(x.a + i, D::load(x.a + i) * V(factor));
    D::store(x.b + i, D::load(x.b + i) * V(factor));
  }
  return exponent;
}

// ---- alpha: the probability of the paths to a state, including its own q --------------------------------------------
KASSETTE_FN void start_alpha(const States& x, std::int64_t width, std::int64_t length, const double* q, double blank) {
  clear(x.a, 2 * width);
  if (length > 0) x.a[0] = q[0];
  x.b[0] = blank;
}
KASSETTE_FN void step_alpha(const States& from, const States& to, std::int64_t width, const double* skip,
                            const double* q, double blank) {
  for (std::int64_t i = 0; i < width; i += kW) {
    const V a = D::load(from.a + i), b = D::load(from.b + i), left = D::load(from.a + i - 1);
    D::store(to.b + i, (b + left) * V(blank));
    D::store(to.a + i, (a + b + D::load(skip + i) * left) * D::load(q + i));
  }
}
/// Clears the states from which the end cannot be reached any more, and scales the others. Returns false if the largest
/// is too small or NaN.
template <class T>
KASSETTE_FN bool scale_alpha(const CtcSample<T>& s, std::int64_t t, const States& x, std::int64_t width,
                             std::int64_t& exponent, double& least) {
  const Live live(s, t);
  const Extremes e = extremes(x, live);
  if (!(e.most >= kSmall)) return false;
  clear(x.a, live.a);
  clear(x.b, live.b);
  least = e.least < least ? e.least : least;
  exponent += scale(x, width, e.most);
  return true;
}
KASSETTE_FN double end_of(const States& x, std::int64_t length) {
  return x.b[length] + (length > 0 ? x.a[length - 1] : 0);
}

/// -log of p * 2^exponent. The exponent is an exact integer, so that scaling adds no rounding errors.
KASSETTE_FN double loss_of(double p, std::int64_t exponent) {
  const double loss = -(std::log(p) + static_cast<double>(exponent) * 0.69314718055994530942);
  return loss == 0 ? 0 : loss;  // not -0
}

template <class T>
bool loss_loop(const CtcSample<T>& s, double* scratch, double* loss) {
  const std::int64_t width = ctc_width(s.length), row = row_size(width);
  double *q = scratch, *rows = scratch + 2 * width;
  clear(scratch, ctc_loss_scratch(s.length));
  std::int64_t exponent = 0;
  double least = 1;
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const States x(rows + t % 2 * row, width);
    const double blank = emissions(s, t, inverse_sum(s.y + t * s.classes, s.classes, s.epsilon), q);
    if (t == 0) start_alpha(x, width, s.length, q, blank);
    else step_alpha(States(rows + (t + 1) % 2 * row, width), x, width, s.skip, q, blank);
    if ((t + 1) % kScaled == 0 && !scale_alpha(s, t, x, width, exponent, least)) return false;
  }
  const double p = end_of(States(rows + (s.steps - 1) % 2 * row, width), s.length);
  *loss = loss_of(p, exponent);
  return least >= kSmall && p >= kSmall && p < std::numeric_limits<double>::infinity();
}

// ---- beta: the probability of the paths from a state, without its own q ---------------------------------------------
/// `x` holds beta * q of the next step, and becomes beta of this one.
KASSETTE_FN void step_beta(const States& x, std::int64_t width, const double* skip) {
  for (std::int64_t i = 0; i < width; i += kW) {
    const V a = D::load(x.a + i), b = D::load(x.b + i);
    D::store(x.a + i, a + D::load(x.b + i + 1) + D::load(skip + i + 1) * D::load(x.a + i + 1));
    D::store(x.b + i, b + a);
  }
}
KASSETTE_FN void emit(const States& x, std::int64_t width, const double* q, double blank) {
  for (std::int64_t i = 0; i < width; i += kW) {
    D::store(x.a + i, D::load(x.a + i) * D::load(q + i));
    D::store(x.b + i, D::load(x.b + i) * V(blank));
  }
}
/// Clears the states that no path can have reached at step t, and scales the others. Returns false as scale_alpha()
/// does.
template <class T>
KASSETTE_FN bool scale_beta(const CtcSample<T>& s, std::int64_t t, const States& x, std::int64_t width) {
  const Live live(s, t);
  const Extremes e = extremes(x, live);
  if (!(e.most >= kSmall)) return false;
  clear(x.a + live.a_end, width - live.a_end);
  clear(x.b + live.b_end, width - live.b_end);
  scale(x, width, e.most);
  return true;
}

/// Sets g to the gradient at a step, as CtcLoops::gradient defines it; `inverse` is 1 / sum(z). Returns false if the
/// proof fails.
template <class T>
KASSETTE_FN bool write_gradient(const CtcSample<T>& s, const States& alpha, const States& beta, std::int64_t width,
                                const double* q, double blank, double inverse, double* part, T* g) {
  V labels(0.0), blanks(0.0);
  for (std::int64_t i = 0; i < width; i += kW) {
    const V share = D::load(alpha.a + i) * D::load(beta.a + i);
    D::store(part + i, share);
    labels = labels + share;
    blanks = blanks + D::load(alpha.b + i) * D::load(beta.b + i);
  }
  const auto add = [](double x, double y) { return x + y; };
  const double of_blank = across(blanks, add), sum = across(labels, add) + of_blank;
  if (!(sum >= kSmall && sum < std::numeric_limits<double>::infinity())) return false;
  if (!g) return true;
  const double factor = inverse / sum;
  for (std::int64_t i = 0; i < width; i += kW) D::store(part + i, D::load(part + i) * V(factor) / D::load(q + i));
  const xsimd::batch<T> plain(static_cast<T>(inverse));
  std::int64_t k = 0;
  for (; k + Vec<T>::kWidth <= s.classes; k += Vec<T>::kWidth) Vec<T>::store(g + k, plain);
  if (k < s.classes) Vec<T>::store_part(g + k, plain, s.classes - k);
  g[s.classes - 1] = static_cast<T>(inverse - of_blank * factor / blank);
  if (s.n_seen == s.length) {
    for (std::int64_t i = 0; i < s.length; ++i) g[s.labels[i]] = static_cast<T>(inverse - part[i]);
    return true;
  }
  // The shares of a class that occurs several times are added up in its slot, which is not after any of them.
  for (std::int64_t i = 0; i < s.length; ++i) {
    const double share = part[i];
    part[i] = 0;
    part[s.slot[i]] += share;
  }
  for (std::int64_t i = 0; i < s.n_seen; ++i) g[s.seen[i]] = static_cast<T>(inverse - part[i]);
  return true;
}

template <class T>
bool gradient_loop(const CtcSample<T>& s, double* scratch, double* loss, T* g) {
  const std::int64_t width = ctc_width(s.length), row = row_size(width), last = s.steps - 1;
  double *q = scratch, *part = q + width, *rows = part + width, *inverse = rows + (s.steps + 1) * row;
  clear(scratch, 2 * width);
  std::int64_t exponent = 0;
  double least = 1;
  for (std::int64_t t = 0; t <= last; ++t) {
    double* at = rows + t * row;
    clear(at, 8);
    clear(at + row - 8, 8);
    const States x(at, width);
    inverse[t] = inverse_sum(s.y + t * s.classes, s.classes, s.epsilon);
    const double blank = emissions(s, t, inverse[t], q);
    if (t == 0) start_alpha(x, width, s.length, q, blank);
    else step_alpha(States(at - row, width), x, width, s.skip, q, blank);
    if ((t + 1) % kScaled == 0 && !scale_alpha(s, t, x, width, exponent, least)) return false;
  }
  *loss = loss_of(end_of(States(rows + last * row, width), s.length), exponent);
  clear(rows + s.steps * row, row);
  const States beta(rows + s.steps * row, width);
  beta.b[s.length] = 1;
  if (s.length > 0) beta.a[s.length - 1] = 1;
  for (std::int64_t t = last; t >= 0; --t) {
    if (t < last) step_beta(beta, width, s.skip);
    if ((t + 1) % kScaled == 0 && !scale_beta(s, t, beta, width)) return false;
    const double blank = emissions(s, t, inverse[t], q);
    if (!write_gradient(s, States(rows + t * row, width), beta, width, q, blank, inverse[t], part,
                        g ? g + t * s.classes : g))
      return false;
    emit(beta, width, q, blank);
  }
  return true;
}

template <class T>
void uniform_loop(const CtcSample<T>& s, T* g) {
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const T inverse = static_cast<T>(inverse_sum(s.y + t * s.classes, s.classes, s.epsilon));
    for (std::int64_t k = 0; k < s.classes; ++k) g[t * s.classes + k] = inverse;
  }
}

template <class T>
constexpr CtcLoops<T> loops{loss_loop<T>, gradient_loop<T>, uniform_loop<T>};

}  // namespace

constinit const CtcTable KASSETTE_LEVEL_NAME(ctc_table) = {loops<float>, loops<double>};

}  // namespace kassette::ops

// ops/softmax/softmax_simd.cpp - the loops of softmax and its losses; compiled once per CPU level. Vectors along rows
// are inefficient for rows of a few vectors, so short rows are transposed, as many as a vector has lanes at a time, and
// computed by the loops for columns.
#include "ops/softmax/softmax_vectors.h"

namespace kassette::ops {
namespace {

// --- columns ---------------------------------------------------------------------------------------------------------
/// A LogSums in registers: numbers, or vectors of columns.
template <class V>
struct LogSum {
  V max, log_sum;
};
template <class T>
KASSETTE_FN void store_sums(const LogSums<T>& to, std::int64_t i, const LogSum<xsimd::batch<T>>& s, Part<T> part) {
  part.store(to.max + i, s.max);
  part.store(to.log_sum + i, s.log_sum);
}

template <class T>
KASSETTE_FN LogSum<xsimd::batch<T>> softmax_column(const T* x, T* y, bool log, std::int64_t n, std::int64_t x_stride,
                                                   std::int64_t y_stride, Part<T> part) {
  auto max = column_max(x, n, x_stride, part);
  auto total = column_sum<T>(n, [&](std::int64_t r) {
    auto e = m::exp(part.load(x + r * x_stride) - max);
    part.store(y + r * y_stride, e);
    return e;
  });
  auto scale = xsimd::batch<T>(T(1)) / total;
  for (std::int64_t r = 0; r < n; ++r) part.store(y + r * y_stride, part.load(y + r * y_stride) * scale);
  return {max, log ? xsimd::log(total) : total};
}
template <class T>
void softmax_columns(const T* x, T* y, LogSums<T> sums, std::int64_t n, std::int64_t stride, std::int64_t width) {
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    const auto s = softmax_column(x + c, y + c, sums.max != nullptr, n, stride, stride, part);
    if (sums.max) store_sums(sums, c, s, part);
  });
}
template <class T>
KASSETTE_FN LogSum<xsimd::batch<T>> log_sum_column(const T* x, std::int64_t n, std::int64_t stride, Part<T> part) {
  auto shift = shift_of(column_max(x, n, stride, part));
  auto total = column_sum<T>(n, [&](std::int64_t r) { return m::exp(part.load(x + r * stride) - shift); });
  return {shift, xsimd::log(total)};
}
template <class T>
void logsumexp_columns(const T* x, T* out, std::int64_t n, std::int64_t stride, std::int64_t width) {
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    const auto s = log_sum_column(x + c, n, stride, part);
    part.store(out + c, s.log_sum + s.max);
  });
}
template <class T>
void log_softmax_columns(const T* x, T* y, std::int64_t n, std::int64_t stride, std::int64_t width) {
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    const auto s = log_sum_column(x + c, n, stride, part);
    for (std::int64_t r = 0; r < n; ++r)
      part.store(y + r * stride + c, (part.load(x + r * stride + c) - s.max) - s.log_sum);
  });
}
template <class T>
void softmax_grad_columns(const T* dy, const T* y, T* dx, std::int64_t n, std::int64_t stride, std::int64_t width) {
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    auto sum = column_sum<T>(n, [&](std::int64_t r) {
      return ops::m::mul_no_nan(part.load(dy + r * stride + c), part.load(y + r * stride + c));
    });
    auto weights = column_sum<T>(n, [&](std::int64_t r) { return part.load(y + r * stride + c); });
    auto mean = no_nan(sum, sum / weights);
    for (std::int64_t r = 0; r < n; ++r) {
      std::int64_t at = r * stride + c;
      part.store(dx + at, ops::m::mul_no_nan(part.load(dy + at) - mean, part.load(y + at)));
    }
  });
}
template <class V>
KASSETTE_FN V cross_entropy_term(const V& t, const V& z, const LogSum<V>& s) {
  return xsimd::select(t == V(0), V(0), t * (s.log_sum - (z - s.max)));
}
template <class T>
void cross_entropy_columns(const T* t, const T* z, LogSums<T> sums, T* loss, std::int64_t n, std::int64_t stride,
                           std::int64_t width) {
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    const LogSum<xsimd::batch<T>> s{part.load(sums.max + c), part.load(sums.log_sum + c)};
    part.store(loss + c, column_sum<T>(n, [&](std::int64_t r) {
                 return cross_entropy_term(part.load(t + r * stride + c), part.load(z + r * stride + c), s);
               }));
  });
}
template <class T>
void cross_entropy_grad_columns(const T* dy, const T* t, const T* p, T* dz, std::int64_t n, std::int64_t stride,
                                std::int64_t width) {
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    auto g = part.load(dy + c);
    auto total = column_sum<T>(n, [&](std::int64_t r) { return part.load(t + r * stride + c); });
    for (std::int64_t r = 0; r < n; ++r) {
      std::int64_t at = r * stride + c;
      part.store(dz + at, ops::m::mul_no_nan(g, part.load(p + at) * total - part.load(t + at)));
    }
  });
}
template <class T>
struct Bounds {
  using V = xsimd::batch<T>;
  V low, high;
  KASSETTE_FN V clip(const V& q) const {
    return xsimd::select(q < low, low, xsimd::select(q > high, high, q));
  }  // keeps NaN
  /// v where q is within the bounds, else 0.
  KASSETTE_FN V inside(const V& q, const V& v) const {
    return xsimd::select(q >= low, xsimd::select(q <= high, v, V(T(0))), V(T(0)));
  }
};
template <class T>
void probability_columns(const T* t, const T* p, T low, T high, T* loss, std::int64_t n, std::int64_t stride,
                         std::int64_t width) {
  const Bounds<T> bounds{xsimd::batch<T>(low), xsimd::batch<T>(high)};
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    auto total = column_sum<T>(n, [&](std::int64_t r) { return part.load(p + r * stride + c); });
    part.store(loss + c, negative(column_sum<T>(n, [&](std::int64_t r) {
                 return part.load(t + r * stride + c) * ops::m::log(bounds.clip(part.load(p + r * stride + c) / total));
               })));
  });
}
template <class T>
void probability_grad_columns(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t n,
                              std::int64_t stride, std::int64_t width) {
  const Bounds<T> bounds{xsimd::batch<T>(low), xsimd::batch<T>(high)};
  each<T>(width, [&](std::int64_t c, std::int64_t m) {
    Part<T> part{m};
    auto total = column_sum<T>(n, [&](std::int64_t r) { return part.load(p + r * stride + c); });
    auto counted = column_sum<T>(n, [&](std::int64_t r) {
      return bounds.inside(part.load(p + r * stride + c) / total, part.load(t + r * stride + c));
    });
    auto g = part.load(dy + c);
    for (std::int64_t r = 0; r < n; ++r) {
      std::int64_t at = r * stride + c;
      auto q = part.load(p + at) / total;
      part.store(dp + at, no_nan(g, g * (counted - bounds.inside(q, part.load(t + at) / q)) / total));
    }
  });
}

// --- rows ------------------------------------------------------------------------------------------------------------
template <class T>
KASSETTE_FN LogSum<T> softmax_op(const T* x, T* y, std::int64_t n) {
  T max = max_of(x, n);
  T total = sum_over<T>(n, [&](std::int64_t i, std::int64_t m) {
    Part<T> part{m};
    auto e = m::exp(part.load(x + i) - xsimd::batch<T>(max));
    part.store(y + i, e);
    return e;
  });
  const xsimd::batch<T> scale(T(1) / total);
  each<T>(n, [&](std::int64_t i, std::int64_t m) {
    Part<T> part{m};
    part.store(y + i, part.load(y + i) * scale);
  });
  return {max, total};
}

template <class T>
constexpr std::int64_t kShort = 32;

/// Transposes `count` rows of n <= kShort elements into columns of a buffer that is a vector wide. Other columns are 0.
template <class T>
KASSETTE_FN void transpose_in(const T* x, T* buffer, std::int64_t count, std::int64_t n) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  for (std::int64_t r = 0; r < n; ++r) {
    for (std::int64_t i = 0; i < count; ++i) buffer[r * w + i] = x[i * n + r];
    for (std::int64_t i = count; i < w; ++i) buffer[r * w + i] = T(0);
  }
}
template <class T>
KASSETTE_FN void transpose_out(const T* buffer, T* y, std::int64_t count, std::int64_t n) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t r = 0; r < n; ++r) y[i * n + r] = buffer[r * w + i];
}

/// Calls f(buffer, first row, rows) for blocks of rows of n <= kShort elements, transposed into the buffer.
template <class T, class F>
KASSETTE_FN void short_rows(const T* x, std::int64_t count, std::int64_t n, F f) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  alignas(64) T buffer[kShort<T> * w];
  for (std::int64_t i = 0; i < count; i += w) {
    std::int64_t m = count - i < w ? count - i : w;
    transpose_in(x + i * n, buffer, m, n);
    f(buffer, i, m);
  }
}

template <class T>
void softmax_rows(const T* x, T* y, LogSums<T> sums, std::int64_t count, std::int64_t n) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  if (n > kShort<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const LogSum<T> s = softmax_op(x + i * n, y + i * n, n);
      if (!sums.max) continue;
      sums.max[i] = s.max;
      sums.log_sum[i] = std::log(s.log_sum);
    }
    return;
  }
  short_rows(x, count, n, [&](T* buffer, std::int64_t i, std::int64_t m) {
    const auto s = softmax_column(buffer, buffer, sums.max != nullptr, n, w, w, Part<T>{w});
    transpose_out(buffer, y + i * n, m, n);
    if (sums.max) store_sums(sums, i, s, Part<T>{m});
  });
}
template <class T>
KASSETTE_FN LogSum<T> log_sum_op(const T* x, std::int64_t n) {
  T shift = shift_of(max_of(x, n));
  T total = sum_over<T>(
      n, [&](std::int64_t k, std::int64_t m) { return m::exp(Part<T>{m}.load(x + k) - xsimd::batch<T>(shift)); });
  return {shift, std::log(total)};
}
template <class T>
void logsumexp_rows(const T* x, T* out, std::int64_t count, std::int64_t n) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  if (n > kShort<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const LogSum<T> s = log_sum_op(x + i * n, n);
      out[i] = s.log_sum + s.max;
    }
    return;
  }
  short_rows(x, count, n, [&](T* buffer, std::int64_t i, std::int64_t m) {
    const auto s = log_sum_column(buffer, n, w, Part<T>{w});
    Part<T>{m}.store(out + i, s.log_sum + s.max);
  });
}
template <class T>
void log_softmax_rows(const T* x, T* y, std::int64_t count, std::int64_t n) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  if (n > kShort<T>) {
    for (std::int64_t i = 0; i < count; ++i, x += n, y += n) {
      const LogSum<T> s = log_sum_op(x, n);
      const xsimd::batch<T> max(s.max), log_sum(s.log_sum);
      each<T>(n, [&](std::int64_t k, std::int64_t m) {
        Part<T> part{m};
        part.store(y + k, (part.load(x + k) - max) - log_sum);
      });
    }
    return;
  }
  short_rows(x, count, n, [&](T* buffer, std::int64_t i, std::int64_t m) {
    const auto s = log_sum_column(buffer, n, w, Part<T>{w});
    for (std::int64_t r = 0; r < n; ++r)
      Vec<T>::store(buffer + r * w, (Vec<T>::load(buffer + r * w) - s.max) - s.log_sum);
    transpose_out(buffer, y + i * n, m, n);
  });
}
/// sum(x * weights) / sum(weights).
template <class T>
KASSETTE_FN T weighted_mean(const T* x, const T* weights, std::int64_t n) {
  using X = Vec<T>;
  using V = xsimd::batch<T>;
  constexpr std::int64_t w = X::kWidth;
  V a(T(0)), b(T(0)), all_a(T(0)), all_b(T(0));
  std::int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    const V first = X::load(weights + i), second = X::load(weights + i + w);
    a = a + X::load(x + i) * first;
    b = b + X::load(x + i + w) * second;
    all_a = all_a + first;
    all_b = all_b + second;
  }
  for (; i < n; i += w) {
    Part<T> part{n - i};
    const V last = n - i < w ? only_first(part.load(weights + i), n - i, T(0)) : part.load(weights + i);
    a = a + part.load(x + i) * last;
    all_a = all_a + last;
  }
  return across_sum<T>(a + b) / across_sum<T>(all_a + all_b);
}
template <class T>
void softmax_grad_rows(const T* dy, const T* y, T* dx, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i, dy += n, y += n, dx += n) {
    const T of_row = weighted_mean(dy, y, n);
    if (__builtin_expect(of_row != of_row, 0) && all_zero(dy, n)) {
      set_zero(dx, n);
      continue;
    }
    const xsimd::batch<T> mean(of_row);
    each<T>(n, [&](std::int64_t k, std::int64_t m) {
      Part<T> part{m};
      part.store(dx + k, part.load(y + k) * (part.load(dy + k) - mean));
    });
  }
}
template <class T>
void cross_entropy_rows(const T* t, const T* z, LogSums<T> sums, T* loss, std::int64_t count, std::int64_t n) {
  using V = xsimd::batch<T>;
  for (std::int64_t i = 0; i < count; ++i, t += n, z += n) {
    const LogSum<V> s{V(sums.max[i]), V(sums.log_sum[i])};
    loss[i] = sum_over<T>(n, [&](std::int64_t k, std::int64_t m) {
      return cross_entropy_term(Part<T>{m}.load(t + k), Part<T>{m}.load(z + k), s);
    });
  }
}
template <class T>
void cross_entropy_grad_rows(const T* dy, const T* t, const T* p, T* dz, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i, t += n, p += n, dz += n) {
    if (dy[i] == 0) {
      set_zero(dz, n);
      continue;
    }
    T total = sum_over<T>(n, [&](std::int64_t k, std::int64_t m) { return Part<T>{m}.load(t + k); });
    each<T>(n, [&](std::int64_t k, std::int64_t m) {
      Part<T> part{m};
      part.store(dz + k, xsimd::batch<T>(dy[i]) * (part.load(p + k) * xsimd::batch<T>(total) - part.load(t + k)));
    });
  }
}
template <class T>
void probability_rows(const T* t, const T* p, T low, T high, T* loss, std::int64_t count, std::int64_t n) {
  const Bounds<T> bounds{xsimd::batch<T>(low), xsimd::batch<T>(high)};
  for (std::int64_t i = 0; i < count; ++i, t += n, p += n) {
    const xsimd::batch<T> total(sum_over<T>(n, [&](std::int64_t k, std::int64_t m) { return Part<T>{m}.load(p + k); }));
    loss[i] = -sum_over<T>(n, [&](std::int64_t k, std::int64_t m) {
      return Part<T>{m}.load(t + k) * ops::m::log(bounds.clip(Part<T>{m}.load(p + k) / total));
    });
  }
}
template <class T>
void probability_grad_rows(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t count,
                           std::int64_t n) {
  using V = xsimd::batch<T>;
  const Bounds<T> bounds{V(low), V(high)};
  for (std::int64_t i = 0; i < count; ++i, t += n, p += n, dp += n) {
    if (dy[i] == 0) {
      set_zero(dp, n);
      continue;
    }
    const V total(sum_over<T>(n, [&](std::int64_t k, std::int64_t m) { return Part<T>{m}.load(p + k); }));
    const V counted(sum_over<T>(n, [&](std::int64_t k, std::int64_t m) {
      return bounds.inside(Part<T>{m}.load(p + k) / total, Part<T>{m}.load(t + k));
    }));
    each<T>(n, [&](std::int64_t k, std::int64_t m) {
      Part<T> part{m};
      V q = part.load(p + k) / total;
      part.store(dp + k, V(dy[i]) * (counted - bounds.inside(q, part.load(t + k) / q)) / total);
    });
  }
}
template <class T>
KASSETTE_FN T clipped_sum(const T* p, const Bounds<T>& bounds, std::int64_t n) {
  return sum_over<T>(n, [&](std::int64_t k, std::int64_t m) { return bounds.clip(Part<T>{m}.load(p + k)); });
}
template <class T>
void clipped_sums(const T* p, T low, T high, T* sums, std::int64_t count, std::int64_t n) {
  const Bounds<T> bounds{xsimd::batch<T>(low), xsimd::batch<T>(high)};
  for (std::int64_t i = 0; i < count; ++i) sums[i] = clipped_sum(p + i * n, bounds, n);
}
template <class T>
void clipped_sums_grad(const T* dy, const T* p, T low, T high, T* dp, std::int64_t count, std::int64_t n) {
  using V = xsimd::batch<T>;
  const Bounds<T> bounds{V(low), V(high)};
  for (std::int64_t i = 0; i < count; ++i, p += n, dp += n) {
    if (dy[i] == 0) {
      set_zero(dp, n);
      continue;
    }
    const V share(dy[i] / clipped_sum(p, bounds, n));
    each<T>(n, [&](std::int64_t k, std::int64_t m) {
      Part<T> part{m};
      part.store(dp + k, bounds.inside(part.load(p + k), share));
    });
  }
}
template <class T>
void scale_rows(const T* dy, const T* p, T* out, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i, p += n, out += n)
    for (std::int64_t k = 0; k < n; ++k) out[k] = m::mul_no_nan(dy[i], p[k]);
}

// --- elementwise -----------------------------------------------------------------------------------------------------
template <class T>
void exp_row(const T* x, T shift, T* w, std::int64_t n) {
  const xsimd::batch<T> below(shift);
  each<T>(n, [&](std::int64_t k, std::int64_t m) {
    Part<T> part{m};
    part.store(w + k, m::exp(part.load(x + k) - below));
  });
}
template <class T>
void exp_columns(const T* x, const T* shift, T* w, std::int64_t n, std::int64_t width) {
  for (; n > 0; --n, x += width, w += width)
    each<T>(width, [&](std::int64_t k, std::int64_t m) {
      Part<T> part{m};
      part.store(w + k, m::exp(part.load(x + k) - part.load(shift + k)));
    });
}
template <class T>
void sigmoid_loss(const T* t, const T* z, T* loss, std::int64_t n) {
  using V = xsimd::batch<T>;
  each<T>(n, [&](std::int64_t k, std::int64_t m) {
    Part<T> part{m};
    const V a = part.load(z + k), own = part.load(t + k), wrong = xsimd::select(a > V(0), V(1) - own, negative(own));
    part.store(loss + k, ops::m::mul_no_nan(wrong, a) + xsimd::log1p(ops::m::exp(-xsimd::abs(a))));
  });
}

template <class T>
void binary_loss(const T* t, const T* p, T low, T high, T* loss, std::int64_t n) {
  using V = xsimd::batch<T>;
  const Bounds<T> bounds{V(low), V(high)};
  each<T>(n, [&](std::int64_t k, std::int64_t m) {
    Part<T> part{m};
    const V own = part.load(t + k), q = bounds.clip(part.load(p + k)), one(T(1));
    part.store(loss + k, negative(own * ops::m::log(q) + (one - own) * ops::m::log(one - q)));
  });
}
template <class T>
void binary_grad(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t n) {
  using V = xsimd::batch<T>;
  const Bounds<T> bounds{V(low), V(high)};
  each<T>(n, [&](std::int64_t k, std::int64_t m) {
    Part<T> part{m};
    const V g = part.load(dy + k), q = part.load(p + k), one(T(1));
    part.store(dp + k, bounds.inside(q, no_nan(g, g * (q - part.load(t + k)) / (q * (one - q)))));
  });
}

template <class T>
constexpr SoftmaxLoops<T> loops{{logsumexp_rows<T>, logsumexp_columns<T>},
                                softmax_rows<T>,
                                softmax_columns<T>,
                                log_softmax_rows<T>,
                                log_softmax_columns<T>,
                                softmax_grad_rows<T>,
                                softmax_grad_columns<T>,
                                cross_entropy_rows<T>,
                                cross_entropy_columns<T>,
                                cross_entropy_grad_rows<T>,
                                cross_entropy_grad_columns<T>,
                                probability_rows<T>,
                                probability_columns<T>,
                                probability_grad_rows<T>,
                                probability_grad_columns<T>,
                                clipped_sums<T>,
                                clipped_sums_grad<T>,
                                scale_rows<T>,
                                exp_row<T>,
                                exp_columns<T>,
                                sigmoid_loss<T>,
                                binary_loss<T>,
                                binary_grad<T>};

}  // namespace

constinit const SoftmaxTable KASSETTE_LEVEL_NAME(softmax_table) = {loops<float>, loops<double>};

}  // namespace kassette::ops

// ops/normalization/normalization_kernels.cpp - batch normalisation on the CPU, forward and backward.
#include "ops/normalization/normalization_kernels.h"

#include <cmath>

#include "core/text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/half_compute.h"
#include "ops/normalization/normalization_matrix.h"
#include "ops/shape/repeat.h"
#include "ops/reduce/rounded_mean.h"

namespace kassette::ops {
namespace {

template <class T>
const NormalizationLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(normalization_table).f32;
  else return KASSETTE_PICK(normalization_table).f64;
}

/// Sums kLanes numbers, at least a vector of any CPU level, in an order that does not depend on the level.
constexpr std::int64_t kLanes = 32;
template <class T>
T across(T* lane) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}
/// The mean of a run, what its rounding took, and the sum of squared deviations; the run is treated as a matrix of
/// kLanes columns.
template <class T>
void run_moments(const T* x, std::int64_t n, T* mean, T* rest, T* squares) {
  alignas(64) T m[kLanes] = {}, r[kLanes] = {}, q[kLanes] = {}, beside[kLanes] = {}, sum[kLanes];
  std::int64_t rows = n / kLanes, body = rows * kLanes;
  if (rows) loops<T>().moments(x, RowMatrix{rows, kLanes, kLanes}, m, r, q);
  const T from = rows ? m[0] : x[0];
  for (std::int64_t i = 0; rows && i < kLanes; ++i) beside[i] = (m[i] - from) + r[i];
  for (std::int64_t i = 0; i < kLanes; ++i) sum[i] = beside[i] * static_cast<T>(rows);
  for (std::int64_t i = body; i < n; ++i) sum[i - body] += x[i] - from;
  const T gap = across(sum) / static_cast<T>(n);
  for (std::int64_t i = 0; i < kLanes; ++i) q[i] += static_cast<T>(rows) * (beside[i] - gap) * (beside[i] - gap);
  for (std::int64_t i = body; i < n; ++i) q[i - body] += ((x[i] - from) - gap) * ((x[i] - from) - gap);
  const RoundedMean<T> center(from, gap);
  *mean = center.mean;
  *rest = center.rest;
  *squares = across(q);
}
/// The sums of dy and dy * (x - mean) over a run, in the same way.
template <class T>
void run_sums(const T* dy, const T* x, std::int64_t n, T mean, T* sum, T* product) {
  alignas(64) T means[kLanes], s[kLanes] = {}, p[kLanes] = {};
  std::fill_n(means, kLanes, mean);
  std::int64_t rows = n / kLanes, body = rows * kLanes;
  if (rows) loops<T>().sums(dy, x, RowMatrix{rows, kLanes, kLanes}, means, s, p);
  for (std::int64_t i = body; i < n; ++i) {
    s[i - body] += dy[i];
    p[i - body] += m::mul_no_nan(dy[i], x[i] - mean);
  }
  *sum = across(s);
  *product = across(p);
}

/// The mean, what its rounding took, and the biased variance of a channel from the moments of its parts.
template <class T>
void join_moments(const ChannelSums<T, 3>& parts, std::int64_t channel, double count, T* mean, T* rest, T* var) {
  if (parts.whole()) {
    parts.each(channel, [&](std::int64_t, const std::array<T, 3>& part) {
      *mean = part[0];
      *rest = part[1];
      *var = static_cast<T>(static_cast<double>(part[2]) / count);
    });
    return;
  }
  double from = 0, gap = 0, q = 0;
  bool first = true;
  auto beside = [&](const std::array<T, 3>& part) {
    return (static_cast<double>(part[0]) - from) + static_cast<double>(part[1]);
  };
  parts.each(channel, [&](std::int64_t n, const std::array<T, 3>& part) {
    if (first) from = static_cast<double>(part[0]);
    first = false;
    gap += static_cast<double>(n) * beside(part);
  });
  gap /= count;
  parts.each(channel, [&](std::int64_t n, const std::array<T, 3>& part) {
    const double d = beside(part) - gap;
    q += static_cast<double>(part[2]) + static_cast<double>(n) * d * d;
  });
  const RoundedMean<double> center(from, gap);
  *mean = static_cast<T>(center.mean);
  *rest = std::isfinite(*mean) ? static_cast<T>((center.mean - static_cast<double>(*mean)) + center.rest) : T(0);
  *var = static_cast<T>(q / count);
}

/// Up to four parameters, by channel or as a loop reads them; null if there are fewer.
template <class T>
struct Parameters {
  const T* at[4];
};

/// Calls call(first element, rows, the parameters of these) for parts that make up the matrix.
template <class T, class F>
void apply_parameters(const ChannelMatrix& w, const Parameters<T>& all, F call) {
  const PerColumn<T> p[4] = {{w, all.at[0]}, {w, all.at[1]}, {w, all.at[2]}, {w, all.at[3]}};
  w.for_parts([&](std::int64_t at, const RowMatrix& r, std::int64_t k) {
    call(at, r, Parameters<T>{{p[0].from(k), p[1].from(k), p[2].from(k), p[3].from(k)}});
  });
}

/// Computes kCount sums of each channel by columns(first element, rows, first parameter, to) or run(first element, n,
/// channel, to), and its parameters by join(sums, channel); then calls call as apply_parameters() does.
template <std::size_t kCount, class T, class Columns, class Run, class Join, class F>
void sum_and_apply(const ChannelMatrix& w, Columns columns, Run run, Join join, const Parameters<T>& all, F call) {
  ChannelSums<T, kCount> sums(w);
  if (w.channel_by_channel()) {
    auto sum = [&](std::int64_t c) {
      sums.sum_channel(c, run);
      join(sums, c);
    };
    w.for_channels(sum, [&](std::int64_t at, const RowMatrix& r, std::int64_t c) {
      auto from = [&](int i) { return all.at[i] ? all.at[i] + c : nullptr; };
      call(at, r, Parameters<T>{{from(0), from(1), from(2), from(3)}});
    });
    return;
  }
  if (w.by_rows) sums.sum_runs(run);
  else sums.sum_columns(columns);
  for (std::int64_t c = 0; c < w.channels(); ++c) join(sums, c);
  apply_parameters(w, all, call);
}

/// The function for apply_parameters() that scales x with the parameters (mean, factor, shift).
template <class T>
auto scaling(const ChannelMatrix& w, const T* x, T* y) {
  auto* loop = w.by_rows ? loops<T>().scale_rows : loops<T>().scale;
  return [=](std::int64_t at, const RowMatrix& r, const Parameters<T>& p) {
    loop(x + at, r, p.at[0], p.at[1], p.at[2], y + at);
  };
}

/// Input i of a call, in elements of T and repeated to `shape`. Null if i < 0.
template <class T>
class RepeatedInput {
 public:
  RepeatedInput(const OpCall& call, int i, const TensorSpec& shape)
      : in_(i < 0 ? WideInput<T>() : WideInput<T>(call, i)), at_(in_.get()) {
    if (i < 0) return;
    const TensorSpec& s = call.spec(i);
    if (s.numel() == shape.numel()) return;
    unsigned repeated = 0;
    for (int k = 0; k < shape.rank; ++k) {
      int own = k - (shape.rank - s.rank);
      if (own < 0 || s.dims[own] != shape.dims[k]) repeated |= 1u << k;
    }
    held_ = Storage::allocate(shape.numel() * static_cast<std::int64_t>(sizeof(T)), cpu);
    repeat_runs(reinterpret_cast<const std::byte*>(at_), static_cast<std::byte*>(held_->data), sizeof(T),
                CoalescedAxes(shape, repeated));
    at_ = static_cast<const T*>(held_->data);
    in_ = {};
  }
  const T* get() const { return at_; }

 private:
  WideInput<T> in_;
  const T* at_;
  Ref<Storage> held_;
};

template <class T>
void run_normalize(const OpCall& call) {
  const TensorSpec &x = call.spec(0), &kept = *call.out[1];
  std::int64_t channels = kept.numel(), n = x.numel();
  T *mean = call.out_as<T>(1), *var = call.out_as<T>(2), *rest = call.out_as<T>(3);
  if (n == 0) {  // 0 / 0
    for (T* t : {mean, var, rest}) std::fill_n(t, channels, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  ReducedLast order(x, axes_mask(call.op.name, call.attrs.as<NormalizeAttrs>().axes, x));
  ChannelMatrix w(order.by_channel(), sizeof(T));
  WideInput<T> in(call, 0);
  RepeatedInput<T> gamma(call, gamma_at(call.attrs, 1), kept), beta(call, beta_at(call.attrs, 1), kept);
  WideOutput<T> y(*call.out[0]);
  Scratch<T> moved(order.moves() ? 2 * n : 0), parameters(2 * channels);
  T *factor = parameters.get(), *shift = factor + channels;
  const T* from = in.get();
  T* to = y.get();
  if (order.moves()) {
    order.move_last(from, moved.get());
    from = moved.get();
    to = moved.get() + n;
  }
  const auto count = static_cast<double>(w.count());
  using To = typename ChannelSums<T, 3>::To;
  sum_and_apply<3>(
      w,
      [&](std::int64_t at, const RowMatrix& r, std::int64_t, const To& sums) {
        loops<T>().moments(from + at, r, sums[0], sums[1], sums[2]);
      },
      [&](std::int64_t at, std::int64_t k, std::int64_t, const To& sums) {
        run_moments(from + at, k, sums[0], sums[1], sums[2]);
      },
      [&](const ChannelSums<T, 3>& sums, std::int64_t c) {
        join_moments(sums, c, count, mean + c, rest + c, var + c);
        const double scale = gamma.get() ? static_cast<double>(gamma.get()[c]) : 1.,
                     by = scale / std::sqrt(static_cast<double>(var[c]) + call.attrs.as<NormalizeAttrs>().epsilon);
        factor[c] = static_cast<T>(by);
        shift[c] =
            static_cast<T>((beta.get() ? static_cast<double>(beta.get()[c]) : 0.) - static_cast<double>(rest[c]) * by);
      },
      Parameters<T>{{mean, factor, shift, nullptr}}, scaling(w, from, to));
  if (order.moves()) order.move_back<T>(to, y.get());
  y.store();
}

template <class T>
void run_normalize_grad(const OpCall& call) {
  const TensorSpec &x = call.spec(1), &kept = call.spec(2);
  std::int64_t channels = kept.numel(), n = x.numel();
  WideOutput<T> dx(*call.out[0]), dgamma(*call.out[1]), dbeta(*call.out[2]);
  if (n == 0) {
    std::fill_n(dgamma.get(), channels, T(0));
    std::fill_n(dbeta.get(), channels, T(0));
    dgamma.store(), dbeta.store();
    return;
  }
  ReducedLast order(x, axes_mask(call.op.name, call.attrs.as<NormalizeAttrs>().axes, x));
  ChannelMatrix w(order.by_channel(), sizeof(T));
  WideInput<T> dy(call, 0), in(call, 1);
  RepeatedInput<T> gamma(call, gamma_at(call.attrs, 5), kept);
  const T *mean = call.in[2].as<T>(), *var = call.in[3].as<T>(), *rest = call.in[4].as<T>();
  Scratch<T> moved(order.moves() ? 3 * n : 0), slopes(3 * channels);
  const T *u = dy.get(), *from = in.get();
  T* to = dx.get();
  if (order.moves()) {
    order.move_last(u, moved.get());
    order.move_last(from, moved.get() + n);
    u = moved.get();
    from = moved.get() + n;
    to = moved.get() + 2 * n;
  }
  T *a = slopes.get(), *b = a + channels, *c = b + channels;
  const auto count = static_cast<double>(w.count());
  PerColumn<T> means(w, mean);
  auto* loop = w.by_rows ? loops<T>().gradient_rows : loops<T>().gradient;
  using To = typename ChannelSums<T, 2>::To;
  sum_and_apply<2>(
      w,
      [&](std::int64_t at, const RowMatrix& r, std::int64_t p, const To& sums) {
        loops<T>().sums(u + at, from + at, r, means.from(p), sums[0], sums[1]);
      },
      [&](std::int64_t at, std::int64_t k, std::int64_t channel, const To& sums) {
        run_sums(u + at, from + at, k, mean[channel], sums[0], sums[1]);
      },
      [&](const ChannelSums<T, 2>& sums, std::int64_t k) {
        double sum = 0, product = 0;  // of dy, of dy * (x - mean)
        sums.each(k, [&](std::int64_t, const std::array<T, 2>& part) {
          sum += static_cast<double>(part[0]);
          product += static_cast<double>(part[1]);
        });
        product -= m::mul_no_nan(sum, static_cast<double>(rest[k]));
        double r = 1 / std::sqrt(static_cast<double>(var[k]) + call.attrs.as<NormalizeAttrs>().epsilon),
               g = gamma.get() ? static_cast<double>(gamma.get()[k]) * r : r;
        dgamma.get()[k] = static_cast<T>(m::mul_no_nan(product, r));
        dbeta.get()[k] = static_cast<T>(sum);
        a[k] = static_cast<T>(g);
        const double by = m::mul_no_nan(product / count, -g * r * r);
        b[k] = static_cast<T>(by);
        c[k] = static_cast<T>(m::mul_no_nan(sum / count, -g) - m::mul_no_nan(by, static_cast<double>(rest[k])));
      },
      Parameters<T>{{mean, a, b, c}},
      [&](std::int64_t at, const RowMatrix& r, const Parameters<T>& p) {
        loop(u + at, from + at, r, p.at[0], p.at[1], p.at[2], p.at[3], to + at);
      });
  if (order.moves()) order.move_back<T>(to, dx.get());
  dx.store(), dgamma.store(), dbeta.store();
}

template <class T>
void run_center_scale(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  // All parameters are brought to a shape with the axes along which any of them varies; the others count as reduced.
  TensorSpec own = x;
  unsigned repeated = 0;
  for (int k = 0; k < x.rank; ++k) {
    bool varies = false;
    for (int i = 1; i < call.n_in; ++i) {
      int axis = k - (x.rank - call.spec(i).rank);
      varies = varies || (axis >= 0 && call.spec(i).dims[axis] != 1);
    }
    if (varies) continue;
    repeated |= 1u << k;
    own.dims[k] = 1;
  }
  ChannelShape by_channel(CoalescedAxes(x, repeated));
  if (!by_channel.fits) {
    own = x;
    by_channel = ChannelShape(CoalescedAxes(x, 0));
  }
  WideInput<T> in(call, 0);
  RepeatedInput<T> mean(call, 1, own), factor(call, 2, own), shift(call, call.n_in > 3 ? 3 : -1, own);
  WideOutput<T> y(*call.out[0]);
  ChannelMatrix w(by_channel, sizeof(T));
  apply_parameters(w, Parameters<T>{{mean.get(), factor.get(), shift.get(), nullptr}}, scaling(w, in.get(), y.get()));
  y.store();
}

template <void (*kSingle)(const OpCall&), void (*kDouble)(const OpCall&)>
void by_dtype(const OpCall& call) {
  (call.out[0]->dtype == float64 ? kDouble : kSingle)(call);
}

}  // namespace

void normalize_batch_kernel(const OpCall& call) { by_dtype<run_normalize<float>, run_normalize<double>>(call); }
void normalize_batch_grad_kernel(const OpCall& call) {
  by_dtype<run_normalize_grad<float>, run_normalize_grad<double>>(call);
}
void center_scale_kernel(const OpCall& call) { by_dtype<run_center_scale<float>, run_center_scale<double>>(call); }

}  // namespace kassette::ops

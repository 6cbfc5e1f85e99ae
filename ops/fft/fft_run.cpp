// ops/fft/fft_run.cpp - running transforms: rows in lanes, or long rows one after another, each in two steps.
#include "ops/fft/fft_run.h"

#include <algorithm>

#include "core/storage.h"
#include "devices/cpu/threads.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 16;         // multiplications that are worth a thread: Note [Worth a thread]
constexpr std::int64_t kElementGrain = 1 << 14;  // elements that are copied
/// Bytes of a part of a group from which rows are transformed in two steps: four parts of that size still fit into the
/// second level of cache.
constexpr std::int64_t kMostInLanes = 128 << 10;

template <class T>
struct Memory {
  explicit Memory(std::int64_t n)
      : held(Storage::allocate(std::max<std::int64_t>(1, n) * static_cast<std::int64_t>(sizeof(T)) + 64, cpu)),
        at(reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(held->data) + 63) / 64 * 64)) {}
  Ref<Storage> held;
  T* at;
};
template <class F>
void each_element(std::int64_t n, F f) {
  devices::parallel_for(n, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) f(k);
  });
}

template <class T>
void run_groups(const FftJob<T>& job) {
  const FftLoops<T>& loops = fft_loops<T>();
  std::int64_t work = job.plan->work * loops.lanes, passes = 2;
  for (std::int64_t n = job.plan->work; n > 1; n /= 2) ++passes;
  devices::parallel_for(job.groups(loops.lanes), std::max<std::int64_t>(1, kGrain / (work * passes)),
                        [&](std::int64_t begin, std::int64_t end) {
                          const Memory<T> memory(job.work(loops.lanes));
                          loops.groups(job, begin, end, memory.at);
                        });
}

/// The columns of the row as a matrix, times roots of unity; then its rows, whose results are columns.
template <class T>
void row_in_steps(const FftPlan<T>& plan, const T* re, const T* im, T* to_re, T* to_im, T scale) {
  const Memory<T> between(2 * plan.n);
  FftJob<T> columns;
  columns.plan = plan.of_columns.get();
  columns.steps = &plan;
  columns.n = plan.rows;
  columns.rows = columns.span = plan.columns;
  columns.from = {re, im, plan.rows, plan.columns};
  columns.to = {between.at, between.at + plan.n, plan.rows, plan.columns};
  run_groups(columns);
  FftJob<T> rows;
  rows.plan = plan.of_rows.get();
  rows.n = plan.columns;
  rows.scale = scale;
  rows.rows = rows.span = plan.rows;
  rows.from = {between.at, between.at + plan.n, plan.columns, 1};
  rows.to = {to_re, to_im, plan.columns, plan.rows};
  run_groups(rows);
}
template <class T>
void row_by_chirp(const FftPlan<T>& plan, const T* re, const T* im, T* to_re, T* to_im, T scale) {
  const FftLoops<T>& loops = fft_loops<T>();
  const std::int64_t m = plan.convolution->n;
  const Memory<T> x(2 * m), y(2 * m);
  auto each = [&](std::int64_t n, auto loop, const ChirpRow<T>& row) {
    devices::parallel_for(n, kElementGrain, [&](std::int64_t begin, std::int64_t end) { loop(row, begin, end); });
  };
  each(m, loops.chirp_in, {&plan, re, im, plan.n, x.at, x.at + m});
  transform_row(*plan.convolution, x.at, x.at + m, y.at, y.at + m, T(1));
  each(m, loops.chirp_spectrum, {&plan, y.at, y.at + m, m, y.at, y.at + m});
  transform_row(*plan.convolution, y.at + m, y.at, x.at + m, x.at, scale);
  each(plan.n, loops.chirp_out, {&plan, x.at, x.at + m, plan.n, to_re, to_im});
}

/// A long row of any form: its numbers are brought into two arrays, transformed, and taken from two others.
template <class T>
class LongRow {
 public:
  LongRow(const FftJob<T>& job, const FftPlan<T>& plan, std::int64_t r)
      : job_(job), plan_(plan), from_(r / job.from.inner * job.from.length * job.from.inner + r % job.from.inner),
        to_(r / job.to.inner * job.to.length * job.to.inner + r % job.to.inner) {}

  void run() {
    const bool complex = job_.form == FftForm::complex || job_.form == FftForm::complex_to_real;
    const bool exchanged = job_.form == FftForm::half_to_real || (complex && job_.inverse);
    const bool as_it_is = complex && job_.from.inner == 1 && job_.from.length >= n_,
               direct = job_.form == FftForm::complex && job_.to.inner == 1 && job_.to.length == n_;
    const Memory<T> x(as_it_is ? 0 : 2 * (n_ + 1)), y(direct ? 0 : 2 * (n_ + 1));
    const T *re = as_it_is && job_.from.re ? job_.from.re + from_ : nullptr,
            *im = as_it_is && job_.from.im ? job_.from.im + from_ : nullptr;
    if (!as_it_is) {
      load(x.at, x.at + n_ + 1);
      re = x.at;
      im = x.at + n_ + 1;
    }
    T *to_re = direct ? job_.to.re + to_ : y.at, *to_im = direct ? job_.to.im + to_ : y.at + n_ + 1;
    if (exchanged) transform_row(plan_, im, re, to_im, to_re, job_.scale);
    else transform_row(plan_, re, im, to_re, to_im, job_.scale);
    if (!direct) store(to_re, to_im);
  }

 private:
  bool even_real() const { return (real() || job_.form == FftForm::half_to_real) && n_ % 2 == 0; }
  bool real() const { return job_.form == FftForm::real_to_half || job_.form == FftForm::real_to_complex; }
  T given(const T* x, std::int64_t k) const {
    return x && k < job_.from.length ? x[from_ + k * job_.from.inner] : T(0);
  }
  bool mirrored(std::int64_t k) const { return k > 0 && 2 * k != n_; }

  void load(T* re, T* im) const {
    const T *x = job_.from.re, *y = real() ? nullptr : job_.from.im;
    if (job_.form == FftForm::half_to_real) return load_half(re, im);
    if (even_real())
      each_element(n_ / 2, [&](std::int64_t k) {
        re[k] = given(x, 2 * k);
        im[k] = given(x, 2 * k + 1);
      });
    else
      each_element(n_, [&](std::int64_t k) {
        re[k] = given(x, k);
        im[k] = given(y, k);
      });
  }
  /// Number k of the half that is given.
  Root half_at(std::int64_t k) const {
    const double re = given(job_.from.re, k), im = given(job_.from.im, k);
    if (!mirrored(k)) return {re, 0};
    return {re * job_.weight, im * (job_.inverse ? job_.weight : -job_.weight)};
  }
  void load_half(T* re, T* im) const {
    if (even_real())
      each_element(n_ / 2, [&](std::int64_t k) {
        const Root a = half_at(k), b = half_at(n_ / 2 - k), g = turned_difference(a, b, k);
        re[k] = static_cast<T>(a.re + b.re - g.im);
        im[k] = static_cast<T>(a.im - b.im + g.re);
      });
    else
      each_element(n_, [&](std::int64_t k) {
        const Root a = half_at(std::min(k, n_ - k));
        re[k] = static_cast<T>(a.re);
        im[k] = static_cast<T>(k <= n_ / 2 ? a.im : -a.im);
      });
  }
  /// (a - conj b) e^(2 pi i k / n)
  Root turned_difference(Root a, Root b, std::int64_t k) const {
    const Root r = root(k), d{a.re - b.re, a.im + b.im};
    return {d.re * r.re + d.im * r.im, d.im * r.re - d.re * r.im};
  }
  /// e^(-2 pi i k / n) for k <= n / 2
  Root root(std::int64_t k) const {
    const bool second = 4 * k > n_;  // of the two quarters
    const std::int64_t at = second ? n_ / 2 - k : k;
    const double re = job_.roots[2 * at], im = job_.roots[2 * at + 1];
    return {second ? -re : re, im};
  }

  void store(const T* re, const T* im) const {
    const std::int64_t half = n_ / 2 + 1, have = job_.form == FftForm::real_to_half ? half : n_;
    const T sign = real() && job_.inverse ? T(-1) : T(1);
    each_element(job_.to.length, [&](std::int64_t k) {
      T *to_re = job_.to.re + to_ + k * job_.to.inner,
        *to_im = job_.to.im ? job_.to.im + to_ + k * job_.to.inner : nullptr;
      if (k >= have) {
        *to_re = 0;
        if (to_im) *to_im = 0;
        return;
      }
      if (!even_real()) {
        const T weight = job_.form == FftForm::real_to_half && mirrored(k) ? job_.weight : T(1);
        *to_re = re[k] * weight;
        if (to_im) *to_im = real() && !mirrored(k) ? T(0) : im[k] * weight * sign;
      } else if (job_.form == FftForm::half_to_real) {
        *to_re = k % 2 ? im[k / 2] : re[k / 2];
      } else {
        const Root v = unfolded(re, im, std::min(k, n_ - k));
        const double weight =
            job_.form == FftForm::real_to_half && mirrored(k) ? static_cast<double>(job_.weight) : 1.0;
        *to_re = static_cast<T>(v.re * weight);
        *to_im = static_cast<T>((k < half ? v.im : -v.im) * weight * static_cast<double>(sign));
      }
    });
  }
  /// Number k of the spectrum of n real numbers from that of n / 2 pairs of them.
  Root unfolded(const T* re, const T* im, std::int64_t k) const {
    const std::int64_t m = n_ / 2, at = k == m ? 0 : k, back = k == 0 || k == m ? 0 : m - k;
    const double a_re = re[at], a_im = im[at], b_re = re[back], b_im = im[back];
    if (at == 0) return {k == 0 ? a_re + a_im : a_re - a_im, 0};
    const double e_re = (a_re + b_re) / 2, e_im = (a_im - b_im) / 2, o_re = (a_im + b_im) / 2, o_im = (b_re - a_re) / 2;
    const Root r = root(k);
    return {e_re + o_re * r.re - o_im * r.im, e_im + o_re * r.im + o_im * r.re};
  }

  const FftJob<T>& job_;
  const FftPlan<T>& plan_;
  const std::int64_t n_ = job_.n, from_, to_;
};

}  // namespace

template <class T>
void transform_row(const FftPlan<T>& plan, const T* re, const T* im, T* to_re, T* to_im, T scale) {
  if (plan.way == FftWay::steps) return row_in_steps(plan, re, im, to_re, to_im, scale);
  if (plan.way == FftWay::chirp && plan.convolution->way == FftWay::steps)
    return row_by_chirp(plan, re, im, to_re, to_im, scale);
  FftJob<T> job;
  job.plan = &plan;
  job.n = plan.n;
  job.scale = scale;
  job.from = {re, im, plan.n, 1};
  job.to = {to_re, to_im, plan.n, 1};
  run_groups(job);
}

template <class T>
void run_fft(FftJob<T> job) {
  const bool pairs = job.form != FftForm::complex && job.form != FftForm::complex_to_real && job.n % 2 == 0;
  const std::int64_t n = pairs ? job.n / 2 : job.n, lanes = fft_loops<T>().lanes;
  Ref<const FftRoots<T>> roots;
  if (pairs) {
    roots = roots_of<T>(job.n);
    job.roots = roots->at.data();
  }
  if (2 * job.rows < lanes || n * lanes * static_cast<std::int64_t>(sizeof(T)) > kMostInLanes) {
    const Ref<const FftPlan<T>> plan = plan_of<T>(n, /*in_lanes=*/false);
    if (plan->way == FftWay::steps || (plan->convolution && plan->convolution->way == FftWay::steps)) {
      for (std::int64_t r = 0; r < job.rows; ++r) LongRow<T>(job, *plan, r).run();
      return;
    }
  }
  const Ref<const FftPlan<T>> plan = plan_of<T>(n, /*in_lanes=*/true);
  job.plan = plan.get();
  job.span = 2 * job.from.inner >= lanes ? job.from.inner : job.rows;
  run_groups(job);
}

template void transform_row<float>(const FftPlan<float>&, const float*, const float*, float*, float*, float);
template void transform_row<double>(const FftPlan<double>&, const double*, const double*, double*, double*, double);
template void run_fft<float>(FftJob<float> job);
template void run_fft<double>(FftJob<double> job);

}  // namespace kassette::ops

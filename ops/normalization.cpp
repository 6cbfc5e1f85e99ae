// ops/normalization.cpp - batch normalisation: one op forward, one op backward, and their adjoints to any order.
#include "ops/normalization.h"

#include <cmath>
#include <numeric>

#include "core/text.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/normalization_walk.h"
#include "ops/repeat.h"

namespace kassette {

// ---- how the loops go over memory --------------------------------------------------------------------------------------
Folded::Folded(const Runs& r) {
  // The runs alternate; marked ones are reduced.
  int i = 0;
  auto take = [&](bool marked, std::int64_t& size) {
    if (i < r.n && r.marked[i] == marked) size = r.size[i++];
  };
  if (r.n >= 3 && !r.marked[0]) take(false, batch);
  if (i + 1 < r.n) take(true, outer);
  take(false, channels);
  take(true, inner);
  fits = i == r.n;
}

Walk::Walk(const Folded& folded, int element_size) : f(folded) {
  constexpr std::int64_t kLongRun = 64, kFewRows = 8, kWide = 64, kMaxStream = 16 << 20;
  stream = f.batch * slab() * element_size >= kMaxStream;
  by_rows = f.inner >= kLongRun || (f.inner > 1 && f.outer < kFewRows);
  if (by_rows) {
    rows = f.batch * f.outer * f.channels;
    width = f.inner;
    row_block = 4096;
    return;
  }
  width = f.channels * f.inner;
  // Beside each other to a multiple of 16, so that no vector is partly filled.
  std::int64_t step = 16 / std::gcd(std::max<std::int64_t>(width, 1), std::int64_t(16));
  while (step * width < kWide && width > 0) step *= 2;
  if (width < kWide && f.outer >= step * kFewRows) repeat = step;
  width *= repeat;
  rows = f.outer / repeat;
  tail = f.outer % repeat * f.channels * f.inner;
  row_block = std::max<std::int64_t>(kFewRows, std::min<std::int64_t>(1024, (1 << 16) / std::max<std::int64_t>(width, 1)));
}

namespace {

constexpr std::int64_t kGamma = 1, kBeta = 2;   // attrs.b: which of the optional inputs are there

// ---- kernels -----------------------------------------------------------------------------------------------------------
template <class T>
const NormalizationLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(normalization_table).f32;
  else return KASSETTE_PICK(normalization_table).f64;
}

/// The lanes of one vector of any level, summed in an order that no level changes.
constexpr std::int64_t kLanes = 32;
template <class T>
T across(T* lane) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}
/// Mean and sum of squares of a run: its lanes are columns.
template <class T>
void run_moments(const T* x, std::int64_t n, T* mean, T* squares) {
  alignas(64) T m[kLanes] = {}, q[kLanes] = {}, sum[kLanes];
  std::int64_t rows = n / kLanes, body = rows * kLanes;
  if (rows) loops<T>().moments(x, Rows{rows, kLanes, kLanes}, m, q);
  for (std::int64_t i = 0; i < kLanes; ++i) sum[i] = m[i] * static_cast<T>(rows);
  for (std::int64_t i = body; i < n; ++i) sum[i - body] += x[i];
  T center = across(sum) / static_cast<T>(n);
  for (std::int64_t i = 0; i < kLanes; ++i) q[i] += rows ? static_cast<T>(rows) * (m[i] - center) * (m[i] - center) : T(0);
  for (std::int64_t i = body; i < n; ++i) q[i - body] += (x[i] - center) * (x[i] - center);
  *mean = center;
  *squares = across(q);
}
template <class T>
void run_sums(const T* dy, const T* x, std::int64_t n, T mean, T* sum, T* product) {
  alignas(64) T means[kLanes], s[kLanes] = {}, p[kLanes] = {};
  std::fill_n(means, kLanes, mean);
  std::int64_t rows = n / kLanes, body = rows * kLanes;
  if (rows) loops<T>().sums(dy, x, Rows{rows, kLanes, kLanes}, means, s, p);
  for (std::int64_t i = body; i < n; ++i) {
    s[i - body] += dy[i];
    p[i - body] += dy[i] * (x[i] - mean);
  }
  *sum = across(s);
  *product = across(p);
}

/// Mean and biased variance of each channel of x.
template <class T>
void moments(const Walk& w, const T* x, T* mean, T* var) {
  Parts<T> parts(
      w, [&](std::int64_t at, const Rows& r, std::int64_t, T* m, T* q) { loops<T>().moments(x + at, r, m, q); },
      [&](std::int64_t at, std::int64_t n, std::int64_t, T* m, T* q) { run_moments(x + at, n, m, q); });
  const auto count = static_cast<double>(w.count());
  std::int64_t channels = w.channels();
  if (parts.whole()) {
    for (std::int64_t c = 0; c < channels; ++c) {
      mean[c] = parts.a()[c];
      var[c] = static_cast<T>(static_cast<double>(parts.b()[c]) / count);
    }
    return;
  }
  Scratch<double> center(channels), squares(channels);
  double *m = center.get(), *q = squares.get();
  std::fill_n(m, channels, 0.);
  std::fill_n(q, channels, 0.);
  parts.each([&](std::int64_t c, std::int64_t n, T a, T) { m[c] += static_cast<double>(n) * static_cast<double>(a); });
  for (std::int64_t c = 0; c < channels; ++c) m[c] /= count;
  parts.each([&](std::int64_t c, std::int64_t n, T a, T b) {
    double gap = static_cast<double>(a) - m[c];
    q[c] += static_cast<double>(b) + static_cast<double>(n) * gap * gap;
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    mean[c] = static_cast<T>(m[c]);
    var[c] = static_cast<T>(q[c] / count);
  }
}

/// Per channel, the sums of dy and of dy * (x - mean).
template <class T>
void gradient_sums(const Walk& w, const T* dy, const T* x, const T* mean, double* sum, double* product) {
  PerColumn<T> means(w, mean);
  Parts<T> parts(
      w, [&](std::int64_t at, const Rows& r, std::int64_t p, T* s, T* t) { loops<T>().sums(dy + at, x + at, r, means.from(p), s, t); },
      [&](std::int64_t at, std::int64_t n, std::int64_t c, T* s, T* t) { run_sums(dy + at, x + at, n, mean[c], s, t); });
  std::fill_n(sum, w.channels(), 0.);
  std::fill_n(product, w.channels(), 0.);
  parts.each([&](std::int64_t c, std::int64_t, T a, T b) {
    sum[c] += static_cast<double>(a);
    product[c] += static_cast<double>(b);
  });
}

template <class T>
void scale_channels(const Walk& w, const T* x, const T* mean, const T* factor, const T* shift, T* y) {
  PerColumn<T> m(w, mean), f(w, factor), s(w, shift);
  auto* loop = w.by_rows ? loops<T>().scale_rows : loops<T>().scale;
  w.for_parts([&](std::int64_t at, const Rows& r, std::int64_t p) { loop(x + at, r, m.from(p), f.from(p), s.from(p), y + at); });
}

/// Input i of a call with elements of T: converted where they are float16 or bfloat16, repeated to `shape` where that is given.
template <class T>
class Wide {
 public:
  Wide(const Call& call, int i, const Spec* shape = nullptr) {
    if (i < 0) return;
    const Spec& s = call.spec(i);
    at_ = call.in[i].data;
    if (s.dtype.size() != sizeof(T)) {
      held_ = Storage::allocate(s.numel() * static_cast<std::int64_t>(sizeof(T)), cpu);
      convert(held_->data, float32, at_, s.dtype, s.numel());
      at_ = static_cast<std::byte*>(held_->data);
    }
    if (!shape || s.numel() == shape->numel()) return;
    unsigned repeated = 0;
    for (int k = 0; k < shape->rank; ++k) {
      int own = k - (shape->rank - s.rank);
      if (own < 0 || s.dims[own] != shape->dims[k]) repeated |= 1u << k;
    }
    auto wide = Storage::allocate(shape->numel() * static_cast<std::int64_t>(sizeof(T)), cpu);
    repeat_runs(at_, static_cast<std::byte*>(wide->data), sizeof(T), Runs(*shape, repeated));
    held_ = std::move(wide);
    at_ = static_cast<std::byte*>(held_->data);
  }
  const T* get() const { return reinterpret_cast<const T*>(at_); }

 private:
  Ref<Storage> held_;
  const std::byte* at_ = nullptr;
};

/// An output with elements of T, rounded once where they are float16 or bfloat16.
template <class T>
class Rounded {
 public:
  explicit Rounded(Body& out) : out_(out), at_(reinterpret_cast<T*>(out.data())) {
    if (out.dtype.size() == sizeof(T)) return;
    held_ = Storage::allocate(out.numel() * static_cast<std::int64_t>(sizeof(T)), cpu);
    at_ = static_cast<T*>(held_->data);
  }
  ~Rounded() {
    if (held_) convert(out_.data(), out_.dtype, held_->data, float32, out_.numel());
  }
  T* get() const { return at_; }

 private:
  Body& out_;
  T* at_;
  Ref<Storage> held_;
};

/// Where kept and reduced axes alternate more often than Folded has room for: copies with the reduced axes at the end.
class Order {
 public:
  Order(const Spec& x, unsigned reduced) : folded_(Runs(x, reduced)) {
    if (folded_.fits) return;
    std::int64_t strides[kMaxRank], to = x.numel();
    row_strides(x, strides);
    Runs apart;
    for (bool last : {false, true})
      for (int i = 0; i < x.rank; ++i) {
        if ((reduced >> i & 1) != last) continue;
        to /= x.dims[i];
        there_.push(x.dims[i], strides[i], to);
        back_.push(x.dims[i], to, strides[i]);
        apart.push(x.dims[i], last);
      }
    folded_ = Folded(apart);
  }
  const Folded& folded() const { return folded_; }
  bool moves() const { return there_.rank > 0; }
  template <class T>
  void there(const T* from, T* to) const {
    copy_strided(there_, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(T));
  }
  template <class T>
  void back(const T* from, T* to) const {
    copy_strided(back_, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(T));
  }

 private:
  Folded folded_;
  Strided there_, back_;
};

int gamma_at(const Attrs& attrs, int first) { return attrs.b & kGamma ? first : -1; }

template <class T>
void normalize(const Call& call) {
  const Spec &x = call.spec(0), &kept = *call.out[1];
  std::int64_t channels = kept.numel(), n = x.numel();
  T *mean = call.out_as<T>(1), *var = call.out_as<T>(2);
  if (n == 0) {   // 0 / 0
    std::fill_n(mean, channels, std::numeric_limits<T>::quiet_NaN());
    std::fill_n(var, channels, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  Order order(x, axes_mask(call.op.name, call.attrs.a, x));
  Walk w(order.folded(), sizeof(T));
  int gamma_in = gamma_at(call.attrs, 1);
  Wide<T> in(call, 0), gamma(call, gamma_in, &kept), beta(call, call.attrs.b & kBeta ? (gamma_in > 0 ? 2 : 1) : -1, &kept);
  Rounded<T> y(*call.out[0]);
  Scratch<T> moved(order.moves() ? 2 * n : 0), factor(channels);
  const T* from = in.get();
  T* to = y.get();
  if (order.moves()) {
    order.there(from, moved.get());
    from = moved.get();
    to = moved.get() + n;
  }
  moments(w, from, mean, var);
  for (std::int64_t c = 0; c < channels; ++c)
    factor.get()[c] = static_cast<T>((gamma.get() ? static_cast<double>(gamma.get()[c]) : 1.) /
                                     std::sqrt(static_cast<double>(var[c]) + call.attrs.x));
  scale_channels<T>(w, from, mean, factor.get(), beta.get(), to);
  if (order.moves()) order.back<T>(to, y.get());
}

template <class T>
void normalize_grad(const Call& call) {
  const Spec &x = call.spec(1), &kept = call.spec(2);
  std::int64_t channels = kept.numel(), n = x.numel();
  Rounded<T> dx(*call.out[0]), dgamma(*call.out[1]), dbeta(*call.out[2]);
  if (n == 0) {
    std::fill_n(dgamma.get(), channels, T(0));
    std::fill_n(dbeta.get(), channels, T(0));
    return;
  }
  Order order(x, axes_mask(call.op.name, call.attrs.a, x));
  Walk w(order.folded(), sizeof(T));
  Wide<T> dy(call, 0), in(call, 1), gamma(call, gamma_at(call.attrs, 4), &kept);
  const T *mean = call.in[2].as<T>(), *var = call.in[3].as<T>();
  Scratch<T> moved(order.moves() ? 3 * n : 0), slopes(3 * channels);
  const T *u = dy.get(), *from = in.get();
  T* to = dx.get();
  if (order.moves()) {
    order.there(u, moved.get());
    order.there(from, moved.get() + n);
    u = moved.get();
    from = moved.get() + n;
    to = moved.get() + 2 * n;
  }
  Scratch<double> sums(2 * channels);
  double *sum = sums.get(), *product = sum + channels;
  gradient_sums(w, u, from, mean, sum, product);
  T *a = slopes.get(), *b = a + channels, *c = b + channels;
  const auto count = static_cast<double>(w.count());
  for (std::int64_t k = 0; k < channels; ++k) {
    double r = 1 / std::sqrt(static_cast<double>(var[k]) + call.attrs.x), g = gamma.get() ? static_cast<double>(gamma.get()[k]) * r : r;
    dgamma.get()[k] = static_cast<T>(product[k] * r);
    dbeta.get()[k] = static_cast<T>(sum[k]);
    a[k] = static_cast<T>(g);
    b[k] = static_cast<T>(-g * r * r * product[k] / count);
    c[k] = static_cast<T>(-g * sum[k] / count);
  }
  PerColumn<T> pm(w, mean), pa(w, a), pb(w, b), pc(w, c);
  auto* loop = w.by_rows ? loops<T>().gradient_rows : loops<T>().gradient;
  w.for_parts([&](std::int64_t at, const Rows& r, std::int64_t p) {
    loop(u + at, from + at, r, pm.from(p), pa.from(p), pb.from(p), pc.from(p), to + at);
  });
  if (order.moves()) order.back<T>(to, dx.get());
}

template <class T>
void center_and_scale(const Call& call) {
  const Spec& x = call.spec(0);
  if (x.numel() == 0) return;
  // Parameters have the axes along which any of them varies; along the others they are repeated.
  Spec own = x;
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
  Folded folded(Runs(x, repeated));
  if (!folded.fits) {
    own = x;
    folded = Folded(Runs(x, 0));
  }
  Wide<T> in(call, 0), mean(call, 1, &own), factor(call, 2, &own), shift(call, call.n_in > 3 ? 3 : -1, &own);
  Rounded<T> y(*call.out[0]);
  scale_channels<T>(Walk(folded, sizeof(T)), in.get(), mean.get(), factor.get(), shift.get(), y.get());
}

template <void (*kSingle)(const Call&), void (*kDouble)(const Call&)>
void by_dtype(const Call& call) {
  (call.out[0]->dtype == float64 ? kDouble : kSingle)(call);
}

// ---- rules -------------------------------------------------------------------------------------------------------------
DType stat_dtype(DType d) { return d.size() < 4 ? float32 : d; }

/// Throws unless input i, a parameter of that dtype, broadcasts to `shape` as far as both are known.
void check_parameter(const Call& call, int i, const char* name, DType dtype, const Spec& shape, const char* of) {
  const Spec& p = call.spec(i);
  if (p.dtype != dtype) fail<TypeError>(call.op.name, ": x is ", call.spec(0).dtype, ", ", name, " is ", p.dtype, "; cast one of them (K::cast)");
  bool ok = p.rank < 0 || shape.rank < 0 || p.rank <= shape.rank;
  for (int k = 0; ok && shape.rank >= 0 && k < p.rank; ++k) {
    std::int64_t d = p.dims[k], to = shape.dims[shape.rank - p.rank + k];
    ok = d == to || d == 1 || d < 0 || to < 0;
  }
  if (!ok) fail<ValueError>(call.op.name, ": ", name, " ", p, " does not broadcast to ", shape, of);
}
void check_float(const Call& call, const Spec& x) {
  if (!x.dtype.is_float()) fail<TypeError>(call.op.name, ": x is ", x.dtype, ", not a float dtype; cast it first (K::cast)");
}

void normalize_rule(const Call& call, Spec* out) {
  const Spec& x = call.spec(0);
  check_float(call, x);
  out[0].set(x);
  reduced_spec(call.op.name, call.attrs.a, x, &out[1]);
  const char* of = ", the shape of x without the reduced axes";
  int next = 1;
  if (call.attrs.b & kGamma) check_parameter(call, next++, "gamma", x.dtype, out[1], of);
  if (call.attrs.b & kBeta) check_parameter(call, next++, "beta", x.dtype, out[1], of);
  out[1].dtype = stat_dtype(x.dtype);
  out[2].set(out[1]);
}
void normalize_grad_rule(const Call& call, Spec* out) {
  const Spec &x = call.spec(1), &mean = call.spec(2);
  out[0].set(x);
  out[1].set(mean);
  out[1].dtype = x.dtype;
  out[2].set(out[1]);
}
void center_scale_rule(const Call& call, Spec* out) {
  const Spec& x = call.spec(0);
  check_float(call, x);
  constexpr const char* kNames[] = {"x", "mean", "gamma / sqrt(var + epsilon)", "beta"};
  for (int i = 1; i < call.n_in; ++i) check_parameter(call, i, kNames[i], stat_dtype(x.dtype), x, ", the shape of x");
  out->set(x);
}

// ---- adjoints ----------------------------------------------------------------------------------------------------------
void add_to(Tensor& sum, Tensor term) { sum = sum.defined() ? sum + term : std::move(term); }

Attrs by(std::int64_t code, bool divide = false) {
  Attrs attrs;
  attrs.a = code;
  attrs.b = divide;
  return attrs;
}
/// A statistic repeated along the reduced axes of x, and the same divided by how often.
Tensor along(const Tensor& t, const Tensor& x, std::int64_t code) { return spread(t, x, code); }
Tensor shared_along(const Tensor& t, const Tensor& x, std::int64_t code) { return apply1(spread_row, by(code, true), {t, x}); }

/// dx, dgamma, dbeta.
struct Grads {
  Tensor out[3];
  Grads(const Attrs& attrs, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& gamma) {
    In in[5] = {dy, x, mean, var, gamma};
    apply(normalize_batch_grad_row, attrs, in, gamma.defined() ? 5 : 4, out, 3);
  }
};

void normalize_vjp(const Rewind& r) {
  int gamma_in = gamma_at(r.attrs, 1), beta_in = r.attrs.b & kBeta ? (gamma_in > 0 ? 2 : 1) : -1;
  Tensor x = r.in(0), gamma = gamma_in > 0 ? r.in(gamma_in) : Tensor();
  if (r.dy(0).defined()) {
    Attrs attrs = r.attrs;
    attrs.b &= kGamma;
    Grads g(attrs, r.dy(0), x, r.out(1), r.out(2), gamma);
    if (r.wants(0)) r.din(0) = g.out[0];
    if (gamma_in > 0 && r.wants(gamma_in)) r.din(gamma_in) = g.out[1];
    if (beta_in > 0 && r.wants(beta_in)) r.din(beta_in) = g.out[2];
  }
  if (!r.wants(0)) return;
  if (r.dy(1).defined()) add_to(r.din(0), cast(shared_along(r.dy(1), x, r.attrs.a), x.dtype()));
  if (r.dy(2).defined()) {
    Tensor centered = cast(x, r.dy(2).dtype()) - along(r.out(1), x, r.attrs.a);
    add_to(r.din(0), cast(2.0 * centered * shared_along(r.dy(2), x, r.attrs.a), x.dtype()));
  }
}

/// With h = (x - mean) s, s = 1 / sqrt(var + epsilon), and N elements in a channel, the row gives dx = gamma s (dy - sum(dy) / N -
/// h sum(dy h) / N), dgamma = sum(dy h), dbeta = sum(dy). It is linear in dy, and symmetric: its adjoint in dy is itself.
void normalize_grad_vjp(const Rewind& r) {
  std::int64_t code = r.attrs.a;
  bool has_gamma = r.attrs.b & kGamma;
  Tensor x = r.in(1), mean = r.in(2), var = r.in(3), gamma = has_gamma ? r.in(4) : Tensor();
  DType narrow = x.dtype(), wide = mean.dtype();
  auto widen = [&](const Tensor& t) { return cast(t, wide); };
  Tensor s = 1.0 / sqrt(var + r.attrs.x), centered = widen(x) - along(mean, x, code), h = centered * along(s, x, code), dy = widen(r.in(0));
  const Tensor &u = r.dy(0), &v = r.dy(1), &w = r.dy(2);
  Tensor ddy, dh, ds;   // cotangents of dy, of h, and of s beside its part in h
  if (u.defined()) {
    Grads g(r.attrs, u, x, mean, var, gamma);
    ddy = widen(g.out[0]);
    Tensor uw = widen(u), factor = has_gamma ? widen(gamma) * s : s, sum_dyh = widen(r.out(1)), sum_uh = widen(g.out[1]);
    dh = -(dy * shared_along(factor * sum_uh, x, code) + uw * shared_along(factor * sum_dyh, x, code));
    Tensor inner = sum_by(uw * (dy - shared_along(widen(r.out(2)), x, code) - h * shared_along(sum_dyh, x, code)), code);
    if (has_gamma && r.wants(4)) r.din(4) = cast(s * inner, narrow);
    ds = has_gamma ? widen(gamma) * inner : inner;
  }
  if (v.defined()) {
    Tensor all = along(widen(v), x, code);
    add_to(ddy, h * all);
    add_to(dh, dy * all);
  }
  if (w.defined()) add_to(ddy, along(widen(w), x, code));
  if (r.wants(0) && ddy.defined()) r.din(0) = cast(ddy, narrow);
  if (!dh.defined()) return;
  if (r.wants(1)) r.din(1) = cast(dh * along(s, x, code), narrow);
  if (r.wants(2)) r.din(2) = -(sum_by(dh, code) * s);
  if (r.wants(3)) {
    add_to(ds, sum_by(dh * centered, code));
    r.din(3) = ds * (s * s * s) * -0.5;
  }
}

void center_scale_vjp(const Rewind& r) {
  DType narrow = r.spec(0).dtype, wide = stat_dtype(narrow);
  Tensor dy = cast(r.dy(), wide);
  if (r.wants(0) || r.wants(1)) {
    Tensor g = dy * r.in(2);
    if (r.wants(0)) r.din(0) = cast(g, narrow);
    if (r.wants(1)) r.din(1) = -g;
  }
  if (r.wants(2)) r.din(2) = dy * (cast(r.in(0), wide) - r.in(1));
  if (r.n_in() > 3 && r.wants(3)) r.din(3) = dy;
}

}  // namespace

constinit const OpDef normalize_batch_row{.name = "normalize_batch_in_training",
                                          .rule = normalize_rule,
                                          .cpu = by_dtype<normalize<float>, normalize<double>>,
                                          .vjp = normalize_vjp,
                                          .saves_in = 3,
                                          .saves_out = 6,
                                          .n_out = 3};
constinit const OpDef normalize_batch_grad_row{.name = "normalize_batch_in_training_grad",
                                               .rule = normalize_grad_rule,
                                               .cpu = by_dtype<normalize_grad<float>, normalize_grad<double>>,
                                               .vjp = normalize_grad_vjp,
                                               .saves_in = 31,
                                               .saves_out = 6,
                                               .n_out = 3};
constinit const OpDef center_scale_row{.name = "batch_normalization",
                                       .rule = center_scale_rule,
                                       .cpu = by_dtype<center_and_scale<float>, center_and_scale<double>>,
                                       .vjp = center_scale_vjp,
                                       .saves_in = 7};

Normalized normalize_batch(const Tensor& x, const Tensor& gamma, const Tensor& beta, std::int64_t code, double epsilon) {
  Attrs attrs;
  attrs.a = code;
  attrs.b = (gamma.defined() ? kGamma : 0) | (beta.defined() ? kBeta : 0);
  attrs.x = epsilon;
  In in[3] = {x};
  int n = 1;
  for (const Tensor* t : {&gamma, &beta})
    if (t->defined()) in[n++] = *t;
  Tensor out[3];
  apply(normalize_batch_row, attrs, in, n, out, 3);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

Tensor center_scale(const Tensor& x, const Tensor& mean, const Tensor& scale, const Tensor& shift) {
  if (shift.defined()) return apply1(center_scale_row, {x, mean, scale, shift});
  return apply1(center_scale_row, {x, mean, scale});
}

}  // namespace kassette

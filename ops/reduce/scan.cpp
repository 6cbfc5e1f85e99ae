// ops/reduce/scan.cpp - running sums and products, and the linear recurrence that their gradients use.
#include "ops/reduce/scan.h"

#include <vector>

#include "core/text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/elementwise/half_compute.h"
#include "ops/reduce/scan_attrs.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

// Note [Scans]
// A scan visits the elements of each group along the axes in row-major order, or in the reverse order with `reverse`.
// With i the position in that order:
//   cumsum      y[i] = x[0] + ... + x[i]
//   cumprod     y[i] = x[0] * ... * x[i]; with `shifted`, without x[i]
//   recurrence  y[0] = b[0], y[i] = b[i] + a[i] * y[i - 1]; with `shifted`, a[i - 1] in place of a[i]. Where y[i - 1]
//               is 0, y[i] = b[i] even if a[i] is not finite: b and y are cotangents (Note [Zero cotangents])
//   shift       y[0] = 0, y[i] = x[i - 1]
//
// The gradient of a recurrence is a recurrence with the opposite order and the opposite `shifted`, so that these ops
// are closed under differentiation.

/// Element r of group k is at base[k] + step[r].
struct Groups {
  std::vector<std::int64_t> base, step;
  Groups(const TensorSpec& x, unsigned mask) {
    std::int64_t stride[kMaxRank];
    row_strides(x, stride);
    base = offsets(x, stride, ~mask);
    step = offsets(x, stride, mask);
  }
  static std::vector<std::int64_t> offsets(const TensorSpec& x, const std::int64_t* stride, unsigned mask) {
    std::vector<std::int64_t> at{0};
    for (int i = 0; i < x.rank; ++i) {
      if (!(mask >> i & 1)) continue;
      std::vector<std::int64_t> next;
      next.reserve(at.size() * x.dims[i]);
      for (std::int64_t o : at)
        for (std::int64_t c = 0; c < x.dims[i]; ++c) next.push_back(o + c * stride[i]);
      at = std::move(next);
    }
    return at;
  }
};

/// Scans kSide groups, `apart` elements from one another, at the same time: within a group every step depends on the
/// one before.
template <int kSide, class State, class Visit>
void side_by_side(std::int64_t at, std::int64_t apart, std::int64_t n, std::int64_t step, State start, Visit visit) {
  State state[kSide];
  for (int k = 0; k < kSide; ++k) {
    state[k] = start;
    visit(state[k], at + k * apart, std::int64_t(-1));
  }
  for (std::int64_t i = 1; i < n; ++i, at += step)
    for (int k = 0; k < kSide; ++k) visit(state[k], at + step + k * apart, at + k * apart);
}

/// A scan along the middle axis of (outer, n, inner).
template <class State, class Visit>
void scan_middle(std::int64_t outer, std::int64_t n, std::int64_t inner, bool reverse, State start, Visit visit) {
  // Only four rows, since rows that are a power of two apart compete for the same sets of the caches. Columns are
  // adjacent in memory.
  constexpr int kRows = 4, kColumns = 32;
  const std::int64_t step = reverse ? -inner : inner, first = reverse ? (n - 1) * inner : 0;
  const std::int64_t side = inner == 1 ? kRows : kColumns, apart = inner == 1 ? n : 1;
  const std::int64_t across = inner == 1 ? outer : inner, blocks = (across + side - 1) / side;
  devices::parallel_for((inner == 1 ? 1 : outer) * blocks, std::max<std::int64_t>(1, kReduceGrain / (side * n)),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t u = begin; u < end; ++u) {
                            std::int64_t k = u % blocks * side, width = std::min(side, across - k),
                                         at = u / blocks * n * inner + first + k * apart;
                            if (width == kRows) side_by_side<kRows>(at, apart, n, step, start, visit);
                            else if (width == kColumns) side_by_side<kColumns>(at, apart, n, step, start, visit);
                            else
                              for (std::int64_t i = 0; i < width; ++i)
                                side_by_side<1>(at + i * apart, apart, n, step, start, visit);
                          }
                        });
}

/// Calls visit(state, here, before) for the elements of each group in order; `before` is -1 for the first one. Blocks
/// of groups are scanned at the same time, so that adjacent elements are read together whichever axis is scanned.
template <class State, class Visit>
void scan(const OpCall& call, const TensorSpec& x, State start, Visit visit) {
  if (x.numel() == 0) return;
  const unsigned mask = axes_mask(call.op.name, call.attrs.as<ScanAttrs>().axes, x);
  bool reverse = call.attrs.as<ScanAttrs>().reverse;
  if (mask && !(mask & (mask - 1))) {
    const AxisSplit s(x, __builtin_ctz(mask));
    scan_middle(s.outer, s.n, s.inner, reverse, start, visit);
    return;
  }
  Groups g(x, mask);
  std::int64_t n = static_cast<std::int64_t>(g.step.size()), groups = static_cast<std::int64_t>(g.base.size());
  constexpr std::int64_t kBlock = 32;
  std::int64_t blocks = (groups + kBlock - 1) / kBlock;
  devices::parallel_for(blocks, std::max<std::int64_t>(1, kReduceGrain / (kBlock * n)),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t b = begin; b < end; ++b) {
                            const std::int64_t* base = g.base.data() + b * kBlock;
                            std::int64_t width = std::min(kBlock, groups - b * kBlock);
                            State state[kBlock];
                            for (std::int64_t k = 0; k < width; ++k) state[k] = start;
                            for (std::int64_t i = 0; i < n; ++i) {
                              std::int64_t here = g.step[reverse ? n - 1 - i : i];
                              std::int64_t before = i == 0 ? 0 : here - g.step[reverse ? n - i : i - 1];
                              for (std::int64_t k = 0; k < width; ++k) {
                                std::int64_t at = base[k] + here;
                                visit(state[k], at, i == 0 ? -1 : at - before);
                              }
                            }
                          }
                        });
}

/// The type of a running value: double for floats, so that each element of a float32 result rounds once; integers wrap.
template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
template <class T>
Running<T> wide(T v) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::uint64_t>(v);
  else return convert_one<double>(v);
}
template <class T>
T narrow(Running<T> v) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(v);
  else return convert_one<T>(v);
}

template <class F>
void numbers(DType dtype, F&& f) {
  dispatch(dtype, [&](auto* p) {
    if constexpr (!std::is_same_v<decltype(p), bool*>) f(p);
  });
}

// Half types are computed as float32: a result is rounded to float32 and then to them.

/// Calls run with some groups of a large call of half types at a time; false if it is to be run as a whole.
template <class F>
bool in_parts(const OpCall& call, F run) {
  const unsigned mask = axes_mask(call.op.name, call.attrs.as<ScanAttrs>().axes, call.spec(0));
  return in_slices(call, mask, run) || in_columns(call, mask, run);
}

// Note [Long sums]
// A row that is long is summed in pieces: their sums first, each from 0, then each piece again from what the pieces
// before it add up to. Pieces are summed side by side, and by all threads. The length of the row alone decides, so that
// the bits do not depend on the number of threads; and a piece starts from just the last value of the one before, so
// that running sums of numbers that are not negative never decrease.
constexpr std::int64_t kPiece = 8200;  // elements; not a power of two, for the caches' sake
constexpr int kPieces = 4;             // that are summed side by side

/// Adds the n elements of kSide pieces, from 0, and calls put(piece, place, sum so far).
template <int kSide, class T, class Put>
void add_pieces(const T* x, std::int64_t n, std::int64_t step, Put put) {
  Running<T> sum[kSide] = {};
  for (std::int64_t i = 0; i < n; ++i)
    for (int k = 0; k < kSide; ++k) {
      const std::int64_t at = (k * kPiece + i) * step;
      put(k, at, sum[k] += wide(x[at]));
    }
}
/// add_pieces() for all pieces of a row, by all threads; `step`, 1 or -1, is the direction.
template <class T, class Put>
void add_row(const T* x, std::int64_t n, std::int64_t step, Put put) {
  constexpr std::int64_t kTogether = kPieces * kPiece;
  devices::parallel_for((n + kTogether - 1) / kTogether, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kTogether; first < std::min(n, end * kTogether);) {
      const bool together = n - first >= kTogether;
      const std::int64_t count = together ? kPiece : std::min(kPiece, n - first), piece = first / kPiece;
      const auto put_here = [&](int k, std::int64_t at, Running<T> sum) { put(piece + k, first * step + at, sum); };
      if (together) add_pieces<kPieces>(x + first * step, count, step, put_here);
      else add_pieces<1>(x + first * step, count, step, put_here);
      first += together ? kTogether : count;
    }
  });
}
template <class T>
void cumsum_row(const T* x, T* y, std::int64_t n, std::int64_t step) {
  std::vector<Running<T>> starts(static_cast<std::size_t>((n + kPiece - 1) / kPiece) + 1);
  Running<T>* start = starts.data();
  add_row(x, n, step, [=](std::int64_t piece, std::int64_t, Running<T> sum) { start[piece + 1] = sum; });
  for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  add_row(x, n, step,
          [=](std::int64_t piece, std::int64_t at, Running<T> sum) { y[at] = narrow<T>(start[piece] + sum); });
}
/// Whether a scan is of few long rows.
bool is_long(const OpCall& call, AxisSplit* s) {
  const unsigned mask = axes_mask(call.op.name, call.attrs.as<ScanAttrs>().axes, call.spec(0));
  if (!mask || (mask & (mask - 1))) return false;
  *s = AxisSplit(call.spec(0), __builtin_ctz(mask));
  return s->inner == 1 && s->outer < kPieces && s->n >= 2 * kPieces * kPiece;
}

void cumsum_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (in_parts(call, cumsum_kernel)) return;
  with_wide(call.in[0].data, call.out[0]->data(), x.dtype, x.numel(), x.numel(), [&](auto* in, auto* y) {
    using T = std::remove_pointer_t<decltype(y)>;
    if (AxisSplit s; is_long(call, &s)) {
      const std::int64_t first = call.attrs.as<ScanAttrs>().reverse ? s.n - 1 : 0;
      for (std::int64_t at = first; at < s.outer * s.n; at += s.n) cumsum_row(in + at, y + at, s.n, first ? -1 : 1);
      return;
    }
    scan(call, x, Running<T>(0),
         [=](Running<T>& s, std::int64_t at, std::int64_t) { y[at] = narrow<T>(s += wide(in[at])); });
  });
}
void cumprod_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (in_parts(call, cumprod_kernel)) return;
  bool shifted = call.attrs.as<ScanAttrs>().shifted;
  with_wide(call.in[0].data, call.out[0]->data(), x.dtype, x.numel(), x.numel(), [&](auto* in, auto* y) {
    using T = std::remove_pointer_t<decltype(y)>;
    scan(call, x, Running<T>(1), [=](Running<T>& s, std::int64_t at, std::int64_t) {
      Running<T> before = s;
      s *= wide(in[at]);
      y[at] = narrow<T>(shifted ? before : s);
    });
  });
}
void recurrence_kernel(const OpCall& call) {
  numbers(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const T *a = call.in[0].as<T>(), *b = call.in[1].as<T>();
    T* y = call.out_as<T>();
    bool shifted = call.attrs.as<ScanAttrs>().shifted;
    scan(call, call.spec(0), Running<T>(0), [=](Running<T>& s, std::int64_t at, std::int64_t before) {
      Running<T> here = wide(b[at]);
      s = before < 0 ? here : here + m::mul_no_nan(s, wide(a[shifted ? before : at]));
      y[at] = narrow<T>(s);
    });
  });
}
void shift_kernel(const OpCall& call) {
  numbers(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const T* x = call.in[0].as<T>();
    T* y = call.out_as<T>();
    scan(call, call.spec(0), 0,
         [=](int&, std::int64_t at, std::int64_t before) { y[at] = before < 0 ? T{} : x[before]; });
  });
}

template <class V>
struct Extreme {
  V value;
  std::int64_t at;
};
template <bool kMax>
void places_kernel(const OpCall& call) {
  numbers(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using V = std::conditional_t<kIsHalf<T>, float, T>;
    const T* x = call.in[0].as<T>();
    auto* y = call.out_as<std::int64_t>();
    scan(call, call.spec(0), Extreme<V>{V(0), 0}, [=](Extreme<V>& best, std::int64_t at, std::int64_t before) {
      const V v = convert_one<V>(x[at]);
      // No number is larger than a NaN or equal to itself if it is one.
      const bool larger = best.value == best.value && ((kMax ? v > best.value : v < best.value) || v != v);
      if (before < 0 || larger) best = {v, at};
      y[at] = best.at;
    });
  });
}

void scan_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::numbers);
  const TensorSpec& x = call.spec(0);
  if (x.rank >= 0) axes_mask(call.op.name, call.attrs.as<ScanAttrs>().axes, x);
  out->set(x);
}

void places_rule(const OpCall& call, TensorSpec* out) {
  scan_rule(call, out);
  out->dtype = int64;
}

ScanAttrs turned(ScanAttrs attrs) {
  attrs.reverse = !attrs.reverse;
  return attrs;
}
Tensor recurrence(const Tensor& a, const Tensor& b, const ScanAttrs& attrs) {
  return apply1(recurrence_op, attrs, {a, b});
}
/// Moves each element to the position of the next one in the order of `attrs`.
Tensor shift(const Tensor& x, ScanAttrs attrs) {
  attrs.shifted = false;
  return apply1(shift_op, attrs, {x});
}

/// Half types as float32, since a partial product may overflow even if the result does not.
Tensor as_factors(const Tensor& x) { return x.dtype().size() < 4 ? cast(x, float32) : x; }

void cumprod_vjp(const VjpContext& ctx) {
  const ScanAttrs attrs = ctx.attrs.as<ScanAttrs>();
  ScanAttrs before = attrs;
  before.shifted = true;
  Tensor x = as_factors(ctx.in(0));
  Tensor dy = as_factors(attrs.shifted ? shift(ctx.dy(), turned(attrs)) : ctx.dy());
  ctx.din(0) = cast(mul_no_nan(recurrence(x, dy, turned(before)), apply1(cumprod_op, before, {x})), ctx.dy().dtype());
}
void recurrence_vjp(const VjpContext& ctx) {
  const ScanAttrs attrs = ctx.attrs.as<ScanAttrs>();
  ScanAttrs back = turned(attrs);
  back.shifted = !attrs.shifted;
  Tensor db = recurrence(ctx.in(0), ctx.dy(), back);
  if (ctx.wants(0))
    ctx.din(0) =
        attrs.shifted ? mul_no_nan(shift(db, turned(attrs)), ctx.out()) : mul_no_nan(db, shift(ctx.out(), attrs));
  if (ctx.wants(1)) ctx.din(1) = db;
}

}  // namespace

constinit const OpDef cumsum_op{
    .name = "cumsum", .rule = scan_rule, .cpu = cumsum_kernel, .vjp = [](const VjpContext& ctx) {
      ctx.din(0) = apply1(cumsum_op, turned(ctx.attrs.as<ScanAttrs>()), {ctx.dy()});
    }};
constinit const OpDef cumprod_op{
    .name = "cumprod", .rule = scan_rule, .cpu = cumprod_kernel, .vjp = cumprod_vjp, .saves_in = 1};
constinit const OpDef recurrence_op{.name = "recurrence",
                                    .rule = scan_rule,
                                    .cpu = recurrence_kernel,
                                    .vjp = recurrence_vjp,
                                    .saves_in = 1,
                                    .saves_out = 1};
constinit const OpDef shift_op{
    .name = "shift", .rule = scan_rule, .cpu = shift_kernel, .vjp = [](const VjpContext& ctx) {
      ctx.din(0) = shift(ctx.dy(), turned(ctx.attrs.as<ScanAttrs>()));
    }};

constinit const OpDef cummax_places_op{.name = "cummax_places", .rule = places_rule, .cpu = places_kernel<true>};
constinit const OpDef cummin_places_op{.name = "cummin_places", .rule = places_rule, .cpu = places_kernel<false>};

static ScanAttrs along(const char* what, const Tensor& x, int axis) {
  return {axis_set(what, x, axis, /*keepdims=*/false), /*reverse=*/false, /*shifted=*/false};
}
Tensor cummax_places(const Tensor& x, int axis) { return apply1(cummax_places_op, along("cummax", x, axis), {x}); }
Tensor cummin_places(const Tensor& x, int axis) { return apply1(cummin_places_op, along("cummin", x, axis), {x}); }
Tensor recurrence(const Tensor& a, const Tensor& b, int axis) { return recurrence(a, b, along("recurrence", b, axis)); }
Tensor shifted(const Tensor& x, int axis) { return shift(x, along("shift", x, axis)); }
Tensor cumsum(const Tensor& x, int axis) {
  return apply1(cumsum_op, ScanAttrs{axis_set("cumsum", x, axis, /*keepdims=*/false), false, false}, {x});
}
Tensor cumprod(const Tensor& x, int axis) {
  return apply1(cumprod_op, ScanAttrs{axis_set("cumprod", x, axis, /*keepdims=*/false), false, false}, {x});
}
Tensor product_of_others(const Tensor& x, AxisSet axes) {
  Tensor f = as_factors(x);
  const ScanAttrs before{axes, /*reverse=*/false, /*shifted=*/true};
  return cast(apply1(cumprod_op, before, {f}) * apply1(cumprod_op, turned(before), {f}), x.dtype());
}

}  // namespace kassette::ops

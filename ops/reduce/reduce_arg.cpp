// ops/reduce/reduce_arg.cpp - argmax and argmin, any and all, in_top_k.
#include "ops/reduce/reduce_arg.h"

#include <cmath>
#include <cstring>

#include "core/rank.h"
#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/elementwise/half_compute.h"

namespace kassette::ops {
namespace {

// ---- argmax, argmin -------------------------------------------------------------------------------------------------
void arg_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, x, out);
  out->dtype = int64;
  if (x.rank < 0) return;
  unsigned mask = axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x);
  for (int i = 0; i < x.rank; ++i)
    if (mask >> i & 1 && x.dims[i] == 0)
      fail<ValueError>({call.op.name, "x"}, "of shape ", x, " has no elements along the axis");
}

template <class T>
bool is(T x, T extreme) {
  return x == extreme || (extreme != extreme && x != x);
}
/// True if b is more extreme than a. NaN is the most extreme.
template <class T>
bool passes(Reduction how, T b, T a) {
  return how == Reduction::max ? b > a || (b != b && a == a) : b < a || (b != b && a == a);
}

/// The first index of m among n elements; at least one of them equals m.
template <class T>
std::int64_t first_place(const T* x, std::int64_t n, T m) {
  typedef T Vector __attribute__((vector_size(16)));
  typedef std::int64_t Words __attribute__((vector_size(16)));
  constexpr std::int64_t kBlock = 4 * 16 / sizeof(T);
  Vector wanted, v[4];
  for (std::size_t k = 0; k < 16 / sizeof(T); ++k) wanted[k] = m;
  std::int64_t i = 0;
  for (; m == m && i + kBlock <= n; i += kBlock) {
    std::memcpy(v, x + i, sizeof v);
    Words found = (Words)(v[0] == wanted) | (Words)(v[1] == wanted) | (Words)(v[2] == wanted) | (Words)(v[3] == wanted);
    if (found[0] | found[1]) break;
  }
  while (!is(x[i], m)) ++i;
  return i;
}

/// Indices of the extremes of rows. For each block, finds the extreme by vector loops and then its index, while the
/// block is in the cache.
template <class T>
void extremes_of_rows(Reduction how, const ReduceInput<T>& x, std::int64_t* out, std::int64_t outer, std::int64_t n) {
  std::int64_t blocks = (n + kReduceRow - 1) / kReduceRow;
  Scratch<T> extreme(outer * blocks);
  Scratch<std::int64_t> place(outer * blocks);
  devices::parallel_for(outer * blocks, std::max<std::int64_t>(1, kReduceGrain / std::min(n, kReduceRow)),
                        [&](std::int64_t begin, std::int64_t end) {
                          OwnScratch<T> converted;
                          for (std::int64_t u = begin, count; u < end; u += count) {
                            count = blocks == 1 ? std::min(end - u, std::max<std::int64_t>(1, 1024 / n)) : 1;
                            std::int64_t at = u % blocks * kReduceRow, length = std::min(kReduceRow, n - at);
                            const T* block = x.block(converted, kReduceRow, u / blocks * n + at, count * length);
                            reduce_loops<T>(how).rows(block, extreme.get() + u, count, length);
                            for (std::int64_t k = 0; k < count; ++k)
                              place.get()[u + k] = at + first_place(block + k * n, length, extreme.get()[u + k]);
                          }
                        });
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t best = o * blocks;
    for (std::int64_t u = best + 1; u < (o + 1) * blocks; ++u)
      if (passes(how, extreme.get()[u], extreme.get()[best])) best = u;
    out[o] = place.get()[best];
  }
}

/// Indices of the extremes of columns: finds the extremes by vector loops, then their first indices.
template <class T>
void extremes_of_columns(Reduction how, const ReduceInput<T>& x, std::int64_t* out, std::int64_t outer, std::int64_t n,
                         std::int64_t inner) {
  constexpr std::int64_t kWidth = 256;  // columns that are converted at once
  Scratch<T> extreme(outer * inner);
  reduce_middle(reduce_loops<T>(how), x, extreme.get(), outer, n, inner);
  devices::parallel_for(
      outer, std::max<std::int64_t>(1, kReduceGrain / (n * inner)), [&](std::int64_t begin, std::int64_t end) {
        OwnScratch<T> converted;
        for (std::int64_t o = begin; o < end; ++o)
          for (std::int64_t r = n - 1; r >= 0; --r)  // backwards, so that the first index is written last
            for (std::int64_t c = 0, some; c < inner; c += some) {
              some = x.converts() ? std::min(kWidth, inner - c) : inner;
              const T *row = x.block(converted, kWidth, (o * n + r) * inner + c, some),
                      *m = extreme.get() + o * inner + c;
              std::int64_t* to = out + o * inner + c;
              for (std::int64_t i = 0; i < some; ++i) to[i] = is(row[i], m[i]) ? r : to[i];
            }
      });
}

template <class T>
void find_extremes(Reduction how, const ReduceInput<T>& x, std::int64_t* out, std::int64_t outer, std::int64_t n,
                   std::int64_t inner) {
  if (inner == 1) extremes_of_rows(how, x, out, outer, n);
  else extremes_of_columns(how, x, out, outer, n, inner);
}

template <Reduction kReduction>
void arg_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  AxisSplit s;
  if (call.attrs.as<ReduceAttrs>().axes.all) s.n = x.numel();
  else s = AxisSplit(x, __builtin_ctz(axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x)));
  auto* out = call.out_as<std::int64_t>();
  auto find = [&](const auto& in) { find_extremes(kReduction, in, out, s.outer, s.n, s.inner); };
  if (x.dtype.is_bool()) return find(ReduceInput<std::uint8_t>(call.in[0].as<std::uint8_t>()));
  dispatch(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (kIsHalf<T>) find(ReduceInput<float>(call.in[0].data, x.dtype));
    else if constexpr (!std::is_same_v<T, bool>) find(ReduceInput<T>(call.in[0].as<T>()));
  });
}

// ---- any, all -------------------------------------------------------------------------------------------------------
void logical_rule(const OpCall& call, TensorSpec* out) {
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, call.spec(0), out);
  out->dtype = bool_;
}

/// any or all: the maximum or minimum of truth values as bytes 0 and 1.
template <Reduction kReduction>
void logical_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  ReduceInput<std::uint8_t> truth(call.in[0].data, x.dtype);
  truth.as = bool_;
  reduce_runs(reduce_loops<std::uint8_t>(kReduction), std::uint8_t(kReduction == Reduction::min), truth,
              call.out_as<std::uint8_t>(),
              CoalescedAxes(x, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x)));
}

// ---- in_top_k -------------------------------------------------------------------------------------------------------
void top_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &p = call.spec(0), &t = call.spec(1);
  if (!p.dtype.is_float())
    fail<TypeError>({"in_top_k", "predictions"}, "are ", p.dtype, ", not a float dtype", kRemedy,
                    "cast them first (K::cast)");
  if (!t.dtype.is_integer())
    fail<TypeError>({"in_top_k", "targets"}, "are ", t.dtype, kExpected, "they must be integers");
  check_rank({"in_top_k", "predictions"}, p, 2, ": (samples, classes)");
  check_rank({"in_top_k", "targets"}, t, 1, ": (samples,)");
  const std::int64_t n = p.dim(0), m = t.dim(0);
  if (differ(n, m)) fail<ValueError>({"in_top_k"}, n, " rows of predictions, ", m, " targets");
  out->rank = 1;
  out->dims[0] = n < 0 ? m : n;
  out->dtype = bool_;
}
void top_kernel(const OpCall& call) {
  std::int64_t rows = call.spec(0).dims[0], n = call.spec(0).dims[1], k = call.attrs.as<InTopKAttrs>().k;
  const std::int64_t* ids = call.in[1].as<std::int64_t>();
  bool* out = call.out_as<bool>();
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const ReduceInput<T> predictions(call.in[0].data, call.spec(0).dtype);
    OwnScratch<T> converted;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* p = predictions.block(converted, n, r * n, n);
      std::int64_t id = ids[r], larger = 0;
      bool finite = true;
      for (std::int64_t c = 0; c < n; ++c) finite &= std::isfinite(p[c]);
      out[r] = finite && id >= 0 && id < n;
      if (!out[r]) continue;
      for (std::int64_t c = 0; c < n; ++c) larger += p[c] > p[id];
      out[r] = larger < k;
    }
  });
}

Tensor reduce(const OpDef& op, const Tensor& x, const Axes& axes, bool keepdims) {
  return apply1(op, ReduceAttrs{axis_set(op.name, x, axes, keepdims)}, {x});
}

}  // namespace

constinit const OpDef argmax_op{.name = "argmax", .rule = arg_rule, .cpu = arg_kernel<Reduction::max>};
constinit const OpDef argmin_op{.name = "argmin", .rule = arg_rule, .cpu = arg_kernel<Reduction::min>};
constinit const OpDef any_op{.name = "any", .rule = logical_rule, .cpu = logical_kernel<Reduction::max>};
constinit const OpDef all_op{.name = "all", .rule = logical_rule, .cpu = logical_kernel<Reduction::min>};
constinit const OpDef in_top_k_op{
    .name = "in_top_k", .rule = top_rule, .cpu = top_kernel, .inputs = "predictions targets"};

Tensor argmax(const Tensor& x, const Axes& axis) { return reduce(argmax_op, x, axis, /*keepdims=*/false); }
Tensor argmin(const Tensor& x, const Axes& axis) { return reduce(argmin_op, x, axis, /*keepdims=*/false); }
Tensor any_of(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(any_op, x, axes, keepdims); }
Tensor all_of(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(all_op, x, axes, keepdims); }
Tensor in_top_k(const Tensor& predictions, const Tensor& targets, std::int64_t k) {
  // The kernels read int64 alone. What is no integer is left to the rule, which says so.
  return apply1(in_top_k_op, InTopKAttrs{k},
                {predictions, targets.defined() && targets.dtype().is_integer() ? cast(targets, int64) : targets});
}

}  // namespace kassette::ops

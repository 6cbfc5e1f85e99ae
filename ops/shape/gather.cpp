// ops/shape/gather.cpp - gather along an axis by integer indices, its adjoint, and one_hot.
#include <algorithm>
#include <cstring>
#include <memory>

#include "core/convert.h"
#include "core/rank.h"
#include "devices/cpu/threads.h"
#include "ops/engine/axes.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/refusals.h"
#include "ops/shape/index.h"
#include "ops/shape/index_range.h"
#include "ops/shape/put.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrainBytes = 3 << 16;

void check_indices(const char* op, const TensorSpec& s) {
  if (s.dtype != int32 && s.dtype != int64)
    fail<TypeError>({op, "indices"}, "are ", s.dtype, kExpected, "they must be int32 or int64", kRemedy,
                    "cast them (K::cast)");
}

void gather_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(0), &indices = call.spec(1);
  check_indices("gather", indices);
  const int more = indices.rank;
  out->dtype = x.dtype;
  out->rank = -1;
  if (x.rank == 0) fail<ValueError>({"gather", "reference"}, "is a scalar, which has no axis to select along");
  if (x.rank < 0) return;
  const auto how = call.attrs.as<GatherAttrs>();
  const int axis = place_axis("gather", how.axis, x), taken = 1 + how.joined;
  if (axis + taken > x.rank) fail_index_count(axis + taken, x);
  if (more < 0) return;
  int rank = x.rank - taken + more;
  out->rank = checked_rank("gather", rank, x, " by indices of shape ", indices);
  for (int i = 0; i < rank; ++i)
    out->dims[i] = i < axis ? x.dims[i] : i < axis + more ? indices.dims[i - axis] : x.dims[i - more + taken];
}

/// x seen from the axis that is indexed.
GatherSplit parts_of(const OpCall& call, const TensorSpec& x) {
  const auto how = call.attrs.as<GatherAttrs>();
  return {x, place_axis("gather", how.axis, x), how.joined};
}

/// The indices: the constructor refuses those out of range, operator[] returns them counted from the front.
class Indices {
 public:
  Indices(const OpCall& call, int i, std::int64_t size)
      : n_(call.spec(i).numel()), wide_(call.spec(i).dtype == int64), data_(call.in[i].data), size_(size) {
    const bool wraps = call.attrs.as<GatherAttrs>().wrap == Wrap::negative;
    const std::int64_t low = wraps ? -size : 0;
    const bool good = wide_ ? all_in_range(reinterpret_cast<const std::int64_t*>(data_), n_, low, size)
                            : all_in_range(reinterpret_cast<const std::int32_t*>(data_), n_, low, size);
    for (std::int64_t k = 0; !good && k < n_; ++k)
      if (const std::int64_t at = raw(k); at < low || at >= size)
        refuse_for(wraps ? Refusal::index : Refusal::gather_index, at, size);
  }
  std::int64_t size() const { return n_; }
  std::int64_t operator[](std::int64_t k) const {
    std::int64_t at = raw(k);
    return at < 0 ? at + size_ : at;
  }
  /// The end of the indices, from k on, that are equal to index k.
  std::int64_t end_of_run(std::int64_t k, std::int64_t end) const {
    return wide_ ? end_of_run(reinterpret_cast<const std::int64_t*>(data_), k, end)
                 : end_of_run(reinterpret_cast<const std::int32_t*>(data_), k, end);
  }

 private:
  template <class I>
  static std::int64_t end_of_run(const I* at, std::int64_t k, std::int64_t end) {
    const I first = at[k];
    do ++k;
    while (k < end && at[k] == first);
    return k;
  }
  std::int64_t raw(std::int64_t k) const {
    return wide_ ? reinterpret_cast<const std::int64_t*>(data_)[k] : reinterpret_cast<const std::int32_t*>(data_)[k];
  }
  std::int64_t n_;
  bool wide_;
  const std::byte* data_;
  std::int64_t size_;
};

/// Copies `count` rows of a block, from index `first` on.
template <class Copy>
void copy_rows(const std::byte* from, const Indices& at, std::int64_t first, std::int64_t count, std::byte* to,
               std::int64_t bytes, Copy copy) {
  for (std::int64_t k = 0; k < count; ++k) copy(to + k * bytes, from + at[first + k] * bytes);
}

void gather_kernel(const OpCall& call) {
  const GatherSplit p = parts_of(call, call.spec(0));
  Indices at(call, 1, p.n);
  std::int64_t bytes = p.inner * call.spec(0).dtype.size(), n = at.size();
  const std::byte* from = call.in[0].data;
  std::byte* to = call.out[0]->data();
  if (bytes == 0) return;
  devices::parallel_for(
      p.outer * n, std::max<std::int64_t>(1, kGrainBytes / bytes), [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          const std::int64_t outer = begin / n, first = begin % n, count = std::min(n - first, end - begin);
          const std::byte* block = from + outer * p.n * bytes;
          auto copy = [&](auto move) { copy_rows(block, at, first, count, to + begin * bytes, bytes, move); };
          // Constant sizes compile to a move instead of a call.
          if (bytes == 4) copy([](std::byte* a, const std::byte* b) { std::memcpy(a, b, 4); });
          else if (bytes == 8) copy([](std::byte* a, const std::byte* b) { std::memcpy(a, b, 8); });
          else copy([=](std::byte* a, const std::byte* b) { std::memcpy(a, b, static_cast<std::size_t>(bytes)); });
          begin += count;
        }
      });
}

void gather_gradient(const VjpContext& ctx) {
  ctx.din(0) = apply1(gather_grad_like_op, ctx.attrs, {ctx.dy(), ctx.in(1), ctx.in(0)});
}

// ---- adjoint of gather ----------------------------------------------------------------------------------------------

void gather_grad_rule(const OpCall& call, TensorSpec* out) {
  check_indices("gather", call.spec(1));
  out->set(call.spec(2));
  out->dtype = call.spec(0).dtype;
}

/// The sum of n numbers, of which kSums add up side by side.
template <class Sum, class T>
Sum sum_of(const T* x, std::int64_t n) {
  constexpr int kSums = 4;
  Sum sum[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int k = 0; k < kSums; ++k) sum[k] = static_cast<Sum>(sum[k] + convert_one<Sum>(x[i + k]));
  for (; i < n; ++i) sum[0] = static_cast<Sum>(sum[0] + convert_one<Sum>(x[i]));
  return static_cast<Sum>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/// Adds the parts of dy of indices [begin, end) to the sums of their rows, of which `sums` holds [first, last).
template <class T, class Sum>
void add_parts(const T* dy, const Indices& at, std::int64_t begin, std::int64_t end, Sum* sums, std::int64_t inner,
               std::int64_t first, std::int64_t last) {
  if (inner == 1) {  // indices that follow each other in one row without its memory in between
    for (std::int64_t k = begin; k < end;) {
      const std::int64_t row = at[k], from = k;
      k = at.end_of_run(k, end);
      if (row < first || row >= last) continue;
      sums[row - first] = static_cast<Sum>(sums[row - first] + sum_of<Sum>(dy + from, k - from));
    }
    return;
  }
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t row = at[k];
    if (row < first || row >= last) continue;
    Sum* out = sums + (row - first) * inner;
    const T* add = dy + k * inner;
    for (std::int64_t i = 0; i < inner; ++i) out[i] = static_cast<Sum>(out[i] + convert_one<Sum>(add[i]));
  }
}

/// Sets rows [first, last) of one outer block to the sums of the parts of dy whose index is that row. Adds in the order
/// of the indices, so that the bits do not depend on how the rows are divided among threads: blocks of them, then the
/// sums of these, so that rounding errors of a row that occurs often do not grow with its number. `rows`: of the table.
template <class T>
void add_range(const T* dy, const Indices& at, T* to, std::int64_t rows, std::int64_t inner, std::int64_t first,
               std::int64_t last) {
  using Sum = std::conditional_t<kIsHalf<T>, float, T>;
  // A pass over the sums for as many indices as there are rows costs no more than these.
  const std::int64_t n = at.size(), count = (last - first) * inner, block = std::max<std::int64_t>(4096, rows);
  std::unique_ptr<Sum[]> wide;
  Sum* total;
  if constexpr (kIsHalf<T>) {
    wide = std::make_unique<Sum[]>(count);
    total = wide.get();
  } else {
    total = to + first * inner;
    std::fill_n(total, count, T(0));
  }
  add_parts(dy, at, 0, std::min(n, block), total, inner, first, last);
  std::unique_ptr<Sum[]> sums;
  for (std::int64_t k = block; k < n; k += block) {
    if (sums) std::fill_n(sums.get(), count, Sum(0));
    else sums = std::make_unique<Sum[]>(count);
    add_parts(dy, at, k, std::min(n, k + block), sums.get(), inner, first, last);
    for (std::int64_t i = 0; i < count; ++i) total[i] = static_cast<Sum>(total[i] + sums[i]);
  }
  if constexpr (kIsHalf<T>)
    for (std::int64_t i = 0; i < count; ++i) to[first * inner + i] = convert_one<T>(total[i]);
}

void gather_grad_kernel(const OpCall& call) {
  const GatherSplit p = parts_of(call, *call.out[0]);
  Indices at(call, 1, p.n);
  if (call.out[0]->numel() == 0) return;
  dispatch(call.out[0]->dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const T* dy = call.in[0].as<T>();
    T* to = call.out_as<T>();
    if (p.outer > 1) {
      std::int64_t bytes = p.n * p.inner * static_cast<std::int64_t>(sizeof(T));
      devices::parallel_for(
          p.outer, std::max<std::int64_t>(1, kGrainBytes / bytes), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t o = begin; o < end; ++o)
              add_range(dy + o * at.size() * p.inner, at, to + o * p.n * p.inner, p.n, p.inner, 0, p.n);
          });
      return;
    }
    const std::int64_t row = p.inner * static_cast<std::int64_t>(sizeof(T)), ranges = row_ranges(row, p.n * row);
    devices::parallel_for(p.n, (p.n + ranges - 1) / ranges, [&](std::int64_t begin, std::int64_t end) {
      add_range(dy, at, to, p.n, p.inner, begin, end);
    });
  });
}

void gather_grad_gradient(const VjpContext& ctx) { ctx.din(0) = apply1(gather_op, ctx.attrs, {ctx.dy(), ctx.in(1)}); }

// --- one_hot ---------------------------------------------------------------------------------------------------------

void one_hot_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  if (!x.dtype.is_integer())
    fail<TypeError>({"one_hot", "indices"}, "are ", x.dtype, kExpected, "they must be integers", kRemedy,
                    "cast them (K::cast)");
  out->dtype = float32;
  out->rank = x.rank < 0 ? x.rank : checked_rank("one_hot", x.rank + 1, x);
  for (int i = 0; i < x.rank; ++i) out->dims[i] = x.dims[i];
  if (x.rank >= 0) out->dims[x.rank] = call.attrs.as<OneHotAttrs>().classes;
}
void one_hot_kernel(const OpCall& call) {
  std::int64_t classes = call.attrs.as<OneHotAttrs>().classes;
  if (classes == 0) return;
  dispatch(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (std::is_integral_v<T>) {
      const T* at = call.in[0].as<T>();
      float* to = call.out_as<float>();
      devices::parallel_for(call.spec(0).numel(), std::max<std::int64_t>(1, kGrainBytes / (classes * 4)),
                            [&](std::int64_t begin, std::int64_t end) {
                              std::memset(to + begin * classes, 0,
                                          static_cast<std::size_t>((end - begin) * classes) * sizeof(float));
                              for (std::int64_t k = begin; k < end; ++k) {
                                auto c = static_cast<std::int64_t>(at[k]);
                                if (c >= 0 && c < classes) to[k * classes + c] = 1;
                              }
                            });
    }
  });
}

}  // namespace

constinit const OpDef gather_op{.name = "gather",
                                .rule = gather_rule,
                                .cpu = gather_kernel,
                                .vjp = gather_gradient,
                                .saves_in = 2,
                                .inputs = "reference indices"};
/// The adjoint of gather: zeros with the shape of input 2, to which the parts of input 0 are added at the indices,
/// input 1.
constinit const OpDef gather_grad_like_op{.name = "gather_grad_like",
                                          .rule = gather_grad_rule,
                                          .cpu = gather_grad_kernel,
                                          .vjp = gather_grad_gradient,
                                          .saves_in = 2,
                                          .shape_only = 4};
constinit const OpDef one_hot_op{.name = "one_hot", .rule = one_hot_rule, .cpu = one_hot_kernel, .inputs = "indices"};

Tensor gather(const Tensor& x, const Tensor& indices, int axis, Wrap wrap, int joined) {
  return apply1(gather_op, GatherAttrs{axis, wrap, static_cast<std::uint8_t>(joined)}, {x, indices});
}
Tensor one_hot(const Tensor& indices, std::int64_t classes) {
  if (classes < 0) fail<ValueError>({"one_hot", "num_classes"}, "is ", classes, kExpected, "it must not be negative");
  return apply1(one_hot_op, OneHotAttrs{classes}, {indices});
}

}  // namespace kassette::ops

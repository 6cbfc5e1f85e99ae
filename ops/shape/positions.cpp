// ops/shape/positions.cpp - where the elements are that index tensors and masks select.
#include "ops/shape/positions.h"

#include <algorithm>
#include <vector>

#include "core/convert.h"
#include "core/rank.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/engine/refusals.h"
#include "ops/shape/index_range.h"
#include "ops/shape/position_terms.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // elements that are worth a thread: Note [Worth a thread]

// ---- nonzero --------------------------------------------------------------------------------------------------------

void check_mask(const TensorSpec& mask, const TensorSpec& x, int axis) {
  if (mask.rank < 0 || x.rank < 0) return;
  const int from = axis < 0 ? axis + x.rank : axis;
  if (from < 0 || from + mask.rank > x.rank) fail_index_count(std::max(from, 0) + mask.rank, x);
  for (int i = 0; i < mask.rank; ++i)
    if (differ(mask.dims[i], x.dims[from + i]))
      fail<ValueError>({"index"}, "a mask of shape ", mask, " at axis ", from, " of a tensor of shape ", x, kExpected,
                       "its sizes must be those of the axes");
}

/// Inputs: x, and the tensor whose axes it must fit, if it is a mask.
void nonzero_rule(const OpCall& call, TensorSpec* out) {
  if (call.n_in > 1) check_mask(call.spec(0), call.spec(1), static_cast<int>(call.attrs.as<AxisAttrs>().axis));
  out->dtype = int64;
  out->rank = 1;
  out->dims[0] = kUnknown;
}
/// Writes the positions of the elements of x that are not zero.
template <class T>
void list_nonzero(const OpCall& call) {
  const T* x = call.in[0].as<T>();
  const std::int64_t n = call.spec(0).numel(), n_blocks = (n + kGrain - 1) / kGrain;
  std::vector<std::int64_t> first(static_cast<std::size_t>(n_blocks) + 1);
  devices::parallel_for(n_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      std::int64_t count = 0;
      for (std::int64_t i = b * kGrain; i < std::min(n, (b + 1) * kGrain); ++i) count += convert_one<bool>(x[i]);
      first[static_cast<std::size_t>(b) + 1] = count;
    }
  });
  for (std::size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
  TensorDesc& out = *call.out[0];
  out.dims[0] = first.back();
  allocate_output(out, cpu);
  auto* to = call.out_as<std::int64_t>();
  devices::parallel_for(n_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      // Without a branch on the element: the next one overwrites what it has not selected.
      std::int64_t at = first[static_cast<std::size_t>(b)];
      const std::int64_t stop = first[static_cast<std::size_t>(b) + 1];
      for (std::int64_t i = b * kGrain; at < stop; ++i) {
        to[at] = i;
        at += convert_one<bool>(x[i]);
      }
    }
  });
}
void nonzero_kernel(const OpCall& call) {
  dispatch(call.spec(0).dtype, [&](auto* null) { list_nonzero<std::remove_pointer_t<decltype(null)>>(call); });
}

/// x where nonzero_op reads it. Of a tensor on a CUDA device, only a byte per element is copied.
Tensor on_host(const Tensor& x) { return x.device() == cpu ? x : cast(x, bool_).to(cpu); }

// ---- index_positions ------------------------------------------------------------------------------------------------

/// The shape that the index tensors, inputs 1 and on, broadcast to.
TensorSpec broadcast_indices(const OpCall& call) {
  TensorSpec all(int64, {});
  for (int i = 1; i < call.n_in; ++i) {
    const TensorSpec so_far = all;
    broadcast_spec("index", so_far, call.spec(i), &all);
  }
  return all;
}

void positions_rule(const OpCall& call, TensorSpec* out) {
  const PositionList& list = position_list(call);
  const TensorSpec& x = call.spec(0);
  out->dtype = one_tensor(list) ? call.spec(1).dtype : int64;
  out->rank = -1;
  if (x.rank < 0) return;
  if (list.first + list.axes > x.rank) fail_index_count(list.first + list.axes, x);
  const TensorSpec indices = broadcast_indices(call);
  if (indices.rank < 0) return;
  int rank = 0;
  const auto put = [&](std::int64_t size, int, const Run&) {
    checked_rank("index", rank + 1, x);
    out->dims[rank++] = size;
  };
  walk(
      list, x, put,
      [&] {
        for (int i = 0; i < indices.rank; ++i) put(indices.dims[i], 0, Run());
      },
      [&](std::int64_t i, int axis) { place_index("index", i, axis, x); });
  out->rank = static_cast<std::int8_t>(rank);
}

/// Refuses indices out of range, and returns the elements of an index tensor.
template <class I>
const I* checked_indices(const OpCall& call, int k, const PositionTerms::Term& term) {
  const I* at = call.in[k + 1].as<I>();
  if (all_in_range(at, term.count, -term.size, term.size)) return at;
  for (std::int64_t i = 0; i < term.count; ++i)
    if (at[i] < -term.size || at[i] >= term.size) refuse_for(Refusal::index_of_axis, at[i], term.axis, term.size);
  return at;
}

/// Positions [begin, end) of the result.
void write_positions(const PositionTerms& t, const std::int64_t* const* indices, std::int64_t* to, std::int64_t begin,
                     std::int64_t end) {
  const int last = t.rank - 1;
  std::int64_t at[kMaxRank], rest = begin;
  for (int d = last; d >= 0; --d) {
    at[d] = rest % t.dims[d];
    rest /= t.dims[d];
  }
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t run = std::min(end - i, t.dims[last] - at[last]);
    std::int64_t base = t.base;
    for (int d = 0; d <= last; ++d) base += at[d] * t.steps[d];
    for (std::int64_t j = 0; j < run; ++j) to[i + j] = base + j * t.steps[last];
    for (int k = 0; k < t.n; ++k) {
      const PositionTerms::Term& term = t.terms[k];
      const std::int64_t* from = indices[k];
      for (int d = 0; d <= last; ++d) from += at[d] * term.strides[d];
      for (std::int64_t j = 0; j < run; ++j) {
        const std::int64_t index = from[j * term.strides[last]];
        to[i + j] += (index < 0 ? index + term.size : index) * term.weight;
      }
    }
    i += run;
    at[last] += run;
    for (int d = last; d > 0 && at[d] == t.dims[d]; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

/// Of one index tensor the indices themselves are the positions, unless some count from the end.
template <class I>
void one_tensor_kernel(const OpCall& call, const PositionTerms::Term& term) {
  if (all_in_range(call.in[1].as<I>(), term.count, 0, term.size)) return share_input(call, 1);
  const I *from = checked_indices<I>(call, 0, term), size = static_cast<I>(term.size);
  allocate_output(*call.out[0], cpu);
  I* to = call.out_as<I>();
  devices::parallel_for(term.count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<I>(from[i] < 0 ? from[i] + size : from[i]);
  });
}

void positions_kernel(const OpCall& call) {
  const PositionTerms t(call);
  if (one_tensor(position_list(call))) {
    if (call.spec(1).dtype == int32) return one_tensor_kernel<std::int32_t>(call, t.terms[0]);
    return one_tensor_kernel<std::int64_t>(call, t.terms[0]);
  }
  const std::int64_t* indices[kMaxRank];
  for (int k = 0; k < t.n; ++k) indices[k] = checked_indices<std::int64_t>(call, k, t.terms[k]);
  allocate_output(*call.out[0], cpu);
  auto* to = call.out_as<std::int64_t>();
  devices::parallel_for(call.out[0]->numel(), kGrain,
                        [&](std::int64_t begin, std::int64_t end) { write_positions(t, indices, to, begin, end); });
}

}  // namespace

constinit const OpDef nonzero_op{.name = "nonzero",
                                 .rule = nonzero_rule,
                                 .cpu = nonzero_kernel,
                                 .shape_only = 2,
                                 .host = 1,
                                 .traits = kView,
                                 .anywhere = true,
                                 .inputs = "x like"};
constinit const OpDef index_positions_op{.name = "index_positions",
                                         .rule = positions_rule,
                                         .cpu = positions_kernel,
                                         .shape_only = 1,
                                         .traits = kView,
                                         .inputs = "x index"};

Tensor nonzero_positions(const Tensor& x) { return apply1(nonzero_op, AxisAttrs{0}, {on_host(x)}).to(x.device()); }
Tensor nonzero_positions(const Tensor& x, const Tensor& like, int axis) {
  const TensorDesc& l = Access::desc(like);
  if (x.device() != like.device())
    fail<DeviceError>({"index"}, "a mask is on ", x.device(), ", the tensor on ", like.device(), kRemedy,
                      "move one with .to(\"", like.device(), "\")");
  check_mask(Access::desc(x), l, axis);
  if (l.known() && Access::desc(x).known())
    return nonzero_positions(x).to(like.device());  // nothing is left to be checked
  return apply1(nonzero_op, AxisAttrs{axis}, {on_host(x), like}).to(like.device());
}

Tensors nonzero_indices(const Tensor& x) {
  if (!x.defined()) fail_empty({"nonzero", "x"});
  const TensorDesc& b = Access::desc(x);
  if (b.rank < 0) fail_unknown_rank({"nonzero", "x"});
  if (b.rank == 0) fail<ValueError>({"nonzero", "x"}, "is a scalar, which has no axis");
  Tensor rest = nonzero_positions(x);
  std::vector<Tensor> columns(static_cast<std::size_t>(b.rank));
  for (int axis = b.rank - 1; axis > 0; --axis) {
    // An axis of size 0 has no positions to be divided by it.
    const Tensor size = b.dims[axis] >= 0 ? Tensor() : number_on(maximum(shape_of(x, int64)[axis], 1), x.device());
    const Operand by = size.defined() ? Operand(size) : Operand(std::max<long>(b.dims[axis], 1));
    columns[static_cast<std::size_t>(axis)] = rest % by;
    rest = floor_divide(rest, by);
  }
  columns[0] = rest;
  return columns;
}
Tensor nonzero(const Tensor& x) { return stack(nonzero_indices(x), 1); }

Tensor index_positions(const Tensor& x, const Tensor* tensors, int n, const Ref<PositionList>& list) {
  In in[kMaxRank + 1] = {x};
  for (int k = 0; k < n; ++k) in[k + 1] = tensors[k];
  Tensor out;
  apply(index_positions_op, Attrs(Ref<Extra>(list.get())), in, n + 1, &out, 1);
  return out;
}

}  // namespace kassette::ops

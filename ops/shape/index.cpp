// ops/shape/index.cpp - NumPy's basic indexing, x[...], and its adjoint.
#include "ops/shape/index.h"

#include <algorithm>

#include "core/rank.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/binary.h"
#include "ops/engine/operand.h"
#include "ops/shape/region.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

using Part = IndexList::Part;

/// Null if the index is one integer, which is in IndexAttrs, for the first axis.
const IndexList* list_of(const Attrs& attrs) { return attrs.extra ? &attrs.extra->as<IndexList>() : nullptr; }

[[noreturn]] void fail_range(const char* op, std::int64_t i, int axis, const TensorSpec& x) {
  fail<ValueError>({op}, i, " is out of range for axis ", axis, " of a tensor of shape ", x);
}

}  // namespace

std::int64_t place_index(const char* op, std::int64_t i, int axis, const TensorSpec& x) {
  const std::int64_t n = x.dims[axis];
  if (n >= 0 && (i < -n || i >= n)) fail_range(op, i, axis, x);
  return i < 0 && n >= 0 ? i + n : i;
}

void fail_index_count(int given, const TensorSpec& x, const char* op) {
  fail<ValueError>({op}, given, given == 1 ? " index" : " indices", " for a tensor of shape ", x);
}

namespace {

void place_slice(const Part& p, std::int64_t n, Region& r, int axis) {
  const Run run = run_of(p, n);
  r.start[axis] = run.start;
  r.step[axis] = run.step;
  r.count[axis] = run.count;
}

void put(TensorSpec& out, std::int64_t n, const char* op, const TensorSpec& x) {
  int last = out.rank;
  out.rank = checked_rank(op, last + 1, x);
  out.dims[last] = n;
}

void place_int(const char* op, std::int64_t i, const TensorSpec& x, int axis, Region& r) {
  r.start[axis] = place_index(op, i, axis, x);
  r.step[axis] = 1;
  r.count[axis] = 1;
}

/// The region of x that the index takes, and the shape of the result. The rank of x is known; throws ValueError if the
/// index does not fit.
Region resolve(const char* op, const Attrs& attrs, const TensorSpec& x) {
  Region r;
  r.rank = x.rank;
  r.out.dtype = x.dtype;
  r.out.rank = 0;
  const IndexList* list = list_of(attrs);
  int axis = 0;
  if (!list) {
    if (x.rank == 0) fail<ValueError>({op}, "1 index for a scalar");
    place_int(op, attrs.as<IndexAttrs>().at, x, axis++, r);
  } else {
    int taken = 0;
    for (int k = 0; k < list->n; ++k)
      taken += list->parts[k].kind == IndexList::kInt || list->parts[k].kind == IndexList::kSlice;
    if (taken > x.rank) fail_index_count(taken, x, op);
    for (int k = 0; k < list->n; ++k) {
      const Part& p = list->parts[k];
      if (p.kind == IndexList::kNewAxis) {
        put(r.out, 1, op, x);
      } else if (p.kind == IndexList::kInt) {
        place_int(op, p.start, x, axis++, r);
      } else if (p.kind == IndexList::kSlice) {
        place_slice(p, x.dims[axis], r, axis);
        put(r.out, r.count[axis++], op, x);
      } else {
        for (int left = x.rank - taken; left > 0; --left) {
          place_slice(Part(), x.dims[axis], r, axis);
          put(r.out, r.count[axis++], op, x);
        }
      }
    }
  }
  for (; axis < x.rank; ++axis) {
    place_slice(Part(), x.dims[axis], r, axis);
    put(r.out, r.count[axis], op, x);
  }
  return r;
}

void index_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  if (x.rank < 0) {
    out->dtype = x.dtype;
    out->rank = -1;
    return;
  }
  if (list_of(call.attrs) || x.rank == 0) {
    out->set(resolve("index", call.attrs, x).out);
    return;
  }
  const std::int64_t at = call.attrs.as<IndexAttrs>().at;
  if (x.dims[0] >= 0 && (at < -x.dims[0] || at >= x.dims[0])) fail_range("index", at, 0, x);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(x.rank - 1);
  for (int i = 0; i < out->rank; ++i) out->dims[i] = x.dims[i + 1];
}
void index_kernel(const OpCall& call) {
  if (list_of(call.attrs)) {
    take(call, resolve("index", call.attrs, call.spec(0)));
    return;
  }
  TensorDesc& out = *call.out[0];
  Value v = read_value(*call.in[0].desc);
  std::int64_t i = call.attrs.as<IndexAttrs>().at;
  if (i < 0) i += call.in[0].dim(0);
  out.storage = std::move(v.storage);
  out.offset = v.offset + i * out.bytes();
}
void index_gradient(const VjpContext& ctx) { ctx.accumulate(0, index_grad_like_op, ctx.attrs, {ctx.dy(), ctx.in(0)}); }

void index_grad_kernel(const OpCall& call) { write_padded(call, resolve("index", call.attrs, *call.out[0])); }
/// OpDef::accumulate: adds input 0 to the elements of `sum` at the index, on the CPU, for floats and column slices.
bool index_grad_accumulate(const OpCall& call, TensorDesc& sum) {
  constexpr std::int64_t kGrain = 3 << 14;  // elements that are worth a thread
  ColumnSlice w;
  if (call.device != cpu || (sum.dtype != float32 && sum.dtype != float64) || !column_slice_of(call.attrs, sum, &w))
    return false;
  const ElementwiseFn add = binary_op<Add>().loops->find(sum.dtype)->by[0];
  const std::int64_t size = sum.dtype.size();
  const Attrs none;
  auto add_run = [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    std::byte* to = sum.data() + (row * w.whole + w.first + begin) * size;
    const void* in[] = {to, call.in[0].data + (row * w.width + begin) * size};
    add(in, to, end - begin, none);
  };
  if (w.rows == 1) {
    devices::parallel_for(w.width, kGrain, [&](std::int64_t begin, std::int64_t end) { add_run(0, begin, end); });
    return true;
  }
  devices::parallel_for(w.rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, w.width)),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t row = begin; row < end; ++row) add_run(row, 0, w.width);
                        });
  return true;
}
void index_grad_gradient(const VjpContext& ctx) { ctx.din(0) = apply1(index_op, ctx.attrs, {ctx.dy()}); }

}  // namespace

bool column_slice_of(const Attrs& attrs, const TensorSpec& x, ColumnSlice* slice) {
  if (!x.known() || x.rank == 0) return false;
  const Region r = resolve("index", attrs, x);
  int cut = -1;
  for (int i = 0; i < r.rank; ++i) {
    if (r.start[i] == 0 && r.step[i] == 1 && r.count[i] == x.dims[i]) continue;
    if (cut >= 0 || r.step[i] != 1) return false;
    cut = i;
  }
  ColumnSlice w;
  cut = std::max(cut, 0);
  for (int i = 0; i < r.rank; ++i) (i < cut ? w.rows : w.whole) *= x.dims[i];
  std::int64_t inner = x.dims[cut] ? w.whole / x.dims[cut] : 0;
  w.width = r.count[cut] * inner;
  w.first = r.start[cut] * inner;
  *slice = w;
  return true;
}

constinit const OpDef index_op{.name = "index",
                               .rule = index_rule,
                               .cpu = index_kernel,
                               .vjp = index_gradient,
                               .traits = kView,
                               .pattern = Pattern::slice,
                               .cuda = index_kernel};
/// The adjoint of indexing: zeros of the shape of input 1, with input 0 at the index.
constinit const OpDef index_grad_like_op{.name = "index_grad_like",
                                         .rule = padded_rule,
                                         .cpu = index_grad_kernel,
                                         .vjp = index_grad_gradient,
                                         .shape_only = 2,
                                         .accumulate = index_grad_accumulate,
                                         .pattern = Pattern::padded_slice,
                                         .cuda = index_grad_kernel};

void IndexList::push(const Part& part) {
  if (n == kParts) fail<ValueError>({"index"}, "more than ", kParts, " indices");
  if (part.kind == kEllipsis)
    for (int i = 0; i < n; ++i)
      if (parts[i].kind == kEllipsis) fail<ValueError>({"index"}, "more than one ellipsis");
  parts[n++] = part;
}

bool index_dims(const Attrs& attrs, const DimValues& from, DimValues& to) {
  Region r = resolve("index", attrs, TensorSpec(int64, {from.rank}));
  if (r.out.rank > 1) return false;
  to.rank = static_cast<int>(r.count[0]);
  to.unknown = 0;
  for (int i = 0; i < to.rank; ++i) {
    int at = static_cast<int>(r.start[0] + i * r.step[0]);
    to.at[i] = from.at[at];
    if (from.is_unknown(at)) to.unknown = static_cast<std::uint8_t>(to.unknown | 1u << i);
  }
  return true;
}

Tensor index(const Tensor& x, Ref<Extra> parts) { return apply1(index_op, Attrs(std::move(parts)), {x}); }

}  // namespace kassette::ops

// ops/index.cpp - NumPy's basic indexing, and embedding in zeros, its adjoint.
#include "ops/index.h"

#include <algorithm>

#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/binary.h"
#include "ops/operand.h"
#include "ops/shaping.h"
#include "ops/strided.h"

namespace kassette {
namespace {

using Part = IndexList::Part;

/// The row without an extra: the integer attrs.a on the first axis.
const IndexList* list_of(const Attrs& attrs) { return static_cast<const IndexList*>(attrs.extra.get()); }

/// An index expression on a shape: where each axis starts and how it steps, and the shape that comes out.
struct Region {
  int rank;                     // of x
  std::int64_t start[kMaxRank], step[kMaxRank], count[kMaxRank];   // count -1: unknown
  bool drop[kMaxRank];
  Spec out;
};

[[noreturn]] void fail_range(const char* op, std::int64_t i, int axis, const Spec& x) {
  fail<ValueError>(op, ": ", i, " is out of range for axis ", axis, " of a tensor of shape ", x);
}

/// The elements that a slice takes out of an axis of n, as Python does: bounds are clipped.
void place_slice(const Part& p, std::int64_t n, Region& r, int axis) {
  r.step[axis] = p.step;
  r.start[axis] = 0;
  r.count[axis] = kUnknown;
  if (n < 0) return;
  std::int64_t low = p.step < 0 ? -1 : 0, high = p.step < 0 ? n - 1 : n;
  auto place = [&](std::int64_t v) { return std::clamp(v < 0 ? v + n : v, low, high); };
  std::int64_t start = p.has_start ? place(p.start) : p.step < 0 ? high : low;
  std::int64_t stop = p.has_stop ? place(p.stop) : p.step < 0 ? low : high;
  std::int64_t span = p.step < 0 ? start - stop : stop - start;
  std::uint64_t stride = p.step < 0 ? 0 - static_cast<std::uint64_t>(p.step) : static_cast<std::uint64_t>(p.step);
  r.count[axis] = span <= 0 ? 0 : static_cast<std::int64_t>((static_cast<std::uint64_t>(span) - 1) / stride) + 1;
  r.start[axis] = r.count[axis] ? start : 0;
  if (r.count[axis] <= 1) r.step[axis] = 1;
}

void put(Spec& out, std::int64_t n, const char* op, const Spec& x) {
  if (out.rank == kMaxRank) fail<ValueError>(op, ": indexing a tensor of shape ", x, " gives more than ", kMaxRank, " axes");
  out.dims[out.rank++] = n;
}

void place_int(const char* op, std::int64_t i, const Spec& x, int axis, Region& r) {
  std::int64_t n = x.dims[axis];
  if (n >= 0 && (i < -n || i >= n)) fail_range(op, i, axis, x);
  r.start[axis] = i < 0 && n >= 0 ? i + n : i;
  r.step[axis] = 1;
  r.count[axis] = 1;
  r.drop[axis] = true;
}

/// `x` has a known rank.
Region resolve(const char* op, const Attrs& attrs, const Spec& x) {
  Region r;
  r.rank = x.rank;
  std::fill_n(r.drop, kMaxRank, false);
  r.out.dtype = x.dtype;
  r.out.rank = 0;
  const IndexList* list = list_of(attrs);
  int axis = 0;
  if (!list) {
    if (x.rank == 0) fail<ValueError>(op, ": 1 index for a scalar");
    place_int(op, attrs.a, x, axis++, r);
  } else {
    int taken = 0;
    for (int k = 0; k < list->n; ++k) taken += list->parts[k].kind == IndexList::kInt || list->parts[k].kind == IndexList::kSlice;
    if (taken > x.rank)
      fail<ValueError>(op, ": ", taken, taken == 1 ? " index" : " indices", " for a tensor of shape ", x);
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

/// The region of a tensor of shape x, in elements: its first one, and the strides of the axes that are longer than one.
Strided layout_of(const Region& r, const Spec& x, std::int64_t* first) {
  std::int64_t strides[kMaxRank], to = 1;
  row_strides(x, strides);
  Strided reversed, layout;
  *first = 0;
  for (int i = r.rank - 1; i >= 0; --i) {
    *first += r.start[i] * strides[i];
    reversed.push(r.count[i], strides[i] * r.step[i], to);
    to *= r.count[i];
  }
  for (int i = reversed.rank - 1; i >= 0; --i) layout.push(reversed.dims[i], reversed.from[i], reversed.to[i]);
  return layout;
}

/// True where the elements stand side by side in memory.
bool contiguous(const Strided& layout) {
  for (int i = 0; i < layout.rank; ++i)
    if (layout.dims[i] > 1 && layout.from[i] != layout.to[i]) return false;
  return true;
}

/// Copies the region out of input 0, or shares it where it stands in one piece.
void take(const Call& call, const Region& r) {
  const Spec& x = call.spec(0);
  Body& out = *call.out[0];
  std::int64_t first;
  Strided layout = layout_of(r, x, &first);
  int size = x.dtype.size();
  if (contiguous(layout)) {
    Value v = read_value(*call.in[0].body);
    out.storage = std::move(v.storage);
    out.offset = v.offset + (out.numel() ? first * size : 0);
    return;
  }
  allocate_output(out, call.device);
  copy_strided(call.device, layout, call.in[0].data + first * size, out.data(), size);
}

/// Input 0 into the region of zeros.
void embed(const Call& call, const Region& r) {
  Body& out = *call.out[0];
  std::int64_t first;
  Strided layout = layout_of(r, out, &first);
  for (int i = 0; i < layout.rank; ++i) std::swap(layout.from[i], layout.to[i]);
  int size = out.dtype.size();
  zero_bytes(call.device, out.data(), out.bytes());
  copy_strided(call.device, layout, call.in[0].data, out.data() + first * size, size);
}

// ---- x[...] ----------------------------------------------------------------------------------------------------------

void index_rule(const Call& call, Spec* out) {
  const Spec& x = call.spec(0);
  if (x.rank < 0) {
    out->dtype = x.dtype;
    out->rank = -1;
    return;
  }
  if (list_of(call.attrs) || x.rank == 0) {
    out->set(resolve("index", call.attrs, x).out);
    return;
  }
  if (x.dims[0] >= 0 && (call.attrs.a < -x.dims[0] || call.attrs.a >= x.dims[0])) fail_range("index", call.attrs.a, 0, x);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(x.rank - 1);
  for (int i = 0; i < out->rank; ++i) out->dims[i] = x.dims[i + 1];
}
void index_kernel(const Call& call) {
  if (list_of(call.attrs)) {
    take(call, resolve("index", call.attrs, call.spec(0)));
    return;
  }
  Body& out = *call.out[0];
  Value v = read_value(*call.in[0].body);
  std::int64_t i = call.attrs.a < 0 ? call.attrs.a + call.in[0].dim(0) : call.attrs.a;
  out.storage = std::move(v.storage);
  out.offset = v.offset + i * out.bytes();
}
void index_gradient(const Rewind& r) { r.din(0) = apply1(index_grad_like_row, r.attrs, {r.dy(), r.in(0)}); }

void like_rule(const Call& call, Spec* out) {
  out->set(call.spec(call.n_in - 1));
  out->dtype = call.spec(0).dtype;
}
void index_grad_kernel(const Call& call) { embed(call, resolve("index", call.attrs, *call.out[0])); }
void index_grad_gradient(const Rewind& r) { r.din(0) = apply1(index_row, r.attrs, {r.dy()}); }

// ---- slice(x, start, size) -------------------------------------------------------------------------------------------

[[noreturn]] void fail_bounds(const Spec& x, const DimValues& start, const DimValues& size, const char* why) {
  fail<ValueError>("slice: start ", start, " and size ", size, " of a tensor of shape ", x, ": ", why);
}

void slice_region(const Spec& x, const DimValues& start, const DimValues& size, Region& r) {
  for (int i = 0; i < r.rank; ++i) {
    std::int64_t n = x.rank < 0 ? kUnknown : x.dims[i];
    bool starts = start.rank >= 0 && !start.is_unknown(i), sizes = size.rank >= 0 && !size.is_unknown(i);
    std::int64_t s = starts ? start.at[i] : 0, z = sizes ? size.at[i] : kUnknown;
    if (starts && s < 0) fail_bounds(x, start, size, "a start is not negative");
    if (sizes && z < -1) fail_bounds(x, start, size, "a size is not negative, or -1 for the rest");
    if (sizes && z == -1 && starts && n >= 0) z = n - s;
    if (starts && n >= 0 && (s > n || (z >= 0 && z > n - s))) fail_bounds(x, start, size, "beyond the end");
    r.start[i] = s;
    r.step[i] = 1;
    r.count[i] = z;
    r.drop[i] = false;
  }
}

Region slice_of(const Call& call) {
  const Spec& x = call.spec(0);
  DimValues start = read_dims(call, 1), size = read_dims(call, 2);
  Region r;
  r.rank = x.rank >= 0 ? x.rank : start.rank >= 0 ? start.rank : size.rank;
  r.out.dtype = x.dtype;
  r.out.rank = static_cast<std::int8_t>(r.rank);
  if (r.rank < 0) return r;
  if ((start.rank >= 0 && start.rank != r.rank) || (size.rank >= 0 && size.rank != r.rank))
    fail_bounds(x, start, size, "they have an entry for each axis");
  slice_region(x, start, size, r);
  for (int i = 0; i < r.rank; ++i) r.out.dims[i] = r.count[i];
  return r;
}

void slice_rule(const Call& call, Spec* out) { out->set(slice_of(call).out); }
void slice_kernel(const Call& call) { take(call, slice_of(call)); }
void slice_gradient(const Rewind& r) { r.din(0) = apply1(slice_grad_like_row, {r.dy(), r.in(1), r.in(0)}); }

void slice_grad_kernel(const Call& call) {
  Region r;
  r.rank = call.spec(0).rank;
  DimValues start = read_dims(call, 1);
  for (int i = 0; i < r.rank; ++i) {
    r.start[i] = start.at[i];
    r.step[i] = 1;
    r.count[i] = call.spec(0).dims[i];
  }
  embed(call, r);
}
void slice_grad_gradient(const Rewind& r) { r.din(0) = apply1(slice_row, {r.dy(), r.in(1), shape_of(r.in(0), int64)}); }

// ---- pad -------------------------------------------------------------------------------------------------------------

struct Amounts : Extra, Pads {
  explicit Amounts(const Pads& pads) : Pads(pads) {}
  bool equals(const Extra& other) const override {
    auto* o = dynamic_cast<const Amounts*>(&other);
    return o && o->rank == rank && std::equal(before, before + rank, o->before) && std::equal(after, after + rank, o->after);
  }
};
const Amounts& amounts_of(const Attrs& attrs) { return static_cast<const Amounts&>(*attrs.extra); }

void pad_rule(const Call& call, Spec* out) {
  const Spec& x = call.spec(0);
  const Amounts& p = amounts_of(call.attrs);
  if (x.rank >= 0 && x.rank != p.rank)
    fail<ValueError>("pad: amounts for ", p.rank, p.rank == 1 ? " axis" : " axes", ", a tensor of shape ", x);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(p.rank);
  for (int i = 0; i < p.rank; ++i)
    out->dims[i] = x.rank < 0 || x.dims[i] < 0 ? kUnknown : x.dims[i] + p.before[i] + p.after[i];
}
void pad_kernel(const Call& call) {
  const Spec& x = call.spec(0);
  Region r;
  r.rank = x.rank;
  for (int i = 0; i < r.rank; ++i) {
    r.start[i] = amounts_of(call.attrs).before[i];
    r.step[i] = 1;
    r.count[i] = x.dims[i];
  }
  embed(call, r);
}
void pad_gradient(const Rewind& r) {
  const Amounts& p = amounts_of(r.attrs);
  auto list = Ref<IndexList>::adopt(new IndexList);
  for (int i = 0; i < p.rank; ++i)
    list->push({.kind = IndexList::kSlice, .has_start = true, .has_stop = p.after[i] > 0, .start = p.before[i], .stop = -p.after[i]});
  r.din(0) = index(r.dy(), Ref<Extra>(list.get()));
}

// ---- reverse ---------------------------------------------------------------------------------------------------------

/// attrs.a: the axes as given, a byte each; attrs.b: how many.
void reverse_rule(const Call& call, Spec* out) {
  const Spec& x = call.spec(0);
  out->set(x);
  if (x.rank < 0) return;
  std::uint32_t seen = 0;
  for (int k = 0; k < call.attrs.b; ++k) {
    int axis = place_axis("reverse", static_cast<std::int8_t>(call.attrs.a >> 8 * k), x);
    if (seen >> axis & 1) fail<ValueError>("reverse: axis ", axis, " of a tensor of shape ", x, " is listed twice");
    seen |= 1u << axis;
  }
}
void reverse_kernel(const Call& call) {
  const Spec& x = call.spec(0);
  if (x.numel() == 0) return;
  std::int64_t strides[kMaxRank], first = 0;
  row_strides(x, strides);
  Strided layout;
  for (int i = 0; i < x.rank; ++i) layout.push(x.dims[i], strides[i], strides[i]);
  for (int k = 0; k < call.attrs.b; ++k) {
    int axis = place_axis("reverse", static_cast<std::int8_t>(call.attrs.a >> 8 * k), x);
    first += (x.dims[axis] - 1) * strides[axis];
    layout.from[axis] = -strides[axis];
  }
  int size = x.dtype.size();
  copy_strided(call.device, layout, call.in[0].data + first * size, call.out[0]->data(), size);
}
void reverse_gradient(const Rewind& r) { r.din(0) = apply1(reverse_row, r.attrs, {r.dy()}); }

}  // namespace

bool window_of(const Attrs& attrs, const Spec& x, Window* window) {
  if (!x.known() || x.rank == 0) return false;
  const Region r = resolve("index", attrs, x);
  int cut = -1;
  for (int i = 0; i < r.rank; ++i) {
    if (r.start[i] == 0 && r.step[i] == 1 && r.count[i] == x.dims[i]) continue;
    if (cut >= 0 || r.step[i] != 1) return false;
    cut = i;
  }
  Window w;
  cut = std::max(cut, 0);
  for (int i = 0; i < r.rank; ++i) (i < cut ? w.rows : w.whole) *= x.dims[i];
  std::int64_t inner = x.dims[cut] ? w.whole / x.dims[cut] : 0;
  w.width = r.count[cut] * inner;
  w.first = r.start[cut] * inner;
  *window = w;
  return true;
}

namespace {

/// Adding zeros makes 0 of -0.
void put_part(const Embedded& e, DType dtype, std::byte* to) {
  constexpr std::int64_t kGrain = 1 << 14;   // elements that are worth a thread
  static constexpr double kZero = 0;         // of either width
  const Loop add = binary_row<Add>().loops->find(dtype)->by[2];   // the second operand is one
  const std::int64_t size = dtype.size();
  const Window& w = e.window;
  const Value v = read_value(Access::body(e.part));
  const auto* from = static_cast<const std::byte*>(v.storage->data) + v.offset;
  auto put = [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    const void* in[] = {from + (row * w.width + begin) * size, &kZero};
    add(in, to + (row * w.whole + w.first + begin) * size, end - begin, Attrs());
  };
  if (w.rows == 1) {
    parallel_for(w.width, kGrain, [&](std::int64_t begin, std::int64_t end) { put(0, begin, end); });
    return;
  }
  parallel_for(w.rows, std::max<std::int64_t>(1, kGrain / w.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) put(row, 0, w.width);
  });
}

}  // namespace

bool embeds(const Body& part) {
  return part.device == cpu && part.storage && !part.symbolic() && (part.dtype == float32 || part.dtype == float64);
}

Tensor embed_sum(const Spec& whole, const std::vector<Embedded>& parts) {
  Tensor sum = empty_tensor(whole);
  Body& out = Access::body(sum);
  std::int64_t covered = 0;
  for (const Embedded& e : parts) covered += e.window.width;
  if (covered != parts.front().window.whole) zero_bytes(out.data(), out.bytes());
  for (const Embedded& e : parts) put_part(e, out.dtype, out.data());
  return sum;
}

constinit const OpDef index_row{.name = "index", .rule = index_rule, .cpu = index_kernel, .vjp = index_gradient, .traits = kView, .cuda = index_kernel};
/// The adjoint of indexing: zeros with the shape of input 1, and input 0 where the index points.
constinit const OpDef index_grad_like_row{
    .name = "index_grad_like", .rule = like_rule, .cpu = index_grad_kernel, .vjp = index_grad_gradient, .shape_only = 2, .cuda = index_grad_kernel};
constinit const OpDef slice_row{
    .name = "slice", .rule = slice_rule, .cpu = slice_kernel, .vjp = slice_gradient, .saves_in = 2, .host = 6, .traits = kView, .cuda = slice_kernel};
constinit const OpDef slice_grad_like_row{.name = "slice_grad_like",
                                          .rule = like_rule,
                                          .cpu = slice_grad_kernel,
                                          .vjp = slice_grad_gradient,
                                          .saves_in = 2,
                                          .shape_only = 4,
                                          .host = 2,
                                          .cuda = slice_grad_kernel};
constinit const OpDef pad_row{.name = "pad", .rule = pad_rule, .cpu = pad_kernel, .vjp = pad_gradient, .cuda = pad_kernel};
constinit const OpDef reverse_row{
    .name = "reverse", .rule = reverse_rule, .cpu = reverse_kernel, .vjp = reverse_gradient, .cuda = reverse_kernel};

void IndexList::push(const Part& part) {
  if (n == kParts) fail<ValueError>("index: more than ", kParts, " indices");
  if (part.kind == kEllipsis)
    for (int i = 0; i < n; ++i)
      if (parts[i].kind == kEllipsis) fail<ValueError>("index: more than one ellipsis");
  parts[n++] = part;
}
bool IndexList::equals(const Extra& other) const {
  auto* o = dynamic_cast<const IndexList*>(&other);
  return o && o->n == n && std::equal(parts, parts + n, o->parts);
}

bool index_dims(const Attrs& attrs, const DimValues& from, DimValues& to) {
  Region r = resolve("index", attrs, Spec(int64, {from.rank}));
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

Tensor index(const Tensor& x, Ref<Extra> parts) {
  Attrs attrs;
  attrs.extra = std::move(parts);
  return apply1(index_row, attrs, {x});
}
Tensor slice_from(const Tensor& x, const Dims& start, const Dims& size) {
  return apply1(slice_row, {x, dims_tensor(start, "slice"), dims_tensor(size, "slice")});
}
Tensor pad(const Tensor& x, const Pads& amounts) {
  for (int i = 0; i < amounts.rank; ++i)
    if (amounts.before[i] < 0 || amounts.after[i] < 0) fail<ValueError>("pad: an amount is not negative; K::slice cuts");
  Attrs attrs;
  attrs.extra = Ref<Extra>::adopt(new Amounts(amounts));
  return apply1(pad_row, attrs, {x});
}
Tensor reverse(const Tensor& x, const Axes& axes) {
  if (axes.size_ < 0) fail<ValueError>("reverse: the axes are None; they are listed");
  Attrs attrs;
  attrs.b = axes.size_;
  for (int k = 0; k < axes.size_; ++k) {
    if (axes.axes_[k] < -kMaxRank || axes.axes_[k] >= kMaxRank) fail<ValueError>("reverse: axis ", axes.axes_[k], "; a tensor has at most ", kMaxRank, " axes");
    attrs.a |= static_cast<std::int64_t>(static_cast<std::uint8_t>(axes.axes_[k])) << 8 * k;
  }
  return apply1(reverse_row, attrs, {x});
}

}  // namespace kassette

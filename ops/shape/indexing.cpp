// ops/shape/indexing.cpp - Tensor::operator[] and operator(): an index list, gathers, and positions for several
// tensors.
#include <limits>

#include "core/convert.h"
#include "core/rank.h"
#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dispatch.h"
#include "ops/shape/expression.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

using Part = IndexList::Part;

bool keeps_axis(const Part& p) { return p.kind == IndexList::kSlice || p.kind == IndexList::kNewAxis; }

/// NumPy's place of the array's axes: in front, if integers and tensors are not side by side.
Tensor moved_to_front(const Tensor& y, const Expression& e, int ellipsis) {
  const Expression::Selector& array = e.tensors[e.array];
  const int rank = Access::desc(y).rank, more = array.mask() ? 1 : Access::desc(array.index).rank;
  if (more < 0 || rank < 0)
    fail<ValueError>({"index"}, "an integer and a tensor with other indices between them", kExpected,
                     "the ranks of both tensors must be known");
  const int first = array.part < ellipsis ? e.kept_axes(0, array.part)
                                          : rank - more - e.kept_axes(array.part + array.parts, e.list->n);
  Axes pattern(None);
  pattern.size_ = rank;
  int n = 0;
  for (int i = 0; i < more; ++i) pattern.axes_[n++] = first + i;
  for (int i = 0; i < rank; ++i)
    if (i < first || i >= first + more) pattern.axes_[n++] = i;
  return first == 0 ? y : permute(y, pattern);
}

/// y by one of the tensors, whose first axis in y is `axis`.
Tensor gather_by(const Tensor& y, const Expression::Selector& by, int axis) {
  if (by.mask()) {
    // A mask without axes selects along an axis of size 1.
    const Tensor at = Access::desc(by.index).rank ? nonzero_positions(by.index, y, axis) : nonzero_positions(by.index);
    return gather(y, at, axis, Wrap::refuse, by.parts - 1);
  }
  const DType dtype = Access::desc(by.index).dtype;
  return gather(y, dtype == int32 || dtype == int64 ? by.index : cast(by.index, int64), axis, Wrap::negative);
}

/// y by all tensors, of which at most one is not a scalar. The rank of y may be unknown.
Tensor gather_each(Tensor y, const Expression& e) {
  const IndexList& list = *e.list;
  const int ellipsis = e.ellipsis();
  // A gather removes its axes. Axes before the ellipsis are counted from the front and gathered last to first; those
  // after it are counted from the end and gathered first to last. So no gather renumbers an axis that is gathered
  // later.
  for (int k = e.n_tensors - 1; k >= 0; --k) {
    int axis = 0;
    if (e.tensors[k].part >= ellipsis) continue;
    for (int i = 0; i < e.tensors[k].part; ++i) axis += keeps_axis(list.parts[i]);
    y = gather_by(y, e.tensors[k], axis);
  }
  for (int k = 0; k < e.n_tensors; ++k) {
    int axis = 0;
    if (e.tensors[k].part < ellipsis) continue;
    for (int i = e.tensors[k].part; i < list.n; ++i) axis -= keeps_axis(list.parts[i]);
    y = gather_by(y, e.tensors[k], axis);
  }
  return e.array >= 0 && e.separated() ? moved_to_front(y, e, ellipsis) : y;
}

/// Whether positions in the axes of the list may be int32: see index_positions().
bool narrow(const Tensor& x, const PositionList& list) {
  const std::int64_t size = Access::desc(x).dims[list.first];
  return x.device() == cpu && list.n == 1 && size >= 0 && size <= std::numeric_limits<std::int32_t>::max();
}

/// Writes the index tensors as int64 or, one alone, as int32; masks as the positions of their elements in the axes that
/// they index.
void find_indices(const Tensor& x, const Expression& e, const PositionList& list, Tensor* found) {
  int axis = list.first;
  for (int k = 0; k < list.n; ++k) {
    const PositionList::Part& p = list.parts[k];
    if (p.tensor >= 0) {
      const Tensor& index = e.tensors[p.tensor].index;
      const bool mask = e.tensors[p.tensor].mask();
      if (!mask) found[p.tensor] = index.dtype() == int32 && narrow(x, list) ? index : cast(index, int64);
      else found[p.tensor] = p.axes ? nonzero_positions(index, x, axis) : nonzero_positions(index);
    }
    axis += p.tensor >= 0 ? p.axes : p.basic.kind != IndexList::kNewAxis;
  }
}

/// The expression with a part for each axis of x. Integers, slices and new axes are parts if `with_basic`, else x is
/// what they have made of the tensor.
Ref<PositionList> parts_of(const Expression& e, int x_rank, bool with_basic) {
  const IndexList& list = *e.list;
  auto made = Ref<PositionList>::adopt(new PositionList);
  const int ellipsis = e.ellipsis(), left = x_rank - e.axes_taken(0, list.n);
  int named = 0;
  const auto push = [&](const PositionList::Part& p) { made->parts[made->n++] = p; };
  const auto push_whole = [&](int n) {
    for (; n > 0; --n) push({{}, -1, 1, static_cast<std::int8_t>(named++)});
  };
  for (int k = 0; k < list.n; ++k) {
    const Part& p = list.parts[k];
    if (k == ellipsis) {
      push_whole(left);
    } else if (const int t = e.tensor_of(k); t >= 0) {
      // A mask without axes takes none of x; it takes the new axis of what the basic indices have made.
      const int taken = p.kind == IndexList::kNewAxis ? !with_basic : e.tensors[t].parts;
      push({p, static_cast<std::int8_t>(t), static_cast<std::int8_t>(taken), static_cast<std::int8_t>(named)});
      k += e.tensors[t].parts - 1;
      named += p.kind == IndexList::kNewAxis ? 0 : e.tensors[t].parts;
    } else {
      const bool takes = p.kind != IndexList::kNewAxis;
      if (with_basic) push({p, -1, 1, static_cast<std::int8_t>(named)});
      else if (keeps_axis(p)) push({{}, -1, 1, static_cast<std::int8_t>(named)});
      named += takes;
    }
  }
  if (ellipsis == list.n) push_whole(left);
  return made;
}

/// Leaves whole axes at both ends to the gather, which needs one axis: a mask without axes is none.
void trim(PositionList& list, int rank) {
  const auto is_whole = [](const PositionList::Part& p) { return p.tensor < 0 && p.basic.whole(); };
  int front = 0;
  while (!list.in_front && front + 1 < rank && front + 1 < list.n && is_whole(list.parts[front])) ++front;
  while (list.n > front + 1 && rank > front + 1 && is_whole(list.parts[list.n - 1])) {
    --list.n;
    --rank;
  }
  for (int k = front; k < list.n; ++k) list.parts[k - front] = list.parts[k];
  list.n -= front;
  list.first = front;
  list.axes = rank - front;
}

/// `y`: what is indexed, which is x itself if `with_basic`.
Placed place_parts(const Tensor& y, const Expression& e, int x_rank, bool with_basic) {
  Ref<PositionList> list = parts_of(e, x_rank, with_basic);
  list->in_front = e.arrays > 0 && e.separated();
  trim(*list, Access::desc(y).rank);
  Tensor indices[kMaxRank];
  find_indices(y, e, *list, indices);
  return {index_positions(y, indices, e.n_tensors, list), list->first, list->axes - 1};
}

void check_count(const Tensor& x, const Expression& e) {
  const TensorDesc& b = Access::desc(x);
  if (const int taken = e.axes_taken(0, e.list->n); b.rank >= 0 && taken > b.rank) fail_index_count(taken, b);
}

/// Throws unless all ranks are known, which the place of several tensors' axes depends on.
void check_ranks(const Tensor& x, const Expression& e) {
  bool known = Access::desc(x).rank >= 0;
  for (int k = 0; k < e.n_tensors; ++k) known = known && Access::desc(e.tensors[k].index).rank >= 0;
  if (!known) fail<ValueError>({"index"}, "a tensor of unknown rank", kExpected, "the rank of all must be known here");
  check_count(x, e);
}

}  // namespace

Placed place(const Tensor& x, const Expression& e) {
  check_ranks(x, e);
  return place_parts(x, e, Access::desc(x).rank, /*with_basic=*/true);
}

Tensor evaluate(const Tensor& x, const Expression& e) {
  if (!x.defined()) fail_empty({"index", "x"});
  bool whole = true;
  for (int k = 0; k < e.list->n; ++k)
    whole = whole && (e.list->parts[k].kind == IndexList::kEllipsis || e.list->parts[k].whole());
  const bool joint = e.arrays > 1;
  if (joint) check_ranks(x, e);
  else if (e.n_tensors) check_count(x, e);
  Tensor y = whole && e.n_tensors ? x : index(x, Ref<Extra>(e.list.get()));
  if (!joint) return gather_each(std::move(y), e);
  const Placed at = place_parts(y, e, Access::desc(x).rank, /*with_basic=*/false);
  return gather(y, at.positions, at.axis, Wrap::refuse, at.joined);
}

namespace {

std::int64_t bound(const Scalar& s) {
  Scalar::Kind kind = Access::kind(s);
  if (kind != Scalar::kInt && kind != Scalar::kUint)
    fail<TypeError>({"slice"}, "a bound is ", scalar_text(s), kExpected, "it must be an integer or None");
  return Access::int_value(s);
}

/// The indices of x[...], boxed as a list for an external backend.
struct Indices {
  const Index* const* list;
  int n;
};
external::Value box(const Indices& indices) {
  external::Value items[kMaxRank];
  int n = 0;
  for (int i = 0; i < indices.n; ++i)
    if (Access::kind(*indices.list[i]) != Index::kAbsent) items[n++] = ops::box(*indices.list[i]);
  return external::Value::list(items, n);
}
template <class F>
Tensor elsewhere(const Tensor& x, std::initializer_list<const Index*> list, F again) {
  return route("index", again, x, Indices{list.begin(), static_cast<int>(list.size())});
}

}  // namespace
}  // namespace kassette::ops

namespace kassette {
using namespace ops;

Index slice(Scalar start, Scalar stop, Scalar step) {
  std::int64_t by = step.is_none() ? 1 : bound(step);
  if (by == 0) fail<ValueError>({"slice", "step"}, "is 0", kExpected, "it must be another number");
  return Index(Index::kSlice, static_cast<std::uint8_t>((start.is_none() ? 0 : 1) | (stop.is_none() ? 0 : 2)),
               start.is_none() ? 0 : bound(start), stop.is_none() ? 0 : bound(stop), by);
}

Tensor Tensor::operator[](const Index& i) const {
  if (runs_externally()) return elsewhere(*this, {&i}, [&] { return (*this)[i]; });
  if (Access::kind(i) == Index::kInt) {
    return apply1(index_op, IndexAttrs{Access::start(i)}, {*this});
  }
  Expression e;
  e.add(i);
  return evaluate(*this, e);
}

Tensor Tensor::operator()(const Index& i0, const Index& i1, const Index& i2, const Index& i3, const Index& i4,
                          const Index& i5, const Index& i6, const Index& i7) const {
  if (runs_externally())
    return elsewhere(*this, {&i0, &i1, &i2, &i3, &i4, &i5, &i6, &i7},
                     [&] { return (*this)(i0, i1, i2, i3, i4, i5, i6, i7); });
  Expression e;
  for (const Index* i : {&i0, &i1, &i2, &i3, &i4, &i5, &i6, &i7}) e.add(*i);
  return evaluate(*this, e);
}

}  // namespace kassette

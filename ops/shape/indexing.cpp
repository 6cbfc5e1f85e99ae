// ops/shape/indexing.cpp - Tensor::operator[] and operator(): indices are turned into an index list and gathers.
#include <cstdlib>
#include <cstring>

#include "core/convert.h"
#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dispatch.h"
#include "ops/shape/index.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

using Part = IndexList::Part;

/// The parsed indices. A tensor among them is a whole slice in `list`, and a gather is applied to that axis afterwards.
struct Expression {
  Ref<IndexList> list = Ref<IndexList>::adopt(new IndexList);
  struct Gathered {
    const Tensor* index;
    int part;
  };
  Gathered tensors[kMaxRank];
  int n_tensors = 0;
  int array = -1;  // which of them is not a scalar, as far as is known
};

[[noreturn]] void fail_text(const char* all, const char* at) {
  fail<ValueError>({"index"}, "'", all, "' is not understood at '", at, "'", kExpected,
                   "it must be made of 1, 1:5, ::-1, ..., newaxis, with commas between");
}

class Parser {
 public:
  Parser(std::string text, IndexList& list) : whole_(std::move(text)), text_(whole_.c_str()), at_(text_), list_(list) {}
  void run() {
    check_text(Name(whole_));
    do {
      part();
      space();
    } while (accept(","));
    if (*at_) fail_text(text_, at_);
  }

 private:
  void part() {
    space();
    if (accept("...")) return list_.push({.kind = IndexList::kEllipsis});
    if (accept("newaxis") || accept("None")) return list_.push({.kind = IndexList::kNewAxis});
    Part p;
    p.has_start = number(p.start);
    if (!accept(":")) {
      if (!p.has_start) fail_text(text_, at_);
      p.kind = IndexList::kInt;
      p.has_start = false;
      return list_.push(p);
    }
    p.has_stop = number(p.stop);
    if (accept(":") && number(p.step) && p.step == 0)
      fail<ValueError>({"index"}, "'", text_, "': the step is 0", kExpected, "it must be another number");
    list_.push(p);
  }
  bool number(std::int64_t& value) {
    space();
    const char* digits = at_ + (*at_ == '-' || *at_ == '+');
    if (*digits < '0' || *digits > '9') return false;
    char* end;
    value = std::strtoll(at_, &end, 10);
    at_ = end;
    space();
    return true;
  }
  bool accept(const char* word) {
    std::size_t n = std::strlen(word);
    if (std::strncmp(at_, word, n)) return false;
    at_ += n;
    return true;
  }
  void space() {
    while (*at_ == ' ') ++at_;
  }
  std::string whole_;
  const char* text_;
  const char* at_;
  IndexList& list_;
};

void add_tensor(Expression& e, const Tensor& t) {
  if (!t.defined()) fail_empty({"index"});
  const TensorDesc& b = Access::desc(t);
  if (!b.dtype.is_integer())
    fail<TypeError>({"index"}, "a tensor of ", b.dtype, kExpected, "an index tensor must hold integers");
  if (b.rank != 0) {
    if (e.array >= 0)
      fail<ValueError>({"index"}, "two tensors that are not scalars", kExpected, "at most one index may have axes",
                       kRemedy, "index by one of them after the other");
    e.array = e.n_tensors;
  }
  if (e.n_tensors == kMaxRank) fail<ValueError>({"index"}, "more than ", kMaxRank, " tensors");
  e.tensors[e.n_tensors++] = {&t, e.list->n};
  e.list->push({});
}

void add(Expression& e, const Index& i) {
  Part p;
  switch (Access::kind(i)) {
    case Index::kAbsent: return;
    case Index::kInt:
      p.kind = IndexList::kInt;
      p.start = Access::start(i);
      break;
    case Index::kTensor: return add_tensor(e, *static_cast<const Tensor*>(Access::pointer(i)));
    case Index::kSlice:
      p.has_start = Access::has(i) & 1;
      p.has_stop = Access::has(i) & 2;
      p.start = Access::start(i);
      p.stop = Access::stop(i);
      p.step = Access::step(i);
      break;
    case Index::kEllipsis: p.kind = IndexList::kEllipsis; break;
    case Index::kNewAxis: p.kind = IndexList::kNewAxis; break;
    case Index::kText: return Parser(Access::text(i), *e.list).run();
  }
  e.list->push(p);
}

bool keeps_axis(const Part& p) { return p.kind == IndexList::kSlice || p.kind == IndexList::kNewAxis; }

bool is_tensor(const Expression& e, int part) {
  for (int k = 0; k < e.n_tensors; ++k)
    if (e.tensors[k].part == part) return true;
  return false;
}

/// How many of the parts [begin, end) have an axis in the result, besides those of the array.
int kept_axes(const Expression& e, int begin, int end) {
  int n = 0;
  for (int k = begin; k < end; ++k) n += keeps_axis(e.list->parts[k]) && !is_tensor(e, k);
  return n;
}

/// Whether something other than integers and tensors stands between two of these.
bool are_separated(const Expression& e) {
  int last = -1;
  for (int k = 0; k < e.list->n; ++k) {
    if (e.list->parts[k].kind != IndexList::kInt && !is_tensor(e, k)) continue;
    if (last >= 0 && last != k - 1) return true;
    last = k;
  }
  return false;
}

/// NumPy's place of the array's axes: in front, if integers and tensors are not side by side.
Tensor moved_to_front(const Tensor& y, const Expression& e, int ellipsis) {
  const int rank = Access::desc(y).rank, more = Access::desc(*e.tensors[e.array].index).rank;
  if (more < 0 || rank < 0)
    fail<ValueError>({"index"}, "an integer and a tensor with other indices between them", kExpected,
                     "the ranks of both tensors must be known");
  const int part = e.tensors[e.array].part;
  const int first = part < ellipsis ? kept_axes(e, 0, part) : rank - more - kept_axes(e, part + 1, e.list->n);
  Axes pattern(None);
  pattern.size_ = rank;
  int n = 0;
  for (int i = 0; i < more; ++i) pattern.axes_[n++] = first + i;
  for (int i = 0; i < rank; ++i)
    if (i < first || i >= first + more) pattern.axes_[n++] = i;
  return first == 0 ? y : permute(y, pattern);
}

/// gather() by a tensor of any integer dtype.
Tensor gather_any(const Tensor& y, const Tensor& places, int axis) {
  const DType dtype = Access::desc(places).dtype;
  return gather(y, dtype == int32 || dtype == int64 ? places : cast(places, int64), axis, Wrap::negative);
}

Tensor evaluate(const Tensor& x, const Expression& e) {
  const IndexList& list = *e.list;
  bool whole = true;
  int ellipsis = list.n;
  for (int k = 0; k < list.n; ++k) {
    if (list.parts[k].kind == IndexList::kEllipsis) ellipsis = k;
    else whole = whole && list.parts[k].whole();
  }
  Tensor y = whole && e.n_tensors ? x : index(x, Ref<Extra>(e.list.get()));
  // A gather removes its axis. Axes before the ellipsis are counted from the front and gathered last to first; those
  // after it are counted from the end and gathered first to last. So no gather renumbers an axis that is gathered
  // later.
  for (int k = e.n_tensors - 1; k >= 0; --k) {
    int axis = 0;
    if (e.tensors[k].part >= ellipsis) continue;
    for (int i = 0; i < e.tensors[k].part; ++i) axis += keeps_axis(list.parts[i]);
    y = gather_any(y, *e.tensors[k].index, axis);
  }
  for (int k = 0; k < e.n_tensors; ++k) {
    int axis = -1;
    if (e.tensors[k].part < ellipsis) continue;
    for (int i = e.tensors[k].part + 1; i < list.n; ++i) axis -= keeps_axis(list.parts[i]);
    y = gather_any(y, *e.tensors[k].index, axis);
  }
  return e.array >= 0 && are_separated(e) ? moved_to_front(y, e, ellipsis) : y;
}

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
  add(e, i);
  return evaluate(*this, e);
}

Tensor Tensor::operator()(const Index& i0, const Index& i1, const Index& i2, const Index& i3, const Index& i4,
                          const Index& i5, const Index& i6, const Index& i7) const {
  if (runs_externally())
    return elsewhere(*this, {&i0, &i1, &i2, &i3, &i4, &i5, &i6, &i7},
                     [&] { return (*this)(i0, i1, i2, i3, i4, i5, i6, i7); });
  Expression e;
  for (const Index* i : {&i0, &i1, &i2, &i3, &i4, &i5, &i6, &i7}) add(e, *i);
  return evaluate(*this, e);
}

}  // namespace kassette

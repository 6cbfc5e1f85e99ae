// ops/engine/axes.cpp - sets of axes: checks, shapes without them, coalescing.
#include "ops/engine/axes.h"

#include <cstring>

#include "core/rank.h"

namespace kassette::ops {
namespace {

[[noreturn]] __attribute__((noinline, cold)) void fail_twice(const At& at, int axis, const TensorSpec& x) {
  const bool listed = std::strcmp(at.argument, "axis") != 0;
  fail<ValueError>(at, listed ? "hold " : "", axis, listed ? " twice" : " is given twice", " for ", x);
}

/// For axes of a tensor that may be empty.
[[noreturn]] __attribute__((noinline, cold)) void refuse_axis(const At& at, int axis, const Tensor& x) {
  const TensorSpec spec = x.defined() ? Access::desc(x) : TensorSpec();
  if (from_front(axis, kMaxRank) < 0) fail_axis(at.function, axis, spec, /*added=*/0, at.argument);
  fail_twice(at, axis, spec);
}

}  // namespace

AxisSet listed_axes(const At& at, const Tensor& x, const Axes& axes, bool keepdims) {
  check_length(at, axes);
  unsigned front = 0, back = 0;
  for (int i = 0; i < axes.size_; ++i) {
    int axis = axes.axes_[i];
    if (from_front(axis, kMaxRank) < 0) refuse_axis(at, axis, x);
    const unsigned bit = 1u << (axis < 0 ? -1 - axis : axis);
    if ((axis < 0 ? back : front) & bit) refuse_axis(at, axis, x);
    (axis < 0 ? back : front) |= bit;
  }
  return {static_cast<std::uint8_t>(front), static_cast<std::uint8_t>(back), /*all=*/false, keepdims};
}

AxisSet checked_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims) {
  AxisSet set = axis_set(what, x, axes, keepdims);
  if (x.defined() && Access::desc(x).rank >= 0) axes_mask(what, set, Access::desc(x));
  return set;
}

unsigned axes_mask(const char* what, AxisSet axes, const TensorSpec& x, const char* name) {
  const unsigned beyond = ~0u << x.rank;
  if (axes.front & beyond) fail_axis(what, 31 - __builtin_clz(axes.front & beyond), x, /*added=*/0, name);
  if (axes.back & beyond) fail_axis(what, -1 - __builtin_ctz(axes.back & beyond), x, /*added=*/0, name);
  if (axes.front && axes.back) {
    const unsigned twice = axes.front & AxisSet{.back = axes.back}.mask(x.rank);
    if (twice) fail_twice({what, name}, 31 - __builtin_clz(twice) - x.rank, x);
  }
  return axes.mask(x.rank);
}

void reduced_spec(const char* what, AxisSet axes, const TensorSpec& x, TensorSpec* out, const char* name) {
  out->dtype = x.dtype;
  if (axes.all && !axes.keepdims) {
    out->rank = 0;
    return;
  }
  out->rank = x.rank;
  if (x.rank < 0) return;
  unsigned mask = axes_mask(what, axes, x, name);
  int k = 0;
  for (int i = 0; i < x.rank; ++i) {
    bool marked = mask >> i & 1;
    if (!marked) out->dims[k++] = x.dims[i];
    else if (axes.keepdims) out->dims[k++] = 1;
  }
  out->rank = static_cast<std::int8_t>(k);
}

CoalescedAxes::CoalescedAxes(const TensorSpec& x, unsigned mask) {
  for (int i = 0; i < x.rank; ++i) push(x.dims[i], mask >> i & 1);
}
void CoalescedAxes::push(std::int64_t run, bool mark) {
  if (run == 1) return;
  if (n > 0 && marked[n - 1] == mark) {
    size[n - 1] *= run;
    return;
  }
  size[n] = run;
  marked[n++] = mark;
}
std::int64_t CoalescedAxes::product(int from, int to) const {
  std::int64_t p = 1;
  for (int i = from; i < to; ++i) p *= size[i];
  return p;
}
std::int64_t CoalescedAxes::marked_product() const {
  std::int64_t p = 1;
  for (int i = 0; i < n; ++i)
    if (marked[i]) p *= size[i];
  return p;
}

}  // namespace kassette::ops

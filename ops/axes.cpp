// ops/axes.cpp - axes of reductions: encoding, checks, coalescing.
#include "ops/axes.h"

#include <cstring>

#include "core/rank.h"

namespace kassette::ops {
namespace {

[[noreturn]] __attribute__((noinline, cold)) void fail_twice(const At& at, int axis, const TensorSpec& x) {
  const bool listed = std::strcmp(at.argument, "axis") != 0;
  fail<ValueError>(at, listed ? "hold " : "", axis, listed ? " twice" : " is given twice", " for ", x);
}

}  // namespace

std::int64_t encode_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims, const char* name) {
  std::int64_t code = keepdims ? kKeepDims : 0;
  if (axes.size_ < 0) return code | kAllAxes;
  check_length({what, name}, axes);
  for (int i = 0; i < axes.size_; ++i) {
    int axis = axes.axes_[i];
    if (from_front(axis, kMaxRank) < 0)
      fail_axis(what, axis, x.defined() ? Access::body(x) : TensorSpec(), /*added=*/0, name);
    std::int64_t bit = std::int64_t(1) << (axis >= 0 ? axis : 7 - axis);
    if (code & bit) fail_twice({what, name}, axis, x.defined() ? Access::body(x) : TensorSpec());
    code |= bit;
  }
  return code;
}

std::int64_t encode_axis(const char* what, const Tensor& x, int axis) {
  return encode_axes(what, x, axis, /*keepdims=*/true);
}

std::int64_t checked_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims) {
  std::int64_t code = encode_axes(what, x, axes, keepdims);
  if (x.defined() && Access::body(x).rank >= 0) axes_mask(what, code, Access::body(x));
  return code;
}

unsigned axes_mask(const char* what, std::int64_t code, const TensorSpec& x, const char* name) {
  unsigned whole = (1u << x.rank) - 1;
  if (code & kAllAxes) return whole;
  unsigned mask = static_cast<unsigned>(code & 0xff);
  if (mask & ~whole) fail_axis(what, 31 - __builtin_clz(mask & ~whole), x, /*added=*/0, name);
  for (unsigned negative = static_cast<unsigned>(code >> 8 & 0xff); negative; negative &= negative - 1) {
    int axis = -1 - __builtin_ctz(negative);
    unsigned bit = 1u << place_axis(what, axis, x, /*added=*/0, name);
    if (mask & bit) fail_twice({what, name}, axis, x);
    mask |= bit;
  }
  return mask;
}

void reduced_spec(const char* what, std::int64_t code, const TensorSpec& x, TensorSpec* out, const char* name) {
  out->dtype = x.dtype;
  bool keep = code & kKeepDims;
  if (code & kAllAxes && !keep) {
    out->rank = 0;
    return;
  }
  out->rank = x.rank;
  if (x.rank < 0) return;
  unsigned mask = axes_mask(what, code, x, name);
  int k = 0;
  for (int i = 0; i < x.rank; ++i) {
    bool marked = mask >> i & 1;
    if (!marked) out->dims[k++] = x.dims[i];
    else if (keep) out->dims[k++] = 1;
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

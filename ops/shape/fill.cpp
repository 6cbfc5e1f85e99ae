// ops/shape/fill.cpp - tensors made from numbers: ranges, identity matrices, constants.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/convert.h"
#include "core/text.h"
#include "core/whole.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/like.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

template <class T>
T number(const InputView& a) {
  T v;
  convert(&v, kassette::dtype_of(static_cast<const T*>(nullptr)), a.data, a.desc->dtype, 1);
  return v;
}

bool in_floats(const OpCall& call) {
  for (int i = 0; i < 3; ++i)
    if (call.spec(i).dtype.is_float()) return true;
  return false;
}

[[noreturn]] void fail_long(double n) { fail<ValueError>({"arange"}, n, " elements are too many to address"); }

/// By how much a number of that dtype may differ from the one that was meant, relative to it: half a place.
double rounding_of(DType dtype) {
  return dtype == float64    ? 0x1p-53
         : dtype == float32  ? 0x1p-24
         : dtype == float16  ? 0x1p-11
         : dtype == bfloat16 ? 0x1p-8
                             : 0;
}

/// How many numbers start, start + step, ... are before stop. If stop is one of them but for the rounding of the three
/// numbers, as with 1, 1.6 and 0.1, whose quotient is 6.000000000000001, it is not among the results.
std::int64_t count_floats(const OpCall& call) {
  const double start = number<double>(call.in[0]), stop = number<double>(call.in[1]), step = number<double>(call.in[2]);
  if (!std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    fail<ValueError>({"arange"}, "from ", start, " to ", stop, " by ", step, kExpected, "the numbers must be finite");
  const double steps = (stop - start) / step, whole = std::nearbyint(steps);
  auto rounding = [&](int i) { return rounding_of(call.spec(i).dtype); };
  const double off = (std::fabs(start) * rounding(0) + std::fabs(stop) * rounding(1)) / std::fabs(step) +
                     std::fabs(steps) * (rounding(2) + 2 * rounding_of(float64));
  constexpr double kMost = 0.125;  // beyond it, steps are as small as the rounding of start and stop
  const double n = std::fabs(steps - whole) <= std::min(off, kMost) ? whole : std::ceil(steps);
  if (n > 0x1p56) fail_long(n);
  return n > 0 ? static_cast<std::int64_t>(n) : 0;
}
Whole whole(const InputView& a) {
  return a.desc->dtype == uint64 ? Whole(number<std::uint64_t>(a)) : Whole(number<std::int64_t>(a));
}
std::int64_t count_integers(Whole start, Whole stop, Whole step) {
  Whole span = stop - start, by = step;
  if ((span > 0) != (by > 0) || span == 0) return 0;
  if (by < 0) {
    span = -span;
    by = -by;
  }
  const Whole n = (span + by - 1) / by;
  if (n > (Whole(1) << 56)) fail_long(static_cast<double>(n));
  return static_cast<std::int64_t>(n);
}

/// Whether fill_range() computes v: floats are made from int64.
bool fits(Whole v, DType dtype) {
  return dispatch(dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    using L = std::numeric_limits<std::conditional_t<std::is_integral_v<T>, T, std::int64_t>>;
    return v >= L::min() && v <= L::max();
  });
}

constexpr const char* kRangeNames[] = {"start", "stop", "step"};

void arange_rule(const OpCall& call, TensorSpec* out) {
  out->dtype = call.op.placement(call.attrs).dtype;
  if (out->dtype.is_bool()) fail<TypeError>({"arange", "dtype"}, "is bool", kExpected, "it must be a number");
  out->rank = 1;
  out->dims[0] = kUnknown;
  for (int i = 0; i < 3; ++i)
    if (call.spec(i).rank > 0)
      fail<ValueError>({"arange", kRangeNames[i]}, "has shape ", call.spec(i), kExpected, "it must be a scalar");
  if (call.in[2].data && number<double>(call.in[2]) == 0)
    fail<ValueError>({"arange", "step"}, "is 0", kExpected, "it must be another number");
  for (int i = 0; i < 3; ++i)
    if (!call.in[i].data) return;
  if (in_floats(call)) {
    out->dims[0] = count_floats(call);
    return;
  }
  const Whole start = whole(call.in[0]), step = whole(call.in[2]);
  out->dims[0] = count_integers(start, whole(call.in[1]), step);
  if (out->dims[0] == 0) return;
  for (Whole v : {start, start + (out->dims[0] - 1) * step})
    if (!fits(v, out->dtype))
      fail<ValueError>({"arange", "dtype"}, "is ", out->dtype, ", which ", whole_text(v), " does not fit", kRemedy,
                       "ask for ", fits(v, int64) ? int64 : uint64);
}

template <class From>
void fill_range(const OpCall& call) {
  From start = number<From>(call.in[0]), step = number<From>(call.in[2]);
  dispatch(call.out[0]->dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    T* to = call.out_as<T>();
    devices::parallel_for(call.out[0]->numel(), 2 * kShortGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = convert_one<T>(static_cast<From>(start + static_cast<From>(i) * step));
    });
  });
}
void arange_kernel(const OpCall& call) {
  if (in_floats(call)) fill_range<double>(call);
  else if (call.out[0]->dtype == uint64) fill_range<std::uint64_t>(call);
  else fill_range<std::int64_t>(call);
}

struct FillAttrs {
  static constexpr const char* attrs_name = "fill";
  Placement placement;
};

void eye_rule(const OpCall& call, TensorSpec* out) {
  dims_from(call, 0, out, "size");
  out->dtype = call.op.placement(call.attrs).dtype;
  if (differ(out->rank, 2))
    fail<ValueError>({"eye", "size"}, "holds ", int(out->rank), " sizes", kExpected, "there must be one or two");
}
void eye_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  zero_bytes(out.data(), out.bytes());
  dispatch(out.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::int64_t i = 0; i < out.dims[0] && i < out.dims[1]; ++i)
      call.out_as<T>()[i * out.dims[1] + i] = convert_one<T>(1);
  });
}

}  // namespace

/// Inputs: start, stop, step.
constinit const OpDef arange_op{.name = "arange",
                                .rule = arange_rule,
                                .cpu = arange_kernel,
                                .host = 7,
                                .placement = placement_in<FillAttrs>,
                                .inputs = "start stop step"};
/// Input: the shape.
constinit const OpDef eye_op{
    .name = "eye", .rule = eye_rule, .cpu = eye_kernel, .host = 1, .placement = placement_in<FillAttrs>};

Tensor arange(const Tensor& start, const Tensor& stop, const Tensor& step, DType dtype) {
  return apply1(arange_op, FillAttrs{{dtype, context().default_device}}, {start, stop, step});
}
Tensor eye(const Dims& shape, DType dtype) {
  return apply1(eye_op, FillAttrs{{dtype, context().default_device}}, {dims_tensor(shape, "eye", "size")});
}
Tensor filled_tensor(const Tensor& value, const TensorSpec& shape, Device device, const char* what) {
  Tensor t = empty_tensor(shape, what, device);
  if (device != cpu) {
    fill_elements(device, Access::desc(t).data(), shape.numel(), Access::desc(value).data(), shape.dtype.size());
    return t;
  }
  Strided layout;
  layout.push(shape.numel(), 0, 1);
  copy_strided(layout, Access::desc(value).data(), Access::desc(t).data(), shape.dtype.size());
  return t;
}
constexpr std::int64_t kFilledTogether = 4096;  // bytes
Tensor filled_with(int value, const TensorSpec& shape, Device device, const char* what) {
  if (device != cpu) return filled_tensor(scalar_tensor(Scalar(value), shape.dtype, what), shape, device, what);
  Tensor t = empty_tensor(shape, what);
  TensorDesc& b = Access::desc(t);
  std::int64_t n = b.numel();
  if (value == 0) {
    zero_bytes(b.data(), n * b.dtype.size());
  } else if (n > 0) {
    write_scalar(b.data(), b.dtype, value, what);
    // Write the number once, then double the filled part by copying it, up to a size that a first-level cache holds.
    std::int64_t filled = b.dtype.size(), bytes = n * filled;
    for (std::int64_t more; filled < std::min(bytes, kFilledTogether); filled += more)
      std::memcpy(b.data() + filled, b.data(), static_cast<std::size_t>(more = std::min(filled, bytes - filled)));
    Strided rest;
    rest.push((bytes - filled) / b.dtype.size(), 0, 1);
    if (filled < bytes) copy_strided(rest, b.data(), b.data() + filled, b.dtype.size());
  }
  return t;
}
Tensor number_like(double value, const Tensor& like) {
  Tensor t = scalar_tensor(Scalar(value), like.dtype());
  return like.device() == cpu ? t : t.to(like.device());
}
Tensor zeros_of(const Tensor& like) { return broadcast_like(number_like(0, like), like); }

}  // namespace kassette::ops

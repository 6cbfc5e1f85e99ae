// core/convert.cpp - conversion between dtypes on the host.
#include "core/convert.h"

#include <cstring>
#include <utility>

#include "core/text.h"

namespace kassette {
namespace {

[[noreturn]] void fail_fit(const At& where, const Scalar& s, DType dtype) {
  fail<ValueError>(where, scalar_text(s), " does not fit ", dtype);
}

template <class T>
T integer_from(const Scalar& s, DType dtype, const At& where) {
  if (Access::kind(s) == Scalar::kFloat) {
    double v = Access::float_value(s);
    if (v != std::floor(v) || std::isinf(v))  // NaN too
      fail<TypeError>(where, v, " is not an integer, and ", dtype, " is wanted", kRemedy, "convert it with K::cast");
    constexpr double above = std::is_signed_v<T> ? 0x1p63 : 0x1p64;  // the largest integer may be rounded to it
    if (convert_one<T>(v) != v || v >= above) fail_fit(where, s, dtype);
    return static_cast<T>(v);
  }
  const std::int64_t v = Access::int_value(s);
  const bool fits =
      Access::kind(s) == Scalar::kUint ? std::in_range<T>(static_cast<std::uint64_t>(v)) : std::in_range<T>(v);
  if (!fits) fail_fit(where, s, dtype);
  return static_cast<T>(v);
}

}  // namespace

void convert(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t n) {
  if (n == 0) return;
  if (to_dtype == from_dtype) {
    std::memcpy(to, from, static_cast<std::size_t>(n * to_dtype.size()));
    return;
  }
  dispatch(to_dtype, [&](auto* t) {
    dispatch(from_dtype, [&](auto* f) {
      using To = std::remove_pointer_t<decltype(t)>;
      using From = std::remove_pointer_t<decltype(f)>;
      auto* out = static_cast<To*>(to);
      auto* in = static_cast<const From*>(from);
      for (std::int64_t i = 0; i < n; ++i) out[i] = convert_one<To>(in[i]);
    });
  });
}

double rounded_to(double v, DType dtype) {
  std::byte held[8];
  convert(held, dtype, &v, float64, 1);
  convert(&v, float64, held, dtype, 1);
  return v;
}

namespace {

/// Copies element by element; elements need not be aligned.
void pack(const TensorSpec& spec, const std::int64_t* strides, int axis, const std::byte* from, std::byte*& to) {
  const int size = spec.dtype.size();
  if (axis == spec.rank) {
    std::memcpy(to, from, static_cast<std::size_t>(size));
    to += size;
    return;
  }
  for (std::int64_t i = 0; i < spec.dims[axis]; ++i) pack(spec, strides, axis + 1, from + i * strides[axis] * size, to);
}

}  // namespace

void copy_strided(std::byte* to, const TensorSpec& spec, const std::byte* from, const std::int64_t* strides) {
  std::byte *end = to, *begin = to;
  if (spec.numel() == 0) return;
  if (strides) {
    pack(spec, strides, 0, from, end);
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(spec.bytes()));
    end += spec.bytes();
  }
  if (spec.dtype.is_bool())
    for (std::byte* p = begin; p < end; ++p) *p = *p == std::byte(0) ? std::byte(0) : std::byte(1);
}

bool holds_bools(const std::byte* p, std::int64_t n) {
  unsigned bits = 0;
  for (std::int64_t i = 0; i < n; ++i) bits |= static_cast<unsigned>(p[i]);
  return bits <= 1;
}

std::string scalar_text(const Scalar& s) {
  switch (Access::kind(s)) {
    case Scalar::kNone: return "None";
    case Scalar::kBool: return Access::int_value(s) ? "true" : "false";
    case Scalar::kInt: return text(Access::int_value(s));
    case Scalar::kUint: return text(static_cast<std::uint64_t>(Access::int_value(s)));
    case Scalar::kFloat: return text(Access::float_value(s));
    case Scalar::kTensor: return "a tensor";
    case Scalar::kList: return "a list";
    default: return "an array";
  }
}

void write_scalar(void* to, DType dtype, const Scalar& s, const At& where) {
  Scalar::Kind kind = Access::kind(s);
  if (kind > Scalar::kFloat || kind == Scalar::kNone)
    fail<TypeError>(where, *where.argument ? "is " : "", scalar_text(s), kExpected, "it must be a number",
                    kind == Scalar::kNone ? " or a tensor" : "");
  dispatch(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    T v;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) v = integer_from<T>(s, dtype, where);
    else if (kind == Scalar::kFloat) v = convert_one<T>(Access::float_value(s));
    else if (kind == Scalar::kUint) v = convert_one<T>(static_cast<std::uint64_t>(Access::int_value(s)));
    else v = convert_one<T>(Access::int_value(s));
    std::memcpy(to, &v, sizeof v);
  });
}

double number_as(DType dtype, const Scalar& s, const At& where) {
  std::byte held[8];
  double v;
  write_scalar(held, dtype, s, where);
  convert(&v, float64, held, dtype, 1);
  return v;
}

}  // namespace kassette

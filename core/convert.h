// core/convert.h - converting host elements between dtypes, and host numbers into them.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "core/impl.h"
#include "core/text.h"

namespace kassette {

/// The value of a concrete tensor. Throws ValueError for a symbolic one; `what` is the function that the message names.
Value concrete_value(const TensorDesc& b, const char* what);

/// Converts one element. Float to int truncates towards zero and saturates, and NaN becomes 0; to bool: anything but 0
/// is true, NaN too; int to int wraps. To a float type it rounds once, to nearest even.
template <class To, class From>
inline To convert_one(From v) {
  if constexpr (std::is_same_v<From, To>) return v;
  else if constexpr (kIsHalf<From>) return convert_one<To>(to_float(v));
  else if constexpr (std::is_same_v<To, bool>) return v != From(0);
  else if constexpr (std::is_same_v<To, Half>) return to_half(v);
  else if constexpr (std::is_same_v<To, BFloat16>) return to_bfloat16(v);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // 2^n and -2^n are exact in every float type; the largest integer may not be.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
    if (!(v > low)) return std::isnan(v) ? To(0) : std::numeric_limits<To>::min();
    return v >= above ? std::numeric_limits<To>::max() : static_cast<To>(v);
  } else return static_cast<To>(v);
}

/// Converts n elements at `from` into `to`, which do not overlap.
void convert(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t n);

/// The element of a dtype that is nearest to a number.
double rounded_to(double v, DType dtype);

/// Copies a tensor of shape and dtype `spec` from strided memory into row-major order. `strides` are in elements; null
/// means row-major. `from` need not be aligned. A bool is true unless its byte is 0.
void copy_strided(std::byte* to, const TensorSpec& spec, const std::byte* from, const std::int64_t* strides);
/// Whether n bytes are all 0 or 1: reading any other byte as a bool is undefined behaviour.
bool holds_bools(const std::byte* p, std::int64_t n);

/// The text of an operand in messages: a number as it is, "1.5", else its kind, "None" or "a list".
std::string scalar_text(const Scalar& s);
/// Writes a host number as one element at `to`. Throws TypeError for None and for a fraction into an integer dtype,
/// ValueError if the number does not fit.
void write_scalar(void* to, DType dtype, const Scalar& s, const At& where);
/// The value that write_scalar() writes.
double number_as(DType dtype, const Scalar& s, const At& where);

/// Calls f with a null pointer of the dtype's C++ type: dispatch(dtype, [&](auto* p) { using T = ...; }).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
#define KASSETTE_CASE(constant, code, type, name) \
  case DType::code: return f(static_cast<type*>(nullptr));
  switch (dtype.code()) {
    KASSETTE_DTYPES(KASSETTE_CASE)
    default: return f(static_cast<float*>(nullptr));
  }
#undef KASSETTE_CASE
}

inline constexpr int kFirstInteger = DType::kBool + 1;  // of the codes, which begin at bool

/// All dtypes, for loops over them.
#define KASSETTE_CONSTANT(constant, code, type, name) constant,
inline constexpr DType kAllDTypes[] = {KASSETTE_DTYPES(KASSETTE_CONSTANT)};
#undef KASSETTE_CONSTANT

}  // namespace kassette

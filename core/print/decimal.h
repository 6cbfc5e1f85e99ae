// core/print/decimal.h - floats as decimal digits, as NumPy writes them.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include <kassette/dtype.h>

namespace kassette {

/// The text of an integer; that of an unsigned dtype is given modulo 2^64.
inline std::string integer_text(std::int64_t v, DType dtype) {
  return dtype.is_unsigned() ? std::to_string(static_cast<std::uint64_t>(v)) : std::to_string(v);
}

/// The fewest decimal digits that parse to the same value of a dtype: d.ddd x 10^exponent.
struct Decimal {
  char digits[24];
  int count;
  int exponent;
};
/// `value` is finite, not negative, and representable in that float dtype.
Decimal shortest_decimal(double value, DType dtype);

/// `v` is the float64 nearest to the decimal number `s`. Returns a float64 from which rounding to `dtype`, a half type,
/// gives the element nearest to `s`: v, or its neighbour on the side of s if v lies half way between two elements.
double before_half(double v, std::string_view s, DType dtype);

/// std::numeric_limits<T>::digits10 of a dtype. Numbers with more digits before the point are printed in scientific
/// form.
constexpr int sure_digits(DType dtype) {
  return dtype == float64 ? 15 : dtype == float32 ? 6 : dtype == float16 ? 3 : 2;
}

/// `value` with as few digits as identify it, at most `precision` of them after the point: "0.5", "2.", "-0.3333".
std::string positional_text(double value, DType dtype, int precision);
/// How scientific_text writes "1.5e-07": at most `precision` digits after the point, with `exact_digits` exactly so
/// many, and at least `exponent_digits` in the exponent.
struct Scientific {
  int precision;
  bool exact_digits = false;
  int exponent_digits = 2;
};
std::string scientific_text(double value, DType dtype, const Scientific& form);
/// Note [Text without a locale]: as printf writes it with "%.{digits}g" and "%.{digits}f" in the C locale.
inline std::string general_text(double value, int digits, std::chars_format form = std::chars_format::general) {
  char text[400];
  return std::string(text, std::to_chars(text, text + sizeof text, value, form, digits).ptr);
}
inline std::string fixed_text(double value, int digits) {
  return general_text(value, digits, std::chars_format::fixed);
}
/// A number by itself, as str() of a NumPy scalar: "0.1", "2.0", "1e-05".
std::string scalar_text(double value, DType dtype);

}  // namespace kassette

// core/decimal.h - floats as decimal digits, as NumPy writes them.
#pragma once
#include <cstdint>
#include <string>

#include <kassette/dtype.h>

namespace kassette {

/// The fewest digits that read back as the same value of a dtype: d.ddd x 10^exponent.
struct Decimal {
  char digits[24];
  int count;
  int exponent;
};
/// `value` is finite, not negative and a value of that float dtype.
Decimal shortest_decimal(double value, DType dtype);

/// The decimal digits that a dtype is sure to hold: numbers of more digits before the point print in scientific form.
constexpr int sure_digits(DType dtype) {
  return dtype == float64 ? 15 : dtype == float32 ? 6 : dtype == float16 ? 3 : 2;
}

/// value with at most `precision` digits after the point, as few as tell it apart: "0.5", "2.", "-0.3333".
std::string positional_text(double value, DType dtype, int precision);
/// "1.5e-07"; with `exact_digits` exactly `precision` digits after the point. The exponent has at least `exponent_digits`.
struct Scientific {
  int precision;
  bool exact_digits = false;
  int exponent_digits = 2;
};
std::string scientific_text(double value, DType dtype, const Scientific& form);
/// A number standing alone, as str() of a NumPy scalar: "0.1", "2.0", "1e-05".
std::string scalar_text(double value, DType dtype);

}  // namespace kassette

// core/print/decimal.cpp - floats as decimal digits, by <charconv>, which does not depend on the locale.
#include "core/print/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/convert.h"

namespace kassette {
namespace {

constexpr int kMaxText = 1200;  // the digits of the smallest double, 1074 after the point, fit

/// Reads "d.ddde[+-]xx".
Decimal parse(const char* text, const char* end) {
  Decimal d{};
  const char* p = text;
  for (; p != end && *p != 'e'; ++p)
    if (*p != '.') d.digits[d.count++] = *p;
  d.exponent = std::atoi(p + 1);
  while (d.count > 1 && d.digits[d.count - 1] == '0') --d.count;
  return d;
}

/// For float16 and bfloat16: the fewest digits that parse to the same value. Five are always enough.
Decimal shortest_half(double value, DType dtype) {
  char text[32];
  for (int precision = 0;; ++precision) {
    char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, precision).ptr;
    *end = 0;
    double back = 0;
    std::from_chars(text, end, back);
    if (rounded_to(back, dtype) == value || precision == 6) return parse(text, end);
    // At a power of two the gap above is twice the gap below: the next larger decimal may parse back although the
    // nearest does not.
    const int last = precision ? precision + 1 : 0;
    if (back < value && text[last] != '9') {
      char next[32];
      std::memcpy(next, text, sizeof text);
      ++next[last];
      std::from_chars(next, next + (end - text), back);
      if (rounded_to(back, dtype) == value) return parse(next, next + (end - text));
    }
  }
}

void trim_zeros(std::string& s) {
  while (s.back() == '0') s.pop_back();
}

std::string exact_text(double value, std::chars_format format, int precision) {
  char text[kMaxText];
  char* end = std::to_chars(text, text + sizeof text, value, format, precision).ptr;
  return std::string(text, end);
}

/// The significant digits of a decimal number without its sign, 0.ddd x 10^exponent; no digit is a leading or trailing
/// 0.
struct Digits {
  std::string digits;
  std::int64_t exponent = 0;
  explicit Digits(std::string_view s) {
    bool behind_point = false;
    std::size_t i = 0;
    for (; i < s.size() && s[i] != 'e' && s[i] != 'E'; ++i) {
      if (s[i] == '.') behind_point = true;
      if (s[i] < '0' || s[i] > '9') continue;
      const bool leads = digits.empty() && s[i] == '0';
      if (!leads) digits += s[i];
      exponent += leads ? -behind_point : !behind_point;
    }
    int power = 0;
    i += i + 1 < s.size() && s[i + 1] == '+' ? 2 : 1;
    if (i < s.size()) std::from_chars(s.data() + i, s.data() + s.size(), power);
    exponent += power;
    while (!digits.empty() && digits.back() == '0') digits.pop_back();
  }
};

}  // namespace

double before_half(double v, std::string_view s, DType dtype) {
  if (!std::isfinite(v)) return v;
  if (rounded_to(std::nextafter(v, -INFINITY), dtype) == rounded_to(std::nextafter(v, INFINITY), dtype)) return v;
  const Digits wanted(s), have(exact_text(std::fabs(v), std::chars_format::scientific, kMaxText - 20));
  if (wanted.exponent == have.exponent && wanted.digits == have.digits) return v;
  const bool larger = wanted.exponent != have.exponent ? wanted.exponent > have.exponent : wanted.digits > have.digits;
  return std::nextafter(v, larger ? std::copysign(INFINITY, v) : 0);
}

Decimal shortest_decimal(double value, DType dtype) {
  if (value == 0) return {{'0'}, 1, 0};
  if (is_half(dtype)) return shortest_half(value, dtype);
  char text[64];
  auto form = std::chars_format::scientific;
  char* end = dtype == float32 ? std::to_chars(text, text + sizeof text, static_cast<float>(value), form).ptr
                               : std::to_chars(text, text + sizeof text, value, form).ptr;
  *end = 0;
  return parse(text, end);
}

std::string positional_text(double value, DType dtype, int precision) {
  std::string s = std::signbit(value) ? "-" : "";
  value = std::fabs(value);
  Decimal d = shortest_decimal(value, dtype);
  int after = d.count - 1 - d.exponent;  // digits after the point
  if (after > precision) {
    s += exact_text(value, std::chars_format::fixed, precision);
    if (precision == 0) s += '.';
    else trim_zeros(s);
    return s;
  }
  if (d.exponent < 0) s += "0.";
  for (int i = d.exponent + 1; i < 0; ++i) s += '0';
  for (int i = 0; i < d.count; ++i) {
    s += d.digits[i];
    if (i == d.exponent) s += '.';
  }
  for (int i = d.count; i <= d.exponent; ++i) s += '0';
  if (d.exponent >= d.count) s += '.';
  return s;
}

std::string scientific_text(double value, DType dtype, const Scientific& form) {
  std::string s = std::signbit(value) ? "-" : "";
  value = std::fabs(value);
  Decimal d = shortest_decimal(value, dtype);
  int exponent = d.exponent;
  if (d.count - 1 == form.precision || (d.count - 1 < form.precision && !form.exact_digits)) {
    s += d.digits[0];
    s += '.';
    s.append(d.digits + 1, d.count - 1);
  } else {
    // More digits than `precision` are rounded; fewer are extended by the digits of the exact value, not by zeros.
    std::string digits = exact_text(value, std::chars_format::scientific, form.precision);
    std::size_t e = digits.find('e');
    exponent = std::atoi(digits.c_str() + e + 1);
    digits.resize(e);
    if (form.precision == 0) digits += '.';
    if (!form.exact_digits) trim_zeros(digits);
    s += digits;
  }
  s += exponent < 0 ? "e-" : "e+";
  std::string power = std::to_string(std::abs(exponent));
  s.append(std::max<int>(0, form.exponent_digits - static_cast<int>(power.size())), '0');
  return s + power;
}

std::string scalar_text(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  double size = std::fabs(value);
  if (size == 0 || (size >= 1e-4 && size < (dtype == float64 ? 1e16 : std::pow(10.0, sure_digits(dtype))))) {
    std::string s = positional_text(value, dtype, 400);
    if (s.back() == '.') s += '0';
    return s;
  }
  std::string s = scientific_text(value, dtype, {400});
  std::size_t point = s.find('.');
  if (s[point + 1] == 'e') s.erase(point, 1);
  return s;
}

}  // namespace kassette

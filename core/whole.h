// core/whole.h - integers that may be of int64 or of uint64, as one type.
#pragma once
#include <cstdint>
#include <string>

#include "core/impl.h"

namespace kassette {

using Whole = __int128;

inline std::string whole_text(Whole v) {
  return v < 0 ? std::to_string(static_cast<std::int64_t>(v)) : std::to_string(static_cast<std::uint64_t>(v));
}
/// The value of an integer number, a Scalar or an Operand.
template <class Number>
Whole whole_value(const Number& x) {
  const std::int64_t v = Access::int_value(x);
  return Access::kind(x) == Scalar::kUint ? Whole(static_cast<std::uint64_t>(v)) : Whole(v);
}
/// The dtype of an integer number by itself: uint64 if int64 does not hold it.
template <class Number>
DType integer_dtype(const Number& x) {
  return whole_value(x) > INT64_MAX ? uint64 : int64;
}

}  // namespace kassette

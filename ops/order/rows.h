// ops/order/rows.h - operands of ops along one axis as rows that are contiguous in memory.
#pragma once
#include "ops/engine/axes.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/shape/strided.h"

namespace kassette::ops {

/// Calls f with a null pointer of the unsigned type of an element's size.
template <class F>
void with_bits(int size, F&& f) {
  switch (size) {
    case 1: return f(static_cast<std::uint8_t*>(nullptr));
    case 2: return f(static_cast<std::uint16_t*>(nullptr));
    case 4: return f(static_cast<std::uint32_t*>(nullptr));
    default: return f(static_cast<std::uint64_t*>(nullptr));
  }
}

/// Copies (outer, n, inner) to (outer, inner, n).
template <class U>
void move_axis_last(const AxisSplit& s, const U* from, U* to) {
  Strided layout;
  layout.push(s.outer, s.n * s.inner, s.n * s.inner);
  layout.push(s.inner, 1, s.n);
  layout.push(s.n, s.inner, 1);
  copy_strided(layout, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(U));
}
/// Copies (outer, inner, n) to (outer, n, inner).
template <class U>
void move_axis_back(const AxisSplit& s, const U* from, U* to) {
  Strided layout;
  layout.push(s.outer, s.n * s.inner, s.n * s.inner);
  layout.push(s.n, 1, s.inner);
  layout.push(s.inner, s.n, 1);
  copy_strided(layout, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(U));
}

/// Calls f(x, out) with x, of shape `in`, and out, whose axis may have another size, as rows along the axis.
template <class U, class O, class F>
void by_rows(const AxisSplit& in, const AxisSplit& result, const U* x, O* out, F f) {
  if (in.inner == 1) return f(x, out);
  const Scratch<U> rows(in.outer * in.n * in.inner);
  const Scratch<O> sorted(result.outer * result.n * result.inner);
  move_axis_last(in, x, rows.get());
  f(static_cast<const U*>(rows.get()), sorted.get());
  move_axis_back(result, sorted.get(), out);
}

}  // namespace kassette::ops

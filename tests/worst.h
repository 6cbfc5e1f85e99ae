// tests/worst.h - the maximum of errors, with NaN as the largest.
#pragma once

namespace kassette::test {

/// The larger of two errors, NaN if either is: std::max would drop a NaN, and the check that follows would pass.
template <class T>
T worst_of(T a, T b) {
  return a != a || a >= b ? a : b;
}

}  // namespace kassette::test

// tests/worst.h - the largest of errors.
#pragma once

namespace kassette::test {

/// The larger of two errors. NaN is the largest of all and stays; std::max would drop it, and the check behind it pass.
template <class T>
T worst_of(T a, T b) {
  return a != a || a >= b ? a : b;
}

}  // namespace kassette::test

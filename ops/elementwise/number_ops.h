// ops/elementwise/number_ops.h - elementwise ops on the bits and parts of numbers: parts of floats, bits of integers,
// divisors. Each struct is a whole op, as in unary_ops.h and binary_ops.h, which put them in their lists.
#pragma once
#include "ops/elementwise/op_struct.h"

namespace kassette::ops {

/// x - trunc(x) with the sign of x; 0 of an infinity.
struct Fraction {
  static constexpr const char* name = "modf_fraction";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::copysign(m::select(m::trunc(x) == x, V(0), x - m::trunc(x)), x);
  }
  KASSETTE_GRADIENT(dy)
};
/// The e with |x| = f 2^e, 1/2 <= f < 1; 0 for zeros, infinities and NaN.
struct FrexpExponent {
  static constexpr const char* name = "frexp_exponent";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::frexp_exponent(x);
  }
  KASSETTE_NO_GRADIENT
};
/// All bits of an integer turned.
struct Invert {
  static constexpr const char* name = "bitwise_invert";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return static_cast<V>(~x);
  }
  KASSETTE_NO_GRADIENT
};
/// a 2^b, for a whole b, rounded once.
struct Ldexp {
  static constexpr const char* name = "ldexp";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::b;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::ldexp(a, b);
  }
  KASSETTE_GRADIENTS(ldexp(dy, b()), Tensor())
};
/// The number next to a in the direction of b; b where they are equal.
struct NextAfter {
  static constexpr const char* name = "nextafter";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::nextafter(a, b);
  }
  KASSETTE_GRADIENTS(dy, Tensor())
};
/// 0 where a < 0, 1 where a > 0, b where a is 0; keeps NaN.
struct Heaviside {
  static constexpr const char* name = "heaviside";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select(a < V(0), V(0), m::select(a > V(0), V(1), m::select(a == V(0), b, a)));
  }
  KASSETTE_GRADIENTS(mul_no_nan(0.0, dy), where(equal(a(), 0.0), dy, 0.0))
};
/// The larger operand, or the one that is not NaN. In a tie the first operand gets the gradient.
struct Fmax {
  static constexpr const char* name = "fmax";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select((a >= b) | m::is_nan(b), a, b);
  }
  KASSETTE_GRADIENTS(where(takes_first(a(), b()), dy, 0.0), where(takes_first(a(), b()), 0.0, dy))

 private:
#ifndef KASSETTE_DEVICE_CODE
  static Tensor takes_first(const Tensor& a, const Tensor& b) {
    return logical_or(greater_equal(a, b), not_equal(b, b));
  }
#endif
};
/// The smaller operand, or the one that is not NaN. In a tie the first operand gets the gradient.
struct Fmin {
  static constexpr const char* name = "fmin";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select((a <= b) | m::is_nan(b), a, b);
  }
  KASSETTE_GRADIENTS(where(takes_first(a(), b()), dy, 0.0), where(takes_first(a(), b()), 0.0, dy))

 private:
#ifndef KASSETTE_DEVICE_CODE
  static Tensor takes_first(const Tensor& a, const Tensor& b) { return logical_or(less_equal(a, b), not_equal(b, b)); }
#endif
};
/// The bits that both operands have.
struct BitwiseAnd {
  static constexpr const char* name = "bitwise_and";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return static_cast<V>(a & b);
  }
  KASSETTE_NO_GRADIENT
};
/// The bits that either operand has.
struct BitwiseOr {
  static constexpr const char* name = "bitwise_or";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return static_cast<V>(a | b);
  }
  KASSETTE_NO_GRADIENT
};
/// The bits that one operand has.
struct BitwiseXor {
  static constexpr const char* name = "bitwise_xor";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return static_cast<V>(a ^ b);
  }
  KASSETTE_NO_GRADIENT
};
/// a with its bits moved up by b.
struct LeftShift {
  static constexpr const char* name = "left_shift";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::left_shift(a, b);
  }
  KASSETTE_NO_GRADIENT
};
/// a with its bits moved down by b, keeping its sign.
struct RightShift {
  static constexpr const char* name = "right_shift";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::right_shift(a, b);
  }
  KASSETTE_NO_GRADIENT
};
/// The greatest common divisor.
struct Gcd {
  static constexpr const char* name = "gcd";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::gcd(a, b);
  }
  KASSETTE_NO_GRADIENT
};
/// The least common multiple.
struct Lcm {
  static constexpr const char* name = "lcm";
  static constexpr Domain takes = Domain::integers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::lcm(a, b);
  }
  KASSETTE_NO_GRADIENT
};

using NumberUnaryOps = OpList<Fraction, FrexpExponent, Invert>;
using NumberBinaryOps =
    OpList<Ldexp, NextAfter, Heaviside, Fmax, Fmin, BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, RightShift, Gcd, Lcm>;

}  // namespace kassette::ops

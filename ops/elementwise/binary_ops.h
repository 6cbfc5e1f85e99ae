// ops/elementwise/binary_ops.h - the binary elementwise ops, each defined in one struct: name, dtypes, value, the
// values that its adjoint reads, gradient. Compiled by g++ (binary.cpp), for every CPU level (binary_simd.cpp) and by
// nvcc (binary.cu).
#pragma once
#include "ops/elementwise/number_ops.h"
#include "ops/elementwise/op_struct.h"
#include "ops/elementwise/special_ops.h"

namespace kassette::ops {

/// a + b; integers wrap around.
struct Add {
  static constexpr const char* name = "add";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  KASSETTE_PATTERN(add)
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a + b;
  }
  KASSETTE_GRADIENTS(dy, dy)
};
/// a - b; integers wrap around.
struct Subtract {
  static constexpr const char* name = "subtract";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a - b;
  }
  KASSETTE_GRADIENTS(dy, -dy)
};
/// a * b; integers wrap around.
struct Multiply {
  static constexpr const char* name = "multiply";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a * b;
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, b()), mul_no_nan(dy, a()))
};
/// a / b.
struct Divide {
  static constexpr const char* name = "divide";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::b + Reads::y;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a / b;
  }
  KASSETTE_GRADIENTS(div_no_nan(dy, b()), -mul_no_nan(div_no_nan(dy, b()), y()))
};
/// a * b, but 0 wherever a is 0.
struct MulNoNan {
  static constexpr const char* name = "mul_no_nan";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::mul_no_nan(a, b);
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, b()), mul_no_nan(dy, a()))
};
/// a / b, but 0 wherever a is 0.
struct DivNoNan {
  static constexpr const char* name = "div_no_nan";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::b + Reads::y;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select(a == V(0), V(0), a / b);
  }
  KASSETTE_GRADIENTS(div_no_nan(dy, b()), -mul_no_nan(div_no_nan(dy, b()), y()))
};
/// a where b > 0, else 0: the adjoint of relu as one op.
struct WherePositive {
  static constexpr const char* name = "where_positive";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select(b > V(0), a, V(0));
  }
  KASSETTE_GRADIENTS(where_positive(dy, b()), Tensor())
};
/// NaN if either operand is NaN. In a tie the first operand gets the gradient.
struct Maximum {
  static constexpr const char* name = "maximum";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select((a >= b) | m::is_nan(a), a, b);
  }
  KASSETTE_GRADIENTS(where(greater_equal(a(), b()), dy, 0.0), where(greater_equal(a(), b()), 0.0, dy))
};
/// NaN if either operand is NaN. In a tie the first operand gets the gradient.
struct Minimum {
  static constexpr const char* name = "minimum";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select((a <= b) | m::is_nan(a), a, b);
  }
  KASSETTE_GRADIENTS(where(less_equal(a(), b()), dy, 0.0), where(less_equal(a(), b()), 0.0, dy))
};
/// pow(0, 0) is 1. The gradient of a is 0 where b is 0, and the gradient of b is 0 where a <= 0.
struct Pow {
  static constexpr const char* name = "pow";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b + Reads::y;
  static constexpr const char* inputs = "x a";
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::pow(a, b);
  }
  static constexpr Refusal refusal = Refusal::power;
  template <class T>
  KASSETTE_FN static bool refuses(T b) {
    return b < 0;
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, mul_no_nan(b(), pow(a(), b() - 1.0))),
                     mul_no_nan(dy, mul_no_nan(log(where(greater(a(), 0.0), a(), 1.0)), y())))
};
/// The quotient rounded down, like Python's //.
struct FloorDivide {
  static constexpr const char* name = "floor_divide";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::floor_divide(a, b);
  }
  static constexpr Refusal refusal = Refusal::quotient;
  template <class T>
  KASSETTE_FN static bool refuses(T b) {
    return b == 0;
  }
  KASSETTE_NO_GRADIENT
};
/// The remainder with the divisor's sign, like Python's %.
struct Remainder {
  static constexpr const char* name = "remainder";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::remainder(a, b);
  }
  static constexpr Refusal refusal = Refusal::remainder;
  template <class T>
  KASSETTE_FN static bool refuses(T b) {
    return b == 0;
  }
  KASSETTE_GRADIENTS(dy, -mul_no_nan(dy, floor_divide(a(), b())))
};

using BinaryOps = Joined<OpList<Add, Subtract, Multiply, Divide, MulNoNan, DivNoNan, WherePositive, Maximum, Minimum,
                                Pow, FloorDivide, Remainder>,
                         Joined<SpecialBinaryOps, NumberBinaryOps>>;

}  // namespace kassette::ops

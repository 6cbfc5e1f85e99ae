// ops/math/math.h - the math functions that elementwise ops use, for scalars and CUDA; simd.h has them for xsimd
// batches.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// Device libraries whose compiler is not nvcc define KASSETTE_DEVICE_CODE themselves.
#ifdef __CUDACC__
#define KASSETTE_DEVICE_CODE  // compiled for its kernels alone: ops leave out their gradients
#define KASSETTE_FN __host__ __device__ inline
#else
#define KASSETTE_FN inline __attribute__((always_inline))
#endif

namespace kassette::ops {

/// A list of op structs; IndexOf is the position of one of them.
template <class... Ops>
struct OpList {
  static constexpr int size = sizeof...(Ops);
};
template <class Op, class List>
struct IndexOf;
template <class Op, class... Rest>
struct IndexOf<Op, OpList<Op, Rest...>> {
  static constexpr int value = 0;
};
template <class Op, class First, class... Rest>
struct IndexOf<Op, OpList<First, Rest...>> {
  static constexpr int value = 1 + IndexOf<Op, OpList<Rest...>>::value;
};

/// Two lists of op structs as one.
template <class A, class B>
struct JoinedLists;
template <class... A, class... B>
struct JoinedLists<OpList<A...>, OpList<B...>> {
  using List = OpList<A..., B...>;
};
template <class A, class B>
using Joined = typename JoinedLists<A, B>::List;

/// The dtypes that an op accepts: `numbers` are all except bool, `anything` includes it. Integers wrap around.
enum class Domain : unsigned char { floats, numbers, anything, bools, integers };

/// The inputs and outputs whose values a gradient reads, as masks; a sum of the constants: Reads::x + Reads::y.
struct Reads {
  std::uint32_t in = 0, out = 0;
  static const Reads nothing, x, a, b, y;
  friend constexpr Reads operator+(Reads p, Reads q) { return {p.in | q.in, p.out | q.out}; }
};
inline constexpr Reads Reads::nothing{}, Reads::x{1, 0}, Reads::a{1, 0}, Reads::b{2, 0}, Reads::y{0, 1};

// Functions of scalars. They call the C library by name: a std:: overload that is not inlined would be a weak symbol,
// compiled for one CPU level, which the linker could pick for all.
namespace m {

template <class T>
using if_scalar = std::enable_if_t<std::is_arithmetic_v<T>, int>;

template <class T, if_scalar<T> = 0>
KASSETTE_FN T select(bool c, T a, T b) {
  return c ? a : b;
}
template <class T, if_scalar<T> = 0>
KASSETTE_FN bool is_nan(T x) {
  return x != x;
}

/// Whether a condition holds in any lane.
KASSETTE_FN bool any(bool c) { return c; }
/// a * b + c; batches round once where the level can.
template <class T, if_scalar<T> = 0>
KASSETTE_FN T multiply_add(T a, T b, T c) {
  return a * b + c;
}

/// a * b, but 0 where a is 0, whatever b is.
template <class V>
KASSETTE_FN V mul_no_nan(const V& a, const V& b) {
  return select(a == V(0), V(0), static_cast<V>(a * b));
}

#define KASSETTE_SCALAR_FN(name, function) \
  KASSETTE_FN float name(float x) { return ::function##f(x); } \
  KASSETTE_FN double name(double x) { return ::function(x); }
KASSETTE_SCALAR_FN(exp, exp)
KASSETTE_SCALAR_FN(expm1, expm1)
KASSETTE_SCALAR_FN(log, log)
KASSETTE_SCALAR_FN(log1p, log1p)
KASSETTE_SCALAR_FN(sqrt, sqrt)
KASSETTE_SCALAR_FN(sin, sin)
KASSETTE_SCALAR_FN(cos, cos)
KASSETTE_SCALAR_FN(tanh, tanh)
KASSETTE_SCALAR_FN(round_even, nearbyint)
KASSETTE_SCALAR_FN(floor, floor)
KASSETTE_SCALAR_FN(ceil, ceil)
KASSETTE_SCALAR_FN(trunc, trunc)
KASSETTE_SCALAR_FN(tan, tan)
KASSETTE_SCALAR_FN(asin, asin)
KASSETTE_SCALAR_FN(acos, acos)
KASSETTE_SCALAR_FN(atan, atan)
KASSETTE_SCALAR_FN(sinh, sinh)
KASSETTE_SCALAR_FN(cosh, cosh)
KASSETTE_SCALAR_FN(asinh, asinh)
KASSETTE_SCALAR_FN(acosh, acosh)
KASSETTE_SCALAR_FN(atanh, atanh)
KASSETTE_SCALAR_FN(exp2, exp2)
KASSETTE_SCALAR_FN(log2, log2)
KASSETTE_SCALAR_FN(log10, log10)
KASSETTE_SCALAR_FN(cbrt, cbrt)
#undef KASSETTE_SCALAR_FN
#define KASSETTE_SCALAR_FN(name) \
  KASSETTE_FN float name(float a, float b) { return ::name##f(a, b); } \
  KASSETTE_FN double name(double a, double b) { return ::name(a, b); }
KASSETTE_SCALAR_FN(atan2)
KASSETTE_SCALAR_FN(hypot)
KASSETTE_SCALAR_FN(fmod)
KASSETTE_SCALAR_FN(copysign)
KASSETTE_SCALAR_FN(nextafter)
#undef KASSETTE_SCALAR_FN
#define KASSETTE_ROUNDING(name) \
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> \
  KASSETTE_FN T name(T x) { \
    return x; \
  }
KASSETTE_ROUNDING(floor)
KASSETTE_ROUNDING(ceil)
KASSETTE_ROUNDING(trunc)
KASSETTE_ROUNDING(round_even)
#undef KASSETTE_ROUNDING

/// |x|; the lowest integer is returned unchanged.
template <class T, if_scalar<T> = 0>
KASSETTE_FN T abs(T x) {
  if constexpr (std::is_same_v<T, float>) return ::fabsf(x);
  else if constexpr (std::is_same_v<T, double>) return ::fabs(x);
  else return x < T(0) ? static_cast<T>(-x) : x;
}
/// 1 / (1 + exp(-x)) without overflow on either side.
template <class T, if_scalar<T> = 0>
KASSETTE_FN T sigmoid(T x) {
  T e = exp(-abs(x));
  return select(x < T(0), e, T(1)) / (T(1) + e);
}
/// A number as V, a scalar or a batch.
template <class V>
KASSETTE_FN V number(double p) {
  if constexpr (std::is_arithmetic_v<V>) return static_cast<V>(p);
  else return V(static_cast<typename V::value_type>(p));
}

KASSETTE_FN float pow(float a, float b) { return ::powf(a, b); }
KASSETTE_FN double pow(double a, double b) { return ::pow(a, b); }
/// a to the power b >= 0; wraps around.
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
KASSETTE_FN T pow(T a, T b) {
  std::uint64_t base = static_cast<std::uint64_t>(a), result = 1;
  for (std::uint64_t n = static_cast<std::uint64_t>(b); n; n >>= 1) {
    if (n & 1) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

/// The remainder with the divisor's sign. Integers: b != 0.
KASSETTE_FN float remainder(float a, float b) {
  float r = ::fmodf(a, b);
  if (r == 0) return ::copysignf(0.f, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
KASSETTE_FN double remainder(double a, double b) {
  double r = ::fmod(a, b);
  if (r == 0) return ::copysign(0., b);
  return (r < 0) != (b < 0) ? r + b : r;
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
KASSETTE_FN T remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return 0;  // the lowest integer % -1 traps
    T r = static_cast<T>(a % b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  } else {
    return static_cast<T>(a % b);
  }
}
/// The remainder with the dividend's sign, as C's. Integers: b != 0.
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
KASSETTE_FN T fmod(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1)) return 0;  // the lowest integer % -1 traps
  return static_cast<T>(a % b);
}
/// The greatest common divisor and the least common multiple, not negative unless they wrap around.
template <class T>
KASSETTE_FN T gcd(T a, T b) {
  using U = std::make_unsigned_t<decltype(a + b)>;
  U x = a < T(0) ? U(0) - static_cast<U>(a) : static_cast<U>(a),
    y = b < T(0) ? U(0) - static_cast<U>(b) : static_cast<U>(b);
  while (y) {
    const U rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}
template <class T>
KASSETTE_FN T lcm(T a, T b) {
  using U = std::make_unsigned_t<decltype(a + b)>;
  const U divisor = static_cast<U>(m::gcd(a, b));
  if (divisor == 0) return T(0);
  const U x = a < T(0) ? U(0) - static_cast<U>(a) : static_cast<U>(a),
          y = b < T(0) ? U(0) - static_cast<U>(b) : static_cast<U>(b);
  return static_cast<T>(x / divisor * y);
}
/// a shifted by b bits; by as many as T has or more, or by less than 0, all bits are shifted out, as in NumPy.
template <class T>
KASSETTE_FN T left_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr std::uint64_t bits = sizeof(T) * 8;
  return static_cast<std::uint64_t>(b) < bits ? static_cast<T>(std::uint64_t(static_cast<U>(a)) << static_cast<int>(b))
                                              : T(0);
}
template <class T>
KASSETTE_FN T right_shift(T a, T b) {
  constexpr std::uint64_t bits = sizeof(T) * 8;
  if (static_cast<std::uint64_t>(b) < bits) return static_cast<T>(a >> static_cast<int>(b));
  return a < T(0) ? static_cast<T>(-1) : T(0);
}
/// x * 2^n, for a whole n, rounded once; NaN if n is.
KASSETTE_FN int whole_exponent(double n) { return n > 5000 ? 5000 : n < -5000 ? -5000 : static_cast<int>(n); }
KASSETTE_FN float ldexp(float x, float n) { return n == n ? ::ldexpf(x, whole_exponent(n)) : n; }
KASSETTE_FN double ldexp(double x, double n) { return n == n ? ::ldexp(x, whole_exponent(n)) : n; }
/// The e with |x| = f 2^e, 1/2 <= f < 1; 0 for zeros, infinities and NaN.
KASSETTE_FN float frexp_exponent(float x) {
  int e = 0;
  if (x - x == 0) static_cast<void>(::frexpf(x, &e));
  return static_cast<float>(e);
}
KASSETTE_FN double frexp_exponent(double x) {
  int e = 0;
  if (x - x == 0) static_cast<void>(::frexp(x, &e));
  return e;
}
/// The quotient rounded down, as NumPy's: a zero has the sign of a / b, and an infinite a gives NaN unless b is 0.
/// Integers: b != 0.
template <class T, if_scalar<T> = 0>
KASSETTE_FN T floor_divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == T(0)) return a / b;
    T r = remainder(a, b);
    if (r == b) return T(-1);  // b is an infinity of the other sign, or a is too small to change it
    T q = (a - r) / b;         // an integer up to rounding
    return q == T(0) ? m::copysign(q, a / b) : round_even(q);
  } else if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return static_cast<T>(-a);
    return static_cast<T>(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  } else {
    return static_cast<T>(a / b);
  }
}

}  // namespace m
}  // namespace kassette::ops

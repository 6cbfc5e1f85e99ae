// ops/elementwise/special_ops.h - elementwise ops of numerical code: rounding, inverse and hyperbolic functions, other
// bases, roots and angles, the error and gamma functions and their relatives. Each struct is a whole op, as in
// unary_ops.h and binary_ops.h, which put them in their lists.
//
// Gradients are JAX's at the places where a function has no slope: the limit, which may be infinite, or else NaN; zero
// for the functions that round.
#pragma once
#include "ops/math/gamma_inc.h"
#include "ops/elementwise/op_struct.h"
#include "ops/math/special_math.h"

namespace kassette::ops {

inline constexpr double kLn2 = 0.6931471805599453, kLn10 = 2.302585092994046, kTwoOverRootPi = 1.1283791670955126;

/// The square root: NaN below 0, -0 for -0. That of unary_ops.h, Keras', is 0 below 0.
struct SquareRoot {
  static constexpr const char* name = "square_root";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::sqrt(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy * 0.5, y() + 0.0))  // -0 + 0 is 0: inf at either zero
};
/// The largest integer that is not above x; integers are returned as they are.
struct Floor {
  static constexpr const char* name = "floor";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::floor(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(0.0, dy))
};
/// The smallest integer that is not below x.
struct Ceil {
  static constexpr const char* name = "ceil";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::ceil(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(0.0, dy))
};
/// x without its fraction.
struct Trunc {
  static constexpr const char* name = "trunc";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::trunc(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(0.0, dy))
};
/// The nearest integer, ties to even. Its gradient is zero; that of round, as Keras', is None.
struct Rint {
  static constexpr const char* name = "rint";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::round_even(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(0.0, dy))
};
/// The tangent of x, in radians.
struct Tan {
  static constexpr const char* name = "tan";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::tan(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, square(y()) + 1.0))
};
/// The arc sine.
struct Asin {
  static constexpr const char* name = "asin";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::asin(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, rsqrt((1.0 - x()) * (x() + 1.0), 0)))
};
/// The arc cosine.
struct Acos {
  static constexpr const char* name = "acos";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::acos(x);
  }
  KASSETTE_GRADIENT(-mul_no_nan(dy, rsqrt((1.0 - x()) * (x() + 1.0), 0)))
};
/// The arc tangent.
struct Atan {
  static constexpr const char* name = "atan";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::atan(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, square(x()) + 1.0))
};
/// The hyperbolic sine.
struct Sinh {
  static constexpr const char* name = "sinh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::sinh(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, cosh(x())))
};
/// The hyperbolic cosine.
struct Cosh {
  static constexpr const char* name = "cosh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::cosh(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, sinh(x())))
};
/// The inverse of sinh.
struct Asinh {
  static constexpr const char* name = "asinh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::asinh(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, hypot(x(), 1.0)))
};
/// The inverse of cosh, from 1 on.
struct Acosh {
  static constexpr const char* name = "acosh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::acosh(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, rsqrt(x() - 1.0, 0) * rsqrt(x() + 1.0, 0)))
};
/// The inverse of tanh, from -1 to 1.
struct Atanh {
  static constexpr const char* name = "atanh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::atanh(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, (1.0 - x()) * (x() + 1.0)))
};
/// 2 to the power x.
struct Exp2 {
  static constexpr const char* name = "exp2";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::exp2(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, y() * kLn2))
};
/// The logarithm of base 2.
struct Log2 {
  static constexpr const char* name = "log2";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::log2(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, x() * kLn2))
};
/// The logarithm of base 10.
struct Log10 {
  static constexpr const char* name = "log10";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::log10(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, x() * kLn10))
};
/// The cube root, also of negative numbers.
struct Cbrt {
  static constexpr const char* name = "cbrt";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::cbrt(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, square(y()) * 3.0))
};
/// The error function.
struct Erf {
  static constexpr const char* name = "erf";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::erf(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, exp(-square(x())) * kTwoOverRootPi))
};
/// 1 - erf(x), without cancellation for large x.
struct Erfc {
  static constexpr const char* name = "erfc";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::erfc(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, exp(-square(x())) * -kTwoOverRootPi))
};
/// The inverse of erf, from -1 to 1.
struct Erfinv {
  static constexpr const char* name = "erfinv";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::erfinv(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, exp(square(y())) * (1 / kTwoOverRootPi)))
};
/// log |gamma(x)|.
struct Lgamma {
  static constexpr const char* name = "lgamma";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::lgamma(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, polygamma(x(), 0)))
};
/// The derivative of order n + 1 of lgamma, for a whole n >= 0: digamma, trigamma, ...
struct Polygamma {
  static constexpr const char* name = "polygamma";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  struct Attrs {
    static constexpr const char* attrs_name = "polygamma";
    double n;
  };
  template <class V>
  KASSETTE_FN static V value(const V& x, const Attrs& attrs) {
    return m::polygamma(static_cast<int>(attrs.n), x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, polygamma(x(), static_cast<int>(attrs.as<Attrs>().n) + 1)))
};
/// The modified Bessel function of the first kind of order 0.
struct BesselI0 {
  static constexpr const char* name = "i0";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::bessel_i0(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, i1(x())))
};
/// The modified Bessel function of the first kind of order 1.
struct BesselI1 {
  static constexpr const char* name = "i1";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::bessel_i1(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, slope(x())))

 private:
#ifndef KASSETTE_DEVICE_CODE
  /// I0(x) - I1(x) / x; around 0 by its series.
  static Tensor slope(const Tensor& x) {
    const Tensor near = less(abs(x), 0.1), z = square(where(near, x, 0.0));
    const Tensor series = (((z * (9. / 1474560) + 7. / 18432) * z + 5. / 384) * z + 3. / 16) * z + 0.5;
    const Tensor far = where(near, 1.0, x);
    return where(near, series, i0(far) - i1(far) / far);
  }
#endif
};
/// sin(pi x) / (pi x), 1 at 0.
struct Sinc {
  static constexpr const char* name = "sinc";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::sinc(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, slope(x())))

 private:
#ifndef KASSETTE_DEVICE_CODE
  /// (cos(pi x) - sinc(x)) / x; around 0 by its series.
  static Tensor slope(const Tensor& x) {
    constexpr double square_pi = 9.869604401089358;
    const Tensor near = less(abs(x), 0.1), small = where(near, x, 0.0), z = square(small) * -square_pi;
    Tensor series = z * (1. / 93405312000) + 1. / 518918400;
    for (double c : {1. / 3991680, 1. / 45360, 1. / 840, 1. / 30, 1. / 3}) series = series * z + c;
    const Tensor far = where(near, 1.0, x);
    return where(near, small * series * -square_pi, (cos(far * 3.141592653589793) - sinc(far)) / far);
  }
#endif
};
/// The angle of the point (b, a), from -pi to pi.
struct Atan2 {
  static constexpr const char* name = "atan2";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::atan2(a, b);
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, b() / hypot(a(), b()) / hypot(a(), b())),
                     -mul_no_nan(dy, a() / hypot(a(), b()) / hypot(a(), b())))
};
/// sqrt(a^2 + b^2), without overflow on the way; inf if either is infinite.
struct Hypot {
  static constexpr const char* name = "hypot";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b + Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::hypot(a, b);
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, a() / y()), mul_no_nan(dy, b() / y()))
};
/// |a| with the sign of b. The gradient at a = 0 is 0.
struct Copysign {
  static constexpr const char* name = "copysign";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::copysign(a, b);
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, sign(a()) * copysign(1.0, b())), Tensor())
};
/// The remainder with the dividend's sign, as C's.
struct Fmod {
  static constexpr const char* name = "fmod";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::a + Reads::b + Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::fmod(a, b);
  }
  static constexpr Refusal refusal = Refusal::remainder;
  template <class T>
  KASSETTE_FN static bool refuses(T b) {
    return b == 0;
  }
  KASSETTE_GRADIENTS(dy, -mul_no_nan(dy, rint((a() - y()) / b())))
};
/// log(exp(a) + exp(b)), without overflow.
struct LogAddExp {
  static constexpr const char* name = "logaddexp";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    const V most = m::select(a > b, a, b);
    return most + m::select(a == b, m::number<V>(kLn2), m::log1p(m::exp(-m::abs(a - b))));
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, sigmoid(gap(a(), b()))), mul_no_nan(dy, sigmoid(gap(b(), a()))))
#ifndef KASSETTE_DEVICE_CODE
  /// a - b, and 0 for equal infinities. Not a - y, of which y is rounded: Note [Invariant under a shift].
  static Tensor gap(const Tensor& a, const Tensor& b) {
    const Tensor d = a - b;
    return where(logical_and(equal(a, b), not_equal(d, d)), 0.0, d);
  }
#endif
};
/// log2(2^a + 2^b), without overflow.
struct LogAddExp2 {
  static constexpr const char* name = "logaddexp2";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    const V most = m::select(a > b, a, b), more = m::log1p(m::exp2(-m::abs(a - b))) * m::number<V>(1 / kLn2);
    return most + m::select(a == b, V(1), more);
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, sigmoid(LogAddExp::gap(a(), b()) * kLn2)),
                     mul_no_nan(dy, sigmoid(LogAddExp::gap(b(), a()) * kLn2)))
};
/// The regularized lower incomplete gamma function of a >= 0 at b >= 0. There is no gradient with respect to a.
struct GammaInc {
  static constexpr const char* name = "gammainc";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr const char* inputs = "a x";
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::gamma_inc_of(a, b, /*upper=*/false);
  }
  KASSETTE_GRADIENTS(Tensor(), mul_no_nan(dy, exp(mul_no_nan(a() - 1.0, log(b())) - b() - lgamma(a()))))
};
/// 1 - gammainc(a, b), without cancellation: the upper incomplete gamma function of a >= 0 at b >= 0. There is no
/// gradient with respect to a.
struct GammaIncC {
  static constexpr const char* name = "gammaincc";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::a + Reads::b;
  static constexpr const char* inputs = "a x";
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::gamma_inc_of(a, b, /*upper=*/true);
  }
  KASSETTE_GRADIENTS(Tensor(), -mul_no_nan(dy, exp(mul_no_nan(a() - 1.0, log(b())) - b() - lgamma(a()))))
};

using SpecialUnaryOps =
    OpList<SquareRoot, Floor, Ceil, Trunc, Rint, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Exp2, Log2,
           Log10, Cbrt, Erf, Erfc, Erfinv, Lgamma, Polygamma, BesselI0, BesselI1, Sinc>;
using SpecialBinaryOps = OpList<Atan2, Hypot, Copysign, Fmod, LogAddExp, LogAddExp2, GammaInc, GammaIncC>;

}  // namespace kassette::ops

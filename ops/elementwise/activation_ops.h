// ops/elementwise/activation_ops.h - activation functions of neural networks that are one op each. Each struct is a
// whole op, as in unary_ops.h, which puts them in its list.
#pragma once
#include "ops/elementwise/op_struct.h"
#include "ops/math/special_math.h"

namespace kassette::ops {

inline constexpr double kRootHalf = 0.7071067811865476, kRootTwoOverPi = 0.7978845608028654,
                        kOneOverRootTwoPi = 0.3989422804014327, kGeluCubic = 0.044715;

// From -40 on, and in float64 from -800 on, the results are zero: -inf gives -0, not NaN.

/// x / (1 + exp(-x)).
struct Silu {
  static constexpr const char* name = "silu";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    const V least = m::number<V>(-800);
    const V c = m::select(x < least, least, x);
    return c * m::sigmoid(c);
  }
  KASSETTE_GRADIENT(gradient_of(dy, clip(x(), -800.0, 800.0)))

 private:
#ifndef KASSETTE_DEVICE_CODE
  static Tensor gradient_of(const Tensor& dy, const Tensor& c) {
    return mul_no_nan(dy, sigmoid(c) * (c * sigmoid(-c) + 1.0));
  }
#endif
};
/// x times the normal distribution function.
struct Gelu {
  static constexpr const char* name = "gelu";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    const V least = m::number<V>(-40);
    const V c = m::select(x < least, least, x);
    return c * (m::erfc(c * m::number<V>(-kRootHalf)) * m::number<V>(0.5));
  }
  KASSETTE_GRADIENT(gradient_of(dy, clip(x(), -40.0, 40.0)))

 private:
#ifndef KASSETTE_DEVICE_CODE
  static Tensor gradient_of(const Tensor& dy, const Tensor& c) {
    return mul_no_nan(dy, erfc(c * -kRootHalf) * 0.5 + c * exp(square(c) * -0.5) * kOneOverRootTwoPi);
  }
#endif
};
/// gelu by a tanh: x sigmoid(2 u), where u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr const char* name = "gelu_tanh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    const V least = m::number<V>(-40);
    const V c = m::select(x < least, least, x);
    return c * m::sigmoid(c * (V(1) + c * c * m::number<V>(kGeluCubic)) * m::number<V>(2 * kRootTwoOverPi));
  }
  KASSETTE_GRADIENT(gradient_of(dy, clip(x(), -40.0, 40.0)))

 private:
#ifndef KASSETTE_DEVICE_CODE
  static Tensor gradient_of(const Tensor& dy, const Tensor& c) {
    const Tensor part = square(c) * kGeluCubic, u = c * (part + 1.0) * (2 * kRootTwoOverPi);
    return mul_no_nan(dy, sigmoid(u) * (c * sigmoid(-u) * ((part * 3.0 + 1.0) * (2 * kRootTwoOverPi)) + 1.0));
  }
#endif
};
using ActivationUnaryOps = OpList<Silu, Gelu, GeluTanh>;

}  // namespace kassette::ops

// ops/elementwise/unary_ops.h - the unary elementwise ops. Each struct is a whole op: name, dtypes, value, the values
// that its gradient reads, gradient. Read by g++ (unary.cpp), by every CPU level (unary_simd.cpp) and by nvcc
// (unary.cu). One that takes few machine instructions says `cheap`: then it has an opcode of its own in chains. To add
// one: write its struct, put it in UnaryOps, declare and define its K function, give it a line in tests/op_samples.h.
#pragma once
#include "ops/elementwise/activation_ops.h"
#include "ops/elementwise/number_ops.h"
#include "ops/elementwise/op_struct.h"
#include "ops/elementwise/special_ops.h"

namespace kassette::ops {

/// -x; integers wrap around.
struct Negative {
  static constexpr const char* name = "negative";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::number<V>(-0.0) - x;  // not -x, which in xsimd 8.1 is 0 - x on AVX-512, so that -0 would be missing
  }
  KASSETTE_GRADIENT(-dy)
};
/// |x|. The gradient at 0 is 0.
struct Abs {
  static constexpr const char* name = "abs";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::abs(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, sign(x())))
};
/// 1, -1, or 0 without a sign, as in NumPy; keeps NaN.
struct Sign {
  static constexpr const char* name = "sign";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::select(x > V(0), V(1), m::select(x < V(0), V(-1), static_cast<V>(x + V(0))));  // -0 + 0 is 0
  }
  KASSETTE_GRADIENT(mul_no_nan(0.0, dy))
};
/// x * x.
struct Square {
  static constexpr const char* name = "square";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return x * x;
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, x() * 2.0))
};
/// 0 for negative numbers, where the gradient is 0 as well; -0 for -0, as in IEEE 754.
struct Sqrt {
  static constexpr const char* name = "sqrt";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x + Reads::y;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::sqrt(m::select(x < V(0), V(0), x));
  }
  // -0 + 0 is 0, so that the slope at -0 is inf and not -inf.
  KASSETTE_GRADIENT(where(less(x(), 0.0), 0.0, div_no_nan(dy * 0.5, y() + 0.0)))
};
/// 1 / sqrt(x + epsilon).
struct Rsqrt {
  static constexpr const char* name = "rsqrt";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  static constexpr bool cheap = true;
  struct Attrs {
    static constexpr const char* attrs_name = "rsqrt";
    double epsilon;
  };
  template <class V>
  KASSETTE_FN static V value(const V& x, const Attrs& attrs) {
    return V(1) / m::sqrt(x + m::number<V>(attrs.epsilon));
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, y() * square(y()) * -0.5))
};
/// exp(x).
struct Exp {
  static constexpr const char* name = "exp";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::exp(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, y()))
};
/// exp(x) - 1, without cancellation near 0.
struct Expm1 {
  static constexpr const char* name = "expm1";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::expm1(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, y() + 1.0))
};
/// The natural logarithm.
struct Log {
  static constexpr const char* name = "log";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::log(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, x()))
};
/// log(x / (1 - x)), the inverse of sigmoid.
struct Logit {
  static constexpr const char* name = "logit";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::log(x / (V(1) - x));
  }
  KASSETTE_GRADIENT(div_no_nan(dy, x() * (1.0 - x())))
};
/// log(1 + x), without cancellation near 0.
struct Log1p {
  static constexpr const char* name = "log1p";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::log1p(x);
  }
  KASSETTE_GRADIENT(div_no_nan(dy, x() + 1.0))
};
/// The sine of x, in radians.
struct Sin {
  static constexpr const char* name = "sin";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::sin(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, cos(x())))
};
/// The cosine of x, in radians.
struct Cos {
  static constexpr const char* name = "cos";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::cos(x);
  }
  KASSETTE_GRADIENT(-mul_no_nan(dy, sin(x())))
};
/// The hyperbolic tangent.
struct Tanh {
  static constexpr const char* name = "tanh";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::tanh(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, 1.0 - square(y())))
};
/// 1 / (1 + exp(-x)), without overflow on either side.
struct Sigmoid {
  static constexpr const char* name = "sigmoid";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::y;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::sigmoid(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, y() * (1.0 - y())))
};
/// log(1 + exp(x)), without overflow for large x or cancellation for small x.
struct Softplus {
  static constexpr const char* name = "softplus";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::select(x < V(0), V(0), x) + m::log1p(m::exp(-m::abs(x)));
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, sigmoid(x())))
};
/// x / (1 + |x|).
struct Softsign {
  static constexpr const char* name = "softsign";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return x / (V(1) + m::abs(x));
  }
  KASSETTE_GRADIENT(div_no_nan(dy, square(1.0 + abs(x()))))
};
/// Rounds to the nearest integer, ties to even.
struct Round {
  static constexpr const char* name = "round";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::nothing;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::round_even(x);
  }
  KASSETTE_NO_GRADIENT
};
/// max(x, 0); keeps NaN.
struct Relu {
  static constexpr const char* name = "relu";
  static constexpr Domain takes = Domain::numbers;
  static constexpr Reads reads = Reads::y;
  static constexpr bool cheap = true;
  KASSETTE_PATTERN(relu)
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    return m::select(x < V(0), V(0), x);
  }
  KASSETTE_GRADIENT(where_positive(dy, y()))
};
/// x for x > 0, else alpha * x.
struct LeakyRelu {
  static constexpr const char* name = "leaky_relu";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  struct Attrs {
    static constexpr const char* attrs_name = "leaky_relu";
    double alpha;
  };
  template <class V>
  KASSETTE_FN static V value(const V& x, const Attrs& attrs) {
    return m::select(x > V(0), x, x * m::number<V>(attrs.alpha));
  }
  KASSETTE_GRADIENT(where(greater(x(), 0.0), dy, mul_no_nan(dy, attrs.as<Attrs>().alpha)))
};
/// min(x, max_value) for x >= threshold; below it alpha * (x - threshold), or 0 if alpha is 0 (0 * inf would be NaN).
/// If max_value is finite, a negative result for x >= threshold becomes 0, without a gradient. The gradient passes at
/// threshold and at max_value, but not at 0 if threshold is 0 and max_value finite.
struct GeneralRelu {
  static constexpr const char* name = "general_relu";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  struct Attrs {
    static constexpr const char* attrs_name = "general_relu";
    double alpha, max_value, threshold;
    KASSETTE_FN bool has_max() const { return max_value <= 0x1.fffffffffffffp1023; }
  };
  template <class V>
  KASSETTE_FN static V value(const V& x, const Attrs& attrs) {
    const V least = m::number<V>(attrs.threshold), most = m::number<V>(attrs.max_value);
    V above = m::select(x > most, most, x);
    if (attrs.has_max()) above = m::select(above < V(0), V(0), above);
    const V below = attrs.alpha == 0 ? V(0) : (x - least) * m::number<V>(attrs.alpha);
    return m::select(x < least, below, above);
  }
  KASSETTE_GRADIENT(gradient_of(dy, x(), attrs.as<Attrs>()))

 private:
#ifndef KASSETTE_DEVICE_CODE
  static Tensor gradient_of(const Tensor& dy, const Tensor& x, const Attrs& attrs) {
    const double least = attrs.threshold;
    Tensor above = dy;
    if (attrs.has_max())
      above = where(logical_and(least > 0   ? greater_equal(x, least)
                                : least < 0 ? greater_equal(x, 0.0)
                                            : greater(x, 0.0),
                                less_equal(x, attrs.max_value)),
                    dy, 0.0);
    if (attrs.alpha == 0) return where(less(x, least), 0.0, above);
    return where(less(x, least), mul_no_nan(dy, attrs.alpha), above);
  }
#endif
};
/// x for x > 0, else alpha * (exp(x) - 1).
struct Elu {
  static constexpr const char* name = "elu";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  struct Attrs {
    static constexpr const char* attrs_name = "elu";
    double alpha;
  };
  template <class V>
  KASSETTE_FN static V value(const V& x, const Attrs& attrs) {
    return m::select(x > V(0), x, m::expm1(x) * m::number<V>(attrs.alpha));
  }
  // As in TensorFlow: at 0 the first derivative is that of the left side, alpha, and the second that of the right side,
  // 0.
  KASSETTE_GRADIENT(where(greater(x(), 0.0), dy,
                          mul_no_nan(dy, exp(where(greater_equal(x(), 0.0), 0.0, x())) * attrs.as<Attrs>().alpha)))
};
/// 0.2 * x + 0.5, clipped to [0, 1]. The gradient passes at both bounds.
struct HardSigmoid {
  static constexpr const char* name = "hard_sigmoid";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  template <class V>
  KASSETTE_FN static V value(const V& x) {
    const V line = x * m::number<V>(0.2) + m::number<V>(0.5);
    return m::select(line < V(0), V(0), m::select(line > V(1), V(1), line));
  }
  KASSETTE_GRADIENT(where(less_equal(abs(x()), 2.5), dy * 0.2, 0.0))
};
/// x clipped to [low, high]; keeps NaN. The gradient passes at both bounds.
struct Clip {
  static constexpr const char* name = "clip";
  static constexpr Domain takes = Domain::floats;
  static constexpr Reads reads = Reads::x;
  static constexpr bool cheap = true;
  struct Attrs {
    static constexpr const char* attrs_name = "clip";
    double low, high;
  };
  template <class V>
  KASSETTE_FN static V value(const V& x, const Attrs& attrs) {
    const V least = m::number<V>(attrs.low), most = m::number<V>(attrs.high);
    return m::select(x < least, least, m::select(x > most, most, x));
  }
  KASSETTE_GRADIENT(
      where(logical_and(greater_equal(x(), attrs.as<Attrs>().low), less_equal(x(), attrs.as<Attrs>().high)), dy, 0.0))
};
using UnaryOps =
    Joined<OpList<Negative, Abs, Sign, Square, Sqrt, Rsqrt, Exp, Expm1, Log, Logit, Log1p, Sin, Cos, Tanh, Sigmoid,
                  Softplus, Softsign, Round, Relu, LeakyRelu, GeneralRelu, Elu, HardSigmoid, Clip>,
           Joined<Joined<SpecialUnaryOps, NumberUnaryOps>, ActivationUnaryOps>>;

}  // namespace kassette::ops

// ops/unary_ops.h - the unary elementwise ops, each whole: name, dtypes, value, what the adjoint reads, gradient.
// Read by g++ (unary.cpp), by every CPU level (unary_simd.cpp) and by nvcc (unary.cu). To add one: write its struct, put it
// in UnaryOps, declare and define its K function, give it a row in tests/op_samples.h.
#pragma once
#include "ops/math.h"
#ifndef __CUDACC__
#include "ops/expr.h"
#endif

namespace kassette {

#ifdef __CUDACC__
#define KASSETTE_GRADIENT(expression)
#else
/// dy, x and y stand for the cotangent, the input and the output; `r` for the rest.
#define KASSETTE_GRADIENT(expression)          \
  static void gradient(const Rewind& r) {      \
    [[maybe_unused]] const Tensor& dy = r.dy(); \
    r.din(0) = (expression);                   \
  }
#endif

enum class Reads : unsigned char { nothing, input, output, both };   // what a gradient reads
enum class Takes : unsigned char { floats, numbers, anything };           // dtypes of the operand

struct Negative {
  static constexpr const char* name = "negative";
  static constexpr Takes takes = Takes::numbers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& x, const Params&) {
    return -x;
  }
  KASSETTE_GRADIENT(-dy)
};
struct Square {
  static constexpr const char* name = "square";
  static constexpr Takes takes = Takes::numbers;
  static constexpr Reads reads = Reads::input;
  template <class V>
  KASSETTE_FN static V value(const V& x, const Params&) {
    return x * x;
  }
  KASSETTE_GRADIENT(dy * (r.in(0) * 2.0))
};
struct Exp {
  static constexpr const char* name = "exp";
  static constexpr Takes takes = Takes::floats;
  static constexpr Reads reads = Reads::output;
  template <class V>
  KASSETTE_FN static V value(const V& x, const Params&) {
    return m::exp(x);
  }
  KASSETTE_GRADIENT(mul_no_nan(dy, r.out()))
};
struct Tanh {
  static constexpr const char* name = "tanh";
  static constexpr Takes takes = Takes::floats;
  static constexpr Reads reads = Reads::output;
  template <class V>
  KASSETTE_FN static V value(const V& x, const Params&) {
    return m::tanh(x);
  }
  KASSETTE_GRADIENT(dy * (1.0 - square(r.out())))
};

using UnaryOps = OpList<Negative, Square, Exp, Tanh>;

}  // namespace kassette

// ops/binary_ops.h - the binary elementwise ops, each whole: name, dtypes, value, what the adjoint reads, gradient.
// Read by g++ (binary.cpp), by every CPU level (binary_simd.cpp) and by nvcc (binary.cu).
#pragma once
#include "ops/unary_ops.h"

namespace kassette {

#ifdef __CUDACC__
#define KASSETTE_GRADIENTS(da, db)
#else
/// dy, and a and b for the inputs as functions: only those that the op reads have a value. The engine undoes broadcasting.
#define KASSETTE_GRADIENTS(da, db)                               \
  static void gradient(const Rewind& r) {                        \
    [[maybe_unused]] const Tensor& dy = r.dy();                  \
    [[maybe_unused]] auto a = [&] { return r.in(0); };           \
    [[maybe_unused]] auto b = [&] { return r.in(1); };           \
    if (r.wants(0)) r.din(0) = (da);                             \
    if (r.wants(1)) r.din(1) = (db);                             \
  }
#endif

struct Add {
  static constexpr const char* name = "add";
  static constexpr Takes takes = Takes::numbers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a + b;
  }
  KASSETTE_GRADIENTS(dy, dy)
};
struct Subtract {
  static constexpr const char* name = "subtract";
  static constexpr Takes takes = Takes::numbers;
  static constexpr Reads reads = Reads::nothing;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a - b;
  }
  KASSETTE_GRADIENTS(dy, -dy)
};
struct Multiply {
  static constexpr const char* name = "multiply";
  static constexpr Takes takes = Takes::numbers;
  static constexpr Reads reads = Reads::input;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a * b;
  }
  KASSETTE_GRADIENTS(dy * b(), dy * a())
};
/// a * b, but 0 wherever a is 0.
struct MulNoNan {
  static constexpr const char* name = "mul_no_nan";
  static constexpr Takes takes = Takes::floats;
  static constexpr Reads reads = Reads::input;
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return m::select(a == V(0), V(0), a * b);
  }
  KASSETTE_GRADIENTS(mul_no_nan(dy, b()), mul_no_nan(dy, a()))
};

using BinaryOps = OpList<Add, Subtract, Multiply, MulNoNan>;

}  // namespace kassette

// ops/math.h - the functions that elementwise ops are written with, for scalars, xsimd batches and CUDA.
#pragma once
#include <cmath>
#include <type_traits>

#ifdef __CUDACC__
#define KASSETTE_FN __host__ __device__ inline
#else
#define KASSETTE_FN inline __attribute__((always_inline))
#endif

namespace kassette {

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

/// Attributes of an elementwise op, as numbers that stay in registers.
struct Params {
  double x, y;
};

namespace m {

template <class T>
using if_scalar = std::enable_if_t<std::is_arithmetic_v<T>, int>;

template <class T, if_scalar<T> = 0>
KASSETTE_FN T select(bool c, T a, T b) {
  return c ? a : b;
}
template <class T, if_scalar<T> = 0>
KASSETTE_FN T exp(T x) {
  return std::exp(x);
}
template <class T, if_scalar<T> = 0>
KASSETTE_FN T tanh(T x) {
  return std::tanh(x);
}

}  // namespace m
}  // namespace kassette

// ops/reduce/reduce_loops.cpp - the loops of reductions for integers, and the choice of loops.
#include "ops/reduce/reduce_runs.h"

#include <limits>

namespace kassette::ops {
namespace {

// Integers wrap around: they are computed as 64-bit unsigned integers and truncated.
struct Sum {
  template <class T>
  static T value(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Prod {
  template <class T>
  static T value(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct Max {
  template <class T>
  static T value(T a, T b) {
    return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  static T value(T a, T b) {
    return a < b ? a : b;
  }
};

template <class Op, class T>
void rows(const T* x, T* out, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i, x += n) {
    T a = x[0];
    for (std::int64_t k = 1; k < n; ++k) a = Op::value(a, x[k]);
    out[i] = a;
  }
}
template <class Op, class T>
void columns(const T* x, T* out, std::int64_t n, std::int64_t stride, std::int64_t width) {
  for (std::int64_t c = 0; c < width; ++c) out[c] = x[c];
  for (std::int64_t r = 1; r < n; ++r) {
    x += stride;
    for (std::int64_t c = 0; c < width; ++c) out[c] = Op::value(out[c], x[c]);
  }
}

template <class T>
constexpr ReduceLoops<T> integer_loops[] = {{rows<Sum, T>, columns<Sum, T>},
                                            {rows<Sum, T>, columns<Sum, T>},
                                            {rows<Max, T>, columns<Max, T>},
                                            {rows<Min, T>, columns<Min, T>},
                                            {rows<Prod, T>, columns<Prod, T>}};

}  // namespace

template <class T>
const ReduceLoops<T>& reduce_loops(Reduction how) {
  int i = static_cast<int>(how);
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(reduce_table).f32[i];
  else if constexpr (std::is_same_v<T, double>) return KASSETTE_PICK(reduce_table).f64[i];
  else return integer_loops<T>[i];
}

template <class T>
T reduce_identity(Reduction how) {
  using L = std::numeric_limits<T>;
  switch (how) {
    case Reduction::sum:
    case Reduction::mean: return T(0);
    case Reduction::prod: return T(1);
    case Reduction::max: return L::has_infinity ? static_cast<T>(-L::infinity()) : L::lowest();
    default: return L::has_infinity ? L::infinity() : L::max();
  }
}

#define KASSETTE_REDUCE(constant, code, T, name) \
  template const ReduceLoops<T>& reduce_loops<T>(Reduction how); \
  template T reduce_identity<T>(Reduction how);
KASSETTE_INTEGER_DTYPES(KASSETTE_REDUCE)
KASSETTE_REDUCE(float32, kFloat32, float, "float32")
KASSETTE_REDUCE(float64, kFloat64, double, "float64")
#undef KASSETTE_REDUCE

}  // namespace kassette::ops

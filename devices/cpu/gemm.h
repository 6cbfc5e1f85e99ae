// devices/cpu/gemm.h - the product of two matrices on one thread, in loops of our own.
#pragma once
#include <cstddef>
#include <cstdint>

#include "devices/cpu/blas.h"
#include "devices/cpu/level.h"

namespace kassette::devices {

/// Whether a product replaces what is in its output or is added to it.
enum class Into { fresh, sum };

/// The inner dimension up to which each element of a product is one chain of multiply-adds: Note [How a product runs].
constexpr std::int64_t kOneChain = 384;

template <class T>
struct GemmLoops {
  std::int64_t columns;  // of the blocks of the output that are summed in registers
  /// Bytes of memory that multiply() works in.
  std::int64_t (*workspace)(const GemmShape& p);
  /// m, n and k are at least 1.
  void (*multiply)(const GemmShape& p, const T* a, const T* b, T* out, Into into, std::byte* work);
};

/// The loops of one CPU level.
struct GemmTable {
  GemmLoops<float> f32;
  GemmLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(GemmTable, gemm_table)

}  // namespace kassette::devices

// devices/cpu/gemm.h - the product of two matrices on one thread, in loops of our own, and the block that products and
// convolutions are made of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "devices/cpu/blas.h"
#include "devices/cpu/level.h"

namespace kassette::devices {

/// What is done with the sums of a product as they are stored, in this order.
template <class T>
struct Finish {
  bool add = false;         // to what is in the output
  const T* bias = nullptr;  // if set, added, one number for each column
  bool relu = false;        // the maximum with 0; NaN stays

  /// The same for the columns from `column` on. Inlined always, as CPU levels must not share a symbol.
  inline __attribute__((always_inline)) Finish from(std::int64_t column) const {
    return {add, bias ? bias + column : nullptr, relu};
  }
};

/// The inner dimension up to which each element of a product is one chain of multiply-adds: Note [How a product runs].
constexpr std::int64_t kOneChain = 384;

/// A block of an output: out(i, j) = the sum over l of a(i, l) b(l, j), for some rows i and for j < columns. l runs
/// through `runs` runs of `run` elements: run r begins at a + a_runs[r] and at b + r * b_run. b(l, j) is read for whole
/// vectors of j.
template <class T>
struct GemmBlock {
  const T* a;
  std::int64_t a_step;  // from row to row; or, if the rows lie side by side (`by_columns`), from l to l
  const T* b;
  std::int64_t b_step;  // from l to l
  std::int64_t run;
  T* out;
  std::int64_t out_step, columns;
  bool by_columns = false;
  std::int64_t runs = 1, b_run = 0;
  const std::int64_t* a_runs = nullptr;  // null: one run, from a on
  Finish<T> finish = {};
};

template <class T>
struct GemmLoops {
  std::int64_t rows, columns;  // of the largest block
  void (*block)(const GemmBlock<T>& t, std::int64_t rows);
  /// Bytes of memory that multiply() works in.
  std::int64_t (*workspace)(const GemmShape& p);
  /// m, n and k are at least 1.
  void (*multiply)(const GemmShape& p, const T* a, const T* b, T* out, const Finish<T>& finish, std::byte* work);
};

/// The loops of one CPU level.
struct GemmTable {
  GemmLoops<float> f32;
  GemmLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(GemmTable, gemm_table)
/// The loops of the level in use.
template <class T>
const GemmLoops<T>& gemm_loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(gemm_table).f32;
  else return KASSETTE_PICK(gemm_table).f64;
}

}  // namespace kassette::devices

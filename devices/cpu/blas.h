// devices/cpu/blas.h - matrix products on the CPU: OpenBLAS with one thread a call, spread over our pool.
#pragma once
#include <cstdint>

#include <kassette/shape.h>

namespace kassette {

/// out (m x n) = a (m x k) x b (k x n), all row-major with `ld*` elements from row to row; ta: a is stored as k x m, tb: b is
/// stored as n x k.
struct GemmShape {
  std::int64_t m, n, k;
  bool ta, tb;
  std::int64_t lda, ldb, ldo;
  bool operator==(const GemmShape&) const = default;
};

/// Axes along which a product repeats, with the distances in elements between successive matrices.
struct BatchStrides {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank], a[kMaxRank], b[kMaxRank], out[kMaxRank];
};

/// Products are cut into tiles by their shape, or where a cut changes no bit, and each tile is computed by one thread: the same
/// bits for any number of threads. An empty inner axis gives zeros.
void multiply(const GemmShape& p, const BatchStrides& r, const float* a, const float* b, float* out);
void multiply(const GemmShape& p, const BatchStrides& r, const double* a, const double* b, double* out);

/// out += a x b, with the bits of a product and an addition after it, in one pass. False, and nothing done, where a product of that
/// shape does not go that way.
bool add_product(const GemmShape& p, const float* a, const float* b, float* out);
bool add_product(const GemmShape& p, const double* a, const double* b, double* out);

}  // namespace kassette

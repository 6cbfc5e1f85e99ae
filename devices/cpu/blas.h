// devices/cpu/blas.h - matrix products on the CPU.
#pragma once
#include <cstdint>

#include <kassette/shape.h>

namespace kassette::devices {

/// out (m x n) = a (m x k) x b (k x n), all row-major, `ld*` elements from row to row. With ta, a is stored as k x m;
/// with tb, b as n x k.
struct GemmShape {
  std::int64_t m, n, k;
  bool ta, tb;
  std::int64_t lda, ldb, ldo;
  bool operator==(const GemmShape&) const = default;
};

/// The batch axes of a product, and for each the distance in elements between successive matrices.
struct BatchStrides {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank], a[kMaxRank], b[kMaxRank], out[kMaxRank];

  /// The first elements of a product's three matrices.
  struct Offsets {
    std::int64_t a = 0, b = 0, out = 0;
  };
  /// The elements before the matrices of product i, counted over the first `axes` axes.
  Offsets offsets(std::int64_t i, int axes) const {
    Offsets o;
    for (int d = axes - 1; d >= 0; --d) {
      const std::int64_t at = i % dims[d];
      i /= dims[d];
      o.a += at * a[d];
      o.b += at * b[d];
      o.out += at * out[d];
    }
    return o;
  }
  Offsets offsets(std::int64_t i) const { return offsets(i, rank); }
};

/// A product is divided into tiles, each computed by one thread. No division changes bits: results are the same for any
/// number of threads. With k = 0 the result is zeros.
void multiply(const GemmShape& p, const BatchStrides& batch, const float* a, const float* b, float* out);
void multiply(const GemmShape& p, const BatchStrides& batch, const double* a, const double* b, double* out);

/// out += a x b in one pass, with the bits of computing the product first and adding it then. Returns false, and leaves
/// `out` unchanged, if that is not possible for this shape.
bool add_product(const GemmShape& p, const float* a, const float* b, float* out);
bool add_product(const GemmShape& p, const double* a, const double* b, double* out);
/// Whether multiply_with_bias() can compute a product of this shape.
bool takes_bias(const GemmShape& p);
/// out = a x b + bias, with one number of the bias for each column; then, if `relu`, its maximum with 0. One pass over
/// `out`, with the bits of a product, an addition and a maximum that follow each other.
void multiply_with_bias(const GemmShape& p, const float* a, const float* b, const float* bias, bool relu, float* out);
void multiply_with_bias(const GemmShape& p, const double* a, const double* b, const double* bias, bool relu,
                        double* out);

}  // namespace kassette::devices

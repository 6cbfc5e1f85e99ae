// devices/cpu/blas.h - matrix products on the CPU: OpenBLAS with one thread a call, spread over our pool.
#pragma once
#include <cstdint>

#include <kassette/shape.h>

namespace kassette {

/// out (m x n) = a (m x k) x b (k x n), all row-major with `ld*` elements from row to row; ta: a is stored as k x m, tb: b is
/// stored as n x k.
struct Product {
  std::int64_t m, n, k;
  bool ta, tb;
  std::int64_t lda, ldb, ldo;
  bool operator==(const Product&) const = default;
};

/// Axes along which a product repeats, with the distances in elements between successive matrices.
struct Repeats {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank], a[kMaxRank], b[kMaxRank], out[kMaxRank];
};

/// Products are cut into tiles by their shape, or where a cut changes no bit, and each tile is computed by one thread: the same
/// bits for any number of threads. An empty inner axis gives zeros.
void multiply(const Product& p, const Repeats& r, const float* a, const float* b, float* out);
void multiply(const Product& p, const Repeats& r, const double* a, const double* b, double* out);

/// out += a x b, with the bits of a product and an addition after it, in one pass; `count` times, one after the other, with
/// operands so many elements apart. False, and nothing done, where a product of that shape does not go that way.
bool add_products(const Product& p, std::int64_t count, const float* a, std::int64_t next_a, const float* b, std::int64_t next_b, float* out);
bool add_products(const Product& p, std::int64_t count, const double* a, std::int64_t next_a, const double* b, std::int64_t next_b,
                  double* out);
/// The same with operands where the lists say.
bool add_products(const Product& p, std::int64_t count, const float* const* a, const float* const* b, float* out);
bool add_products(const Product& p, std::int64_t count, const double* const* a, const double* const* b, double* out);
bool adds_products(const Product& p);
template <class T>
bool add_product(const Product& p, const T* a, const T* b, T* out) {
  return add_products(p, 1, a, 0, b, 0, out);
}

/// out = a x b + `row` to each row, with the bits of a product and an addition after it; false, and nothing done, as above.
bool multiply_onto_row(const Product& p, const float* a, const float* b, const float* row, float* out);
bool multiply_onto_row(const Product& p, const double* a, const double* b, const double* row, double* out);

/// Rows from a multiple of rows_of_tile on up to another or the end, on this thread, have the bits of the whole product. That
/// is m where rows are not computed apart.
std::int64_t rows_of_tile(const Product& p);
void multiply_rows(const Product& p, std::int64_t begin, std::int64_t end, const float* a, const float* b, float* out);
void multiply_rows(const Product& p, std::int64_t begin, std::int64_t end, const double* a, const double* b, double* out);

}  // namespace kassette

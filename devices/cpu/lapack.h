// devices/cpu/lapack.h - the factorisations of LAPACK, which OpenBLAS has, for one row-major matrix each. A row-major
// matrix is to LAPACK, which counts by columns, its transpose: each function says what it makes of that. lu and
// triangular_solve divide large matrices among threads, with the same bits for any number; all else is one thread's.
#pragma once
#include <cstdint>

namespace kassette::devices {

/// The largest number of rows or columns: the sizes of LAPACK's workspaces are 32-bit integers.
inline constexpr std::int64_t kMostRows = 32'000;

// Each is defined for float and double. They return 0, or LAPACK's number of what failed.

/// The lower triangle of a (n, n) is replaced by L with a = L L', and the upper one by zeros. Returns k if the leading
/// minor of order k is not positive.
template <class T>
int cholesky(std::int64_t n, T* a);
/// a' = P L U, where a is (n, n): L and U are left in `a`, pivots[i] is the row that row i was exchanged with. Returns
/// k if element k of U's diagonal is 0.
template <class T>
int lu(std::int64_t n, T* a, int* pivots);
/// x is replaced by the solution of a x = b (n, k), from lu(a).
template <class T>
void lu_solve(std::int64_t n, std::int64_t k, const T* lu, const int* pivots, T* x);
/// x (n, k) is replaced by the solution of a x = b or a' x = b, where only one triangle of a is read.
template <class T>
void triangular_solve(std::int64_t n, std::int64_t k, const T* a, bool lower, bool transposed, bool unit, T* x);
/// a (m, n) = q r: q is (m, columns), r is (min(m, n), n) or, for columns = m, (m, n). `columns` is min(m, n) or m. `a`
/// is overwritten.
template <class T>
int qr(std::int64_t m, std::int64_t n, std::int64_t columns, T* a, T* q, T* r);
/// a (m, n) = u diag(s) vh: u is (m, k) and vh (k, n), k = min(m, n), or (m, m) and (n, n) if full; null for s alone.
/// `a` is overwritten. Returns above 0 if the iteration did not end.
template <class T>
int svd(std::int64_t m, std::int64_t n, bool full, T* a, T* u, T* s, T* vh);
/// The eigenvalues w of a symmetric matrix, ascending, of which the lower triangle is read; and its eigenvectors as the
/// rows of `a`, unless there is to be w alone. Returns above 0 if the iteration did not end.
template <class T>
int eigh(std::int64_t n, bool vectors, T* a, T* w);
/// The eigenvalues of a (n, n) as real and imaginary parts, and the right eigenvectors as the rows of `v`, in LAPACK's
/// form: of a pair of complex ones the first row holds the real parts and the second one the imaginary parts of the
/// first. v is null for the values alone. `a` is overwritten.
template <class T>
int eig(std::int64_t n, T* a, T* real, T* imaginary, T* v);

}  // namespace kassette::devices

// devices/cpu/lapack.cpp - calls of LAPACK.
#include "devices/cpu/lapack.h"

#include <algorithm>
#include <cstddef>

#include <cblas.h>

#include "core/ceil_div.h"
#include "core/storage.h"
#include "devices/cpu/blas.h"
#include "devices/cpu/openblas.h"
#include "devices/cpu/small_matrices.h"
#include "devices/cpu/threads.h"

// Fortran takes all arguments by address, and behind them the lengths of the texts.
#define KASSETTE_LAPACK(T, p) \
  void p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, std::size_t); \
  void p##getrf_(const int* m, const int* n, T* a, const int* lda, int* ipiv, int* info); \
  void p##laswp_(const int* n, T* a, const int* lda, const int* k1, const int* k2, const int* ipiv, const int* incx); \
  void p##gelqf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info); \
  void p##orglq_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work, \
                 const int* lwork, int* info); \
  void p##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu, \
                 T* vt, const int* ldvt, T* work, const int* lwork, int* iwork, int* info, std::size_t); \
  void p##syevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda, T* w, T* work, \
                 const int* lwork, int* iwork, const int* liwork, int* info, std::size_t, std::size_t); \
  void p##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, T* wr, T* wi, T* vl, \
                const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, int* info, std::size_t, \
                std::size_t);
extern "C" {
KASSETTE_LAPACK(float, s)
KASSETTE_LAPACK(double, d)
}
#undef KASSETTE_LAPACK

namespace kassette::devices {
namespace {

/// The functions for an element type, under the same names.
template <class T>
struct Lapack;
#define KASSETTE_LAPACK(T, p) \
  template <> \
  struct Lapack<T> { \
    static constexpr auto potrf = p##potrf_; \
    static constexpr auto getrf = p##getrf_; \
    static constexpr auto laswp = p##laswp_; \
    static constexpr auto gelqf = p##gelqf_; \
    static constexpr auto orglq = p##orglq_; \
    static constexpr auto gesdd = p##gesdd_; \
    static constexpr auto syevd = p##syevd_; \
    static constexpr auto geev = p##geev_; \
    static constexpr auto trsm = cblas_##p##trsm; \
  };
KASSETTE_LAPACK(float, s)
KASSETTE_LAPACK(double, d)
#undef KASSETTE_LAPACK

/// Memory that LAPACK asked for: the size is what it wrote into the first element of a workspace.
template <class T>
class Workspace {
 public:
  explicit Workspace(std::int64_t n)
      : memory_(Storage::allocate(std::max<std::int64_t>(n, 1) * static_cast<std::int64_t>(sizeof(T)), cpu)) {}
  T* get() const { return static_cast<T*>(memory_->data); }

 private:
  Ref<Storage> memory_;
};
/// A size that LAPACK wrote as a T, which may have rounded it down.
template <class T>
int length_of(T size) {
  return std::max(1, static_cast<int>(static_cast<double>(size) * (1 + 0x1p-22)));
}
/// Calls f(work, lwork, info) twice: for the size of the workspace, and to compute.
template <class T, class F>
int with_workspace(F&& f) {
  T size = 0;
  int query = -1, info = 0;
  f(&size, &query, &info);
  if (info != 0) return info;
  int length = length_of(size);
  const Workspace<T> work(length);
  f(work.get(), &length, &info);
  return info;
}

}  // namespace

template <class T>
int cholesky(std::int64_t rows, T* a) {
  if (rows <= small::kFewRows) return small::cholesky(rows, a);
  const OpenBlasCall call;
  const int n = static_cast<int>(rows);
  int info = 0;
  Lapack<T>::potrf("U", &n, a, &n, &info, 1);  // its upper triangle is the lower one of rows
  for (std::int64_t i = 0; i < rows; ++i) std::fill(a + i * rows + i + 1, a + (i + 1) * rows, T(0));
  return info;
}

namespace {

/// The columns of a step of lu(), and the right-hand sides of triangular_solve() that a thread takes at a time: fixed,
/// so that the bits do not depend on the number of threads.
constexpr std::int64_t kColumns = 128;

/// Runs f(first, count) for the columns [begin, end) on several threads.
template <class F>
void for_columns(std::int64_t begin, std::int64_t end, F f) {
  parallel_for(ceil_div(end - begin, kColumns), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t at = begin + i * kColumns;
      const OpenBlasCall call;
      f(at, std::min(kColumns, end - at));
    }
  });
}

/// out += a b.
template <class T>
void add_to(const GemmShape& p, const T* a, const T* b, T* out) {
  if (add_product(p, a, b, out)) return;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j)
      for (std::int64_t k = 0; k < p.k; ++k) out[i * p.ldo + j] += a[i * p.lda + k] * b[k * p.ldb + j];
}

/// lu() of a large matrix, counted by columns, some columns at a time: LAPACK factorises these, and what is to their
/// right is a product, on several threads.
template <class T>
int lu_by_columns(std::int64_t n, T* a, int* pivots) {
  const int lda = static_cast<int>(n), one = 1;
  const Workspace<T> upper(kColumns * n);
  int failed = 0;
  for (std::int64_t j = 0; j < n; j += kColumns) {
    const std::int64_t width = std::min(kColumns, n - j), right = j + width, rest = n - right;
    T* const diagonal = a + j * n + j;
    {
      const OpenBlasCall call;
      const int rows = static_cast<int>(n - j), columns = static_cast<int>(width);
      int info = 0;
      Lapack<T>::getrf(&rows, &columns, diagonal, &lda, pivots + j, &info);
      if (info > 0 && failed == 0) failed = static_cast<int>(j) + info;
    }
    for (std::int64_t i = j; i < right; ++i) pivots[i] += static_cast<int>(j);
    const int first = static_cast<int>(j) + 1, last = static_cast<int>(right);
    auto exchange_rows = [&](std::int64_t at, std::int64_t count) {
      const int columns = static_cast<int>(count);
      Lapack<T>::laswp(&columns, a + at * n, &lda, &first, &last, pivots, &one);
    };
    if (j > 0) for_columns(0, j, exchange_rows);
    for_columns(right, n, [&](std::int64_t at, std::int64_t count) {
      exchange_rows(at, count);
      T* const top = a + at * n + j;
      Lapack<T>::trsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, static_cast<int>(width),
                      static_cast<int>(count), T(1), diagonal, lda, top, lda);
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t k = 0; k < width; ++k) upper.get()[(at - right + i) * width + k] = -top[i * n + k];
    });
    // In rows: the rest (rest, rest) += -U' (rest, width) L' (width, rest).
    if (rest > 0)
      add_to(GemmShape{rest, rest, width, false, false, width, n, n}, upper.get(), diagonal + width,
             a + right * n + right);
  }
  return failed;
}

}  // namespace

template <class T>
int lu(std::int64_t rows, T* a, int* pivots) {
  if (rows <= small::kFewRows) return small::lu(rows, a, pivots);
  if (rows > 2 * kColumns) return lu_by_columns(rows, a, pivots);
  const OpenBlasCall call;
  const int n = static_cast<int>(rows);
  int info = 0;
  Lapack<T>::getrf(&n, &n, a, &n, pivots, &info);
  return info;
}

template <class T>
void lu_solve(std::int64_t n, std::int64_t k, const T* lu, const int* pivots, T* x) {
  // a' = P L U, so a = U' L' P'. In rows, U' is the lower and L' the upper triangle of what is stored.
  triangular_solve(n, k, lu, /*lower=*/true, /*transposed=*/false, /*unit=*/false, x);
  triangular_solve(n, k, lu, /*lower=*/false, /*transposed=*/false, /*unit=*/true, x);
  for (std::int64_t i = n; i-- > 0;) {
    const std::int64_t j = pivots[i] - 1;
    if (j != i) std::swap_ranges(x + i * k, x + (i + 1) * k, x + j * k);
  }
}

template <class T>
void triangular_solve(std::int64_t n, std::int64_t k, const T* a, bool lower, bool transposed, bool unit, T* x) {
  if (n == 0 || k == 0) return;
  if (std::max(n, k) <= small::kFewRows) return small::triangular_solve(n, k, a, lower, transposed, unit, x);
  for_columns(0, k, [&](std::int64_t at, std::int64_t count) {
    Lapack<T>::trsm(CblasRowMajor, CblasLeft, lower ? CblasLower : CblasUpper, transposed ? CblasTrans : CblasNoTrans,
                    unit ? CblasUnit : CblasNonUnit, static_cast<int>(n), static_cast<int>(count), T(1), a,
                    static_cast<int>(n), x + at, static_cast<int>(k));
  });
}

template <class T>
int qr(std::int64_t m, std::int64_t n, std::int64_t columns, T* a, T* q, T* r) {
  // By columns `a` is a' (n, m) = l q', so a = q l': an LQ factorisation gives both in rows.
  const OpenBlasCall call;
  const int rows = static_cast<int>(n), cols = static_cast<int>(m), k = std::min(rows, cols),
            wanted = static_cast<int>(columns);
  const Workspace<T> tau(k);
  const int lda = std::max(1, rows);
  if (const int info = with_workspace<T>([&](T* work, const int* length, int* code) {
        Lapack<T>::gelqf(&rows, &cols, a, &lda, tau.get(), work, length, code);
      }))
    return info;
  // l (n, k) by columns is r (k, n) in rows.
  for (std::int64_t i = 0; i < columns; ++i)
    for (std::int64_t j = 0; j < n; ++j) r[i * n + j] = j >= i && i < k ? a[i * n + j] : T(0);
  // The reflectors are the first k rows of `a` by columns; q' (columns, m) is made of them in place of its own.
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < columns; ++i) q[j * columns + i] = i < k ? a[j * n + i] : T(0);
  const int ldq = std::max(1, wanted);
  return with_workspace<T>([&](T* work, const int* length, int* code) {
    Lapack<T>::orglq(&wanted, &cols, &k, q, &ldq, tau.get(), work, length, code);
  });
}

template <class T>
int svd(std::int64_t m, std::int64_t n, bool full, T* a, T* u, T* s, T* vh) {
  // By columns `a` is a' = v diag(s) u', so LAPACK's u is v and its v' is u'.
  const OpenBlasCall call;
  const int rows = static_cast<int>(n), cols = static_cast<int>(m), k = std::min(rows, cols);
  const int lda = std::max(1, rows), ldu = std::max(1, rows), ldvt = std::max(1, full ? cols : k);
  const Workspace<int> integers(8 * std::max<std::int64_t>(k, 1));
  const char* job = !u ? "N" : full ? "A" : "S";
  T none = 0;
  return with_workspace<T>([&](T* work, const int* length, int* code) {
    Lapack<T>::gesdd(job, &rows, &cols, a, &lda, s, vh ? vh : &none, &ldu, u ? u : &none, &ldvt, work, length,
                     integers.get(), code, 1);
  });
}

template <class T>
int eigh(std::int64_t rows, bool vectors, T* a, T* w) {
  const OpenBlasCall call;
  const int n = static_cast<int>(rows), lda = std::max(1, n);
  const char* job = vectors ? "V" : "N";
  T size = 0;
  int integer_size = 0, query = -1, info = 0;
  Lapack<T>::syevd(job, "U", &n, a, &lda, w, &size, &query, &integer_size, &query, &info, 1, 1);
  if (info != 0) return info;
  const int length = length_of(size);
  const Workspace<T> work(length);
  const Workspace<int> integers(integer_size);
  const int integer_length = std::max(1, integer_size);
  Lapack<T>::syevd(job, "U", &n, a, &lda, w, work.get(), &length, integers.get(), &integer_length, &info, 1, 1);
  return info;
}

template <class T>
int eig(std::int64_t rows, T* a, T* real, T* imaginary, T* v) {
  // The left eigenvectors u of a' are the conjugates of the right ones of a.
  const OpenBlasCall call;
  const int n = static_cast<int>(rows), lda = std::max(1, n), one = 1;
  T none = 0;
  const int info = with_workspace<T>([&](T* work, const int* length, int* code) {
    Lapack<T>::geev(v ? "V" : "N", "N", &n, a, &lda, real, imaginary, v ? v : &none, v ? &lda : &one, &none, &one, work,
                    length, code, 1, 1);
  });
  if (v && info == 0)
    for (std::int64_t i = 0; i + 1 < rows; ++i)
      if (imaginary[i] > 0)
        for (std::int64_t j = 0; j < rows; ++j) v[(i + 1) * rows + j] = -v[(i + 1) * rows + j];
  return info;
}

#define KASSETTE_LAPACK(T) \
  template int cholesky(std::int64_t, T*); \
  template int lu(std::int64_t, T*, int*); \
  template void lu_solve(std::int64_t, std::int64_t, const T*, const int*, T*); \
  template void triangular_solve(std::int64_t, std::int64_t, const T*, bool, bool, bool, T*); \
  template int qr(std::int64_t, std::int64_t, std::int64_t, T*, T*, T*); \
  template int svd(std::int64_t, std::int64_t, bool, T*, T*, T*, T*); \
  template int eigh(std::int64_t, bool, T*, T*); \
  template int eig(std::int64_t, T*, T*, T*, T*);
KASSETTE_LAPACK(float)
KASSETTE_LAPACK(double)
#undef KASSETTE_LAPACK

}  // namespace kassette::devices

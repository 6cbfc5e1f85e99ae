// ops/linalg/linalg.h - factorisations and solutions of linear systems, as functions of tensors: of the matrices in the
// last two axes, leading axes are batches. Floats only; half types are computed in float32. A tensor of another device
// is computed on the host.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// The attributes of all of them: what is meant by each is said there.
struct LinalgAttrs {
  static constexpr const char* attrs_name = "linalg";
  bool lower = true, transposed = false, unit = false, full = false;
  bool unchecked = false;  // a triangle with a zero on its diagonal gives infinities and NaN, not an error
};

// ---- factorize.cpp
extern const OpDef cholesky_op, triangular_solve_op, solve_op, slogdet_op, lu_op, qr_op;
/// The lower triangular l with a = l l'; of `a`, the lower triangle is read. Throws ValueError if it is not positive
/// definite.
Tensor cholesky(const Tensor& a);
/// x with a x = b, or a' x = b if transposed, where a triangle of `a` is read, with ones on its diagonal if `unit`.
Tensor triangular_solve(const Tensor& a, const Tensor& b, const LinalgAttrs& form);
/// x with a x = b, or a' x = b if transposed. Throws ValueError if a is singular.
Tensor solve(const Tensor& a, const Tensor& b, bool transposed = false);
/// The sign of the determinant, and the logarithm of its absolute value: 0 and -inf for a singular matrix.
struct SignLogDet {
  Tensor sign, logabsdet;
};
SignLogDet slogdet(const Tensor& a);
/// a = l u with its rows in the order `rows` (int64), both in one matrix, without the ones of l's diagonal. No
/// gradient.
struct Lu {
  Tensor lu, rows;
};
Lu lu(const Tensor& a);
/// a = q r with orthonormal columns of q: (m, k) and (k, n), k = min(m, n), or (m, m) and (m, n) if full.
struct Qr {
  Tensor q, r;
};
Qr qr(const Tensor& a, bool full = false);

/// x with its last two axes exchanged. The rank is known.
Tensor transposed(const Tensor& x);
/// Ones on the diagonals of matrices shaped like x, which are square.
Tensor identity_like(const Tensor& x);

// ---- spectral.cpp
extern const OpDef eigh_op, eigvalsh_op, svd_op, svdvals_op, eig_op;
/// Eigenvalues, ascending, and eigenvectors, the columns of v, of symmetric matrices, of which the lower triangle is
/// read.
struct Eigh {
  Tensor w, v;
};
Eigh eigh(const Tensor& a);
Tensor eigvalsh(const Tensor& a);
/// a = u diag(s) vh, s descending: (m, k), (k), (k, n), or (m, m) and (n, n) if full.
struct Svd {
  Tensor u, s, vh;
};
Svd svd(const Tensor& a, bool full = false);
Tensor svdvals(const Tensor& a);
/// Eigenvalues and right eigenvectors, the columns, of real matrices, as real and imaginary parts. No gradient.
struct Eig {
  Tensor w_real, w_imaginary, v_real, v_imaginary;
};
Eig eig(const Tensor& a);

}  // namespace kassette::ops

// include/kassette/numpy/linalg.h - linear algebra: np::linalg.
#ifndef KASSETTE_NUMPY_LINALG_H
#define KASSETTE_NUMPY_LINALG_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {
namespace linalg {

// Of the matrices in the last two axes; leading axes are batches, which broadcast where there are two operands. Floats
// only; half types are computed in float32. LAPACK computes, one thread for each matrix; tensors of another device go
// by way of the host. A matrix that is not finite gives NaN. Gradients have any order, where a function has them.

/// The solution x of a x = b, where b holds matrices, or is one vector. Throws ValueError if a matrix is singular.
KASSETTE_API Tensor solve(const Operand& a, const Operand& b);
/// The arguments of solve_triangular by name: which triangle is read, whether it is transposed, and whether its
/// diagonal is taken to be ones.
struct TriangularOptions {
  Named only_by_name{0};
  bool lower = false;
  bool transposed = false;
  bool unit_diagonal = false;
};
/// The solution of a x = b for triangular matrices. Throws ValueError if one has a zero on its diagonal.
KASSETTE_API Tensor solve_triangular(const Operand& a, const Operand& b, const TriangularOptions& options = {});
/// The solution of a x = b from the lower triangular l = cholesky(a).
KASSETTE_API Tensor cholesky_solve(const Operand& l, const Operand& b);
/// The inverse. Throws ValueError if a matrix is singular.
KASSETTE_API Tensor inv(const Operand& x);
/// The pseudo-inverse (Moore and Penrose). Singular values below rtol times the largest count as 0; rtol is the larger
/// size times the unit of the dtype unless given.
KASSETTE_API Tensor pinv(const Operand& x, Scalar rtol = None);
/// The determinant.
KASSETTE_API Tensor det(const Operand& x);
/// The sign of the determinant, and the logarithm of its absolute value.
struct SlogdetResult {
  Tensor sign, logabsdet;
};
/// The determinant as its sign and logarithm: 0 and -inf for a singular matrix.
KASSETTE_API SlogdetResult slogdet(const Operand& x);
/// The logarithm of the determinant: NaN where that is negative, -inf where it is 0.
KASSETTE_API Tensor logdet(const Operand& x);
/// The lower triangular l with x = l l', or the upper one with x = u' u; a triangle of x is read, the lower one unless
/// upper. Throws ValueError if a matrix is not positive definite.
KASSETTE_API Tensor cholesky(const Operand& x, bool upper = false);
/// An LU factorisation: l and u in one matrix, without the ones of l's diagonal, and the order of the rows of x
/// (int64).
struct LuResult {
  Tensor lu, rows;
};
/// x, with its rows in the order `rows`, is l u. No gradient.
KASSETTE_API LuResult lu_factor(const Operand& x);
/// A permutation, a lower triangular matrix with ones on its diagonal, and an upper triangular one.
struct LuMatrices {
  Tensor p, l, u;
};
/// x = p l u, where x is (..., m, n), l (..., m, k) and u (..., k, n) with k = min(m, n). Sizes that are
/// not known are taken to be equal. No gradient.
KASSETTE_API LuMatrices lu(const Operand& x);
/// The factors of x = q r.
struct QrResult {
  Tensor q, r;
};
/// x = q r, where the columns of q are orthonormal and r is upper triangular. mode: "reduced", (m, k) and (k, n) with
/// k = min(m, n), or "complete", (m, m) and (m, n). There is a gradient unless n > m.
KASSETTE_API QrResult qr(const Operand& x, Name mode = "reduced");
/// The factors of x = u diag(s) vh.
struct SvdResult {
  Tensor u, s, vh;
};
/// x = u diag(s) vh with orthonormal columns of u and rows of vh, and descending s: (m, m) and (n, n), or the first
/// min(m, n) columns and rows without full_matrices. The gradient of u and vh needs distinct singular values.
KASSETTE_API SvdResult svd(const Operand& x, bool full_matrices = true);
/// The singular values, descending.
KASSETTE_API Tensor svdvals(const Operand& x);
/// Eigenvalues, and eigenvectors as columns.
struct EighResult {
  Tensor eigenvalues, eigenvectors;
};
/// Eigenvalues, ascending, and orthonormal eigenvectors of symmetric matrices, of which the lower triangle is read. The
/// gradient of the vectors needs distinct eigenvalues.
KASSETTE_API EighResult eigh(const Operand& x);
KASSETTE_API Tensor eigvalsh(const Operand& x);
/// Eigenvalues and eigenvectors, as columns, as real and imaginary parts.
struct EigResult {
  Tensor real, imaginary, vectors_real, vectors_imaginary;
};
/// Eigenvalues and right eigenvectors of real matrices, in no order. No gradient.
KASSETTE_API EigResult eig(const Operand& x);
/// Real and imaginary parts of eigenvalues.
struct EigvalsResult {
  Tensor real, imaginary;
};
/// The eigenvalues that eig gives, without the vectors. No gradient.
KASSETTE_API EigvalsResult eigvals(const Operand& x);
/// The results of lstsq, in NumPy's order.
struct LstsqResult {
  Tensor solution, residuals, rank, singular_values;
};
/// The x with the least |a x - b|, and the shortest of them, for a (m, n) and b (m) or (m, k); the sums of the squared
/// residuals, the rank of a and its singular values. Those below rtol times the largest count as 0.
KASSETTE_API LstsqResult lstsq(const Operand& a, const Operand& b, Scalar rtol = None);

/// int64: how many singular values are above rtol times the largest.
KASSETTE_API Tensor matrix_rank(const Operand& x, Scalar rtol = None);
/// x times itself n times; of the inverse, if n is negative.
KASSETTE_API Tensor matrix_power(const Operand& x, int n);
/// e to the power x, the sum of x^k / k!, by scaling and squaring (Higham, 2005). NaN for x so large that no digit of
/// the result would be left. On placeholders all squarings that there may be are made, 24 or, for float64, 53.
KASSETTE_API Tensor matrix_exp(const Operand& x);
/// The product of several matrices, in the cheapest order. The first and the last may be vectors.
KASSETTE_API Tensor multi_dot(const Tensors& x);

/// The x for which tensordot(a, x, rank of x) is b, where the axes of `a` are those of b and then those of x, with as
/// many elements; `axes` of `a` are moved to its end first. Throws ValueError if the equations are singular.
KASSETTE_API Tensor tensorsolve(const Operand& a, const Operand& b, const Axes& axes = None);
/// The inverse of x as a matrix from its last axes to its first `ind` ones: tensordot(the inverse, b, ind) solves
/// tensorsolve(x, b). Throws ValueError if it is singular, or not square.
KASSETTE_API Tensor tensorinv(const Operand& x, int ind = 2);

/// The matrix with the first column c and the first row r, which is c unless given, and equal elements on each
/// diagonal; r[0] is not read. Of any dtype, as is block_diag.
KASSETTE_API Tensor toeplitz(const Operand& c, const Operand& r = None);
/// A matrix with these matrices along its diagonal, and zeros elsewhere. Vectors are rows.
KASSETTE_API Tensor block_diag(const Tensors& x);

/// The arguments of norms by name. ord: None, a number, or infinity.
struct NormOptions {
  Named only_by_name{0};
  Scalar ord = None;
  Axes axis = None;
  bool keepdims = false;
};
/// The norm of vectors along one axis, or of matrices along two: of all elements unless axis is given. None is the
/// square root of the sum of the squares.
KASSETTE_API Tensor norm(const Operand& x, const NormOptions& options = {});
/// (sum |x|^ord)^(1 / ord) over the axes, 2 unless given; inf and -inf: the largest and the smallest |x|; 0: how many
/// are not zero.
KASSETTE_API Tensor vector_norm(const Operand& x, const NormOptions& options = {});
/// The norm of the matrices in the last two axes: None is Frobenius', 1 and -1 the largest and smallest sum of a
/// column, inf and -inf those of a row, 2 and -2 the largest and smallest singular value.
KASSETTE_API Tensor matrix_norm(const Operand& x, const NormOptions& options = {});
/// The largest singular value divided by the smallest.
KASSETTE_API Tensor cond(const Operand& x);

}  // namespace linalg
}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_LINALG_H

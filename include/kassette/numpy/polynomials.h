// include/kassette/numpy/polynomials.h - NumPy's polynomials: vectors of coefficients, that of the highest power first.
#ifndef KASSETTE_NUMPY_POLYNOMIALS_H
#define KASSETTE_NUMPY_POLYNOMIALS_H
#include <kassette/numpy/mathematics.h>

namespace kassette {
namespace numpy {

// How many coefficients there are must be known. Those of 0 at the front of a result stay.

/// The arguments of polyfit: weights of the points, by which their residuals are multiplied; singular values below
/// rcond times the largest count as 0, the number of points times the unit of the dtype unless given.
struct PolyfitOptions {
  Named only_by_name{0};
  KeptOperand w = None;
  Scalar rcond = None;
};
/// The roots of a polynomial.
struct PolynomialRoots {
  Tensor real, imaginary;
};

/// p[0] x^(n - 1) + ... + p[n - 1], in the shape of x.
KASSETTE_API Tensor polyval(const Operand& p, const Operand& x);
/// The deg + 1 coefficients with the least squared residuals at the points x (n), y (n) or (n, k), of floats.
KASSETTE_API Tensor polyfit(const Operand& x, const Operand& y, std::int64_t deg, const PolyfitOptions& options = {});
/// Sum, difference and product.
KASSETTE_API Tensor polyadd(const Operand& a, const Operand& b);
KASSETTE_API Tensor polysub(const Operand& a, const Operand& b);
KASSETTE_API Tensor polymul(const Operand& a, const Operand& b);
/// The quotient, and the remainder with one coefficient less than v, but one at least. Of floats.
KASSETTE_API QuotientAndRemainder polydiv(const Operand& u, const Operand& v);
/// The derivative and the integral, m times; k is the constant of each integration.
KASSETTE_API Tensor polyder(const Operand& p, std::int64_t m = 1);
KASSETTE_API Tensor polyint(const Operand& p, std::int64_t m = 1, double k = 0);
/// The coefficients of the polynomial with these roots, 1 first, of floats.
KASSETTE_API Tensor poly(const Operand& roots);
/// The roots of floats in no order, as real and imaginary parts; NaN if the first coefficient is 0. No gradient.
KASSETTE_API PolynomialRoots roots(const Operand& p);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_POLYNOMIALS_H

// nn_backend/numpy/linalg.h - what other np functions take from np::linalg beside its functions.
#pragma once
#include <kassette/numpy/linalg.h>

namespace kassette::numpy::linalg {

/// x, which must hold square float matrices. Throws in the name of `what`.
Tensor square_matrices(const char* what, const Tensor& x);

/// lstsq for which singular values count as 0 below `least` times the largest, a scalar float64 tensor on the host: a
/// number that depends on sizes which are not known.
LstsqResult lstsq_above(const Tensor& a, const Tensor& b, const Tensor& least);

}  // namespace kassette::numpy::linalg

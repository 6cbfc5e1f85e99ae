// nn_backend/numpy/fft.h - the arguments of np::fft as tensors.
#pragma once
#include <kassette/numpy/fft.h>

#include "nn_backend/numpy/arguments.h"
#include "ops/fft/fft.h"

namespace kassette::numpy::fft {

/// The tensors of an argument: floats of one dtype. Throws in the name of `what`.
struct SignalParts {
  SignalParts(const char* what, const Signal& x);
  ops::FftPair pair;
  bool complex() const { return pair.imaginary.defined(); }
};
/// A length that is given. Throws ValueError unless it is positive.
std::int64_t length_given(const char* what, const Scalar& n, const char* name = "n");
/// What a norm divides the results of one direction by. Throws ValueError if there is no such norm.
ops::FftNorm norm_named(const char* what, const Name& norm, bool inverse);

}  // namespace kassette::numpy::fft

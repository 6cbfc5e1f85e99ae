// include/kassette/numpy/fft.h - discrete Fourier transforms: np::fft.
#ifndef KASSETTE_NUMPY_FFT_H
#define KASSETTE_NUMPY_FFT_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {
namespace fft {

// ComplexPair numbers are pairs of tensors, as in keras.ops: `auto [real, imag] = np::fft::fft(x)`. Bool and integers
// are cast to floatx; half types are computed in float32. Lengths may be any: factors of up to 31 are passes of their
// own, larger primes go by way of a convolution. Results have the same bits for any number of threads. Tensors of
// another device go by way of the host. Gradients have any order.
//
// `n` is the length of the transform, of which x has the first numbers, or which zeros fill: None is that of x. norm
// says which direction divides by n: "backward", "forward", or "ortho", where both divide by its square root.

/// ComplexPair numbers: two tensors of one shape.
struct ComplexPair {
  Tensor real, imag;
};
/// An argument that is real, or complex: a ComplexPair, or two tensors in braces, {real, imag}.
class KASSETTE_API Signal {
 public:
  template <class X, class = std::enable_if_t<std::is_convertible<const X&, Operand>::value>>
  Signal(const X& real) : real_(real), imag_(None), pair_(false) {}
  Signal(const ComplexPair& x) : real_(x.real), imag_(x.imag), pair_(true) {}
  Signal(std::initializer_list<Operand> items);

 private:
  Operand real_, imag_;
  bool pair_;
  friend struct SignalParts;
};

/// The arguments of transforms along one axis by name.
struct FftOptions {
  Named only_by_name{0};
  Scalar n = None;
  int axis = -1;
  Name norm = "backward";
};
/// Those of transforms along two axes: a length for each of them, or None for those of x.
struct Fft2Options {
  Named only_by_name{0};
  Dims s = None;
  Axes axes = {-2, -1};
  Name norm = "backward";
};
/// Those of transforms along several axes. Without axes they are the last ones, as many as there are lengths, or all.
struct FftnOptions {
  Named only_by_name{0};
  Dims s = None;
  Axes axes = None;
  Name norm = "backward";
};

/// The sum of x[j] e^(-2 pi i j k / n) over j, for each k.
KASSETTE_API ComplexPair fft(const Signal& x, const FftOptions& options = {});
/// The inverse of fft: the sum of x[k] e^(2 pi i j k / n) over k, divided by n, for each j.
KASSETTE_API ComplexPair ifft(const Signal& x, const FftOptions& options = {});
/// fft along two axes, and its inverse.
KASSETTE_API ComplexPair fft2(const Signal& x, const Fft2Options& options = {});
KASSETTE_API ComplexPair ifft2(const Signal& x, const Fft2Options& options = {});
/// fft along several axes, and its inverse.
KASSETTE_API ComplexPair fftn(const Signal& x, const FftnOptions& options = {});
KASSETTE_API ComplexPair ifftn(const Signal& x, const FftnOptions& options = {});
/// The first n / 2 + 1 numbers of fft of real numbers; the others mirror them.
KASSETTE_API ComplexPair rfft(const Operand& x, const FftOptions& options = {});
/// The inverse of rfft: n real numbers, 2 (m - 1) for m numbers of x unless n is given. The imaginary part of the first
/// number, and of number n / 2, is taken as 0.
KASSETTE_API Tensor irfft(const Signal& x, const FftOptions& options = {});
/// rfft along the last axis and fft along the other, and the inverse.
KASSETTE_API ComplexPair rfft2(const Operand& x, const Fft2Options& options = {});
KASSETTE_API Tensor irfft2(const Signal& x, const Fft2Options& options = {});
/// rfft along the last of several axes and fft along the others, and the inverse.
KASSETTE_API ComplexPair rfftn(const Operand& x, const FftnOptions& options = {});
KASSETTE_API Tensor irfftn(const Signal& x, const FftnOptions& options = {});
/// fft of numbers whose second half mirrors the first, which is x: real. n as for irfft.
KASSETTE_API Tensor hfft(const Signal& x, const FftOptions& options = {});
/// The inverse of hfft: the first n / 2 + 1 numbers.
KASSETTE_API ComplexPair ihfft(const Operand& x, const FftOptions& options = {});

/// The arguments of cosine transforms by name: the type, 1 to 4. norm "ortho" makes the transform orthogonal.
struct DctOptions {
  Named only_by_name{0};
  int type = 2;
  Scalar n = None;
  int axis = -1;
  Name norm = "backward";
};
/// The cosine transform as SciPy has it. Type 2 is twice the sum of x[j] cos(pi k (2 j + 1) / (2 n)) over j, for each
/// k; type 1 needs two numbers.
KASSETTE_API Tensor dct(const Operand& x, const DctOptions& options = {});
/// The inverse of dct of the same type and norm.
KASSETTE_API Tensor idct(const Operand& x, const DctOptions& options = {});

/// The arguments of stft by name: the window, "hann", "hamming" (periodic ones) or None for fft_length ones; or its
/// `weights`, as many as sequence_length; whether x is reflected at its ends, so that the middle of frame t is at t
/// times the stride.
struct StftOptions {
  Named only_by_name{0};
  Name window = "hann";
  KeptOperand weights = None;
  bool center = true;
};
/// Those of istft: `length` is how many numbers the result has.
struct IstftOptions {
  Named only_by_name{0};
  Scalar length = None;
  Name window = "hann";
  KeptOperand weights = None;
  bool center = true;
};
/// The spectra of frames of the last axis, sequence_stride apart: (..., frames, fft_length / 2 + 1). Frames of
/// sequence_length numbers are multiplied by the window, with zeros at both ends up to fft_length. As in keras.ops.
/// There are no frames if x is shorter than one.
KASSETTE_API ComplexPair stft(const Operand& x, std::int64_t sequence_length, std::int64_t sequence_stride,
                              std::int64_t fft_length, const StftOptions& options = {});
/// The inverse of stft: frames times the window, added where they overlap, and divided by the sum of the squares of the
/// windows there (keras.ops divides by the stride if there is no window).
KASSETTE_API Tensor istft(const Signal& x, std::int64_t sequence_length, std::int64_t sequence_stride,
                          std::int64_t fft_length, const IstftOptions& options = {});

/// The frequencies of the numbers that fft returns, in cycles per unit of the spacing d: 0, 1, ..., -1, divided by n d.
KASSETTE_API Tensor fftfreq(std::int64_t n, double d = 1, DType dtype = None);
/// Those of rfft, none of which is negative.
KASSETTE_API Tensor rfftfreq(std::int64_t n, double d = 1, DType dtype = None);
/// x with the frequency 0 in the middle of the axes, all unless given; ifftshift undoes that. A part of a ComplexPair
/// is shifted like any tensor.
KASSETTE_API Tensor fftshift(const Operand& x, const Axes& axes = None);
KASSETTE_API Tensor ifftshift(const Operand& x, const Axes& axes = None);

}  // namespace fft
}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_FFT_H

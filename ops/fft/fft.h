// ops/fft/fft.h - discrete Fourier transforms along an axis, as functions of tensors. A complex tensor is a pair of
// tensors, its real and imaginary parts. Floats only; half types are computed in float32. A tensor of another device is
// computed on the host.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// What goes into a transform and comes out of it. Real numbers have a spectrum of which one half mirrors the other:
/// the first n / 2 + 1 numbers are "the half", where `half_to_real` takes the others as their mirror images, and takes
/// no imaginary part of the first, and of the last if n is even.
enum class FftForm : std::uint8_t { complex, real_to_complex, complex_to_real, real_to_half, half_to_real };
/// What results are divided by.
enum class FftNorm : std::uint8_t { none, n, sqrt_n };
/// The attributes of fft_op and fft_like_op.
struct FftAttrs {
  static constexpr const char* attrs_name = "fft";
  static constexpr std::int64_t kOwn = 0, kOfLike = -1;
  std::int64_t n = kOwn;  // the length, or that of the input (of half_to_real: twice, less 2), or that of `like`
  std::int32_t axis = 0;  // from the front
  FftForm form = FftForm::complex;
  struct {
    bool inverse = false;   // the sign of the exponent
    std::int8_t power = 0;  // the numbers of the half that have a mirror image are multiplied by 2^power
    FftNorm norm = FftNorm::none;
  } how = {};
};

/// The transform: input 0 and perhaps 1 are the real and the imaginary part, of which the first n numbers are taken,
/// and zeros behind them. fft_like has in front an input `like`, whose length along the axis is that of the result, by
/// the same rule. It is the adjoint, and its own.
extern const OpDef fft_op, fft_like_op;

/// A pair; without `imaginary` real.
struct FftPair {
  Tensor real, imaginary;
};
FftPair fft(const FftPair& x, const FftAttrs& attrs);

}  // namespace kassette::ops

// nn_backend/numpy/fft.cpp - discrete Fourier transforms: np::fft.
#include "nn_backend/numpy/fft.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/axes.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace fft {

using ops::attribute_errors;
using ops::FftAttrs;
using ops::FftForm;
using ops::FftNorm;
using ops::FftPair;

Signal::Signal(std::initializer_list<Operand> items) : real_(items), imag_(None), pair_(false) {
  const Operand* list = items.begin();
  if (items.size() != 2 || !ops::is_tensor_operand(list[0]) || !ops::is_tensor_operand(list[1])) return;
  real_ = list[0];
  imag_ = list[1];
  pair_ = true;
}
SignalParts::SignalParts(const char* what, const Signal& x) {
  if (!x.pair_) {
    pair.real = as_float(ArrayArg(x.real_, {what, "x"}));
    return;
  }
  const Tensors both = float_tensors(what, {{"real", x.real_}, {"imag", x.imag_}});
  pair = {both[0], both[1]};
}
std::int64_t length_given(const char* what, const Scalar& n, const char* name) {
  if (Access::kind(n) != Scalar::kInt && Access::kind(n) != Scalar::kUint)
    fail<TypeError>({what, name}, "is no integer", kExpected, "it must be an integer or None");
  const std::int64_t length = Access::int_value(n);
  if (length < 1) fail<ValueError>({what, name}, "is ", length, kExpected, "it must be at least 1");
  return length;
}
FftNorm norm_named(const char* what, const Name& norm, bool inverse) {
  const std::string name(norm.given() ? norm.data() : "backward", norm.given() ? norm.size() : 8);
  if (name == "ortho") return FftNorm::sqrt_n;
  if (name != "backward" && name != "forward")
    fail<ValueError>({what, "norm"}, "is '", name, "'", kExpected, "it must be 'backward', 'ortho' or 'forward'");
  return inverse == (name == "backward") ? FftNorm::n : FftNorm::none;
}

namespace {

/// A direction, and what results are divided by there.
struct Direction {
  bool inverse;
  FftNorm norm;
};
/// The transform along an axis counted from the front, of length n; kOwn: that of x.
FftPair along(const FftPair& x, int axis, std::int64_t n, FftForm form, const Direction& d) {
  FftAttrs a{.n = n, .axis = axis, .form = form};
  a.how.inverse = d.inverse;
  a.how.norm = d.norm;
  return ops::fft(x, a);
}
FftForm complex_form(const FftPair& x) { return x.imaginary.defined() ? FftForm::complex : FftForm::real_to_complex; }
ComplexPair result_of(const FftPair& y) { return {y.real, y.imaginary}; }

/// A transform along one axis; `half`: of a half, or with one as its result.
FftPair along_one(const char* what, const FftPair& x, const FftOptions& options, bool inverse, FftForm form) {
  const int axis = front_axis(x.real, options.axis, what);
  const std::int64_t n = options.n.is_none() ? FftAttrs::kOwn : length_given(what, options.n);
  return along(x, axis, n, form, {inverse, norm_named(what, options.norm, inverse)});
}
ComplexPair of_complex(const char* what, const Signal& x, const FftOptions& options, bool inverse) {
  return attribute_errors(what, [&] {
    const SignalParts parts(what, x);
    return result_of(along_one(what, parts.pair, options, inverse, complex_form(parts.pair)));
  });
}
ComplexPair of_real(const char* what, const Operand& x, const FftOptions& options, bool inverse) {
  return attribute_errors(what, [&] {
    const Tensor t = as_float(ArrayArg(x, {what, "x"}));
    return result_of(along_one(what, {t, {}}, options, inverse, FftForm::real_to_half));
  });
}
Tensor of_half(const char* what, const Signal& x, const FftOptions& options, bool inverse) {
  return attribute_errors(
      what, [&] { return along_one(what, SignalParts(what, x).pair, options, inverse, FftForm::half_to_real).real; });
}

/// Axes counted from the front, and the length along each.
struct Lengths {
  std::vector<int> axes;
  std::vector<std::int64_t> n;
};
Lengths lengths_of(const char* what, const Tensor& x, const Dims& s, const Axes& axes) {
  const int rank = known_rank(x, {what, "x"});
  Lengths all;
  if (s.whole_) fail<TypeError>({what, "s"}, "is a tensor", kExpected, "it must list integers");
  check_length({what, "s"}, s);
  if (axes.size_ < 0 && s.size_ >= 0) {
    if (s.size_ > rank)
      fail<ValueError>({what, "s"}, "lists ", s.size_, " lengths", kExpected, "x has ", rank,
                       rank == 1 ? " axis" : " axes");
    for (int i = rank - s.size_; i < rank; ++i) all.axes.push_back(i);
  } else {
    all.axes = places_of({what, "axes"}, axes, rank);
  }
  if (s.size_ >= 0 && s.size_ != static_cast<int>(all.axes.size()))
    fail<ValueError>({what, "s"}, "lists ", s.size_, " lengths for ", all.axes.size(), " axes", kExpected,
                     "there must be one for each");
  for (int i = 0; i < static_cast<int>(all.axes.size()); ++i) {
    if (s.size_ >= 0 && s.dims_[i].tensor_)
      fail<TypeError>({what, "s"}, "holds a tensor", kExpected, "it must list integers");
    const bool own = s.size_ < 0 || s.dims_[i].value_ == Dim::kNoneDim || s.dims_[i].value_ == -1;
    all.n.push_back(own ? FftAttrs::kOwn : length_given(what, s.dims_[i].value_, "s"));
  }
  return all;
}
/// What is the same in transforms along several axes.
template <class Options>
struct Several {
  Several(const char* what, const Tensor& x, const Options& options, bool inverse)
      : lengths(lengths_of(what, x, options.s, options.axes)), direction{inverse,
                                                                         norm_named(what, options.norm, inverse)},
        count(static_cast<int>(lengths.axes.size())) {}
  FftPair along(const FftPair& x, int i, FftForm form) const {
    return fft::along(x, lengths.axes[static_cast<std::size_t>(i)], lengths.n[static_cast<std::size_t>(i)], form,
                      direction);
  }
  void need_axes(const char* what) const {
    if (count == 0) fail<ValueError>({what, "axes"}, "lists no axes", kExpected, "there must be one at least");
  }
  Lengths lengths;
  Direction direction;
  int count;
};
template <class Options>
ComplexPair several_of_complex(const char* what, const Signal& x, const Options& options, bool inverse) {
  return attribute_errors(what, [&] {
    FftPair y = SignalParts(what, x).pair;
    const Several<Options> all(what, y.real, options, inverse);
    for (int i = all.count; i-- > 0;) y = all.along(y, i, complex_form(y));
    if (!y.imaginary.defined()) y.imaginary = ops::zeros_of(y.real);
    return result_of(y);
  });
}
template <class Options>
ComplexPair several_of_real(const char* what, const Operand& x, const Options& options) {
  return attribute_errors(what, [&] {
    FftPair y{as_float(ArrayArg(x, {what, "x"})), {}};
    const Several<Options> all(what, y.real, options, /*inverse=*/false);
    all.need_axes(what);
    y = all.along(y, all.count - 1, FftForm::real_to_half);
    for (int i = all.count - 1; i-- > 0;) y = all.along(y, i, FftForm::complex);
    return result_of(y);
  });
}
template <class Options>
Tensor several_of_half(const char* what, const Signal& x, const Options& options) {
  return attribute_errors(what, [&] {
    FftPair y = SignalParts(what, x).pair;
    const Several<Options> all(what, y.real, options, /*inverse=*/true);
    all.need_axes(what);
    for (int i = 0; i < all.count - 1; ++i) y = all.along(y, i, complex_form(y));
    return all.along(y, all.count - 1, FftForm::half_to_real).real;
  });
}

/// The numbers 0, 1, ... below `front`, and behind them those from -`back` to -1, divided by n d.
Tensor frequencies(const char* what, std::int64_t n, double d, DType dtype, std::int64_t front, std::int64_t back) {
  return attribute_errors(what, [&] {
    if (n < 1) fail<ValueError>({what, "n"}, "is ", n, kExpected, "it must be at least 1");
    if (d == 0) fail<ValueError>({what, "d"}, "is 0", kExpected, "it must not be 0");
    if (dtype.given() && !dtype.is_float())
      fail<TypeError>({what, "dtype"}, "is ", dtype, kExpected, "it must be a float dtype");
    std::vector<double> all;
    for (std::int64_t k = 0; k < front; ++k) all.push_back(static_cast<double>(k));
    for (std::int64_t k = -back; k < 0; ++k) all.push_back(static_cast<double>(k));
    const double value = 1 / (static_cast<double>(n) * d);
    for (double& f : all) f *= value;
    const Tensor t = ops::as_tensor(all, float64, {what, "n"});
    return ops::cast(t, dtype.given() ? dtype : ops::default_float()).to(context().default_device);
  });
}
/// x with the element that is at size / 2, or (size + 1) / 2, as the first along each of the axes.
Tensor shifted(const char* what, const Operand& x, const Axes& axes, bool inverse) {
  return of_array(what, x, [&](const Tensor& t) {
    Tensor y = t;
    for (const int axis : places_of({what, "axes"}, axes, known_rank(t, {what, "x"}))) {
      const std::int64_t n = Access::desc(t).dims[axis];
      if (n >= 0) {
        const std::int64_t first = (n + (inverse ? 0 : 1)) / 2;
        if (first % std::max<std::int64_t>(n, 1))
          y = ops::concatenate({slice_along(y, axis, first, None), slice_along(y, axis, 0, first)}, axis);
        continue;
      }
      const Tensor size = size_along(t, axis), first = floor_divide(inverse ? size : size + 1, 2);
      const Tensor at = (places_below(size, cpu) + first) % ops::maximum(size, 1);
      y = ops::gather(y, at.to(t.device()), axis);
    }
    return y;
  });
}

}  // namespace

ComplexPair fft(const Signal& x, const FftOptions& options) { return of_complex("fft", x, options, false); }
ComplexPair ifft(const Signal& x, const FftOptions& options) { return of_complex("ifft", x, options, true); }
ComplexPair fft2(const Signal& x, const Fft2Options& options) { return several_of_complex("fft2", x, options, false); }
ComplexPair ifft2(const Signal& x, const Fft2Options& options) { return several_of_complex("ifft2", x, options, true); }
ComplexPair fftn(const Signal& x, const FftnOptions& options) { return several_of_complex("fftn", x, options, false); }
ComplexPair ifftn(const Signal& x, const FftnOptions& options) { return several_of_complex("ifftn", x, options, true); }
ComplexPair rfft(const Operand& x, const FftOptions& options) { return of_real("rfft", x, options, false); }
Tensor irfft(const Signal& x, const FftOptions& options) { return of_half("irfft", x, options, true); }
ComplexPair rfft2(const Operand& x, const Fft2Options& options) { return several_of_real("rfft2", x, options); }
Tensor irfft2(const Signal& x, const Fft2Options& options) { return several_of_half("irfft2", x, options); }
ComplexPair rfftn(const Operand& x, const FftnOptions& options) { return several_of_real("rfftn", x, options); }
Tensor irfftn(const Signal& x, const FftnOptions& options) { return several_of_half("irfftn", x, options); }
Tensor hfft(const Signal& x, const FftOptions& options) { return of_half("hfft", x, options, false); }
ComplexPair ihfft(const Operand& x, const FftOptions& options) { return of_real("ihfft", x, options, true); }

Tensor fftfreq(std::int64_t n, double d, DType dtype) {
  return frequencies("fftfreq", n, d, dtype, (n + 1) / 2, n / 2);
}
Tensor rfftfreq(std::int64_t n, double d, DType dtype) { return frequencies("rfftfreq", n, d, dtype, n / 2 + 1, 0); }
Tensor fftshift(const Operand& x, const Axes& axes) { return shifted("fftshift", x, axes, false); }
Tensor ifftshift(const Operand& x, const Axes& axes) { return shifted("ifftshift", x, axes, true); }

}  // namespace fft
}  // namespace numpy
}  // namespace kassette

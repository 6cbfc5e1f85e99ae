// nn_backend/numpy/fft_signals.cpp - cosine transforms, and the spectra of short frames: np::fft::dct, stft and their
// inverses.
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/fft.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace fft {

using ops::attribute_errors;
using ops::FftAttrs;
using ops::FftForm;
using ops::FftPair;

namespace {

FftPair along_last(const FftPair& x, FftForm form, std::int64_t n = FftAttrs::kOwn, bool inverse = false,
                   ops::FftNorm norm = ops::FftNorm::none) {
  FftAttrs a{.n = n, .axis = Access::desc(x.real).rank - 1, .form = form};
  a.how.inverse = inverse;
  a.how.norm = norm;
  return ops::fft(x, a);
}

// --- cosine transforms
// -------------------------------------------------------------------------------------------------

/// The first n numbers of the last axis, and zeros behind them.
Tensor fitted(const Tensor& x, std::int64_t n) {
  const TensorDesc& d = Access::desc(x);
  if (d.dims[d.rank - 1] == n) return x;
  ops::Pads zeros;
  zeros.rank = d.rank;
  zeros.after[d.rank - 1] = n;
  return slice_along(ops::pad(x, zeros), -1, 0, n);
}
/// The numbers of a cosine transform along the last axis: where they are, and how many.
struct Cosines {
  explicit Cosines(const Tensor& x)
      : dtype(x.dtype()), device(x.device()), place(ops::cast(places_along(x, Access::desc(x).rank - 1), float64)),
        n(ops::cast(size_along(x, -1), float64)) {}
  /// Of a float64 tensor on the host or on the device.
  Tensor as_x(const Tensor& t) const { return ops::cast(t, dtype).to(device); }
  Tensor angle(const Tensor& numerator) const { return numerator * (std::numbers::pi / 4 / n).to(device); }
  Tensor cosine(const Tensor& angle) const { return as_x(ops::cos(angle)); }
  Tensor sine(const Tensor& angle) const { return as_x(ops::sin(angle)); }
  /// `value` for the first number, and for the last one if that is wanted; 1 for the others.
  Tensor ends(double value, bool last) const {
    Tensor end = ops::equal(place, 0);
    if (last) end = ops::logical_or(end, ops::equal(place, (n - 1).to(device)));
    const Tensor one = ops::number_like(1, place);
    return as_x(ops::where(end, one * value, one));
  }
  DType dtype;
  Device device;
  Tensor place, n;  // float64: 0, 1, ...; the number on the host
};

/// A half that is real has a real spectrum, of which the second half mirrors the first.
Tensor type_1(const Tensor& x) {
  const int last = Access::desc(x).rank - 1;
  return ops::gather(along_last({x, {}}, FftForm::half_to_real).real, places_along(x, last), last);
}
/// The spectrum of the numbers at even places, followed by those at odd places from the last to the first, turned by
/// e^(-pi i k / (2 n)).
Tensor type_2(const Tensor& x, const Cosines& c) {
  const int last = Access::desc(x).rank - 1;
  const Tensor odd = ops::reverse(slice_along(x, last, 1, None, 2), last);
  const FftPair y =
      along_last({ops::concatenate({slice_along(x, last, 0, None, 2), odd}, last), {}}, FftForm::real_to_complex);
  const Tensor angle = c.angle(c.place * 2);
  return 2 * (y.real * c.cosine(angle) + y.imaginary * c.sine(angle));
}
/// The transpose of type 2.
Tensor type_3(const Tensor& x, const Cosines& c) {
  const Tensor z = x * c.ends(0.5, /*last=*/false), angle = c.angle(c.place * 2);
  const Tensor y = along_last({z * c.cosine(angle), -z * c.sine(angle)}, FftForm::complex_to_real).real;
  const Tensor k = places_along(x, Access::desc(x).rank - 1), n = size_along(x, -1).to(c.device);
  const Tensor half = floor_divide(k, 2);
  return 2 * ops::gather(y, ops::where(ops::equal(k % 2, 0), half, n - 1 - half), Access::desc(x).rank - 1);
}
Tensor type_4(const Tensor& x, const Cosines& c) {
  const int last = Access::desc(x).rank - 1;
  const Tensor before = c.angle(c.place * 2), behind = c.angle(c.place * 2 + 1), zeros = ops::zeros_of(x);
  const FftPair y = along_last(
      {ops::concatenate({x * c.cosine(before), zeros}, last), ops::concatenate({-x * c.sine(before), zeros}, last)},
      FftForm::complex);
  auto first = [&](const Tensor& t) { return ops::split_like(t, {x, x}, last)[0]; };
  return 2 * (first(y.real) * c.cosine(behind) + first(y.imaginary) * c.sine(behind));
}

Tensor cosine_transform(const char* what, const Operand& x, const DctOptions& options, bool inverse) {
  return attribute_errors(what, [&] {
    Tensor t = as_float(ArrayArg(x, {what, "x"}));
    const int axis = front_axis(t, options.axis, what);
    if (options.type < 1 || options.type > 4)
      fail<ValueError>({what, "type"}, "is ", options.type, kExpected, "it must be 1, 2, 3 or 4");
    const ops::FftNorm norm = norm_named(what, options.norm, inverse);
    t = with_last(t, axis);
    if (!options.n.is_none()) t = fitted(t, length_given(what, options.n));
    t = ops::checked(t, [what](const TensorSpec& d) {
      if (d.rank > 0 && d.dims[d.rank - 1] == 0)
        fail<ValueError>({what, "x"}, "of shape ", d, kExpected, "there must be one element along the axis");
    });
    const int type = inverse && options.type == 2 ? 3 : inverse && options.type == 3 ? 2 : options.type;
    const Cosines c(t);
    const bool orthogonal = norm == ops::FftNorm::sqrt_n;
    if (orthogonal && type % 2 == 1) t = t * c.ends(std::numbers::sqrt2, /*last=*/type == 1);
    Tensor y = type == 1 ? type_1(t) : type == 2 ? type_2(t, c) : type == 3 ? type_3(t, c) : type_4(t, c);
    if (orthogonal && type <= 2) y = y * c.ends(1 / std::numbers::sqrt2, /*last=*/type == 1);
    const Tensor twice = type == 1 ? 2 * (c.n - 1) : 2 * c.n;
    if (norm == ops::FftNorm::n) y = y * c.as_x(1 / twice);
    if (orthogonal) y = y * c.as_x(1 / ops::sqrt(twice));
    return with_last_at(y, axis);
  });
}

// --- frames
// ------------------------------------------------------------------------------------------------------------

struct Frames {
  std::int64_t length, stride, fft;
};
void check_frames(const char* what, const Frames& f) {
  for (const auto& [name, value] : {std::pair{"sequence_length", f.length}, {"sequence_stride", f.stride}})
    if (value < 1) fail<ValueError>({what, name}, "is ", value, kExpected, "it must be at least 1");
  if (f.fft < f.length)
    fail<ValueError>({what, "fft_length"}, "is ", f.fft, kExpected, "it must not be below sequence_length, ", f.length);
}
/// The weights of a frame, with zeros at both ends up to the length of the transform, in the dtype of x. Without a
/// window they are all 1.
Tensor window_of(const char* what, const Frames& f, const Name& window, const Operand& weights, const Tensor& x) {
  Tensor w;
  std::int64_t length = f.length;
  if (Access::kind(weights) != Scalar::kNone) {
    w = ops::cast(ArrayArg(weights, {what, "weights"}, x.dtype()), x.dtype());
    w = ops::checked(w, [what, length](const TensorSpec& d) {
      if (differ(d.rank, 1) || (d.rank == 1 && differ(d.dims[0], length)))
        fail<ValueError>({what, "weights"}, "of shape ", d, kExpected, "there must be sequence_length, ", length);
    });
  } else {
    const std::string name(window.given() ? window.data() : "", window.given() ? window.size() : 0);
    if (window.given() && name != "hann" && name != "hamming")
      fail<ValueError>({what, "window"}, "is '", name, "'", kExpected, "it must be 'hann', 'hamming' or None");
    if (!window.given()) length = f.fft;
    const double level = !window.given() || length == 1 ? 1 : name == "hann" ? 0.5 : 0.54;
    std::vector<double> numbers;
    for (std::int64_t k = 0; k < length; ++k)
      numbers.push_back(
          level - (1 - level) * std::cos(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length)));
    w = ops::cast(ops::as_tensor(numbers, float64, {what, "window"}), x.dtype());
  }
  ops::Pads zeros;
  zeros.rank = 1;
  zeros.before[0] = (f.fft - length) / 2;
  zeros.after[0] = f.fft - length - zeros.before[0];
  return (f.fft == length ? w : ops::pad(w, zeros)).to(x.device());
}
/// Frames (..., t, n) as one series (..., n + stride (t - 1)), the sum of them where they overlap.
Tensor overlapped(const Tensor& x, const Frames& f) {
  const int rank = Access::desc(x).rank;
  const std::int64_t parts = (f.fft + f.stride - 1) / f.stride, surplus = parts * f.stride - f.fft;
  ops::Pads zeros;
  zeros.rank = rank;
  zeros.after[rank - 1] = surplus;
  const Tensor whole = surplus ? ops::pad(x, zeros) : x;
  Tensor sum;
  for (std::int64_t i = 0; i < parts; ++i) {
    ops::Pads later;
    later.rank = rank;
    later.before[rank - 2] = i;
    later.after[rank - 2] = parts - 1 - i;
    const Tensor part = ops::pad(slice_along(whole, rank - 1, i * f.stride, (i + 1) * f.stride), later);
    sum = sum.defined() ? sum + part : part;
  }
  const Tensor series = ops::flatten(sum, rank - 2);
  return surplus ? slice_along(series, rank - 2, 0, -surplus) : series;
}

}  // namespace

Tensor dct(const Operand& x, const DctOptions& options) { return cosine_transform("dct", x, options, false); }
Tensor idct(const Operand& x, const DctOptions& options) { return cosine_transform("idct", x, options, true); }

ComplexPair stft(const Operand& x, std::int64_t sequence_length, std::int64_t sequence_stride, std::int64_t fft_length,
                 const StftOptions& options) {
  return attribute_errors("stft", [&] {
    const Frames f{sequence_length, sequence_stride, fft_length};
    check_frames("stft", f);
    Tensor t = as_float(ArrayArg(x, {"stft", "x"}));
    const int last = front_axis(t, -1, "stft");
    const std::int64_t edge = options.center ? f.fft / 2 : 0;
    if (options.center)
      t = ops::checked(t, [last](const TensorSpec& d) {
        if (d.rank >= 0 && d.dims[last] == 0)
          fail<ValueError>({"stft", "x"}, "of shape ", d, kExpected, "there must be one element to be reflected");
      });
    // Element j of frame i is at i * stride + j - edge, reflected at both ends.
    const Tensor n = size_along(t, last), zero = ops::scalar_tensor(0, int64);
    const Tensor frames = floor_divide(n + (2 * edge - f.fft), f.stride) + 1;
    Tensor at = ops::expand_dims(places_below(frames, cpu), 1) * f.stride +
                (places_below(ops::scalar_tensor(f.fft, int64), cpu) - edge);
    if (options.center) {
      const Tensor period = ops::maximum(n * 2 - 2, 1);
      at = at % period;
      at = ops::minimum(at, period - at);
      at = ops::minimum(at, ops::maximum(n - 1, zero));
    }
    const Tensor parts = ops::gather(t, at.to(t.device()), last);
    const Tensor w = window_of("stft", f, options.window, options.weights, t);
    const FftPair y = along_last({parts * w, {}}, FftForm::real_to_half, f.fft);
    return ComplexPair{y.real, y.imaginary};
  });
}

Tensor istft(const Signal& x, std::int64_t sequence_length, std::int64_t sequence_stride, std::int64_t fft_length,
             const IstftOptions& options) {
  return attribute_errors("istft", [&] {
    const Frames f{sequence_length, sequence_stride, fft_length};
    check_frames("istft", f);
    const FftPair z = SignalParts("istft", x).pair;
    const int rank = known_rank(z.real, {"istft", "x"});
    if (rank < 2)
      fail<ValueError>({"istft", "x"}, "of shape ", z.real.shape(), kExpected, "it must have two axes or more");
    const Tensor w = window_of("istft", f, options.window, options.weights, z.real);
    const Tensor parts = along_last(z, FftForm::half_to_real, f.fft, /*inverse=*/true, ops::FftNorm::n).real;
    const Tensor frames = ops::expand_dims(places_along(z.real, rank - 2), 1);
    const Tensor weight = overlapped(ops::cast(frames * 0, z.real.dtype()) + ops::square(w), f);
    const Tensor some = ops::greater(weight, 1e-10);
    Tensor y = overlapped(parts * w, f);
    y = y / ops::where(some, weight, ops::number_like(1, weight));
    const std::int64_t edge = options.center ? f.fft / 2 : 0;
    if (!options.length.is_none())
      return slice_along(y, rank - 2, edge, edge + length_given("istft", options.length, "length"));
    return edge ? slice_along(y, rank - 2, edge, -edge) : y;
  });
}

}  // namespace fft
}  // namespace numpy
}  // namespace kassette

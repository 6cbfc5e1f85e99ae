// ops/convolution/conv_zeros.cpp - on the CPU, convolutions with a cotangent, whose zeros count as zeros: Note [Zero
// cotangents].
#include "ops/convolution/conv_zeros.h"

#include "ops/engine/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/product/zero_terms.h"

namespace kassette::ops {
namespace {

/// The strides of images.
struct Layout {
  std::int64_t image, channel, space[3];
  Layout(const std::int64_t (&size)[3], std::int64_t channels, bool channels_first) {
    const std::int64_t step = channels_first ? 1 : channels;
    space[2] = step;
    space[1] = size[2] * step;
    space[0] = size[1] * size[2] * step;
    channel = channels_first ? size[0] * size[1] * size[2] : 1;
    image = size[0] * size[1] * size[2] * channels;
  }
  std::int64_t at(std::int64_t n, std::int64_t c, const std::int64_t (&p)[3]) const {
    return n * image + c * channel + p[0] * space[0] + p[1] * space[1] + p[2] * space[2];
  }
};

/// The products of a convolution: each combines an element of x, a weight, and an element of y.
struct Products {
  ConvShape s;
  Layout x, y;
  std::int64_t multiplier;

  explicit Products(const ConvShape& shape)
      : s(shape), x(shape.in, shape.c_in, shape.channels_first), y(shape.out, shape.c_out, shape.channels_first),
        multiplier(shape.depthwise ? shape.c_out / shape.c_in : 0) {}
  std::int64_t weight(std::int64_t tap, std::int64_t c, std::int64_t f) const {
    return s.depthwise ? tap * s.c_out + f : (tap * s.c_in + c) * s.c_out + f;
  }
  /// Sets the point of x that tap `tap` of the window at point q of y reads; false if that is padding.
  bool point_of_x(const std::int64_t (&q)[3], std::int64_t tap, std::int64_t (&p)[3]) const {
    for (int d = 2; d >= 0; --d) {
      const WindowAxis& w = s.window[d];
      p[d] = q[d] * w.stride - w.before(s.in[d]) + tap % w.size * w.dilation;
      tap /= w.size;
      if (p[d] < 0 || p[d] >= s.in[d]) return false;
    }
    return true;
  }
  /// The reverse; false if no window reads the point with that tap.
  bool point_of_y(const std::int64_t (&p)[3], std::int64_t tap, std::int64_t (&q)[3]) const {
    for (int d = 2; d >= 0; --d) {
      const WindowAxis& w = s.window[d];
      const std::int64_t from = p[d] + w.before(s.in[d]) - tap % w.size * w.dilation;
      tap /= w.size;
      if (from < 0 || from % w.stride != 0 || (q[d] = from / w.stride) >= s.out[d]) return false;
    }
    return true;
  }
};

/// Takes an index apart, the last size first.
struct Digits {
  std::int64_t i;
  std::int64_t next(std::int64_t size) {
    const std::int64_t rest = i / size, digit = i - rest * size;
    i = rest;
    return digit;
  }
};
/// The image, channel and point of an element of images.
struct Place {
  std::int64_t n, c, p[3];
  Place(std::int64_t i, const std::int64_t (&size)[3], std::int64_t channels, bool channels_first) {
    Digits at{i};
    if (!channels_first) c = at.next(channels);
    for (int d = 2; d >= 0; --d) p[d] = at.next(size[d]);
    if (channels_first) c = at.next(channels);
    n = at.i;
  }
};

/// Calls each(index of the element of x or y, index of the weight) for the terms of a result, until it returns false.
template <class Each>
void terms_of_y(const Products& of, std::int64_t i, Each each) {
  const ConvShape& s = of.s;
  const Place y(i, s.out, s.c_out, s.channels_first);
  const std::int64_t first = s.depthwise ? y.c / of.multiplier : 0, last = s.depthwise ? first + 1 : s.c_in;
  std::int64_t p[3];
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    if (!of.point_of_x(y.p, tap, p)) continue;
    for (std::int64_t c = first; c < last; ++c)
      if (!each(of.x.at(y.n, c, p), of.weight(tap, c, y.c))) return;
  }
}
template <class Each>
void terms_of_x(const Products& of, std::int64_t i, Each each) {
  const ConvShape& s = of.s;
  const Place x(i, s.in, s.c_in, s.channels_first);
  const std::int64_t first = x.c * of.multiplier, last = s.depthwise ? first + of.multiplier : s.c_out;
  std::int64_t q[3];
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    if (!of.point_of_y(x.p, tap, q)) continue;
    for (std::int64_t f = first; f < last; ++f)
      if (!each(of.y.at(x.n, f, q), of.weight(tap, x.c, f))) return;
  }
}
/// The same for a weight: each(index of x, index of y).
template <class Each>
void terms_of_weight(const Products& of, std::int64_t i, Each each) {
  const ConvShape& s = of.s;
  Digits at{i};
  const std::int64_t f = at.next(s.c_out), c = s.depthwise ? f / of.multiplier : at.next(s.c_in), tap = at.i;
  std::int64_t p[3], q[3];
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (q[0] = 0; q[0] < s.out[0]; ++q[0])
      for (q[1] = 0; q[1] < s.out[1]; ++q[1])
        for (q[2] = 0; q[2] < s.out[2]; ++q[2])
          if (of.point_of_x(q, tap, p) && !each(of.x.at(n, c, p), of.y.at(n, f, q))) return;
}

}  // namespace

void respect_zeros(const OpCall& call, const ConvShape& s, ConvResult result) {
  const Cotangent which = form_of(call.attrs).cotangent;
  if (which == Cotangent::neither) return;
  const bool a_is = which == Cotangent::a;
  TensorDesc& out = *call.out[0];
  const std::int64_t n = out.numel();
  if (!may_meet(out.dtype, call.in[a_is].data, call.spec(a_is).numel(), out.data(), n)) return;
  const Products of(s);
  dispatch(out.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (!std::is_integral_v<T>) {
      const T *a = call.in[0].as<T>(), *b = call.in[1].as<T>();
      replace_nans(call.out_as<T>(), n, [&](std::int64_t i) {
        TermSum sum;
        auto add = [&](std::int64_t at_a, std::int64_t at_b) {
          const auto x = convert_one<double>(a[at_a]), y = convert_one<double>(b[at_b]);
          return a_is ? sum.add(x, y) : sum.add(y, x);
        };
        if (result == ConvResult::y) terms_of_y(of, i, add);
        else if (result == ConvResult::x) terms_of_x(of, i, add);
        else terms_of_weight(of, i, add);
        return sum.value;
      });
    }
  });
}

}  // namespace kassette::ops

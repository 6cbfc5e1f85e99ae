// tests/nn_backend/convolution/convolution_reference.h - convolution, pooling, resizing and local layers by their
// definitions, with gradients: plain loops in double that share nothing with the library.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace kassette::test {

using List = std::vector<double>;
using Size = std::int64_t;

/// A window on an axis of n elements.
struct RefAxis {
  Size n = 1, size = 1, stride = 1, dilation = 1, out = 1, before = 0;

  Size extent() const { return (size - 1) * dilation + 1; }
  /// `same` pads both sides, with the odd element at the end; `causal` pads only the beginning. `valid` makes n at
  /// least as large as the window.
  void set(Size elements, const std::string& padding) {
    n = elements;
    if (padding == "valid") {
      n = std::max(n, extent());
      out = (n - extent()) / stride + 1;
      before = 0;
    } else if (padding == "causal") {
      out = (n - 1) / stride + 1;
      before = extent() - 1;
    } else {
      out = (n + stride - 1) / stride;
      before = std::max<Size>((out - 1) * stride + extent() - n, 0) / 2;
    }
  }
};

/// Three spatial axes, of which the last `axes` exist. Tensors are (batch, space..., channels), or have the channels
/// before space.
struct RefWindows {
  int axes = 2;
  bool channels_first = false;
  Size batch = 1, c_in = 1, c_out = 1;
  RefAxis axis[3];

  Size in_points() const { return axis[0].n * axis[1].n * axis[2].n; }
  Size out_points() const { return axis[0].out * axis[1].out * axis[2].out; }
  Size taps() const { return axis[0].size * axis[1].size * axis[2].size; }
  std::size_t at(Size image, Size point, Size c, Size points, Size channels) const {
    return static_cast<std::size_t>(channels_first ? (image * channels + c) * points + point
                                                   : (image * points + point) * channels + c);
  }
  std::size_t in_at(Size image, Size point, Size c) const { return at(image, point, c, in_points(), c_in); }
  std::size_t out_at(Size image, Size point, Size c) const { return at(image, point, c, out_points(), c_out); }

  /// f(image, point of the result, tap, point of the input), for all taps that lie on an element, with the taps of a
  /// window in row-major order.
  template <class F>
  void each(F f) const {
    for (Size image = 0; image < batch; ++image)
      for (Size p = 0; p < out_points(); ++p)
        for (Size t = 0; t < taps(); ++t) {
          const Size place[3] = {p / axis[2].out / axis[1].out, p / axis[2].out % axis[1].out, p % axis[2].out};
          const Size tap[3] = {t / axis[2].size / axis[1].size, t / axis[2].size % axis[1].size, t % axis[2].size};
          Size q = 0;
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            const Size i = place[d] * axis[d].stride + tap[d] * axis[d].dilation - axis[d].before;
            inside &= i >= 0 && i < axis[d].n;
            q = q * axis[d].n + i;
          }
          if (inside) f(image, p, t, q);
        }
  }
};

/// A result and the gradients of sum(y * dy) by each input.
struct RefResult {
  List y;
  std::vector<List> gradients;
};

inline List zeros(const List& like) { return List(like.size(), 0.0); }

/// y is bilinear in x and w: each(f) calls f(i, j, o) for every product x[i] * w[j] that is a term of y[o].
template <class Each>
RefResult ref_bilinear(const List& x, const List& w, const List& dy, Each each) {
  RefResult r{zeros(dy), {zeros(x), zeros(w)}};
  each([&](std::size_t i, std::size_t j, std::size_t o) {
    r.y[o] += x[i] * w[j];
    r.gradients[0][i] += dy[o] * w[j];
    r.gradients[1][j] += x[i] * dy[o];
  });
  return r;
}
/// f(element with c_in channels, weight, element with c_out channels) for a kernel (taps, c_in, c_out).
template <class F>
void each_product(const RefWindows& g, F f) {
  g.each([&](Size image, Size p, Size t, Size q) {
    for (Size c = 0; c < g.c_in; ++c)
      for (Size o = 0; o < g.c_out; ++o)
        f(g.in_at(image, q, c), static_cast<std::size_t>((t * g.c_in + c) * g.c_out + o), g.out_at(image, p, o));
  });
}

/// x (n points) with a kernel (taps, c_in, c_out).
inline RefResult ref_convolution(const RefWindows& g, const List& x, const List& w, const List& dy) {
  return ref_bilinear(x, w, dy, [&](auto term) { each_product(g, term); });
}

/// Each element of x, of sizes g.axis[].out and with c_out channels, adds its kernel (taps, c_in, c_out) to a result
/// of n points and c_in channels.
inline RefResult ref_transposed(const RefWindows& g, const List& x, const List& w, const List& dy) {
  return ref_bilinear(x, w, dy, [&](auto term) {
    each_product(g, [&](std::size_t to, std::size_t j, std::size_t from) { term(from, j, to); });
  });
}

/// Channel c with filter m is channel c * multiplier + m.
inline RefResult ref_depthwise(const RefWindows& g, const List& x, const List& w, const List& dy) {
  return ref_bilinear(x, w, dy, [&](auto term) {
    g.each([&](Size image, Size p, Size t, Size q) {
      for (Size o = 0; o < g.c_out; ++o)
        term(g.in_at(image, q, o / (g.c_out / g.c_in)), static_cast<std::size_t>(t * g.c_out + o),
             g.out_at(image, p, o));
    });
  });
}

/// Depthwise, then a matrix (c_out, filters) at each point.
inline RefResult ref_separable(const RefWindows& g, const List& x, const List& w, const List& v, const List& dy,
                               Size filters) {
  const List none(static_cast<std::size_t>(g.batch * g.out_points() * g.c_out));
  const List middle = ref_depthwise(g, x, w, none).y;
  List y = zeros(dy), dmiddle = zeros(middle), dv = zeros(v);
  for (Size image = 0; image < g.batch; ++image)
    for (Size p = 0; p < g.out_points(); ++p)
      for (Size c = 0; c < g.c_out; ++c)
        for (Size f = 0; f < filters; ++f) {
          const std::size_t i = g.out_at(image, p, c), j = static_cast<std::size_t>(c * filters + f),
                            o = g.at(image, p, f, g.out_points(), filters);
          y[o] += middle[i] * v[j];
          dmiddle[i] += dy[o] * v[j];
          dv[j] += middle[i] * dy[o];
        }
  RefResult r = ref_depthwise(g, x, w, dmiddle);
  r.y = y;
  r.gradients.push_back(dv);
  return r;
}

/// A kernel (places, features, c_out): features are positions before channels, or, of images with their channels first,
/// channels before positions.
inline RefResult ref_local(const RefWindows& g, const List& x, const List& w, const List& dy) {
  const bool channels_major = g.channels_first && g.axes == 2;
  return ref_bilinear(x, w, dy, [&](auto term) {
    g.each([&](Size image, Size p, Size t, Size q) {
      for (Size c = 0; c < g.c_in; ++c) {
        const Size feature = channels_major ? c * g.taps() + t : t * g.c_in + c;
        for (Size o = 0; o < g.c_out; ++o)
          term(g.in_at(image, q, c), static_cast<std::size_t>((p * g.taps() * g.c_in + feature) * g.c_out + o),
               g.out_at(image, p, o));
      }
    });
  });
}

/// The first of the greatest elements, NaN among them, takes the gradient.
inline RefResult ref_max_pool(const RefWindows& g, const List& x, const List& dy) {
  RefResult r{zeros(dy), {zeros(x)}};
  std::vector<std::ptrdiff_t> best(dy.size(), -1);
  g.each([&](Size image, Size p, Size, Size q) {
    for (Size c = 0; c < g.c_in; ++c) {
      const std::size_t i = g.in_at(image, q, c), o = g.out_at(image, p, c);
      const bool wins = best[o] < 0 || x[i] > r.y[o] || (std::isnan(x[i]) && !std::isnan(r.y[o]));
      if (!wins) continue;
      best[o] = static_cast<std::ptrdiff_t>(i);
      r.y[o] = x[i];
    }
  });
  for (std::size_t o = 0; o < dy.size(); ++o) r.gradients[0][static_cast<std::size_t>(best[o])] += dy[o];
  return r;
}

/// Means over the elements that are not padding.
inline RefResult ref_avg_pool(const RefWindows& g, const List& x, const List& dy) {
  RefResult r{zeros(dy), {zeros(x)}};
  List count = zeros(dy);
  g.each([&](Size image, Size p, Size, Size q) {
    for (Size c = 0; c < g.c_in; ++c) {
      r.y[g.out_at(image, p, c)] += x[g.in_at(image, q, c)];
      count[g.out_at(image, p, c)] += 1;
    }
  });
  for (std::size_t o = 0; o < dy.size(); ++o) r.y[o] /= count[o];
  g.each([&](Size image, Size p, Size, Size q) {
    for (Size c = 0; c < g.c_in; ++c)
      r.gradients[0][g.in_at(image, q, c)] += dy[g.out_at(image, p, c)] / count[g.out_at(image, p, c)];
  });
  return r;
}

/// Result i of an axis is at position i / stride of n elements; bilinear interpolates, otherwise the element before
/// that position is used. g.axis[].stride are the factors, g.axis[].out the sizes of the result.
inline RefResult ref_resize(const RefWindows& g, bool bilinear, const List& x, const List& dy) {
  RefResult r{zeros(dy), {zeros(x)}};
  for (Size image = 0; image < g.batch; ++image)
    for (Size p = 0; p < g.out_points(); ++p) {
      const Size place[3] = {p / g.axis[2].out / g.axis[1].out, p / g.axis[2].out % g.axis[1].out, p % g.axis[2].out};
      for (int corner = 0; corner < 8; ++corner) {
        double share = 1;
        Size q = 0;
        for (int d = 0; d < 3; ++d) {
          const double from = static_cast<double>(place[d]) / static_cast<double>(g.axis[d].stride),
                       low = std::floor(from);
          const bool upper = corner >> d & 1;
          share *= !bilinear ? !upper : upper ? from - low : 1 - (from - low);
          q = q * g.axis[d].n +
              (upper ? std::min<Size>(static_cast<Size>(std::ceil(from)), g.axis[d].n - 1) : static_cast<Size>(low));
        }
        if (share == 0) continue;
        for (Size c = 0; c < g.c_in; ++c) {
          r.y[g.out_at(image, p, c)] += share * x[g.in_at(image, q, c)];
          r.gradients[0][g.in_at(image, q, c)] += share * dy[g.out_at(image, p, c)];
        }
      }
    }
  return r;
}

}  // namespace kassette::test

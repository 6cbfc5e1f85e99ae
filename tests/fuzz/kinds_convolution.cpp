// tests/fuzz/kinds_convolution.cpp - the random calls of convolution, pooling, padding and resizing.
#include <algorithm>

#include "tests/fuzz/calls.h"

namespace kassette::test {

namespace K = kassette::backend;

namespace {

using Sizes = std::vector<std::int64_t>;

Name name_of(const char* text) { return text ? Name(text) : Name(K::None); }

/// An image with some axes of space, and how it is convolved.
struct Image {
  int x;
  DType dtype;
  const char* format;
  const char* padding;
  Sizes space, strides, dilation;
  std::int64_t channels;
};

/// A number for each axis, or one for all axes; sometimes neither.
Sizes for_each_axis(Arguments& a, int axes, int most) {
  if (a.random.one_in(15)) return a.sizes();
  Sizes list;
  for (int i = a.random.one_in(3) ? 1 : axes; i > 0; --i)
    list.push_back(a.random.one_in(20) ? a.count() : 1 + a.random.below(most));
  return list;
}

Sizes in_order(const Image& m, std::int64_t batch, const Sizes& space, std::int64_t channels) {
  Sizes shape{batch};
  const bool first = m.format && !std::strcmp(m.format, "channels_first");
  if (first) shape.push_back(channels);
  shape.insert(shape.end(), space.begin(), space.end());
  if (!first) shape.push_back(channels);
  return shape;
}

Shape shape_from(const Sizes& list) { return Shape(list.data(), static_cast<int>(list.size())); }

Image image(Arguments& a, int axes, bool any_dtype = false) {
  Image m{};
  m.dtype = any_dtype ? a.dtype() : a.float_dtype();
  m.format = a.random.one_in(25) ? "channels" : a.random.of<const char*>({"channels_last", "channels_first", nullptr});
  m.padding = a.random.one_in(25)                   ? "full"
              : a.random.one_in(axes == 1 ? 3 : 25) ? "causal"
                                                    : a.random.of<const char*>({"valid", "same"});
  m.channels = a.random.one_in(12) ? 0 : 1 + a.random.below(3);
  for (int i = 0; i < axes; ++i) m.space.push_back(a.random.one_in(12) ? 0 : 1 + a.random.below(6));
  m.x =
      a.random.one_in(12) ? a.any() : a.with(shape_from(in_order(m, a.random.below(3), m.space, m.channels)), m.dtype);
  m.strides = for_each_axis(a, axes, 3);
  m.dilation = a.random.one_in(3) ? for_each_axis(a, axes, 3) : Sizes{1};
  a.say(", strides " + words(m.strides) + " " + m.padding + " " + (m.format ? m.format : "None") + " dilation " +
        words(m.dilation));
  return m;
}

/// (size of each axis..., channels..., more), or nearly so.
int kernel(Arguments& a, const Image& m, int axes, std::int64_t channels, std::int64_t more) {
  if (a.random.one_in(12)) return a.any();
  Sizes shape;
  for (int i = 0; i < axes; ++i) shape.push_back(a.random.one_in(15) ? 0 : 1 + a.random.below(3));
  shape.push_back(a.random.one_in(12) ? a.random.below(4) : channels);
  shape.push_back(more);
  return a.with(shape_from(shape), a.random.one_in(15) ? a.dtype() : m.dtype);
}

template <class F>
void convolution(Arguments& a, Call& call, int axes, F f) {
  const Image m = image(a, axes);
  const int k = kernel(a, m, axes, m.channels, a.random.below(4));
  RUN { return {f(in[m.x], in[k], Dims(m.strides), name_of(m.padding), name_of(m.format), Dims(m.dilation))}; };
}

/// What a convolution of such strides would make of the result, or anything.
template <class F>
void transposed(Arguments& a, Call& call, int axes, F f) {
  const Image m = image(a, axes);
  const std::int64_t out = a.random.below(4);
  const int k = kernel(a, m, axes, out, m.channels);
  Sizes space;
  for (std::size_t i = 0; i < static_cast<std::size_t>(axes); ++i) {
    const std::int64_t stride = m.strides.empty() ? 1 : m.strides[std::min(i, m.strides.size() - 1)];
    space.push_back(m.space[i] * std::clamp<std::int64_t>(stride, 1, 9) + a.random.below(3) - 1);
  }
  Sizes shape = in_order(m, a.random.one_in(2) ? -1 : 2, space, out);
  if (shape[0] < 0 && a.shape_of(m.x).rank() > 0) shape[0] = a.shape_of(m.x)[0];
  if (a.random.one_in(8)) shape = a.sizes();
  const int t = a.shape_tensor();
  const bool tensor = a.random.one_in(6);
  a.say(tensor ? ", by a tensor" : ", shape " + words(shape));
  RUN {
    return {f(in[m.x], in[k], tensor ? Dims(in[t]) : Dims(shape), Dims(m.strides), name_of(m.padding),
              name_of(m.format), Dims(m.dilation))};
  };
}

template <class F>
void separable(Arguments& a, Call& call, int axes, F f) {
  const Image m = image(a, axes);
  const std::int64_t multiplier = a.random.below(3);
  const int k = kernel(a, m, axes, m.channels, multiplier);
  Sizes point(static_cast<std::size_t>(axes), 1);
  point.push_back(a.random.one_in(10) ? a.random.below(4) : m.channels * multiplier);
  point.push_back(a.random.below(3));
  const int p = a.random.one_in(12) ? a.any() : a.with(shape_from(point), m.dtype);
  RUN { return {f(in[m.x], in[k], in[p], Dims(m.strides), name_of(m.padding), name_of(m.format), Dims(m.dilation))}; };
}

template <class F>
void pooled(Arguments& a, Call& call, int axes, F f) {
  const Image m = image(a, axes);
  const Sizes size = for_each_axis(a, axes, 3);
  const char* mode = a.random.one_in(20) ? "sum" : a.random.of<const char*>({"max", "avg"});
  a.say(", " + words(size) + " " + mode);
  RUN { return {f(in[m.x], Dims(size), Dims(m.strides), name_of(m.padding), name_of(m.format), name_of(mode))}; };
}

/// The places of a kernel where each has its own.
std::int64_t places(const Image& m, const Sizes& size, std::size_t axis) {
  const std::int64_t stride = std::max<std::int64_t>(1, axis < m.strides.size() ? m.strides[axis] : 1),
                     n = m.space[axis] - size[axis];
  return n < 0 ? 0 : n / stride + 1;
}

void local(Arguments& a, Call& call, int axes) {
  Image m = image(a, axes);
  m.strides.resize(static_cast<std::size_t>(axes), 1);
  Sizes size, out;
  std::int64_t all = 1, features = m.channels;
  for (std::size_t i = 0; i < static_cast<std::size_t>(axes); ++i) {
    size.push_back(1 + a.random.below(3));
    out.push_back(places(m, size, i));
    all *= out.back();
    features *= size.back();
  }
  if (a.random.one_in(15)) size = a.sizes();
  if (a.random.one_in(15)) out = a.sizes();
  const int k = a.random.one_in(12) ? a.any() : a.with({all, features, a.random.below(3)}, m.dtype);
  a.say(", kernel " + words(size) + " strides " + words(m.strides) + " out " + words(out));
  RUN {
    if (axes == 1) return {K::local_conv1d(in[m.x], in[k], Dims(size), Dims(m.strides), name_of(m.format))};
    return {K::local_conv2d(in[m.x], in[k], Dims(size), Dims(m.strides), Dims(out), name_of(m.format))};
  };
}

/// Pairs of numbers: as a tensor, which is what they become.
Tensor pairs(Arguments& a, int axes) {
  Sizes n;
  for (int i = 0; i < 2 * axes; ++i) n.push_back(a.random.one_in(20) ? a.count() : a.random.below(3));
  if (a.random.one_in(20)) n = a.sizes();
  a.say(", " + words(n));
  if (n.empty()) return K::zeros({0}, "int64");
  Tensor t = K::constant(n, "int64");
  return axes > 1 && n.size() % 2 == 0 && !a.random.one_in(20) ? K::reshape(t, {-1, 2}) : t;
}

}  // namespace

void add_convolutions(std::vector<Kind>& kinds) {
#define OPTIONS const Tensor &x, const Tensor &k, const Dims &s, Name p, Name f, const Dims &d
  const std::vector<Kind> all = {
      {"conv1d",
       [](Arguments& a, Call& call) { convolution(a, call, 1, [](OPTIONS) { return K::conv1d(x, k, s, p, f, d); }); }},
      {"conv2d",
       [](Arguments& a, Call& call) { convolution(a, call, 2, [](OPTIONS) { return K::conv2d(x, k, s, p, f, d); }); }},
      {"conv3d",
       [](Arguments& a, Call& call) { convolution(a, call, 3, [](OPTIONS) { return K::conv3d(x, k, s, p, f, d); }); }},
      {"depthwise_conv2d",
       [](Arguments& a, Call& call) {
         convolution(a, call, 2, [](OPTIONS) { return K::depthwise_conv2d(x, k, s, p, f, d); });
       }},
      {"conv2d_transpose",
       [](Arguments& a, Call& call) {
         transposed(a, call, 2,
                    [](const Tensor& x, const Tensor& k, const Dims& o, const Dims& s, Name p, Name f, const Dims& d) {
                      return K::conv2d_transpose(x, k, o, s, p, f, d);
                    });
       }},
      {"conv3d_transpose",
       [](Arguments& a, Call& call) {
         transposed(a, call, 3,
                    [](const Tensor& x, const Tensor& k, const Dims& o, const Dims& s, Name p, Name f, const Dims&) {
                      return K::conv3d_transpose(x, k, o, s, p, f);
                    });
       }},
      {"separable_conv1d",
       [](Arguments& a, Call& call) {
         separable(a, call, 1,
                   [](const Tensor& x, const Tensor& k, const Tensor& q, const Dims& s, Name p, Name f, const Dims& d) {
                     return K::separable_conv1d(x, k, q, s, p, f, d);
                   });
       }},
      {"separable_conv2d",
       [](Arguments& a, Call& call) {
         separable(a, call, 2,
                   [](const Tensor& x, const Tensor& k, const Tensor& q, const Dims& s, Name p, Name f, const Dims& d) {
                     return K::separable_conv2d(x, k, q, s, p, f, d);
                   });
       }},
      {"pool2d",
       [](Arguments& a, Call& call) {
         pooled(a, call, 2, [](const Tensor& x, const Dims& n, const Dims& s, Name p, Name f, Name mode) {
           return K::pool2d(x, n, s, p, f, mode);
         });
       }},
      {"pool3d",
       [](Arguments& a, Call& call) {
         pooled(a, call, 3, [](const Tensor& x, const Dims& n, const Dims& s, Name p, Name f, Name mode) {
           return K::pool3d(x, n, s, p, f, mode);
         });
       }},
      {"local_conv1d", [](Arguments& a, Call& call) { local(a, call, 1); }},
      {"local_conv2d", [](Arguments& a, Call& call) { local(a, call, 2); }},
      {"bias_add",
       [](Arguments& a, Call& call) {
         const Image m = image(a, a.random.below(4), true);
         Sizes shape{m.channels};
         if (a.random.one_in(3)) shape.insert(shape.begin(), m.space.begin(), m.space.end());
         const int b = a.random.one_in(10)
                           ? a.any()
                           : a.with(shape_from(shape), a.random.one_in(10) ? a.dtype() : call.in[m.x].dtype());
         RUN { return {K::bias_add(in[m.x], in[b], name_of(m.format))}; };
       }},
      {"temporal_padding",
       [](Arguments& a, Call& call) {
         const Image m = image(a, 1, true);
         const Tensor p = pairs(a, 1);
         RUN { return {K::temporal_padding(in[m.x], p)}; };
       }},
      {"spatial_2d_padding",
       [](Arguments& a, Call& call) {
         const Image m = image(a, 2, true);
         const Tensor p = pairs(a, 2);
         RUN { return {K::spatial_2d_padding(in[m.x], p, name_of(m.format))}; };
       }},
      {"spatial_3d_padding",
       [](Arguments& a, Call& call) {
         const Image m = image(a, 3, true);
         const Tensor p = pairs(a, 3);
         RUN { return {K::spatial_3d_padding(in[m.x], p, name_of(m.format))}; };
       }},
      {"resize_images",
       [](Arguments& a, Call& call) {
         const Image m = image(a, 2, true);
         const int h = a.count(), w = a.count();
         const char* how = a.random.one_in(20) ? "cubic" : a.random.of<const char*>({"nearest", "bilinear"});
         a.say(", " + words(h) + " x " + words(w) + " " + how);
         RUN { return {K::resize_images(in[m.x], h, w, name_of(m.format), name_of(how))}; };
       }},
      {"resize_volumes",
       [](Arguments& a, Call& call) {
         const Image m = image(a, 3, true);
         const int d = a.count(), h = a.count(), w = a.count();
         a.say(", " + words(d) + " x " + words(h) + " x " + words(w));
         RUN { return {K::resize_volumes(in[m.x], d, h, w, name_of(m.format))}; };
       }},
  };
#undef OPTIONS
  kinds.insert(kinds.end(), all.begin(), all.end());
}

}  // namespace kassette::test

// nn_backend/nn/convolution.cpp - convolution with groups, pooling, and patches of images, as Keras 3 has them.
#include <kassette/nn/convolution.h>

#include <algorithm>

#include "core/rank.h"
#include "nn_backend/nn/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/windows.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "ops/shape/checked.h"

namespace kassette::nn {

using namespace ops;
using backend::detail::is_channels_first;
using backend::detail::numbers_for;

namespace {

/// How many axes of space an image has, which is `rank` - 2.
int space_of(const char* what, const Tensor& x) {
  const int axes = numpy::known_rank(x, {what, "x"}) - 2;
  if (axes < 1 || axes > 3)
    fail<ValueError>({what, "x"}, "has shape ", x.shape(), kExpected,
                     "it must have axes of samples and of channels, and one to three of space");
  return axes;
}

Tensor convolved(const Tensor& x, const Tensor& kernel, int axes, const ConvOptions& options) {
  if (axes == 1) return backend::conv1d(x, kernel, options);
  return axes == 2 ? backend::conv2d(x, kernel, options) : backend::conv3d(x, kernel, options);
}

/// Pooling along the axes of space; of one as of two, of which the second has size 1.
Tensor pooled(const char* what, const char* mode, const Operand& inputs, const Dims& pool_size,
              const PoolOptions& options) {
  return of_floats(what, inputs, [&](const Tensor& x) {
    const int axes = space_of(what, x);
    std::int64_t size[3] = {1, 1, 1}, strides[3] = {1, 1, 1};
    numbers_for(what, "pool_size", pool_size, axes, size);
    if (options.strides.size_ < 0 && !options.strides.whole_) std::copy_n(size, 3, strides);
    else numbers_for(what, "strides", options.strides, axes, strides);
    const bool first = is_channels_first({what, "data_format"}, options.data_format);
    const Name format = first ? "channels_first" : "channels_last";
    if (axes == 3)
      return backend::pool3d(x, {size[0], size[1], size[2]}, {strides[0], strides[1], strides[2]}, options.padding,
                             format, mode);
    const Dims of_two{size[0], size[1]}, by_two{strides[0], strides[1]};
    if (axes == 2) return backend::pool2d(x, of_two, by_two, options.padding, format, mode);
    const int added = first ? 3 : 2;
    return squeeze(backend::pool2d(expand_dims(x, added), of_two, by_two, options.padding, format, mode), added);
  });
}

/// The windows of an axis of n elements for m results: the places of the elements, row by row, of which the last is
/// repeated in shorter windows; and their lengths. All are int64 on the host.
struct Windows {
  std::int64_t longest = 0;
  Tensor lengths, places, inside;  // inside: the places that are not repeated
  Windows(std::int64_t n, std::int64_t m) {
    for (std::int64_t i = 0; i < m; ++i) longest = std::max(longest, ((i + 1) * n + m - 1) / m - i * n / m);
    const Tensor i = numpy::places_below(scalar_tensor(m, int64), cpu),
                 j = numpy::places_below(scalar_tensor(longest, int64), cpu);
    const Tensor first = kassette::floor_divide(i * n, m);
    lengths = kassette::floor_divide((i + 1) * n + (m - 1), m) - first;
    const Tensor length = expand_dims(lengths, 1);
    places = expand_dims(first, 1) + ops::minimum(j, length - 1);
    inside = less(j, length);
  }
};

/// x with the windows of one axis reduced, to their largest elements or to their means.
Tensor adapted(const char* what, const Tensor& x, int axis, std::int64_t m, bool largest) {
  const std::int64_t n = numpy::known_size(x, axis, {what, "inputs"});
  if (n == 0) fail<ValueError>({what, "inputs"}, "has shape ", x.shape(), kExpected, "there must be elements");
  const Windows windows(n, m);
  const Tensor all = gather(x, windows.places.to(x.device()), axis);
  if (largest) return ops::max(all, axis + 1);
  // The mean is of the elements that are not repeated.
  const int behind = Access::desc(x).rank - axis - 1;
  auto spread = [&](Tensor t) {
    for (int i = 0; i < behind; ++i) t = expand_dims(t, -1);
    return t.to(x.device());
  };
  return ops::sum(where(spread(windows.inside), all, 0.0), axis + 1) / spread(cast(windows.lengths, x.dtype()));
}
Tensor adaptive(const char* what, const Operand& inputs, const Dims& output_size, Name data_format, bool largest) {
  return of_wide_floats(what, inputs, [&](Tensor x) {
    const int axes = space_of(what, x);
    std::int64_t size[3];
    numbers_for(what, "output_size", output_size, axes, size);
    const int first = is_channels_first({what, "data_format"}, data_format) ? 2 : 1;
    for (int i = 0; i < axes; ++i) x = adapted(what, x, first + i, size[i], largest);
    return x;
  });
}

/// The size of an axis, as a number if it is known. A -1 in its place could not be inferred without elements.
class SizeNow {
 public:
  SizeNow(const Tensor& x, int axis) : n_(Access::desc(x).dims[axis]) {
    if (n_ < 0) now_ = numpy::size_along(x, axis);
  }
  operator Dim() const { return n_ < 0 ? Dim(now_) : Dim(n_); }

 private:
  std::int64_t n_;
  Tensor now_;
};

/// The sizes of x, of which one is divided or multiplied: reshapes and transposes between depth and space.
Tensor rearranged(const char* what, const Operand& operand, int block, Name data_format, bool to_space) {
  return attribute_errors(what, [&] {
    const ArrayArg array(operand, {what, "x"});
    const Tensor& x = array;
    if (block < 1) fail<ValueError>({what, "block_size"}, "is ", block, kExpected, "it must be at least 1");
    if (numpy::known_rank(x, {what, "x"}) != 4)
      fail<ValueError>({what, "x"}, "has shape ", x.shape(), kExpected, "it must have four axes");
    const bool first = is_channels_first({what, "data_format"}, data_format);
    const int c = first ? 1 : 3, h = first ? 2 : 1, w = first ? 3 : 2;
    const std::int64_t b = block;
    auto size = [&](int axis) { return numpy::known_size(x, axis, {what, "x"}); };
    auto part = [&](int axis, std::int64_t by) {
      if (size(axis) % by)
        fail<ValueError>({what, "x"}, "has shape ", x.shape(), kExpected, "axis ", axis, " must be a multiple of ", by);
      return size(axis) / by;
    };
    const SizeNow now(x, 0);
    const Dim batch = now;
    if (to_space) {
      const std::int64_t rest = part(c, b * b);
      if (first)
        return reshape(permute(reshape(x, {batch, b, b, rest, size(h), size(w)}), {0, 3, 4, 1, 5, 2}),
                       {batch, rest, size(h) * b, size(w) * b});
      return reshape(permute(reshape(x, {batch, size(h), size(w), b, b, rest}), {0, 1, 3, 2, 4, 5}),
                     {batch, size(h) * b, size(w) * b, rest});
    }
    const std::int64_t rows = part(h, b), columns = part(w, b);
    if (first)
      return reshape(permute(reshape(x, {batch, size(c), rows, b, columns, b}), {0, 3, 5, 1, 2, 4}),
                     {batch, size(c) * b * b, rows, columns});
    return reshape(permute(reshape(x, {batch, rows, b, columns, b, size(c)}), {0, 1, 3, 2, 4, 5}),
                   {batch, rows, columns, size(c) * b * b});
  });
}

/// The patches along two axes.
struct Patches {
  std::int64_t kernel[2], results[2], dilations[2], strides[2];
  std::int64_t padding;

  Patches(const char* what, const std::int64_t (&size)[2], const Dims& kernel_size, const Dims& dilation, int pad,
          const Dims& stride)
      : padding(pad) {
    numbers_for(what, "kernel_size", kernel_size, 2, kernel);
    numbers_for(what, "dilation", dilation, 2, dilations);
    numbers_for(what, "stride", stride, 2, strides);
    if (pad < 0) fail<ValueError>({what, "padding"}, "is ", pad, kExpected, "it must not be negative");
    for (int i = 0; i < 2; ++i) {
      const std::int64_t extent = (kernel[i] - 1) * dilations[i] + 1, n = size[i] + 2 * padding;
      if (n < extent)
        fail<ValueError>({what, "kernel_size"}, "reaches over ", extent, " of ", n, " elements", kExpected,
                         "it must fit into the padded image");
      results[i] = (n - extent) / strides[i] + 1;
    }
  }
  /// The places of the elements of an axis, (kernel, results).
  Tensor of_axis(int i, const Tensor& like) const {
    auto below = [](std::int64_t n) { return numpy::places_below(scalar_tensor(n, int64), cpu); };
    const Tensor places = expand_dims(below(kernel[i]) * dilations[i], 1) + below(results[i]) * strides[i];
    return places.to(like.device());
  }
};
Attrs gather_along(int axis) { return GatherAttrs{axis, Wrap::refuse}; }

}  // namespace

Tensor conv(const Operand& inputs, const Operand& kernel, const ConvOptions& options) {
  return attribute_errors("conv", [&] {
    const numpy::Pair both(inputs, kernel, "conv");
    const ArrayArg x(both.x(), {"conv", "inputs"}), w(both.y(), {"conv", "kernel"});
    check_floats(x, {"conv", "inputs"});
    const int axes = numpy::known_rank(w, {"conv", "kernel"}) - 2;
    if (axes < 1 || axes > 3)
      fail<ValueError>({"conv", "kernel"}, "has shape ", w.tensor().shape(), kExpected,
                       "it must have one to three axes of space, and axes of input and output channels");
    const TensorDesc &d = Access::desc(x.tensor()), &k = Access::desc(w.tensor());
    const bool first = is_channels_first({"conv", "data_format"}, options.data_format);
    const int channel = d.rank < 0 ? 0 : first ? 1 : d.rank - 1;
    const std::int64_t channels = d.rank == axes + 2 ? d.dims[channel] : -1, each = k.dims[axes],
                       out = k.dims[axes + 1];
    if (channels < 0 || each < 0) {  // no groups
      const Tensor one = checked(x, w, [=](const TensorSpec& of_x, const TensorSpec& of_w) {
        if (of_x.rank != axes + 2 || of_w.rank < 0) return;
        const std::int64_t n = of_x.dims[first ? 1 : axes + 1], m = of_w.dims[axes];
        if (n > 0 && m > 0 && n != m && n % m == 0)
          fail<ValueError>({"conv", "kernel"}, "has shape ", of_w, " and inputs ", of_x, kExpected,
                           "the channels must be known when a function is made, unless there is one group");
      });
      return convolved(one, w, axes, options);
    }
    if (channels == 0 || each == 0 || channels == each) return convolved(x, w, axes, options);
    const std::int64_t groups = channels / each;
    if (channels % each || out < 0 || out % groups)
      fail<ValueError>({"conv", "kernel"}, "has shape ", w.tensor().shape(), " and inputs ", x.tensor().shape(),
                       kExpected, "its input channels must divide those of inputs, and the groups its output channels");
    Tensors parts;
    for (std::int64_t g = 0; g < groups; ++g)
      parts.push_back(convolved(numpy::slice_along(x, channel, g * each, (g + 1) * each),
                                numpy::slice_along(w, axes + 1, g * (out / groups), (g + 1) * (out / groups)), axes,
                                options));
    return concatenate(parts, channel);
  });
}

Tensor max_pool(const Operand& inputs, const Dims& pool_size, const PoolOptions& options) {
  return pooled("max_pool", "max", inputs, pool_size, options);
}
Tensor average_pool(const Operand& inputs, const Dims& pool_size, const PoolOptions& options) {
  return pooled("average_pool", "avg", inputs, pool_size, options);
}
Tensor adaptive_average_pool(const Operand& inputs, const Dims& output_size, Name data_format) {
  return adaptive("adaptive_average_pool", inputs, output_size, data_format, /*largest=*/false);
}
Tensor adaptive_max_pool(const Operand& inputs, const Dims& output_size, Name data_format) {
  return adaptive("adaptive_max_pool", inputs, output_size, data_format, /*largest=*/true);
}

Tensor depth_to_space(const Operand& x, int block_size, Name data_format) {
  return rearranged("depth_to_space", x, block_size, data_format, /*to_space=*/true);
}
Tensor space_to_depth(const Operand& x, int block_size, Name data_format) {
  return rearranged("space_to_depth", x, block_size, data_format, /*to_space=*/false);
}

Tensor unfold(const Operand& x, const Dims& kernel_size, const Dims& dilation, int padding, const Dims& stride) {
  return attribute_errors("unfold", [&] {
    const ArrayArg array(x, {"unfold", "x"});
    const Tensor& t = array;
    if (numpy::known_rank(t, {"unfold", "x"}) != 4)
      fail<ValueError>({"unfold", "x"}, "has shape ", t.shape(), kExpected,
                       "it must be (batch, channels, rows, columns)");
    auto size = [&](int axis) { return numpy::known_size(t, axis, {"unfold", "x"}); };
    const Patches p("unfold", {size(2), size(3)}, kernel_size, dilation, padding, stride);
    const SizeNow now(t, 0);
    const Dim batch = now;
    Pads around;
    around.rank = 4;
    for (int i = 2; i < 4; ++i) around.before[i] = around.after[i] = padding;
    const Tensor padded = padding ? pad(t, around) : t;
    const Tensor taken = gather(gather(padded, p.of_axis(1, t), 3), p.of_axis(0, t), 2);
    return reshape(permute(taken, {0, 1, 2, 4, 3, 5}),
                   {batch, size(1) * p.kernel[0] * p.kernel[1], p.results[0] * p.results[1]});
  });
}
Tensor fold(const Operand& x, const Dims& output_size, const Dims& kernel_size, const Dims& dilation, int padding,
            const Dims& stride) {
  return of_floats("fold", x, [&](const Tensor& t) {
    std::int64_t size[2];
    numbers_for("fold", "output_size", output_size, 2, size);
    const Patches p("fold", size, kernel_size, dilation, padding, stride);
    if (numpy::known_rank(t, {"fold", "x"}) != 3)
      fail<ValueError>({"fold", "x"}, "has shape ", t.shape(), kExpected, "it must be (batch, patch, patches)");
    const std::int64_t patch = p.kernel[0] * p.kernel[1], n = numpy::known_size(t, 1, {"fold", "x"});
    const std::int64_t last = numpy::known_size(t, 2, {"fold", "x"});
    if (n % patch || last != p.results[0] * p.results[1])
      fail<ValueError>({"fold", "x"}, "has shape ", t.shape(), kExpected, "axis 1 must be a multiple of ", patch,
                       ", and axis 2 have ", p.results[0] * p.results[1], " patches");
    const SizeNow now(t, 0);
    const Dim batch = now;
    const Tensor parts = permute(reshape(t, {batch, n / patch, p.kernel[0], p.kernel[1], p.results[0], p.results[1]}),
                                 {0, 1, 2, 4, 3, 5});
    // The adjoints of unfold's two gathers, into images of zeros.
    const Tensor some = slice_from(parts, {0, 0, 0, 0, 0, 0}, {-1, -1, 1, 1, -1, -1});
    auto zeros = [&](const Tensor& of, int axis, std::int64_t length) {
      return zeros_of(repeat_elements(of, length, axis));
    };
    const std::int64_t rows = size[0] + 2 * padding, columns = size[1] + 2 * padding;
    const Tensor lines = zeros(squeeze(squeeze(some, 2), 2), 2, rows);
    const Tensor by_rows = reshape(lines, {batch, n / patch, rows, p.kernel[1], p.results[1]});
    const Tensor summed = apply1(gather_grad_like_op, gather_along(2), {parts, p.of_axis(0, t), by_rows});
    const Tensor line = zeros(slice_from(by_rows, {0, 0, 0, 0, 0}, {-1, -1, -1, 1, 1}), 3, columns);
    const Tensor image = reshape(line, {batch, n / patch, rows, columns});
    const Tensor all = apply1(gather_grad_like_op, gather_along(3), {summed, p.of_axis(1, t), image});
    return slice_from(all, {0, 0, padding, padding}, {-1, -1, size[0], size[1]});
  });
}

}  // namespace kassette::nn

// nn_backend/convolution.cpp - convolutions.
#include <kassette/backend/convolution.h>

#include <kassette/backend/config.h>

#include "core/text.h"
#include "nn_backend/windows.h"
#include "ops/convolution/conv.h"
#include "ops/engine/dims.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;
namespace {

ConvForm convolution_of(const char* what, int axes, const Dims& strides, Name padding, Name data_format,
                        const Dims& dilation_rate, bool causal = false) {
  ConvForm how;
  how.axes = axes;
  how.channels_first = is_channels_first({what, "data_format"}, data_format);
  const Padding kind = padding_of(what, padding, causal);
  if (kind == Padding::causal && how.channels_first)
    fail<ValueError>({what, "padding"}, "is \"causal\"", kExpected, "data_format must be \"channels_last\" for it");
  std::int64_t stride[3], dilation[3];
  numbers_for(what, "strides", strides, axes, stride);
  numbers_for(what, "dilation_rate", dilation_rate, axes, dilation);
  bool strided = false, dilated = false;
  for (int i = 0; i < axes; ++i) {
    how.window[i] = {.size = 1, .stride = stride[i], .dilation = dilation[i], .padding = kind};
    strided |= stride[i] > 1;
    dilated |= dilation[i] > 1;
  }
  if (strided && dilated)
    fail<ValueError>({what}, "strides and dilation_rate are both above 1", kExpected, "one of them must be 1");
  return how;
}

Tensor convolve(const char* what, const Operand& x, const Operand& kernel, const ConvForm& how,
                const char* kernel_name = "kernel") {
  const DType dtype = dtype_for_numbers(x, kernel);
  Arg input(x, dtype, {what, "x"}), weights(kernel, dtype, {what, kernel_name});
  return convolution(dense(what, "x", input), dense(what, kernel_name, weights), how);
}

Tensor transposed(const char* what, const Operand& x, const Operand& kernel, const Dims& output_shape,
                  const ConvForm& how) {
  const DType dtype = dtype_for_numbers(x, kernel);
  Arg input(x, dtype, {what, "x"}), weights(kernel, dtype, {what, "kernel"});
  dense(what, "x", input);
  return convolution_input_gradient(input, dense(what, "kernel", weights),
                                    dims_tensor(output_shape, what, "output_shape"), how);
}

Tensor separable(const char* what, const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                 ConvForm how) {
  if (is_tensor_operand(x)) dense(what, "x", tensor_of(x));
  Arg pointwise(pointwise_kernel, is_tensor_operand(x) ? tensor_of(x).dtype() : dtype_for_numbers(x, depthwise_kernel),
                {what, "pointwise_kernel"});
  dense(what, "pointwise_kernel", pointwise);
  how.depthwise = true;
  Tensor middle = convolve(what, x, depthwise_kernel, how, "depthwise_kernel");
  how.depthwise = false;
  how.pointwise = true;
  for (WindowAxis& w : how.window) w = WindowAxis{};
  return convolution(middle, pointwise, how);
}

}  // namespace

template <int>
Tensor conv1d(const Operand& x, const Operand& kernel, const Dims& strides, Name padding, Name data_format,
              const Dims& dilation_rate) {
  KASSETTE_DISPATCH(conv1d, x, kernel, strides, padding, data_format, dilation_rate);
  const char* what = "conv1d";
  return attribute_errors(what, [&] {
    return convolve(what, x, kernel,
                    convolution_of(what, 1, strides, padding, data_format, dilation_rate, /*causal=*/true));
  });
}
template Tensor conv1d<0>(const Operand&, const Operand&, const Dims&, Name, Name, const Dims&);
Tensor conv1d(const Operand& x, const Operand& kernel, const ConvOptions& o) {
  return conv1d<0>(x, kernel, o.strides, o.padding, o.data_format, o.dilation_rate);
}

template <int>
Tensor conv2d(const Operand& x, const Operand& kernel, const Dims& strides, Name padding, Name data_format,
              const Dims& dilation_rate) {
  KASSETTE_DISPATCH(conv2d, x, kernel, strides, padding, data_format, dilation_rate);
  const char* what = "conv2d";
  return attribute_errors(what, [&] {
    return convolve(what, x, kernel, convolution_of(what, 2, strides, padding, data_format, dilation_rate));
  });
}
template Tensor conv2d<0>(const Operand&, const Operand&, const Dims&, Name, Name, const Dims&);
Tensor conv2d(const Operand& x, const Operand& kernel, const ConvOptions& o) {
  return conv2d<0>(x, kernel, o.strides, o.padding, o.data_format, o.dilation_rate);
}

template <int>
Tensor conv3d(const Operand& x, const Operand& kernel, const Dims& strides, Name padding, Name data_format,
              const Dims& dilation_rate) {
  KASSETTE_DISPATCH(conv3d, x, kernel, strides, padding, data_format, dilation_rate);
  const char* what = "conv3d";
  return attribute_errors(what, [&] {
    return convolve(what, x, kernel, convolution_of(what, 3, strides, padding, data_format, dilation_rate));
  });
}
template Tensor conv3d<0>(const Operand&, const Operand&, const Dims&, Name, Name, const Dims&);
Tensor conv3d(const Operand& x, const Operand& kernel, const ConvOptions& o) {
  return conv3d<0>(x, kernel, o.strides, o.padding, o.data_format, o.dilation_rate);
}

template <int>
Tensor conv2d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape, const Dims& strides,
                        Name padding, Name data_format, const Dims& dilation_rate) {
  KASSETTE_DISPATCH(conv2d_transpose, x, kernel, output_shape, strides, padding, data_format, dilation_rate);
  const char* what = "conv2d_transpose";
  return attribute_errors(what, [&] {
    return transposed(what, x, kernel, output_shape,
                      convolution_of(what, 2, strides, padding, data_format, dilation_rate));
  });
}
template Tensor conv2d_transpose<0>(const Operand&, const Operand&, const Dims&, const Dims&, Name, Name, const Dims&);
Tensor conv2d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape, const ConvOptions& o) {
  return conv2d_transpose<0>(x, kernel, output_shape, o.strides, o.padding, o.data_format, o.dilation_rate);
}

template <int>
Tensor conv3d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape, const Dims& strides,
                        Name padding, Name data_format) {
  KASSETTE_DISPATCH(conv3d_transpose, x, kernel, output_shape, strides, padding, data_format);
  const char* what = "conv3d_transpose";
  return attribute_errors(what, [&] {
    return transposed(what, x, kernel, output_shape, convolution_of(what, 3, strides, padding, data_format, 1));
  });
}
template Tensor conv3d_transpose<0>(const Operand&, const Operand&, const Dims&, const Dims&, Name, Name);
Tensor conv3d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape, const ConvOptions& o) {
  if (o.dilation_rate.size_ != 1 || o.dilation_rate.dims_[0].tensor_ || o.dilation_rate.dims_[0].value_ != 1)
    fail<ValueError>({"conv3d_transpose", "dilation_rate"}, "is not 1", kExpected,
                     "it must be 1: a transposed convolution over three axes takes no other");
  return conv3d_transpose<0>(x, kernel, output_shape, o.strides, o.padding, o.data_format);
}

template <int>
Tensor depthwise_conv2d(const Operand& x, const Operand& depthwise_kernel, const Dims& strides, Name padding,
                        Name data_format, const Dims& dilation_rate) {
  KASSETTE_DISPATCH(depthwise_conv2d, x, depthwise_kernel, strides, padding, data_format, dilation_rate);
  return attribute_errors("depthwise_conv2d", [&] {
    ConvForm how = convolution_of("depthwise_conv2d", 2, strides, padding, data_format, dilation_rate);
    how.depthwise = true;
    return convolve("depthwise_conv2d", x, depthwise_kernel, how, "depthwise_kernel");
  });
}
template Tensor depthwise_conv2d<0>(const Operand&, const Operand&, const Dims&, Name, Name, const Dims&);
Tensor depthwise_conv2d(const Operand& x, const Operand& depthwise_kernel, const ConvOptions& o) {
  return depthwise_conv2d<0>(x, depthwise_kernel, o.strides, o.padding, o.data_format, o.dilation_rate);
}

template <int>
Tensor separable_conv2d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                        const Dims& strides, Name padding, Name data_format, const Dims& dilation_rate) {
  KASSETTE_DISPATCH(separable_conv2d, x, depthwise_kernel, pointwise_kernel, strides, padding, data_format,
                    dilation_rate);
  const char* what = "separable_conv2d";
  return attribute_errors(what, [&] {
    return separable(what, x, depthwise_kernel, pointwise_kernel,
                     convolution_of(what, 2, strides, padding, data_format, dilation_rate));
  });
}
template Tensor separable_conv2d<0>(const Operand&, const Operand&, const Operand&, const Dims&, Name, Name,
                                    const Dims&);
Tensor separable_conv2d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                        const ConvOptions& o) {
  return separable_conv2d<0>(x, depthwise_kernel, pointwise_kernel, o.strides, o.padding, o.data_format,
                             o.dilation_rate);
}

template <int>
Tensor separable_conv1d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                        const Dims& strides, Name padding, Name data_format, const Dims& dilation_rate) {
  KASSETTE_DISPATCH(separable_conv1d, x, depthwise_kernel, pointwise_kernel, strides, padding, data_format,
                    dilation_rate);
  const char* what = "separable_conv1d";
  return attribute_errors(what, [&] {
    return separable(what, x, depthwise_kernel, pointwise_kernel,
                     convolution_of(what, 1, strides, padding, data_format, dilation_rate));
  });
}
template Tensor separable_conv1d<0>(const Operand&, const Operand&, const Operand&, const Dims&, Name, Name,
                                    const Dims&);
Tensor separable_conv1d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                        const ConvOptions& o) {
  return separable_conv1d<0>(x, depthwise_kernel, pointwise_kernel, o.strides, o.padding, o.data_format,
                             o.dilation_rate);
}

}  // namespace backend
}  // namespace kassette

// include/kassette/backend/convolution.h - convolution, pooling, local convolution and bias.
#ifndef KASSETTE_BACKEND_CONVOLUTION_H
#define KASSETTE_BACKEND_CONVOLUTION_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace backend {

// x is (batch, space..., channels) if data_format is "channels_last" and (batch, channels, space...) if it is
// "channels_first"; and None means image_data_format(). Kernels are (size of each axis..., input channels, output
// channels) in both formats. A convolution is computed as a cross-correlation: out[n, p, f] = sum over k, c of x[n, p *
// stride + k * dilation, c] * kernel[k, c, f].
//
// padding: "valid" adds nothing: n elements give (n - extent) / stride + 1 results, where extent = (size - 1) *
// dilation + 1. "same" adds zeros on both sides, the odd one at the end, and gives ceil(n / stride) results. "causal",
// for conv1d only, adds zeros before the first element, and also gives ceil(n / stride). strides and dilation_rate are
// a number for each axis, or one for all axes; they must not both be above 1.
//
// x and the kernels must have the same float dtype; half types are computed in float32. Sizes may be unknown, and there
// are gradients of any order. The functions throw ValueError if a shape, a number of channels, a padding, a data
// format, strides or dilations are invalid, and TypeError for other dtypes.

// The overloads without options are templates: g++ also accepts {.strides = 2} for Dims, and of two overloads that
// match it prefers the one that is not a template.

/// The arguments of convolutions by name: `K::conv2d(x, kernel, {.strides = {2, 2}, .padding = "same"})`.
struct ConvOptions {
  Named only_by_name{0};
  Dims strides = 1;
  Name padding = "valid";
  Name data_format = None;
  Dims dilation_rate = 1;
};

/// The convolution of x (batch, steps, channels) with a kernel (size, input channels, output channels).
template <int = 0>
KASSETTE_API Tensor conv1d(const Operand& x, const Operand& kernel, const Dims& strides = 1, Name padding = "valid",
                           Name data_format = None, const Dims& dilation_rate = 1);
KASSETTE_API Tensor conv1d(const Operand& x, const Operand& kernel, const ConvOptions& options);
/// The convolution of x (batch, rows, columns, channels) with a kernel (rows, columns, input channels, output
/// channels).
template <int = 0>
KASSETTE_API Tensor conv2d(const Operand& x, const Operand& kernel, const Dims& strides = {1, 1},
                           Name padding = "valid", Name data_format = None, const Dims& dilation_rate = {1, 1});
KASSETTE_API Tensor conv2d(const Operand& x, const Operand& kernel, const ConvOptions& options);
/// The convolution of x (batch, depth, rows, columns, channels) with a kernel (depth, rows, columns, input channels,
/// output channels).
template <int = 0>
KASSETTE_API Tensor conv3d(const Operand& x, const Operand& kernel, const Dims& strides = {1, 1, 1},
                           Name padding = "valid", Name data_format = None, const Dims& dilation_rate = {1, 1, 1});
KASSETTE_API Tensor conv3d(const Operand& x, const Operand& kernel, const ConvOptions& options);

/// The gradient of conv2d with respect to its input, as a function of x, which takes the place of the result's
/// gradient: a transposed convolution. The kernel is (rows, columns, output channels, input channels). output_shape is
/// the full shape of the result in the order of data_format: numbers, tensors, or one integer tensor; the batch size
/// may be None. Throws ValueError if a convolution of that shape does not give the shape of x.
template <int = 0>
KASSETTE_API Tensor conv2d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape,
                                     const Dims& strides = {1, 1}, Name padding = "valid", Name data_format = None,
                                     const Dims& dilation_rate = {1, 1});
KASSETTE_API Tensor conv2d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape,
                                     const ConvOptions& options);
/// The same for conv3d, without dilation.
template <int = 0>
KASSETTE_API Tensor conv3d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape,
                                     const Dims& strides = {1, 1, 1}, Name padding = "valid", Name data_format = None);
KASSETTE_API Tensor conv3d_transpose(const Operand& x, const Operand& kernel, const Dims& output_shape,
                                     const ConvOptions& options);

/// The convolution of each channel of x by itself with a kernel (rows, columns, channels, multiplier): channel c and
/// filter j give channel c * multiplier + j of the result.
template <int = 0>
KASSETTE_API Tensor depthwise_conv2d(const Operand& x, const Operand& depthwise_kernel, const Dims& strides = {1, 1},
                                     Name padding = "valid", Name data_format = None,
                                     const Dims& dilation_rate = {1, 1});
KASSETTE_API Tensor depthwise_conv2d(const Operand& x, const Operand& depthwise_kernel, const ConvOptions& options);
/// depthwise_conv2d with (rows, columns, channels, multiplier), then conv2d with (1, 1, channels * multiplier, output
/// channels).
template <int = 0>
KASSETTE_API Tensor separable_conv2d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                                     const Dims& strides = {1, 1}, Name padding = "valid", Name data_format = None,
                                     const Dims& dilation_rate = {1, 1});
KASSETTE_API Tensor separable_conv2d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                                     const ConvOptions& options);
/// The same along one axis: kernels (size, channels, multiplier) and (1, channels * multiplier, output channels).
template <int = 0>
KASSETTE_API Tensor separable_conv1d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                                     const Dims& strides = 1, Name padding = "valid", Name data_format = None,
                                     const Dims& dilation_rate = 1);
KASSETTE_API Tensor separable_conv1d(const Operand& x, const Operand& depthwise_kernel, const Operand& pointwise_kernel,
                                     const ConvOptions& options);

/// The largest element ("max"; NaN wins) or the mean ("avg") of each window of pool_size elements of a channel, not
/// counting padding. The gradient of "max" goes to the first of several largest elements in row-major order. Padding is
/// "valid" or "same".
KASSETTE_API Tensor pool2d(const Operand& x, const Dims& pool_size, const Dims& strides = {1, 1},
                           Name padding = "valid", Name data_format = None, Name pool_mode = "max");
KASSETTE_API Tensor pool3d(const Operand& x, const Dims& pool_size, const Dims& strides = {1, 1, 1},
                           Name padding = "valid", Name data_format = None, Name pool_mode = "max");

/// A convolution with a different kernel at each place: inputs (batch, steps, channels), kernel (places, kernel_size *
/// channels, output channels), in whose second axis positions come before channels. out[n, i] = the inputs from i *
/// strides on, flattened, times kernel[i].
KASSETTE_API Tensor local_conv1d(const Operand& inputs, const Operand& kernel, const Dims& kernel_size,
                                 const Dims& strides, Name data_format = None);
/// The same along rows and columns: kernel (rows * columns of output_shape, features, output channels); the features
/// are a flattened patch, (rows, columns, channels), or (channels, rows, columns) if data_format is "channels_first".
KASSETTE_API Tensor local_conv2d(const Operand& inputs, const Operand& kernel, const Dims& kernel_size,
                                 const Dims& strides, const Dims& output_shape, Name data_format = None);

/// x plus a bias for each channel, of shape (channels,), or for each place and channel, of shape (space..., channels).
/// With "channels_first" the latter is reshaped to (channels, space...), not transposed, as Keras does; x of rank 2 has
/// its channels last in both formats. Throws ValueError for a bias of another rank or size.
KASSETTE_API Tensor bias_add(const Operand& x, const Operand& bias, Name data_format = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CONVOLUTION_H

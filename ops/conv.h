// ops/conv.h - convolution and its two gradients: three rows, each of whose adjoints is made of the other two.
//
// y = conv(x, w) is linear in x and in w. Its input gradient, as a function of dy and w, is what is called transposed convolution;
// its kernel gradient is a correlation of x with dy. Depthwise convolution is the same with one input channel for each output channel,
// so kernels have the shape (taps..., channels, multiplier) in place of (taps..., input channels, output channels).
#pragma once
#include "ops/op.h"
#include "ops/window.h"

namespace kassette {

/// How a window moves, and where the channels are. Of convolutions the sizes of the windows are those of the kernels.
struct ConvForm {
  int axes = 1;  // spatial axes, 1 to 3
  bool channels_first = false, depthwise = false;
  bool pointwise = false;  // the kernel has one tap
  WindowAxis window[3];

  int channel_axis() const { return channels_first ? 1 : axes + 1; }
  int space_axis(int i) const { return i + (channels_first ? 2 : 1); }
};

/// The same as the attribute of a row.
struct ConvAttrs final : Extra, ConvForm {
  explicit ConvAttrs(const ConvForm& form) : ConvForm(form) {}
  bool equals(const Extra& other) const override;
};
Attrs window_attrs(const ConvForm& form);
inline const ConvForm& form_of(const Attrs& attrs) { return static_cast<const ConvAttrs&>(*attrs.extra); }
/// Throws ValueError, in the name of the op, unless s has the rank that `form` asks for, or an unknown one.
void check_rank(const char* op, const ConvForm& form, const TensorSpec& s, const char* which);

/// A convolution between shapes that are known: what kernels of all devices read.
struct ConvShape {
  int axes;
  bool channels_first, depthwise;
  WindowAxis window[3];
  std::int64_t batch, c_in, c_out;  // depthwise: c_out is c_in * multiplier
  std::int64_t in[3], out[3];       // sizes along the spatial axes

  /// Of the input, the kernel and the output of a convolution; `attrs` are those of its row.
  ConvShape(const Attrs& attrs, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y) {
    set(form_of(attrs), x, w.dims, y);
  }
  /// Of pooling: the attributes have the sizes of the windows.
  ConvShape(const Attrs& attrs, const TensorSpec& x, const TensorSpec& y) {
    const ConvForm& form = form_of(attrs);
    const std::int64_t sizes[3] = {form.window[0].size, form.window[1].size, form.window[2].size};
    set(form, x, sizes, y);
  }
  std::int64_t taps() const { return window[0].size * window[1].size * window[2].size; }
  std::int64_t in_size() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_size() const { return out[0] * out[1] * out[2]; }

 private:
  void set(const ConvForm& form, const TensorSpec& x, const std::int64_t* sizes, const TensorSpec& y) {
    axes = form.axes;
    channels_first = form.channels_first;
    depthwise = form.depthwise;
    batch = x.dims[0];
    c_in = x.dims[form.channel_axis()];
    c_out = y.dims[form.channel_axis()];
    // Fewer than three axes of space stand behind axes of size 1.
    for (int i = 0; i < 3; ++i) {
      const int from = i - (3 - axes);
      window[i] = from < 0 ? WindowAxis{} : form.window[from];
      window[i].size = from < 0 ? 1 : sizes[from];
      in[i] = from < 0 ? 1 : x.dims[form.space_axis(from)];
      out[i] = from < 0 ? 1 : y.dims[form.space_axis(from)];
    }
  }
};

/// x with a kernel: (batch, space..., channels) or (batch, channels, space...).
Tensor convolution(const Tensor& x, const Tensor& w, const ConvForm& how);
/// The cotangent of the input of a convolution whose input has the shape `dims`, a 1-D integer tensor on the host; an unknown (negative)
/// batch is that of dy.
Tensor convolution_input_gradient(const Tensor& dy, const Tensor& w, const Tensor& dims, const ConvForm& how);

/// How convolution runs on devices. Constants but for tests.
struct DeviceConvLimits {
  enum Way : int { by_rule, direct, panels } way = by_rule;
  std::int64_t workspace = std::int64_t(64) << 20;  // bytes that a call may take for itself
};
extern DeviceConvLimits device_conv_limits;

/// convolution: x, w. input gradient: dy, w, dims of x. kernel gradient: x, dy, w for its shape alone.
extern const OpDef convolution_op, convolution_input_gradient_op, convolution_kernel_gradient_op;

}  // namespace kassette

// ops/convolution/conv.h - convolution and its two gradients: three ops, and the adjoint of each is composed of the
// other two.
//
// y = conv(x, w) is linear in x and in w. Its input gradient, as a function of dy and w, is the transposed convolution;
// its kernel gradient is a correlation of x with dy. In a depthwise convolution each output channel reads one input
// channel, so that kernels have the shape (taps..., channels, multiplier) instead of (taps..., input channels, output
// channels).
#pragma once
#include "ops/engine/cotangent.h"
#include "ops/engine/op.h"
#include "ops/convolution/window.h"

namespace kassette::ops {

/// The geometry of a convolution or of pooling, and the data format. The window sizes are set for pooling only: a
/// convolution takes them from its kernel.
struct ConvForm {
  int axes = 1;  // spatial axes, 1 to 3
  bool channels_first = false, depthwise = false;
  bool pointwise = false;  // the kernel has one tap
  Cotangent cotangent = Cotangent::neither;
  WindowAxis window[3];

  int channel_axis() const { return channels_first ? 1 : axes + 1; }
  int space_axis(int i) const { return i + (channels_first ? 2 : 1); }
};

/// A ConvForm as the attributes of an op.
struct ConvAttrs final : TaggedExtra<ConvAttrs>, ConvForm {
  static constexpr const char* attrs_name = "conv";
  explicit ConvAttrs(const ConvForm& form) : ConvForm(form) {}
};
Attrs window_attrs(const ConvForm& form);
inline const ConvForm& form_of(const Attrs& attrs) { return attrs.extra->as<ConvAttrs>(); }
/// Throws ValueError in the name of `op` if s has a known rank other than form.axes + 2.
void check_rank(const char* op, const ConvForm& form, const TensorSpec& s, const char* which);

/// The sizes of a convolution or of pooling, all of them known, for the kernels of every device. There are always three
/// spatial axes.
struct ConvShape {
  int axes;
  bool channels_first, depthwise;
  WindowAxis window[3];
  std::int64_t batch, c_in, c_out;  // depthwise: c_out is c_in * multiplier
  std::int64_t in[3], out[3];       // sizes along the spatial axes

  /// From the attributes, input, kernel and output of a convolution.
  ConvShape(const Attrs& attrs, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y) {
    set(form_of(attrs), x, w.dims, y);
  }
  /// For pooling, whose attributes contain the window sizes.
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
    // If there are fewer than three spatial axes, axes of size 1 are put in front of them.
    for (int i = 0; i < 3; ++i) {
      const int from = i - (3 - axes);
      window[i] = from < 0 ? WindowAxis{} : form.window[from];
      window[i].size = from < 0 ? 1 : sizes[from];
      in[i] = from < 0 ? 1 : x.dims[form.space_axis(from)];
      out[i] = from < 0 ? 1 : y.dims[form.space_axis(from)];
    }
  }
};

/// Convolution of x, (batch, space..., channels) or (batch, channels, space...), with the kernel w.
Tensor convolution(const Tensor& x, const Tensor& w, const ConvForm& how);
/// The input gradient: the cotangent of the input of a convolution. `dims` is the shape of that input, a 1-D integer
/// tensor on the host; if its batch size is negative (unknown), it is taken from dy.
Tensor convolution_input_gradient(const Tensor& dy, const Tensor& w, const Tensor& dims, const ConvForm& how);

/// How convolution runs on devices. Only tests change these values.
struct DeviceConvLimits {
  /// Which kernel computes a convolution.
  enum Way : int { automatic, direct, panels } way = automatic;
  std::int64_t workspace = std::int64_t(64) << 20;  // bytes of temporary memory that a call may allocate
};
extern DeviceConvLimits device_conv_limits;

/// Inputs: x, w; for the input gradient dy, w, shape of x; for the kernel gradient x, dy, w (of which only the shape is
/// read).
extern const OpDef convolution_op, convolution_input_gradient_op, convolution_kernel_gradient_op;

}  // namespace kassette::ops

// ops/convolution/conv.cpp - convolution and its gradients: shapes, errors, adjoints. The kernels are in conv_cpu.cpp
// and conv.cu.
#include "ops/convolution/conv.h"

#include <algorithm>

#include "core/rank.h"
#include "core/text.h"
#include "ops/convolution/conv_kernels.h"
#include "ops/engine/dims.h"

namespace kassette::ops {
namespace {

bool known(std::int64_t n) { return n >= 0; }

void check_floats(const TensorSpec& x, const TensorSpec& w) {
  if (!x.dtype.is_float()) fail_not_float({"convolution", "x"}, x.dtype);
  if (x.dtype != w.dtype)
    fail<TypeError>({"convolution"}, "x is ", x.dtype, ", the kernel is ", w.dtype, kRemedy,
                    "cast one of them (K::cast), tensors are not promoted");
}

/// The name of the kernel among the arguments of the K function.
const char* kernel_name(const ConvForm& how) {
  return how.depthwise ? "depthwise_kernel" : how.pointwise ? "pointwise_kernel" : "kernel";
}

/// Checks a kernel's rank, that none of its sizes is 0, and that its axis `of_kernel` fits the `channels` of its input
/// x.
void check_kernel(const ConvForm& how, const TensorSpec& w, std::int64_t channels, const TensorSpec& x, int of_kernel) {
  if (w.rank < 0) return;
  const At kernel{"convolution", kernel_name(how)};
  check_rank(kernel, w, how.axes + 2, ": (size of each axis..., ",
             how.depthwise           ? "channels, multiplier)"
             : of_kernel == how.axes ? "input channels, output channels)"
                                     : "output channels, input channels)");
  for (int i = 0; i < w.rank; ++i)
    if (w.dims[i] == 0) fail<ValueError>(kernel, "has shape ", w, kExpected, "its sizes must be positive");
  for (int i = 0; how.pointwise && i < how.axes; ++i)
    if (differ(w.dims[i], 1)) fail<ValueError>(kernel, "has shape ", w, kExpected, "its spatial sizes must be 1");
  if (channels == 0) fail<ValueError>({"convolution", "x"}, "has shape ", x, ", which has no channels");
  if (differ(w.dims[of_kernel], channels) && how.pointwise)
    fail<ValueError>({"convolution"}, "pointwise_kernel ", w, " takes ", w.dims[of_kernel],
                     " channels, and depthwise_kernel gives ", channels);
  if (differ(w.dims[of_kernel], channels))
    fail<ValueError>({"convolution"}, "x ", x, " has ", channels, " channels, and the kernel ", w, " takes ",
                     w.dims[of_kernel]);
}

/// Returns the window along an axis whose kernel size is known. Throws ValueError if it spans more than can be
/// addressed.
WindowAxis window_axis_of(const ConvForm& how, int axis, const TensorSpec& w) {
  WindowAxis window = how.window[axis];
  window.size = w.dims[axis];
  std::int64_t span;
  if (__builtin_mul_overflow(window.size - 1, window.dilation, &span) || span > kMaxBytes)
    fail<ValueError>({"convolution", kernel_name(how)}, "of shape ", w, " with dilation_rate ", window.dilation,
                     " spans more than can be addressed");
  return window;
}

/// Returns the number of positions along an axis; kUnknown if it depends on an unknown size.
std::int64_t positions(const ConvForm& how, int axis, const TensorSpec& x, const TensorSpec& w) {
  std::int64_t n = x.dim(how.space_axis(axis));
  WindowAxis window = how.window[axis];
  if (w.rank >= 0 && known(w.dims[axis])) window = window_axis_of(how, axis, w);
  else if (window.padding == Padding::valid) return kUnknown;
  if (!known(n)) return kUnknown;
  if (window.padding == Padding::valid && n < window.extent())
    fail<ValueError>({"convolution"}, "x ", x, " is smaller than the kernel ", w,
                     window.dilation > 1 ? " with its dilation" : "", ": ", n, " against ", window.extent(), kRemedy,
                     "padding \"same\" takes any size");
  return window.positions(n);
}

std::int64_t channels_out(const ConvForm& how, const TensorSpec& w, const TensorSpec& x, std::int64_t channels) {
  if (w.rank < 0) return kUnknown;
  if (!how.depthwise) return w.dims[how.axes + 1];
  std::int64_t c = known(w.dims[how.axes]) ? w.dims[how.axes] : channels, m = w.dims[how.axes + 1], out;
  if (!known(c) || !known(m)) return kUnknown;
  if (__builtin_mul_overflow(c, m, &out))
    fail<ValueError>({"convolution"}, "x ", x, " with a kernel ", w, " has more channels than can be addressed");
  return out;
}

void rule(const OpCall& call, TensorSpec* out) {
  const ConvForm& how = form_of(call.attrs);
  const TensorSpec &x = call.spec(0), &w = call.spec(1);
  check_floats(x, w);
  check_rank("convolution", how, x, "x");
  std::int64_t channels = x.dim(how.channel_axis());
  check_kernel(how, w, channels, x, how.axes);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(how.axes + 2);
  out->dims[0] = x.dim(0);
  out->dims[how.channel_axis()] = channels_out(how, w, x, channels);
  for (int i = 0; i < how.axes; ++i) out->dims[how.space_axis(i)] = positions(how, i, x, w);
}

/// Inputs: dy, w, the shape of the convolution's input.
void input_gradient_rule(const OpCall& call, TensorSpec* out) {
  const ConvForm& how = form_of(call.attrs);
  const TensorSpec &dy = call.spec(0), &w = call.spec(1);
  check_floats(dy, w);
  check_rank("convolution", how, dy, "x");
  const DimValues dims = read_dims(call, 2, "output_shape");
  if (differ(dims.rank, how.axes + 2))
    fail<ValueError>({"convolution", "output_shape"}, dims, " has ", dims.rank, " entries", kExpected, "it must have ",
                     how.axes + 2, ", the batch and the channels among them");
  std::int64_t channels = dy.dim(how.channel_axis());
  if (!how.depthwise) check_kernel(how, w, channels, dy, how.axes + 1);
  out->dtype = dy.dtype;
  out->rank = static_cast<std::int8_t>(how.axes + 2);
  auto entry = [&](int axis) { return dims.rank < 0 || dims.is_unknown(axis) ? kUnknown : dims.at[axis]; };
  auto refuse = [&](auto... why) {
    fail<ValueError>({"convolution"}, "output_shape ", dims, " for x ", dy, " and a kernel ", w, why...);
  };
  const std::int64_t batch = dy.dim(0);
  if (differ(entry(0), batch)) refuse(kExpected, "its batch must be ", batch);
  out->dims[0] = known(batch) ? batch : std::max(entry(0), kUnknown);
  const int c = how.channel_axis();
  const std::int64_t of_kernel = w.dim(how.axes);
  if (differ(entry(c), of_kernel) || (known(of_kernel) && dims.rank >= 0 && !dims.is_unknown(c) && entry(c) < 0))
    refuse(kExpected, "it must have ", of_kernel, " channels, as the kernel");
  out->dims[c] = known(of_kernel) ? of_kernel : entry(c);
  for (int i = 0; i < how.axes; ++i) {
    const int axis = how.space_axis(i);
    std::int64_t n = entry(axis), have = dy.dim(axis);
    out->dims[axis] = n;
    if (dims.rank >= 0 && !dims.is_unknown(axis) && n < 0)
      refuse(kExpected, "its spatial sizes must be given (None is shown as -1)");
    WindowAxis window = how.window[i];
    if (!known(n) || !known(have)) continue;
    if (w.rank >= 0 && known(w.dims[i])) window = window_axis_of(how, i, w);
    else if (window.padding == Padding::valid) continue;
    if (window.positions(n) != have)
      refuse(": a convolution of ", n, " elements with this stride and padding gives ", window.positions(n), ", x has ",
             have);
  }
}

/// Inputs: x, dy, w (of which only the shape is read).
void kernel_gradient_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(2));
  out->dtype = call.spec(0).dtype;
}

// --- adjoints --------------------------------------------------------------------------------------------------------

/// The attributes of an op whose factor `which` is a cotangent.
Attrs attrs_with(const VjpContext& ctx, Cotangent which) {
  ConvForm form = form_of(ctx.attrs);
  if (form.cotangent == which) return ctx.attrs;
  form.cotangent = which;
  return window_attrs(form);
}
Tensor convolution_of(const VjpContext& ctx, Cotangent which, const Tensor& x, const Tensor& w) {
  return apply1(convolution_op, attrs_with(ctx, which), {x, w});
}
Tensor input_gradient_of(const VjpContext& ctx, Cotangent which, const Tensor& dy, const Tensor& w, const Tensor& x) {
  return apply1(convolution_input_gradient_op, attrs_with(ctx, which), {dy, w, shape_of(x, int64)});
}
Tensor kernel_gradient_of(const VjpContext& ctx, Cotangent which, const Tensor& x, const Tensor& dy, const Tensor& w) {
  return apply1(convolution_kernel_gradient_op, attrs_with(ctx, which), {x, dy, w});
}

void vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = input_gradient_of(ctx, Cotangent::a, ctx.dy(), ctx.in(1), ctx.in(0));
  if (ctx.wants(1)) ctx.din(1) = kernel_gradient_of(ctx, Cotangent::b, ctx.in(0), ctx.dy(), ctx.in(1));
}
void input_gradient_vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = convolution_of(ctx, Cotangent::a, ctx.dy(), ctx.in(1));
  if (ctx.wants(1)) ctx.din(1) = kernel_gradient_of(ctx, Cotangent::a, ctx.dy(), ctx.in(0), ctx.in(1));
}
void kernel_gradient_vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = input_gradient_of(ctx, Cotangent::b, ctx.in(1), ctx.dy(), ctx.in(0));
  if (ctx.wants(1)) ctx.din(1) = convolution_of(ctx, Cotangent::b, ctx.in(0), ctx.dy());
}

}  // namespace

constinit const OpDef convolution_op{.name = "convolution",
                                     .rule = rule,
                                     .cpu = run_convolution,
                                     .vjp = vjp,
                                     .saves_in = 3,
                                     .with_bias = convolve_with_bias};
constinit const OpDef convolution_input_gradient_op{.name = "convolution_input_gradient",
                                                    .rule = input_gradient_rule,
                                                    .cpu = run_convolution_input_gradient,
                                                    .vjp = input_gradient_vjp,
                                                    .saves_in = 3,
                                                    .host = 4};
constinit const OpDef convolution_kernel_gradient_op{.name = "convolution_kernel_gradient",
                                                     .rule = kernel_gradient_rule,
                                                     .cpu = run_convolution_kernel_gradient,
                                                     .vjp = kernel_gradient_vjp,
                                                     .saves_in = 3,
                                                     .shape_only = 4};

constinit DeviceConvLimits device_conv_limits;

Attrs window_attrs(const ConvForm& form) { return Attrs(Ref<Extra>::adopt(new ConvAttrs(form))); }

void check_rank(const char* op, const ConvForm& form, const TensorSpec& s, const char* which) {
  check_rank({op, which}, s, form.axes + 2, ": ", form.channels_first ? "(batch, channels" : "(batch",
             form.axes == 1   ? ", steps"
             : form.axes == 2 ? ", rows, columns"
                              : ", depth, rows, columns",
             form.channels_first ? ")" : ", channels)");
}

Tensor convolution(const Tensor& x, const Tensor& w, const ConvForm& how) {
  return apply1(convolution_op, window_attrs(how), {x, w});
}

Tensor convolution_input_gradient(const Tensor& dy, const Tensor& w, const Tensor& dims, const ConvForm& how) {
  return apply1(convolution_input_gradient_op, window_attrs(how), {dy, w, dims});
}

}  // namespace kassette::ops

// ops/fft/fft.cpp - discrete Fourier transforms along an axis: rule, kernel, adjoint.
//
// The op is linear in real and imaginary parts, and its adjoint is the op again: a complex transform has the one with
// the other sign, real input becomes real output, and what was cut off or filled with zeros at one end is filled or cut
// off at the other. A number of a half that has a mirror image counts twice in half_to_real, and once in real_to_half:
// the adjoint makes up for that by a factor of 2 or 1/2.
#include "ops/fft/fft.h"

#include <cmath>

#include "core/rank.h"
#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/half_compute.h"
#include "ops/engine/on_host.h"
#include "ops/fft/fft_run.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

bool complex_result(FftForm form) { return form != FftForm::complex_to_real && form != FftForm::half_to_real; }
int outputs(const Attrs& attrs) { return complex_result(attrs.as<FftAttrs>().form) ? 2 : 1; }
/// The number of inputs in front of the numbers: `like`.
int first_input(const OpCall& call) { return &call.op == &fft_like_op ? 1 : 0; }

/// The length of the transform; unknown if the one that it depends on is.
std::int64_t length_of(const OpCall& call) {
  const auto& a = call.attrs.as<FftAttrs>();
  if (a.n > 0) return a.n;
  const bool from_like = a.n == FftAttrs::kOfLike;
  const TensorSpec& x = call.spec(from_like ? 0 : first_input(call));
  const std::int64_t n = x.rank < 0 ? kUnknown : x.dims[a.axis];
  return n >= 0 && !from_like && a.form == FftForm::half_to_real ? 2 * (n - 1) : n;
}

void fft_rule(const OpCall& call, TensorSpec* out) {
  const auto& a = call.attrs.as<FftAttrs>();
  const int first = first_input(call);
  const TensorSpec& x = call.spec(first);
  if (!x.dtype.is_float())
    fail<TypeError>({call.op.name, "x"}, "is ", x.dtype, kExpected, "it must be of floats", kRemedy,
                    "cast it first (K::cast)");
  for (int i = first + 1; i < call.n_in; ++i) {
    const TensorSpec& y = call.spec(i);
    if (y.dtype != x.dtype)
      fail<TypeError>({call.op.name, "imag"}, "is ", y.dtype, " and real is ", x.dtype, kRemedy,
                      "cast one of them (K::cast)");
    bool fits = x.rank < 0 || y.rank < 0 || x.rank == y.rank;
    for (int k = 0; fits && x.rank >= 0 && k < y.rank; ++k) fits = !differ(x.dims[k], y.dims[k]);
    if (!fits)
      fail<ValueError>({call.op.name, "imag"}, "of shape ", y, " does not fit real of shape ", x, kExpected,
                       "their shapes must be equal");
  }
  if (x.rank >= 0) place_axis(call.op.name, a.axis, x);
  const std::int64_t n = length_of(call);
  if (n != kUnknown && n < 1)
    fail<ValueError>({call.op.name, "x"}, "of shape ", x, " has ", x.dims[a.axis], " elements along axis ", a.axis,
                     kExpected,
                     a.form == FftForm::half_to_real ? "there must be two at least, unless n is given"
                                                     : "there must be one at least, unless n is given");
  for (int k = 0; k < call.n_out; ++k) {
    out[k].set(x);
    if (x.rank < 0) continue;
    if (first) out[k].dims[a.axis] = call.spec(0).rank < 0 ? kUnknown : call.spec(0).dims[a.axis];
    else out[k].dims[a.axis] = a.form == FftForm::real_to_half && n != kUnknown ? n / 2 + 1 : n;
  }
}

void fft_kernel(const OpCall& call) {
  const auto& a = call.attrs.as<FftAttrs>();
  const int first = first_input(call);
  const TensorSpec& x = call.spec(first);
  if (call.out[0]->numel() == 0) return;
  const std::int64_t n = length_of(call);
  const double scale = a.how.norm == FftNorm::n        ? 1 / static_cast<double>(n)
                       : a.how.norm == FftNorm::sqrt_n ? 1 / std::sqrt(static_cast<double>(n))
                                                       : 1;
  auto run = [&](auto zero) {
    using T = decltype(zero);
    const AxisSplit split(x, a.axis);
    const WideInput<T> re(call, first), im = call.n_in > first + 1 ? WideInput<T>(call, first + 1) : WideInput<T>();
    const WideOutput<T> to_re(*call.out[0]), to_im = call.n_out > 1 ? WideOutput<T>(*call.out[1]) : WideOutput<T>();
    FftJob<T> job;
    job.form = a.form;
    job.inverse = a.how.inverse;
    job.scale = static_cast<T>(scale);
    job.weight = static_cast<T>(std::ldexp(1, a.how.power));
    job.n = n;
    job.rows = split.outer * split.inner;
    job.from = {x.numel() ? re.get() : nullptr, x.numel() ? im.get() : nullptr, split.n, split.inner};
    job.to = {to_re.get(), to_im.get(), call.out[0]->dims[a.axis], split.inner};
    run_fft(job);
    to_re.store();
    to_im.store();
  };
  if (x.dtype == float64) run(0.0);
  else run(0.0f);
}

FftForm adjoint_of(FftForm form) {
  switch (form) {
    case FftForm::complex: return FftForm::complex;
    case FftForm::real_to_complex: return FftForm::complex_to_real;
    case FftForm::complex_to_real: return FftForm::real_to_complex;
    case FftForm::real_to_half: return FftForm::half_to_real;
    case FftForm::half_to_real: return FftForm::real_to_half;
  }
  __builtin_unreachable();
}
/// `first`: the number of inputs in front of the numbers.
void differentiate(const VjpContext& ctx, int first) {
  FftAttrs a = ctx.attrs.as<FftAttrs>();
  if (a.n == FftAttrs::kOfLike || (a.n == FftAttrs::kOwn && a.form == FftForm::half_to_real)) a.n = FftAttrs::kOwn;
  else if (a.n == FftAttrs::kOwn) a.n = FftAttrs::kOfLike;
  a.how.power = static_cast<std::int8_t>(a.form == FftForm::real_to_half   ? a.how.power - 1
                                         : a.form == FftForm::half_to_real ? a.how.power + 1
                                                                           : 0);
  a.form = adjoint_of(a.form);
  a.how.inverse = !a.how.inverse;
  Tensor re = ctx.dy(0), im = ctx.n_out() > 1 ? ctx.dy(1) : Tensor();
  if (!re.defined()) re = zeros_of(im);
  if (!im.defined() && ctx.n_out() > 1) im = zeros_of(re);
  Tensor out[2];
  const In in[] = {ctx.like(first), re, im};
  apply(fft_like_op, a, in, ctx.n_out() > 1 ? 3 : 2, out, complex_result(a.form) ? 2 : 1);
  for (int i = first; i < ctx.n_in(); ++i) ctx.din(i) = out[i - first];
}
void fft_vjp(const VjpContext& ctx) { differentiate(ctx, 0); }
void fft_like_vjp(const VjpContext& ctx) { differentiate(ctx, 1); }

}  // namespace

constinit const OpDef fft_op{.name = "fft",
                             .rule = fft_rule,
                             .cpu = fft_kernel,
                             .vjp = fft_vjp,
                             .n_out = 0,
                             .outputs = outputs,
                             .inputs = "real imag"};
constinit const OpDef fft_like_op{.name = "fft_like",
                                  .rule = fft_rule,
                                  .cpu = fft_kernel,
                                  .vjp = fft_like_vjp,
                                  .shape_only = 1,
                                  .n_out = 0,
                                  .outputs = outputs,
                                  .inputs = "like real imag"};

FftPair fft(const FftPair& x, const FftAttrs& attrs) {
  const Tensor re = on_host(x.real), im = x.imaginary.defined() ? on_host(x.imaginary) : Tensor();
  const In in[] = {re, im};
  Tensor out[2];
  const bool pair = complex_result(attrs.form);
  apply(fft_op, attrs, in, im.defined() ? 2 : 1, out, pair ? 2 : 1);
  return {back_to(x.real, out[0]), pair ? back_to(x.real, out[1]) : Tensor()};
}

}  // namespace kassette::ops

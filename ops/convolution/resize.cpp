// ops/convolution/resize.cpp - bilinear enlargement of images: rules, kernels on the CPU, gradients.
#include "ops/convolution/resize.h"

#include <algorithm>
#include <type_traits>

#include "core/rank.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/convolution/resize_loops.h"

namespace kassette::ops {
namespace {

void rule(const OpCall& call, TensorSpec* out) {
  const ResizeAttrs& how = call.attrs.as<ResizeAttrs>();
  const TensorSpec& x = call.spec(0);
  if (x.dtype != float32 && x.dtype != float64)
    fail<TypeError>({"resize_bilinear", "x"}, "is ", x.dtype, kExpected, "it must be float32 or float64");
  check_rank({"resize_bilinear", "x"}, x, 4);
  const int rows = how.channels_first ? 2 : 1;
  out->rank = 4;
  out->dtype = x.dtype;
  for (int i = 0; i < 4; ++i) out->dims[i] = x.dim(i);
  for (int i = 0; i < 2; ++i) {
    std::int64_t& n = out->dims[rows + i];
    if (n >= 0 && __builtin_mul_overflow(n, i == 0 ? how.row_factor : how.column_factor, &n))
      fail<ValueError>({"resize_bilinear", "x"}, x, " enlarged by ", how.row_factor, " and ", how.column_factor,
                       " is too large to address");
  }
}
void gradient_rule(const OpCall& call, TensorSpec* out) {
  const ResizeAttrs& how = call.attrs.as<ResizeAttrs>();
  out->set(call.spec(0));
  const int rows = how.channels_first ? 2 : 1;
  if (out->rank < 0) return;
  for (int i = 0; i < 2; ++i)
    if (out->dims[rows + i] > 0) out->dims[rows + i] /= i == 0 ? how.row_factor : how.column_factor;
}

constexpr std::int64_t kGrain = 1 << 15;

template <class T>
const ResizeLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(resize_table).f32;
  else return KASSETTE_PICK(resize_table).f64;
}
/// Up to so many elements an inline loop is faster than a call of a vector loop.
constexpr std::int64_t kShort = 8;

/// Enlarges a row: each output column blends the `inner` elements of the column before it and the column after it.
template <class T, class Blend>
void widen_by(const T* x, const ResizeShape& s, T* to, Blend blend) {
  const auto f = static_cast<T>(s.column_factor);
  for (std::int64_t c = 0; c < s.columns; ++c) {
    const T *a = x + c * s.inner, *b = c + 1 < s.columns ? a + s.inner : a;
    for (std::int64_t k = 0; k < s.column_factor; ++k, to += s.inner) blend(a, b, static_cast<T>(k) / f, s.inner, to);
  }
}
template <class T>
void widen(const T* x, const ResizeShape& s, T* to) {
  if (s.inner > kShort)
    return widen_by(x, s, to, [blend = loops<T>().blend](const T* a, const T* b, T t, std::int64_t n, T* y) {
      blend(a, b, t, n, y, /*stream=*/false);
    });
  widen_by(x, s, to, [](const T* a, const T* b, T t, std::int64_t n, T* y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + (b[i] - a[i]) * t;
  });
}
/// The adjoint of widen_by().
template <class T, class Add>
void narrow_by(const T* x, const ResizeShape& s, T* to, Add add_scaled) {
  const std::int64_t f = s.column_factor;
  for (std::int64_t c = 0; c < s.columns; ++c, to += s.inner) {
    std::fill_n(to, s.inner, T(0));
    for (std::int64_t k = 1; c > 0 && k < f; ++k)
      add_scaled(x + ((c - 1) * f + k) * s.inner, static_cast<T>(k) / static_cast<T>(f), s.inner, to);
    for (std::int64_t k = 0; k < f; ++k)
      add_scaled(x + (c * f + k) * s.inner, c + 1 < s.columns ? 1 - static_cast<T>(k) / static_cast<T>(f) : T(1),
                 s.inner, to);
  }
}
template <class T>
void narrow(const T* x, const ResizeShape& s, T* to) {
  if (s.inner > kShort) return narrow_by(x, s, to, loops<T>().add_scaled);
  narrow_by(x, s, to, [](const T* from, T t, std::int64_t n, T* y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] += from[i] * t;
  });
}

template <class T>
void enlarge(const ResizeShape& s, const T* x, T* y) {
  const std::int64_t in = s.columns * s.inner, out = in * s.column_factor, f = s.row_factor;
  // Write past the caches if they cannot hold the result, and if lines are long enough to make up for the fence after
  // each.
  const std::int64_t line_bytes = out * static_cast<std::int64_t>(sizeof(T));
  const bool stream = line_bytes >= 4096 && s.outer * s.rows * f >= (4 << 20) / line_bytes;
  devices::parallel_for(s.outer * s.rows, std::max<std::int64_t>(1, kGrain / (out * f)),
                        [&](std::int64_t begin, std::int64_t end) {
                          Scratch<T> lines(2 * out);
                          T *above = lines.get(), *below = above + out;
                          std::int64_t ready = -1;  // the row whose line `above` holds
                          for (std::int64_t i = begin; i < end; ++i) {
                            const bool last = i % s.rows == s.rows - 1;
                            if (ready != i) widen(x + i * in, s, above);
                            if (!last) widen(x + (i + 1) * in, s, below);
                            for (std::int64_t k = 0; k < f; ++k)
                              loops<T>().blend(above, last ? above : below, static_cast<T>(k) / static_cast<T>(f), out,
                                               y + (i * f + k) * out, stream);
                            std::swap(above, below);
                            ready = last ? -1 : i + 1;
                          }
                        });
}
template <class T>
void enlarge_gradient(const ResizeShape& s, const T* dy, T* dx) {
  const std::int64_t in = s.columns * s.inner, out = in * s.column_factor, f = s.row_factor;
  devices::parallel_for(
      s.outer * s.rows, std::max<std::int64_t>(1, kGrain / (out * f)), [&](std::int64_t begin, std::int64_t end) {
        Scratch<T> line(out);
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = i % s.rows;
          std::fill_n(line.get(), out, T(0));
          for (std::int64_t k = 1; row > 0 && k < f; ++k)
            loops<T>().add_scaled(dy + ((i - 1) * f + k) * out, static_cast<T>(k) / static_cast<T>(f), out, line.get());
          for (std::int64_t k = 0; k < f; ++k)
            loops<T>().add_scaled(dy + (i * f + k) * out,
                                  row + 1 < s.rows ? 1 - static_cast<T>(k) / static_cast<T>(f) : T(1), out, line.get());
          narrow(line.get(), s, dx + i * in);
        }
      });
}

void kernel(const OpCall& call) {
  if (call.out[0]->numel() == 0) return;
  const ResizeShape s(call.attrs, call.spec(0));
  if (call.out[0]->dtype == float64) enlarge(s, call.in[0].as<double>(), call.out_as<double>());
  else enlarge(s, call.in[0].as<float>(), call.out_as<float>());
}
void gradient_kernel(const OpCall& call) {
  if (call.out[0]->numel() == 0) return;
  const ResizeShape s(call.attrs, *call.out[0]);
  if (call.out[0]->dtype == float64) enlarge_gradient(s, call.in[0].as<double>(), call.out_as<double>());
  else enlarge_gradient(s, call.in[0].as<float>(), call.out_as<float>());
}

void vjp(const VjpContext& ctx) { ctx.din(0) = apply1(resize_bilinear_gradient_op, ctx.attrs, {ctx.dy()}); }
void gradient_vjp(const VjpContext& ctx) { ctx.din(0) = apply1(resize_bilinear_op, ctx.attrs, {ctx.dy()}); }

}  // namespace

constinit const OpDef resize_bilinear_op{.name = "resize_bilinear", .rule = rule, .cpu = kernel, .vjp = vjp};
constinit const OpDef resize_bilinear_gradient_op{
    .name = "resize_bilinear_gradient", .rule = gradient_rule, .cpu = gradient_kernel, .vjp = gradient_vjp};

Tensor resize_bilinear(const Tensor& x, const ResizeAttrs& attrs) { return apply1(resize_bilinear_op, attrs, {x}); }

}  // namespace kassette::ops

// ops/resize.cu - bilinear enlargement on CUDA: one thread per element of the result, so that accesses are coalesced.
#include <iterator>

#include "ops/resize.h"
#include "ops/teams.cuh"

namespace kassette::cuda {
namespace {

/// The weight of element `from`, of n, in result `to`, of n * factor.
template <class T>
KASSETTE_FN T share(std::int64_t from, std::int64_t to, std::int64_t n, std::int64_t factor) {
  const T t = static_cast<T>(to % factor) / static_cast<T>(factor);
  if (to / factor == from) return from + 1 < n ? 1 - t : T(1);
  return to / factor + 1 == from ? t : T(0);
}
template <class T>
__global__ void enlarge_each(ResizeShape s, const T* x, T* y) {
  const std::int64_t columns = s.columns * s.column_factor, n = s.outer * s.rows * s.row_factor * columns * s.inner;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t inner = t % s.inner, j = t / s.inner % columns,
                       i = t / s.inner / columns % (s.rows * s.row_factor),
                       outer = t / s.inner / columns / (s.rows * s.row_factor);
    const std::int64_t a = i / s.row_factor, b = a + 1 < s.rows ? a + 1 : a, c = j / s.column_factor,
                       d = c + 1 < s.columns ? c + 1 : c;
    const T down = static_cast<T>(i % s.row_factor) / static_cast<T>(s.row_factor),
            right = static_cast<T>(j % s.column_factor) / static_cast<T>(s.column_factor);
    auto at = [&](std::int64_t row, std::int64_t column) {
      return x[((outer * s.rows + row) * s.columns + column) * s.inner + inner];
    };
    const T above = at(a, c) + (at(a, d) - at(a, c)) * right, below = at(b, c) + (at(b, d) - at(b, c)) * right;
    y[t] = above + (below - above) * down;
  }
}
template <class T>
__global__ void enlarge_gradient_each(ResizeShape s, const T* dy, T* dx) {
  const std::int64_t columns = s.columns * s.column_factor, rows = s.rows * s.row_factor,
                     n = s.outer * s.rows * s.columns * s.inner;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t inner = t % s.inner, c = t / s.inner % s.columns, r = t / s.inner / s.columns % s.rows,
                       outer = t / s.inner / s.columns / s.rows;
    const std::int64_t first_row = r > 0 ? (r - 1) * s.row_factor + 1 : 0,
                       first_column = c > 0 ? (c - 1) * s.column_factor + 1 : 0;
    T sum = T(0);
    for (std::int64_t j = first_column; j < (c + 1) * s.column_factor; ++j) {
      T down = T(0);
      for (std::int64_t i = first_row; i < (r + 1) * s.row_factor; ++i)
        down = down + dy[((outer * rows + i) * columns + j) * s.inner + inner] * share<T>(r, i, s.rows, s.row_factor);
      sum = sum + down * share<T>(c, j, s.columns, s.column_factor);
    }
    dx[t] = sum;
  }
}
template <class F>
void with_float_or_double(const OpCall& call, F&& f) {
  if (call.out[0]->numel() == 0) return;
  if (call.out[0]->dtype == float64) f(static_cast<double*>(nullptr));
  else f(static_cast<float*>(nullptr));
}
void run_enlarge(const OpCall& call) {
  with_float_or_double(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), enlarge_each<T>,
           ResizeShape(call.attrs, call.spec(0)), call.in[0].as<T>(), call.out_as<T>());
  });
}
void run_enlarge_gradient(const OpCall& call) {
  with_float_or_double(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), enlarge_gradient_each<T>,
           ResizeShape(call.attrs, *call.out[0]), call.in[0].as<T>(), call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"resize_bilinear", run_enlarge}, {"resize_bilinear_gradient", run_enlarge_gradient}};

}  // namespace

Kernels resize_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

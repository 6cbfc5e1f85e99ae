// ops/convolution/resize.cu - bilinear enlargement on CUDA: one thread per element of the result, so that accesses are
// coalesced.
#include <iterator>

#include "ops/convolution/resize.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

/// The shape of the small images, with dividers by its factors and by the sizes of the images that a kernel writes.
struct Enlargement : ResizeShape {
  Divider by_row_factor, by_column_factor, by_inner, by_columns, by_rows;
  Enlargement(const ResizeShape& s, std::int64_t rows_, std::int64_t columns_)
      : ResizeShape(s), by_row_factor(s.row_factor), by_column_factor(s.column_factor), by_inner(s.inner),
        by_columns(columns_), by_rows(rows_) {}
};
/// Where element t of the images that a kernel writes is.
struct Element {
  std::int64_t outer, row, column, inner;
  KASSETTE_FN Element(const Enlargement& s, std::int64_t t) {
    const std::int64_t point = s.by_inner(t), line = s.by_columns(point);
    outer = s.by_rows(line);
    row = line - outer * s.by_rows.by;
    column = point - line * s.by_columns.by;
    inner = t - point * s.inner;
  }
};

/// The weight of element `from`, of n, in result `to`, of n * factor.
template <class T>
KASSETTE_FN T share(std::int64_t from, std::int64_t to, std::int64_t n, const Divider& factor) {
  const std::int64_t before = factor(to);
  const T t = static_cast<T>(to - before * factor.by) / static_cast<T>(factor.by);
  if (before == from) return from + 1 < n ? 1 - t : T(1);
  return before + 1 == from ? t : T(0);
}
template <class T>
__global__ void enlarge_each(Enlargement s, std::int64_t n, const T* x, T* y) {
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Element e(s, t);
    const std::int64_t a = s.by_row_factor(e.row), b = a + 1 < s.rows ? a + 1 : a, c = s.by_column_factor(e.column),
                       d = c + 1 < s.columns ? c + 1 : c;
    const T down = static_cast<T>(e.row - a * s.row_factor) / static_cast<T>(s.row_factor),
            right = static_cast<T>(e.column - c * s.column_factor) / static_cast<T>(s.column_factor);
    auto at = [&](std::int64_t row, std::int64_t column) {
      return x[((e.outer * s.rows + row) * s.columns + column) * s.inner + e.inner];
    };
    const T above = at(a, c) + (at(a, d) - at(a, c)) * right, below = at(b, c) + (at(b, d) - at(b, c)) * right;
    y[t] = above + (below - above) * down;
  }
}
template <class T>
__global__ void enlarge_gradient_each(Enlargement s, std::int64_t n, const T* dy, T* dx) {
  const std::int64_t columns = s.columns * s.column_factor, rows = s.rows * s.row_factor;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Element e(s, t);
    const std::int64_t r = e.row, c = e.column;
    const std::int64_t first_row = r > 0 ? (r - 1) * s.row_factor + 1 : 0,
                       first_column = c > 0 ? (c - 1) * s.column_factor + 1 : 0;
    T sum = T(0);
    for (std::int64_t j = first_column; j < (c + 1) * s.column_factor; ++j) {
      T down = T(0);
      for (std::int64_t i = first_row; i < (r + 1) * s.row_factor; ++i)
        down = down +
               dy[((e.outer * rows + i) * columns + j) * s.inner + e.inner] * share<T>(r, i, s.rows, s.by_row_factor);
      sum = sum + down * share<T>(c, j, s.columns, s.by_column_factor);
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
    const ResizeShape s(call.attrs, call.spec(0));
    const std::int64_t n = call.out[0]->numel();
    launch(call.op.name, device_of(call.device), blocks_for(n), enlarge_each<T>,
           Enlargement(s, s.rows * s.row_factor, s.columns * s.column_factor), n, call.in[0].as<T>(), call.out_as<T>());
  });
}
void run_enlarge_gradient(const OpCall& call) {
  with_float_or_double(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const ResizeShape s(call.attrs, *call.out[0]);
    const std::int64_t n = call.out[0]->numel();
    launch(call.op.name, device_of(call.device), blocks_for(n), enlarge_gradient_each<T>,
           Enlargement(s, s.rows, s.columns), n, call.in[0].as<T>(), call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"resize_bilinear", run_enlarge}, {"resize_bilinear_gradient", run_enlarge_gradient}};

}  // namespace

Kernels resize_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

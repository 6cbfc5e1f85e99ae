// ops/softmax_loops.h - the loops of softmax and its losses, as each CPU level has them.
#pragma once
#include "ops/fold_loops.h"

namespace kassette {

/// Rows are n consecutive elements each, `count` of them. Columns are n elements `stride` apart each, `width` of them side by
/// side. An output may be null where it says so.
template <class T>
struct SoftmaxLoops {
  FoldLoops<T> logsumexp;
  /// y = softmax(x); lse, one per row or column, may be null.
  void (*rows)(const T* x, T* y, T* lse, std::int64_t count, std::int64_t n);
  void (*columns)(const T* x, T* y, T* lse, std::int64_t n, std::int64_t stride, std::int64_t width);
  /// y = x - lse.
  void (*log_rows)(const T* x, T* y, std::int64_t count, std::int64_t n);
  void (*log_columns)(const T* x, T* y, std::int64_t n, std::int64_t stride, std::int64_t width);
  /// dx = y * (dy - sum(dy * y)).
  void (*grad_rows)(const T* dy, const T* y, T* dx, std::int64_t count, std::int64_t n);
  void (*grad_columns)(const T* dy, const T* y, T* dx, std::int64_t n, std::int64_t stride, std::int64_t width);
  /// loss = sum(t * (lse - z)); 0 where t is 0.
  void (*loss_rows)(const T* t, const T* z, const T* lse, T* loss, std::int64_t count, std::int64_t n);
  void (*loss_columns)(const T* t, const T* z, const T* lse, T* loss, std::int64_t n, std::int64_t stride,
                       std::int64_t width);
  /// dz = dy * (p * sum(t) - t), dy one per row or column.
  void (*loss_grad_rows)(const T* dy, const T* t, const T* p, T* dz, std::int64_t count, std::int64_t n);
  void (*loss_grad_columns)(const T* dy, const T* t, const T* p, T* dz, std::int64_t n, std::int64_t stride,
                            std::int64_t width);
  /// loss = -sum(t * log(q)), q = p / sum(p) between low and high.
  void (*probability_rows)(const T* t, const T* p, T low, T high, T* loss, std::int64_t count, std::int64_t n);
  void (*probability_columns)(const T* t, const T* p, T low, T high, T* loss, std::int64_t n, std::int64_t stride,
                              std::int64_t width);
  /// dp = dy * (sum(t) - t / q) / sum(p), where t counts as 0 outside low and high.
  void (*probability_grad_rows)(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t count,
                                std::int64_t n);
  void (*probability_grad_columns)(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t n,
                                   std::int64_t stride, std::int64_t width);
  /// sums[row] = sum(q), q = p between low and high.
  void (*clipped_sums)(const T* p, T low, T high, T* sums, std::int64_t count, std::int64_t n);
  /// dp = dy / sum(q), 0 outside low and high: the gradient of log(sum(q)).
  void (*clipped_sums_grad)(const T* dy, const T* p, T low, T high, T* dp, std::int64_t count, std::int64_t n);
  /// out = dy[row] * p.
  void (*scale_rows)(const T* dy, const T* p, T* out, std::int64_t count, std::int64_t n);
  /// w = exp(x - w), 0 where w is -inf: softmax, w having been the logsumexp beside each element.
  void (*exp_gap)(const T* x, T* w, std::int64_t n);
  /// loss = max(z, 0) - z * t + log(1 + exp(-|z|)).
  void (*sigmoid_loss)(const T* t, const T* z, T* loss, std::int64_t n);
  /// loss = -(t * log(q) + (1 - t) * log(1 - q)), q = p between low and high.
  void (*binary_loss)(const T* t, const T* p, T low, T high, T* loss, std::int64_t n);
  /// dp = dy * (q - t) / (q * (1 - q)), 0 outside low and high.
  void (*binary_grad)(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t n);
};
struct SoftmaxTable {
  SoftmaxLoops<float> f32;
  SoftmaxLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(SoftmaxTable, softmax_table)

}  // namespace kassette

// ops/softmax_loops.h - the inner loops of softmax and its losses at one CPU level.
#pragma once
#include "ops/reduce_loops.h"

namespace kassette::ops {

/// *_rows work on `count` consecutive rows of n elements; *_columns on `width` neighbouring columns of n elements,
/// which are `stride` apart.
template <class T>
struct SoftmaxLoops {
  ReduceLoops<T> logsumexp;
  /// y = softmax(x). lse gets the logsumexp of each row or column unless it is null.
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
  /// dz = dy * (p * sum(t) - t); dy has one element per row or column.
  void (*loss_grad_rows)(const T* dy, const T* t, const T* p, T* dz, std::int64_t count, std::int64_t n);
  void (*loss_grad_columns)(const T* dy, const T* t, const T* p, T* dz, std::int64_t n, std::int64_t stride,
                            std::int64_t width);
  /// loss = -sum(t * log(q)), with q = p / sum(p) clipped to [low, high].
  void (*probability_rows)(const T* t, const T* p, T low, T high, T* loss, std::int64_t count, std::int64_t n);
  void (*probability_columns)(const T* t, const T* p, T low, T high, T* loss, std::int64_t n, std::int64_t stride,
                              std::int64_t width);
  /// dp = dy * (sum(t) - t / q) / sum(p), with q = p / sum(p). t counts as 0 where q is outside of [low, high].
  void (*probability_grad_rows)(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t count,
                                std::int64_t n);
  void (*probability_grad_columns)(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t n,
                                   std::int64_t stride, std::int64_t width);
  /// sums[row] = sum(q), with q = p clipped to [low, high].
  void (*clipped_sums)(const T* p, T low, T high, T* sums, std::int64_t count, std::int64_t n);
  /// dp = dy / sum(q), and 0 where p is outside of [low, high]: the gradient of log(sum(q)).
  void (*clipped_sums_grad)(const T* dy, const T* p, T low, T high, T* dp, std::int64_t count, std::int64_t n);
  /// out = dy[row] * p.
  void (*scale_rows)(const T* dy, const T* p, T* out, std::int64_t count, std::int64_t n);
  /// w = exp(x - w), and 0 where w is -inf: softmax, if w holds the logsumexp of each element's group.
  void (*from_logsumexp)(const T* x, T* w, std::int64_t n);
  /// loss = max(z, 0) - z * t + log(1 + exp(-|z|)).
  void (*sigmoid_loss)(const T* t, const T* z, T* loss, std::int64_t n);
  /// loss = -(t * log(q) + (1 - t) * log(1 - q)), with q = p clipped to [low, high].
  void (*binary_loss)(const T* t, const T* p, T low, T high, T* loss, std::int64_t n);
  /// dp = dy * (p - t) / (p * (1 - p)), and 0 where p is outside of [low, high].
  void (*binary_grad)(const T* dy, const T* t, const T* p, T low, T high, T* dp, std::int64_t n);
};
/// The loops of one CPU level.
struct SoftmaxTable {
  SoftmaxLoops<float> f32;
  SoftmaxLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(SoftmaxTable, softmax_table)

}  // namespace kassette::ops

// ops/softmax/softmax_loops.h - the inner loops of softmax and its losses at one CPU level.
#pragma once
#include "ops/reduce/reduce_loops.h"

namespace kassette::ops {

// Note [Invariant under a shift]
// Softmax, its logarithm and the losses from logits do not change if a constant is added to all elements of a row, and
// so their rounding errors must not grow with it. logsumexp does grow: rounded, it has lost the part that differences
// from it would need (at 1e6 a float is a multiple of 1/16). So only differences from the largest element are computed
// with, which are exact where it matters, and max and log_sum are kept apart until the last operation. var and
// normalisation do the same with the mean, whose rounding is taken out: Note [The rounding of a mean].

/// For each row or column the largest element, and the logarithm of the sum of exp(x - max). Their sum is logsumexp.
template <class T>
struct LogSums {
  T *max = nullptr, *log_sum = nullptr;
  LogSums from(std::int64_t i) const { return {max + i, log_sum + i}; }
};

/// *_rows work on `count` consecutive rows of n elements; *_columns on `width` neighbouring columns of n elements,
/// which are `stride` apart. softmax.cu has a struct of each name, for what it calls lines: rows or columns.
template <class T>
struct SoftmaxLoops {
  ReduceLoops<T> logsumexp;
  /// y = softmax(x). `sums` gets those of each row or column unless its arrays are null.
  void (*softmax_rows)(const T* x, T* y, LogSums<T> sums, std::int64_t count, std::int64_t n);
  void (*softmax_columns)(const T* x, T* y, LogSums<T> sums, std::int64_t n, std::int64_t stride, std::int64_t width);
  /// y = log(softmax(x)).
  void (*log_softmax_rows)(const T* x, T* y, std::int64_t count, std::int64_t n);
  void (*log_softmax_columns)(const T* x, T* y, std::int64_t n, std::int64_t stride, std::int64_t width);
  /// dx = y * (dy - m), with the mean m of dy weighted by y: sum(dy * y) / sum(y). sum(y) is not quite 1 if y was
  /// rounded.
  void (*softmax_grad_rows)(const T* dy, const T* y, T* dx, std::int64_t count, std::int64_t n);
  void (*softmax_grad_columns)(const T* dy, const T* y, T* dx, std::int64_t n, std::int64_t stride, std::int64_t width);
  /// loss = sum(t * (log_sum - (z - max))); 0 where t is 0.
  void (*cross_entropy_rows)(const T* t, const T* z, LogSums<T> sums, T* loss, std::int64_t count, std::int64_t n);
  void (*cross_entropy_columns)(const T* t, const T* z, LogSums<T> sums, T* loss, std::int64_t n, std::int64_t stride,
                                std::int64_t width);
  /// dz = dy * (p * sum(t) - t); dy has one element per row or column.
  void (*cross_entropy_grad_rows)(const T* dy, const T* t, const T* p, T* dz, std::int64_t count, std::int64_t n);
  void (*cross_entropy_grad_columns)(const T* dy, const T* t, const T* p, T* dz, std::int64_t n, std::int64_t stride,
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
  /// w = exp(x - shift): one shift for n elements, or one per column for n rows of `width` elements.
  void (*exp_row)(const T* x, T shift, T* w, std::int64_t n);
  void (*exp_columns)(const T* x, const T* shift, T* w, std::int64_t n, std::int64_t width);
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

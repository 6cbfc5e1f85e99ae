// ops/linalg/matrices.h - what rules and kernels of linear algebra share: checks of shapes, and loops over the matrices
// of a batch.
#pragma once
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/rank.h"
#include "devices/cpu/lapack.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/half_compute.h"
#include "ops/engine/dims.h"
#include "ops/engine/on_host.h"
#include "ops/engine/op.h"
#include "ops/engine/operand.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {

/// Throws unless input i holds float matrices; `square` ones.
inline void check_matrices(const OpCall& call, int i, bool square, const char* name = "x") {
  const TensorSpec& x = call.spec(i);
  const At at{call.op.name, name};
  if (!x.dtype.is_float())
    fail<TypeError>(at, "is ", x.dtype, kExpected, "it must be of floats", kRemedy, "cast it first (K::cast)");
  if (x.rank < 0) fail_unknown_rank(at);
  if (x.rank < 2) fail<ValueError>(at, "of shape ", x, kExpected, "it must have two axes or more");
  if (square && differ(x.dims[x.rank - 2], x.dims[x.rank - 1]))
    fail<ValueError>(at, "of shape ", x, kExpected, "its matrices must be square");
  for (int k = x.rank - 2; k < x.rank; ++k)
    if (x.dims[k] > devices::kMostRows)
      fail<ValueError>(at, "of shape ", x, kExpected, "matrices may have ", devices::kMostRows,
                       " rows and columns at most");
}

/// Rows and columns of the matrices of a tensor, and how many they are.
struct MatrixShape {
  std::int64_t count = 1, rows, columns;
  explicit MatrixShape(const TensorSpec& x) : rows(x.dims[x.rank - 2]), columns(x.dims[x.rank - 1]) {
    for (int i = 0; i < x.rank - 2; ++i) count *= x.dims[i];
  }
  std::int64_t size() const { return rows * columns; }
};

inline double cube(std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }
template <class T>
void fill_nan(T* to, std::int64_t n) {
  std::fill_n(to, n, std::numeric_limits<T>::quiet_NaN());
}
template <class T>
bool all_finite(const T* x, std::int64_t n) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * 0;
  return sum == 0;
}

/// Which matrix i of a batch is, for errors: "the matrix of shape (3, 3)", or "matrix (1, 0) of those of shape (2, 4,
/// 3, 3)".
inline std::string matrix_text(const TensorSpec& x, std::int64_t i) {
  if (x.rank <= 2) return text("the matrix of shape ", x);
  std::int64_t at[kMaxRank];
  for (int axis = x.rank - 2; axis-- > 0;) {
    at[axis] = i % x.dims[axis];
    i /= x.dims[axis];
  }
  std::string place = "matrix (";
  for (int axis = 0; axis < x.rank - 2; ++axis) place += (axis ? ", " : "") + std::to_string(at[axis]);
  return text(place, x.rank == 3 ? ",)" : ")", " of those of shape ", x);
}

/// True if no output has elements: then nothing is to be computed, however many matrices there are.
inline bool without_elements(const OpCall& call) {
  for (int i = 0; i < call.n_out; ++i)
    if (call.out[i]->numel() != 0) return false;
  return true;
}

/// Calls f(i) for each matrix, several at once where `work` multiplications each are worth it. f returns LAPACK's info;
/// fail_with(i, info) is called for the first matrix of which it is not 0.
template <class F, class Fail>
void each_matrix(std::int64_t count, double work, F&& f, Fail&& fail_with) {
  constexpr double kWorthAThread = 1 << 15;
  std::atomic<std::int64_t> failed{INT64_MAX};
  const auto grain = static_cast<std::int64_t>(std::max(1.0, kWorthAThread / (work + 1)));
  devices::parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if (f(i) != 0) {
        std::int64_t first = failed.load();
        while (i < first && !failed.compare_exchange_weak(first, i)) {
        }
      }
  });
  if (const std::int64_t i = failed.load(); i != INT64_MAX) fail_with(i);
}

/// The cotangent d of matrices, or 0 for those of which the results have only zero cotangents: these give zeros,
/// whatever the values. The results of a matrix are its last axes, those that d has but for its batch.
inline Tensor unless_zero(const Tensor& d, std::initializer_list<Tensor> results) {
  const int rank = Access::desc(d).rank;
  Tensor counts;
  for (const Tensor& dy : results) {
    if (!dy.defined()) continue;
    Tensor some = not_equal(dy, 0);
    const int own = Access::desc(dy).rank - (rank - 2);
    if (own == 2) some = any_of(some, {-2, -1}, /*keepdims=*/true);
    if (own == 1) some = expand_dims(any_of(some, -1, /*keepdims=*/true), -1);
    if (own == 0) some = expand_dims(expand_dims(some, -1), -1);
    counts = counts.defined() ? logical_or(counts, some) : some;
  }
  return where(counts, d, number_like(0, d));
}
/// The numbers of rows, as a column, and of columns, as a row, of the square matrices x; or of the matrices that have
/// vectors x on their diagonals.
struct Positions {
  explicit Positions(const Tensor& x) {
    const Tensor size = shape_of(x, int64)[Access::desc(x).rank - 1];
    column = arange(scalar_tensor(0, int64), size, scalar_tensor(1, int64), int64).to(x.device());
    row = expand_dims(column, 1);
  }
  Tensor on_diagonal() const { return equal(row, column); }
  Tensor row, column;
};

}  // namespace kassette::ops

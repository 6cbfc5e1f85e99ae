// nn_backend/testing/columns.cpp - the columns of matrices that are determined up to their signs or their order, as
// eigenvectors are, brought to those that are expected.
#include <kassette/testing.h>

#include <cmath>
#include <limits>
#include <vector>

#include <kassette/backend.h>

#include "nn_backend/testing/testing_report.h"

namespace kassette::testing {
namespace {

using Doubles = std::vector<double>;

/// Matrices (rows, columns), one after the other.
struct Columns {
  std::int64_t rows, columns;
  /// The sum of the differences of column i of `a` times sign, and column j of `e`. NaN equals NaN.
  double distance(const double* a, std::int64_t i, double sign, const double* e, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const double x = sign * a[r * columns + i], y = e[r * columns + j];
      if (x != y && !(std::isnan(x) && std::isnan(y))) sum += std::fabs(x - y);
    }
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
  }
  /// For each column of `e` the closest one of `a` that is left, with the sign that brings it closer.
  void match(const double* a, const double* e, bool any_sign, bool any_order, double* out) const {
    std::vector<bool> taken(static_cast<std::size_t>(columns));
    for (std::int64_t j = 0; j < columns; ++j) {
      std::int64_t best = -1;
      double best_sign = 1, least = 0;
      for (std::int64_t i = any_order ? 0 : j; i < (any_order ? columns : j + 1); ++i) {
        if (taken[static_cast<std::size_t>(i)]) continue;
        for (const double sign : {1.0, -1.0}) {
          if (sign < 0 && !any_sign) continue;
          const double apart = distance(a, i, sign, e, j);
          if (best >= 0 && !(apart < least)) continue;
          best = i, best_sign = sign, least = apart;
        }
      }
      taken[static_cast<std::size_t>(best)] = true;
      for (std::int64_t r = 0; r < rows; ++r) out[r * columns + j] = best_sign * a[r * columns + best];
    }
  }
};

}  // namespace

Tensor detail::matched_columns(const Tensor& actual, const Tensor& expected, const Tolerance& t) {
  if (!actual.dtype().is_float() || actual.ndim() == 0) return actual;
  const Shape shape = actual.shape();
  const std::int64_t last = shape[-1];
  const Columns each = shape.size() > 1 ? Columns{shape[-2], last} : t.any_order ? Columns{1, last} : Columns{last, 1};
  const Doubles a = actual.to_vector<double>(), e = expected.to_vector<double>();
  Doubles out(a.size());
  const std::int64_t size = each.rows * each.columns;
  for (std::int64_t at = 0; size > 0 && at < actual.size(); at += size)
    each.match(a.data() + at, e.data() + at, t.any_sign, t.any_order, out.data() + at);
  return out.empty() ? actual : backend::constant(out, actual.dtype(), shape);
}

}  // namespace kassette::testing

// nn_backend/testing/columns.cpp - the columns of matrices that are determined up to their signs or their order, as
// eigenvectors are, brought to those that are expected.
#include <kassette/numpy.h>
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
  /// For each column of `e` the place of the closest one of `a` that is left, and the sign that brings it closer; both
  /// are written for each element of the column.
  void match(const double* a, const double* e, bool any_sign, bool any_order, std::int64_t* places,
             double* signs) const {
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
      for (std::int64_t r = 0; r < rows; ++r) places[r * columns + j] = best, signs[r * columns + j] = best_sign;
    }
  }
};

}  // namespace

Tensor detail::matched_columns(const Tensor& actual, const Tensor& expected, const Tolerance& t) {
  if (actual.ndim() == 0 || actual.size() == 0) return actual;
  const Shape shape = actual.shape();
  const std::int64_t last = shape[-1];
  const Columns each = shape.size() > 1 ? Columns{shape[-2], last} : t.any_order ? Columns{1, last} : Columns{last, 1};
  const Doubles a = actual.to_vector<double>(), e = expected.to_vector<double>();
  std::vector<std::int64_t> places(a.size());
  Doubles signs(a.size());
  const std::int64_t size = each.rows * each.columns;
  for (std::int64_t at = 0; at < actual.size(); at += size)
    each.match(a.data() + at, e.data() + at, t.any_sign, t.any_order, places.data() + at, signs.data() + at);
  const Shape matrices{actual.size() / size, each.rows, each.columns};
  const Tensor exchanged =
      numpy::take_along_axis(backend::reshape(actual, matrices), backend::constant(places, int64, matrices), -1);
  const Tensor in_order = backend::reshape(exchanged, shape);
  return t.any_sign && !actual.dtype().is_bool() ? in_order * backend::constant(signs, actual.dtype(), shape)
                                                 : in_order;
}

}  // namespace kassette::testing

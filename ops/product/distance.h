// ops/product/distance.h - distances between all rows of two matrices.
#pragma once
#include "devices/cpu/level.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// The Euclidean distance of each row of x (..., m, width) to each row of y (..., n, width): (..., m, n). Computed from
/// differences, so that rows that lie close together are as exact as others. Where rows are equal the gradient is 0.
Tensor cdist(const Tensor& x, const Tensor& y);
/// Throws ValueError unless cdist takes these shapes, as far as they are known.
void check_rows(const TensorSpec& x, const TensorSpec& y);

extern const OpDef cdist_op;

/// out[i, j] = the distance of row i of x, which is (rows, width), to column j of y, which is (width, n).
template <class T>
using DistancesOfRows = void (*)(const T* x, std::int64_t rows, const T* y, std::int64_t width, std::int64_t n, T* out);
/// The loops of one CPU level.
struct DistanceTable {
  DistancesOfRows<float> f32;
  DistancesOfRows<double> f64;
};
KASSETTE_LEVEL_TABLES(DistanceTable, distance_table)

}  // namespace kassette::ops

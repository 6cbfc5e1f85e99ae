// ops/resize.h - bilinear enlargement of images.
#pragma once
#include "ops/op.h"

namespace kassette {

/// Images of rank 4 and float32 or float64, enlarged by whole factors of at least 1. Row i lies at i / rows of the rows of x, the last row is
/// repeated; columns likewise. Without centred pixels, as Keras 2.3 has it.
Tensor resize_bilinear(const Tensor& x, std::int64_t rows, std::int64_t columns, bool channels_first);

/// Linear in x; each is the adjoint of the other.
extern const OpDef resize_bilinear_op, resize_bilinear_gradient_op;

struct ResizeAttrs final : Extra {
  std::int64_t rows = 1, columns = 1;
  bool channels_first = false;
  bool equals(const Extra& other) const override;
};
/// The small images as (outer, rows, columns, inner).
struct ResizeShape {
  std::int64_t outer, rows, columns, inner, row_factor, column_factor;
  ResizeShape(const Attrs& attrs, const TensorSpec& x) {
    const auto& how = static_cast<const ResizeAttrs&>(*attrs.extra);
    const bool first = how.channels_first;
    outer = first ? x.dims[0] * x.dims[1] : x.dims[0];
    rows = x.dims[first ? 2 : 1];
    columns = x.dims[first ? 3 : 2];
    inner = first ? 1 : x.dims[3];
    row_factor = how.rows;
    column_factor = how.columns;
  }
};

}  // namespace kassette

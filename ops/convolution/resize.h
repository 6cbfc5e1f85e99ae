// ops/convolution/resize.h - bilinear enlargement of images.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// The attributes of enlarging and of its adjoint.
struct ResizeAttrs {
  static constexpr const char* attrs_name = "resize_bilinear";
  std::int64_t row_factor, column_factor;
  bool channels_first;
};
/// Enlarges images (rank 4, float32 or float64) by integer factors of at least 1. Output row i samples x at row i /
/// row_factor, and x's last row is repeated; columns likewise. Pixel centres are not aligned, as in Keras 2.3.
Tensor resize_bilinear(const Tensor& x, const ResizeAttrs& attrs);

/// Each is the adjoint of the other: both are linear.
extern const OpDef resize_bilinear_op, resize_bilinear_gradient_op;

/// The shape of the small images as (outer, rows, columns, inner), for either layout, and the factors.
struct ResizeShape {
  std::int64_t outer, rows, columns, inner, row_factor, column_factor;
  ResizeShape(const Attrs& attrs, const TensorSpec& x) {
    const auto& how = attrs.as<ResizeAttrs>();
    const bool first = how.channels_first;
    outer = first ? x.dims[0] * x.dims[1] : x.dims[0];
    rows = x.dims[first ? 2 : 1];
    columns = x.dims[first ? 3 : 2];
    inner = first ? 1 : x.dims[3];
    row_factor = how.row_factor;
    column_factor = how.column_factor;
  }
};

}  // namespace kassette::ops

// ops/sparse/sparse.h - sparse tensors (core/sparse.h): construction, conversion, concatenation and products.
#pragma once
#include "core/sparse.h"
#include "ops/engine/op.h"

namespace kassette::ops {

extern const OpDef sparse_coo_op, sparse_nonzero_op, sparse_to_dense_op, sparse_gather_op, sparse_dot_op,
    sparse_products_op, sparse_concatenate_op;

/// Makes a sparse tensor from indices (n, rank) of any integer dtype, values (n,) and the dense shape, a 1-D tensor on
/// the host. Shapes are checked now, as far as they are known; index values when the op runs.
Tensor sparse_coo(const Tensor& indices, const Tensor& values, const Tensor& dense_shape);
/// The nonzero elements of a dense tensor, as a sparse tensor.
Tensor to_sparse(const Tensor& dense);
/// The elements of a dense tensor where a mask of the same shape is true.
Tensor to_sparse(const Tensor& dense, const Tensor& mask);
Tensor to_dense(const Tensor& sparse);
/// Dense (n, m) from sparse (n, k) x dense (k, m); `transposed`: from sparse (k, n). A dense vector (k,) gives (n,).
Tensor sparse_dot(const Tensor& sparse, const Tensor& dense, bool transposed = false);
Tensor sparse_concatenate(const Tensors& parts, int axis);
/// Reverses the order of the axes.
Tensor sparse_transpose(const Tensor& x);
/// Replaces the sizes that `known` has in a symbolic dense shape by these numbers, so that rules see them. Returns a
/// concrete shape unchanged.
Tensor with_known_dims(const TensorSpec& known, const Tensor& shape);

}  // namespace kassette::ops

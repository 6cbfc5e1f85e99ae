// ops/sparse.h - sparse tensors (core/sparse.h): making, densifying, joining and multiplying them.
#pragma once
#include "core/sparse.h"
#include "ops/op.h"

namespace kassette {

extern const OpDef sparse_coo_op, sparse_nonzero_op, sparse_to_dense_op, sparse_gather_op, sparse_dot_op,
    sparse_products_op, sparse_concatenate_op;

/// Indices (n, rank) of any integer dtype, values (n,), the dense shape as a 1-D tensor on the host. Checked: here as far as
/// sizes are known, the rest when there are values.
Tensor sparse_coo(const Tensor& indices, const Tensor& values, const Tensor& dense_shape);
/// A dense tensor as a sparse one of its elements that are not zero.
Tensor to_sparse(const Tensor& dense);
/// The elements of a dense tensor where a mask of its shape is true.
Tensor to_sparse(const Tensor& dense, const Tensor& mask);
Tensor to_dense(const Tensor& sparse);
/// (n, k) x (k, m), or with the axes of the sparse matrix swapped (k, n) x (k, m): a dense (n, m). A vector (k,) gives (n,).
Tensor sparse_dot(const Tensor& sparse, const Tensor& dense, bool transposed = false);
Tensor sparse_concatenate(const Tensors& parts, int axis);
/// All axes reversed.
Tensor sparse_transpose(const Tensor& x);
/// A dense shape that is not known yet, with what is known of it: rules see numbers where `known` has them.
Tensor with_known_dims(const TensorSpec& known, const Tensor& shape);

}  // namespace kassette

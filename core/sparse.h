// core/sparse.h - sparse tensors: handles over three dense ones.
#pragma once
#include "core/text.h"

namespace kassette {

// Note [Sparse handles]
// A sparse Tensor has no storage. Its descriptor carries the dense shape, the dtype of the values and the flag kSparse;
// its node, which has no op, holds the descriptors of indices (nnz, rank) int64, values (nnz,) and dense shape (rank,)
// int64. The values are on the device of the tensor, indices and dense shape always on the CPU: see Note [Index
// storage]. The handle itself is never an input of an op: ops on sparse tensors take the parts as inputs, so that tape,
// gradients and plans see dense tensors alone. apply() throws if it is given a handle, and so does code that asks for
// its elements. Indices come in any order. Duplicate entries count as the sum of their values: products and
// densification then need no special case, and under no other rule could tensors be concatenated, transposed and
// differentiated by their values without sorting.

/// The parts of a sparse tensor, numbered as the inputs of its node. kFedShape, the leaf that the dense shape is fed
/// to, is a part of placeholders only.
enum SparsePart : int { kIndices, kValues, kDenseShape, kFedShape };

/// Makes a sparse tensor from its parts. `spec`: the dense shape as far as it is known, and the dtype of the values.
/// `fed_shape`, for placeholders only: the leaf that the dense shape is fed to; more sizes of `dense_shape` may be
/// known than of that leaf.
Tensor make_sparse(const Tensor& indices, const Tensor& values, const Tensor& dense_shape, const TensorSpec& spec,
                   const Tensor& fed_shape = Tensor());

inline bool is_sparse(const TensorDesc& b) { return b.flags & kSparse; }
inline bool is_sparse(const Tensor& t) { return t.defined() && is_sparse(Access::desc(t)); }
inline TensorDesc& sparse_part(const TensorDesc& b, int part) { return b.node->in()[part]; }
inline Tensor sparse_part(const Tensor& t, int part) { return Access::wrap(sparse_part(Access::desc(t), part)); }
/// Whether the tensor is a sparse one that was made by K::placeholder.
inline bool is_sparse_placeholder(const TensorDesc& b) { return is_sparse(b) && b.node->n_in > kFedShape; }
/// The leaf that a part of a placeholder is fed to; for any other sparse tensor, the part itself.
inline const TensorDesc& fed_part(const TensorDesc& b, int part) {
  return sparse_part(b, part == kDenseShape && is_sparse_placeholder(b) ? kFedShape : part);
}
/// A sparse tensor with the indices and dense shape of `sparse` and other values.
inline Tensor with_values(const Tensor& sparse, const Tensor& values) {
  TensorSpec spec = Access::desc(sparse);
  spec.dtype = values.dtype();
  return make_sparse(sparse_part(sparse, kIndices), values, sparse_part(sparse, kDenseShape), spec);
}

[[noreturn]] void fail_sparse(const At& at, const TensorDesc& b);
/// Throws TypeError if t is sparse.
inline void refuse_sparse(const At& at, const Tensor& t) {
  if (is_sparse(t)) fail_sparse(at, Access::desc(t));
}

}  // namespace kassette

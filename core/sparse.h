// core/sparse.h - sparse tensors: handles over three dense ones.
#pragma once
#include "core/impl.h"

namespace kassette {

// Note [Sparse handles]
// A sparse Tensor has no storage. Its body carries the dense shape, the dtype of the values and the flag kSparse; its node,
// which is no op, holds the bodies of indices (nnz, rank) int64, values (nnz,) and dense shape (rank,) int64. The values are on the
// device of the tensor, the others always on the CPU: see Note [Index storage]. The
// handle itself is never an input of an op: what takes a sparse tensor takes its parts, so tape, gradients and plans see
// dense tensors alone. apply() refuses a handle in one line; so does whatever asks for its elements.
// Indices come in any order. An entry that is listed several times counts as the sum of its values: what every product
// and every densification gives of itself, and the only rule under which concatenating, transposing and differentiating by
// the values need no sorting.

enum SparsePart : int { kIndices, kValues, kDenseShape };

/// A sparse tensor of its parts. `spec`: dense shape, as far as it is known, and the dtype of the values. `fed_shape`: of a
/// placeholder, the leaf that the dense shape is fed to; the shape itself may say more than that leaf.
Tensor make_sparse(const Tensor& indices, const Tensor& values, const Tensor& dense_shape, const TensorSpec& spec,
                   const Tensor& fed_shape = Tensor());

inline bool is_sparse(const Body& b) { return b.flags & kSparse; }
inline bool is_sparse(const Tensor& t) { return t.defined() && is_sparse(Access::body(t)); }
inline Body& sparse_part(const Body& b, int part) { return b.node->in()[part]; }
inline Tensor sparse_part(const Tensor& t, int part) { return Access::wrap(sparse_part(Access::body(t), part)); }
/// Of a placeholder: the leaf that a part is fed to. Else the part itself.
inline const Body& fed_part(const Body& b, int part) {
  return sparse_part(b, part == kDenseShape && b.node->n_in == 4 ? 3 : part);
}
/// Whether K::placeholder made it.
inline bool is_sparse_placeholder(const Body& b) { return is_sparse(b) && b.node->n_in == 4; }
/// The same sparse tensor with other values.
inline Tensor with_values(const Tensor& sparse, const Tensor& values) {
  TensorSpec spec = Access::body(sparse);
  spec.dtype = values.dtype();
  return make_sparse(sparse_part(sparse, kIndices), values, sparse_part(sparse, kDenseShape), spec);
}

[[noreturn]] void fail_sparse(const char* what, const Body& b);
/// Throws in the name of `what` where t is sparse.
inline void refuse_sparse(const char* what, const Tensor& t) {
  if (is_sparse(t)) fail_sparse(what, Access::body(t));
}

}  // namespace kassette

// ops/collective.h - ops that all ranks of a group run together.
#pragma once
#include "devices/ranks.h"
#include "ops/op.h"

namespace kassette {

/// How all_reduce combines; the mean is of floats.
enum class Reduction : std::uint8_t { sum, mean, max, min, prod };

/// Each of xs combined over the ranks. The list is packed into few messages.
Tensors all_reduce(const Tensors& xs, Reduction how, const RankGroup& group);
/// The xs of rank `root`, on every rank.
Tensors broadcast(const Tensors& xs, int root, const RankGroup& group);
/// x of rank 0, then of rank 1, and so on, along the first axis; scalars make a vector.
Tensor all_gather(const Tensor& x, const RankGroup& group);
/// The rows of this rank of all_reduce(x): those that shard gives or, for sums, as many as `like` has.
Tensor reduce_scatter(const Tensor& x, Reduction how, const RankGroup& group, const Tensor& like = Tensor());
/// This rank's rows of x; rows_of says which.
Tensor shard(const Tensor& x, const RankGroup& group);
/// Cuts the first axis into as many parts as there are ranks; rank r gets part r of every rank.
Tensor all_to_all(const Tensor& x, const RankGroup& group);
/// Sends x to rank `to` and returns a scalar 0, whose gradient with respect to x is what that rank sends back for it.
Tensor send(const Tensor& x, int to, const RankGroup& group);
/// Returns the tensor that rank `from` sends, with the shape and dtype of `like`. The adjoint sends the cotangent back; `like` gets zeros.
Tensor recv(const Tensor& like, int from, const RankGroup& group);

/// Rows [begin, end) of n are those of rank r: the remainder is spread over the first ranks.
struct Rows {
  std::int64_t begin, end;
};
Rows rows_of(std::int64_t n, int rank, int size);

extern const OpDef all_reduce_op, all_reduce_nonlinear_op, broadcast_op, reduce_op, all_gather_op, reduce_scatter_op,
    reduce_scatter_nonlinear_op, shard_op, unshard_like_op, all_to_all_op, send_op, recv_op;

}  // namespace kassette

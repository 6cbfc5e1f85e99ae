// ops/collective/collective.h - collective ops, which all ranks of a group run together, and messages between two
// ranks.
#pragma once
#include "devices/ranks.h"
#include "devices/reduction.h"
#include "ops/engine/op.h"

namespace kassette::ops {
using devices::RankGroup;
using devices::Reduction;

/// Combines each of xs over the ranks; the mean is one of floats only. The list is packed into few messages.
Tensors all_reduce(const Tensors& xs, Reduction how, const RankGroup& group);
/// The same for xs that are no longer needed: the results are computed in their memory where nothing else refers to it.
Tensors all_reduce_in_place(const Tensors& xs, Reduction how, const RankGroup& group);
/// Returns rank `root`'s xs on every rank.
Tensors broadcast(const Tensors& xs, int root, const RankGroup& group);
/// Concatenates the x of all ranks, in rank order, along the first axis; scalars make a vector.
Tensor all_gather(const Tensor& x, const RankGroup& group);
/// Returns this rank's rows of all_reduce(x): the ones that shard() would return or, if `like` is given (for sums
/// only), as many as `like` has.
Tensor reduce_scatter(const Tensor& x, Reduction how, const RankGroup& group, const Tensor& like = Tensor());
/// Returns this rank's rows of x, as rows_of() divides them.
Tensor shard(const Tensor& x, const RankGroup& group);
/// Cuts the first axis into one part per rank; rank r gets part r of every rank.
Tensor all_to_all(const Tensor& x, const RankGroup& group);
/// Sends x to rank `to` and returns a scalar 0, whose gradient with respect to x is what that rank sends back for it.
Tensor send(const Tensor& x, int to, const RankGroup& group);
/// Returns the tensor that rank `from` sends, with the shape and dtype of `like`. The adjoint sends the cotangent back;
/// `like` gets zeros.
Tensor recv(const Tensor& like, int from, const RankGroup& group);

/// The rows [begin, end) of n that belong to a rank. The first ranks get one row more if n is not a multiple of `size`.
struct RowRange {
  std::int64_t begin, end;
};
RowRange rows_of(std::int64_t n, int rank, int size);

extern const OpDef all_reduce_op, all_reduce_nonlinear_op, broadcast_op, reduce_op, all_gather_op, reduce_scatter_op,
    reduce_scatter_nonlinear_op, shard_op, unshard_like_op, all_to_all_op, send_op, recv_op;

}  // namespace kassette::ops

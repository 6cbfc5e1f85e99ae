// ops/collective/collective_parts.h - shared by collective.cpp, collective_kernels.cpp and reduce_job.cpp: attributes,
// adjoints of lists, kernels.
#pragma once
#include <vector>

#include "ops/collective/collective.h"

namespace kassette::ops {

const char* reduction_name(Reduction how);

/// The attributes of a collective op.
struct CollectiveAttrs {
  static constexpr const char* attrs_name = "collective";
  std::int64_t n_out;  // the number of tensors of a list
  std::int32_t group;
  std::int32_t root;  // of a broadcast or reduce; the other rank of a send or recv: peer_of()
  Reduction reduction;
  bool in_background;  // all_reduce_start: reduce on the background thread
};
inline CollectiveAttrs collective_attrs(std::int64_t n, const RankGroup& group, Reduction how = Reduction::sum,
                                        int root = 0) {
  return {n, group.id, root, how, /*in_background=*/false};
}
inline RankGroup& group_of(const Attrs& attrs) { return devices::rank_group(attrs.as<CollectiveAttrs>().group); }
inline Reduction reduction_of(const Attrs& attrs) { return attrs.as<CollectiveAttrs>().reduction; }
inline int root_of(const Attrs& attrs) { return attrs.as<CollectiveAttrs>().root; }
inline int peer_of(const Attrs& attrs) { return attrs.as<CollectiveAttrs>().root; }

/// The adjoint of an op over a list: calls together() once with all cotangents that are defined, so that they share a
/// message, and sets the cotangents of the inputs from `first_in` on to its results.
template <class F>
void list_vjp(const VjpContext& ctx, int first_in, F together) {
  Tensors given;
  for (int i = 0; i < ctx.n_out(); ++i)
    if (ctx.dy(i).defined()) given.push_back(ctx.dy(i));
  if (given.empty()) return;
  const Tensors results = together(given);
  std::int64_t next = 0;
  for (int i = 0; i < ctx.n_out(); ++i)
    if (ctx.dy(i).defined()) ctx.din(first_in + i) = results[next++];
}

/// While one lives, kernels on this thread may write results into the memory of the inputs for which `reused` is true.
class ReuseScope {
 public:
  explicit ReuseScope(std::vector<bool> reused);
  ~ReuseScope();
  ReuseScope(const ReuseScope&) = delete;
  ReuseScope& operator=(const ReuseScope&) = delete;

 private:
  std::vector<bool> reused_;
};

// Kernels for all devices. Tensors on an accelerator are copied to the host and back if their ranks cannot exchange
// directly.
void all_reduce_kernel(const OpCall& call);
void broadcast_kernel(const OpCall& call);
void reduce_kernel(const OpCall& call);
void all_gather_kernel(const OpCall& call);
void reduce_scatter_kernel(const OpCall& call);
void all_to_all_kernel(const OpCall& call);
void send_kernel(const OpCall& call);
void recv_kernel(const OpCall& call);

}  // namespace kassette::ops

// ops/reduce_job.h - an all_reduce that goes on while its rank computes.
#pragma once
#include "ops/collective.h"

namespace kassette {

/// The reduction of a list, in a thread of its own. All ranks begin the same jobs in the same order.
class ReduceJob {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(ReduceJob* job) noexcept { delete job; }
  /// Begins it. Where the transport does not take two threads, and among one rank, it has ended when this returns.
  static Ref<ReduceJob> begin(Tensors xs, Reduction how, RankGroup& group, bool aside = true);
  /// Waits for the results; throws what the reduction threw.
  const Tensors& wait();
  ~ReduceJob();

 private:
  friend class ReduceThread;
  ReduceJob();
  void run();
  struct State;
  State* state_;
};

/// Begins the reduction of xs behind that of `previous`, a token of this function or nothing, and returns a token of it. `begun`: it
/// has begun already.
Tensor all_reduce_start(const Tensors& xs, const Tensor& previous, Reduction how, const RankGroup& group, bool aside,
                        Ref<ReduceJob> begun);
/// The results; xs as they were given to all_reduce_start, through which gradients pass.
Tensors all_reduce_wait(const Tensor& token, const Tensors& xs, Reduction how, const RankGroup& group);

extern const OpDef all_reduce_start_op, all_reduce_wait_op;

}  // namespace kassette

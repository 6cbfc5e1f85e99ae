// ops/collective/reduce_job.h - an all_reduce in the background, while its rank computes: Note [Reductions in the
// background], ops/collective/reduce_job.cpp.
#pragma once
#include "ops/collective/collective.h"

namespace kassette::ops {

/// An all_reduce of a list of tensors on the background thread. All ranks must begin the same jobs in the same order.
class ReduceJob {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(ReduceJob* job) noexcept { delete job; }
  /// Starts a job. It runs before this returns if `in_background` is false, if there is one rank only, or if the
  /// transport is not safe for two threads. `previous`: the job of the bucket before, null for the first of a backward
  /// pass. If that has failed, this one fails as well, without an exchange.
  static Ref<ReduceJob> begin(Tensors xs, Reduction how, RankGroup& group, Ref<ReduceJob> previous,
                              bool in_background = true);
  /// Waits for the results. Rethrows the error of the reduction, if there was one.
  const Tensors& wait();
  /// Waits, and returns whether the reduction has failed, which it does on all ranks.
  bool has_failed();
  /// Called if the backward pass fails on this rank after this job was started: the other ranks throw an error that
  /// contains `why`.
  void refuse_next(const std::string& why);
  ~ReduceJob();

 private:
  friend class ReduceThread;
  ReduceJob();
  void run();
  void reduce();
  struct State;
  State* state_;
};

/// Starts the reduction of xs and returns a token that owns the job. `previous` is the token of the bucket before, or
/// undefined: it orders the two in a plan. `started_job` is the job if it was started before the op is recorded, else
/// null: the op's first run takes it.
Tensor all_reduce_start(const Tensors& xs, const Tensor& previous, Reduction how, const RankGroup& group,
                        bool in_background, Ref<ReduceJob> started_job);
/// Waits and returns the results. xs are the arguments of all_reduce_start: they receive the gradients.
Tensors all_reduce_wait(const Tensor& token, const Tensors& xs, Reduction how, const RankGroup& group);

extern const OpDef all_reduce_start_op, all_reduce_wait_op;

}  // namespace kassette::ops

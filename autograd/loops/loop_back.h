// autograd/loops/loop_back.h - a run of a compiled loop that keeps residuals, and its backward pass. See Note [Loops].
#pragma once
#include <vector>

#include "autograd/program/call.h"
#include "autograd/loops/loop_run.h"

namespace kassette::autograd {

/// One execution of a compiled loop for one backward pass.
class LoopBack final : public SavedRun, private LoopRun {
 public:
  using LoopRun::LoopRun;
  ~LoopBack() override;
  Tensors forward() { return LoopRun::forward(/*for_backward=*/true); }
  /// Returns the cotangents of elements, states and captures, each empty if it has none. `dys`: per output, empty if it
  /// has none.
  Tensors backward(const Tensors& dys) override;

 private:
  /// A StepAdjoint bound to memory.
  struct BoundAdjoint {
    bool bound = false;
    std::unique_ptr<Schedule> schedule;
    std::vector<Carry> carried;
    std::vector<char> in_place;  // per element: its cotangent is computed straight into the result
  };

  void load_residuals(std::int64_t t, std::int64_t begin);
  void seed(const Tensors& dys);
  std::int64_t recompute_interval(std::int64_t t);
  void zero_rows(int i, std::int64_t begin, std::int64_t end);
  void bind_back(const StepAdjoint& adjoint, BoundAdjoint& back);
  std::vector<LoopGroup> adjoint_groups(const StepAdjoint& adjoint);
  void store_dx(const StepAdjoint& adjoint, const BoundAdjoint& back, std::int64_t t);

  std::vector<Ref<Storage>> dx_;  // per element: its cotangents, one row per step; or null
  std::vector<BoundAdjoint> backs_;
};

}  // namespace kassette::autograd

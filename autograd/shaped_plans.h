// autograd/shaped_plans.h - the plans for shapes that a plan was called with: Note [Plans for shapes].
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include "ops/op.h"

namespace kassette {

class Plan;

/// A cache of plans by the shapes of their arguments. Safe from several threads.
class ShapedPlans {
 public:
  ShapedPlans();
  ~ShapedPlans();
  ShapedPlans(const ShapedPlans&) = delete;
  ShapedPlans& operator=(const ShapedPlans&) = delete;
  /// The plan for arguments of these shapes, from the second call with them on; before, and where there is none, null. One takes as long as
  /// a call or two: where it is not used for long, the next is made after twice as many calls.
  Ref<Plan> find(const Plan& plan, std::span<const Tensor> args);

 private:
  struct Entry;
  static constexpr std::size_t kMost = 4;
  static constexpr int kMostCalls = 64;
  std::mutex mutex_;
  std::vector<Entry> kept_;  // the one used last in front
  int calls_ = 2;            // which call of an entry makes its plan
};

}  // namespace kassette

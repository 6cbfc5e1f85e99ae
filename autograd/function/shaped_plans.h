// autograd/function/shaped_plans.h - a plan's cache of plans for certain shapes of arguments: Note [Plans for shapes].
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include "ops/engine/op.h"

namespace kassette::autograd {

class Plan;

/// A cache of plans by the shapes of their arguments. Thread-safe.
class ShapedPlans {
 public:
  ShapedPlans();
  ~ShapedPlans();
  ShapedPlans(const ShapedPlans&) = delete;
  ShapedPlans& operator=(const ShapedPlans&) = delete;
  /// The plan for arguments of these shapes. Returns null until enough calls had these shapes (at first two), or if
  /// specialise() throws. Building a plan costs as much as a call or two, so each eviction of a plan doubles that
  /// number, up to kMaxCalls.
  Ref<Plan> find(const Plan& plan, std::span<const Tensor> args);

 private:
  struct Entry;
  static constexpr std::size_t kMost = 4;
  static constexpr int kMaxCalls = 64;
  std::mutex mutex_;
  std::vector<Entry> kept_;  // most recently used first
  int calls_ = 2;            // the plan of an entry is made at this call
};

}  // namespace kassette::autograd

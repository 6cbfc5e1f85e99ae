// autograd/function/shaped_plans.h - a plan's cache of plans for certain shapes of arguments: Note [Plans for shapes].
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include "autograd/program/program.h"
#include "ops/engine/device_graph.h"

namespace kassette::autograd {

class Plan;

/// A plan for certain shapes, with the CUDA graph of its work.
class ShapedPlan {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(ShapedPlan* p) noexcept { delete p; }
  explicit ShapedPlan(Program program);
  ~ShapedPlan();
  Tensors run(std::span<const Tensor> args, const Tensors* keys);
  const Program& program() const;

 private:
  Ref<Plan> plan_;
  FunctionGraph graph_;
};

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
  Ref<ShapedPlan> find(const Plan& plan, std::span<const Tensor> args);

 private:
  struct Entry;
  static constexpr std::size_t kMost = 4;
  static constexpr int kMaxCalls = 64;
  std::mutex mutex_;
  std::vector<Entry> kept_;  // most recently used first
  int calls_ = 2;            // the plan of an entry is made at this call
};

}  // namespace kassette::autograd

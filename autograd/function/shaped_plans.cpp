// autograd/function/shaped_plans.cpp - a plan's cache of plans for certain shapes of arguments.
#include "autograd/function/shaped_plans.h"

#include <algorithm>

#include <kassette/error.h>

#include "autograd/program/specialise.h"
#include "autograd/function/plan.h"

namespace kassette::autograd {

ShapedPlan::ShapedPlan(Program program) : plan_(Plan::of(std::move(program))) {}
ShapedPlan::~ShapedPlan() = default;

const Program& ShapedPlan::program() const { return plan_->program(); }

Tensors ShapedPlan::run(std::span<const Tensor> args, const Tensors* keys) {
  return graph_.run(program().known, [&] { return plan_->execute(args, keys); });
}

struct ShapedPlans::Entry {
  std::vector<TensorDesc> inputs;
  int calls = 1;
  Ref<ShapedPlan> plan;  // null before it is made, and if a rule throws (as it will at every call)
};

ShapedPlans::ShapedPlans() = default;
ShapedPlans::~ShapedPlans() = default;

namespace {

bool same(const TensorDesc& known, const Tensor& arg) {
  if (!arg.defined()) return known.rank < 0;
  return alike(known, Access::desc(arg));
}

std::vector<TensorDesc> shapes_of(std::span<const Tensor> args) {
  std::vector<TensorDesc> shapes(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].defined()) shapes[i] = make_desc(Access::desc(args[i]), Access::desc(args[i]).device);
    else shapes[i].rank = -1;
  }
  return shapes;
}

}  // namespace

Ref<ShapedPlan> ShapedPlans::find(const Plan& plan, std::span<const Tensor> args) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto entry = [&] {
    return std::find_if(kept_.begin(), kept_.end(),
                        [&](const Entry& e) { return std::ranges::equal(e.inputs, args, same); });
  };
  auto known = entry();
  if (known == kept_.end()) {
    Entry first{shapes_of(args), 1, {}};
    if (kept_.size() == kMost) {
      if (kept_.back().plan) calls_ = std::min(2 * calls_, kMaxCalls);
      kept_.pop_back();
    }
    kept_.insert(kept_.begin(), std::move(first));
    return {};
  }
  if (known != kept_.begin()) std::rotate(kept_.begin(), known, known + 1);
  Entry& e = kept_.front();
  if (e.plan || e.calls >= calls_ || ++e.calls < calls_) return e.plan;
  // Without the lock: meanwhile other calls run, also for these shapes, which then have no plan yet.
  const std::vector<TensorDesc> inputs = e.inputs;
  lock.unlock();
  Ref<ShapedPlan> made;
  try {
    made = Ref<ShapedPlan>::adopt(new ShapedPlan(specialise(plan.program(), inputs)));
  } catch (const Error&) {
    return {};
  }
  lock.lock();
  if (known = entry(); known != kept_.end()) known->plan = made;
  return made;
}

}  // namespace kassette::autograd

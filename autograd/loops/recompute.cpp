// autograd/loops/recompute.cpp - a function that is run again in the backward pass.
#include "autograd/loops/recompute.h"

#include "autograd/loops/trace.h"
#include "autograd/program/call.h"
#include "core/text.h"

namespace kassette::autograd {
namespace {

/// Inputs: key, arguments, captures.
class Recomputed final : public Procedure {
 public:
  explicit Recomputed(Ref<Plan> plan) : plan_(std::move(plan)) {}
  Tensors run(const Tensors& in) const override {
    return run_body(*plan_, std::span(in.begin() + 1, in.end()), step_keys(in[0], 0, 1, *plan_));
  }
  void specs(const OpCall& call, TensorSpec* out) const override {
    out->set(plan_->outputs()[0]);
    call.out[0]->device = plan_->outputs()[0].device;
  }
  int n_out() const override { return 1; }
  bool differentiable(int i, Outputs) const override { return i >= 1 && plan_->differentiable(i - 1); }
  bool keeps_residuals() const override { return false; }

 private:
  Ref<Plan> plan_;
};

}  // namespace

Tensor recomputed(const char* what, const Tensors& args, const Callable<Tensor(const Tensors&)>& f) {
  if (args.empty()) fail<ValueError>({what, "x"}, "is an empty list", kExpected, "there must be an argument");
  std::vector<TensorSpec> specs;
  for (const Tensor& x : args) {
    if (!x.defined()) fail_empty({what, "x"});
    specs.push_back(Access::desc(x));
  }
  Traced traced = trace(what, specs, args[0].device(), [&](const Tensors& x) { return Tensors(f(x)); });
  Tensors in{traced.plan->key_sources().empty() ? no_key(what) : next_key(None, what)};
  append(in, std::span(args.begin(), args.end()));
  append(in, traced.captures);
  return call_now(Ref<Extra>::adopt(new Recomputed(std::move(traced.plan))), in)[0];
}

}  // namespace kassette::autograd

// autograd/loops/branches.cpp - the procedure that runs one of two bodies, by a scalar condition.
#include "autograd/loops/branches.h"

#include "autograd/program/call.h"
#include "autograd/loops/trace.h"
#include "core/convert.h"
#include "core/text.h"

namespace kassette::autograd {
namespace {

/// Inputs: key, condition, captures of yes, captures of no.
class Branches final : public Procedure {
 public:
  Branches(Traced yes, Traced no, TensorSpec result)
      : yes_(std::move(yes.plan)), no_(std::move(no.plan)), n_yes_(yes.captures.size()), result_(result) {}
  Tensors run(const Tensors& in) const override {
    bool taken;
    in[1].item(&taken, bool_);
    const Plan& plan = taken ? *yes_ : *no_;
    const Tensor *yes = in.begin() + 2, *no = yes + n_yes_;
    return run_body(plan, taken ? std::span(yes, no) : std::span(no, in.end()),
                    step_keys(in[0], 0, 1, plan, taken ? 0 : yes_->key_sources().size()));
  }
  void specs(const OpCall& call, TensorSpec* out) const override {
    out->set(result_);
    call.out[0]->device = yes_->outputs()[0].device;
  }
  int n_out() const override { return 1; }
  bool differentiable(int i, Outputs) const override {
    return i >= 2 && (i < 2 + n_yes_ ? yes_->differentiable(i - 2) : no_->differentiable(i - 2 - n_yes_));
  }

 private:
  Ref<Plan> yes_, no_;
  int n_yes_;
  TensorSpec result_;
};

}  // namespace

TensorSpec common_spec(const char* what, const TensorSpec& yes, const TensorSpec& no) {
  if (yes.dtype != no.dtype)
    fail<TypeError>({what}, "one branch is ", yes.dtype, ", the other ", no.dtype, kRemedy,
                    "cast one of them (K::cast)");
  if (!yes.compatible(no))
    fail<ValueError>({what}, "the branches have shapes ", yes, " and ", no, kExpected, "they must be equal");
  TensorSpec s = yes;
  s.refine(no);
  return s;
}

Tensor branch(const char* what, const Tensor& condition, const Callable<Tensor()>& yes, const Callable<Tensor()>& no) {
  auto as_list = [](const Callable<Tensor()>& f) { return [&f](const Tensors&) { return Tensors(f()); }; };
  Traced a = trace(what, {}, cpu, as_list(yes)), b = trace(what, {}, cpu, as_list(no));
  const TensorDesc &one = a.plan->outputs()[0], &other = b.plan->outputs()[0];
  if (one.device != other.device)
    fail<DeviceError>({what}, "one branch is on ", one.device, ", the other on ", other.device);
  TensorSpec result = common_spec(what, one, other);
  Tensors in;
  {
    Scoped<bool> on(context().symbolic, true);
    in.push_back(a.plan->key_sources().empty() && b.plan->key_sources().empty() ? no_key(what) : next_key(None, what));
  }
  in.push_back(condition);
  append(in, a.captures);
  append(in, b.captures);
  return call_node(Ref<Extra>::adopt(new Branches(std::move(a), std::move(b), result)), in)[0];
}

}  // namespace kassette::autograd

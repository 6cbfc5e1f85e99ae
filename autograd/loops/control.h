// autograd/loops/control.h - control flow on the tape: one `call` node holds the recorded body. Its adjoint is a `call`
// node too, so derivatives of any order work.
#pragma once
#include <span>
#include <vector>

#include <kassette/api.h>

#include "autograd/function/plan.h"
#include "autograd/loops/residuals.h"

namespace kassette::autograd {

class VjpProcedure;
class ResidualCall;

/// What a `call` node runs: a loop, a branch, or the adjoint of one. Input 0 is always the key of its random sources,
/// on the host.
class Procedure : public TaggedExtra<Procedure> {
 public:
  static constexpr const char* attrs_name = "procedure";
  /// Runs on concrete tensors; recorded iff recording is on.
  virtual Tensors run(const Tensors& in) const = 0;
  /// The rule of the node: infers what is known of the outputs' shapes, dtypes and devices.
  virtual void specs(const OpCall& call, TensorSpec* out) const = 0;
  virtual int n_out() const = 0;
  /// True if one of these outputs may depend differentiably on input i.
  virtual bool differentiable(int i, Outputs outputs) const = 0;
  /// `this` if it is the adjoint of a procedure; else null.
  virtual const VjpProcedure* as_vjp() const { return nullptr; }
  /// Runs unrecorded and fills `residuals` for one backward pass by the adjoint `by`. Returns false, and runs nothing,
  /// if the caller has to record the ops instead.
  virtual bool run_for(const Tensors& /*in*/, const VjpSignature& /*by*/, Residuals& /*residuals*/) const {
    return false;
  }
  virtual const ResidualCall* as_residual_call() const { return nullptr; }
};
inline const Procedure& procedure(Extra& e) { return e.as<Procedure>(); }

/// A procedure in a program that returns residuals (as its last result), takes them (as its last input), or both:
/// Note [Residuals].
class ResidualCall final : public Procedure {
 public:
  explicit ResidualCall(Ref<Extra> p) : of(std::move(p)) {}
  Tensors run(const Tensors& in) const override;
  void specs(const OpCall& call, TensorSpec* out) const override;
  int n_out() const override { return procedure(*of).n_out() + returns; }
  bool differentiable(int i, Outputs outputs) const override { return procedure(*of).differentiable(i, outputs); }
  const ResidualCall* as_residual_call() const override { return this; }

  Ref<Extra> of;
  bool returns = false, takes = false;
  bool last = false;  // this is the last instruction that takes these residuals
  // no later instruction takes residuals that extend these either, so saved values are released as they are used
  bool consumes = false;
  std::vector<char> wanted;  // if it returns residuals: which inputs need history
  // if it returns residuals: the adjoint, if one instruction alone takes them and returns none itself; else null
  Ref<Extra> vjp;
};

extern const OpDef call_op;
/// The procedure of an instruction that returns or takes residuals; null for any other.
inline const ResidualCall* residual_call(const Instruction& s) {
  return s.op == &call_op ? procedure(*s.attrs.extra).as_residual_call() : nullptr;
}
/// Runs a `call` instruction on concrete tensors, recorded iff recording is on.
inline Tensors run_call(const Attrs& attrs, const Tensors& in) { return procedure(*attrs.extra).run(in); }
/// The signature of the adjoint that a `call` runs; all pointers are null if its procedure is not an adjoint.
VjpSignature vjp_signature(const Attrs& attrs);
/// Records a `call` node; returns its results as symbolic tensors.
Tensors call_node(Ref<Extra> procedure, const Tensors& in);
/// Runs the procedure if the inputs are concrete and the scope is eager; recorded as one node if an input has history.
Tensors call_now(Ref<Extra> procedure, const Tensors& in);

inline void append(Tensors& to, std::span<const Tensor> list) {
  for (const Tensor& t : list) to.push_back(t);
}

// ---- bodies ---------------------------------------------------------------------------------------------------------

/// A function of tensors, recorded once on placeholders. The outer tensors that it uses, its captures, become inputs of
/// the node that runs it.
struct Traced {
  Ref<Plan> plan;  // inputs: the arguments, then the captures
  Tensors captures;
};
/// A placeholder for an argument of the body that is being recorded.
Tensor stand_in(const TensorSpec& spec, Device device);
/// Records f on placeholders with these shapes. Throws ValueError if a result is empty or f updates a variable.
Traced trace(const char* what, const std::vector<TensorSpec>& args, Device device,
             const Callable<Tensors(const Tensors&)>& f);
/// True if ops on these tensors are recorded: recording is on and one of them has history.
bool is_recorded(const Tensors& args);
/// Runs a body, on the tape if is_recorded(args).
Tensors run_body(const Plan& plan, const Tensors& args, const Tensors& keys);
/// The keys of a body's random sources in one step, derived from the node's key. `first` is the index of the body's
/// first source; the sources of a node's second branch are numbered after those of the first.
Tensors step_keys(const Tensor& key, std::int64_t step, std::int64_t steps, const Plan& body, std::size_t first = 0);
/// The key for a node whose bodies draw no random numbers.
Tensor no_key(const char* what);
/// While alive, random draws of this thread belong to this step of an eager loop: Note [Series of draws].
class EagerStep {
 public:
  EagerStep(std::int64_t step, std::int64_t steps) : EagerStep(context(), step, steps) {}

 private:
  EagerStep(Context& c, std::uint64_t step, std::uint64_t steps)
      : step_(c.loop_step, c.loop_step * steps + step), steps_(c.loop_steps, c.loop_steps * steps) {}
  Scoped<std::uint64_t> step_, steps_;
};

// ---- branches -------------------------------------------------------------------------------------------------------

/// The dtype of both branches, and a shape with each size that either knows. Throws if dtypes differ or shapes cannot
/// be equal.
TensorSpec common_spec(const char* what, const TensorSpec& yes, const TensorSpec& no);
/// The result of the branch that a scalar condition picks; the other branch is not run.
Tensor branch(const char* what, const Tensor& condition, const Callable<Tensor()>& yes, const Callable<Tensor()>& no);

}  // namespace kassette::autograd

// autograd/control.h - control flow on the tape: one node that holds its recorded body, and whose adjoint is such a node
// again, so that any order of derivative works.
#pragma once
#include <span>
#include <vector>

#include <kassette/api.h>

#include "autograd/plan.h"
#include "autograd/residuals.h"

namespace kassette {

class VjpProcedure;
class ResidualCall;

/// A function that a `call` node runs, a body of control flow or the adjoint of one: tensors -> tensors. Input 0 is the key of its random sources, a host tensor, always there.
class Procedure : public Extra {
 public:
  /// On concrete tensors; recorded iff recording is on.
  virtual Tensors run(const Tensors& in) const = 0;
  /// Rule of the node: what is known of the outputs.
  virtual void specs(const OpCall& call, TensorSpec* out) const = 0;
  virtual int n_out() const = 0;
  /// Whether one of these outputs may depend differentiably on input i.
  virtual bool differentiable(int i, Outputs outputs) const = 0;
  /// This, if it is the adjoint of a procedure; else null.
  virtual const VjpProcedure* as_vjp() const { return nullptr; }
  /// Runs unrecorded and keeps what `by` needs to rewind it, once; false where that is not done and the ops have to be recorded.
  virtual bool run_for(const Tensors& /*in*/, const VjpSignature& /*by*/, Residuals& /*tape*/) const { return false; }
  virtual const ResidualCall* as_residual_call() const { return nullptr; }
  bool equals(const Extra& other) const override { return this == &other; }
};
inline const Procedure& procedure(const Extra& e) { return static_cast<const Procedure&>(e); }

/// A call in a program that keeps a tape, its last result, or takes one, its last input, or both: Note [Residuals].
class ResidualCall final : public Procedure {
 public:
  explicit ResidualCall(Ref<Extra> p) : of(std::move(p)) {}
  Tensors run(const Tensors& in) const override;
  void specs(const OpCall& call, TensorSpec* out) const override;
  int n_out() const override { return procedure(*of).n_out() + keeps; }
  bool differentiable(int i, Outputs outputs) const override { return procedure(*of).differentiable(i, outputs); }
  const ResidualCall* as_residual_call() const override { return this; }

  Ref<Extra> of;
  bool keeps = false, takes = false;
  bool last = false;         // no later step takes the tape that this one takes
  bool consumes = false;     // nor any that was made from it: saved values may go as they are used
  std::vector<char> wanted;  // keeps: which inputs need history
  Ref<Extra> vjp;            // keeps: the one step that takes the tape, where that keeps none; else null
};

extern const OpDef call_op;
/// The call of a step that keeps or takes a tape, or null.
inline const ResidualCall* taped_call(const Step& s) {
  return s.op == &call_op ? procedure(*s.attrs.extra).as_residual_call() : nullptr;
}
/// What a step of that row does on concrete tensors, recorded iff recording is on.
inline Tensors run_call(const Attrs& attrs, const Tensors& in) { return procedure(*attrs.extra).run(in); }
VjpSignature vjp_signature(const Attrs& attrs);
/// The node of a procedure: its results as symbolic tensors.
Tensors call_node(Ref<Extra> procedure, const Tensors& in);
/// The same on concrete tensors: runs, and is one node of the tape where an input has history.
Tensors call_now(Ref<Extra> procedure, const Tensors& in);

inline void append(Tensors& to, std::span<const Tensor> list) {
  for (const Tensor& t : list) to.push_back(t);
}

// ---- bodies ------------------------------------------------------------------------------------------------------------

/// A function of tensors recorded once on placeholders. What it uses from outside is an input of the node that holds it.
struct Traced {
  Ref<Plan> plan;  // inputs: the arguments, then the captures
  Tensors captures;
};
/// A placeholder of the body that is recorded now: it stands for what a step is given.
Tensor stand_in(const TensorSpec& spec, Device device);
Traced trace(const char* what, const std::vector<TensorSpec>& args, Device device,
             const Callable<Tensors(const Tensors&)>& f);
/// Whether what is done with these is recorded: recording is on and one of them has history.
bool is_recorded(const Tensors& args);
/// Runs a body: recorded where that is so.
Tensors run_body(const Plan& plan, const Tensors& args, const Tensors& keys);
/// Keys of the random sources of a body at a step; `first` tells the bodies of one node apart.
Tensors step_keys(const Tensor& key, std::int64_t step, std::int64_t steps, const Plan& body, std::size_t first = 0);
/// The key input of a node whose bodies draw nothing.
Tensor no_key(const char* what);
/// A step of a plain loop, for as long as it lives: Note [Series of draws].
class PlainStep {
 public:
  PlainStep(std::int64_t step, std::int64_t steps) : PlainStep(context(), step, steps) {}

 private:
  PlainStep(Context& c, std::uint64_t step, std::uint64_t steps)
      : step_(c.loop_step, c.loop_step * steps + step), steps_(c.loop_steps, c.loop_steps * steps) {}
  Scoped<std::uint64_t> step_, steps_;
};

// ---- branches ------------------------------------------------------------------------------------------------------------

/// What both branches agree on. Throws where shapes or dtypes differ.
TensorSpec common_spec(const char* what, const TensorSpec& yes, const TensorSpec& no);
/// One of two branches by a scalar condition; the other is not run.
Tensor branch(const char* what, const Tensor& condition, const Callable<Tensor()>& yes, const Callable<Tensor()>& no);

}  // namespace kassette

// autograd/program/call.h - control flow in a program: a `call` node runs a procedure, which holds the recorded body.
// Its adjoint is a `call` node too, so derivatives of any order work.
#pragma once
#include <vector>

#include "autograd/program/program.h"

namespace kassette::autograd {

// Note [Residuals]
// The adjoint of a `call` node is a `call` of a VjpProcedure on the same inputs and the cotangents. By itself it runs
// the body with recording on and then the backward pass over that tape. If a plan has both, the body runs once: the
// instruction that runs it returns its residuals as an additional output, and each instruction that differentiates it
// takes them as its last input (find_residuals, residuals_pass.h). So residuals are ordered and released as any value
// in a slot is. An adjoint may return residuals in turn, for its own adjoints; these extend those it took. Only inputs
// whose cotangents some adjoint wants have history, so that nothing is saved for the others; nodes of such a tape keep
// no constants, since no plan is made of them. In the usual case, that one adjoint takes the residuals of a loop and
// returns none itself, no ops are recorded at all: see Note [Loops].

/// A run that keeps, in its own way, what its backward pass reads: that of a compiled loop, Note [Loops].
class SavedRun : public Extra {
 public:
  /// The cotangents of the procedure's inputs but the key, each empty if it has none, from those of its results. To be
  /// called once.
  virtual Tensors backward(const Tensors& dys) = 0;
};

/// The residuals of a recorded run: its inputs, as new nodes where an adjoint wants their cotangents, and its results.
struct Residuals {
  Tensors args, results;
  Ref<SavedRun> run;  // instead of args: the run itself, good for one backward pass
};
/// Wraps residuals as the value of a tensor, and reads them from it.
Tensor residuals_value(Residuals residuals);
Residuals& residuals_in(const Tensor& value);

/// What an adjoint differentiates: the procedure, the wanted inputs, which outputs have cotangents, and how many inputs
/// the procedure has. All pointers are null if the procedure is not an adjoint.
struct VjpSignature {
  Extra* of = nullptr;
  const std::vector<int>* wanted = nullptr;
  const std::vector<char>* has_dy = nullptr;
  int n_in = 0;
};

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
  /// False if its adjoint always runs it again: nothing of a run is kept.
  virtual bool keeps_residuals() const { return true; }
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

}  // namespace kassette::autograd

// autograd/function/plan.h - a program, and how it is run with other inputs.
#pragma once
#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "autograd/program/build.h"
#include "autograd/function/shaped_plans.h"

namespace kassette::autograd {

struct Frame;

/// A program and how it is executed. Immutable once built; the state of a call is in a Frame, so that threads share a
/// plan.
class Plan final : public DestroyedInTurn {
 public:
  ~Plan() override;

  static Ref<Plan> build(const ProgramRequest& request);
  /// A plan that runs this program.
  static Ref<Plan> of(Program program);
  const Program& program() const { return program_; }
  /// Releases the nodes in Program::owned_nodes: the placeholders of a body are not needed once its ops are
  /// instructions.
  void forget_inputs() { program_.owned_nodes.clear(); }

  /// Runs unrecorded and commits the updates. `keys`: in bodies of control flow, the keys that the random sources
  /// yield.
  Tensors run(std::span<const Tensor> args, const Tensors* keys = nullptr) const;
  /// The same, without looking for a program for the shapes of the arguments.
  Tensors execute(std::span<const Tensor> args, const Tensors* keys) const;
  /// Runs the same instructions through apply(), so that they are recorded or symbolic, without the updates.
  Tensors inline_into_tape(std::span<const Tensor> args, const Tensors* keys = nullptr) const;
  /// The arguments, cast to the declared dtypes and moved to the declared devices; sparse tensors as their three parts.
  /// Throws ValueError or TypeError if one does not fit its declaration.
  Tensors check_feeds(const Tensors& args) const;
  /// The outputs of a run as the caller sees them: the parts of sparse tensors are put together.
  Tensors pack_results(const Tensors& outputs) const;

  /// True if the learning phase is an input.
  bool feeds_learning_phase() const {
    return std::ranges::any_of(program_.feeds, [](const Feed& f) { return f.fallback && f.fallback->learning_phase; });
  }
  // Inputs and results as the caller counts them: a sparse tensor is one.
  int n_inputs() const { return program_.inputs.size(); }
  const TensorSpec& input_spec(int i) const { return program_.inputs[i].declared; }
  int n_results() const { return program_.results.size(); }
  /// The random sources of a body of control flow, in the order of their keys.
  const std::vector<KeySource>& key_sources() const { return program_.key_sources; }
  bool has_effects() const { return !program_.effects.empty(); }
  /// The outputs that depend differentiably on `input`.
  Outputs differentiable(int input) const { return program_.differentiable[input]; }
  /// Shapes, dtypes and devices of the outputs, as recorded.
  const std::vector<TensorDesc>& outputs() const { return program_.outputs_as_recorded; }

 private:
  Program program_;
  mutable ShapedPlans shaped_;
  mutable std::atomic<Frame*> spare_{nullptr};
};

}  // namespace kassette::autograd

// autograd/loops/loop_program.h - the body of a loop and its adjoint as two lists of instructions over the same slots.
#pragma once
#include <vector>

#include "autograd/loops/schedule.h"
#include "autograd/function/plan.h"

namespace kassette::autograd {

// Note [Loops]
// A loop on concrete tensors does not run its body as a function runs, which would allocate a frame and results at each
// step. The body is bound once: its rules run on the shapes of the first step, its instructions get memory that is used
// again at every step of the loop, and elements, states and results are addresses that advance. What remains for each
// op of the body is a kernel call and a few loads.
//
// The body and its adjoint are instructions over the same slots. A forward value that the adjoint reads (a residual) is
// written straight into one stack with a row per step of the loop; no other value is kept. The cotangent of a capture
// starts from -0, which does not change any bit of a sum, and each step adds to it; the cotangents of states are
// carried from step to step, as the states are.
//
// Shapes may depend on data (a nested call, a shape that is a value): such instructions run their rule at every step of
// the loop, and their residuals are kept in a list, one value per step.

/// How many of a body's inputs are elements, states (the carry) and captures, in this order, and how many outputs are
/// stacked.
struct LoopSignature {
  int n_xs = 0, n_carry = 0, n_captures = 0, n_ys = 0;
  int capture(int i) const { return n_xs + n_carry + i; }
};

/// The adjoint of the body for one pattern of cotangents. The pattern changes along a loop: the backward pass begins
/// with the last steps, where there may be no cotangent of a state yet.
struct StepAdjoint {
  std::vector<char> has_dy;  // per output of the body: stacked ones, then states
  std::vector<int> din;  // per argument (elements, states, captures): the slot of its cotangent, or -1 if it has none
  int next = -1;         // the adjoint for the preceding step of the loop
  std::vector<int> instructions;  // of the program, in order
};

/// A compiled loop, without the state of a run: the body and its adjoint as instructions over the same slots, and which
/// slots are residuals. See Note [Loops].
class LoopProgram {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(LoopProgram* p) noexcept { delete p; }

  /// The body alone.
  static Ref<LoopProgram> of_body(const Plan& body, const LoopSignature& signature);
  /// The body with its adjoint, for arguments of these shapes: `wanted` per argument (elements, states, captures),
  /// `has_dy` per output of the loop. Returns null if it would need more than eight step adjoints.
  static Ref<LoopProgram> with_adjoint(const Plan& body, const LoopSignature& signature,
                                       const std::vector<TensorDesc>& args, const std::vector<char>& wanted,
                                       const std::vector<char>& has_dy, std::int64_t steps);

  const Program& program() const { return plan_->program(); }

  LoopSignature signature;
  std::vector<int> key_slots;             // of random keys, in the order in which they are drawn
  std::vector<KeySource> key_sources;     // of the keys
  std::vector<int> arg_slots, out_slots;  // of arguments and outputs
  std::vector<int> dy_slots, sum_slots;   // of cotangents of outputs and accumulated cotangents of captures; -1: unused
  std::vector<int> forward_instructions;  // those that the outputs need
  std::vector<StepAdjoint> step_adjoints;  // the first is for the last step of the loop
  std::vector<char> loop_varying;          // per slot: differs from step to step
  std::vector<char> is_residual;           // per slot: the adjoint reads its value
  std::vector<char> needs_shape;           // per slot: the adjoint reads its value or its shape
  std::vector<int> producer;               // per slot: the instruction that computes it, or -1
  ScheduleCache schedules;                 // schedules of earlier runs

 private:
  explicit LoopProgram(Ref<Plan> plan, const LoopSignature& a) : signature(a), plan_(std::move(plan)) {}
  void find_producers();
  std::vector<char> needed_for(const std::vector<int>& roots) const;
  void find_forward();
  void find_step_adjoints();
  void find_varying();

  Ref<Plan> plan_;
};

}  // namespace kassette::autograd

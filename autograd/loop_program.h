// autograd/loop_program.h - the body of a loop and its adjoint as two lists of steps over the same slots.
#pragma once
#include <vector>

#include "autograd/schedule.h"
#include "autograd/plan.h"

namespace kassette {

// Note [Loops]
// A loop on concrete tensors does not play its body as a function is played, step by step with a frame, a list of results
// and memory of its own. The body is bound once: its rules run on the shapes of the first step, its steps get memory that
// serves step after step, and elements, states and results are offsets that move on. Per step and op of the body remain a
// kernel and a few loads.
//
// The adjoint of the body is a plan too, over the same slots: what it reads of the forward steps is written into one stack
// of all steps as it is made, and nothing else of them is kept. Cotangents of captures start from -0, which is neutral under
// addition to the last bit, and take each step's share; cotangents of states go from step to step like the states.
//
// What depends on data within a step (a nested call, a shape that is a value) is allowed: such steps run their rule each
// time, and what the adjoint reads of them is kept one by one.

/// What the inputs of a loop's body are, in their order.
struct ScanSignature {
  int n_xs = 0, n_carry = 0, n_captures = 0, n_ys = 0;  // elements, states, captures; stacked outputs
  int capture(int i) const { return n_xs + n_carry + i; }
};

/// One way back through the body: which outputs have cotangents there. A state has none where nothing depends on it.
struct Variant {
  std::vector<char> has_dy;  // per output of the body: stacked ones, then states
  std::vector<int> din;    // per argument (elements, states, captures): the slot of its cotangent, -1 where it has none
  int next = -1;           // the variant of the step before
  std::vector<int> steps;  // of the plan, in order
};

/// A compiled loop, as far as it does not depend on a run: the body, and the adjoint of one step, as steps over the same slots, and which
/// slots are saved (residuals) for the way back. See Note [Loops].
class LoopProgram {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(LoopProgram* p) noexcept { delete p; }

  /// The body alone.
  static Ref<LoopProgram> of_body(const Plan& body, const ScanSignature& arity);
  /// With its adjoint for arguments of these shapes: `wanted` per argument (elements, states, captures), `has_dy` per output
  /// of the loop; the number of steps is for messages. Null where the paths of the states are too many.
  static Ref<LoopProgram> with_adjoint(const Plan& body, const ScanSignature& arity, const std::vector<Body>& args,
                                       const std::vector<char>& wanted, const std::vector<char>& has_dy,
                                       std::int64_t steps);

  const Program& plan() const { return plan_->program(); }

  ScanSignature arity;
  std::vector<int> keys, args, outs;  // slots; of keys those that are drawn, in order
  std::vector<KeySource> sources;     // of the keys
  std::vector<int> dys, sums;         // slots of the cotangents of outputs and, so far, of captures; -1 where not used
  std::vector<int> forward;           // steps that the outputs need
  std::vector<Variant> variants;      // the first is that of the last step
  std::vector<char> varies;           // per slot: not the same in every step
  std::vector<char> kept, shaped;     // per slot: read on the way back; its shape alone, perhaps
  std::vector<int> maker;             // per slot: the step that makes it, or -1
  ScheduleCache arrangements;         // of lists of steps, for other runs

 private:
  explicit LoopProgram(Ref<Plan> plan, const ScanSignature& a) : arity(a), plan_(std::move(plan)) {}
  void find_makers();
  std::vector<char> needed_for(const std::vector<int>& roots) const;
  void find_forward();
  void find_variants();
  void find_varying();

  Ref<Plan> plan_;
};

}  // namespace kassette

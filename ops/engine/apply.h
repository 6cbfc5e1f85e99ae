// ops/engine/apply.h - the steps of a call of an op: decisions that depend on all inputs together, the rule, the
// kernel.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// Properties of all inputs together.
struct InputSummary {
  std::uint8_t flags = 0, depth = 0;
  bool tracked = false;  // some input has history and is not a random draw
  Device device = {};
};
/// How a call runs, as decide() finds from the op, its inputs and the scope.
struct Decision {
  Device device = {};
  std::uint8_t depth;  // of the outputs
  bool symbolic;       // no kernel runs
  bool records;        // a node is recorded
  bool draw;           // the outputs are marked as draws
};
Decision decide(const OpDef& op, const Attrs& attrs, const InputSummary& summary, const Context& c);

/// The device on which a call with these inputs runs.
Device device_of(const OpDef& op, const Attrs& attrs, const InputView* in, int n_in);
/// Runs the rule: sets shapes, dtypes and devices of the outputs.
void infer(const OpCall& call);
/// Allocates the outputs and runs the kernel. `origin`: of the instruction that it runs for (Note [Origins]).
void compute(const OpCall& call, std::int32_t origin = 0);

}  // namespace kassette::ops

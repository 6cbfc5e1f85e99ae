// ops/apply.h - what a call of an op does, decided by what was seen of its inputs.
#pragma once
#include "ops/op.h"

namespace kassette {

/// Of all inputs together.
struct Seen {
  std::uint8_t flags = 0, level = 0;
  bool tracked = false;  // one has history, and is no draw
  Device device = {};
};
struct Decision {
  Device device = {};
  std::uint8_t level;  // of the outputs
  bool symbolic;       // nothing is computed
  bool records;        // a node is made
  bool draw;           // the outputs are marked as draws
};
Decision decide(const OpDef& op, const Attrs& attrs, const Seen& seen, const Context& c);

/// In the name of `what`, whose operands are on two devices.
[[noreturn]] void fail_devices(const char* what, Device a, Device b);
/// Where a call with these inputs runs.
Device device_of(const OpDef& op, const Attrs& attrs, const InputView* in, int n_in);
/// The rule: shapes, dtypes and devices of the outputs.
void infer(const OpCall& call);
/// Storage and the kernel.
void compute(const OpCall& call);

}  // namespace kassette

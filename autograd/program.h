// autograd/program.h - a segment of the tape as a list of steps over slots: plain data, which plan_build.cpp makes, passes.h completes, and
// plans and loops run.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"
#include "ops/random.h"

namespace kassette {

/// A value without history, or, without bytes, what is known of one.
inline Body plain_body(const TensorSpec& spec, Device device, Ref<Storage> bytes = {}, std::int64_t offset = 0) {
  Body b;
  b.set(spec);
  b.device = device;
  b.storage = std::move(bytes);
  b.offset = offset;
  return b;
}
/// A value without history.
inline Body plain_body(const TensorSpec& spec, Device device, Value v) {
  return plain_body(spec, device, std::move(v.storage), v.offset);
}
/// Gives a body other bytes.
inline void put(Body& to, Value v) {
  to.storage = std::move(v.storage);
  to.offset = v.offset;
}
inline Value value_in(const Body& b) { return {b.storage, b.offset}; }
/// Whether both have one shape, dtype and device.
inline bool alike(const Body& a, const Body& b) {
  return a.same_shape(b) && a.dtype == b.dtype && a.device == b.device;
}

/// An update that a plan applies when everything else is done.
struct Effect {
  enum Mode : std::int64_t { kSet, kAdd, kSubtract };
  Ref<Cell> cell;
  int slot;  // kSet: the new value; else the increment
  Mode mode;
  const char* what;  // the function that the user called
  int number = -1;   // of a pair in the list of updates
  int step = -1;     // the tail step that makes the new value and may write it into the variable itself
  int current = -1;  // the slot of the variable that this step reads; for adds, read anew under the lock
};

/// A set of outputs, a bit for each. From the 63rd on they share one.
using Outputs = std::uint64_t;
inline Outputs output_bit(int k) { return Outputs(1) << (k < 63 ? k : 63); }

/// How much of a slot is read.
enum Need : std::uint8_t { kNothing, kShape, kValue };

/// An instruction of a program: an op on slots, and what the passes found out about it.
struct Step {
  const OpDef* op;
  Attrs attrs;
  std::int32_t function;  // in whose name it fails: Note [Error attribution]
  int in, n_in;           // into Program::ins
  int out, n_out;         // slots
  int dead, n_dead;       // into Program::dead: what no later step reads
  int spent, n_spent;     // into Program::dead: of what no later step reads the value
  std::uint8_t need;      // Need: of the outputs
  bool fusible, tail, source;
  bool one;    // elementwise, all inputs of one element as recorded
  bool splat;  // its result may be one, see Note [Splats]
  bool known;  // the shapes of its outputs are in Program::known
};

/// Steps [begin, end) that run together: one, or elementwise ones over the same n elements, and perhaps the sum of the last.
struct FusionGroup {
  int begin, end;
  std::int64_t n, width;  // width: of the rows that an operand repeats, on a device; else n
  bool fused;             // several, or one that reads splats
  bool sums;              // the last step sums what the chain before it makes, see Note [Sums of chains]
  int chain_end() const { return end - sums; }
};

/// A parameter of a program: the slot that an argument goes to, and what was declared.
struct Feed {
  int slot;
  TensorSpec declared;
  Device device;       // where the placeholder is; what is fed comes there
  Ref<Cell> fallback;  // of an input with a default
  bool ignored;        // a frozen learning phase
  std::string name;
};

/// An input or output as the caller sees it: one slot or, sparse, those of its three parts.
struct Port {
  TensorSpec declared;
  bool sparse;
};

/// A slot that is filled from a leaf of the tape.
struct LeafSlot {
  int slot;
  Ref<Node> node;
};

/// The intermediate representation of a recorded computation: steps in order, constants, parameters and results.
struct Program {
  std::vector<Step> steps;
  std::vector<int> ins, dead;
  int n_slots = 0, first_tail = 0;
  std::vector<std::pair<int, Body>> constants;
  std::vector<LeafSlot> variables, sources, defaults;
  std::vector<KeySource> key_sources;
  std::vector<Feed> feeds;
  std::vector<Port> inputs, results;
  std::vector<int> outputs, fetches;
  std::vector<Body> outputs_as_recorded;  // shapes, dtypes, devices
  std::vector<Effect> effects;
  std::vector<int> last_use;            // per slot: the last step that reads it, or -1
  std::vector<int> last_value_use;      // the same, of steps that read more than its shape
  std::vector<char> root;               // per slot: an output, a fetch or an effect
  std::vector<Outputs> differentiable;  // per feed: which outputs depend differentiably on it
  bool specialised = false;             // for inputs of certain shapes, see Note [Plans for shapes]
  std::vector<Body> known;              // specialised: shape and device per slot, or rank -1 where a call tells
  const char* what = "function";        // whose program it is
  std::string missing;                  // the error of a placeholder that is needed and not fed
  std::vector<Ref<Node>> keep;          // nodes whose attributes steps borrow nothing from, but whose cells they use

  const Step& step(int k) const { return steps[k]; }
  Step& step(int k) { return steps[k]; }
  /// The slots that a step reads.
  std::span<const int> reads(const Step& s) const { return {ins.data() + s.in, ins.data() + s.in + s.n_in}; }
  int n_steps() const { return static_cast<int>(steps.size()); }
  int input(const Step& s, int i) const { return ins[s.in + i]; }
  /// f(slot, cell) for each slot that a cell fills.
  template <class F>
  void for_each_cell(F&& f) const {
    for (const auto* list : {&variables, &defaults, &sources})
      for (const LeafSlot& leaf : *list) f(leaf.slot, *leaf.node->cell);
    for (const Effect& e : effects)
      if (e.current >= 0) f(e.current, *e.cell);
  }
  /// Whether a step from `end` on, or a caller, reads the value of a slot.
  bool stays(int slot, int end) const { return root[slot] || last_value_use[slot] >= end; }
};

/// Says in the log which step failed.
void log_failure(const Program& program, int k);

}  // namespace kassette

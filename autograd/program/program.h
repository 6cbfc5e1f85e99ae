// autograd/program/program.h - a segment of the tape as a list of instructions over slots: plain data, built by
// build.cpp, completed by the passes of passes.h, and run by plans and loops.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/engine/desc.h"
#include "ops/random/random.h"

namespace kassette::autograd {
using namespace ops;  // instructions, plans and loops are made of ops

/// The update of a variable, which a plan applies at the end of a call: Note [Commit].
struct Effect {
  /// How the value is combined with the variable's.
  enum Mode : std::int64_t { kSet, kAdd, kSubtract };
  Ref<Cell> cell;
  int slot;  // kSet: the new value; else the increment
  Mode mode;
  const char* what;       // the function that the user called
  int update_index = -1;  // the pair's place in the list of updates; -1: made by an update op
  /// The instruction of the tail that computes the new value and may write it into the variable's own memory, and the
  /// slot through which that reads the variable; for increments, loaded again under the lock. -1: none.
  int in_place_instruction = -1, old_value_slot = -1;
};

/// A set of outputs, one bit each; outputs from index 63 on share the last bit.
using Outputs = std::uint64_t;
inline Outputs output_bit(int k) { return Outputs(1) << (k < 63 ? k : 63); }

/// What later instructions and callers read of a slot.
enum Need : std::uint8_t { kNothing, kShape, kValue };

/// An instruction of a program: an op on slots, and what the passes have found out about it.
struct Instruction {
  const OpDef* op;
  Attrs attrs;
  std::int32_t function;         // the function that its errors name: Note [Error attribution]
  int in, n_in;                  // into Program::ins
  int out, n_out;                // slots
  int dead, n_dead;              // into Program::dead: slots that no later instruction reads
  int dead_value, n_dead_value;  // into Program::dead: slots whose value (not shape) no later instruction reads
  Need need;                     // the greatest of its outputs
  bool fusible;                  // elementwise, with one or two inputs and a result that is not bool: may be in a chain
  bool overwrites;               // may write its result over input 0, on the CPU (kOverwrites)
  bool tail;                     // one of these two, and only updates need its result: runs at commit
  bool makes_key;                // its result is a random key; in a body of control flow the run is given that key
  bool one;                      // elementwise, and each input has one element
  bool splat;                    // its result may be a splat, see Note [Splats]
  bool known;                    // the shapes of its outputs are in Program::known
};

/// Instructions [begin, end) that run as one: a single instruction, or consecutive elementwise instructions over the
/// same n elements, with the sum of the last if `sums`.
struct FusionGroup {
  int begin, end;
  std::int64_t n, width;  // width: on an accelerator, the length of an operand that each row reads again; else n
  bool fused;             // runs as a chain: several instructions, or one that reads splats
  bool sums;              // the last instruction sums the result of the chain before it, see Note [Sums of chains]
  int chain_end() const { return end - sums; }
};

/// A parameter of a program: the slot that its argument goes to, and the declared shape and dtype.
struct Feed {
  int slot;
  TensorSpec declared;
  Device device;       // the placeholder's; arguments are moved there
  Ref<Cell> fallback;  // the default value, if there is one
  bool ignored;        // a learning phase that is fixed: its argument is not read
  std::string name;
};

/// An input or output as the caller sees it: one slot, or three for the parts of a sparse tensor.
struct Port {
  TensorSpec declared;
  bool sparse;
};

/// A slot whose value is read from a leaf of the tape at each call.
struct LeafSlot {
  int slot;
  Ref<Node> node;
};

/// The intermediate representation of a recorded computation: instructions in order, constants, parameters and results.
struct Program {
  std::vector<Instruction> instructions;
  std::vector<int> ins, dead;
  int n_slots = 0, first_tail = 0;
  std::vector<std::pair<int, TensorDesc>> constants;
  std::vector<LeafSlot> variables, random_sources, defaults;
  std::vector<KeySource> key_sources;
  std::vector<Feed> feeds;
  std::vector<Port> inputs, results;
  std::vector<int> outputs, fetches;
  std::vector<TensorDesc> outputs_as_recorded;  // shapes, dtypes, devices
  std::vector<Effect> effects;
  std::vector<int> last_use;            // per slot: the last instruction that reads it, or -1
  std::vector<int> last_value_use;      // per slot: the last instruction that reads more than its shape, or -1
  std::vector<char> root;               // per slot: an output, a fetch or an effect
  std::vector<Outputs> differentiable;  // per feed: which outputs depend differentiably on it
  bool specialised = false;             // for inputs of certain shapes, see Note [Plans for shapes]
  std::vector<TensorDesc> known;        // specialised: shape and device per slot; rank -1 if known only in a call
  const char* what = "function";        // the function that errors name
  std::string missing;                  // the error if a placeholder is needed and not fed; else empty
  const char* missing_remedy = "";      // what to do about it
  std::vector<Ref<Node>> owned_nodes;   // inputs and leaves, which stay alive with the program

  const Instruction& instruction(int k) const { return instructions[k]; }
  Instruction& instruction(int k) { return instructions[k]; }
  /// The slots that an instruction reads.
  std::span<const int> reads(const Instruction& s) const { return {ins.data() + s.in, ins.data() + s.in + s.n_in}; }
  int n_instructions() const { return static_cast<int>(instructions.size()); }
  int input(const Instruction& s, int i) const { return ins[s.in + i]; }
  /// Calls f(slot, cell) for each slot that is filled from a cell.
  template <class F>
  void for_each_cell(F&& f) const {
    for (const auto* list : {&variables, &defaults, &random_sources})
      for (const LeafSlot& leaf : *list) f(leaf.slot, *leaf.node->cell);
    for (const Effect& e : effects)
      if (e.old_value_slot >= 0) f(e.old_value_slot, *e.cell);
  }
  /// True if the value of a slot is read by the caller or by an instruction from `end` on.
  bool stays(int slot, int end) const { return root[slot] || last_value_use[slot] >= end; }
};
[[noreturn]] __attribute__((cold)) void fail_missing(const Program& p);
/// Throws ValueError if the program reads a placeholder that is not among its inputs.
inline void check_missing(const Program& p) {
  if (!p.missing.empty()) fail_missing(p);
}

/// Logs at debug level that instruction k failed: the error that is thrown is that of an eager call, without the
/// number.
void log_failure(const Program& program, int k);

}  // namespace kassette::autograd

// autograd/loops/loop_run.h - one run of a compiled loop: its forward pass. See Note [Loops].
#pragma once
#include <vector>

#include "autograd/loops/loop_chain.h"
#include "autograd/loops/loop_program.h"

namespace kassette::autograd {

/// The options of one run of a loop.
struct LoopCall {
  const char* what;    // the function that errors name
  std::int64_t steps;  // at least one
  bool reverse = false;
  std::int64_t interval = 0;  // > 0: the backward pass recomputes this many steps at a time, see Note [Checkpoints]
  bool again = false;         // the steps have run before and have printed already: they do not print again
  bool batched = false;       // an output must have as many rows as an element
};

void copy_bytes(Device device, std::byte* to, const std::byte* from, std::int64_t bytes);

/// True if an instruction may write `bytes` into this storage: it is large enough, and nothing else refers to it.
inline bool uniquely_owned(const Storage* s, std::int64_t bytes) {
  return s && s->count.load(std::memory_order_acquire) == 1 && s->kind != Storage::kBorrowed && s->bytes >= bytes;
}

/// One execution of a compiled loop: its slots bound to memory, and the residuals that the forward pass saves for a
/// LoopBack. See Note [Loops].
class LoopRun {
 public:
  /// `in`: key, elements, states, captures, without history.
  LoopRun(Ref<LoopProgram> program, const LoopCall& call, const Tensors& in);
  ~LoopRun();
  LoopRun(const LoopRun&) = delete;
  LoopRun& operator=(const LoopRun&) = delete;
  /// Returns the stacked outputs, then the last states. `for_backward`: keeps residuals.
  Tensors forward(bool for_backward);

 protected:
  /// An instruction of the program, bound to its operands' memory.
  struct Bound {
    const Instruction* instruction = nullptr;  // null: not bound yet
    Kernel kernel = nullptr;
    Device device;
    int in = 0, out = 0;          // into arrays_ and results_
    bool views = false;           // the kernel sets the storage
    bool dynamic = false;         // shapes are known only when it runs
    bool loop_invariant = false;  // computed in the first step alone
    bool skipped = false;         // not to be run: its value is not read, or has been computed
  };
  /// A carry, of states or of cotangents: computed by one step, read by the next.
  struct Carry {
    int from, to;  // slots; from -1: the cotangent ends here
  };
  /// What a forward pass stores: the outputs, the residuals (of an interval that is recomputed), or both.
  enum class Pass : std::uint8_t { outputs, keeping, both };

  TensorDesc& desc(int slot) { return descs_[slot]; }
  std::int64_t index_of(std::int64_t t) const { return call_.reverse ? call_.steps - 1 - t : t; }
  bool writes_rows(int slot) const;
  bool has_stack(int slot) const { return static_cast<bool>(stacks_[slot]); }
  void bind(const std::vector<int>& instructions);
  std::unique_ptr<Schedule> arrange(const std::vector<LoopGroup>& groups);
  void bind_instruction(int k);
  void allocate_stack(int slot, std::int64_t rows);
  void start_pass(Pass pass, std::int64_t rows);
  void run_forward(std::int64_t begin, std::int64_t end);
  void forward_step(std::int64_t t);
  void execute(Schedule& schedule);
  void execute(Bound& b);
  void execute(LoopChain& chain);
  void add_product_to(const LoopGroup& group);
  OpCall call_of(Bound& b);
  void bind_output_storage(int slot);
  void execute_dynamic(const OpCall& call, const Instruction& s);
  void run(const OpCall& call, const Instruction& s);
  void set_elements(std::int64_t t);
  void set_keys(std::int64_t t);
  void save_residuals();
  void carry(const std::vector<Carry>& list);
  void check_shapes();
  void check_output(int slot);
  void collect_outputs();
  void drop_temporaries(bool stacks_too);
  static TensorDesc copy_of(const TensorDesc& b);
  Tensor carried_tensor(int slot);
  [[noreturn]] void fail_at(std::int64_t t, const char* direction);

  Ref<LoopProgram> loop_;
  const Program& program_;
  LoopCall call_;
  Tensors in_;
  std::vector<TensorDesc> descs_;  // per slot
  std::vector<Bound> bounds_;      // per instruction of the program
  std::vector<InputView> arrays_;
  std::vector<TensorDesc*> results_;
  std::vector<char> dynamic_;                        // per slot: its shape is known only in a step
  std::vector<Ref<Storage>> stacks_;                 // per slot: one row per step, or null
  std::vector<int> list_slots_;                      // residuals without a stack: their slots,
  std::vector<std::vector<Value>> step_values_;      // for each its value per step (null if only the shape is read),
  std::vector<std::vector<TensorSpec>> step_specs_;  // and its shape per step, if that is dynamic
  std::vector<int> stacked_;                         // slots that have a stack in this pass
  std::vector<Carry> states_;
  std::vector<Value> moved_;                // scratch of carry()
  std::vector<std::vector<Value>> starts_;  // the states at the start of each interval
  std::vector<Tensors> lists_;              // per output without a stack: its value per step
  std::unique_ptr<Schedule> forward_;
  devices::ThreadScratch chain_scratch_;
  std::int64_t row_ = 0;
  Pass pass_ = Pass::outputs;
  const Instruction* running_ = nullptr;  // the instruction that errors name
};

}  // namespace kassette::autograd

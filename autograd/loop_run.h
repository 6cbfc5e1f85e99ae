// autograd/loop_run.h - one run of a compiled loop, there and, if it keeps what that needs, back. See Note [Loops].
#pragma once
#include <vector>

#include "autograd/residuals.h"
#include "autograd/loop_chain.h"
#include "autograd/loop_program.h"

namespace kassette {

/// What a loop is run with.
struct LoopCall {
  const char* what;    // the function's name, for messages
  std::int64_t steps;  // at least one
  bool reverse = false;
  std::int64_t segment = 0;  // > 0: the way back computes this many steps anew at a time, from the states before them
  bool again = false;        // the steps ran before: what they print has been printed
  bool batched = false;      // an output has as many rows as an element
};

void copy_bytes(Device device, std::byte* to, const std::byte* from, std::int64_t bytes);

/// Memory that a step may write into: nobody else sees it.
inline bool uniquely_owned(const Storage* s, std::int64_t bytes) {
  return s && s->count.load(std::memory_order_acquire) == 1 && s->kind != Storage::kBorrowed && s->bytes >= bytes;
}

/// One execution of a compiled loop: its slots bound to memory, the stacks of residuals that the forward pass fills and the backward pass
/// reads, once. See Note [Loops].
class LoopRun final : public Extra {
 public:
  /// `in`: key, elements, states, captures, without history.
  LoopRun(Ref<LoopProgram> program, const LoopCall& call, const Tensors& in);
  ~LoopRun() override;
  bool equals(const Extra& other) const override { return this == &other; }
  /// Stacked outputs, then the last states. `way_back`: backward() follows.
  Tensors forward(bool way_back);
  /// Cotangents of elements, states and captures, empty where there is none; once. `dys`: per output, empty where none.
  Tensors backward(const Tensors& dys);

 private:
  /// A step of the plan with its operands in place.
  struct Bound {
    const Step* step = nullptr;  // null: not bound yet
    Kernel kernel = nullptr;
    Device device;
    int in = 0, out = 0;   // into arrays_ and results_
    bool views = false;    // the kernel gives the storage
    bool dynamic = false;  // shapes are known only when it runs
    bool once = false;     // computed in the first step for all
    bool silent = false;   // nobody reads the value, or it is there already
  };
  struct Carried {  // a state, or a cotangent that goes on: made by the step, read by the next
    int from, to;   // slots; from -1: there is none any more
  };
  struct Back {  // of a variant
    bool bound = false;
    std::unique_ptr<Schedule> steps;
    std::vector<Carried> carried;
    std::vector<char> in_place;  // per element: its cotangent is made where it belongs
  };
  enum class Pass : std::uint8_t { outputs, keeping, both };

  Body& body(int slot) { return bodies_[slot]; }
  std::int64_t index_of(std::int64_t t) const { return call_.reverse ? call_.steps - 1 - t : t; }
  bool writes_rows(int slot) const;
  bool has_stack(int slot) const { return static_cast<bool>(stacks_[slot]); }
  void bind(const std::vector<int>& steps);
  std::unique_ptr<Schedule> arrange(const std::vector<LoopGroup>& groups);
  void bind_step(int k);
  void give_stack(int slot, std::int64_t rows);
  void start_pass(Pass pass, std::int64_t rows);
  void run_forward(std::int64_t begin, std::int64_t end);
  void forward_step(std::int64_t t);
  void execute(Schedule& steps);
  void execute(Bound& b);
  void execute(LoopChain& chain);
  void add_product_to(const LoopGroup& group);
  OpCall call_of(Bound& b);
  void make_room(int slot);
  void execute_dynamic(const OpCall& call, const Step& s);
  void run(const OpCall& call, const Step& s);
  void set_elements(std::int64_t t);
  void set_keys(std::int64_t t);
  void keep_row();
  void restore(std::int64_t t, std::int64_t begin);
  void carry(const std::vector<Carried>& list);
  void check_shapes();
  void check_output(int slot);
  void collect_outputs();
  void drop_temporaries(bool stacks_too);
  void seed(const Tensors& dys);
  std::int64_t recompute_segment(std::int64_t t);
  void zero_rows(int i, std::int64_t begin, std::int64_t end);
  void bind_back(const Variant& v, Back& back);
  std::vector<LoopGroup> sums_of(const Variant& v);
  void store_dx(const Variant& v, const Back& back, std::int64_t t);
  static Body copy_of(const Body& b);
  Tensor outlives(int slot);
  [[noreturn]] void fail_at(std::int64_t t, const char* direction);

  Ref<LoopProgram> program_;
  const Program& plan_;
  LoopCall call_;
  Tensors in_;
  std::vector<Body> bodies_;   // per slot
  std::vector<Bound> bounds_;  // per step of the plan
  std::vector<InputView> arrays_;
  std::vector<Body*> results_;
  std::vector<char> dynamic_;                   // per slot
  std::vector<Ref<Storage>> stacks_;            // per slot: of all rows; null: it has none
  std::vector<int> listed_;                     // slots that are kept one by one, with
  std::vector<std::vector<Value>> rows_;        // their values; none where the shape alone is read, and
  std::vector<std::vector<TensorSpec>> specs_;  // their shapes, if they are dynamic
  std::vector<int> stacked_;                    // slots of this pass that have a stack
  std::vector<Carried> states_;
  std::vector<Value> moved_;                // of carry()
  std::vector<std::vector<Value>> starts_;  // the states at the start of each segment
  std::vector<Tensors> lists_;              // outputs that are no stacks
  std::vector<Ref<Storage>> dx_;
  std::vector<Back> backs_;
  std::unique_ptr<Schedule> forward_;
  std::int64_t row_ = 0;
  Pass pass_ = Pass::outputs;
  const Step* running_ = nullptr;
};

}  // namespace kassette

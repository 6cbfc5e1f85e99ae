// autograd/function/frame.h - the state of one call of a plan.
#pragma once
#include <algorithm>
#include <deque>
#include <vector>

#include "autograd/function/chain.h"
#include "autograd/program/program.h"
#include "autograd/tape/splat.h"
#include "ops/engine/apply.h"

namespace kassette::autograd {

/// The state of one call of a plan: a value per slot, and scratch memory. A plan keeps one for its next call. Only one
/// thread uses it at a time.
struct Frame {
  explicit Frame(const Program& program);
  void clear();

  const Instruction& instruction(int k) const { return program.instruction(k); }
  int input(const Instruction& s, int i) const { return program.input(s, i); }
  bool stays(int slot, int end) const { return program.stays(slot, end); }
  bool reads_splat(const Instruction& s) const {
    return std::ranges::any_of(program.reads(s), [&](int slot) { return is_splat(*at[slot]); });
  }
  /// The call of an instruction's kernel, with the current values of its input slots and `out` as outputs.
  OpCall call_of(const Instruction& s, TensorDesc* const* out);
  /// Infers shape and device of the only output of an instruction.
  void infer(const Instruction& s) {
    TensorDesc* out = &own[s.out];
    if (!s.known) ops::infer(call_of(s, &out));
  }
  /// Releases the values that nothing reads after an instruction.
  void release_dead(const Instruction& s) {
    for (int i = 0; i < s.n_dead_value; ++i) own[program.dead[s.dead_value + i]].storage = {};
  }

  const Program& program;
  std::vector<const TensorDesc*> at;  // per slot: its descriptor in `own`, a constant of the plan, or an argument
  std::vector<TensorDesc> own;
  std::vector<InputView> arrays;  // inputs of the running instruction
  // per instruction of a specialised program: the group that begins there, cached if it depends on shapes alone
  std::vector<FusionGroup> groups;
  Chain chain;
  devices::ThreadScratch scratch;
  struct {
    std::vector<Cell*> cells;
    std::vector<char> in_place;  // per effect
    std::vector<FusionGroup> groups;
    std::deque<Chain> chains;  // the first n_chains are those of the fused groups
    std::size_t n_chains = 0;
    std::vector<Value> replaced;  // old storage, released after the locks
  } commit;
  const Tensors* keys = nullptr;
  std::int64_t next_key = 0;
  bool leaves_set = false;
};

inline OpCall Frame::call_of(const Instruction& s, TensorDesc* const* out) {
  arrays.resize(std::max<std::size_t>(arrays.size(), s.n_in));
  for (int i = 0; i < s.n_in; ++i) {
    const TensorDesc* b = at[input(s, i)];
    arrays[i] = {b, b->storage ? b->data() : nullptr};
  }
  return {*s.op, s.attrs, arrays.data(), s.n_in, out, s.n_out, device_of(*s.op, s.attrs, arrays.data(), s.n_in)};
}

/// A plan's frame for one call, returned to the plan afterwards.
class FrameLease {
 public:
  FrameLease(const Program& program, std::atomic<Frame*>& spare)
      : spare_(spare), frame_(spare.exchange(nullptr, std::memory_order_acquire)) {
    if (!frame_) frame_ = new Frame(program);
  }
  ~FrameLease() {
    frame_->clear();
    Frame* expected = nullptr;
    if (!spare_.compare_exchange_strong(expected, frame_, std::memory_order_release)) delete frame_;
  }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  Frame& operator*() { return *frame_; }

 private:
  std::atomic<Frame*>& spare_;
  Frame* frame_;
};

}  // namespace kassette::autograd

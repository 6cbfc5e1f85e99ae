// autograd/function/frame.h - the state of one call of a plan.
#pragma once
#include <deque>
#include <vector>

#include "autograd/function/chain.h"
#include "autograd/function/plan.h"

namespace kassette::autograd {

/// The state of one call of a plan: a value per slot, and scratch memory. A plan keeps one for its next call. Only one
/// thread uses it at a time.
struct Frame {
  explicit Frame(const Program& program);
  void clear();
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

}  // namespace kassette::autograd

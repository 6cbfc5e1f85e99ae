// autograd/frame.h - what one call of a plan needs for itself.
#pragma once
#include <vector>

#include "autograd/plan.h"

namespace kassette {

/// The activation record of one call of a plan: a value per slot, and scratch memory. Kept from call to call, used by one thread at a time.
struct Frame {
  explicit Frame(const Program& program);
  void clear();
  std::vector<const Body*> at;  // per slot: its own body, a constant of the plan, or what is fed
  std::vector<Body> own;
  std::vector<InputView> arrays;  // inputs of the running step
  std::vector<FusionGroup>
      groups;  // per step of a specialised program: what begins there, once it was found and where shapes alone decide
  struct {
    std::vector<Cell*> cells;
    std::vector<char> in_place;  // per effect
    std::vector<FusionGroup> groups;
    std::vector<Value> replaced;  // old storage, released after the locks
  } commit;
  const Tensors* keys = nullptr;
  std::int64_t next_key = 0;
  bool leaves_set = false;
};

}  // namespace kassette

// autograd/function/frame.cpp - the state of one call of a plan.
#include "autograd/function/frame.h"

namespace kassette::autograd {

Frame::Frame(const Program& p) : program(p), at(p.n_slots), own(p.n_slots) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = &own[i];
  for (const auto& [slot, desc] : p.constants) at[slot] = &desc;
  if (!p.specialised) return;
  own = p.known;
  groups.resize(p.instructions.size());
}

void Frame::clear() {
  for (TensorDesc& b : own) {
    b.storage = {};
    b.node = {};
  }
  commit.replaced.clear();
}

}  // namespace kassette::autograd

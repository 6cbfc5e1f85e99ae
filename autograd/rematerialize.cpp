// autograd/rematerialize.cpp - saved values that a backward pass gives back on its way.
#include "autograd/backward_pass.h"

#include "autograd/program.h"

namespace kassette {

// Note [Rematerialization]
// Gradients have a history of their own (Note [Lazy backward]), so an eager pass keeps the segment it walked, saved values
// and all, for as long as a gradient lives. A loss that the caller gives up (a temporary, or std::move) leaves nobody else
// who could walk the segment; then a pass over many bytes gives every saved value back that can be computed again from the
// leaves, as soon as its adjoint ran, and keeps the leaves: constants, and variables and keys as they were. Should a
// gradient be differentiated after all, the segment is played forward once more from these, with the same bits.
// It is not done where an intermediate tensor is held by somebody, where a variable has changed since it was read, where
// what has to be held instead is as large, or where the segment has a backward pass or control flow in it.

/// Whether the segment is ours alone and can be computed again; then leaves_ is what from.
bool BackwardPass::find_leaves() {
  for (const Tensor& x : xs_)
    if (!(Access::body(x).flags & kLeaf)) return false;
  LargeList<std::int32_t> counts(entries_.size(), 0);
  std::int64_t less = 0, more = 0;
  for (const Entry& e : entries_)
    for (const Body *b = e.node->in(), *end = b + e.node->n_in; b != end; ++b)
      if (std::uint32_t i = b->node ? find(b->node.get()) : kNone; i != kNone) ++counts[i];
  if (entries_.empty()) return false;
  ++counts[0];  // the loss itself
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Node& n = *entries_[i].node;
    if (!n.op) continue;
    bool above = entries_[i].relevant;  // of what may be given back
    for (const Body *b = n.in(), *end = b + n.n_in; !above && b != end; ++b) above = computed(*b);
    if (!above) continue;
    if (is_deferred(n) || n.op->n_out == 0 || n.count.load(std::memory_order_acquire) != counts[i]) return false;
    if (!entries_[i].relevant) continue;
    for (const Body *b = n.in(), *end = b + n.n_in; b != end; ++b) {
      if (!b->node) continue;
      if (!computed(*b)) {
        if (!add_leaf(*b, more)) return false;
      } else if (b->storage) {
        less += b->storage->bytes;
      }
    }
    for (const Body *b = n.out(), *end = b + n.n_kept; b != end; ++b)
      if (b->storage) less += b->storage->bytes;
  }
  return more < less;
}

/// `b` with the value that its op read; false where that is gone.
bool BackwardPass::add_leaf(const Body& b, std::int64_t& more) {
  Value v = value_in(b);
  if (!v.storage) {
    if (!(b.flags & kLeaf) || b.node->cell->kind != Leaf::variable) return false;
    v = b.node->cell->load();
    if (v.version != b.offset) return false;
    more += v.storage->bytes;
  }
  for (const Tensor& t : leaves_) {
    const Body& other = Access::body(t);
    if (other.node == b.node && other.out == b.out) return other.storage == v.storage && other.offset == v.offset;
  }
  Body leaf = b;
  put(leaf, std::move(v));
  leaves_.push_back(Access::wrap(std::move(leaf)));
  return true;
}

void BackwardPass::release(Node& n) {
  std::int64_t bytes = 0;
  auto drop = [&](Body& b) {
    if (b.storage) bytes += b.storage->bytes;
    b.storage = {};
  };
  for (Body *b = n.in(), *end = b + n.n_in; b != end; ++b)
    if (saved_values_ == SavedValues::free || computed(*b)) drop(*b);
  for (Body *b = n.out(), *end = b + n.n_kept; b != end; ++b) drop(*b);
  n.saved -= bytes;
  context().saved_bytes.add(-bytes);
}

}  // namespace kassette

// autograd/tape/rematerialize.cpp - which saved values a backward pass releases.
#include "autograd/tape/backward_pass.h"

#include "autograd/program/program.h"

namespace kassette::autograd {

// Note [Rematerialization]
// Gradients have a history of their own (Note [Lazy backward]), so the segment that an eager pass went through stays
// alive, saved values included, as long as a gradient does. If the caller passes the loss as a temporary or with
// std::move, no other tensor leads to the segment. A pass over many bytes then releases, as soon as an adjoint has run,
// the saved values that can be computed again, and keeps the leaves: constants, variables and random keys with the
// values that the ops read. If a gradient is differentiated after all, the forward pass runs again from these, with the
// same bits.
//
// Saved values are retained if the user holds an intermediate tensor, a variable has changed since it was read, the
// leaves are as large as what would be released, or the segment contains a backward pass or control flow.

/// Fills leaves_ with the tensors that the segment can be computed from. Returns false if saved values have to be
/// retained.
bool BackwardPass::find_leaves() {
  for (const Tensor& x : xs_)
    if (!(Access::desc(x).flags & kLeaf)) return false;
  LargeVector<std::int32_t> counts(entries_.size(), 0);
  std::int64_t less = 0, more = 0;
  for (const Entry& e : entries_)
    for (const TensorDesc *b = e.node->in(), *end = b + e.node->n_in; b != end; ++b)
      if (std::uint32_t i = b->node ? find(b->node.get()) : kNone; i != kNone) ++counts[i];
  if (entries_.empty()) return false;
  ++counts[0];  // the reference from the loss
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Node& n = *entries_[i].node;
    if (!n.op) continue;
    bool above = entries_[i].relevant;  // it depends on a value that may be released
    for (const TensorDesc *b = n.in(), *end = b + n.n_in; !above && b != end; ++b) above = computed(*b);
    if (!above) continue;
    if (is_deferred(n) || n.op->n_out == 0 || n.count.load(std::memory_order_acquire) != counts[i]) return false;
    if (!entries_[i].relevant) continue;
    for (const TensorDesc *b = n.in(), *end = b + n.n_in; b != end; ++b) {
      if (!b->node) continue;
      if (!computed(*b)) {
        if (!add_leaf(*b, more)) return false;
      } else if (b->storage) {
        less += b->storage->bytes;
      }
    }
    for (const TensorDesc *b = n.out(), *end = b + n.n_saved_out; b != end; ++b)
      if (b->storage) less += b->storage->bytes;
  }
  return more < less;
}

/// Adds `b` to leaves_, with the value that its op read. Returns false if that value is lost, or if two ops read
/// different ones.
bool BackwardPass::add_leaf(const TensorDesc& b, std::int64_t& more) {
  Value v = value_in(b);
  if (!v.storage) {
    if (!(b.flags & kLeaf) || b.node->cell->kind != Leaf::variable) return false;
    v = b.node->cell->load();
    if (v.version != b.version) return false;
    more += v.storage->bytes;
  }
  for (const Tensor& t : leaves_) {
    const TensorDesc& other = Access::desc(t);
    if (other.node == b.node && other.out == b.out) return other.storage == v.storage && other.offset == v.offset;
  }
  TensorDesc leaf = b;
  put(leaf, std::move(v));
  leaves_.push_back(Access::wrap(std::move(leaf)));
  return true;
}

void BackwardPass::release(Node& n) {
  std::int64_t bytes = 0;
  auto drop = [&](TensorDesc& b) {
    if (b.storage) bytes += b.storage->bytes;
    b.storage = {};
  };
  for (TensorDesc *b = n.in(), *end = b + n.n_in; b != end; ++b)
    if (saved_values_ == SavedValues::free || computed(*b)) drop(*b);
  for (TensorDesc *b = n.out(), *end = b + n.n_saved_out; b != end; ++b) drop(*b);
  n.saved -= bytes;
  context().saved_bytes.add(-bytes);
}

}  // namespace kassette::autograd

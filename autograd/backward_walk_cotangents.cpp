// autograd/backward_walk_cotangents.cpp - how a backward pass sums cotangents, and where it need not make them.
#include "autograd/backward_walk.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/shaping.h"

namespace kassette {
namespace {

// Note [Thin cotangents]
// The cotangent of what a sum or a mean is of is one number, repeated, and so is the seed. In a pass that is not recorded it stays
// one number for as long as elementwise nodes alone read it: their adjoints broadcast as their values do, with the same bits. (A plan
// does the same, Note [Thin results].) And where that number is the seed itself, the adjoint of a product is the other factor: a
// cotangent w of one's own, given as sum(y * w), is not copied.
bool is_thin(const Body& b, const Spec& whole) { return b.numel() == 1 && whole.numel() > 1; }
/// Whether the adjoint of the node that made `out` takes one number for its cotangent.
bool takes_thin(const Body& out) {
  const Node& n = *out.node;
  if (!n.op || !(n.op->traits & kElementwise) || !(out.device == cpu)) return false;
  for (const Body *b = n.in(), *end = b + n.n_in; b != end; ++b)
    if (!b->same_shape(out) && (b->node || b->numel() != 1)) return false;
  return true;
}

// Note [Cotangents in place]
// What an unrecorded walk sums, it adds to the sum so far, and the adjoint of a product does so itself. Cotangents of slices wait
// until somebody reads the cotangent of what was sliced: one pass then puts them where they belong, instead of one over the whole
// for each. All of it with the bits of the recorded ops.

/// Memory of a cotangent that nobody else sees, and that may be added to.
bool ours(const Tensor& t) {
  const Body& b = Access::body(t);
  return b.device == cpu && b.storage && !b.node && !b.symbolic() && b.storage->kind != Storage::kBorrowed && Access::impl(t)->count.load(std::memory_order_acquire) == 1 &&
         b.storage->count.load(std::memory_order_acquire) == 1;
}

/// sum + g, where it is. Not where g waits (Note [Waiting ops]): their sum can wait, too.
bool add_in_place(Tensor& sum, const Tensor& g) {
  Body& s = Access::body(sum);
  const Body& b = Access::body(g);
  if (!ours(sum) || !b.storage || b.storage->data.late() || b.symbolic() || b.device != cpu || !b.known() || !b.same_shape(s) || b.dtype != s.dtype) return false;
  Attrs none;
  const Array in[] = {{&s, s.data()}, {&b, b.data()}};
  Body* out = &s;
  const OpDef& add = binary_row<Add>();
  add.cpu(Call{add, none, in, 2, &out, 1, cpu});
  return true;
}

Tensor one_for(const Tensor& loss) { return scalar_tensor(Scalar(1), Access::body(loss).dtype, "gradients"); }

}  // namespace

Tensor seed_for(const Tensor& loss) {
  Tensor one = one_for(loss);
  return Access::body(loss).rank == 0 ? one : broadcast_like(one, loss);
}

Tensors BackwardWalk::run(const Tensor& loss) {
  const Body& l = Access::body(loss);
  bool thin = unrecorded_ && l.numel() > 1 && l.device == cpu;
  seed_ = thin || l.rank == 0 ? one_for(loss) : seed_for(loss);
  return run(&loss, &seed_, 1);
}

void BackwardWalk::give(const Body& to, Tensor g) {
  Tensor* slot = slot_of(to);
  if (!slot) return;
  complete(*slot);
  const Body& b = Access::body(g);
  bool thin = unrecorded_ && is_thin(b, to);
  if (!b.same_shape(to) || !b.known()) {   // the engine undoes broadcasting
    Body shape_of;
    shape_of.set(to);
    shape_of.device = to.device;
    shape_of.flags = to.flags;
    shape_of.level = to.level;
    shape_of.out = to.out;
    shape_of.node = to.node;
    if (!thin) g = sum_to_like(g, Access::wrap(std::move(shape_of)));
    else if (!slot->defined() && !takes_thin(to)) g = broadcast_like(g, Access::wrap(std::move(shape_of)));
  }
  if (!slot->defined()) *slot = std::move(g);
  else if (!unrecorded_ || !add_in_place(*slot, g)) *slot = *slot + g;
}

/// Keeps the cotangent of a slice for later; false where that is not done.
bool BackwardWalk::give_slice(Node& n, const Tensor& dy) {
  const Body &to = n.in()[0], &b = Access::body(dy);
  Window w;
  if (!embeds(b) || !window_of(n.attrs, to, &w) || w.rows * w.width == 0 || b.numel() != w.rows * w.width) return false;
  Tensor* slot = slot_of(to);
  if (!slot || slot->defined()) return false;
  auto [it, fresh] = slices_.try_emplace(slot, Slices{{}, &n, w.first, w.first + w.width});
  Slices& s = it->second;
  if (!fresh) {
    auto apart = [&](const Embedded& e) { return e.window.first + e.window.width <= w.first || w.first + w.width <= e.window.first; };
    if (s.parts.front().window.whole != w.whole) return false;
    if (s.low < w.first + w.width && w.first < s.high && !std::all_of(s.parts.begin(), s.parts.end(), apart)) return false;
    s.low = std::min(s.low, w.first);
    s.high = std::max(s.high, w.first + w.width);
  }
  s.parts.push_back({dy, w});
  return true;
}

/// Makes one tensor of the slices that wait for this cotangent.
void BackwardWalk::put_slices(Tensor& slot) {
  if (slices_.empty()) return;
  auto it = slices_.find(&slot);
  if (it == slices_.end()) return;
  const Slices s = std::move(it->second);
  slices_.erase(it);
  const Body& to = s.first->in()[0];
  if (s.parts.size() > 1) {
    Spec whole;
    whole.set(to);
    slot = embed_sum(whole, s.parts);
  } else {
    Body shape_of;
    shape_of.set(to);
    shape_of.device = to.device;
    slot = apply1(index_grad_like_row, s.first->attrs, {s.parts.front().part, Access::wrap(std::move(shape_of))});
  }
}

/// Adds the shares of a product's operands to what they have already, at once or with those of the next, and takes them off what is
/// wanted.
void BackwardWalk::add_products(const Rewind& r, bool* wanted) {
  for (int i = 0; i < 2; ++i) {
    if (!wanted[i]) continue;
    Tensor* slot = slot_of(r.node.in()[i]);
    put_slices(*slot);
    if (!slot->defined() || !ours(*slot) || !Access::body(*slot).same_shape(r.spec(i))) continue;
    Body& sum = Access::body(*slot);
    if (auto it = shares_.find(slot); it != shares_.end()) {
      wanted[i] = it->second.take(r, i, sum) == ProductShares::kNot;
      if (wanted[i] || it->second.full()) complete(*slot);
    }
    if (!wanted[i]) continue;
    ProductShares fresh;
    const ProductShares::Taken taken = fresh.take(r, i, sum);
    wanted[i] = taken == ProductShares::kNot;
    if (taken == ProductShares::kKept) shares_.emplace(slot, std::move(fresh));
  }
}

/// What waits for this cotangent is put into it: before anybody adds to it or reads it (completed).
void BackwardWalk::complete(Tensor& slot) {
  put_slices(slot);
  if (shares_.empty()) return;
  auto it = shares_.find(&slot);
  if (it == shares_.end()) return;
  it->second.add_to(Access::body(slot));
  shares_.erase(it);
}

/// The adjoint of a sum or a mean of all there is, one number; false for any other node.
bool BackwardWalk::reduce_thin(const Node& n, const Tensor& dy, Tensor* din) const {
  if (n.op != &sum_row && n.op != &mean_row) return false;
  const Body& x = n.in()[0];
  if (!dy.defined() || !is_thin(Access::body(dy), x) || !(x.device == cpu)) return false;
  if (n.op == &mean_row && x.dtype.size() < 4) return false;   // the number of elements is perhaps none of float16
  din[0] = n.op == &sum_row ? dy : dy / static_cast<double>(x.numel());
  return true;
}

/// The adjoint of a product as it is, without a tensor made of each factor: most of what long chains of small ops do on the way back.
bool BackwardWalk::multiply(Node& n, const Tensor& dy, Tensor* din, const bool* wanted) const {
  if (n.op != &binary_row<Multiply>() || !dy.defined()) return false;
  // See Note [Thin cotangents]. The seed of an empty loss is empty, not one number: a factor is not its product with that.
  bool by_seed = seed_.defined() && Access::impl(dy) == Access::impl(seed_) && Access::body(dy).numel() == 1;
  for (int i = 0; i < 2; ++i) {
    if (!wanted[i]) continue;
    const Body& factor = n.in()[1 - i];
    din[i] = by_seed ? Access::wrap(Body(factor)).detach() : apply1(binary_row<MulNoNan>(), {dy, &factor});
  }
  return true;
}

}  // namespace kassette

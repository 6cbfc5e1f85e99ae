// autograd/tape/backward_pass.cpp - which nodes a backward pass visits, in which order, how it accumulates cotangents,
// and which saved values it releases.
#include "autograd/tape/backward_pass.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "autograd/tape/splat.h"
#include "core/check_interrupt.h"
#include "core/fast_paths.h"
#include "core/inline_array.h"
#include "ops/engine/desc.h"
#include "ops/engine/expr.h"
#include "ops/engine/observe.h"
#include "ops/elementwise/binary.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"

namespace kassette::autograd {
using namespace ops;

// Note [Order of a backward pass]
// Nodes are handled from the newest to the oldest, by sequence number. So every consumer comes before its producers,
// and cotangents are added in one order, whatever the order of the arguments of an op: those of a loop's last step
// first, as a compiled loop adds them. If the segment contains an expanded deferred node, this order would be wrong,
// since its nodes are newer than its consumers; such a pass goes in reverse postorder of the depth-first search.
// Sequence numbers also prune the search: nothing older than the oldest wanted tensor can depend on it. Otherwise a
// chain of gradient steps w = w - g(w) would be expanded step inside step, recursively.
namespace {

std::atomic<std::uint32_t> next_pass_id{1};

}  // namespace

BackwardPass::Scratch* BackwardPass::take_scratch() {
  Context& c = context();
  void* s = std::exchange(c.backward_scratch, nullptr);  // a pass within a pass finds none and makes its own
  return s ? static_cast<Scratch*>(s) : new Scratch;
}
void BackwardPass::release_scratch(Scratch* s) {
  constexpr std::size_t kKept = 4096;
  Context& c = context();
  if (c.backward_scratch || s->entries.capacity() > kKept || s->cotangents.capacity() > kKept ||
      s->stack.capacity() > kKept) {
    delete s;
    return;
  }
  s->wanted.clear();
  s->entries.clear();
  s->order.clear();
  s->cotangents.clear();
  s->stack.clear();
  c.backward_scratch = s;
  c.delete_backward_scratch = delete_scratch;
}

BackwardPass::BackwardPass(const Tensors& xs, SavedValues saved, GradientHook* hook, const Tensors& ends)
    : xs_(xs), saved_values_(saved), hook_(hook), scratch_(take_scratch()), wanted_(scratch_->wanted),
      entries_(scratch_->entries), order_(scratch_->order), cotangents_(scratch_->cotangents) {
  do id_ = next_pass_id.fetch_add(1, std::memory_order_relaxed);
  while (id_ == 0);
  for (const Tensor& x : xs) {
    const Node* n = Access::desc(x).node.get();
    oldest_ = std::min(oldest_, n->seq);
    wanted_.push_back(n);
  }
  std::ranges::sort(wanted_);
  for (const Tensor& t : ends)
    if (t.defined() && Access::desc(t).node) ends_.push_back(Access::desc(t).node.get());
  std::ranges::sort(ends_);
}

BackwardPass::~BackwardPass() {
  for (const Entry& e : entries_)
    if (e.node->claim.load(std::memory_order_relaxed) >> 32 == id_) e.node->claim.store(0, std::memory_order_relaxed);
  release_scratch(scratch_);
}

std::uint32_t BackwardPass::add(Node* n) {
  const std::uint32_t index = entries_.size();
  bool wanted = std::ranges::binary_search(wanted_, n);
  entries_.push_back({n, static_cast<std::uint32_t>(cotangents_.size()), wanted, wanted, false});
  for (std::uint32_t i = 0; i < n->n_out; ++i) cotangents_.emplace_back();
  std::uint64_t expected = 0;
  if (!n->claim.compare_exchange_strong(expected, id_ << 32 | index, std::memory_order_relaxed)) others_[n] = index;
  return index;
}

template <class F>
void BackwardPass::for_each_input(const Node* n, F&& f) {
  if (is_deferred(*n)) {
    for (const Tensor& t : expanded_[n])
      if (t.defined() && Access::desc(t).node) f(Access::desc(t).node.get());
    return;
  }
  for (const TensorDesc *b = n->in(), *end = b + n->n_in; b != end; ++b)
    if (b->node) f(b->node.get());
}

void BackwardPass::search(Node* root) {
  auto& stack = scratch_->stack;  // true: all its inputs have been visited
  stack.push_back({root, false});
  while (!stack.empty()) {
    check_interrupt();
    auto [n, done] = stack.back();
    stack.pop_back();
    if (done) {
      finish(n);
      continue;
    }
    if (n->seq < oldest_ || find(n) != kNone) continue;
    add(n);
    if (std::ranges::binary_search(ends_, n)) continue;
    if (is_deferred(*n)) {
      expanded_[n] = expand(*n);
    } else if (!n->op || !n->op->vjp) {  // a leaf, or the end of differentiability
      continue;
    }
    stack.push_back({n, true});
    for_each_input(n, [&](Node* m) {
      if (m->seq >= oldest_ && find(m) == kNone) stack.push_back({m, false});
    });
  }
}

void BackwardPass::finish(Node* n) {
  std::uint32_t index = find(n);
  bool relevant = false;
  for_each_input(n, [&](Node* m) {
    std::uint32_t i = find(m);
    relevant = relevant || (i != kNone && entries_[i].relevant);
  });
  if (!relevant) return;
  entries_[index].relevant = true;
  in_order_ = in_order_ && n->seq >= newest_;
  newest_ = n->seq;
  order_.push_back(index);
}

namespace {

/// `t`, materialized if it is a splat.
Tensor whole(const Tensor& t) {
  if (t.defined() && is_splat(Access::desc(t))) write_out(Access::desc(t));
  return t;
}
/// Replaces a splat by a scalar, which ops then broadcast.
void make_scalar(Tensor& t) {
  const TensorDesc& b = Access::desc(t);
  if (is_splat(b)) t = Access::wrap(make_desc(TensorSpec(b.dtype, {}), cpu, b.storage));
}
/// True if `n` is an elementwise op on tensors of one shape, so that its adjoint may read a scalar cotangent.
bool takes_scalars(const Node& n) {
  return n.op->loops &&
         std::all_of(n.in(), n.in() + n.n_in, [&](const TensorDesc& b) { return b.same_shape(n.in()[0]); });
}

}  // namespace

void BackwardPass::handle_deferred(Entry& e) {
  Tensors results = expanded_[e.node];
  for (std::int64_t i = 0; i < results.size(); ++i) {
    const Tensor& r = results[i];
    Tensor dy = cotangents_[e.first + i];
    if (r.defined() && dy.defined() && Access::desc(r).node) accumulate(Access::desc(r), whole(dy));
  }
}

void BackwardPass::handle(Entry& e) {
  Node& n = *e.node;
  if (is_deferred(n)) {
    handle_deferred(e);
    return;
  }
  if (!n.op || !n.op->vjp) return;
  const AdjointScope scope(n);
  const int n_in = n.n_in, n_out = n.n_out;
  InlineArray<Tensor, 8> cotangents(n_in + n_out);
  InlineArray<bool, 8> wanted(n_in);
  Tensor *din = cotangents.get(), *dy = din + n_in;
  for (int i = 0; i < n_in; ++i) {
    const Node* m = n.in()[i].node.get();
    std::uint32_t k = m ? find(m) : kNone;
    wanted[i] = k != kNone && entries_[k].relevant;
  }
  std::uint32_t first = e.first;
  bool keep = e.wanted;
  for (int i = 0; i < n_out; ++i) {
    Tensor& c = cotangents_[first + i];
    dy[i] = keep ? c : std::move(c);
    if (!dy[i].defined() || !is_splat(Access::desc(dy[i]))) continue;
    if (takes_scalars(n)) make_scalar(dy[i]);
    else write_out(Access::desc(dy[i]));
  }
  n.op->vjp(VjpContext(&n, dy, din, wanted.get(), unrecorded_ ? this : nullptr));
  for (int i = 0; i < n_in; ++i)
    if (wanted[i] && din[i].defined()) accumulate(n.in()[i], std::move(din[i]));
  if (saved_values_ != SavedValues::retain) release(n);
}

namespace {

/// True if `t` may be overwritten: it is on the CPU, is no splat, and nothing else refers to it or to its memory.
bool exclusive(const Tensor& t) {
  const TensorDesc& b = Access::desc(t);
  return b.device == cpu && b.storage && !is_splat(b) && !b.node && !b.symbolic() &&
         b.storage->kind != Storage::kBorrowed && Access::impl(t)->count.load(std::memory_order_acquire) == 1 &&
         b.storage->count.load(std::memory_order_acquire) == 1;
}

/// sum += g, in the memory of sum. Returns false, and does nothing, if that memory is shared or shapes, dtypes or
/// devices do not allow it.
bool add_in_place(Tensor& sum, const Tensor& g) {
  TensorDesc& s = Access::desc(sum);
  const TensorDesc& b = Access::desc(g);
  if (!may_take(FastPath::added_in_place) || !exclusive(sum) || !b.storage || b.symbolic() || b.device != cpu ||
      !b.known() || !(b.rank == 0 || b.same_shape(s)) || b.dtype != s.dtype)
    return false;
  const InputView in[] = {{&s, s.data()}, {&b, b.data()}};
  run_binary(add_op(), in, s);
  count_taken(FastPath::added_in_place);
  return true;
}

}  // namespace

void BackwardPass::accumulate(const TensorDesc& to, Tensor g) {
  Tensor* slot = slot_of(to);
  if (!slot) return;
  const TensorDesc& b = Access::desc(g);
  const bool one = unrecorded_ && b.storage && b.storage->bytes == b.dtype.size() && to.numel() > 1;
  if (!one && (!b.same_shape(to) || !b.known())) {  // sum over the axes that the op's broadcasting added
    TensorDesc shape_of = to;
    shape_of.storage = {};
    g = sum_to_like(g, Access::wrap(std::move(shape_of)));
  }
  if (slot->defined()) {
    make_scalar(g);
    if (unrecorded_ && add_in_place(*slot, g)) return;
    make_scalar(*slot);
    g = *slot + g;
  }
  if (one && Access::desc(g).numel() == 1) g = Access::wrap(make_desc(to, cpu, Access::desc(g).storage));
  *slot = std::move(g);
}

bool BackwardPass::accumulate(const TensorDesc& to, const OpDef& op, const Attrs& attrs, const In* in, int n_in) {
  constexpr int kMost = 3;
  Tensor& sum = *slot_of(to);
  const bool adds = op.accumulate && may_take(FastPath::accumulated) && sum.defined() && exclusive(sum);
  if ((!adds && !op.repeated) || n_in > kMost) return false;
  InputView arrays[kMost];
  Value values[kMost];  // held while they are read
  for (int i = 0; i < n_in; ++i) {
    const TensorDesc& b = *in[i].desc();
    if (b.device != cpu || !b.known()) return false;
    arrays[i] = {&b, nullptr};
    if (has_bit(op.shape_only, i)) continue;
    values[i] = read_value(b);
    if (!values[i].storage) return false;
    arrays[i].data = static_cast<std::byte*>(values[i].storage->data) + values[i].offset;
  }
  const OpCall call{op, attrs, arrays, n_in, nullptr, 0, cpu};
  TensorDesc made = make_desc({}, cpu);
  op.rule(call, &made);
  if (op.repeated) {
    if (!run_as_splat(call, made)) return false;
    accumulate(to, Access::wrap(std::move(made)));
    return true;
  }
  TensorDesc& s = Access::desc(sum);
  if (!made.same_shape(s) || made.dtype != s.dtype || !run_accumulate(call, s)) return false;
  count_taken(FastPath::accumulated);
  return true;
}

/// Sorts order_ by sequence number. Its tail is usually sorted already. Nodes out of order (the elements of a long
/// loop, which many nodes read) are usually at the front.
void BackwardPass::sort_by_age() {
  auto older = [&](std::uint32_t a, std::uint32_t b) { return entries_[a].node->seq < entries_[b].node->seq; };
  auto newer = [&](std::uint32_t a, std::uint32_t b) { return older(b, a); };
  const auto tail = std::is_sorted_until(order_.rbegin(), order_.rend(), newer).base();
  std::sort(order_.begin(), tail, older);
  std::inplace_merge(order_.begin(), tail, order_.end(), older);
}

Tensor BackwardPass::result_of(const Tensor& x) {
  const TensorDesc& b = Access::desc(x);
  std::uint32_t i = find(b.node.get());
  return i == kNone ? Tensor() : whole(cotangents_[entries_[i].first + b.out]);
}

/// For each of xs, after how many nodes its cotangent is complete: when the last node that reads it has been handled.
void BackwardPass::find_hook_points() {
  std::unordered_map<const Node*, std::size_t> last;
  for (const Node* n : wanted_) last[n] = 0;
  std::size_t handled = 0;
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    ++handled;
    for_each_input(entries_[*it].node, [&](const Node* m) {
      if (auto wanted = last.find(m); wanted != last.end()) wanted->second = handled;
    });
  }
  for (std::int64_t i = 0; i < xs_.size(); ++i) hook_points_.push_back({last[Access::desc(xs_[i]).node.get()], i});
  std::ranges::sort(hook_points_);
}

void BackwardPass::run_hooks(std::size_t handled) {
  for (; next_hook_point_ < hook_points_.size() && hook_points_[next_hook_point_].first <= handled;
       ++next_hook_point_) {
    const std::int64_t i = hook_points_[next_hook_point_].second;
    if (Tensor g = result_of(xs_[i]); g.defined()) hook_->on_gradient(i, g);
  }
}

Tensors BackwardPass::run(const Tensor* ys, const Tensor* seeds, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (Access::desc(ys[i]).node) search(Access::desc(ys[i]).node.get());
  for (std::int64_t i = 0; i < n; ++i)
    if (Access::desc(ys[i]).node && seeds[i].defined()) accumulate(Access::desc(ys[i]), seeds[i]);
  if (saved_values_ == SavedValues::rematerialize && !find_leaves()) {
    saved_values_ = SavedValues::retain;
    leaves_.clear();
  }
  if (saved_values_ == SavedValues::rematerialize) count_taken(FastPath::rematerialized);
  if (!in_order_ && expanded_.empty()) sort_by_age();
  if (hook_) find_hook_points();
  std::size_t handled = 0;
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    check_interrupt();
    if (hook_) run_hooks(handled++);
    if (entries_[*it].has_cotangent) handle(entries_[*it]);
  }
  if (hook_) run_hooks(handled);
  Tensors results;
  results.reserve(xs_.size());
  for (const Tensor& x : xs_) results.push_back(result_of(x));
  return results;
}

// ---- saved values ---------------------------------------------------------------------------------------------------

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

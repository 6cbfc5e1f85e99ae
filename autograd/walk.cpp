// autograd/walk.cpp - rewinding: one backward pass over a segment of the tape.
#include "autograd/walk.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "autograd/plan.h"
#include "core/check_interrupt.h"
#include "core/log.h"
#include "core/text.h"
#include "ops/binary.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/matmul.h"
#include "ops/operand.h"
#include "ops/reduce.h"
#include "ops/shaping.h"

namespace kassette {
namespace {

/// What a first-order backward pass was asked: enough to run it again, recorded.
struct Held : Extra {
  Tensor loss;
  Tensors xs;
  Tensors leaves;   // of a loss that was given up: what it was computed from, with the values of then
  bool equals(const Extra& other) const override { return this == &other; }
};

Tensor one_for(const Tensor& loss) { return scalar_tensor(Scalar(1), Access::body(loss).dtype, "gradients"); }
Tensor seed_for(const Tensor& loss) {
  Tensor one = one_for(loss);
  return Access::body(loss).rank == 0 ? one : broadcast_like(one, loss);
}

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

std::atomic<std::uint32_t> next_walk{1};

/// Memory of a cotangent that nobody else sees, and that may be added to.
bool ours(const Tensor& t) {
  const Body& b = Access::body(t);
  return b.device == cpu && b.storage && !b.node && !b.symbolic() && b.storage->kind != Storage::kBorrowed && Access::impl(t)->count.load(std::memory_order_acquire) == 1 &&
         b.storage->count.load(std::memory_order_acquire) == 1;
}

/// sum + g, where it is.
bool add_in_place(Tensor& sum, const Tensor& g) {
  Body& s = Access::body(sum);
  const Body& b = Access::body(g);
  if (!ours(sum) || !b.storage || b.symbolic() || b.device != cpu || !b.known() || !b.same_shape(s) || b.dtype != s.dtype) return false;
  Attrs none;
  const Array in[] = {{&s, s.data()}, {&b, b.data()}};
  Body* out = &s;
  const OpDef& add = binary_row<Add>();
  add.cpu(Call{add, none, in, 2, &out, 1, cpu});
  return true;
}

// Note [Cotangents in place]
// What an unrecorded walk sums, it adds to the sum so far, and the adjoint of a product does so itself. Cotangents of slices wait
// until somebody reads the cotangent of what was sliced: one pass then puts them where they belong, instead of one over the whole
// for each. All of it with the bits of the recorded ops.

// Note [Order of a walk]
// Nodes are handled from the newest to the oldest, so that every consumer comes before its producers and sums of cotangents
// have one order, whatever the user wrote first: the shares of a loop's last step are added first, as a compiled loop adds
// them. Where an expanded backward node is on the way that would not do, for its nodes are newer than its consumers; such a
// walk goes in reverse postorder of the depth-first search.
// Sequence numbers also cut the search: nothing older than the oldest wanted tensor can depend on it. Without that cut, a
// chain of gradient steps w = w - g(w) would be expanded step inside step, recursively.
class Walk {
 public:
  explicit Walk(const Tensors& xs, Kept kept = Kept::everything);
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  Tensors run(const Tensor* ys, const Tensor* seeds, std::int64_t n);
  /// The same from ones, one loss alone.
  Tensors run(const Tensor& loss);
  std::size_t visited() const { return entries_.size(); }
  /// Empty if saved values were kept after all.
  const Tensors& leaves() const { return leaves_; }

 private:
  struct Entry {
    Node* node;
    std::uint32_t first;   // its cotangents
    bool relevant;         // a wanted tensor can be reached from it through adjoints
    bool wanted;
    bool has_cotangent;
  };
  static constexpr std::uint32_t kNone = ~0u;
  /// The lists of a walk. A thread keeps one set of small ones for its next walk: most walks are over a few dozen nodes.
  struct Scratch {
    std::vector<const Node*> wanted;
    std::vector<Entry> entries;
    std::vector<std::uint32_t> order;
    std::vector<Tensor> cotangents;
    std::vector<std::pair<Node*, bool>> stack;
  };
  static Scratch* take_scratch();
  static void give_scratch(Scratch* s);
  static void delete_scratch(void* s) { delete static_cast<Scratch*>(s); }

  std::uint32_t find(const Node* n) const;
  std::uint32_t add(Node* n);
  void search(Node* root);
  void finish(Node* n);
  void sort_by_age();
  template <class F>
  void for_each_input(const Node* n, F&& f);
  void give(const Body& to, Tensor g);
  Tensor* slot_of(const Body& to);
  bool give_slice(Node& n, const Tensor& dy);
  void put_slices(Tensor& slot);
  void add_products(const Rewind& r, bool* wanted);
  bool reduce_thin(const Node& n, const Tensor& dy, Tensor* din) const;
  bool multiply_by_seed(Node& n, const Tensor& dy, Tensor* din, const bool* wanted) const;
  void handle(Entry& e);
  void handle_backward(Entry& e);
  void release(Node& n);
  bool find_leaves();
  bool add_leaf(const Body& b, std::int64_t& more);
  bool computed(const Body& b) const {
    std::uint32_t i = b.node && b.node->op ? find(b.node.get()) : kNone;
    return i != kNone && entries_[i].relevant;
  }

  const Tensors& xs_;
  Kept kept_;
  const bool unrecorded_ = !context().recording && !context().symbolic;   // see Note [Thin cotangents], Note [Cotangents in place]
  Tensor seed_;                                               // the number 1, where it is what the pass began with
  Tensors leaves_;
  std::uint64_t id_, oldest_ = ~std::uint64_t(0);
  Scratch* scratch_;
  std::vector<const Node*>& wanted_;   // sorted
  std::vector<Entry>& entries_;
  std::vector<std::uint32_t>& order_;   // what has to be handled, last first
  bool in_order_ = true;                // of sequence numbers
  std::uint64_t newest_ = 0;
  std::vector<Tensor>& cotangents_;
  /// Cotangents of slices of one tensor that do not overlap.
  struct Slices {
    std::vector<Embedded> parts;
    Node* first;               // the node of the first
    std::int64_t low, high;    // what lies between the first and the last
  };
  std::unordered_map<const Tensor*, Slices> slices_;                    // by the cotangent that they are of
  std::unordered_map<const Node*, std::uint32_t> others_;   // nodes that another thread's walk had claimed
  std::unordered_map<const Node*, Tensors> expanded_;
};

Walk::Scratch* Walk::take_scratch() {
  Context& c = context();
  void* s = std::exchange(c.walk_scratch, nullptr);   // a walk inside a walk finds nothing and makes its own
  return s ? static_cast<Scratch*>(s) : new Scratch;
}
void Walk::give_scratch(Scratch* s) {
  constexpr std::size_t kKept = 4096;
  Context& c = context();
  if (c.walk_scratch || s->entries.capacity() > kKept || s->cotangents.capacity() > kKept || s->stack.capacity() > kKept) {
    delete s;
    return;
  }
  s->wanted.clear();
  s->entries.clear();
  s->order.clear();
  s->cotangents.clear();
  s->stack.clear();
  c.walk_scratch = s;
  c.delete_walk_scratch = delete_scratch;
}

Walk::Walk(const Tensors& xs, Kept kept)
    : xs_(xs), kept_(kept), scratch_(take_scratch()), wanted_(scratch_->wanted), entries_(scratch_->entries), order_(scratch_->order),
      cotangents_(scratch_->cotangents) {
  do id_ = next_walk.fetch_add(1, std::memory_order_relaxed);
  while (id_ == 0);
  for (const Tensor& x : xs) {
    const Node* n = Access::body(x).node.get();
    oldest_ = std::min(oldest_, n->seq);
    wanted_.push_back(n);
  }
  std::sort(wanted_.begin(), wanted_.end());
}

Walk::~Walk() {
  for (const Entry& e : entries_)
    if (e.node->claim.load(std::memory_order_relaxed) >> 32 == id_) e.node->claim.store(0, std::memory_order_relaxed);
  give_scratch(scratch_);
}

std::uint32_t Walk::find(const Node* n) const {
  std::uint64_t claim = n->claim.load(std::memory_order_relaxed);
  if (claim >> 32 == id_) return static_cast<std::uint32_t>(claim);
  if (others_.empty()) return kNone;
  auto it = others_.find(n);
  return it == others_.end() ? kNone : it->second;
}

std::uint32_t Walk::add(Node* n) {
  auto index = static_cast<std::uint32_t>(entries_.size());
  bool wanted = std::binary_search(wanted_.begin(), wanted_.end(), n);
  entries_.push_back({n, static_cast<std::uint32_t>(cotangents_.size()), wanted, wanted, false});
  for (std::uint32_t i = 0; i < n->n_out; ++i) cotangents_.emplace_back();
  std::uint64_t nobody = 0;
  if (!n->claim.compare_exchange_strong(nobody, id_ << 32 | index, std::memory_order_relaxed)) others_[n] = index;
  return index;
}

template <class F>
void Walk::for_each_input(const Node* n, F&& f) {
  if (n->op == &backward_row) {
    for (const Tensor& t : expanded_[n])
      if (t.defined() && Access::body(t).node) f(Access::body(t).node.get());
    return;
  }
  for (const Body *b = n->in(), *end = b + n->n_in; b != end; ++b)
    if (b->node) f(b->node.get());
}

void Walk::search(Node* root) {
  auto& stack = scratch_->stack;   // true: all its inputs have been visited
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
    if (n->op == &backward_row) {
      expanded_[n] = expand_backward(*n);
    } else if (!n->op || !n->op->vjp) {   // a leaf, or the end of differentiability
      continue;
    }
    stack.push_back({n, true});
    for_each_input(n, [&](Node* m) {
      if (m->seq >= oldest_ && find(m) == kNone) stack.push_back({m, false});
    });
  }
}

void Walk::finish(Node* n) {
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

/// The cotangent of a tensor; null where nobody wants it.
Tensor* Walk::slot_of(const Body& to) {
  std::uint32_t i = find(to.node.get());
  if (i == kNone || !entries_[i].relevant) return nullptr;
  entries_[i].has_cotangent = true;
  return &cotangents_[entries_[i].first + to.out];
}

void Walk::give(const Body& to, Tensor g) {
  Tensor* slot = slot_of(to);
  if (!slot) return;
  put_slices(*slot);
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
bool Walk::give_slice(Node& n, const Tensor& dy) {
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
void Walk::put_slices(Tensor& slot) {
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

/// Adds the shares of a product's operands to what they have already, and takes them off what is wanted.
void Walk::add_products(const Rewind& r, bool* wanted) {
  for (int i = 0; i < 2; ++i) {
    if (!wanted[i]) continue;
    Tensor* slot = slot_of(r.node.in()[i]);
    put_slices(*slot);
    if (slot->defined() && ours(*slot) && Access::body(*slot).same_shape(r.spec(i)) && add_product_gradient(r, i, Access::body(*slot))) wanted[i] = false;
  }
}

void Walk::handle_backward(Entry& e) {
  Tensors results = expanded_[e.node];
  for (std::int64_t i = 0; i < results.size(); ++i) {
    const Tensor& r = results[i];
    Tensor dy = cotangents_[e.first + static_cast<std::size_t>(i)];
    if (r.defined() && dy.defined() && Access::body(r).node) give(Access::body(r), dy);
  }
}

/// Cotangents of one node: on the stack for the usual op, and no more of them than it has.
class Slots {
 public:
  Slots(int n_in, int n_out) : n_in_(n_in), n_(n_in + n_out) {
    if (n_ <= kFew) {
      tensors_ = reinterpret_cast<Tensor*>(few_);
      wanted_ = few_wanted_;
    } else {
      many_.reset(new std::byte[static_cast<std::size_t>(n_) * (sizeof(Tensor) + 1)]);
      tensors_ = reinterpret_cast<Tensor*>(many_.get());
      wanted_ = reinterpret_cast<bool*>(tensors_ + n_);
    }
    for (int i = 0; i < n_; ++i) new (tensors_ + i) Tensor;
  }
  ~Slots() {
    for (int i = 0; i < n_; ++i) tensors_[i].~Tensor();
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  Tensor* din() { return tensors_; }
  Tensor* dy() { return tensors_ + n_in_; }
  bool* wanted() { return wanted_; }

 private:
  static constexpr int kFew = 8;
  int n_in_, n_;
  Tensor* tensors_;
  bool* wanted_;
  alignas(Tensor) std::byte few_[kFew * sizeof(Tensor)];
  bool few_wanted_[kFew];
  std::unique_ptr<std::byte[]> many_;
};

void Walk::handle(Entry& e) {
  Node& n = *e.node;
  if (n.op == &backward_row) {
    handle_backward(e);
    return;
  }
  if (!n.op || !n.op->vjp) return;
  auto n_in = static_cast<int>(n.n_in), n_out = static_cast<int>(n.n_out);
  Slots slots(n_in, n_out);
  Tensor *din = slots.din(), *dy = slots.dy();
  bool* wanted = slots.wanted();
  for (int i = 0; i < n_in; ++i) {
    const Node* m = n.in()[i].node.get();
    std::uint32_t k = m ? find(m) : kNone;
    wanted[i] = k != kNone && entries_[k].relevant;
  }
  std::uint32_t first = e.first;
  bool keep = e.wanted;
  for (int i = 0; i < n_out; ++i) {
    Tensor& c = cotangents_[first + static_cast<std::uint32_t>(i)];
    put_slices(c);
    dy[i] = keep ? c : std::move(c);
  }
  const Rewind r(&n, dy, din, wanted);
  if (unrecorded_ && n.op == &index_row && dy[0].defined() && give_slice(n, dy[0])) wanted[0] = false;
  if (unrecorded_ && n.op == &matmul_row) add_products(r, wanted);
  if (std::any_of(wanted, wanted + n_in, [](bool w) { return w; }) &&
      !(unrecorded_ && (reduce_thin(n, dy[0], din) || multiply_by_seed(n, dy[0], din, wanted))))
    n.op->vjp(r);
  for (int i = 0; i < n_in; ++i)
    if (wanted[i] && din[i].defined()) give(n.in()[i], std::move(din[i]));
  if (kept_ != Kept::everything) release(n);
}

/// The adjoint of a sum or a mean of all there is, one number; false for any other node.
bool Walk::reduce_thin(const Node& n, const Tensor& dy, Tensor* din) const {
  if (n.op != &sum_row && n.op != &mean_row) return false;
  const Body& x = n.in()[0];
  if (!dy.defined() || !is_thin(Access::body(dy), x) || !(x.device == cpu)) return false;
  if (n.op == &mean_row && x.dtype.size() < 4) return false;   // the number of elements is perhaps none of float16
  din[0] = n.op == &sum_row ? dy : dy / static_cast<double>(x.numel());
  return true;
}

bool Walk::multiply_by_seed(Node& n, const Tensor& dy, Tensor* din, const bool* wanted) const {
  if (n.op != &binary_row<Multiply>() || !seed_.defined() || !dy.defined() || Access::impl(dy) != Access::impl(seed_)) return false;
  for (int i = 0; i < 2; ++i)
    if (wanted[i]) din[i] = Access::wrap(Body(n.in()[1 - i])).detach();
  return true;
}

void Walk::release(Node& n) {
  std::int64_t bytes = 0;
  auto drop = [&](Body& b) {
    if (b.storage) bytes += b.storage->bytes;
    b.storage = {};
  };
  for (Body *b = n.in(), *end = b + n.n_in; b != end; ++b)
    if (kept_ == Kept::nothing || computed(*b)) drop(*b);
  for (Body *b = n.out(), *end = b + n.n_kept; b != end; ++b) drop(*b);
  n.saved -= bytes;
  context().saved_bytes.add(-bytes);
}

/// What the search leaves out of order stands in front, as a rule: what many nodes read, as the elements of a long loop do.
void Walk::sort_by_age() {
  auto older = [&](std::uint32_t a, std::uint32_t b) { return entries_[a].node->seq < entries_[b].node->seq; };
  auto newer = [&](std::uint32_t a, std::uint32_t b) { return older(b, a); };
  const auto tail = std::is_sorted_until(order_.rbegin(), order_.rend(), newer).base();
  std::sort(order_.begin(), tail, older);
  std::inplace_merge(order_.begin(), tail, order_.end(), older);
}

Tensors Walk::run(const Tensor* ys, const Tensor* seeds, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (Access::body(ys[i]).node) search(Access::body(ys[i]).node.get());
  for (std::int64_t i = 0; i < n; ++i)
    if (Access::body(ys[i]).node && seeds[i].defined()) give(Access::body(ys[i]), seeds[i]);
  if (kept_ == Kept::leaves && !find_leaves()) {
    kept_ = Kept::everything;
    leaves_.clear();
  }
  if (!in_order_ && expanded_.empty()) sort_by_age();
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    check_interrupt();
    if (entries_[*it].has_cotangent) handle(entries_[*it]);
  }
  Tensors results;
  results.reserve(xs_.size());
  for (const Tensor& x : xs_) {
    const Body& b = Access::body(x);
    std::uint32_t i = find(b.node.get());
    if (i != kNone) put_slices(cotangents_[entries_[i].first + b.out]);
    Tensor g = i == kNone ? Tensor() : cotangents_[entries_[i].first + b.out];
    results.push_back(unrecorded_ && g.defined() ? broadcast_like(g, x) : std::move(g));
  }
  return results;
}

Tensors Walk::run(const Tensor& loss) {
  const Body& l = Access::body(loss);
  bool thin = unrecorded_ && l.numel() > 1 && l.device == cpu;
  seed_ = thin || l.rank == 0 ? one_for(loss) : seed_for(loss);
  return run(&loss, &seed_, 1);
}

// Note [Losses given up]
// Gradients have a history of their own (Note [Lazy backward]), so an eager pass keeps the segment it walked, saved values
// and all, for as long as a gradient lives. A loss that the caller gives up (a temporary, or std::move) leaves nobody else
// who could walk the segment; then a pass over many bytes gives every saved value back that can be computed again from the
// leaves, as soon as its adjoint ran, and keeps the leaves: constants, and variables and keys as they were. Should a
// gradient be differentiated after all, the segment is played forward once more from these, with the same bits.
// It is not done where an intermediate tensor is held by somebody, where a variable has changed since it was read, where
// what has to be held instead is as large, or where the segment has a backward pass or control flow in it.
constexpr std::int64_t kWorthwhile = 1 << 20;   // bytes saved by this thread

/// Whether the segment is ours alone and can be computed again; then leaves_ is what from.
bool Walk::find_leaves() {
  for (const Tensor& x : xs_)
    if (!(Access::body(x).flags & kLeaf)) return false;
  std::vector<std::int32_t> counts(entries_.size(), 0);
  std::int64_t less = 0, more = 0;
  for (const Entry& e : entries_)
    for (const Body *b = e.node->in(), *end = b + e.node->n_in; b != end; ++b)
      if (std::uint32_t i = b->node ? find(b->node.get()) : kNone; i != kNone) ++counts[i];
  if (entries_.empty()) return false;
  ++counts[0];   // the loss itself
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Node& n = *entries_[i].node;
    if (!n.op) continue;
    bool above = entries_[i].relevant;   // of what may be given back
    for (const Body *b = n.in(), *end = b + n.n_in; !above && b != end; ++b) above = computed(*b);
    if (!above) continue;
    if (n.op == &backward_row || n.op->n_out == 0 || n.count.load(std::memory_order_acquire) != counts[i]) return false;
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
bool Walk::add_leaf(const Body& b, std::int64_t& more) {
  Value v{b.storage, b.offset};
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
  leaf.storage = std::move(v.storage);
  leaf.offset = v.offset;
  leaves_.push_back(Access::wrap(std::move(leaf)));
  return true;
}

constinit WarnOnce growing;

/// Says once that history grows from one gradients() to the next: the mistake is `total = total + loss`.
void watch_growth(Context& c, std::size_t visited) {
  auto n = static_cast<std::int64_t>(visited);
  c.growing = n > c.last_segment ? c.growing + 1 : 0;
  c.last_segment = n;
  if (c.growing >= 64 && n > 1000)
    growing.say("the history behind the loss has grown in " + std::to_string(c.growing) + " successive calls of gradients and is now " +
                     std::to_string(n) +
                     " ops long: something carries its history from one step to the next. Keep a value without history "
                     "with x.detach() or K::eval(x), or keep it in a variable (K::update)");
}

}  // namespace

constinit const OpDef backward_row{
    .name = "gradients", .rule = nullptr, .cpu = nullptr, .vjp = nullptr, .n_out = 0};

Tensors walk(const Tensors& ys, const Tensors& xs, const Tensors& seeds, Kept kept) {
  return Walk(xs, kept).run(ys.begin(), seeds.begin(), ys.size());
}

Tensors expand_backward(const Node& node) {
  auto& held = static_cast<const Held&>(*node.attrs.extra);
  Context& c = context();
  Scoped<bool> on(c.recording, true);
  Tensors loss = held.loss;
  if (!held.leaves.empty()) {
    Plan::Request request;
    request.inputs = held.leaves;
    request.outputs = loss;
    request.what = "gradients";
    loss = Plan::build(request)->connect(held.leaves.begin(), static_cast<int>(held.leaves.size()));
  }
  return walk(loss, held.xs, seed_for(loss[0]));
}

Tensors gradients(const Tensor& loss, const Tensors& xs, Kept kept) {
  if (!loss.defined()) fail<ValueError>("gradients: the loss is an empty Tensor (an uninitialised variable?)");
  const Body& l = Access::body(loss);
  if (!l.dtype.is_float()) fail<TypeError>("gradients: the loss is ", l.dtype, ", a float dtype is needed");
  for (std::int64_t i = 0; i < xs.size(); ++i) {
    if (!xs[i].defined()) fail<ValueError>("gradients: variable ", i, " is an empty Tensor (an uninitialised variable?)");
    const Body& x = Access::body(xs[i]);
    if (!x.node)
      fail<ValueError>("gradients: variable ", i, " of shape ", x.shape(),
                       " was not recorded (it is a constant); make it a K::variable or a K::placeholder");
  }
  if (xs.empty()) return Tensors();
  Context& c = context();
  if (xs.size() > kMaxOutputs && c.recording && !l.symbolic() && !c.symbolic)
    fail<NotImplementedError>("gradients: ", xs.size(), " variables; one call takes at most ", kMaxOutputs);
  if (!l.node) {
    Tensors none;
    for (std::int64_t i = 0; i < xs.size(); ++i) none.push_back(Tensor());
    return none;
  }
  if (l.symbolic() || c.symbolic) return walk({loss}, xs, {seed_for(loss)});
  if (c.saved_bytes.get() < kWorthwhile) kept = Kept::everything;
  Tensors raw, leaves;
  {
    Scoped<bool> off(c.recording, false);
    Walk w(xs, kept);
    raw = w.run(loss);
    watch_growth(c, w.visited());
    leaves = w.leaves();
  }
  if (!c.recording) return raw;
  // Note [Lazy backward]
  // The pass ran unrecorded. Should somebody differentiate its results, or put them in a plan, this one node gives what is
  // needed to run the pass again, recorded.
  auto held = Ref<Held>::adopt(new Held);
  held->loss = loss;
  held->xs = xs;
  held->leaves = std::move(leaves);
  auto node = Ref<Node>::adopt(Node::make(&backward_row, 0, static_cast<std::uint16_t>(xs.size()), 0));
  node->attrs.extra = Ref<Extra>(held.get());
  std::uint64_t seq = std::max(c.clock, l.node->seq);
  node->seq = c.clock = seq + 1;
  for (std::int64_t i = 0; i < raw.size(); ++i) {
    Tensor& r = raw.begin()[i];
    if (!r.defined()) continue;
    // A cotangent that the pass made is ours to mark; one that is somebody's tensor (a variable, a constant) is not.
    auto phase = static_cast<std::uint8_t>(Access::body(r).flags & kPhase);
    if (Access::body(r).node || Access::impl(r)->count.load(std::memory_order_acquire) != 1) r = r.detach();
    Body& b = Access::body(r);
    b.flags = phase;
    b.level = l.level;
    b.out = static_cast<std::uint16_t>(i);
    b.node = node;
  }
  return raw;
}

}  // namespace kassette

// autograd/tape/backward_pass.h - one backward pass over a segment of the tape: the order of its nodes, their
// cotangents, and the saved values that it releases.
#pragma once
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/tape/deferred.h"
#include "autograd/tape/backward.h"
#include "core/large_vector.h"

namespace kassette::autograd {

/// One reverse-mode pass: a depth-first search from the ys to the wanted xs, then each node's adjoint (its
/// vector-Jacobian product), newest node first. The cotangents of each output of a node are accumulated.
class BackwardPass final : private ops::Accumulator {
 public:
  explicit BackwardPass(const Tensors& xs, SavedValues saved = SavedValues::retain, GradientHook* hook = nullptr,
                        const Tensors& ends = {});
  ~BackwardPass();
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;
  Tensors run(const Tensor* ys, const Tensor* seeds, std::int64_t n);
  std::size_t visited() const { return entries_.size(); }
  /// With SavedValues::rematerialize: the leaves that the segment can be computed from again, or empty if saved values
  /// were retained after all.
  const Tensors& leaves() const { return leaves_; }

 private:
  /// A node of the segment.
  struct Entry {
    Node* node;
    std::uint32_t first;  // index of its first output's cotangent
    bool relevant;        // a wanted tensor can be reached from it through adjoints
    bool wanted;
    bool has_cotangent;
  };
  static constexpr std::uint32_t kNone = ~0u;
  /// The lists of a pass. A thread keeps one small set for its next pass: most passes visit a few dozen nodes.
  struct Scratch {
    std::vector<const Node*> wanted;
    LargeVector<Entry> entries;
    LargeVector<std::uint32_t> order;
    LargeVector<Tensor> cotangents;
    LargeVector<std::pair<Node*, bool>> stack;
  };
  static Scratch* take_scratch();
  static void release_scratch(Scratch* s);
  static void delete_scratch(void* s) { delete static_cast<Scratch*>(s); }

  // the segment
  std::uint32_t find(const Node* n) const;
  std::uint32_t add(Node* n);
  void search(Node* root);
  void finish(Node* n);
  void sort_by_age();
  template <class F>
  void for_each_input(const Node* n, F&& f);
  void find_hook_points();
  void run_hooks(std::size_t handled);
  Tensor result_of(const Tensor& x);
  void handle(Entry& e);
  void handle_deferred(Entry& e);
  // cotangents
  Tensor* slot_of(const TensorDesc& to);
  void accumulate(const TensorDesc& to, Tensor g);
  bool accumulate(const TensorDesc& to, const ops::OpDef& op, const Attrs& attrs, const ops::In* in, int n_in) override;
  // saved values
  /// True if the pass goes through the op that computed `b`, so that `b` can be rematerialized.
  bool computed(const TensorDesc& b) const {
    std::uint32_t i = b.node && b.node->op ? find(b.node.get()) : kNone;
    return i != kNone && entries_[i].relevant;
  }
  bool find_leaves();
  bool add_leaf(const TensorDesc& b, std::int64_t& more);
  void release(Node& n);

  const Tensors& xs_;
  SavedValues saved_values_;
  GradientHook* hook_;
  // (number of nodes handled by then, index into xs), sorted
  std::vector<std::pair<std::size_t, std::int64_t>> hook_points_;
  std::size_t next_hook_point_ = 0;
  const bool unrecorded_ = !context().recording && !context().symbolic;  // cotangents may be accumulated in place
  Tensors leaves_;
  std::uint64_t id_, oldest_ = ~std::uint64_t(0);
  Scratch* scratch_;
  std::vector<const Node*>& wanted_;  // sorted
  LargeVector<Entry>& entries_;
  LargeVector<std::uint32_t>& order_;  // the relevant nodes with inputs, in reverse order of handling
  std::vector<const Node*> ends_;      // sorted: where the search stops
  bool in_order_ = true;               // order_ is sorted by sequence number
  std::uint64_t newest_ = 0;
  LargeVector<Tensor>& cotangents_;
  std::unordered_map<const Node*, std::uint32_t> others_;  // nodes that another pass had claimed
  std::unordered_map<const Node*, Tensors> expanded_;      // deferred nodes: their results as recorded ops
};

inline std::uint32_t BackwardPass::find(const Node* n) const {
  std::uint64_t claim = n->claim.load(std::memory_order_relaxed);
  if (claim >> 32 == id_) return static_cast<std::uint32_t>(claim);
  if (others_.empty()) return kNone;
  auto it = others_.find(n);
  return it == others_.end() ? kNone : it->second;
}

/// Where the cotangent of a tensor is accumulated. Returns null if the tensor leads to no wanted x.
inline Tensor* BackwardPass::slot_of(const TensorDesc& to) {
  std::uint32_t i = find(to.node.get());
  if (i == kNone || !entries_[i].relevant) return nullptr;
  entries_[i].has_cotangent = true;
  return &cotangents_[entries_[i].first + to.out];
}

}  // namespace kassette::autograd

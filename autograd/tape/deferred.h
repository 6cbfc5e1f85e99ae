// autograd/tape/deferred.h - nodes that stand for ops which are recorded only when a backward pass or a plan needs
// them.
#pragma once
#include "ops/engine/op.h"

namespace kassette::autograd {

/// The op of a deferred node; attrs.extra is its Deferred.
extern const ops::OpDef deferred_op;
inline bool is_deferred(const Node& n) { return n.op == &deferred_op; }

/// A node whose ops are recorded on demand: a backward pass that ran unrecorded (Note [Lazy backward]), or a call of a
/// large function (Note [Nested functions]).
struct Deferred : TaggedExtra<Deferred> {
  static constexpr const char* attrs_name = "deferred";
  /// Records the ops; returns the node's results.
  virtual Tensors expand(const Node& node) const = 0;
  /// Tensors whose history the results depend on, besides the node's inputs.
  virtual Tensors computed_from(const Node& node) const { return expand(node); }
  /// True if a plan may keep the node as an instruction: see Note [Nested functions].
  virtual bool may_be_instruction() const { return false; }
  /// Calls the deferred function with other inputs; only for nodes that may be an instruction.
  virtual Tensors call(const Tensors&) const { __builtin_trap(); }
};

/// Gives tensors that were computed unrecorded, of `from`, one deferred node; some may be empty. `deferred` is its
/// Deferred, which computes all of them.
void defer(Tensors& results, const Ref<Extra>& deferred, const Tensor& from);

inline const Deferred& deferred(const Attrs& attrs) { return attrs.extra->as<Deferred>(); }
inline Tensors expand(const Node& n) { return deferred(n.attrs).expand(n); }

}  // namespace kassette::autograd

// autograd/deferred.h - nodes that stand for ops which are recorded when a walk or a plan needs them.
#pragma once
#include "ops/op.h"

namespace kassette {

/// The op of such a node. Its attrs.extra is a Deferred.
extern const OpDef deferred_op;
inline bool is_deferred(const Node& n) { return n.op == &deferred_op; }

/// A node whose ops are recorded on demand: a backward pass that ran unrecorded (Note [Lazy backward]), or a call of a large function
/// (Note [Nested functions]).
struct Deferred : Extra {
  /// The results of the node as recorded ops.
  virtual Tensors expand(const Node& node) const = 0;
  /// Tensors whose history, with the inputs of the node, is all that the results are computed from.
  virtual Tensors computed_from(const Node& node) const { return expand(node); }
  /// Whether a plan may keep the node as a step: see Note [Nested functions].
  virtual bool may_be_step() const { return false; }
  /// The same node on other inputs.
  virtual Tensors again(const Tensors& in) const { return in; }
  bool equals(const Extra& other) const override { return this == &other; }
};

inline const Deferred& deferred(const Attrs& attrs) { return static_cast<const Deferred&>(*attrs.extra); }
inline Tensors expand(const Node& n) { return deferred(n.attrs).expand(n); }

}  // namespace kassette

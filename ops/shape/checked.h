// ops/shape/checked.h - conditions on the shapes of arguments that no op behind them has: a composition would broadcast
// what does not fit.
#pragma once
#include <functional>
#include <utility>

#include "ops/engine/op.h"

namespace kassette::ops {

/// Throws unless the shapes of x and `other` fit together, as far as they are known. It is called whenever a function
/// with unknown sizes runs, so it holds what it needs: names that are literals, axes, numbers.
using ShapeCondition = std::function<void(const TensorSpec& x, const TensorSpec& other)>;

/// x as an output of the op that calls the condition.
Tensor checked_later(const Tensor& x, const Tensor& other, ShapeCondition condition);

/// Calls condition(x, other) now and, if sizes are unknown, again when the function runs: the errors are the same.
/// Returns x, or the output of the op that checks it: what is computed from that waits for the condition.
template <class F>
Tensor checked(const Tensor& x, const Tensor& other, F condition) {
  const TensorDesc &a = Access::desc(x), &b = Access::desc(other);
  condition(a, b);
  return a.known() && b.known() ? x : checked_later(x, other, std::move(condition));
}
/// The same for a condition on x alone.
template <class F>
Tensor checked(const Tensor& x, F condition) {
  return checked(x, x, [condition](const TensorSpec& spec, const TensorSpec&) { condition(spec); });
}

/// Whether x broadcasts to that shape, as far as sizes are known: a condition that several functions have.
bool broadcasts_to(const TensorSpec& x, const TensorSpec& shape);

/// Whether two shapes broadcast against each other but for their last `behind` axes, as far as sizes are known.
bool broadcast_together(const TensorSpec& x, const TensorSpec& y, int behind = 0);

extern const OpDef check_shapes_op;

}  // namespace kassette::ops

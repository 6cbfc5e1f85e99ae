// autograd/tape/deferred.cpp - the op of a deferred node.
#include "autograd/tape/deferred.h"

#include <algorithm>

#include "core/context.h"

namespace kassette::autograd {

constinit const ops::OpDef deferred_op{.name = "deferred", .rule = nullptr, .cpu = nullptr, .vjp = nullptr, .n_out = 0};

void defer(Tensors& results, const Ref<Extra>& deferred, const Tensor& from) {
  auto node = Ref<Node>::adopt(Node::make(&deferred_op, 0, results.size(), 0));
  node->attrs.extra = deferred;
  const TensorDesc& f = Access::desc(from);
  Context& c = context();
  node->seq = c.clock = std::max(c.clock, f.node->seq) + 1;
  for (std::int64_t i = 0; i < results.size(); ++i) {
    Tensor& r = results[i];
    if (!r.defined()) continue;
    // The node is set on the tensor itself only if nobody else has it; a tensor that is used elsewhere (a variable, a
    // constant) is detached first.
    const auto phase = static_cast<std::uint8_t>(Access::desc(r).flags & kPhase);
    if (Access::desc(r).node || Access::impl(r)->count.load(std::memory_order_acquire) != 1) r = r.detach();
    TensorDesc& b = Access::desc(r);
    b.flags = phase;
    b.depth = f.depth;
    b.out = i;
    b.node = node;
  }
}

}  // namespace kassette::autograd

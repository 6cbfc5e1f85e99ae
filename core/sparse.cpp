// core/sparse.cpp - sparse tensors: handles over three dense ones.
#include "core/sparse.h"

#include <algorithm>

#include "core/text.h"

namespace kassette {

Tensor make_sparse(const Tensor& indices, const Tensor& values, const Tensor& dense_shape, const TensorSpec& spec,
                   const Tensor& fed_shape) {
  const Tensor* parts[] = {&indices, &values, &dense_shape, &fed_shape};
  const std::uint32_t n = fed_shape.defined() ? kFedShape + 1 : kFedShape;
  Context& c = context();
  auto node = Ref<Node>::adopt(Node::make(nullptr, n, 1, 0));
  TensorDesc b;
  b.set(spec);
  b.device = values.device();
  b.flags = kSparse;
  std::uint64_t seq = c.clock;
  for (std::uint32_t i = 0; i < n; ++i) {
    TensorDesc& part = node->in()[i] = Access::desc(*parts[i]);
    b.flags = static_cast<std::uint8_t>(b.flags | (part.flags & (kSymbolic | kPhase)));
    b.depth = std::max(b.depth, part.depth);
    if (part.node) seq = std::max(seq, part.node->seq);
  }
  node->seq = c.clock = seq + 1;
  b.node = std::move(node);
  return Access::wrap(std::move(b));
}

void fail_sparse(const At& at, const TensorDesc& b) {
  fail<TypeError>(at, *at.argument ? "of shape " : "the tensor ", shape_text(b), " is sparse", kRemedy,
                  "densify it first: K::to_dense(x)");
}

}  // namespace kassette

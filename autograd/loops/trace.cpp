// autograd/loops/trace.cpp - recording the bodies of control flow, and running them.
#include "autograd/loops/trace.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/tape/deferred.h"
#include "core/convert.h"
#include "core/sparse.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/engine/operand.h"
#include "ops/random/random.h"

namespace kassette::autograd {

// Note [Control-flow depth]
// A tensor's depth is that of the body whose placeholders or draws it depends on. While a body is traced, a tensor of
// a lower depth is a capture: it is recognised without a search, computed once outside of the loop, and differentiated
// like any input. Symbolic ops recorded inside a branch have at least the branch's depth (ScopeState::branch_depth),
// whatever they depend on, so that a branch that is not taken costs nothing and cannot throw.

namespace {
std::uint8_t deeper(const char* what) {
  check_stack(what);
  if (context().depth == 255) fail<ValueError>({what}, "control flow nested deeper than 255");
  return static_cast<std::uint8_t>(context().depth + 1);
}
}  // namespace

BodyScope::BodyScope(const char* what, bool has_arguments)
    : symbolic_(context().symbolic, true), depth_(context().depth, deeper(what)),
      branch_depth_(context().branch_depth, has_arguments ? context().branch_depth : context().depth),  // a branch
      steps_(context().loop_steps, 1), step_(context().loop_step, 0) {}

Tensor stand_in(const TensorSpec& spec, Device device) {
  Tensor t = make_leaf(Leaf::placeholder, spec, device, {}, Name());
  Access::desc(t).depth = context().depth;
  Access::desc(t).node->cell->in_body = true;
  return t;
}

Traced trace(const char* what, const std::vector<TensorSpec>& args, Device device,
             const Callable<Tensors(const Tensors&)>& f) {
  const Context& c = context();
  const BodyScope body(what, !args.empty());
  Tensors placeholders;
  for (const TensorSpec& s : args) placeholders.push_back(stand_in(s, device));
  Tensors out = f(placeholders);
  Traced traced;
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<const Node*, int>> captured;
  std::vector<const Node*> stack;
  auto look = [&](const TensorDesc& b) {
    const Node* n = b.node.get();
    if (!n) return;
    if (b.depth >= c.depth) {
      if (seen.insert(n).second) stack.push_back(n);
      return;
    }
    if ((b.flags & kLeaf) && n->cell->kind == Leaf::random_source) return;
    std::pair<const Node*, int> key{n, b.out};
    if (std::find(captured.begin(), captured.end(), key) != captured.end()) return;
    captured.push_back(key);
    traced.captures.push_back(Access::wrap(b));
  };
  for (const Tensor& t : out) {
    if (!t.defined()) fail<ValueError>({what}, "the function returned ", kEmptyTensor);
    refuse_sparse({what}, t);
    look(Access::desc(t));
  }
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (is_deferred(*n)) continue;  // expanded by the plan
    for (const TensorDesc *b = n->in(), *end = b + n->n_in; b != end; ++b) look(*b);
  }
  ProgramRequest request;
  request.inputs = placeholders;
  append(request.inputs, traced.captures);
  request.outputs = out;
  request.what = what;
  request.body = true;
  traced.plan = Plan::build(request);
  return traced;
}

bool is_recorded(const Tensors& args) {
  return context().recording &&
         std::any_of(args.begin(), args.end(), [](const Tensor& t) { return Access::desc(t).node; });
}

Tensors run_body(const Plan& plan, const Tensors& args, const Tensors& keys) {
  return is_recorded(args) ? plan.inline_into_tape(args, &keys) : plan.run(args, &keys);
}

Tensors step_keys(const Tensor& key, std::int64_t step, std::int64_t steps, const Plan& body, std::size_t first) {
  Tensors keys;
  if (body.key_sources().empty()) return keys;
  const TensorDesc now = make_desc(Access::desc(key), cpu, read_value(Access::desc(key)));
  std::size_t i = first;
  for (const KeySource& source : body.key_sources()) {
    Tensor k = empty_tensor(TensorSpec(int64, {2}));
    derive_key(now.data(), step, steps, i++, source, Access::desc(k).data());
    keys.push_back(k);
  }
  return keys;
}

Tensor no_key(const char* what) { return scalar_tensor(Scalar(0), int64, what); }

}  // namespace kassette::autograd

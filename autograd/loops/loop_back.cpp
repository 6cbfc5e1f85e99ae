// autograd/loops/loop_back.cpp - the backward pass of a compiled loop. See Note [Loops].
#include "autograd/loops/loop_back.h"

#include <algorithm>
#include <cstring>

#include "autograd/loops/unstack.h"
#include "core/fast_paths.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/engine/expr.h"
#include "ops/engine/observe.h"
#include "ops/engine/operand.h"

namespace kassette::autograd {

LoopBack::~LoopBack() {
  for (BoundAdjoint& b : backs_) loop_->schedules.keep(std::move(b.schedule));
}

/// Points the slots at the elements, keys and residuals of step t. `begin`: the first step whose residuals are kept.
void LoopBack::load_residuals(std::int64_t t, std::int64_t begin) {
  const LoopProgram& p = *loop_;
  row_ = t - begin;
  set_elements(t);
  set_keys(t);
  for (int slot : stacked_) desc(slot).offset = row_ * desc(slot).bytes();
  for (const Carry& c : states_) {
    if (!p.is_residual[c.to] || !has_stack(c.from)) continue;
    TensorDesc& to = desc(c.to);
    if (row_ > 0) {
      if (!(to.storage == stacks_[c.from])) to.storage = stacks_[c.from];
      to.offset = (row_ - 1) * to.bytes();
      continue;
    }
    const auto i = &c - states_.data();
    const TensorDesc& first = Access::desc(in_[1 + p.signature.n_xs + i]);
    put(to, starts_.empty() ? value_in(first) : starts_[begin / call_.interval][i]);
  }
  for (std::size_t i = 0; i < list_slots_.size(); ++i) {
    TensorDesc& b = desc(list_slots_[i]);
    put(b, std::move(step_values_[i].back()));
    step_values_[i].pop_back();
    if (step_specs_[i].empty()) continue;
    b.set(step_specs_[i].back());
    step_specs_[i].pop_back();
  }
}

/// The instructions of a step's adjoint. A product that is only added to the cotangent of a capture forms one group
/// with that addition.
std::vector<LoopGroup> LoopBack::adjoint_groups(const StepAdjoint& adjoint) {
  const LoopProgram& p = *loop_;
  std::vector<int> reads(descs_.size(), 0);
  for (int k : adjoint.instructions)
    for (int slot : program_.reads(program_.instruction(k))) ++reads[slot];
  for (int slot : adjoint.din)
    if (slot >= 0) ++reads[slot];
  std::vector<int> sum_of(program_.instructions.size(), -1), product_of(program_.instructions.size(), -1);
  std::vector<char> gone(program_.instructions.size(), 0);
  for (int i = 0; i < p.signature.n_captures && may_take(FastPath::loop_accumulated); ++i) {
    std::vector<int> adds;
    int slot = adjoint.din[p.signature.capture(i)], start = p.sum_slots[i];
    if (start < 0) continue;
    while (slot >= 0 && slot != start && reads[slot] == 1) {
      int add = p.producer[slot];
      if (add < 0 || program_.instruction(add).op->pattern != Pattern::add || !bounds_[add].instruction) break;
      int share = program_.input(program_.instruction(add), 1), product = p.producer[share];
      if (product < 0 || !program_.instruction(product).op->accumulate || reads[share] != 1 || p.is_residual[share])
        break;
      const Bound &a = bounds_[add], &b = bounds_[product];
      if (!b.instruction || b.device != cpu || a.dynamic || b.dynamic || a.loop_invariant || b.loop_invariant ||
          a.skipped || b.skipped || !desc(share).same_shape(desc(start)))
        break;
      adds.push_back(add);
      slot = program_.input(program_.instruction(add), 0);
    }
    if (slot != start || reads[start] != 1) continue;
    for (int add : adds) {
      int product = p.producer[program_.input(program_.instruction(add), 1)];
      sum_of[add] = start;
      product_of[add] = product;
      gone[product] = 1;
    }
  }
  std::vector<LoopGroup> groups;
  for (int k : adjoint.instructions) {
    if (sum_of[k] >= 0) groups.push_back({.instruction = product_of[k], .sum = sum_of[k], .add = k});
    else if (!gone[k]) groups.push_back({.instruction = k});
  }
  return groups;
}

/// Binds the adjoint of a step: its schedule, its carries, and the memory for the cotangents of the elements.
void LoopBack::bind_back(const StepAdjoint& adjoint, BoundAdjoint& back) {
  const LoopProgram& p = *loop_;
  back.bound = true;
  bind(adjoint.instructions);
  const std::vector<LoopGroup> groups = adjoint_groups(adjoint);
  back.schedule = arrange(groups);
  auto in_place = [&](int sum) {
    return std::ranges::any_of(groups, [&](const LoopGroup& group) { return group.sum == sum; });
  };
  for (int i = 0; i < p.signature.n_carry; ++i)
    if (int to = p.dy_slots[p.signature.n_ys + i]; to >= 0)
      back.carried.push_back({adjoint.din[p.signature.n_xs + i], to});
  for (int i = 0; i < p.signature.n_captures; ++i)
    if (int from = adjoint.din[p.signature.capture(i)], to = p.sum_slots[i]; from >= 0 && !in_place(to))
      back.carried.push_back({from, to});
  back.in_place.assign(p.signature.n_xs, 0);
  for (int i = 0; i < p.signature.n_xs; ++i) {
    int slot = adjoint.din[i];
    if (slot < 0) continue;
    Ref<Storage>& dx = dx_[i];
    if (!dx) {
      const TensorDesc& x = Access::desc(in_[i + 1]);
      dx = Storage::allocate(x.bytes(), x.device);
      if (&adjoint != &p.step_adjoints[0]) zero_rows(i, 0, call_.steps);  // later steps had no cotangent for it
    }
    if (!writes_rows(slot) || p.is_residual[slot] || has_stack(slot)) continue;
    desc(slot).storage = stacks_[slot] = dx;
    back.in_place[i] = 1;
  }
}

void LoopBack::zero_rows(int i, std::int64_t begin, std::int64_t end) {
  const TensorDesc& x = desc(loop_->arg_slots[i]);
  std::int64_t bytes = x.bytes();
  Storage& to = *dx_[i];
  auto* data = static_cast<std::byte*>(to.data);
  if (to.device == cpu) {
    if (bytes) std::memset(data + begin * bytes, 0, (end - begin) * bytes);
    return;
  }
  Tensor zeros = zeros_of(detached(x));
  for (std::int64_t k = begin; k < end; ++k) copy_bytes(to.device, data + k * bytes, Access::desc(zeros).data(), bytes);
}

void LoopBack::store_dx(const StepAdjoint& adjoint, const BoundAdjoint& back, std::int64_t t) {
  for (std::size_t i = 0; i < dx_.size(); ++i) {
    if (!dx_[i] || back.in_place[i]) continue;
    std::int64_t at = index_of(t);
    if (adjoint.din[i] < 0) {
      zero_rows(i, at, at + 1);
      continue;
    }
    const TensorDesc& from = desc(adjoint.din[i]);
    std::int64_t bytes = from.bytes();
    copy_bytes(from.device, static_cast<std::byte*>(dx_[i]->data) + at * bytes, from.data(), bytes);
  }
}

/// Sets the cotangents of the outputs and last states, and those of captures to -0.
void LoopBack::seed(const Tensors& dys) {
  const LoopProgram& p = *loop_;
  for (std::size_t k = 0; k < p.dy_slots.size(); ++k) {
    if (p.dy_slots[k] < 0) continue;
    const Tensor& dy = dys[k];
    const int state = static_cast<int>(k) - p.signature.n_ys;
    const TensorDesc& like = state >= 0 ? desc(states_[state].to) : Access::desc(dy);
    const TensorSpec spec = state >= 0 ? TensorSpec(like) : element_spec(like);
    desc(p.dy_slots[k]) = make_desc(spec, like.device, dy.defined() ? value_in(Access::desc(dy)) : Value());
  }
  for (std::size_t i = 0; i < p.sum_slots.size(); ++i) {
    if (p.sum_slots[i] < 0) continue;
    const Tensor& capture = in_[1 + p.signature.capture(i)];
    desc(p.sum_slots[i]) = Access::desc(broadcast_like(number_like(-0.0, capture), capture));
  }
}

Tensors LoopBack::backward(const Tensors& dys) {
  check_stack(call_.what);
  const ObservedScope scope(call_.what, "the backward pass of ");
  Context& c = context();
  Scoped<bool> off(c.recording, false), eager(c.symbolic, false);
  const LoopProgram& p = *loop_;
  count_taken(FastPath::loop_backward);
  dx_.resize(p.signature.n_xs);
  backs_.resize(p.step_adjoints.size());
  std::vector<char> shares(p.signature.n_captures, 0);
  seed(dys);
  int now = 0;
  std::int64_t t = call_.steps - 1, begin = 0;
  try {
    for (; t >= 0; --t) {
      const StepAdjoint& adjoint = p.step_adjoints[now];
      if (!std::ranges::count(adjoint.has_dy, 1)) break;  // nothing depends on earlier steps
      if (call_.interval > 0 && (t == call_.steps - 1 || t % call_.interval == call_.interval - 1))
        begin = recompute_interval(t);
      load_residuals(t, begin);
      BoundAdjoint& back = backs_[now];
      if (!back.bound) bind_back(adjoint, back);
      for (int k = 0; k < p.signature.n_ys; ++k)
        if (adjoint.has_dy[k]) {
          TensorDesc& d = desc(p.dy_slots[k]);
          d.offset = Access::desc(dys[k]).offset + t * d.bytes();
        }
      row_ = index_of(t);
      execute(*back.schedule);
      store_dx(adjoint, back, t);
      carry(back.carried);
      for (std::size_t i = 0; i < shares.size(); ++i) shares[i] |= adjoint.din[p.signature.capture(i)] >= 0;
      now = adjoint.next;
    }
  } catch (const Error&) {
    fail_at(t, "the backward pass of ");
  }
  Tensors results;
  for (int i = 0; i < p.signature.n_xs; ++i) {
    if (!dx_[i]) {
      results.push_back(Tensor());
      continue;
    }
    for (std::int64_t k = 0; k <= t; ++k) zero_rows(i, index_of(k), index_of(k) + 1);
    const TensorDesc& x = Access::desc(in_[i + 1]);
    results.push_back(Access::wrap(make_desc(x, x.device, dx_[i])));
  }
  for (int i = 0; i < p.signature.n_carry; ++i) {
    const int k = p.signature.n_ys + i;
    results.push_back(p.step_adjoints[now].has_dy[k] ? carried_tensor(p.dy_slots[k]) : Tensor());
  }
  for (int i = 0; i < p.signature.n_captures; ++i)
    results.push_back(shares[i] ? detached(desc(p.sum_slots[i])) : Tensor());
  return results;
}

/// Runs the steps of the interval that ends with step t again and keeps their residuals (Note [Checkpoints]). Returns
/// the first of these steps.
std::int64_t LoopBack::recompute_interval(std::int64_t t) {
  count_taken(FastPath::recomputed_steps);
  std::int64_t begin = t / call_.interval * call_.interval;
  for (std::size_t i = 0; i < states_.size(); ++i) put(desc(states_[i].to), starts_[begin / call_.interval][i]);
  start_pass(Pass::keeping, t + 1 - begin);
  run_forward(begin, t + 1);
  return begin;
}

}  // namespace kassette::autograd

// autograd/program/call.cpp - the `call` node of control flow, its adjoint, and how residuals go from one to the other.
#include "autograd/program/call.h"

#include <algorithm>
#include <memory>

#include "autograd/tape/shadow.h"
#include "autograd/tape/backward.h"
#include "core/fast_paths.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"

namespace kassette::autograd {

/// The adjoint of another procedure: (in..., dy...) -> cotangents of its wanted inputs.
class VjpProcedure final : public Procedure {
 public:
  VjpProcedure(Ref<Extra> of, std::vector<int> wanted, std::vector<char> has_dy, int n_in)
      : of_(std::move(of)), wanted_(std::move(wanted)), has_dy_(std::move(has_dy)), n_in_(n_in) {}
  Tensors run(const Tensors& in) const override;
  /// The backward pass from the residuals of the procedure. `consume`: saved values may be released as they are used.
  Tensors run_with_residuals(const Tensors& in, Residuals residuals, bool consume) const;
  /// Runs recorded, and returns the residuals for adjoints of this adjoint that want these inputs. Null `residuals`:
  /// the procedure runs first.
  Residuals record(const Tensors& in, const std::vector<char>& wanted, const Residuals* residuals) const;
  void specs(const OpCall& call, TensorSpec* out) const override {
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      out[i].set(call.spec(wanted_[i]));
      call.out[i]->device = call.in[wanted_[i]].desc->device;
    }
  }
  int n_out() const override { return wanted_.size(); }
  bool differentiable(int i, Outputs) const override { return i >= n_in_ || of().differentiable(i, ~Outputs(0)); }
  const VjpProcedure* as_vjp() const override { return this; }
  VjpSignature signature() const { return {of_.get(), &wanted_, &has_dy_, n_in_}; }

 private:
  const Procedure& of() const { return static_cast<const Procedure&>(*of_); }
  Tensors own_inputs(const Tensors& in) const { return std::span(in.begin(), n_in_); }
  Residuals record_own(const Tensors& in, const std::vector<char>* also) const;
  Tensors run_backward(Residuals residuals, const Tensors& in, bool consume) const;
  Tensors run_saved_backward(const Residuals& residuals, const Tensors& in) const;

  Ref<Extra> of_;
  std::vector<int> wanted_;
  std::vector<char> has_dy_;  // per output of the procedure
  int n_in_;
};

namespace {

const Procedure& procedure(const Attrs& attrs) { return autograd::procedure(*attrs.extra); }

/// The op of an input of a recorded body: each input has a node of its own, even if one tensor is passed twice.
constinit const OpDef argument_op{.name = "argument", .rule = nullptr, .cpu = nullptr};

Tensor argument(const Tensor& t, bool recording) {
  const TensorDesc& from = Access::desc(t);
  if (recording && from.node) return identity(t);
  Tensor a = detached(from);
  Node* node = Node::make(&argument_op, 0, 1, 0);
  node->seq = ++context().clock;
  Access::desc(a).node = Ref<Node>::adopt(node);
  return a;
}

/// While alive, ops are recorded for a backward pass only (no plan is made of them), unless an outer tape was recording
/// already.
class BackwardScope {
 public:
  explicit BackwardScope(Context& c)
      : replays_(c.keeps_constants, c.keeps_constants && c.recording), on_(c.recording, true),
        eager_(c.symbolic, false) {}

 private:
  Scoped<bool> replays_, on_, eager_;
};

Residuals record(const Procedure& p, const Tensors& in, const std::vector<char>& wanted, const Residuals* from) {
  if (const VjpProcedure* v = p.as_vjp()) return v->record(in, wanted, from);
  Context& c = context();
  Residuals residuals;
  residuals.args.reserve(in.size());
  for (std::int64_t i = 0; i < in.size(); ++i)
    residuals.args.push_back(wanted[i] ? argument(in[i], c.recording) : in[i]);
  BackwardScope on(c);
  residuals.results = p.run(residuals.args);
  return residuals;
}

void call_rule(const OpCall& call, TensorSpec* out) { procedure(call.attrs).specs(call, out); }
void call_kernel(const OpCall& call) {
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Scoped<bool> eager(c.symbolic, false);
  Tensors in;
  in.reserve(call.n_in);
  for (int i = 0; i < call.n_in; ++i) in.push_back(detached(*call.in[i].desc));
  Tensors results = run_call(call.attrs, in);
  for (int i = 0; i < call.n_out; ++i) {
    const TensorDesc& r = Access::desc(results[i]);
    call.out[i]->set(r);
    put(*call.out[i], read_value(r));
  }
}

void call_gradient(const VjpContext& ctx) {
  Tensors in;
  std::vector<int> wanted;
  std::vector<char> has_dy;
  Outputs with_dy = 0;
  for (int k = 0; k < ctx.n_out(); ++k)
    if (ctx.dy(k).defined()) with_dy |= output_bit(k);
  for (int i = 0; i < ctx.n_in(); ++i) {
    in.push_back(ctx.in(i));
    if (ctx.wants(i) && ctx.spec(i).dtype.is_float() && procedure(ctx.attrs).differentiable(i, with_dy))
      wanted.push_back(i);
  }
  if (wanted.empty()) return;
  for (int k = 0; k < ctx.n_out(); ++k) {
    has_dy.push_back(ctx.dy(k).defined());
    if (ctx.dy(k).defined()) in.push_back(ctx.dy(k));
  }
  auto vjp = Ref<Extra>::adopt(new VjpProcedure(ctx.attrs.extra, wanted, has_dy, ctx.n_in()));
  Tensors g = apply_all(call_op, {ListAttrs{std::ssize(wanted)}, std::move(vjp)}, in);
  for (std::size_t k = 0; k < wanted.size(); ++k) ctx.din(wanted[k]) = g[k];
}

}  // namespace

/// Runs the procedure recorded; inputs that this adjoint wants, and those in `also`, have history.
Residuals VjpProcedure::record_own(const Tensors& in, const std::vector<char>* also) const {
  std::vector<char> wanted(n_in_, 0);
  for (int i : wanted_) wanted[i] = 1;
  for (std::size_t i = 0; also && i < wanted.size(); ++i) wanted[i] = wanted[i] || (*also)[i];
  return autograd::record(of(), own_inputs(in), wanted, nullptr);
}

Tensors VjpProcedure::run_backward(Residuals residuals, const Tensors& in, bool consume) const {
  Tensors ys, xs, seeds;
  std::int64_t next = n_in_;
  for (std::size_t k = 0; k < has_dy_.size(); ++k)
    if (has_dy_[k]) {
      ys.push_back(residuals.results[k]);
      seeds.push_back(in[next++]);
    }
  for (int i : wanted_) xs.push_back(residuals.args[i]);
  // While an outer tape records, a cotangent among the arguments has a history that leads to the other arguments. This
  // pass must stop there: the rest belongs to the outer tape.
  const Tensors ends = context().recording ? residuals.args : Tensors();
  residuals = Residuals();
  Tensors d = backward(ys, xs, seeds, consume ? SavedValues::free : SavedValues::retain, nullptr, ends);
  for (std::size_t k = 0; k < wanted_.size(); ++k) {
    Tensor& g = d[k];
    if (!g.defined()) g = zeros_of(in[wanted_[k]]);
  }
  return d;
}

/// The backward pass of a run that keeps what that reads.
Tensors VjpProcedure::run_saved_backward(const Residuals& residuals, const Tensors& in) const {
  Tensors dys, d;
  std::int64_t next = n_in_;
  for (char has : has_dy_) dys.push_back(has ? in[next++] : Tensor());
  Tensors found = residuals.run->backward(dys);
  for (int i : wanted_) {  // input 0 is the key
    const Tensor& g = found[i - 1];
    d.push_back(g.defined() ? g : zeros_of(in[i]));
  }
  if (__builtin_expect(shadow != nullptr, 0))
    shadow->after_loop("the backward pass of a loop", d,
                       [&] { return run_backward(record_own(in, nullptr), in, /*consume=*/false); });
  return d;
}

Tensors VjpProcedure::run(const Tensors& in) const {
  const bool recording = context().recording;
  Residuals residuals;
  if (!recording && of().run_for(own_inputs(in), signature(), residuals)) return run_saved_backward(residuals, in);
  return run_backward(record_own(in, nullptr), in, /*consume=*/!recording);
}

Tensors VjpProcedure::run_with_residuals(const Tensors& in, Residuals residuals, bool consume) const {
  if (residuals.run) return run_saved_backward(residuals, in);
  return run_backward(std::move(residuals), in, consume && !context().recording);
}

Residuals VjpProcedure::record(const Tensors& in, const std::vector<char>& wanted, const Residuals* taken) const {
  Context& c = context();
  Residuals of = taken ? *taken : record_own(in, &wanted), residuals;
  residuals.args = of.args;
  for (std::int64_t i = n_in_; i < in.size(); ++i)
    residuals.args.push_back(wanted[i] || Access::desc(in[i]).node ? argument(in[i], c.recording) : in[i]);
  BackwardScope on(c);
  residuals.results = run_backward(std::move(of), residuals.args, /*consume=*/false);
  return residuals;
}

Tensor residuals_value(Residuals residuals) {
  auto held = std::make_unique<Residuals>(std::move(residuals));
  TensorDesc b;
  b.set(TensorSpec(int64, {}));
  b.device = cpu;
  b.storage = Storage::borrow(held.get(), sizeof(Residuals),
                              {[](void* state) { delete static_cast<Residuals*>(state); }, held.get()});
  static_cast<void>(held.release());
  return Access::wrap(std::move(b));
}
Residuals& residuals_in(const Tensor& value) { return *static_cast<Residuals*>(Access::desc(value).storage->data); }

Tensors ResidualCall::run(const Tensors& in) const {
  const Procedure& p = procedure(*of);
  Residuals* taken = takes ? &residuals_in(in[in.size() - 1]) : nullptr;
  const Tensors own = std::span(in.begin(), in.size() - takes);
  if (taken) count_taken(FastPath::residuals_reused);
  if (!returns) return p.as_vjp()->run_with_residuals(own, last ? std::move(*taken) : *taken, consumes);
  Residuals residuals;
  if (!vjp || context().recording || !p.run_for(own, procedure(*vjp).as_vjp()->signature(), residuals))
    residuals = record(p, own, wanted, taken);
  Tensors results = residuals.run ? std::exchange(residuals.results, Tensors()) : residuals.results;
  results.push_back(residuals_value(std::move(residuals)));
  return results;
}

void ResidualCall::specs(const OpCall& call, TensorSpec* out) const {
  procedure(*of).specs(call, out);
  if (returns) out[call.n_out - 1].set(TensorSpec(int64, {}));
}

VjpSignature vjp_signature(const Attrs& attrs) {
  const VjpProcedure* v = procedure(attrs).as_vjp();
  return v ? v->signature() : VjpSignature{};
}

constinit const OpDef call_op{.name = "call",
                              .rule = call_rule,
                              .cpu = call_kernel,
                              .vjp = call_gradient,
                              .saves_in = ~0u,
                              .host = 1,
                              .traits = kView,
                              .n_out = 0,
                              .anywhere = true,
                              .outputs = outputs_in<ListAttrs>,
                              .cuda = call_kernel};

Tensors call_now(Ref<Extra> procedure, const Tensors& in) {
  const ListAttrs attrs{autograd::procedure(*procedure).n_out()};
  return apply_all(call_op, {attrs, std::move(procedure)}, in);
}

Tensors call_node(Ref<Extra> procedure, const Tensors& in) {
  Scoped<bool> on(context().symbolic, true);
  return call_now(std::move(procedure), in);
}

}  // namespace kassette::autograd

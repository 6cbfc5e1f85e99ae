// autograd/control.cpp - control flow on the tape: tracing bodies, the call node and its adjoint, loops and branches.
#include "autograd/control.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/update.h"
#include "autograd/walk.h"
#include "core/convert.h"
#include "core/text.h"
#include "ops/expr.h"
#include "ops/operand.h"
#include "ops/random.h"

namespace kassette {
namespace {

const Procedure& procedure(const Attrs& attrs) { return static_cast<const Procedure&>(*attrs.extra); }

/// The value of an input of a node as a tensor without history.
Tensor detached(const Body& from) {
  Value v = read_value(from);
  Body b;
  b.set(from);
  b.device = from.device;
  b.storage = std::move(v.storage);
  b.offset = v.offset;
  return Access::wrap(std::move(b));
}

void call_rule(const Call& call, Spec* out) { procedure(call.attrs).specs(call, out); }

void call_kernel(const Call& call) {
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Scoped<bool> eager(c.symbolic, false);
  Tensors in;
  in.reserve(call.n_in);
  for (int i = 0; i < call.n_in; ++i) in.push_back(detached(*call.in[i].body));
  Tensors results = procedure(call.attrs).run(in);
  for (int i = 0; i < call.n_out; ++i) {
    const Body& r = Access::body(results[i]);
    Value v = read_value(r);
    call.out[i]->set(r);
    call.out[i]->storage = std::move(v.storage);
    call.out[i]->offset = v.offset;
  }
}

/// (in..., dy...) -> cotangents of the wanted inputs of another procedure, which it runs again, recorded.
class Vjp final : public Procedure {
 public:
  Vjp(Ref<Extra> of, std::vector<int> wanted, std::vector<char> has_dy, int n_in)
      : of_(std::move(of)), wanted_(std::move(wanted)), has_dy_(std::move(has_dy)), n_in_(n_in) {}
  Tensors run(const Tensors& in) const override;
  void specs(const Call& call, Spec* out) const override {
    for (std::size_t i = 0; i < wanted_.size(); ++i) out[i].set(call.spec(wanted_[i]));
  }
  int n_out() const override { return static_cast<int>(wanted_.size()); }
  bool reaches(int i) const override { return i >= n_in_ || static_cast<const Procedure&>(*of_).reaches(i); }

 private:
  Ref<Extra> of_;
  std::vector<int> wanted_;
  std::vector<char> has_dy_;   // per output of the procedure
  int n_in_;
};

/// An input of a body that is run recorded: a node of its own even where one tensor is passed twice.
constinit const OpDef argument_row{.name = "argument", .rule = nullptr, .cpu = nullptr};

Tensor argument(const Tensor& t, bool recording) {
  const Body& from = Access::body(t);
  if (recording && from.node) return identity(t);
  Tensor a = detached(from);
  Node* node = Node::make(&argument_row, 0, 1, 0);
  node->seq = ++context().clock;
  Access::body(a).node = Ref<Node>::adopt(node);
  return a;
}

Tensors Vjp::run(const Tensors& in) const {
  Context& c = context();
  bool recording = c.recording;
  Tensors args, xs;
  args.reserve(n_in_);
  for (int i = 0; i < n_in_; ++i) {
    bool wanted = std::find(wanted_.begin(), wanted_.end(), i) != wanted_.end();
    args.push_back(wanted ? argument(in[i], recording) : in[i]);
    if (wanted) xs.push_back(args[i]);
  }
  Tensors all;
  {
    Scoped<bool> on(c.recording, true);
    all = static_cast<const Procedure&>(*of_).run(args);
  }
  Tensors ys, seeds;
  std::int64_t next = n_in_;
  for (std::size_t k = 0; k < has_dy_.size(); ++k)
    if (has_dy_[k]) {
      ys.push_back(all[static_cast<std::int64_t>(k)]);
      seeds.push_back(in[next++]);
    }
  all.clear();
  Tensors d = walk(ys, xs, seeds);
  for (std::size_t k = 0; k < wanted_.size(); ++k) {
    Tensor& g = d[static_cast<std::int64_t>(k)];
    if (!g.defined()) g = zeros_of(in[wanted_[k]]);
  }
  return d;
}

void call_gradient(const Rewind& r) {
  Tensors in;
  std::vector<int> wanted;
  std::vector<char> has_dy;
  for (int i = 0; i < r.n_in(); ++i) {
    in.push_back(r.in(i));
    if (r.wants(i) && r.spec(i).dtype.is_float() && procedure(r.attrs).reaches(i)) wanted.push_back(i);
  }
  if (wanted.empty()) return;
  for (int k = 0; k < r.n_out(); ++k) {
    has_dy.push_back(r.dy(k).defined());
    if (r.dy(k).defined()) in.push_back(r.dy(k));
  }
  Attrs attrs;
  attrs.a = static_cast<std::int64_t>(wanted.size());
  attrs.extra = Ref<Extra>::adopt(new Vjp(r.attrs.extra, wanted, has_dy, r.n_in()));
  Tensors g = apply_all(call_row, attrs, in);
  for (std::size_t k = 0; k < wanted.size(); ++k) r.din(wanted[k]) = g[static_cast<std::int64_t>(k)];
}

// ---- tracing -----------------------------------------------------------------------------------------------------------

// Note [Levels]
// A tensor's level is the depth of the body whose placeholders or draws it depends on. While a body is traced, what is of
// a lower level is a capture: found without a search, computed once outside of the loop, differentiated like any input.

Traced trace(const char* what, const std::vector<Spec>& args, Device device, const Callable<Tensors(const Tensors&)>& f) {
  Context& c = context();
  if (c.depth == 255) fail<ValueError>(what, ": control flow nested deeper than 255");
  Scoped<bool> on(c.symbolic, true);
  Scoped<std::uint8_t> deeper(c.depth, static_cast<std::uint8_t>(c.depth + 1));
  Tensors placeholders;
  for (const Spec& s : args) {
    Tensor p = make_leaf(Leaf::placeholder, s, device, {}, Name());
    Body& b = Access::body(p);
    b.level = c.depth;
    b.node->cell->in_body = true;
    placeholders.push_back(p);
  }
  Tensors out = f(placeholders);
  Traced traced;
  traced.n_args = static_cast<int>(args.size());
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<const Node*, int>> captured;
  std::vector<const Node*> stack;
  auto look = [&](const Body& b) {
    const Node* n = b.node.get();
    if (!n) return;
    if (b.level >= c.depth) {
      if (seen.insert(n).second) stack.push_back(n);
      return;
    }
    if ((b.flags & kLeaf) && n->cell->kind == Leaf::source) return;
    std::pair<const Node*, int> key{n, b.out};
    if (std::find(captured.begin(), captured.end(), key) != captured.end()) return;
    captured.push_back(key);
    traced.captures.push_back(Access::wrap(b));
  };
  for (const Tensor& t : out) {
    if (!t.defined()) fail<ValueError>(what, ": the function returned an empty Tensor");
    look(Access::body(t));
  }
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (n->op == &backward_row) continue;   // expanded by the plan
    for (const Body *b = n->in(), *end = b + n->n_in; b != end; ++b) look(*b);
  }
  Plan::Request request;
  request.inputs = placeholders;
  for (const Tensor& t : traced.captures) request.inputs.push_back(t);
  request.outputs = out;
  request.what = what;
  request.body = true;
  traced.plan = Plan::build(request);
  return traced;
}

Tensors run_body(const Plan& plan, const Tensors& args, const Tensors& keys) {
  bool tracked = false;
  if (context().recording)
    for (const Tensor& t : args) tracked = tracked || Access::body(t).node;
  auto n = static_cast<int>(args.size());
  return tracked ? plan.connect(args.begin(), n, &keys) : plan.run(args.begin(), n, &keys);
}

Tensors step_keys(const Tensor& key, std::int64_t step, int first, int n) {
  Tensors keys;
  if (n == 0) return keys;
  Value v = read_value(Access::body(key));
  for (int i = 0; i < n; ++i) {
    Tensor k = empty_tensor(Spec(int64, {2}));
    derive_key(static_cast<const std::byte*>(v.storage->data) + v.offset, static_cast<std::uint64_t>(step),
               static_cast<std::uint64_t>(first + i), Access::body(k).data());
    keys.push_back(k);
  }
  return keys;
}

/// The key input of a node: drawn where its bodies draw, else a dummy.
Tensor key_input(bool needed, const char* what) {
  if (needed) {
    Scoped<bool> on(context().symbolic, true);
    return next_key(None, what);
  }
  return scalar_tensor(Scalar(0), int64, what);
}

void check_state(const char* what, const Spec& before, const Spec& after, std::int64_t i) {
  bool ok = before.rank < 0 || after.rank < 0 || before.rank == after.rank;
  for (int k = 0; ok && before.rank >= 0 && k < before.rank && k < after.rank; ++k)
    ok = before.dims[k] < 0 || after.dims[k] < 0 || before.dims[k] == after.dims[k];
  if (!ok)
    fail<ValueError>(what, ": the step returned state ", i, " of shape ", after, ", it was ", before, "; shapes must stay");
  if (before.dtype != after.dtype)
    fail<TypeError>(what, ": the step returned state ", i, " as ", after.dtype, ", it was ", before.dtype);
}

// ---- loops -------------------------------------------------------------------------------------------------------------

/// Inputs: key, xs, states, captures.
class Scan final : public Procedure {
 public:
  Scan(const ScanRequest& request, Traced body)
      : what_(request.what), body_(std::move(body.plan)), nx_(static_cast<int>(request.xs.size())),
        ns_(static_cast<int>(request.states.size())), ny_(request.n_outputs), reverse_(request.reverse) {}
  Tensors run(const Tensors& in) const override;
  void specs(const Call& call, Spec* out) const override;
  int n_out() const override { return ny_ + ns_; }
  bool reaches(int i) const override { return i > 0 && (i <= nx_ + ns_ || body_->reaches(i - 1)); }

 private:
  const char* what_;
  Ref<Plan> body_;
  int nx_, ns_, ny_;
  bool reverse_;
};

std::int64_t length_of(const char* what, const Tensors& xs) {
  std::int64_t n = kUnknown;
  for (const Tensor& x : xs) {
    const Body& b = Access::body(x);
    if (b.rank == 0) fail<ValueError>(what, ": elements are a scalar; they need an axis to go along");
    std::int64_t d = b.rank < 0 ? kUnknown : b.dims[0];
    if (n >= 0 && d >= 0 && n != d) fail<ValueError>(what, ": elements of length ", n, " and ", d);
    if (d >= 0) n = d;
  }
  return n;
}

Tensors Scan::run(const Tensors& in) const {
  Tensors xs;
  for (int i = 0; i < nx_; ++i) xs.push_back(in[1 + i]);
  std::int64_t steps = length_of(what_, xs);
  std::vector<Tensors> slices, ys(static_cast<std::size_t>(ny_));
  for (const Tensor& x : xs) slices.push_back(unstack(x, static_cast<int>(steps), 0));
  Tensors states;
  for (int i = 0; i < ns_; ++i) states.push_back(in[1 + nx_ + i]);
  for (std::int64_t t = 0; t < steps; ++t) {
    std::int64_t at = reverse_ ? steps - 1 - t : t;
    Tensors args;
    args.reserve(in.size());
    for (const Tensors& s : slices) args.push_back(s[at]);
    for (const Tensor& s : states) args.push_back(s);
    for (std::int64_t i = 1 + nx_ + ns_; i < in.size(); ++i) args.push_back(in[i]);
    Tensors out = run_body(*body_, args, step_keys(in[0], t, 0, body_->n_sources()));
    for (int i = 0; i < ny_; ++i) ys[static_cast<std::size_t>(i)].push_back(out[i]);
    for (int i = 0; i < ns_; ++i) {
      const Tensor& next = out[ny_ + i];
      check_state(what_, Access::body(states[i]), Access::body(next), i);
      states[i] = next;
    }
  }
  Tensors results;
  for (int i = 0; i < ny_; ++i) {
    if (steps == 0) {
      const Spec& s = body_->output_spec(i);
      Spec none;
      none.rank = static_cast<std::int8_t>(s.rank + 1);
      none.dtype = s.dtype;
      none.dims[0] = 0;
      for (int k = 0; k < s.rank; ++k) none.dims[k + 1] = s.dims[k] < 0 ? 0 : s.dims[k];
      results.push_back(empty_tensor(none));
    } else {
      results.push_back(stack(ys[static_cast<std::size_t>(i)], 0));
    }
  }
  for (const Tensor& s : states) results.push_back(s);
  return results;
}

void Scan::specs(const Call& call, Spec* out) const {
  std::int64_t steps = kUnknown;
  for (int i = 0; i < nx_; ++i)
    if (call.spec(1 + i).rank > 0 && call.spec(1 + i).dims[0] >= 0) steps = call.spec(1 + i).dims[0];
  for (int i = 0; i < ny_; ++i) {
    const Spec& s = body_->output_spec(i);
    out[i].dtype = s.dtype;
    out[i].rank = static_cast<std::int8_t>(s.rank < 0 ? -1 : s.rank + 1);
    out[i].dims[0] = steps;
    for (int k = 0; k < s.rank; ++k) out[i].dims[k + 1] = s.dims[k];
  }
  for (int i = 0; i < ns_; ++i) out[ny_ + i].set(call.spec(1 + nx_ + i));
}

Tensors eager_scan(const ScanRequest& r, const ScanFn& step, std::int64_t steps) {
  std::vector<Tensors> slices, ys(static_cast<std::size_t>(r.n_outputs));
  for (const Tensor& x : r.xs) slices.push_back(unstack(x, static_cast<int>(steps), 0));
  Tensors states = r.states;
  for (std::int64_t t = 0; t < steps; ++t) {
    std::int64_t at = r.reverse ? steps - 1 - t : t;
    Tensors xs;
    for (const Tensors& s : slices) xs.push_back(s[at]);
    Tensors out = step(xs, states);
    for (int i = 0; i < r.n_outputs; ++i) ys[static_cast<std::size_t>(i)].push_back(out[i]);
    for (std::int64_t i = 0; i < states.size(); ++i) {
      if (!out[r.n_outputs + i].defined()) fail<ValueError>(r.what, ": the function returned an empty Tensor");
      check_state(r.what, Access::body(states[i]), Access::body(out[r.n_outputs + i]), i);
      states[i] = out[r.n_outputs + i];
    }
  }
  Tensors results;
  for (const Tensors& y : ys) {
    if (y.empty()) fail<ValueError>(r.what, ": no elements, and so no output to know the shape of");
    results.push_back(stack(y, 0));
  }
  for (const Tensor& s : states) results.push_back(s);
  return results;
}

// ---- branches ----------------------------------------------------------------------------------------------------------

/// Inputs: key, condition, captures of yes, captures of no.
class Branches final : public Procedure {
 public:
  Branches(Traced yes, Traced no, Spec result)
      : yes_(std::move(yes.plan)), no_(std::move(no.plan)), n_yes_(static_cast<int>(yes.captures.size())), result_(result) {}
  Tensors run(const Tensors& in) const override {
    bool taken;
    in[1].item(&taken, bool_);
    const Plan& plan = taken ? *yes_ : *no_;
    Tensors args;
    std::int64_t begin = taken ? 2 : 2 + n_yes_, end = taken ? 2 + n_yes_ : in.size();
    for (std::int64_t i = begin; i < end; ++i) args.push_back(in[i]);
    return run_body(plan, args, step_keys(in[0], 0, taken ? 0 : yes_->n_sources(), plan.n_sources()));
  }
  void specs(const Call&, Spec* out) const override { out->set(result_); }
  int n_out() const override { return 1; }
  bool reaches(int i) const override {
    return i >= 2 && (i < 2 + n_yes_ ? yes_->reaches(i - 2) : no_->reaches(i - 2 - n_yes_));
  }

 private:
  Ref<Plan> yes_, no_;
  int n_yes_;
  Spec result_;
};

/// What both branches agree on.
Spec merge(const char* what, const Spec& yes, const Spec& no) {
  if (yes.dtype != no.dtype) fail<TypeError>(what, ": one branch is ", yes.dtype, ", the other ", no.dtype);
  Spec s;
  s.set(yes);
  if (yes.rank < 0 || no.rank < 0) {
    if (yes.rank < 0) s.set(no);
    return s;
  }
  bool ok = yes.rank == no.rank;
  for (int i = 0; ok && i < yes.rank; ++i) {
    ok = yes.dims[i] < 0 || no.dims[i] < 0 || yes.dims[i] == no.dims[i];
    if (s.dims[i] < 0) s.dims[i] = no.dims[i];
  }
  if (!ok) fail<ValueError>(what, ": the branches have shapes ", yes, " and ", no, "; they must be equal");
  return s;
}

}  // namespace

constinit const OpDef call_row{.name = "call",
                               .rule = call_rule,
                               .cpu = call_kernel,
                               .vjp = call_gradient,
                               .saves_in = ~0u,
                               .host = 1,
                               .traits = kView,
                               .n_out = 0,
                               .cuda = call_kernel};

Tensors scan(const ScanRequest& r, const ScanFn& step) {
  bool symbolic = context().symbolic;
  for (const Tensors* list : {&r.xs, &r.states})
    for (const Tensor& t : *list) {
      if (!t.defined()) fail<ValueError>(r.what, ": an empty Tensor (an uninitialised variable?)");
      symbolic = symbolic || t.symbolic();
    }
  std::int64_t steps = length_of(r.what, r.xs);
  if (!symbolic) return eager_scan(r, step, steps);
  std::vector<Spec> args;
  Device device = cpu;
  for (const Tensor& x : r.xs) {
    const Body& b = Access::body(x);
    if (b.rank < 0) fail<ValueError>(r.what, ": the rank of the elements is unknown; declare it in the placeholder");
    Spec s;
    s.dtype = b.dtype;
    s.rank = static_cast<std::int8_t>(b.rank - 1);
    for (int k = 0; k < s.rank; ++k) s.dims[k] = b.dims[k + 1];
    args.push_back(s);
    device = b.device;
  }
  for (const Tensor& t : r.states) {
    Spec s;
    s.set(Access::body(t));
    args.push_back(s);
  }
  std::int64_t nx = r.xs.size();
  Traced body = trace(r.what, args, device, [&](const Tensors& a) {
    Tensors xs, states;
    for (std::int64_t i = 0; i < a.size(); ++i) (i < nx ? xs : states).push_back(a[i]);
    Tensors out = step(xs, states);
    for (std::int64_t i = 0; i < states.size(); ++i)
      if (out[r.n_outputs + i].defined())
        check_state(r.what, Access::body(states[i]), Access::body(out[r.n_outputs + i]), i);
    return out;
  });
  Tensors in(key_input(body.plan->n_sources() > 0, r.what));
  for (const Tensors* list : {&r.xs, &r.states})
    for (const Tensor& t : *list) in.push_back(t);
  for (const Tensor& t : body.captures) in.push_back(t);
  Attrs attrs;
  attrs.extra = Ref<Extra>::adopt(new Scan(r, std::move(body)));
  attrs.a = procedure(attrs).n_out();
  Scoped<bool> on(context().symbolic, true);
  return apply_all(call_row, attrs, in);
}

Tensor branch(const char* what, const Tensor& condition, const Callable<Tensor()>& yes, const Callable<Tensor()>& no) {
  auto as_list = [](const Callable<Tensor()>& f) { return [&f](const Tensors&) { return Tensors(f()); }; };
  Traced a = trace(what, {}, cpu, as_list(yes)), b = trace(what, {}, cpu, as_list(no));
  Spec result = merge(what, a.plan->output_spec(0), b.plan->output_spec(0));
  Tensors in(key_input(a.plan->n_sources() + b.plan->n_sources() > 0, what));
  in.push_back(condition);
  for (const Tensor& t : a.captures) in.push_back(t);
  for (const Tensor& t : b.captures) in.push_back(t);
  Attrs attrs;
  attrs.a = 1;
  attrs.extra = Ref<Extra>::adopt(new Branches(std::move(a), std::move(b), result));
  Scoped<bool> on(context().symbolic, true);
  return apply_all(call_row, attrs, in)[0];
}

}  // namespace kassette

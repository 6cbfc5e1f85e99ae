// autograd/call.cpp - the `call` node of control flow, its adjoint, and how a tape goes from one to the other.
#include <algorithm>

#include "autograd/control.h"
#include "autograd/loop_run.h"
#include "autograd/walk.h"
#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {

/// (in..., dy...) -> cotangents of the wanted inputs of another procedure, whose tape it walks.
class Rewinder final : public Procedure {
 public:
  Rewinder(Ref<Extra> of, std::vector<int> wanted, std::vector<char> has_dy, int n_in)
      : of_(std::move(of)), wanted_(std::move(wanted)), has_dy_(std::move(has_dy)), n_in_(n_in) {}
  Tensors run(const Tensors& in) const override { return rewind(in, {}); }
  Tensors rewind(const Tensors& in, const HandOver& h) const;
  Tape record(const Tensors& in, const std::vector<char>& wanted, const HandOver& h) const;
  void specs(const Call& call, Spec* out) const override {
    for (std::size_t i = 0; i < wanted_.size(); ++i) out[i].set(call.spec(wanted_[i]));
  }
  int n_out() const override { return static_cast<int>(wanted_.size()); }
  bool reaches(int i) const override { return i >= n_in_ || of().reaches(i); }
  const Rewinder* as_rewinder() const override { return this; }
  Rewound rewound() const { return {of_.get(), &wanted_, &has_dy_, n_in_}; }

 private:
  const Procedure& of() const { return static_cast<const Procedure&>(*of_); }
  Tape tape_of(const Tensors& in, const std::vector<char>* also, const HandOver& h) const;
  Tensors walk_back(Tape tape, const Tensors& in, bool consume) const;
  Tensors go_back(Tape tape, const Tensors& in) const;

  Ref<Extra> of_;
  std::vector<int> wanted_;
  std::vector<char> has_dy_;   // per output of the procedure
  int n_in_;
};

namespace {

const Procedure& procedure(const Attrs& attrs) { return static_cast<const Procedure&>(*attrs.extra); }

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

/// Recording for a walk alone, unless an outer tape records already.
class ForWalk {
 public:
  explicit ForWalk(Context& c) : replays_(c.replays, c.replays && c.recording), on_(c.recording, true), eager_(c.symbolic, false) {}

 private:
  Scoped<bool> replays_, on_, eager_;
};

Tape record(const Procedure& p, const Tensors& in, const std::vector<char>& wanted, const HandOver& h) {
  if (const Rewinder* v = p.as_rewinder()) return v->record(in, wanted, h);
  Context& c = context();
  Tape tape;
  tape.args.reserve(in.size());
  for (std::int64_t i = 0; i < in.size(); ++i)
    tape.args.push_back(wanted[static_cast<std::size_t>(i)] ? argument(in[i], c.recording) : in[i]);
  ForWalk on(c);
  tape.results = p.run(tape.args);
  return tape;
}

void call_rule(const Call& call, Spec* out) { procedure(call.attrs).specs(call, out); }

void call_kernel(const Call& call) { run_call(call, HandOver()); }

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
  attrs.extra = Ref<Extra>::adopt(new Rewinder(r.attrs.extra, wanted, has_dy, r.n_in()));
  Tensors g = apply_all(call_row, attrs, in);
  for (std::size_t k = 0; k < wanted.size(); ++k) r.din(wanted[k]) = g[static_cast<std::int64_t>(k)];
}

}  // namespace

/// The tape of what this one rewinds: handed over, or made now with what this step and the takers of its own tape want.
Tape Rewinder::tape_of(const Tensors& in, const std::vector<char>* also, const HandOver& h) const {
  if (h.of && !h.of->empty()) return h.last ? std::move(*h.of) : *h.of;
  std::vector<char> wanted(static_cast<std::size_t>(n_in_), 0);
  for (int i : wanted_) wanted[static_cast<std::size_t>(i)] = 1;
  for (const std::vector<char>* more : {also, h.of ? h.of_wanted : nullptr})
    for (std::size_t i = 0; more && i < wanted.size(); ++i) wanted[i] = wanted[i] || (*more)[i];
  Tensors args;
  args.reserve(n_in_);
  for (int i = 0; i < n_in_; ++i) args.push_back(in[i]);
  Tape tape = kassette::record(of(), args, wanted, {});
  if (h.of && !h.last) *h.of = tape;
  return tape;
}

Tensors Rewinder::walk_back(Tape tape, const Tensors& in, bool consume) const {
  Tensors ys, xs, seeds;
  std::int64_t next = n_in_;
  for (std::size_t k = 0; k < has_dy_.size(); ++k)
    if (has_dy_[k]) {
      ys.push_back(tape.results[static_cast<std::int64_t>(k)]);
      seeds.push_back(in[next++]);
    }
  for (int i : wanted_) xs.push_back(tape.args[i]);
  tape.clear();
  Tensors d = walk(ys, xs, seeds, consume ? Kept::nothing : Kept::everything);
  for (std::size_t k = 0; k < wanted_.size(); ++k) {
    Tensor& g = d[static_cast<std::int64_t>(k)];
    if (!g.defined()) g = zeros_of(in[wanted_[k]]);
  }
  return d;
}

/// The same where a compiled loop ran.
Tensors Rewinder::go_back(Tape tape, const Tensors& in) const {
  Tensors dys, d;
  std::int64_t next = n_in_;
  for (char has : has_dy_) dys.push_back(has ? in[next++] : Tensor());
  Tensors found = static_cast<LoopRun&>(*tape.loop).backward(dys);
  for (int i : wanted_) {   // input 0 is the key
    const Tensor& g = found[i - 1];
    d.push_back(g.defined() ? g : zeros_of(in[i]));
  }
  return d;
}

Tensors Rewinder::rewind(const Tensors& in, const HandOver& h) const {
  if (h.of && h.of->loop) return go_back(std::move(*h.of), in);
  if (!context().recording && (!h.of || (h.of->empty() && h.last))) {
    Tensors args;
    args.reserve(n_in_);
    for (int i = 0; i < n_in_; ++i) args.push_back(in[i]);
    Tape tape;
    if (of().run_for(args, rewound(), tape)) return go_back(std::move(tape), in);
  }
  return walk_back(tape_of(in, nullptr, h), in, /*consume=*/h.consume && !context().recording);
}

Tape Rewinder::record(const Tensors& in, const std::vector<char>& wanted, const HandOver& h) const {
  Context& c = context();
  Tape of = tape_of(in, &wanted, h), tape;
  tape.args = of.args;
  for (std::int64_t i = n_in_; i < in.size(); ++i)
    tape.args.push_back(wanted[static_cast<std::size_t>(i)] ? argument(in[i], c.recording) : in[i]);
  ForWalk on(c);
  tape.results = walk_back(std::move(of), tape.args, /*consume=*/false);
  return tape;
}

Tensor detached(const Body& from) {
  Value v = read_value(from);
  Body b;
  b.set(from);
  b.device = from.device;
  b.storage = std::move(v.storage);
  b.offset = v.offset;
  return Access::wrap(std::move(b));
}

Tensors run_call(const Attrs& attrs, const Tensors& in, const HandOver& h) {
  const Procedure& p = procedure(attrs);
  if (h.own) {
    if (h.taker && !context().recording && p.run_for(in, rewound_by(*h.taker), *h.own)) return std::exchange(h.own->results, Tensors());
    *h.own = record(p, in, *h.own_wanted, h);
    return h.own->results;
  }
  const Rewinder* v = p.as_rewinder();
  return v ? v->rewind(in, h) : p.run(in);
}

void run_call(const Call& call, const HandOver& h) {
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Scoped<bool> eager(c.symbolic, false);
  Tensors in;
  in.reserve(call.n_in);
  for (int i = 0; i < call.n_in; ++i) in.push_back(detached(*call.in[i].body));
  Tensors results = run_call(call.attrs, in, h);
  for (int i = 0; i < call.n_out; ++i) {
    const Body& r = Access::body(results[i]);
    Value v = read_value(r);
    call.out[i]->set(r);
    call.out[i]->storage = std::move(v.storage);
    call.out[i]->offset = v.offset;
  }
}

Rewound rewound_by(const Attrs& attrs) {
  const Rewinder* v = procedure(attrs).as_rewinder();
  return v ? v->rewound() : Rewound{};
}

constinit const OpDef call_row{.name = "call",
                               .rule = call_rule,
                               .cpu = call_kernel,
                               .vjp = call_gradient,
                               .saves_in = ~0u,
                               .host = 1,
                               .traits = kView,
                               .n_out = 0,
                               .cuda = call_kernel};

Tensors call_now(Ref<Extra> procedure, const Tensors& in) {
  Attrs attrs;
  attrs.a = static_cast<const Procedure&>(*procedure).n_out();
  attrs.extra = std::move(procedure);
  return apply_all(call_row, attrs, in);
}

Tensors call_node(Ref<Extra> procedure, const Tensors& in) {
  Scoped<bool> on(context().symbolic, true);
  return call_now(std::move(procedure), in);
}

}  // namespace kassette

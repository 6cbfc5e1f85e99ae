// autograd/loop_program.cpp - from the plan of a body to the steps of a loop and of its way back. See Note [Loops].
#include "autograd/loop_program.h"

#include <algorithm>

#include "autograd/control.h"
#include "autograd/walk.h"
#include "core/text.h"
#include "ops/operand.h"

namespace kassette {
namespace {

constexpr int kMaxVariants = 8;

/// A tensor that stands for what a step is given.
Tensor stand_in(const Spec& spec, Device device) {
  Tensor t = make_leaf(Leaf::placeholder, spec, device, {}, Name());
  Access::body(t).level = context().depth;
  Access::body(t).node->cell->in_body = true;
  return t;
}

Tensors stand_ins(const std::vector<Body>& like) {
  Tensors list;
  for (const Body& b : like) {
    Spec s;
    s.set(b);
    list.push_back(stand_in(s, b.device));
  }
  return list;
}

/// Recording of a body's adjoint, whatever goes on around it.
class Symbolic {
 public:
  explicit Symbolic(Context& c)
      : symbolic_(c.symbolic, true), recording_(c.recording, true), replays_(c.replays, true),
        depth_(c.depth, std::uint8_t(1)), floor_(c.floor, std::uint8_t(0)), after_(c.after, static_cast<const AfterUpdates*>(nullptr)) {}

 private:
  Scoped<bool> symbolic_, recording_, replays_;
  Scoped<std::uint8_t> depth_, floor_;
  Scoped<const AfterUpdates*> after_;
};

}  // namespace

Ref<LoopProgram> LoopProgram::of_body(const Plan& body, const LoopArity& arity) {
  auto p = Ref<LoopProgram>::adopt(new LoopProgram(Ref<Plan>(const_cast<Plan*>(&body)), arity));
  for (const Step& s : body.program().steps)
    if (s.source) p->keys.push_back(s.out);
  p->sources = body.sources();
  for (const Feed& f : body.program().feeds) p->args.push_back(f.slot);
  p->outs = body.program().outputs;
  p->find_makers();
  p->find_forward();
  p->find_varying();
  return p;
}

Ref<LoopProgram> LoopProgram::with_adjoint(const Plan& body, const LoopArity& arity, const std::vector<Body>& args,
                                           const std::vector<char>& wanted, const std::vector<char>& has_dy, std::int64_t steps) {
  Symbolic on(context());
  Tensors keys;
  for (std::size_t i = 0; i < body.sources().size(); ++i) keys.push_back(stand_in(Spec(int64, {2}), cpu));
  Tensors in = stand_ins(args), outs;
  try {
    outs = body.connect(in.begin(), static_cast<int>(in.size()), &keys);
  } catch (const Error&) {   // shapes that do not fit: the first step would say so
    rethrow_edited([&](const char* message) { return text(message, " (step 1 of ", steps, " of ", body.program().what, ")"); });
  }
  int states = arity.nx, captures = arity.nx + arity.ns;
  // What the walk goes to: wanted elements and captures, and every state, for its cotangent goes on.
  std::vector<int> to;
  Tensors xs, sums;
  for (int i = 0; i < captures + arity.nc; ++i) {
    bool state = i >= states && i < captures;
    if (!args[static_cast<std::size_t>(i)].dtype.is_float() || (!state && !wanted[static_cast<std::size_t>(i)])) continue;
    to.push_back(i);
    xs.push_back(in[i]);
    if (i >= captures) sums.push_back(stand_in(args[static_cast<std::size_t>(i)], args[static_cast<std::size_t>(i)].device));
  }
  std::vector<Tensor> dys(has_dy.size());
  std::vector<Variant> variants;
  Plan::Request request;
  request.outputs = outs;
  std::vector<char> now = has_dy;
  for (;;) {
    Variant v;
    v.has_dy = now;
    Tensors ys, seeds;
    std::int64_t next_sum = 0;
    for (std::size_t k = 0; k < to.size(); ++k)   // first, so that a step's shares are added to what is there already
      if (to[k] >= captures) {
        ys.push_back(xs[static_cast<std::int64_t>(k)]);
        seeds.push_back(sums[next_sum++]);
      }
    for (std::size_t k = 0; k < now.size(); ++k) {
      if (!now[k]) continue;
      const Body& out = Access::body(outs[static_cast<std::int64_t>(k)]);
      if (!dys[k].defined()) dys[k] = stand_in(out, out.device);
      ys.push_back(outs[static_cast<std::int64_t>(k)]);
      seeds.push_back(dys[k]);
    }
    Tensors d = walk(ys, xs, seeds);
    v.dx.assign(static_cast<std::size_t>(arity.nx), -1);
    v.dstate.assign(static_cast<std::size_t>(arity.ns), -1);
    v.dcapture.assign(static_cast<std::size_t>(arity.nc), -1);
    std::fill(now.begin() + arity.ny, now.end(), 0);
    next_sum = 0;
    for (std::size_t k = 0; k < to.size(); ++k) {
      auto i = static_cast<std::size_t>(to[k]);
      const Tensor& g = d[static_cast<std::int64_t>(k)];
      auto at = static_cast<int>(request.outputs.size());   // an index for now, the slot is found below
      if (to[k] >= captures) {
        if (Access::impl(g) == Access::impl(sums[next_sum++])) continue;   // this step has no share
        v.dcapture[i - static_cast<std::size_t>(captures)] = at;
      } else if (!g.defined()) {
        continue;
      } else if (to[k] >= states) {
        v.dstate[i - static_cast<std::size_t>(states)] = at;
        now[i - static_cast<std::size_t>(states) + static_cast<std::size_t>(arity.ny)] = 1;
      } else {
        v.dx[i] = at;
      }
      request.outputs.push_back(g);
    }
    variants.push_back(std::move(v));
    auto same = std::find_if(variants.begin(), variants.end(), [&](const Variant& w) { return w.has_dy == now; });
    variants.back().next = static_cast<int>(same - variants.begin());
    if (same != variants.end()) break;
    if (static_cast<int>(variants.size()) == kMaxVariants) return {};
  }
  request.inputs = keys;
  for (const Tensors* list : {&in, &sums})
    for (const Tensor& t : *list) request.inputs.push_back(t);
  for (const Tensor& t : dys)
    if (t.defined()) request.inputs.push_back(t);
  request.what = body.program().what;
  request.body = true;
  Ref<Plan> built = Plan::build(request);
  built->forget_inputs();
  auto p = Ref<LoopProgram>::adopt(new LoopProgram(std::move(built), arity));
  const Program& joint = p->plan();
  auto feed = joint.feeds.begin();
  for (std::int64_t i = 0; i < keys.size(); ++i) p->keys.push_back((feed++)->slot);
  p->sources = body.sources();
  for (std::int64_t i = 0; i < in.size(); ++i) p->args.push_back((feed++)->slot);
  p->sums.assign(static_cast<std::size_t>(arity.nc), -1);
  for (int i : to)
    if (i >= captures) p->sums[static_cast<std::size_t>(i - captures)] = (feed++)->slot;
  for (const Tensor& t : dys) p->dys.push_back(t.defined() ? (feed++)->slot : -1);
  p->outs.assign(joint.outputs.begin(), joint.outputs.begin() + outs.size());
  p->variants = std::move(variants);
  for (Variant& v : p->variants)
    for (std::vector<int>* list : {&v.dx, &v.dstate, &v.dcapture})
      for (int& at : *list)
        if (at >= 0) at = joint.outputs[static_cast<std::size_t>(at)];
  p->find_makers();
  p->find_forward();
  p->find_varying();
  p->find_variants();
  return p;
}

void LoopProgram::find_makers() {
  maker.assign(static_cast<std::size_t>(plan().n_slots), -1);
  for (std::size_t k = 0; k < plan().steps.size(); ++k) {
    const Step& s = plan().step(static_cast<int>(k));
    for (int i = 0; i < s.n_out; ++i) maker[static_cast<std::size_t>(s.out + i)] = static_cast<int>(k);
  }
}

/// Per step of the plan, whether these slots depend on it.
std::vector<char> LoopProgram::needed_for(const std::vector<int>& roots) const {
  std::vector<char> needed(plan().steps.size(), 0);
  auto mark = [&](int slot) {
    if (slot >= 0 && maker[static_cast<std::size_t>(slot)] >= 0) needed[static_cast<std::size_t>(maker[static_cast<std::size_t>(slot)])] = 1;
  };
  for (int slot : roots) mark(slot);
  for (std::size_t k = plan().steps.size(); k-- > 0;)
    if (needed[k])
      for (int i = 0; i < plan().step(static_cast<int>(k)).n_in; ++i) mark(plan().input(plan().step(static_cast<int>(k)), i));
  return needed;
}

void LoopProgram::find_forward() {
  std::vector<char> needed = needed_for(outs);
  for (std::size_t k = 0; k < needed.size(); ++k)
    if (needed[k] && !plan().step(static_cast<int>(k)).source) forward.push_back(static_cast<int>(k));
  kept.assign(static_cast<std::size_t>(plan().n_slots), 0);
}

void LoopProgram::find_variants() {
  std::vector<char> there(plan().steps.size(), 0);
  for (int k : forward) there[static_cast<std::size_t>(k)] = 1;
  auto keep = [&](int slot) {
    if (slot < 0) return;
    int m = maker[static_cast<std::size_t>(slot)];
    if (m < 0 || there[static_cast<std::size_t>(m)]) kept[static_cast<std::size_t>(slot)] = 1;
  };
  for (Variant& v : variants) {
    std::vector<int> roots;
    for (const std::vector<int>* list : {&v.dx, &v.dstate, &v.dcapture}) roots.insert(roots.end(), list->begin(), list->end());
    std::vector<char> needed = needed_for(roots);
    for (std::size_t k = 0; k < needed.size(); ++k) {
      if (!needed[k] || there[k]) continue;
      v.steps.push_back(static_cast<int>(k));
      const Step& s = plan().step(static_cast<int>(k));
      for (int i = 0; i < s.n_in; ++i)
        if (!has_bit(s.op->shape_only, i)) keep(plan().input(s, i));
    }
    for (int r : roots) keep(r);
  }
}

/// Constants and captures stay as they are, and so does what is computed from them alone.
void LoopProgram::find_varying() {
  varies.assign(static_cast<std::size_t>(plan().n_slots), 0);
  auto mark = [&](int slot) {
    if (slot >= 0) varies[static_cast<std::size_t>(slot)] = 1;
  };
  for (const std::vector<int>* list : {&keys, &dys, &sums})
    for (int slot : *list) mark(slot);
  for (int i = 0; i < arity.nx + arity.ns; ++i) mark(args[static_cast<std::size_t>(i)]);
  for (const Step& s : plan().steps) {
    bool any = s.op->traits & kPrints || (s.op == &call_row && procedure(*s.attrs.extra).as_taped());
    for (int i = 0; i < s.n_in; ++i) any = any || varies[static_cast<std::size_t>(plan().input(s, i))];
    for (int i = 0; any && i < s.n_out; ++i) mark(s.out + i);
  }
}

}  // namespace kassette

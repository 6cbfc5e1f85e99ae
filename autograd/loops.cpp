// autograd/loops.cpp - loops over the elements of tensors.
#include <algorithm>
#include <mutex>

#include <kassette/interrupt.h>

#include "autograd/checkpoint.h"
#include "autograd/control.h"
#include "autograd/elements.h"
#include "autograd/loop_run.h"
#include "core/convert.h"
#include "core/sparse.h"
#include "core/rank.h"
#include "ops/expr.h"
#include "ops/named.h"
#include "ops/operand.h"
#include "ops/random.h"

namespace kassette {

Tensors unstack_for(const char* what, const Tensor& x, std::int64_t n, int axis) {
  return in_name_of(what, [&] { return unstack(x, static_cast<int>(n), axis); });
}
Tensor stack_for(const char* what, const Tensors& list, int axis) {
  return in_name_of(what, [&] { return stack(list, axis); });
}

void check_state(const char* what, const Spec& before, const Spec& after, std::int64_t i) {
  bool ok = before.rank < 0 || after.rank < 0 || before.rank == after.rank;
  for (int k = 0; ok && before.rank >= 0 && k < before.rank && k < after.rank; ++k)
    ok = before.dims[k] < 0 || after.dims[k] < 0 || before.dims[k] == after.dims[k];
  if (!ok)
    fail<ValueError>(what, ": the step returned state ", i, " of shape ", after, ", it was ", before, "; the shape must stay the same");
  if (before.dtype != after.dtype)
    fail<TypeError>(what, ": the step returned state ", i, " as ", after.dtype, ", it was ", before.dtype);
}

void check_rows(const char* what, const std::string& which, const Spec& s, std::int64_t samples) {
  if (s.rank < 0 || (s.rank > 0 && (samples < 0 || s.dims[0] < 0 || s.dims[0] == samples))) return;
  fail<ValueError>(what, ": ", which, " has shape ", s, ", expected (", samples < 0 ? std::string("samples") : text(samples), ", ...), a row for each sample");
}

namespace {

/// Inputs: key, xs, states, captures.
class Scan final : public Procedure {
 public:
  /// `eager`: run at once, so that a way back on its own runs it for the second time.
  Scan(const ScanRequest& request, Traced body, bool eager)
      : what_(request.what), body_(std::move(body.plan)), eager_(eager), batched_(request.batched), nx_(static_cast<int>(request.xs.size())),
        ns_(static_cast<int>(request.states.size())), ny_(request.n_outputs), reverse_(request.reverse), length_(request.length),
        forward_(LoopProgram::of_body(*body_, {nx_, ns_, body_->n_inputs() - nx_ - ns_, ny_})) {}
  Tensors run(const Tensors& in) const override;
  void specs(const Call& call, Spec* out) const override;
  int n_out() const override { return ny_ + ns_; }
  /// A state, by no step at all.
  bool reaches(int i) const override { return i > 0 && ((i > nx_ && i <= nx_ + ns_) || body_->reaches(i - 1)); }
  bool run_for(const Tensors& in, const Rewound& by, Tape& tape) const override;

 private:
  struct Known {
    std::vector<Body> args;
    std::vector<char> wanted, has_dy;
    Ref<LoopProgram> program;
  };
  Tensors run_recorded(const Tensors& in, std::int64_t steps) const;
  Tensors step_on_zeros(const Tensors& in) const;
  Ref<LoopProgram> program_for(const Tensors& in, const Rewound& by, std::int64_t steps) const;
  Tensors run_step(const Tensors& args, std::int64_t t, std::int64_t steps, const Tensor& key) const;

  const char* what_;
  Ref<Plan> body_;
  bool eager_, batched_;
  int nx_, ns_, ny_;
  bool reverse_;
  std::int64_t checkpoint_ = checkpoint_steps();
  std::int64_t length_;
  Ref<LoopProgram> forward_;
  mutable std::mutex mutex_;
  mutable std::vector<Known> known_;
};

Tensors values_of(const Tensors& in) {
  Tensors values;
  values.reserve(in.size());
  for (const Tensor& t : in) values.push_back(Access::body(t).storage && !Access::body(t).node ? t : detached(Access::body(t)));
  return values;
}

/// `said`: by the caller, or kUnknown.
std::int64_t length_of(const char* what, const Tensors& xs, std::int64_t said) {
  std::int64_t n = said;
  for (const Tensor& x : xs) {
    const Body& b = Access::body(x);
    if (b.rank == 0) fail<ValueError>(what, ": elements are a scalar; they need an axis to iterate over");
    std::int64_t d = b.rank < 0 ? kUnknown : b.dims[0];
    if (n >= 0 && d >= 0 && n != d) {
      if (n == said) fail<ValueError>(what, ": input_length is ", n, ", the inputs have ", d, " steps");
      fail<ValueError>(what, ": elements of length ", n, " and ", d);
    }
    if (d >= 0) n = d;
  }
  return n;
}

Tensors Scan::run(const Tensors& in) const {
  Tensors xs;
  for (int i = 0; i < nx_; ++i) xs.push_back(in[1 + i]);
  std::int64_t steps = length_of(what_, xs, length_);
  bool recorded = std::any_of(in.begin(), in.end(), [](const Tensor& t) { return Access::body(t).node; }) && context().recording;
  if (recorded || steps == 0) return run_recorded(in, steps);
  return LoopRun(forward_, {what_, steps, reverse_, 0, false, batched_}, values_of(in)).forward(/*way_back=*/false);
}

bool Scan::run_for(const Tensors& in, const Rewound& by, Tape& tape) const {
  Tensors xs;
  for (int i = 0; i < nx_; ++i) xs.push_back(in[1 + i]);
  std::int64_t steps = length_of(what_, xs, length_);
  if (steps == 0) return false;
  Tensors values = values_of(in);
  Ref<LoopProgram> program = program_for(values, by, steps);
  if (!program) return false;
  auto run = Ref<LoopRun>::adopt(new LoopRun(program, {what_, steps, reverse_, segment_of(checkpoint_, steps), /*again=*/eager_, batched_}, values));
  tape.results = run->forward(/*way_back=*/true);
  tape.loop = Ref<Extra>(run.get());
  return true;
}

/// The body and its adjoint for these shapes: made once, the last few are kept.
Ref<LoopProgram> Scan::program_for(const Tensors& in, const Rewound& by, std::int64_t steps) const {
  constexpr std::size_t kPrograms = 8;
  std::vector<Body> args;
  std::vector<char> wanted(static_cast<std::size_t>(in.size() - 1), 0);
  for (int i : *by.wanted) wanted[static_cast<std::size_t>(i - 1)] = 1;
  for (std::int64_t i = 1; i < in.size(); ++i) {
    const Body& from = Access::body(in[i]);
    Body b;
    b.set(from);
    b.device = from.device;
    if (i <= nx_) {
      b.rank = static_cast<std::int8_t>(from.rank - 1);
      for (int k = 0; k < b.rank; ++k) b.dims[k] = from.dims[k + 1];
    }
    args.push_back(std::move(b));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  auto same = [](const Body& a, const Body& b) { return a.same_shape(b) && a.dtype == b.dtype && a.device == b.device; };
  for (const Known& k : known_)
    if (k.wanted == wanted && k.has_dy == *by.has_dy && std::equal(args.begin(), args.end(), k.args.begin(), k.args.end(), same)) return k.program;
  LoopArity arity{nx_, ns_, static_cast<int>(args.size()) - nx_ - ns_, ny_};
  Known k{args, wanted, *by.has_dy, LoopProgram::with_adjoint(*body_, arity, args, wanted, *by.has_dy, steps)};
  if (known_.size() == kPrograms) known_.erase(known_.begin());
  known_.push_back(std::move(k));
  return known_.back().program;
}

/// Nobody sees a replay go from step to step, so its errors say where it was.
Tensors Scan::run_step(const Tensors& args, std::int64_t t, std::int64_t steps, const Tensor& key) const {
  try {
    return run_body(*body_, args, step_keys(key, t, steps, *body_));
  } catch (const Error&) {
    rethrow_edited([&](const char* message) { return text(message, " (step ", t + 1, " of ", steps, " of ", what_, ")"); });
  }
}

/// What a step on zeros gives: it says what outputs would look like where there are none.
Tensors Scan::step_on_zeros(const Tensors& in) const {
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Tensors args;
  for (std::int64_t i = 1; i < in.size(); ++i) {
    const Body& b = Access::body(in[i]);
    if (i > nx_) {
      args.push_back(in[i]);
      continue;
    }
    Spec part;
    part.dtype = b.dtype;
    for (int k = 1; k < b.rank; ++k) part.dims[part.rank++] = b.dims[k];
    args.push_back(filled_tensor(scalar_tensor(Scalar(0), part.dtype), part, what_).to(b.device));
  }
  return run_body(*body_, args, step_keys(in[0], 0, 1, *body_));
}

/// The ops of the steps, one by one on the tape of somebody else.
Tensors Scan::run_recorded(const Tensors& in, std::int64_t steps) const {
  std::vector<Tensors> slices, ys(static_cast<std::size_t>(ny_));
  for (int i = 0; i < nx_; ++i) slices.push_back(unstack_for(what_, in[1 + i], steps));
  Tensors states;
  for (int i = 0; i < ns_; ++i) states.push_back(in[1 + nx_ + i]);
  for (std::int64_t t = 0; t < steps; ++t) {
    std::int64_t at = reverse_ ? steps - 1 - t : t;
    Tensors args;
    args.reserve(in.size());
    for (const Tensors& s : slices) args.push_back(s[at]);
    for (const Tensor& s : states) args.push_back(s);
    for (std::int64_t i = 1 + nx_ + ns_; i < in.size(); ++i) args.push_back(in[i]);
    Tensors out = run_step(args, t, steps, in[0]);
    for (int i = 0; i < ny_; ++i) {
      if (batched_) check_rows(what_, "an output", Access::body(out[i]), Access::body(args[0]).dims[0]);
      ys[static_cast<std::size_t>(i)].push_back(out[i]);
    }
    for (int i = 0; i < ns_; ++i) {
      const Tensor& next = out[ny_ + i];
      check_state(what_, Access::body(states[i]), Access::body(next), i);
      states[i] = next;
    }
  }
  Tensors results;
  Tensors like = steps == 0 && ny_ > 0 ? step_on_zeros(in) : Tensors();
  for (int i = 0; i < ny_; ++i)
    results.push_back(steps == 0 ? empty_stack(what_, Access::body(like[i])) : stack_for(what_, ys[static_cast<std::size_t>(i)]));
  for (const Tensor& s : states) results.push_back(s);
  return results;
}

void Scan::specs(const Call& call, Spec* out) const {
  std::int64_t steps = length_;
  for (int i = 0; i < nx_; ++i)
    if (call.spec(1 + i).rank > 0 && call.spec(1 + i).dims[0] >= 0) steps = call.spec(1 + i).dims[0];
  for (int i = 0; i < ny_; ++i) {
    const Spec& s = body_->output_spec(i);
    out[i].dtype = s.dtype;
    out[i].rank = s.rank < 0 ? s.rank : checked_rank(what_, s.rank + 1, "outputs of shape ", s, ", stacked");
    out[i].dims[0] = steps;
    for (int k = 0; k < s.rank; ++k) out[i].dims[k + 1] = s.dims[k];
  }
  for (int i = 0; i < ns_; ++i) out[ny_ + i].set(call.spec(1 + nx_ + i));
}

Tensors eager_scan(const ScanRequest& r, const ScanFn& step, std::int64_t steps) {
  std::vector<Elements> elements;
  std::vector<Tensors> ys(static_cast<std::size_t>(r.n_outputs));
  for (const Tensor& x : r.xs) elements.emplace_back(r.what, x, steps, 0);
  Tensors states = r.states;
  for (std::int64_t t = 0; t < steps; ++t) {
    std::int64_t at = r.reverse ? steps - 1 - t : t;
    Tensors xs;
    for (Elements& e : elements) xs.push_back(e[at]);
    Tensors out = [&] {
      PlainStep now(t, steps);
      return step(xs, states);
    }();
    for (int i = 0; i < r.n_outputs; ++i) ys[static_cast<std::size_t>(i)].push_back(out[i]);
    for (std::int64_t i = 0; i < states.size(); ++i) {
      if (!out[r.n_outputs + i].defined()) fail<ValueError>(r.what, ": the function returned an empty Tensor");
      refuse_sparse(r.what, out[r.n_outputs + i]);
      check_state(r.what, Access::body(states[i]), Access::body(out[r.n_outputs + i]), i);
      states[i] = out[r.n_outputs + i];
    }
  }
  Tensors results;
  for (const Tensors& y : ys) {
    if (y.empty()) fail<ValueError>(r.what, ": there are no elements, so the shape of the output is unknown");
    results.push_back(stack_for(r.what, y));
  }
  for (const Tensor& s : states) results.push_back(s);
  return results;
}

}  // namespace

// Note [No steps]
// The length of a loop may be data, so a loop of no steps has the gradients of any other: those of its elements and of what its step
// captures are zeros, as they are where a function learns the length when it is called (and in TensorFlow's graphs; its eager loops
// say None). A plain loop that does not run its step would never see the captures: the step is recorded once, and not run.
// Where it cannot be recorded, for it asks for values, what it captures has no gradient.
Tensors of_no_steps(Callable<Tensors()> recorded) {
  if (!context().recording) return {};
  try {
    return recorded();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {   // an Error, or what the user's step throws
    return {};
  }
}

Tensors scan(const ScanRequest& r, const ScanFn& step) {
  SeedScope seeds;
  bool symbolic = context().symbolic;
  for (const Tensors* list : {&r.xs, &r.states})
    for (const Tensor& t : *list) {
      if (!t.defined()) fail<ValueError>(r.what, ": an empty Tensor (an uninitialised variable?)");
      refuse_sparse(r.what, t);
      symbolic = symbolic || t.symbolic();
    }
  std::int64_t steps = length_of(r.what, r.xs, r.length);
  if (!symbolic && !r.as_node && checkpoint_steps() == kNoCheckpoints) {
    Tensors out;
    if (steps == 0)
      out = of_no_steps([&] {
        ScanRequest node = r;
        node.as_node = true;
        return scan(node, step);
      });
    return out.empty() ? eager_scan(r, step, steps) : out;
  }
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
  Tensors in;
  {
    Scoped<bool> on(context().symbolic, symbolic);
    in.push_back(body.plan->sources().empty() ? no_key(r.what) : next_loop_key(r.xs.begin()[0], r.what));
  }
  for (const Tensors* list : {&r.xs, &r.states})
    for (const Tensor& t : *list) in.push_back(t);
  for (const Tensor& t : body.captures) in.push_back(t);
  auto scan = Ref<Extra>::adopt(new Scan(r, std::move(body), !symbolic));
  return symbolic ? call_node(std::move(scan), in) : call_now(std::move(scan), in);
}

}  // namespace kassette

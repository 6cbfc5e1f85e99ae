// autograd/loops/trace.h - the bodies of control flow: recording them on placeholders, and running them.
#pragma once
#include <span>
#include <vector>

#include <kassette/api.h>

#include "autograd/function/plan.h"

namespace kassette::autograd {

inline void append(Tensors& to, std::span<const Tensor> list) {
  for (const Tensor& t : list) to.push_back(t);
}

/// A function of tensors, recorded once on placeholders. The outer tensors that it uses, its captures, become inputs of
/// the node that runs it.
struct Traced {
  Ref<Plan> plan;  // inputs: the arguments, then the captures
  Tensors captures;
};
/// While alive, what is computed is recorded as a body: Note [Control-flow depth].
class BodyScope {
 public:
  BodyScope(const char* what, bool has_arguments);

 private:
  Scoped<bool> symbolic_;
  Scoped<std::uint8_t> depth_, branch_depth_;
  Scoped<std::uint64_t> steps_, step_;
};
/// A placeholder for an argument of the body that is being recorded.
Tensor stand_in(const TensorSpec& spec, Device device);
/// Records f on placeholders with these shapes. Throws ValueError if a result is empty or f updates a variable.
Traced trace(const char* what, const std::vector<TensorSpec>& args, Device device,
             const Callable<Tensors(const Tensors&)>& f);
/// True if ops on these tensors are recorded: recording is on and one of them has history.
bool is_recorded(const Tensors& args);
/// Runs a body, on the tape if is_recorded(args).
Tensors run_body(const Plan& plan, const Tensors& args, const Tensors& keys);
/// The keys of a body's random sources in one step, derived from the node's key. `first` is the index of the body's
/// first source; the sources of a node's second branch are numbered after those of the first.
Tensors step_keys(const Tensor& key, std::int64_t step, std::int64_t steps, const Plan& body, std::size_t first = 0);
/// The key for a node whose bodies draw no random numbers.
Tensor no_key(const char* what);
/// While alive, random draws of this thread belong to this step of an eager loop: Note [Series of draws].
class EagerStep {
 public:
  EagerStep(std::int64_t step, std::int64_t steps) : EagerStep(context(), step, steps) {}

 private:
  EagerStep(Context& c, std::uint64_t step, std::uint64_t steps)
      : step_(c.loop_step, c.loop_step * steps + step), steps_(c.loop_steps, c.loop_steps * steps) {}
  Scoped<std::uint64_t> step_, steps_;
};

}  // namespace kassette::autograd

// autograd/function/compiled_function.h - what K::function returns: a plan, or a function of an external backend.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <kassette/external_backend.h>

#include "autograd/function/plan.h"

namespace kassette::autograd {

/// The function that copies of a Function share. Thread-safe.
class CompiledFunction final : public DestroyedInTurn {
 public:
  explicit CompiledFunction(const ProgramRequest& request);
  /// A function of an external backend: `code` is called with the list of feeds, and the plan has no instructions.
  explicit CompiledFunction(external::Value code);
  const external::Value& code() const { return code_; }
  /// The plan in which calls of large functions are single instructions, see Note [Nested functions]: its inputs and
  /// results are those of flat().
  const Plan& plan() const { return *plan_; }
  /// The plan that runs.
  const Plan& flat() const { return nested_ ? build_flat() : *plan_; }
  /// The results of flat().inline_into_tape(), recorded as one deferred node if the function is large.
  Tensors call(std::span<const Tensor> args);

 private:
  void find_deferrable();
  bool may_defer(std::span<const Tensor> args) const;
  const Plan& build_flat() const;

  Ref<Plan> plan_;
  external::Value code_;
  /// The plan without deferred calls, and what it will be built from.
  struct Nested {
    std::mutex mutex;
    ProgramRequest request;  // until flat is built
    Ref<Plan> flat;
  };
  std::unique_ptr<Nested> nested_;  // null unless an instruction is a deferred call
  bool deferrable_ = false;
  std::vector<std::uint64_t> depends_;  // per output: which of the first 64 inputs it is computed from
};

}  // namespace kassette::autograd

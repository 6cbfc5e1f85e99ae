// autograd/steps.h - what every loop does around its step: it hands out the elements, masks, checks and gathers.
#pragma once
#include <vector>

#include "autograd/elements.h"
#include "autograd/recurrence.h"
#include "ops/like.h"

namespace kassette {

/// How a mask fits the elements.
inline Fit mask_fit(const LoopForm& form) { return form.axis == 0 ? Fit::mask_time_major : Fit::mask; }
/// Throws unless a step returned what it has to; `before`: the outputs of an earlier step, or null.
void check_step(const LoopForm& form, const Tensors& out, const Tensors& states, const Tensor* before, const Spec& x, bool masked);

/// One run of a loop whose length is known.
class Steps {
 public:
  Steps(const LoopForm& form, const Tensors& xs, Tensor mask, Tensors states);   // borrows form and xs
  std::int64_t size() const { return size_; }
  /// Calls step(xs, states, t) for each step t and returns what the loop returns.
  template <class F>
  Tensors run(const F& step) {
    Tensors xs;
    xs.reserve(static_cast<std::int64_t>(elements_.size()));
    for (std::int64_t t = 0; t < size_; ++t) {
      xs.clear();
      for (Elements& e : elements_) xs.push_back(e[place(t)]);
      take(call(step, xs, t), xs, t);
    }
    if (size_ > 0) return results();
    // Nothing says what outputs would look like, but a step does: on zeros.
    return results_of_none(form_.n_outputs == 0 ? Tensors() : step(zero_slices(), states_, 0));
  }

 private:
  template <class F>
  Tensors call(const F& step, const Tensors& xs, std::int64_t t) {
    PlainStep now(t, size_);
    return step(xs, states_, t);
  }
  std::int64_t place(std::int64_t t) const { return form_.reverse ? size_ - 1 - t : t; }
  void take(Tensors out, const Tensors& xs, std::int64_t t);
  const Tensor& mask_at(std::int64_t t, int rank);
  Tensor masked(const Tensor& fresh, const Tensor& before, std::int64_t t);
  Tensors results();
  Tensors results_of_none(const Tensors& out);
  Tensors zero_slices() const;

  const LoopForm& form_;
  const Tensors& xs_;
  Tensor mask_;
  Tensors states_;
  std::int64_t size_;
  std::vector<Elements> elements_;      // per input
  Tensors masks_[kMaxRank + 1];         // by the rank of what is masked, per time
  std::vector<Tensors> ys_;             // per output, per step
  Tensors last_;                        // the outputs of the step before
};

}  // namespace kassette

// nn_backend/rnn.h - recurrence over time.
#ifndef KASSETTE_BACKEND_RNN_H
#define KASSETTE_BACKEND_RNN_H
#include <kassette/api.h>

namespace kassette {
namespace backend {

/// What a step function of rnn returns: `return K::Step{output, {state, ...}};`
struct Step {
  Tensor output;
  Tensors states;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Step& step);
};
/// What rnn gives: `auto [last_output, outputs, new_states] = ...`.
struct RnnResult {
  Tensor last_output, outputs;
  Tensors new_states;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const RnnResult& result);
};

namespace detail {

/// Whether the first parameter of a callable is a list of tensors. Not of one with `auto` there: that gets a Tensor.
template <class R, class A, class... B>
std::is_same<std::decay_t<A>, Tensors> first_is_list(R (*)(A, B...));
template <class C, class R, class A, class... B>
std::is_same<std::decay_t<A>, Tensors> first_is_list(R (C::*)(A, B...));
template <class C, class R, class A, class... B>
std::is_same<std::decay_t<A>, Tensors> first_is_list(R (C::*)(A, B...) const);
template <class F, class = void>
struct TakesList : std::false_type {};
template <class F>
struct TakesList<F, std::void_t<decltype(first_is_list(&F::operator()))>> : decltype(first_is_list(&F::operator())) {};
template <class R, class A, class... B>
struct TakesList<R (*)(A, B...)> : std::is_same<std::decay_t<A>, Tensors> {};

}  // namespace detail

/// A function of the elements at one place: of one Tensor, or, where several tensors are gone through together, of
/// `const Tensors&`. Borrowed for the call, as a Callable.
template <class Signature>
class ElementFn;
template <class R, class... A>
class ElementFn<R(A...)> {
 public:
  template <class F, bool list = detail::TakesList<std::decay_t<F>>::value,
            class First = std::conditional_t<list, const Tensors&, const Tensor&>,
            class = decltype(R(std::declval<F&>()(std::declval<First>(), std::declval<A>()...)))>
  ElementFn(F&& f)
      : object_(const_cast<void*>(reinterpret_cast<const volatile void*>(&f))), takes_list_(list),
        call_([](void* o, const Tensors& xs, A... a) -> R {
          auto& g = *reinterpret_cast<std::remove_reference_t<F>*>(o);
          if constexpr (list) return g(xs, a...);
          else return g(*xs.begin(), a...);
        }) {}
  R operator()(const Tensors& xs, A... a) const { return call_(object_, xs, a...); }
  bool takes_list() const { return takes_list_; }

 private:
  void* object_;
  bool takes_list_;
  R (*call_)(void*, const Tensors&, A...);
};
using StepFn = ElementFn<Step(const Tensors& states)>;

/// The rarer arguments of rnn by name: `K::rnn(step, x, {h}, {.mask = m})`.
struct RnnOptions {
  Named named{0};
  bool go_backwards = false;
  Tensor mask = None;
  Tensors constants = None;
  bool unroll = false;
  Tensor input_length = None;
  bool time_major = false;
  bool zero_output_for_mask = false;
};

/// step(x_t, states + constants) -> {output, new states}, for each time t of inputs (samples, time, ...), or (time,
/// samples, ...) where time_major; of several inputs the step takes `const Tensors&`. outputs: (samples, time, ...) in
/// the order in which they came, which with go_backwards is from the last time; last_output is the last of them.
/// mask (samples, time), or with an axis of size 1 behind, of any dtype: where it is 0, the sample keeps its states and
/// repeats its output before (zeros at first; always zeros where zero_output_for_mask). input_length: the number of
/// times, or integers (samples,), the lengths of the samples: a mask, where none is given.
/// On placeholders rnn is one node of the tape which holds the step, recorded once, for any number of samples and
/// times: a C++ `if` in the step is decided while it is recorded, and stays so; K::switch_ decides at each time.
/// `unroll` records each time instead. Without any time, outputs are empty, and last_output is zeros of the shape that
/// a step on zeros gives.
/// Throws ValueError for inputs of rank < 3, a mask of another shape or without states, states that change their number
/// or shape, unroll over an unknown time; TypeError for states that change dtype.
KASSETTE_API RnnResult rnn(StepFn step_function, const Tensors& inputs, const Tensors& initial_states,
                           bool go_backwards = false, const Operand& mask = None, const Tensors& constants = None,
                           bool unroll = false, const Operand& input_length = None, bool time_major = false,
                           bool zero_output_for_mask = false);
KASSETTE_API RnnResult rnn(StepFn step_function, const Tensors& inputs, const Tensors& initial_states,
                           const RnnOptions& options);

/// fn(elems[i]) for each i along axis 0, stacked: (n, ...). Of several elems of one length fn takes `const Tensors&`.
/// The result has `dtype`, or that of elems (the first of them); fn has to return it. On placeholders one node of the
/// tape which holds fn, recorded once (see rnn). Throws ValueError for a scalar and where shapes change from one call
/// to the next, TypeError for another dtype.
KASSETTE_API Tensor map_fn(ElementFn<Tensor()> fn, const Tensors& elems, Name name = None, DType dtype = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_RNN_H

// include/kassette/backend/rnn.h - recurrence over time.
#ifndef KASSETTE_BACKEND_RNN_H
#define KASSETTE_BACKEND_RNN_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace backend {

/// What a step function of rnn returns: `return K::Step{output, {state, ...}};`
struct Step {
  Tensor output;
  Tensors states;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Step& step);
};
/// The result of rnn: `auto [last_output, outputs, new_states] = ...`.
struct RnnResult {
  Tensor last_output, outputs;
  Tensors new_states;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const RnnResult& result);
};

namespace detail {

/// Whether the first parameter of a callable is a list of tensors. False if it is `auto`: such a callable gets a
/// Tensor.
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

/// A function of the elements at one position: of one Tensor or, if several tensors are traversed together, of `const
/// Tensors&`. It is borrowed for the call, like a Callable.
template <class Signature>
class ElementFn;
namespace detail {

/// Whether what a callable returned can be the result R of an ElementFn: one Tensor is no list of them.
template <class R, class Result>
struct IsResult : std::is_constructible<R, Result> {};
template <class Result>
struct IsResult<Tensors, Result> : std::integral_constant<bool, std::is_constructible<Tensors, Result>::value &&
                                                                    !std::is_constructible<Tensor, Result>::value> {};

}  // namespace detail
template <class R, class... A>
class ElementFn<R(A...)> {
 public:
  template <class F, bool list = detail::TakesList<std::decay_t<F>>::value,
            class First = std::conditional_t<list, const Tensors&, const Tensor&>,
            class Result = decltype(std::declval<F&>()(std::declval<First>(), std::declval<A>()...)),
            std::enable_if_t<detail::IsResult<R, Result>::value, int> = 0>
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
/// The step of rnn: it takes the inputs of a time and the states, and returns a Step.
using StepFn = ElementFn<Step(const Tensors& states)>;

/// The rarer arguments of rnn by name: `K::rnn(step, x, {h}, {.mask = m})`.
struct RnnOptions {
  Named only_by_name{0};
  bool go_backwards = false;
  Tensor mask = None;
  Tensors constants = None;
  bool unroll = false;
  Tensor input_length = None;
  bool time_major = false;
  bool zero_output_for_mask = false;
};

/// Calls step(x_t, states + constants) -> {output, new states} for each time t of inputs, which are (samples, time,
/// ...), or (time, samples, ...) if time_major; for several inputs the step gets `const Tensors&`. outputs: (samples,
/// time, ...) in the order in which they were computed, with go_backwards from the last time on; last_output is the
/// last of them.
/// mask: (samples, time) or (samples, time, 1), of any dtype. Where it is 0, the sample keeps its states and repeats
/// its previous output (zeros at first; always zeros if zero_output_for_mask). input_length: the number of times, or
/// integers (samples,), the lengths of the samples, which are used as a mask if none is given.
/// On placeholders rnn is one node of the tape that holds the step, recorded once, for any number of samples and times:
/// a C++ `if` in the step is decided once, while it is recorded; K::switch_ decides at each time. `unroll` records each
/// time instead. If there are no times, outputs are empty, and last_output is zeros of the shape that a step returns
/// for zeros. Throws ValueError for inputs of rank < 3, for a mask of another shape or without states, if the number or
/// a shape of states changes, and for unroll over an unknown number of times; TypeError if the dtype of a state
/// changes.
KASSETTE_API RnnResult rnn(StepFn step_function, const Tensors& inputs, const Tensors& initial_states,
                           bool go_backwards = false, const Operand& mask = None, const Tensors& constants = None,
                           bool unroll = false, const Operand& input_length = None, bool time_major = false,
                           bool zero_output_for_mask = false);
KASSETTE_API RnnResult rnn(StepFn step_function, const Tensors& inputs, const Tensors& initial_states,
                           const RnnOptions& options);

/// fn(elems[i]) for each i along axis 0, stacked: (n, ...). For several elems of the same length fn gets `const
/// Tensors&`. The result has `dtype`, by default that of elems (of the first of them); fn must return it. On
/// placeholders map_fn is one node of the tape that holds fn, recorded once (see rnn). Throws ValueError for a scalar
/// and if shapes change from one call to the next, TypeError if fn returns another dtype.
KASSETTE_API Tensor map_fn(ElementFn<Tensor()> fn, const Tensors& elems, Name name = None, DType dtype = None);

/// The dtypes of several results: a list or a container of them. Refers to it.
class DTypes {
 public:
  DTypes(std::initializer_list<DType> list) : DTypes(list.begin(), static_cast<std::int64_t>(list.size())) {}
  template <class C, class = decltype(static_cast<const DType*>(std::declval<const C&>().data()))>
  DTypes(const C& list) : DTypes(list.data(), static_cast<std::int64_t>(list.size())) {}
  DTypes(const DType* first, std::int64_t size) : data_(first), size_(size) {}
  const DType* begin() const { return data_; }
  const DType* end() const { return data_ + size_; }
  std::int64_t size() const { return size_; }

 private:
  const DType* data_;
  std::int64_t size_;
};
/// The same for an fn that returns a list of tensors, one for each of `dtypes`: each is stacked. A dtype None is that
/// of elems. Throws ValueError if fn returns another number of tensors.
KASSETTE_API Tensors map_fn(ElementFn<Tensors()> fn, const Tensors& elems, const DTypes& dtypes);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_RNN_H

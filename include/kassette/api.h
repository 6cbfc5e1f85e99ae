// include/kassette/api.h - callables, branches and option structs of the public API.
#ifndef KASSETTE_API_H
#define KASSETTE_API_H
#include <type_traits>

#include <kassette/kept_operand.h>
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {

/// A reference to a callable of this signature, valid during the call (like std::function_ref). The callable is not
/// kept after the call, only the ops that it recorded.
template <class Signature>
class Callable;
template <class R, class... A>
class Callable<R(A...)> {
 public:
  template <class F, std::enable_if_t<!std::is_same<std::decay_t<F>, Callable>::value, int> = 0,
            class = decltype(R(std::declval<F&>()(std::declval<A>()...)))>
  Callable(F&& f)
      : object_(const_cast<void*>(reinterpret_cast<const volatile void*>(&f))),
        call_([](void* o, A... a) -> R { return (*reinterpret_cast<std::remove_reference_t<F>*>(o))(a...); }) {}
  R operator()(A... a) const { return call_(object_, a...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

/// One branch of switch_ or in_train_phase: an operand, or a callable without arguments that is called only if needed
/// and returns a tensor or a number.
class KASSETTE_API Branch {
 public:
  template <class T, class = std::enable_if_t<std::is_convertible<const T&, Operand>::value>>
  Branch(const T& value) : value_(value), lazy_(false), f_(&nothing), number_(&none) {}
  template <class F, class = decltype(Tensor(std::declval<F&>()())), class = void>
  Branch(F&& f) : value_(None), lazy_(true), f_(f), number_(&none) {}
  template <class F, std::enable_if_t<std::is_arithmetic<decltype(std::declval<F&>()())>::value, int> = 0>
  Branch(F&& f) : value_(None), lazy_(true), returns_number_(true), f_(&nothing), number_(f) {}
  Branch(std::initializer_list<Operand> items) : value_(items), lazy_(false), f_(&nothing), number_(&none) {}

 private:
  static Tensor nothing();
  static Operand none() { return None; }
  Operand value_;
  bool lazy_, returns_number_ = false;
  Callable<Tensor()> f_;
  Callable<Operand()> number_;
  friend struct Access;
};

/// The first member of every options struct, so that fields can only be given by name: {1, 0} does not convert.
struct Named {
  constexpr Named() {}
  explicit constexpr Named(int) {}
};

}  // namespace kassette

#endif  // KASSETTE_API_H

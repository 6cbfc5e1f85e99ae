// include/kassette/transforms.h - functions of functions: gradients, Jacobians and Hessians, products with them, and
// functions over a batch.
//
// f is any callable of tensors that returns a tensor: a lambda, a function, a class with operator(). What is made of it
// is called with the same arguments: `grad(f)(x, y)`. It works on values and on placeholders, inside functions, and on
// itself: `grad(grad(f))` is the second derivative, `jacobian(grad(f))` the Hessian.
#ifndef KASSETTE_TRANSFORMS_H
#define KASSETTE_TRANSFORMS_H
#include <type_traits>
#include <utility>

#include <kassette/api.h>
#include <kassette/tensor.h>

namespace kassette {

/// The result of a function, and its gradient.
struct ValueAndGrad {
  Tensor value, gradient;
};
/// The result of a function, and how it changes along a direction.
struct ValueAndTangent {
  Tensor value, tangent;
};

namespace detail {
/// A function of a list of tensors, for the call.
using OfList = Callable<Tensor(const Tensors&)>;
template <class F, std::size_t... i>
Tensor spread(const F& f, const Tensors& args, std::index_sequence<i...>) {
  return f(args[static_cast<std::int64_t>(i)]...);
}
KASSETTE_API ValueAndGrad value_and_grad_of(OfList f, const Tensors& args, int argument, const char* what);
KASSETTE_API Tensor jacobian_of(OfList f, const Tensors& args, int argument);
KASSETTE_API Tensor hessian_of(OfList f, const Tensors& args, int argument);
KASSETTE_API Tensor vmap_of(OfList f, const Tensors& args);

/// What grad and its relatives return: calls `apply` with f as a function of a list.
template <class F, class R>
class Transformed {
 public:
  using Apply = R (*)(OfList f, const Tensors& args, int argument);
  Transformed(F f, int argument, Apply apply) : f_(static_cast<F&&>(f)), argument_(argument), apply_(apply) {}
  template <class... A>
  R operator()(const A&... args) const {
    auto of_list = [this](const Tensors& list) { return spread(f_, list, std::index_sequence_for<A...>()); };
    return apply_(OfList(of_list), Tensors({Operand(args)...}), argument_);
  }

 private:
  F f_;
  int argument_;
  Apply apply_;
};
}  // namespace detail

/// The function that gives the gradient of f, which returns one number, with respect to one of its arguments. Where
/// nothing leads there it is zeros. Throws ValueError if f returns more than one number.
template <class F>
detail::Transformed<std::decay_t<F>, Tensor> grad(F&& f, int argument = 0) {
  return {static_cast<F&&>(f), argument, [](detail::OfList g, const Tensors& args, int i) {
            return detail::value_and_grad_of(g, args, i, "grad").gradient;
          }};
}
/// The function that gives the value of f and its gradient, as grad.
template <class F>
detail::Transformed<std::decay_t<F>, ValueAndGrad> value_and_grad(F&& f, int argument = 0) {
  return {static_cast<F&&>(f), argument, [](detail::OfList g, const Tensors& args, int i) {
            return detail::value_and_grad_of(g, args, i, "value_and_grad");
          }};
}
/// The function that gives the derivatives of all elements of f(...) by all elements of an argument: its shape is that
/// of the result, then that of the argument. One backward pass for each element of the result.
template <class F>
detail::Transformed<std::decay_t<F>, Tensor> jacobian(F&& f, int argument = 0) {
  return {static_cast<F&&>(f), argument,
          [](detail::OfList g, const Tensors& args, int i) { return detail::jacobian_of(g, args, i); }};
}
/// The function that gives the second derivatives of f, which returns one number, by the elements of an argument: the
/// argument's shape twice.
template <class F>
detail::Transformed<std::decay_t<F>, Tensor> hessian(F&& f, int argument = 0) {
  return {static_cast<F&&>(f), argument,
          [](detail::OfList g, const Tensors& args, int i) { return detail::hessian_of(g, args, i); }};
}
/// The function that applies f to the elements of its arguments along their first axis, by K::map_fn.
template <class F>
detail::Transformed<std::decay_t<F>, Tensor> vmap(F&& f) {
  return {static_cast<F&&>(f), 0, [](detail::OfList g, const Tensors& args, int) { return detail::vmap_of(g, args); }};
}

/// f(x...) and its derivative along `tangents`, one for each of x: the Jacobian times a vector, by two backward passes.
KASSETTE_API ValueAndTangent jvp(Callable<Tensor(const Tensors&)> f, const Tensors& x, const Tensors& tangents);
/// f(x...) and, in `gradients`, the products of a cotangent of the shape of f's result with the Jacobians by each of x.
struct ValueAndGradients {
  Tensor value;
  Tensors gradients;
};
KASSETTE_API ValueAndGradients vjp(Callable<Tensor(const Tensors&)> f, const Tensors& x, const Tensor& cotangent);
/// The Hessian of f, which returns one number, at x, times v, without the Hessian: two backward passes.
KASSETTE_API Tensor hvp(Callable<Tensor(const Tensor&)> f, const Tensor& x, const Tensor& v);

}  // namespace kassette

#endif  // KASSETTE_TRANSFORMS_H

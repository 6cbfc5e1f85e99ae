// include/kassette/transforms.h - functions of functions: gradients, Jacobians and Hessians, products with them, and
// functions over a batch.
//
// f is any callable of tensors that returns a tensor: a lambda, a function, a class with operator(). What is made of it
// is called with the same arguments: `grad(f)(x, y)`. It works on values and on placeholders, inside functions, and on
// itself: `grad(grad(f))` is the second derivative, `jacobian(grad(f))` the Hessian. The last ones change how f is
// differentiated: custom_gradient, checkpoint, host_call.
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
/// of the result, then that of the argument. A derivative along each element of the argument if these are fewer than
/// those of the result, else a backward pass for each element of the result: one recorded program, run for each row.
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
/// The function that applies f to the elements of its arguments along their first axis. f is recorded for one element.
/// If all ops that depend on it have a rule (elementwise functions, products, reductions, shapes, indices that all
/// elements share, sorts, factorisations, transforms and their gradients do), each runs once for all elements; else f
/// runs element by element, by K::map_fn, and so it does if it draws random numbers, reads values, changes a variable,
/// or if a size is unknown. A line of the log at level debug says why. f may be called once more than there are
/// elements.
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

// ---- how a function is differentiated -------------------------------------------------------------------------------

namespace detail {
/// The functions behind a custom_gradient and a host_call, which the tape owns.
class KASSETTE_API UserOp {
 public:
  UserOp() = default;
  UserOp(const UserOp&) = delete;
  UserOp& operator=(const UserOp&) = delete;
  virtual ~UserOp();
  /// The result from the values of the arguments, and its shape from theirs.
  virtual Tensor value(const Tensors& x) const;
  virtual Shape shape(const Shape* x) const;
  /// The cotangents of the arguments from (x..., y, dy).
  virtual Tensors vjp(const Tensors& list) const = 0;
  virtual bool has_gradient() const { return true; }
};

/// Both take over `op`.
KASSETTE_API Tensor custom_gradient_of(OfList f, const Tensors& args, UserOp* op);
KASSETTE_API Tensor host_call_of(UserOp* op, DType dtype, const Tensors& args);
KASSETTE_API Tensor checkpoint_of(OfList f, const Tensors& args);

template <class V, std::size_t... i>
Tensors spread_vjp(const V& f_vjp, const Tensors& list, std::index_sequence<i...>) {
  return Tensors(f_vjp(list[static_cast<std::int64_t>(i)]...));
}

/// An adjoint of n arguments.
template <class V, std::size_t n>
class UserVjp final : public UserOp {
 public:
  explicit UserVjp(const V& f_vjp) : f_vjp_(f_vjp) {}
  Tensors vjp(const Tensors& list) const override {
    return spread_vjp(f_vjp_, list, std::make_index_sequence<n + 2>());
  }

 private:
  V f_vjp_;
};

template <class F, class S, class V>
struct HostParts {
  F f;
  S shape;
  V f_vjp;
};
template <class Parts, class Sequence>
class UserHostOp;
template <class F, class S, class V, std::size_t... i>
class UserHostOp<HostParts<F, S, V>, std::index_sequence<i...>> final : public UserOp {
 public:
  explicit UserHostOp(const HostParts<F, S, V>& parts) : parts_(parts) {}
  Tensor value(const Tensors& x) const override { return parts_.f(x[static_cast<std::int64_t>(i)]...); }
  Shape shape(const Shape* x) const override { return parts_.shape(x[i]...); }
  Tensors vjp(const Tensors& list) const override {
    if constexpr (std::is_same<V, NoneType>::value) return Tensors(list.size() ? list[0] : Tensor());
    else return spread_vjp(parts_.f_vjp, list, std::make_index_sequence<sizeof...(i) + 2>());
  }
  bool has_gradient() const override { return !std::is_same<V, NoneType>::value; }

 private:
  HostParts<F, S, V> parts_;
};

template <class F, class V>
class CustomGradient {
 public:
  CustomGradient(F f, V f_vjp) : f_(static_cast<F&&>(f)), f_vjp_(static_cast<V&&>(f_vjp)) {}
  template <class... A>
  Tensor operator()(const A&... args) const {
    auto of_list = [this](const Tensors& list) { return spread(f_, list, std::index_sequence_for<A...>()); };
    const Tensors list({Operand(args)...});
    return custom_gradient_of(OfList(of_list), list, new UserVjp<V, sizeof...(A)>(f_vjp_));
  }

 private:
  F f_;
  V f_vjp_;
};

template <class F, class S, class V>
class HostCall {
 public:
  HostCall(F f, S shape, V f_vjp, DType dtype)
      : parts_{static_cast<F&&>(f), static_cast<S&&>(shape), static_cast<V&&>(f_vjp)}, dtype_(dtype) {}
  template <class... A>
  Tensor operator()(const A&... args) const {
    const Tensors list({Operand(args)...});
    return host_call_of(new UserHostOp<HostParts<F, S, V>, std::index_sequence_for<A...>>(parts_), dtype_, list);
  }

 private:
  HostParts<F, S, V> parts_;
  DType dtype_;
};
}  // namespace detail

/// f with a gradient of one's own: f_vjp(x..., y, dy) returns the cotangents of the arguments x from that of the result
/// y = f(x...), as one tensor or a list, in which an empty Tensor is none. It is written in ops, and so has derivatives
/// itself. What f captures gets no gradient. Throws ValueError if a cotangent does not have the shape of its argument.
template <class F, class V>
detail::CustomGradient<std::decay_t<F>, std::decay_t<V>> custom_gradient(F&& f, V&& f_vjp) {
  return {static_cast<F&&>(f), static_cast<V&&>(f_vjp)};
}
/// f, of which the tape keeps the arguments alone: the backward pass runs it again, with the same random numbers, and
/// needs memory for one such f at a time. f runs once on placeholders at each call; what it captures has gradients.
template <class F>
detail::Transformed<std::decay_t<F>, Tensor> checkpoint(F&& f) {
  return {static_cast<F&&>(f), 0,
          [](detail::OfList g, const Tensors& args, int) { return detail::checkpoint_of(g, args); }};
}
/// An op from a C++ function f on the values of its arguments, on the host: it works on placeholders, in functions and
/// in loops, where it runs at each call. shape_rule(shapes...) is the Shape of the result, where sizes may be None
/// (-1); dtype is its dtype, that of the first argument unless given. f_vjp is that of custom_gradient; without it, a
/// gradient throws ValueError. Both may run on several threads at once. Throws ValueError if f returns another shape or
/// dtype.
template <class F, class S, class V>
detail::HostCall<std::decay_t<F>, std::decay_t<S>, std::decay_t<V>> host_call(F&& f, S&& shape_rule, V&& f_vjp,
                                                                              DType dtype = {}) {
  return {static_cast<F&&>(f), static_cast<S&&>(shape_rule), static_cast<V&&>(f_vjp), dtype};
}
template <class F, class S>
detail::HostCall<std::decay_t<F>, std::decay_t<S>, NoneType> host_call(F&& f, S&& shape_rule) {
  return {static_cast<F&&>(f), static_cast<S&&>(shape_rule), None, {}};
}

}  // namespace kassette

#endif  // KASSETTE_TRANSFORMS_H

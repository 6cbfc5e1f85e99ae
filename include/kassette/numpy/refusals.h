// include/kassette/numpy/refusals.h - calls as NumPy's are written in Python, or PyTorch's, which do not compile: each
// says what to write instead.
#ifndef KASSETTE_NUMPY_REFUSALS_H
#define KASSETTE_NUMPY_REFUSALS_H
#include <kassette/none.h>
#include <kassette/tensor.h>

#include <type_traits>

namespace kassette {
namespace numpy {
namespace detail {
template <class... N>
using IfNumbers = std::enable_if_t<kassette::detail::AreNumbers<N...>::value, int>;
template <class T>
using IfTensor = std::enable_if_t<std::is_same<T, Tensor>::value, int>;
}  // namespace detail

template <class Y, class... More, detail::IfTensor<Y> = 0>
Tensor concatenate(const Tensor& x, const Y& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: np::concatenate({x, y}, axis)");
template <class Y, class... More, detail::IfTensor<Y> = 0>
Tensor concat(const Tensor& x, const Y& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: np::concat({x, y}, axis)");
template <class Y, class... More, detail::IfTensor<Y> = 0>
Tensor stack(const Tensor& x, const Y& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: np::stack({x, y}, axis)");
template <class Y, class... More, detail::IfTensor<Y> = 0>
Tensor hstack(const Tensor& x, const Y& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: np::hstack({x, y})");
template <class Y, class... More, detail::IfTensor<Y> = 0>
Tensor vstack(const Tensor& x, const Y& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: np::vstack({x, y})");

template <class A, class B, class... More, detail::IfNumbers<A, B, More...> = 0>
Tensor array(A, B, More...) KASSETTE_UNAVAILABLE("numbers are listed in braces: np::array({1, 2, 3})");
template <class M, class N, class... More, detail::IfNumbers<M, N, More...> = 0>
Tensor reshape(const Operand& x, M, N, More...)
    KASSETTE_UNAVAILABLE("a shape is one argument in braces: np::reshape(x, {2, 3})");
template <class M, class N, class... More, detail::IfNumbers<M, N, More...> = 0>
Tensor broadcast_to(const Operand& x, M, N, More...)
    KASSETTE_UNAVAILABLE("a shape is one argument in braces: np::broadcast_to(x, {2, 3})");
template <class M, class N, class... More, detail::IfNumbers<M, N, More...> = 0>
Tensor tile(const Operand& x, M, N, More...)
    KASSETTE_UNAVAILABLE("repeats are one argument in braces: np::tile(x, {2, 3})");
template <class M, class N, class... More, detail::IfNumbers<M, N, More...> = 0>
Tensor transpose(const Operand& x, M, N, More...)
    KASSETTE_UNAVAILABLE("axes are one argument in braces: np::transpose(x, {1, 0})");
template <class M, class N, class... More, detail::IfNumbers<M, N, More...> = 0>
Tensor permute_dims(const Operand& x, M, N, More...)
    KASSETTE_UNAVAILABLE("axes are one argument in braces: np::permute_dims(x, {1, 0})");

namespace random {
// Beyond a shape these take a dtype, of which a number says what to write.
template <class M, class N, class... More, numpy::detail::IfNumbers<M, N, More...> = 0>
Tensor rand(M, N, More...) KASSETTE_UNAVAILABLE("use np::random::random({2, 3})");
template <class M, class N, class... More, numpy::detail::IfNumbers<M, N, More...> = 0>
Tensor randn(M, N, More...) KASSETTE_UNAVAILABLE("use np::random::standard_normal({2, 3})");
template <class... A>
Tensor randint(const A&...) KASSETTE_UNAVAILABLE("use np::random::integers(low, high, size)");
}  // namespace random

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_REFUSALS_H

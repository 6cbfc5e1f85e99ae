// include/kassette/backend/refusals.h - calls that people who know NumPy or PyTorch write, and that do not compile:
// each says what to write instead.
#ifndef KASSETTE_BACKEND_REFUSALS_H
#define KASSETTE_BACKEND_REFUSALS_H
#include <kassette/none.h>
#include <kassette/tensor.h>

#include <type_traits>

namespace kassette {
namespace backend {
namespace detail {
template <class M, class N>
using IfSizes = std::enable_if_t<std::is_integral<M>::value && std::is_integral<N>::value, int>;
}

Tensor where(const Operand& condition, const Operand& x = None, const Operand& y = None)
    KASSETTE_UNAVAILABLE("use K::switch_(condition, x, y)");

template <class... More>
Tensor concatenate(const Tensor& x, const Tensor& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: K::concatenate({x, y}, axis)");
template <class... More>
Tensor stack(const Tensor& x, const Tensor& y, const More&... more)
    KASSETTE_UNAVAILABLE("tensors are listed in braces: K::stack({x, y}, axis)");

// A second integer would be the number of axes, the mean, the lower bound or the probability.
template <class M, class N, class... More, detail::IfSizes<M, N> = 0>
Tensor placeholder(M rows, N columns, const More&... more)
    KASSETTE_UNAVAILABLE("a shape is one argument in braces: K::placeholder({2, 3})");
template <class M, class N, class... More, detail::IfSizes<M, N> = 0>
Tensor random_normal(M rows, N columns, const More&... more)
    KASSETTE_UNAVAILABLE("a shape is one argument in braces: K::random_normal({2, 3}), or K::random_normal({2}, 3)");
template <class M, class N, class... More, detail::IfSizes<M, N> = 0>
Tensor truncated_normal(M rows, N columns, const More&... more)
    KASSETTE_UNAVAILABLE("a shape is one argument in braces: K::truncated_normal({2, 3})");
template <class M, class N, class... More, detail::IfSizes<M, N> = 0>
Tensor random_uniform(M rows, N columns, const More&... more) KASSETTE_UNAVAILABLE(
    "a shape is one argument in braces: K::random_uniform({2, 3}), or K::random_uniform({2}, 0, 3)");
template <class M, class N, class... More, detail::IfSizes<M, N> = 0>
Tensor random_binomial(M rows, N columns, const More&... more)
    KASSETTE_UNAVAILABLE("a shape is one argument in braces: K::random_binomial({2, 3}, 0.5)");

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_REFUSALS_H

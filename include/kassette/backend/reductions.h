// include/kassette/backend/reductions.h - reductions over axes.
#ifndef KASSETTE_BACKEND_REDUCTIONS_H
#define KASSETTE_BACKEND_REDUCTIONS_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// `axis` is one axis, a list, or None for all; {} reduces nothing. With keepdims the reduced axes stay with size 1. An
// axis that is out of range or given twice throws ValueError.

/// The sum over axes, in the dtype of x: integers wrap. For an empty x: 0. Throws TypeError on bool.
KASSETTE_API Tensor sum(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The largest element; NaN if there is one. For an empty x: -inf, or the lowest integer. Throws TypeError on bool.
KASSETTE_API Tensor max(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The smallest element; NaN if there is one. For an empty x: inf, or the largest integer. Throws TypeError on bool.
KASSETTE_API Tensor min(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The arithmetic mean; bool and integers are cast to floatx first. For an empty x: NaN.
KASSETTE_API Tensor mean(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The mean of the elements that are not NaN, or NaN if there are none. NaN elements have a gradient of 0. Bool and
/// integers are cast as in mean.
KASSETTE_API Tensor nanmean(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The product over axes; integers wrap. For an empty x: 1. Throws TypeError on bool.
KASSETTE_API Tensor prod(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The mean of the squared deviations from the mean (divided by n, not n - 1); bool and integers are cast to floatx
/// first. For an empty x: NaN.
KASSETTE_API Tensor var(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The square root of var. It and its gradient are 0 where all elements are equal.
KASSETTE_API Tensor std(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// bool: whether any element is not zero; NaN is not zero. For an empty x: false.
KASSETTE_API Tensor any(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// bool: whether no element is zero. For an empty x: true.
KASSETTE_API Tensor all(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// int64: the index of the first largest element along one axis; None: in the flattened tensor. The axis is removed.
/// NaN counts as the largest. Throws ValueError if the axis has size 0.
KASSETTE_API Tensor argmax(const Operand& x, const Axes& axis = -1);
/// int64: the index of the first smallest element; otherwise like argmax.
KASSETTE_API Tensor argmin(const Operand& x, const Axes& axis = -1);
/// log(sum(exp(x))) over axes, of floats, without overflow. For an empty x: -inf.
KASSETTE_API Tensor logsumexp(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The running sum along an axis, of the shape of x.
KASSETTE_API Tensor cumsum(const Operand& x, int axis = 0);
/// The running product along an axis, of the shape of x.
KASSETTE_API Tensor cumprod(const Operand& x, int axis = 0);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_REDUCTIONS_H

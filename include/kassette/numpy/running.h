// include/kassette/numpy/running.h - running extremes and sums of exponentials.
#ifndef KASSETTE_NUMPY_RUNNING_H
#define KASSETTE_NUMPY_RUNNING_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// `axis` is one axis, or None for the flattened tensor.

/// The result of cummax and cummin: the values, and their int64 positions along the axis.
struct RunningExtreme {
  Tensor values, indices;
};
/// The largest (smallest) element so far along an axis, NumPy's maximum.accumulate, and where the first such one is.
/// From a NaN on, it is that NaN.
KASSETTE_API RunningExtreme cummax(const Operand& x, const Axes& axis = None);
KASSETTE_API RunningExtreme cummin(const Operand& x, const Axes& axis = None);
/// log(cumsum(exp(x))) of floats along an axis, without overflow: NumPy's logaddexp.accumulate.
KASSETTE_API Tensor logcumsumexp(const Operand& x, const Axes& axis = None);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_RUNNING_H

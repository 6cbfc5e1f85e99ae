// include/kassette/numpy.h - arrays as NumPy has them: namespace np = kassette::numpy.
//
// The functions have NumPy's names, argument order and defaults, those of the array API standard where NumPy's have
// changed, and those of keras.ops where NumPy has none. Arguments beyond the first are given by name, in braces:
// `np::sum(x, {.axis = 0, .keepdims = true})`.
//
// Numbers and lists of numbers take the dtype of the tensor that they are combined with, or floatx. Tensors, containers
// (`std::vector<double>`) and arrays of other libraries keep theirs. Two dtypes of one kind are promoted to the
// smallest dtype of that kind that holds both (int8 and uint8 to int16, float32 and float64 to float64); dtypes of two
// kinds are a TypeError, for a cast says what is meant.
#ifndef KASSETTE_NUMPY_H
#define KASSETTE_NUMPY_H
#include <kassette/numpy/calculus.h>
#include <kassette/numpy/creation.h>
#include <kassette/numpy/dtypes.h>
#include <kassette/numpy/fft.h>
#include <kassette/numpy/indices.h>
#include <kassette/numpy/linalg.h>
#include <kassette/numpy/mathematics.h>
#include <kassette/numpy/nan_reductions.h>
#include <kassette/numpy/order.h>
#include <kassette/numpy/placement.h>
#include <kassette/numpy/polynomials.h>
#include <kassette/numpy/products.h>
#include <kassette/numpy/random.h>
#include <kassette/numpy/reductions.h>
#include <kassette/numpy/refusals.h>
#include <kassette/numpy/running.h>
#include <kassette/numpy/selection.h>
#include <kassette/numpy/sets.h>
#include <kassette/numpy/shaping.h>
#include <kassette/numpy/statistics.h>

namespace kassette {
namespace numpy {
using kassette::bfloat16;
using kassette::bool_;
using kassette::ellipsis;
using kassette::float16;
using kassette::float32;
using kassette::float64;
using kassette::int16;
using kassette::int32;
using kassette::int64;
using kassette::int8;
using kassette::newaxis;
using kassette::None;
using kassette::Tensor;
using kassette::Tensors;
using kassette::uint16;
using kassette::uint8;
/// Mathematical constants.
inline constexpr double pi = 3.14159265358979323846, e = 2.71828182845904523536, euler_gamma = 0.57721566490153286061;
/// The special values of floats.
inline constexpr double inf = __builtin_inf(), nan = __builtin_nan("");
}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_H

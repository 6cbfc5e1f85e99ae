// nn_backend/numpy/segments.h - sums of rows that belong to one place.
#pragma once
#include <kassette/tensor.h>

namespace kassette::numpy {

/// One more than the largest of these places, 0 if there are none, or the number that is given; an int64 scalar on the
/// host. Throws ValueError in the name of `what`, of num_segments, for a negative number.
Tensor number_of_places(const Tensor& places, const Scalar& given, const char* what);
/// n rows of zeros, to which the rows of x are added at int32 or int64 places, in their order. n is an int64 scalar on
/// the host.
Tensor add_at(const Tensor& x, const Tensor& places, const Tensor& n);

}  // namespace kassette::numpy

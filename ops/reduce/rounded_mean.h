// ops/reduce/rounded_mean.h - a mean as a number and what its rounding took, for g++ and nvcc.
#pragma once
#include "ops/math/math.h"

namespace kassette::ops {

// Note [The rounding of a mean]
// x - mean is exact for data far from 0 beside their spread (Sterbenz), but the mean that was subtracted is rounded,
// and that moves all deviations by up to half a unit in its last place: as much as the deviations themselves if these
// are the last bits of x. So what the rounding took is kept and subtracted as well, as in the corrected two-pass
// algorithm (Chan, Golub and LeVeque, 1983). A mean is computed from differences to an element of its group: then the
// mean of equal elements is that element, and their deviations are exactly 0, as is the gradient of std.

/// from + gap, rounded, and what the rounding took (TwoSum: Knuth, 1969): mean + rest is exact. rest is 0 if the mean
/// is not finite.
template <class T>
struct RoundedMean {
  T mean, rest;
  KASSETTE_FN RoundedMean(T from, T gap) : mean(from + gap), rest(T(0)) {
    const T shifted = mean - from, lost = (from - (mean - shifted)) + (gap - shifted);
    if (lost - lost == T(0)) rest = lost;
  }
};

}  // namespace kassette::ops

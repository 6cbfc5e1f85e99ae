// ops/fft/fft_run.h - running transforms: rows in lanes, or long rows one after another.
#pragma once
#include "ops/fft/fft_loops.h"

namespace kassette::ops {

/// Runs a job of which plan, roots, steps and span are not set. Both sides have the same rows.
template <class T>
void run_fft(FftJob<T> job);

/// The transform of one row, with the sign of a forward one, times `scale`. A part that is null is zeros.
template <class T>
void transform_row(const FftPlan<T>& plan, const T* re, const T* im, T* to_re, T* to_im, T scale);

}  // namespace kassette::ops

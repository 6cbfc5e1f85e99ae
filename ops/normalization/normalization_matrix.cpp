// ops/normalization/normalization_matrix.cpp - any shape and axes as a matrix, for the loops of batch normalisation.
#include "ops/normalization/normalization_matrix.h"

#include <numeric>

namespace kassette::ops {

ChannelShape::ChannelShape(const CoalescedAxes& r) {
  // Kept and reduced runs alternate; the reduced ones are marked.
  int i = 0;
  auto take = [&](bool marked, std::int64_t& size) {
    if (i < r.n && r.marked[i] == marked) size = r.size[i++];
  };
  if (r.n >= 3 && !r.marked[0]) take(false, batch);
  if (i + 1 < r.n) take(true, outer);
  take(false, channels);
  take(true, inner);
  fits = i == r.n;
}

ChannelMatrix::ChannelMatrix(const ChannelShape& by_channel, int element_size) : f(by_channel) {
  constexpr std::int64_t kLongRun = 64, kFewRows = 8, kWide = 64, kMaxStream = 16 << 20;
  stream = f.batch * slab() * element_size >= kMaxStream;
  by_rows = f.inner >= kLongRun || (f.inner > 1 && f.outer < kFewRows);
  if (by_rows) {
    rows = f.batch * f.outer * f.channels;
    width = f.inner;
    row_block = 4096;
    return;
  }
  width = f.channels * f.inner;
  // The channels are repeated side by side up to a multiple of 16, so that all vectors are full.
  std::int64_t step = 16 / std::gcd(std::max<std::int64_t>(width, 1), std::int64_t(16));
  while (step * width < kWide && width > 0) step *= 2;
  if (width < kWide && f.outer >= step * kFewRows) repeat = step;
  width *= repeat;
  rows = f.outer / repeat;
  tail = f.outer % repeat * f.channels * f.inner;
  row_block =
      std::max<std::int64_t>(kFewRows, std::min<std::int64_t>(1024, (1 << 16) / std::max<std::int64_t>(width, 1)));
}

ReducedLast::ReducedLast(const TensorSpec& x, unsigned reduced) : by_channel_(CoalescedAxes(x, reduced)) {
  if (by_channel_.fits) return;
  std::int64_t strides[kMaxRank], to = x.numel();
  row_strides(x, strides);
  CoalescedAxes apart;
  for (bool last : {false, true})
    for (int i = 0; i < x.rank; ++i) {
      if ((reduced >> i & 1) != last) continue;
      to /= x.dims[i];
      to_last_.push(x.dims[i], strides[i], to);
      to_original_.push(x.dims[i], to, strides[i]);
      apart.push(x.dims[i], last);
    }
  by_channel_ = ChannelShape(apart);
}

}  // namespace kassette::ops

// ops/normalization/normalization_matrix.h - any shape and axes as a matrix, for batch normalisation on several
// threads.
#pragma once
#include <array>

#include "ops/reduce/reduce_runs.h"
#include "ops/normalization/normalization_loops.h"
#include "ops/shape/strided.h"

namespace kassette::ops {

/// A shape as [batch, outer, channels, inner]: outer and inner are reduced, and each (batch, channel) has a mean.
struct ChannelShape {
  std::int64_t batch = 1, outer = 1, channels = 1, inner = 1;
  bool fits;  // false if there are more runs than these four
  explicit ChannelShape(const CoalescedAxes& runs);
};

/// For shapes whose kept and reduced axes alternate more often than ChannelShape has room for: move_last() copies a
/// tensor so that the reduced axes are last, move_back() undoes that. Not needed if moves() is false.
class ReducedLast {
 public:
  ReducedLast(const TensorSpec& x, unsigned reduced);
  const ChannelShape& by_channel() const { return by_channel_; }
  bool moves() const { return to_last_.rank > 0; }
  template <class T>
  void move_last(const T* from, T* to) const {
    copy_strided(to_last_, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(T));
  }
  template <class T>
  void move_back(const T* from, T* to) const {
    copy_strided(to_original_, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(T));
  }

 private:
  ChannelShape by_channel_;
  Strided to_last_, to_original_;
};

// Note [Rows and columns]
// If each channel has long runs of memory (channels first, layer normalisation), the matrix has a row for each run, and
// parameters per row. Otherwise it has a column for each channel, and parameters per column. The elements of a short
// run are columns of their own, and a few channels (an image has 3) are repeated side by side, so that vectors are
// full; the last row is then incomplete, the tail, if the repetitions do not divide the outer size. ChannelMatrix is
// that matrix.
struct ChannelMatrix {
  ChannelShape f;
  bool by_rows, stream;
  std::int64_t repeat = 1;             // by columns: how often the channels are repeated side by side
  std::int64_t rows, width, tail = 0;  // by rows: of all batches. By columns: of one batch
  std::int64_t row_block;              // elements of a run, or rows, in a block of sums: depends on the shape alone

  ChannelMatrix(const ChannelShape& by_channel, int element_size);
  std::int64_t channels() const { return f.batch * f.channels; }
  std::int64_t count() const { return f.outer * f.inner; }  // elements of a channel
  std::int64_t slab() const { return f.outer * f.channels * f.inner; }
  /// The number of parameters that the loops read: by rows one per channel, else one per column.
  std::int64_t parameters() const { return by_rows ? channels() : f.batch * width; }
  bool repeats() const { return !by_rows && repeat * f.inner > 1; }
  std::int64_t channel_of(std::int64_t run) const {
    return run / (f.outer * f.channels) * f.channels + run % f.channels;
  }
  /// By rows: the index of run `o`, below f.outer, of a channel.
  std::int64_t run_of(std::int64_t channel, std::int64_t o) const {
    return (channel / f.channels * f.outer + o) * f.channels + channel % f.channels;
  }

  /// True by rows if there are enough channels to give each to one thread: Note [Channel by channel].
  bool channel_by_channel() const { return by_rows && channels() >= 4 * num_threads(); }
  /// By rows: calls sum(channel), then call(first element, rows, first parameter) on the rows of that channel, for all
  /// channels.
  template <class Sum, class F>
  void for_channels(Sum sum, F call) const;

  /// Calls call(first element, rows, first parameter) on parts of the matrix, on several threads.
  template <class F>
  void for_parts(F&& call) const;
};

inline constexpr std::int64_t kNormGrain = 1 << 14;  // elements that are worth a thread: Note [Worth a thread]

template <class F>
void ChannelMatrix::for_parts(F&& call) const {
  if (by_rows) {
    constexpr std::int64_t kRun = 1 << 16;  // elements of a run in one call, so that threads share long runs
    std::int64_t blocks = (width + kRun - 1) / kRun,
                 piece = std::max<std::int64_t>(1, kNormGrain / std::min(width, kRun));
    devices::parallel_for(rows * blocks, piece, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        std::int64_t run = begin / blocks, channel = run % f.channels, at = begin % blocks * kRun;
        std::int64_t n = blocks > 1 ? 1 : std::min(end - begin, f.channels - channel);
        call(run * width + at, RowMatrix{n, width, std::min(kRun, width - at), stream},
             run / (f.outer * f.channels) * f.channels + channel);
        begin += n;
      }
    });
    return;
  }
  devices::parallel_for(
      f.batch * rows, std::max<std::int64_t>(1, kNormGrain / width), [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          std::int64_t batch = begin / rows, row = begin % rows, n = std::min(end - begin, rows - row);
          call(batch * slab() + row * width, RowMatrix{n, width, width, stream}, batch * width);
          begin += n;
          if (tail && row + n == rows) call(batch * slab() + rows * width, RowMatrix{1, width, tail}, batch * width);
        }
      });
}

// Note [Channel by channel]
// Elements are summed, and read again once the sums are known. A large x and dy have left the caches by then; those of
// a single channel (32 images of 56 x 56: 0.4 MB each) have not. So a thread sums a channel and processes it again at
// once, and memory is read once. Channels of a few elements are taken several at a time.
template <class Sum, class F>
void ChannelMatrix::for_channels(Sum sum, F call) const {
  std::int64_t several = f.outer == 1 ? std::max<std::int64_t>(1, kNormGrain / width) : 1;
  devices::parallel_for(
      channels(), std::max<std::int64_t>(1, kNormGrain / count()), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin, n; c < end; c += n) {
          n = std::min(several, end - c);
          for (std::int64_t k = n; k-- > 0;) sum(c + k);
          if (f.outer == 1) call(c * width, RowMatrix{n, width, width, stream}, c);
          else call(run_of(c, 0) * width, RowMatrix{f.outer, f.channels * width, width, stream, /*alike=*/true}, c);
        }
      });
}

/// kCount sums per channel, of blocks whose borders depend on the shape alone, so that bits do not depend on the number
/// of threads. Blocks are summed from the last to the first: the end of x and dy was written last and may still be in
/// the cache, and their beginning, summed last, is what the next pass reads first.
template <class T, std::size_t kCount>
class ChannelSums {
 public:
  /// The addresses of some sums, or the sums.
  using To = std::array<T*, kCount>;
  using Values = std::array<T, kCount>;

  explicit ChannelSums(const ChannelMatrix& matrix)
      : m_(matrix), blocks_(m_.by_rows ? (m_.width + m_.row_block - 1) / m_.row_block
                                       : (m_.rows + m_.row_block - 1) / m_.row_block + (m_.tail > 0)),
        size_(m_.by_rows ? m_.rows * blocks_ : m_.f.batch * blocks_ * m_.width),
        sums_(static_cast<std::int64_t>(kCount) * size_) {}

  /// By rows: calls run(first element, n, channel, to), which sums part of a run, for all parts.
  template <class Run>
  void sum_runs(Run run) {
    std::int64_t most = std::min(m_.width, m_.row_block);
    backwards(m_.rows * blocks_, most, [&](std::int64_t u) { sum_part(u, run); });
  }
  template <class Run>
  void sum_channel(std::int64_t channel, Run run) {
    for (std::int64_t o = m_.f.outer; o-- > 0;)
      for (std::int64_t k = blocks_; k-- > 0;) sum_part(m_.run_of(channel, o) * blocks_ + k, run);
  }
  /// By columns: calls columns(first element, rows, first parameter, to), which sums a block of columns, for all
  /// blocks.
  template <class Columns>
  void sum_columns(Columns columns) {
    constexpr std::int64_t kChunk = 1024;  // columns in one call; the bits do not depend on it
    std::int64_t chunks = (m_.width + kChunk - 1) / kChunk,
                 unit = std::min(m_.rows, m_.row_block) * std::min(m_.width, kChunk);
    backwards(m_.f.batch * blocks_ * chunks, unit, [&](std::int64_t u) {
      std::int64_t column = u % chunks * kChunk, block = u / chunks, batch = block / blocks_,
                   row = block % blocks_ * m_.row_block;
      bool last = row >= m_.rows;  // the tail
      if (last) row = m_.rows;
      std::int64_t n = last ? 1 : std::min(m_.row_block, m_.rows - row), most = last ? m_.tail : m_.width;
      if (column >= most) return;
      columns(batch * m_.slab() + row * m_.width + column, RowMatrix{n, m_.width, std::min(kChunk, most - column)},
              batch * m_.width + column, to(block * m_.width + column));
    });
  }
  /// Calls f(number of elements, sums) for every part of a channel, in order.
  template <class F>
  void each(std::int64_t channel, F f) const {
    if (m_.by_rows) {
      for (std::int64_t o = 0; o < m_.f.outer; ++o)
        for (std::int64_t k = 0, u = m_.run_of(channel, o) * blocks_; k < blocks_; ++k, ++u)
          f(std::min(m_.row_block, m_.width - k * m_.row_block), values(u));
      return;
    }
    const std::int64_t batch = channel / m_.f.channels, inner = m_.f.inner, period = m_.f.channels * inner;
    for (std::int64_t block = 0; block < blocks_; ++block) {
      std::int64_t row = block * m_.row_block, u = (batch * blocks_ + block) * m_.width;
      std::int64_t n = row >= m_.rows ? 1 : std::min(m_.row_block, m_.rows - row),
                   most = row >= m_.rows ? m_.tail : m_.width;
      for (std::int64_t j = channel % m_.f.channels * inner; j < most; j += period)
        for (std::int64_t i = 0; i < inner; ++i) f(n, values(u + j + i));
    }
  }
  /// True if each channel has one part.
  bool whole() const { return blocks_ == 1 && (m_.by_rows ? m_.f.outer == 1 : !m_.repeats()); }

 private:
  /// Calls f(part) for n parts of `elements` elements, from the last to the first.
  template <class F>
  static void backwards(std::int64_t n, std::int64_t elements, F f) {
    devices::parallel_for(
        n, std::max<std::int64_t>(1, kNormGrain / elements),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t u = end; u-- > begin;) f(u);
        },
        devices::From::back);
  }
  template <class Run>
  void sum_part(std::int64_t u, Run& run) {
    std::int64_t r = u / blocks_, at = u % blocks_ * m_.row_block;
    run(r * m_.width + at, std::min(m_.row_block, m_.width - at), m_.channel_of(r), to(u));
  }
  To to(std::int64_t at) const {
    To all;
    for (std::size_t i = 0; i < kCount; ++i) all[i] = sums_.get() + static_cast<std::int64_t>(i) * size_ + at;
    return all;
  }
  Values values(std::int64_t at) const {
    Values all;
    for (std::size_t i = 0; i < kCount; ++i) all[i] = sums_.get()[static_cast<std::int64_t>(i) * size_ + at];
    return all;
  }
  const ChannelMatrix& m_;
  std::int64_t blocks_, size_;  // size_: of each kind of sums
  Scratch<T> sums_;
};

/// Parameters that are given per channel, repeated for each column if channels have several.
template <class T>
class PerColumn {
 public:
  PerColumn(const ChannelMatrix& w, const T* per_channel)
      : at_(per_channel), held_(w.repeats() && per_channel ? w.parameters() : 0) {
    if (!w.repeats() || !per_channel) return;
    T* to = held_.get();
    for (std::int64_t b = 0; b < w.f.batch; ++b)
      for (std::int64_t k = 0; k < w.repeat; ++k)
        for (std::int64_t c = 0; c < w.f.channels; ++c)
          for (std::int64_t i = 0; i < w.f.inner; ++i) *to++ = per_channel[b * w.f.channels + c];
    at_ = held_.get();
  }
  /// Null if the parameters are null.
  const T* from(std::int64_t parameter) const { return at_ ? at_ + parameter : nullptr; }

 private:
  const T* at_;
  Scratch<T> held_;
};

}  // namespace kassette::ops

// ops/normalization_walk.h - how batch normalisation goes over memory: any axes as rows and columns, on several threads.
#pragma once
#include "ops/fold.h"
#include "ops/normalization_loops.h"
#include "ops/strided.h"

namespace kassette {

/// A shape as [batch, outer, channels, inner]: outer and inner are reduced, there is one mean per (batch, channel).
struct Folded {
  std::int64_t batch = 1, outer = 1, channels = 1, inner = 1;
  bool fits;  // false: the runs are more than that
  explicit Folded(const CoalescedAxes& runs);
};

/// Where kept and reduced axes alternate more often than Folded has room for: copies with the reduced axes at the end.
class Order {
 public:
  Order(const TensorSpec& x, unsigned reduced);
  const Folded& folded() const { return folded_; }
  bool moves() const { return there_.rank > 0; }
  template <class T>
  void there(const T* from, T* to) const {
    copy_strided(there_, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(T));
  }
  template <class T>
  void back(const T* from, T* to) const {
    copy_strided(back_, reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), sizeof(T));
  }

 private:
  Folded folded_;
  Strided there_, back_;
};

// Note [Rows and columns]
// Where each channel has a long run of memory (channels first, layer normalisation), the matrix is one row per run, with parameters
// per row. Else it is one column per channel, with parameters per column: the runs of a channel, if any, are columns of their own, and
// a few channels (an image has 3) stand side by side several times, so that vectors are full. The last rows of such a matrix may not
// fill a line: the tail.
struct Walk {
  Folded f;
  bool by_rows, stream;
  std::int64_t repeat = 1;             // columns: how often the channels stand side by side
  std::int64_t rows, width, tail = 0;  // by rows: all runs, of `width`. By columns: per batch
  std::int64_t row_block;              // elements of a run, or rows, that are summed at once: given by the shape alone

  Walk(const Folded& folded, int element_size);
  std::int64_t channels() const { return f.batch * f.channels; }
  std::int64_t count() const { return f.outer * f.inner; }  // elements of a channel
  std::int64_t slab() const { return f.outer * f.channels * f.inner; }
  /// Parameters that the loops read: one per row or column.
  std::int64_t parameters() const { return by_rows ? channels() : f.batch * width; }
  bool repeats() const { return !by_rows && repeat * f.inner > 1; }
  std::int64_t channel_of(std::int64_t run) const {
    return run / (f.outer * f.channels) * f.channels + run % f.channels;
  }
  /// By rows: the run of a channel that is number `o` among its `outer`.
  std::int64_t run_of(std::int64_t channel, std::int64_t o) const {
    return (channel / f.channels * f.outer + o) * f.channels + channel % f.channels;
  }

  /// Whether there are channels enough to give each to one thread, whole.
  bool channel_by_channel() const { return by_rows && channels() >= 4 * num_threads(); }
  /// By rows, channel by channel: sum(channel), then call(first element, rows, first parameter) on what it was for.
  template <class Sum, class F>
  void for_channels(Sum sum, F call) const;

  /// Calls f(first element, rows, first parameter) on parts of the matrix, on several threads.
  template <class F>
  void for_parts(F&& call) const;
};

inline constexpr std::int64_t kNormGrain = 1 << 14;

template <class F>
void Walk::for_parts(F&& call) const {
  if (by_rows) {
    constexpr std::int64_t kRun = 1 << 16;
    std::int64_t blocks = (width + kRun - 1) / kRun,
                 piece = std::max<std::int64_t>(1, kNormGrain / std::min(width, kRun));
    parallel_for(rows * blocks, piece, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        std::int64_t run = begin / blocks, channel = run % f.channels, at = begin % blocks * kRun;
        std::int64_t n = blocks > 1 ? 1 : std::min(end - begin, f.channels - channel);
        call(run * width + at, Rows{n, width, std::min(kRun, width - at), stream},
             run / (f.outer * f.channels) * f.channels + channel);
        begin += n;
      }
    });
    return;
  }
  parallel_for(f.batch * rows, std::max<std::int64_t>(1, kNormGrain / width),
               [&](std::int64_t begin, std::int64_t end) {
                 while (begin < end) {
                   std::int64_t batch = begin / rows, row = begin % rows, n = std::min(end - begin, rows - row);
                   call(batch * slab() + row * width, Rows{n, width, width, stream}, batch * width);
                   begin += n;
                   if (tail && row + n == rows)
                     call(batch * slab() + rows * width, Rows{1, width, tail}, batch * width);
                 }
               });
}

// Note [Channel by channel]
// What is summed is read again when the sums are known. Of all of a large x and dy nothing is in the caches by then; of one
// channel (32 images of 56 x 56: 0.4 MB each) both are. So a thread sums a channel and goes over it again at once, and memory
// is read once. Channels of a few elements are taken several at a time.
template <class Sum, class F>
void Walk::for_channels(Sum sum, F call) const {
  std::int64_t several = f.outer == 1 ? std::max<std::int64_t>(1, kNormGrain / width) : 1;
  parallel_for(channels(), std::max<std::int64_t>(1, kNormGrain / count()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin, n; c < end; c += n) {
      n = std::min(several, end - c);
      for (std::int64_t k = n; k-- > 0;) sum(c + k);
      if (f.outer == 1) call(c * width, Rows{n, width, width, stream}, c);
      else call(run_of(c, 0) * width, Rows{f.outer, f.channels * width, width, stream, /*alike=*/true}, c);
    }
  });
}

/// Two sums per channel, from blocks whose borders the shape gives: the same bits on any number of threads. From the end to the
/// beginning: what came last to x and dy is still in the cache, and what is summed last is what is read first again.
template <class T>
class Parts {
 public:
  explicit Parts(const Walk& walk)
      : w_(walk), blocks_(w_.by_rows ? (w_.width + w_.row_block - 1) / w_.row_block
                                     : (w_.rows + w_.row_block - 1) / w_.row_block + (w_.tail > 0)),
        a_(w_.by_rows ? w_.rows * blocks_ : w_.f.batch * blocks_ * w_.width),
        b_(w_.by_rows ? w_.rows * blocks_ : w_.f.batch * blocks_ * w_.width) {}

  /// By rows: run(first element, n, channel, a, b) sums part of a run.
  template <class Run>
  void sum_runs(Run run) {
    std::int64_t most = std::min(w_.width, w_.row_block);
    backwards(w_.rows * blocks_, most, [&](std::int64_t u) { sum_part(u, run); });
  }
  template <class Run>
  void sum_channel(std::int64_t channel, Run run) {
    for (std::int64_t o = w_.f.outer; o-- > 0;)
      for (std::int64_t k = blocks_; k-- > 0;) sum_part(w_.run_of(channel, o) * blocks_ + k, run);
  }
  /// By columns: columns(first element, rows, first parameter, a, b).
  template <class Columns>
  void sum_columns(Columns columns) {
    constexpr std::int64_t kChunk = 1024;
    std::int64_t chunks = (w_.width + kChunk - 1) / kChunk,
                 unit = std::min(w_.rows, w_.row_block) * std::min(w_.width, kChunk);
    backwards(w_.f.batch * blocks_ * chunks, unit, [&](std::int64_t u) {
      std::int64_t column = u % chunks * kChunk, block = u / chunks, batch = block / blocks_,
                   row = block % blocks_ * w_.row_block;
      bool last = row >= w_.rows;  // the tail
      if (last) row = w_.rows;
      std::int64_t n = last ? 1 : std::min(w_.row_block, w_.rows - row), most = last ? w_.tail : w_.width;
      if (column >= most) return;
      columns(batch * w_.slab() + row * w_.width + column, Rows{n, w_.width, std::min(kChunk, most - column)},
              batch * w_.width + column, a_.get() + block * w_.width + column, b_.get() + block * w_.width + column);
    });
  }
  /// f(elements, a, b) for every part of a channel, in order.
  template <class F>
  void each(std::int64_t channel, F f) const {
    if (w_.by_rows) {
      for (std::int64_t o = 0; o < w_.f.outer; ++o)
        for (std::int64_t k = 0, u = w_.run_of(channel, o) * blocks_; k < blocks_; ++k, ++u)
          f(std::min(w_.row_block, w_.width - k * w_.row_block), a_.get()[u], b_.get()[u]);
      return;
    }
    const std::int64_t batch = channel / w_.f.channels, inner = w_.f.inner, period = w_.f.channels * inner;
    for (std::int64_t block = 0; block < blocks_; ++block) {
      std::int64_t row = block * w_.row_block, u = (batch * blocks_ + block) * w_.width;
      std::int64_t n = row >= w_.rows ? 1 : std::min(w_.row_block, w_.rows - row),
                   most = row >= w_.rows ? w_.tail : w_.width;
      for (std::int64_t j = channel % w_.f.channels * inner; j < most; j += period)
        for (std::int64_t i = 0; i < inner; ++i) f(n, a_.get()[u + j + i], b_.get()[u + j + i]);
    }
  }
  /// Whether there is one part a channel.
  bool whole() const { return blocks_ == 1 && (w_.by_rows ? w_.f.outer == 1 : !w_.repeats()); }

 private:
  /// f(part) for n parts of so many elements.
  template <class F>
  static void backwards(std::int64_t n, std::int64_t elements, F f) {
    parallel_for(
        n, std::max<std::int64_t>(1, kNormGrain / elements),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t u = end; u-- > begin;) f(u);
        },
        From::back);
  }
  template <class Run>
  void sum_part(std::int64_t u, Run& run) {
    std::int64_t r = u / blocks_, at = u % blocks_ * w_.row_block;
    run(r * w_.width + at, std::min(w_.row_block, w_.width - at), w_.channel_of(r), a_.get() + u, b_.get() + u);
  }
  const Walk& w_;
  std::int64_t blocks_;
  Scratch<T> a_, b_;
};

/// Parameters, one per channel, as the loops read them.
template <class T>
class PerColumn {
 public:
  PerColumn(const Walk& w, const T* per_channel)
      : at_(per_channel), held_(w.repeats() && per_channel ? w.parameters() : 0) {
    if (!w.repeats() || !per_channel) return;
    T* to = held_.get();
    for (std::int64_t b = 0; b < w.f.batch; ++b)
      for (std::int64_t k = 0; k < w.repeat; ++k)
        for (std::int64_t c = 0; c < w.f.channels; ++c)
          for (std::int64_t i = 0; i < w.f.inner; ++i) *to++ = per_channel[b * w.f.channels + c];
    at_ = held_.get();
  }
  /// Null stays null.
  const T* from(std::int64_t parameter) const { return at_ ? at_ + parameter : nullptr; }

 private:
  const T* at_;
  Scratch<T> held_;
};

}  // namespace kassette

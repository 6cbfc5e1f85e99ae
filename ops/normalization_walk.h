// ops/normalization_walk.h - how batch normalisation goes over memory: any axes as rows and columns, on several threads.
#pragma once
#include "ops/fold.h"
#include "ops/normalization_loops.h"
#include "ops/strided.h"

namespace kassette {

/// A shape as [batch, outer, channels, inner]: outer and inner are reduced, there is one mean per (batch, channel).
struct Folded {
  std::int64_t batch = 1, outer = 1, channels = 1, inner = 1;
  bool fits;   // false: the runs are more than that
  explicit Folded(const Runs& runs);
};

/// Where kept and reduced axes alternate more often than Folded has room for: copies with the reduced axes at the end.
class Order {
 public:
  Order(const Spec& x, unsigned reduced);
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
  std::int64_t repeat = 1;            // columns: how often the channels stand side by side
  std::int64_t rows, width, tail = 0; // by rows: all runs, of `width`. By columns: per batch
  std::int64_t row_block;             // elements of a run, or rows, that are summed at once: given by the shape alone

  Walk(const Folded& folded, int element_size);
  std::int64_t channels() const { return f.batch * f.channels; }
  std::int64_t count() const { return f.outer * f.inner; }   // elements of a channel
  std::int64_t slab() const { return f.outer * f.channels * f.inner; }
  /// Parameters that the loops read: one per row or column.
  std::int64_t parameters() const { return by_rows ? channels() : f.batch * width; }
  bool repeats() const { return !by_rows && repeat * f.inner > 1; }

  /// Calls f(first element, rows, first parameter) on parts of the matrix, on several threads.
  template <class F>
  void for_parts(F&& call) const;
};

inline constexpr std::int64_t kNormGrain = 1 << 14;

template <class F>
void Walk::for_parts(F&& call) const {
  if (by_rows) {
    constexpr std::int64_t kRun = 1 << 16;
    std::int64_t blocks = (width + kRun - 1) / kRun, piece = std::max<std::int64_t>(1, kNormGrain / std::min(width, kRun));
    parallel_for(rows * blocks, piece, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        std::int64_t run = begin / blocks, channel = run % f.channels, at = begin % blocks * kRun;
        std::int64_t n = blocks > 1 ? 1 : std::min(end - begin, f.channels - channel);
        call(run * width + at, Rows{n, width, std::min(kRun, width - at), stream}, run / (f.outer * f.channels) * f.channels + channel);
        begin += n;
      }
    });
    return;
  }
  parallel_for(f.batch * rows, std::max<std::int64_t>(1, kNormGrain / width), [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      std::int64_t batch = begin / rows, row = begin % rows, n = std::min(end - begin, rows - row);
      call(batch * slab() + row * width, Rows{n, width, width, stream}, batch * width);
      begin += n;
      if (tail && row + n == rows) call(batch * slab() + rows * width, Rows{1, width, tail}, batch * width);
    }
  });
}

/// Two sums per channel, from blocks whose borders the shape gives: the same bits on any number of threads. From the end to the
/// beginning: what came last to x and dy is still in the cache, and what is summed last is what for_parts reads first.
template <class T>
class Parts {
 public:
  /// columns(first element, rows, first parameter, a, b) sums columns, run(first element, n, channel, a, b) one run.
  template <class Columns, class Run>
  Parts(const Walk& walk, Columns columns, Run run)
      : w_(walk), blocks_(w_.by_rows ? (w_.width + w_.row_block - 1) / w_.row_block
                                     : (w_.rows + w_.row_block - 1) / w_.row_block + (w_.tail > 0)),
        a_(w_.by_rows ? w_.rows * blocks_ : w_.f.batch * blocks_ * w_.width), b_(w_.by_rows ? w_.rows * blocks_ : w_.f.batch * blocks_ * w_.width) {
    if (w_.by_rows) {
      std::int64_t most = std::min(w_.width, w_.row_block);
      parallel_for(w_.rows * blocks_, std::max<std::int64_t>(1, kNormGrain / most), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t u = end; u-- > begin;) {
          std::int64_t r = u / blocks_, at = u % blocks_ * w_.row_block;
          run(r * w_.width + at, std::min(w_.row_block, w_.width - at), channel_of(r), a_.get() + u, b_.get() + u);
        }
      });
      return;
    }
    constexpr std::int64_t kChunk = 1024;
    std::int64_t chunks = (w_.width + kChunk - 1) / kChunk, unit = std::min(w_.rows, w_.row_block) * std::min(w_.width, kChunk);
    parallel_for(w_.f.batch * blocks_ * chunks, std::max<std::int64_t>(1, kNormGrain / unit), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = end; u-- > begin;) {
        std::int64_t column = u % chunks * kChunk, block = u / chunks, batch = block / blocks_, row = block % blocks_ * w_.row_block;
        bool last = row >= w_.rows;   // the tail
        if (last) row = w_.rows;
        std::int64_t n = last ? 1 : std::min(w_.row_block, w_.rows - row), most = last ? w_.tail : w_.width;
        if (column >= most) continue;
        columns(batch * w_.slab() + row * w_.width + column, Rows{n, w_.width, std::min(kChunk, most - column)},
                batch * w_.width + column, a_.get() + block * w_.width + column, b_.get() + block * w_.width + column);
      }
    });
  }
  /// Whether there is one part a channel, in their order: a() and b() are the result.
  bool whole() const { return blocks_ == 1 && (w_.by_rows ? w_.f.outer == 1 : !w_.repeats()); }
  const T* a() const { return a_.get(); }
  const T* b() const { return b_.get(); }
  /// f(channel, elements, a, b) for every part, in order.
  template <class F>
  void each(F f) const {
    const T *a = a_.get(), *b = b_.get();
    if (w_.by_rows) {
      for (std::int64_t r = 0; r < w_.rows; ++r)
        for (std::int64_t k = 0; k < blocks_; ++k, ++a, ++b)
          f(channel_of(r), std::min(w_.row_block, w_.width - k * w_.row_block), *a, *b);
      return;
    }
    for (std::int64_t u = 0; u < w_.f.batch * blocks_; ++u, a += w_.width, b += w_.width) {
      std::int64_t row = u % blocks_ * w_.row_block, base = u / blocks_ * w_.f.channels;
      std::int64_t n = row >= w_.rows ? 1 : std::min(w_.row_block, w_.rows - row), most = row >= w_.rows ? w_.tail : w_.width;
      for (std::int64_t j = 0; j < most;)
        for (std::int64_t c = 0; c < w_.f.channels && j < most; ++c)
          for (std::int64_t i = 0; i < w_.f.inner && j < most; ++i, ++j) f(base + c, n, a[j], b[j]);
    }
  }

 private:
  std::int64_t channel_of(std::int64_t run) const { return run / (w_.f.outer * w_.f.channels) * w_.f.channels + run % w_.f.channels; }
  const Walk& w_;
  std::int64_t blocks_;
  Scratch<T> a_, b_;
};

/// Parameters, one per channel, as the loops read them.
template <class T>
class PerColumn {
 public:
  PerColumn(const Walk& w, const T* per_channel) : at_(per_channel), held_(w.repeats() && per_channel ? w.parameters() : 0) {
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

// ops/convolution/conv_sums.h - the buffers in which the kernel gradient of a convolution is summed on the CPU.
#pragma once
#include "devices/cpu/threads.h"
#include "ops/elementwise/cast.h"
#include "ops/convolution/conv_tiles.h"

namespace kassette::ops {

/// The most parts into which the pixels may be divided if each part has `sums` sums of its own:
/// conv_limits.partial_bytes bounds their memory.
template <class T>
std::int64_t most_parts(std::int64_t sums) {
  return 1 + conv_limits.partial_bytes / (sums * static_cast<std::int64_t>(sizeof(T)));
}

/// The sums of each part of the pixels: the first part sums in the result itself, the others in buffers. The caller
/// sets them to zero.
template <class T>
class Partials {
 public:
  Partials(T* to, std::int64_t parts, std::int64_t size)
      : to_(to), parts_(parts), size_(size), others_((parts - 1) * size) {}
  /// The sums of a part.
  T* of(std::int64_t part) const { return part == 0 ? to_ : others_.get() + (part - 1) * size_; }
  /// Adds the sums of all parts to those of the first, in the order of the parts, so that the bits do not depend on the
  /// threads.
  void add() const {
    if (parts_ == 1) return;
    devices::parallel_for(size_, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = 1; part < parts_; ++part)
        for (std::int64_t i = begin; i < end; ++i) to_[i] += of(part)[i];
    });
  }

 private:
  T* to_;
  std::int64_t parts_, size_;
  Scratch<T> others_;
};

/// The sums of a block of the kernel, (taps, channels, columns). They are kept in the gradient itself if it has dtype T
/// and `whole` says that its layout is that of the block, else in a buffer of `most` elements.
template <class T>
class KernelSums {
 public:
  KernelSums(const Weights& to, bool whole, std::int64_t most)
      : to_(to), direct_(whole && to.dtype.size() == static_cast<int>(sizeof(T))), buffer_(direct_ ? 0 : most) {}
  T* get() const { return direct_ ? reinterpret_cast<T*>(to_.data) : buffer_.get(); }
  /// Writes the sums to the gradient, from `column` on, unless they are there already.
  void write(const Block& block, std::int64_t column, std::int64_t columns) const {
    if (direct_) return;
    const T* from = buffer_.get();
    const bool rows_joined = columns == to_.in;
    const std::int64_t rows = rows_joined ? 1 : block.channels, n = rows_joined ? block.channels * columns : columns;
    for (std::int64_t a = 0; a < block.axis[0].taps; ++a)
      for (std::int64_t b = 0; b < block.axis[1].taps; ++b)
        for (std::int64_t c = 0; c < block.axis[2].taps; ++c)
          for (std::int64_t row = 0; row < rows; ++row, from += n)
            cast_elements(to_.from(to_.at(block.axis, a, b, c) + (block.channel + row) * to_.in + column).data,
                          to_.dtype, from, sizeof(T) == 4 ? float32 : float64, n);
  }

 private:
  Weights to_;
  bool direct_;
  Scratch<T> buffer_;
};

}  // namespace kassette::ops

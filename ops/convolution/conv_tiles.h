// ops/convolution/conv_tiles.h - tiling of correlations on the CPU (Note [Correlations], window.h): how results are cut
// into tiles, a tile's input and output.
//
// A tile is a box of results of one image. It reads its input from x in place if channels are last and no padding is
// touched; otherwise the input is copied, with padding, into a buffer of about 256 KB (conv_boxes.h). Neighbouring
// pixels of a line by two vectors of channels are a block of a product, devices/cpu/gemm.h: a row of A is the window of
// a pixel, whose values are a run for each row of taps or for each tap, and B are packed weights; so that no im2col
// matrix is formed. The order of summation depends on the shape of the kernel only: the bits depend neither on the
// number of threads nor on the batch, nor on how an image was cut. If results have few channels, the values of a window
// are in the vector lanes instead (conv_loops.h).
#pragma once
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "ops/convolution/conv_boxes.h"
#include "ops/convolution/conv_kernels.h"
#include "ops/convolution/conv_loops.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/convolution/window.h"

namespace kassette::ops {

template <class T>
const ConvLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(conv_table).f32;
  else return KASSETTE_PICK(conv_table).f64;
}
inline std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// A view of a kernel, or of a kernel gradient, for a correlation. Strides in elements: of the taps, of the channels
/// that are summed over (in) and of the results' channels (out).
struct Weights {
  std::byte* data;
  DType dtype;
  std::int64_t tap[3], in, out;
  /// The index of the element at which the weights of tap (a, b, c) of a correlation begin.
  std::int64_t at(const CorrelationAxis* axis, std::int64_t a, std::int64_t b, std::int64_t c) const {
    return axis[0].weight(a) * tap[0] + axis[1].weight(b) * tap[1] + axis[2].weight(c) * tap[2];
  }
  /// The view that begins at an element.
  Weights from(std::int64_t element) const {
    Weights some = *this;
    some.data += element * dtype.size();
    return some;
  }
};
/// Packs weights as T: for each tap of `axis` and each of n channels that are summed over, a row of `columns` weights
/// (one per channel of the results), filled up with zeros to `width`.
template <class T>
void pack_panel(const CorrelationAxis* axis, const Weights& w, std::int64_t n, std::int64_t columns, std::int64_t width,
                T* to);

/// A part of the sum of a result: a range of taps of each axis, and a range of channels.
struct Block {
  CorrelationAxis axis[3];
  std::int64_t channel, channels;
  std::int64_t before;  // the number of products per result in earlier blocks

  std::int64_t products() const { return axis[0].taps * axis[1].taps * axis[2].taps * channels; }
};
/// Divides the sum of a result into blocks of at most `most` products: first the channels, down to 8, then the taps.
/// Also divides the widest axis of the taps as long as they are so far apart that a block would read a box of more than
/// `most_elements` elements for one result.
inline std::vector<Block> blocks_of(const CorrelationAxis* axis, std::int64_t c_in, std::int64_t most,
                                    double most_elements = HUGE_VAL) {
  const std::int64_t least = std::min<std::int64_t>(c_in, 8);
  std::int64_t parts[3] = {1, 1, 1};
  auto taps_of = [&](int d) { return ceil_div(axis[d].taps, parts[d]); };
  auto taps = [&] { return taps_of(0) * taps_of(1) * taps_of(2); };
  auto divide = [&](int d) { parts[d] = std::min(axis[d].taps, 2 * parts[d]); };
  for (int d = 0; d < 3; ++d)
    while (taps() * least > most && parts[d] < axis[d].taps) divide(d);
  auto channels = [&] { return std::clamp(most / taps(), least, c_in); };
  auto reach = [&](int d) { return (taps_of(d) - 1) * axis[d].tap_step; };
  auto elements = [&] {  // a double, since the product may overflow an integer
    double n = static_cast<double>(channels());
    for (int d = 0; d < 3; ++d) n *= static_cast<double>(reach(d) + 1);
    return n;
  };
  while (elements() > most_elements) {
    const int widest = reach(0) >= std::max(reach(1), reach(2)) ? 0 : reach(1) >= reach(2) ? 1 : 2;
    if (reach(widest) == 0) break;
    divide(widest);
  }
  const std::int64_t channel_parts = ceil_div(c_in, channels()),
                     n_blocks = parts[0] * parts[1] * parts[2] * channel_parts;
  std::vector<Block> blocks;
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < n_blocks; ++i) {
    const std::int64_t c = i % channel_parts;
    Block b{.axis = {axis[0], axis[1], axis[2]}, .channel = c_in * c / channel_parts, .channels = 0, .before = before};
    b.channels = c_in * (c + 1) / channel_parts - b.channel;
    for (std::int64_t d = 2, rest = i / channel_parts; d >= 0; rest /= parts[d], --d) {
      CorrelationAxis& l = b.axis[d];
      const std::int64_t part = rest % parts[d], first = axis[d].taps * part / parts[d];
      l.taps = axis[d].taps * (part + 1) / parts[d] - first;
      l.start += first * l.tap_step;
      l.weight_start += first * l.weight_step;
    }
    before += b.products();
    blocks.push_back(b);
  }
  return blocks;
}

/// A block with the maximum over all blocks of the taps of each axis and of the channels: buffers of that size suffice
/// for each block.
inline Block largest_of(const std::vector<Block>& blocks) {
  Block largest = blocks[0];
  for (const Block& b : blocks) {
    for (int d = 0; d < 3; ++d) largest.axis[d].taps = std::max(largest.axis[d].taps, b.axis[d].taps);
    largest.channels = std::max(largest.channels, b.channels);
  }
  return largest;
}

/// A division of the results into tiles. Each tile lies within one image.
struct Tiling {
  std::int64_t results[3], size[3], number[3], images;

  std::int64_t count() const { return images * number[0] * number[1] * number[2]; }
  /// Sets `first` and `n` to the first result of tile i and the number of its results along each axis; returns the
  /// image.
  std::int64_t place(std::int64_t i, std::int64_t* first, std::int64_t* n) const {
    for (int d = 2; d >= 0; --d) {
      const std::int64_t k = i % number[d];
      i /= number[d];
      // Tiles differ in size by at most one result per axis.
      first[d] = results[d] * k / number[d];
      n[d] = results[d] * (k + 1) / number[d] - first[d];
    }
    return i;
  }
};

/// Chooses the tiles: the input of each, of `bytes` per point, fits conv_limits.slab_bytes, and its results, of
/// `result_bytes` per point, twice that. Aims for at least `enough` tiles. A tile is narrower than `least_columns` only
/// if it would not fit twice the slab otherwise.
inline Tiling cut(const CorrelationAxis* axis, std::int64_t images, std::int64_t bytes, std::int64_t result_bytes,
                  std::int64_t least_columns, std::int64_t enough) {
  Tiling t{.results = {axis[0].results, axis[1].results, axis[2].results},
           .size = {1, 1, axis[2].results},
           .number = {},
           .images = images};
  auto fits_in = [&](std::int64_t room) {
    return axis[0].span(1) * axis[1].span(t.size[1]) * axis[2].span(t.size[2]) * bytes <= room &&
           t.size[1] * t.size[2] * result_bytes <= 2 * room;
  };
  auto fits = [&] { return fits_in(conv_limits.slab_bytes); };
  while (!fits() && t.size[2] > least_columns) t.size[2] = std::max(least_columns, (t.size[2] + 1) / 2);
  while (!fits_in(2 * conv_limits.slab_bytes) && t.size[2] > 1) t.size[2] = (t.size[2] + 1) / 2;
  while (t.size[1] < t.results[1]) {
    const std::int64_t before = t.size[1];
    t.size[1] = std::min(t.results[1], t.size[1] * 2);
    if (!fits()) {
      t.size[1] = before;
      break;
    }
  }
  auto count = [&] {
    for (int d = 0; d < 3; ++d) t.number[d] = ceil_div(t.results[d], t.size[d]);
    return t.count();
  };
  while (count() < enough && t.size[1] > 1) t.size[1] = (t.size[1] + 1) / 2;
  while (count() < enough && t.size[2] > 4 * least_columns) t.size[2] = (t.size[2] + 1) / 2;
  return t;
}

/// The offsets in a tile's input at which the contiguous stretches of a window begin: one stretch per tap or, if
/// `joined`, one per row of taps, which are contiguous then.
struct Stretches {
  std::vector<std::int64_t> offsets;
  std::int64_t length;

  Stretches(const CorrelationAxis* axis, const std::int64_t* stride, std::int64_t channels, bool joined)
      : length(joined ? axis[2].taps * channels : channels) {
    offsets.reserve(axis[0].taps * axis[1].taps * (joined ? 1 : axis[2].taps));
    for (std::int64_t a = 0; a < axis[0].taps; ++a)
      for (std::int64_t b = 0; b < axis[1].taps; ++b)
        for (std::int64_t c = 0; c < (joined ? 1 : axis[2].taps); ++c)
          offsets.push_back(a * axis[0].tap_step * stride[0] + b * axis[1].tap_step * stride[1] +
                            c * axis[2].tap_step * stride[2]);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()); }
};

/// A run of neighbouring results of a line whose windows have the same taps inside the input. Tap i reads the element
/// at[i] after the window's origin and has the weight at weight[i].
struct WindowRun {
  const std::int64_t *at, *weight;
  std::int64_t taps, first, count;
  std::int64_t origin;  // of the first result's window; it may lie before the input
};

/// Divides lines of results into runs. A window that the border cuts is a run by itself.
class WindowWalk {
 public:
  /// The input has `size` points, `stride` elements apart; the weights of neighbouring taps of axis d are
  /// weight_step[d] apart.
  WindowWalk(const CorrelationAxis* axis, const std::int64_t* size, const std::int64_t* stride,
             const std::int64_t* weight_step)
      : axis_(axis), size_(size), stride_(stride), weight_step_(weight_step) {}

  /// Calls f(run) for each run of the results [first, first + n) of line (a, b).
  template <class F>
  void line(std::int64_t a, std::int64_t b, std::int64_t first, std::int64_t n, F&& f) {
    const std::int64_t low[2] = {axis_[0].low(a), axis_[1].low(b)};
    Range taps[3] = {inside(0, low[0]), inside(1, low[1]), {0, axis_[2].taps}};
    const CorrelationAxis& l = axis_[2];
    const std::int64_t end = first + n, room = size_[2] - 1 - l.start - (l.taps - 1) * l.tap_step;
    const std::int64_t whole = std::clamp(l.start < 0 ? ceil_div(-l.start, l.step) : 0, first, end);
    const std::int64_t whole_end = std::clamp(room < 0 ? 0 : room / l.step + 1, whole, end);
    auto run = [&](std::int64_t p, std::int64_t count) {
      list(taps);
      f(WindowRun{at_.data(), weight_.data(), static_cast<std::int64_t>(at_.size()), p, count,
                  low[0] * stride_[0] + low[1] * stride_[1] + l.low(p) * stride_[2]});
    };
    auto cut = [&](std::int64_t p) {
      taps[2] = inside(2, l.low(p));
      run(p, 1);
    };
    for (std::int64_t p = first; p < whole; ++p) cut(p);
    taps[2] = {0, l.taps};
    if (whole < whole_end) run(whole, whole_end - whole);
    for (std::int64_t p = whole_end; p < end; ++p) cut(p);
  }

 private:
  /// The taps [begin, end) of one axis.
  struct Range {
    std::int64_t begin, end;
    bool operator==(const Range&) const = default;
  };
  /// The taps that lie inside the input, of a window that begins at element `low` of axis d.
  Range inside(int d, std::int64_t low) const {
    const CorrelationAxis& l = axis_[d];
    const std::int64_t begin = low < 0 ? std::min(l.taps, ceil_div(-low, l.tap_step)) : 0,
                       end = low < size_[d] ? (size_[d] - 1 - low) / l.tap_step + 1 : 0;
    return {begin, std::clamp(end, begin, l.taps)};
  }
  void list(const Range* taps) {
    if (std::equal(taps, taps + 3, listed_)) return;
    std::copy_n(taps, 3, listed_);
    at_.clear();
    weight_.clear();
    for (std::int64_t a = taps[0].begin; a < taps[0].end; ++a)
      for (std::int64_t b = taps[1].begin; b < taps[1].end; ++b)
        for (std::int64_t c = taps[2].begin; c < taps[2].end; ++c) {
          at_.push_back(a * axis_[0].tap_step * stride_[0] + b * axis_[1].tap_step * stride_[1] +
                        c * axis_[2].tap_step * stride_[2]);
          weight_.push_back(a * weight_step_[0] + b * weight_step_[1] + c * weight_step_[2]);
        }
  }
  const CorrelationAxis* axis_;
  const std::int64_t *size_, *stride_, *weight_step_;
  Range listed_[3] = {};
  std::vector<std::int64_t> at_, weight_;
};

/// The input of a tile: x itself, or a padded copy of a box of it.
template <class T>
class Slab {
 public:
  Slab(const Images& x, std::int64_t repeat, std::int64_t align) : x_(x), repeat_(repeat), align_(align) {}
  /// True if a box that contains no padding can be read from x in place: dtype, layout and repetition are those that
  /// the loops need.
  bool direct() const { return x_.dtype.size() == static_cast<int>(sizeof(T)) && repeat_ == 1 && x_.channels_last(); }
  /// Makes a box available: its first element is at data(), and its points have the strides stride().
  void read(const Box& box) {
    const std::int64_t wide = round_up(box.channels * repeat_, align_);
    if (direct() && wide == box.channels && box.inside(x_)) {
      data_ = reinterpret_cast<const T*>(x_.data) + x_.offset(box.image, box.low, box.channel);
      std::copy_n(x_.stride, 3, stride_);
      return;
    }
    const std::int64_t n = box.points() * wide;
    if (n > room_) {
      room_ = 0;
      buffer_.reset(new Scratch<T>(n));
      if (x_.dtype.size() != static_cast<int>(sizeof(T))) spare_.reset(new Scratch<std::uint16_t>(n));
      room_ = n;
    }
    read_box(x_, box, repeat_, wide, buffer_->get(), spare_ ? spare_->get() : nullptr);
    data_ = buffer_->get();
    stride_[2] = wide;
    stride_[1] = box.count[2] * wide;
    stride_[0] = box.count[1] * stride_[1];
  }
  const T* data() const { return data_; }
  const std::int64_t* stride() const { return stride_; }

 private:
  const Images& x_;
  std::int64_t repeat_, align_, room_ = 0;
  std::unique_ptr<Scratch<T>> buffer_;
  std::unique_ptr<Scratch<std::uint16_t>> spare_;
  const T* data_ = nullptr;
  std::int64_t stride_[3] = {};
};

/// The results of a tile: in y itself, or in a buffer that end() copies to y.
template <class T>
class Results {
 public:
  Results(const Images& y, std::int64_t points, std::int64_t channels) : y_(y), direct_(direct(y)) {
    if (direct_) return;
    buffer_.reset(new Scratch<T>(points * channels));
    if (y.dtype.size() != static_cast<int>(sizeof(T))) spare_.reset(new Scratch<std::uint16_t>(points * channels));
  }
  void begin(const Box& box) {
    box_ = box;
    if (direct_) {
      data_ = reinterpret_cast<T*>(y_.data) + y_.offset(box.image, box.low, box.channel);
      for (int d = 0; d < 3; ++d) stride_[d] = y_.stride[d] * box.step[d];
      return;
    }
    data_ = buffer_->get();
    stride_[2] = box.channels;
    stride_[1] = box.count[2] * stride_[2];
    stride_[0] = box.count[1] * stride_[1];
  }
  /// True if results of type T are computed in y itself, without a buffer.
  static bool direct(const Images& y) { return y.channels_last() && y.dtype.size() == static_cast<int>(sizeof(T)); }
  T* row(std::int64_t a, std::int64_t b) const { return data_ + a * stride_[0] + b * stride_[1]; }
  std::int64_t step() const { return stride_[2]; }
  void end() const {
    if (!direct_) write_box(y_, box_, box_.channels, data_, spare_ ? spare_->get() : nullptr);
  }

 private:
  const Images& y_;
  bool direct_;
  Box box_{};
  std::unique_ptr<Scratch<T>> buffer_;
  std::unique_ptr<Scratch<std::uint16_t>> spare_;
  T* data_ = nullptr;
  std::int64_t stride_[3] = {};
};

/// The box of an image that the results [first, first + n) of each axis read; output_box() returns the box that they
/// are written to.
inline Box input_box(const CorrelationAxis* axis, std::int64_t image, const std::int64_t* first, const std::int64_t* n,
                     std::int64_t channel, std::int64_t channels) {
  Box box{.image = image, .low = {}, .count = {}, .channel = channel, .channels = channels};
  for (int d = 0; d < 3; ++d) {
    box.low[d] = axis[d].low(first[d]);
    box.count[d] = axis[d].span(n[d]);
  }
  return box;
}
inline Box output_box(const CorrelationAxis* axis, std::int64_t image, const std::int64_t* first, const std::int64_t* n,
                      std::int64_t channel, std::int64_t channels) {
  Box box{.image = image, .low = {}, .count = {n[0], n[1], n[2]}, .channel = channel, .channels = channels};
  for (int d = 0; d < 3; ++d) {
    box.low[d] = axis[d].out_start + first[d] * axis[d].out_step;
    box.step[d] = axis[d].out_step;
  }
  return box;
}

/// The input of a tile of depthwise convolution, with all channels. If x can be read in place there is no padding:
/// windows are cut at the border instead.
template <class T>
class DepthwiseTile {
 public:
  /// For the results [first, first + n) of each axis. There are `channels` weights for each tap, with the taps in
  /// row-major order.
  DepthwiseTile(Slab<T>& slab, const CorrelationAxis* axis, const Images& x, std::int64_t image,
                const std::int64_t* first, const std::int64_t* n, std::int64_t channels)
      : weight_step_{axis[1].taps * axis[2].taps * channels, axis[2].taps * channels, channels},
        walk_(axis_, size_, stride_, weight_step_) {
    const Box box = input_box(axis, image, first, n, 0, x.channels);
    const bool direct = slab.direct();
    if (!direct) slab.read(box);
    for (int d = 0; d < 3; ++d) {
      axis_[d] = axis[d];
      axis_[d].start = direct ? box.low[d] : 0;  // results are counted from the first one of the tile
      size_[d] = direct ? x.size[d] : box.count[d];
      stride_[d] = direct ? x.stride[d] : slab.stride()[d];
    }
    data_ = direct ? reinterpret_cast<const T*>(x.data) + image * x.batch_stride : slab.data();
  }
  DepthwiseTile(const DepthwiseTile&) = delete;
  DepthwiseTile& operator=(const DepthwiseTile&) = delete;
  /// Calls f(a, b, origin, elements from window to window, run) for each run of each line (a, b).
  template <class F>
  void each_run(const std::int64_t* n, F&& f) const {
    for (std::int64_t a = 0; a < n[0]; ++a)
      for (std::int64_t b = 0; b < n[1]; ++b)
        walk_.line(a, b, 0, n[2],
                   [&](const WindowRun& run) { f(a, b, data_ + run.origin, axis_[2].step * stride_[2], run); });
  }

 private:
  CorrelationAxis axis_[3];
  std::int64_t size_[3], stride_[3], weight_step_[3];
  mutable WindowWalk walk_;
  const T* data_;
};

/// If the windows have one tap, with step 1 and no padding, and channels are last, merges images and spatial axes into
/// one long row of pixels.
void join_axes(CorrelationAxis* axis, Images& x, Images& y, std::int64_t& images);

/// Sets y to the correlation of x with w.
template <class T>
void correlate(const CorrelationAxis* axis, Images x, Images y, std::int64_t images, const Weights& w,
               const devices::Finish<T>& finish = {});
/// The depthwise correlation. Forward, each of the c channels of x is read `repeat` times, and y has c * repeat
/// channels. If `sums` (input gradient), y has c / repeat channels, each the sum over `repeat` channels of x.
template <class T>
void correlate_depthwise(const CorrelationAxis* axis, const Images& x, const Images& y, std::int64_t images,
                         const Weights& w, std::int64_t repeat, bool sums);
/// Sets `to` to the kernel gradient. The sums are computed as T.
template <class T>
void kernel_gradient(const CorrelationAxis* axis, const Images& x, const Images& dy, std::int64_t images,
                     const Weights& to);
/// Sets `to` to the kernel gradient of a depthwise convolution, in which each channel of x is read `repeat` times.
template <class T>
void kernel_gradient_depthwise(const CorrelationAxis* axis, const Images& x, const Images& dy, std::int64_t images,
                               std::int64_t repeat, const Weights& to);

}  // namespace kassette::ops

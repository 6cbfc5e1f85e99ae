// ops/conv_cpu.cpp - convolution and its gradients on the CPU.
//
// Note [Correlations]
// A convolution and its input gradient are sums of the same kind: result p of an axis reads the elements p * step + start + t * tap_step,
// t < taps. For the input gradient of a convolution with stride s the results of one remainder modulo s form a correlation each, with
// every s-th tap of the kernel. So one driver serves both, and depthwise convolution differs in the loop inside alone.
//
// A tile is a box of results of one image. What it reads is taken from x as it stands where no padding is touched and channels are last; else
// it is copied into a buffer of some 256 KB, padded (conv_boxes.h). Results of twelve neighbouring pixels (six without AVX-512) by two
// vectors of channels stay in registers while the window's values are multiplied with packed weights (conv_loops.h): no matrix of patches
// exists. The order in which products are summed depends on the shape of the kernel alone, so the bits do not depend on the number of
// threads, on the batch or on where an image was cut.
#include <cassert>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/cast.h"
#include "ops/conv_boxes.h"
#include "ops/conv_kernels.h"
#include "ops/conv_loops.h"
#include "ops/fold.h"
#include "ops/strided.h"

namespace kassette {
namespace {

template <class T>
const ConvLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(conv_table).f32;
  else return KASSETTE_PICK(conv_table).f64;
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// One axis of a correlation: Note [Correlations]. Result p stands at out_start + p * out_step. Tap t has weight weight_start + t *
/// weight_step of the kernel.
struct Line {
  std::int64_t results, step, start, taps, tap_step;
  std::int64_t out_start = 0, out_step = 1, weight_start = 0, weight_step = 1;

  std::int64_t low(std::int64_t first) const { return first * step + start; }
  /// Elements that `count` neighbouring results span.
  std::int64_t span(std::int64_t count) const { return (count - 1) * step + (taps - 1) * tap_step + 1; }
};

Line forward_line(const WindowAxis& w, std::int64_t in, std::int64_t out) {
  return {.results = out, .step = w.stride, .start = -w.before(in), .taps = w.size, .tap_step = w.dilation};
}

/// The results that are `phase` modulo the stride. Without a tap where the stride is larger than the kernel.
Line backward_line(const WindowAxis& w, std::int64_t in, std::int64_t phase) {
  assert(w.stride == 1 || w.dilation == 1);
  const std::int64_t before = w.before(in);
  if (w.stride == 1)
    return {.results = in, .step = 1, .start = before - (w.size - 1) * w.dilation, .taps = w.size, .tap_step = w.dilation,
            .weight_start = w.size - 1, .weight_step = -1};
  const std::int64_t tap = (phase + before) % w.stride, at = (phase + before) / w.stride;
  const std::int64_t taps = tap < w.size ? ceil_div(w.size - tap, w.stride) : 0;
  return {.results = in > phase ? ceil_div(in - phase, w.stride) : 0, .step = 1, .start = at - (taps - 1), .taps = taps, .tap_step = 1,
          .out_start = phase, .out_step = w.stride, .weight_start = tap + w.stride * (taps - 1), .weight_step = -w.stride};
}

/// The kernel as a correlation reads it: strides of its taps, of the channels that are summed over and of the results' channels.
template <class T>
struct Weights {
  const T* data;
  std::int64_t tap[3], in, out;
};

/// How results are cut into tiles of one image each.
struct Tiling {
  std::int64_t results[3], size[3], number[3], images;

  std::int64_t count() const { return images * number[0] * number[1] * number[2]; }
  /// Tile i: first and number of results of each axis; returns the image.
  std::int64_t place(std::int64_t i, std::int64_t* first, std::int64_t* n) const {
    for (int d = 2; d >= 0; --d) {
      const std::int64_t k = i % number[d];
      i /= number[d];
      // Of nearly the same size each.
      first[d] = results[d] * k / number[d];
      n[d] = results[d] * (k + 1) / number[d] - first[d];
    }
    return i;
  }
};

/// Tiles whose input, `bytes` a point, fits the slab; and enough of them.
Tiling cut(const Line* line, std::int64_t images, std::int64_t bytes, std::int64_t least_columns) {
  Tiling t{.results = {line[0].results, line[1].results, line[2].results}, .size = {1, 1, line[2].results}, .number = {}, .images = images};
  auto fits = [&] { return line[0].span(1) * line[1].span(t.size[1]) * line[2].span(t.size[2]) * bytes <= conv_limits.slab_bytes; };
  while (!fits() && t.size[2] > least_columns) t.size[2] = std::max(least_columns, (t.size[2] + 1) / 2);
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
  while (count() < conv_limits.tiles && t.size[1] > 1) t.size[1] = (t.size[1] + 1) / 2;
  while (count() < conv_limits.tiles && t.size[2] > 4 * least_columns) t.size[2] = (t.size[2] + 1) / 2;
  return t;
}

/// Where the stretches of a window begin: one for all taps of a row where these are neighbours and hold `channels` each, else one for each tap; kApart:
/// one for each tap always.
constexpr std::int64_t kApart = -1;
struct Stretches {
  std::vector<std::int64_t> offsets;
  std::int64_t length;

  Stretches(const Line* line, const std::int64_t* stride, std::int64_t channels) {
    const bool joined = line[2].tap_step == 1 && stride[2] == channels;
    length = joined ? line[2].taps * channels : channels;
    offsets.reserve(static_cast<std::size_t>(line[0].taps * line[1].taps * (joined ? 1 : line[2].taps)));
    for (std::int64_t a = 0; a < line[0].taps; ++a)
      for (std::int64_t b = 0; b < line[1].taps; ++b)
        for (std::int64_t c = 0; c < (joined ? 1 : line[2].taps); ++c)
          offsets.push_back(a * line[0].tap_step * stride[0] + b * line[1].tap_step * stride[1] + c * line[2].tap_step * stride[2]);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()); }
};

/// What a tile reads: x itself, or a copy of a box of it with padding.
template <class T>
class Slab {
 public:
  Slab(const Images& x, std::int64_t repeat, std::int64_t align) : x_(x), repeat_(repeat), align_(align) {}
  /// Afterwards the first element of the box is at data(), and its points have strides().
  void read(const Box& box) {
    const bool same_type = x_.dtype.size() == static_cast<int>(sizeof(T));
    const std::int64_t wide = round_up(box.channels * repeat_, align_);
    if (same_type && repeat_ == 1 && wide == box.channels && x_.channels_last() && box.inside(x_)) {
      data_ = reinterpret_cast<const T*>(x_.data) + x_.offset(box.image, box.low, box.channel);
      std::copy_n(x_.stride, 3, stride_);
      return;
    }
    const std::int64_t n = box.points() * wide;
    if (n > room_) {
      room_ = 0;
      buffer_.reset(new Scratch<T>(n));
      if (!same_type) spare_.reset(new Scratch<std::uint16_t>(n));
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

/// The results of a tile: in y itself, or in a buffer that is written to y in the end.
template <class T>
class Results {
 public:
  Results(const Images& y, std::int64_t points, std::int64_t channels) : y_(y), direct_(y.channels_last() && y.dtype.size() == static_cast<int>(sizeof(T))) {
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

Box input_box(const Line* line, std::int64_t image, const std::int64_t* first, const std::int64_t* n) {
  Box box{.image = image, .low = {}, .count = {}, .channel = 0, .channels = 0};
  for (int d = 0; d < 3; ++d) {
    box.low[d] = line[d].low(first[d]);
    box.count[d] = line[d].span(n[d]);
  }
  return box;
}
Box output_box(const Line* line, std::int64_t image, const std::int64_t* first, const std::int64_t* n) {
  Box box{.image = image, .low = {}, .count = {n[0], n[1], n[2]}, .channel = 0, .channels = 0};
  for (int d = 0; d < 3; ++d) {
    box.low[d] = line[d].out_start + first[d] * line[d].out_step;
    box.step[d] = line[d].out_step;
  }
  return box;
}

// ---- correlation -----------------------------------------------------------------------------------------------------

/// The weights of all taps and of channels [from, from + n) for one panel of columns.
template <class T>
void pack_panel(const Line* line, const Weights<T>& w, std::int64_t from, std::int64_t n, std::int64_t column, std::int64_t columns, std::int64_t width,
                T* to) {
  for (std::int64_t a = 0; a < line[0].taps; ++a)
    for (std::int64_t b = 0; b < line[1].taps; ++b)
      for (std::int64_t c = 0; c < line[2].taps; ++c, to += n * width) {
        const T* tap = w.data + (line[0].weight_start + a * line[0].weight_step) * w.tap[0] + (line[1].weight_start + b * line[1].weight_step) * w.tap[1] +
                       (line[2].weight_start + c * line[2].weight_step) * w.tap[2] + from * w.in + column * w.out;
        if (columns < width) std::fill_n(to, n * width, T(0));
        if (w.out == 1) {
          for (std::int64_t k = 0; k < n; ++k) std::copy_n(tap + k * w.in, columns, to + k * width);
        } else {
          for (std::int64_t j = 0; j < columns; ++j)
            for (std::int64_t k = 0; k < n; ++k) to[k * width + j] = tap[k * w.in + j * w.out];
        }
      }
}

/// Axes along which windows do not overlap and nothing is skipped are one long row of pixels.
void join_axes(Line* line, Images& x, Images& y, std::int64_t& images) {
  for (int d = 0; d < 3; ++d)
    if (line[d].taps != 1 || line[d].step != 1 || line[d].start != 0 || line[d].out_step != 1 || line[d].results != x.size[d] || x.size[d] != y.size[d]) return;
  if (!x.channels_last() || !y.channels_last()) return;
  const std::int64_t n = images * x.size[0] * x.size[1] * x.size[2];
  for (Images* t : {&x, &y}) {
    t->size[0] = t->size[1] = 1;
    t->size[2] = n;
  }
  for (int d = 0; d < 3; ++d) line[d].results = x.size[d];
  images = 1;
}

template <class T>
void correlate(Line* line, Images x, Images y, std::int64_t images, const Weights<T>& w) {
  join_axes(line, x, y, images);
  const ConvLoops<T>& loop = loops<T>();
  const std::int64_t width = loop.columns, taps = line[0].taps * line[1].taps * line[2].taps, c_in = x.channels, c_out = y.channels;
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  // Channels of the input a block at a time, so that the weights of one panel stay in a cache.
  const std::int64_t blocks = ceil_div(c_in, std::max<std::int64_t>(8, conv_limits.panel_bytes / (taps * width * kItem)));
  auto block_begin = [&](std::int64_t b) { return c_in * b / blocks; };
  const std::int64_t panels = ceil_div(c_out, width), panel_size = taps * c_in * width;
  const std::int64_t panels_at_once = std::clamp<std::int64_t>(conv_limits.packed_bytes / (panel_size * kItem), 1, panels);
  const Tiling tiles = cut(line, images, ceil_div(c_in, blocks) * kItem, loop.rows);
  const std::int64_t tile_points = tiles.size[0] * tiles.size[1] * tiles.size[2];
  Scratch<T> packed(panels_at_once * panel_size);

  for (std::int64_t first_panel = 0; first_panel < panels; first_panel += panels_at_once) {
    const std::int64_t n_panels = std::min(panels_at_once, panels - first_panel);
    parallel_for(n_panels * blocks, std::max<std::int64_t>(1, (1 << 15) * blocks / panel_size), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t panel = i / blocks, from = block_begin(i % blocks), n = block_begin(i % blocks + 1) - from, column = (first_panel + panel) * width;
        pack_panel(line, w, from, n, column, std::min(width, c_out - column), width, packed.get() + panel * panel_size + from * taps * width);
      }
    });

    // Few tiles: columns are shared among threads too.
    const std::int64_t groups = std::min(n_panels, ceil_div(conv_limits.tiles / 2, tiles.count()));
    const std::int64_t products = std::max<std::int64_t>(1, tile_points * panel_size * n_panels / groups);
    parallel_for(tiles.count() * groups, std::max<std::int64_t>(1, conv_limits.grain / products), [&](std::int64_t begin, std::int64_t end) {
      Slab<T> slab(x, 1, 1);
      Results<T> results(y, tile_points, std::min(c_out, (ceil_div(n_panels, groups)) * width));
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t first[3], n[3];
        const std::int64_t image = tiles.place(i / groups, first, n), group = i % groups;
        const std::int64_t panel_begin = n_panels * group / groups, panel_end = n_panels * (group + 1) / groups;
        const std::int64_t column = (first_panel + panel_begin) * width, columns = std::min(c_out, (first_panel + panel_end) * width) - column;
        Box from = input_box(line, image, first, n), to = output_box(line, image, first, n);
        to.channel = column;
        to.channels = columns;
        results.begin(to);
        for (std::int64_t block = 0; block < blocks; ++block) {
          from.channel = block_begin(block);
          from.channels = block_begin(block + 1) - from.channel;
          slab.read(from);
          const std::int64_t* stride = slab.stride();
          const Stretches window(line, stride, from.channels);
          ConvTile<T> t{.a = nullptr, .a_step = line[2].step * stride[2], .offsets = window.offsets.data(), .runs = window.count(), .run = window.length,
                        .b = nullptr, .out = nullptr, .out_step = results.step(), .columns = 0, .add = block > 0};
          const std::int64_t pieces = ceil_div(n[2], loop.rows);
          for (std::int64_t panel = panel_begin; panel < panel_end; ++panel) {
            const std::int64_t at = (panel - panel_begin) * width;
            t.b = packed.get() + panel * panel_size + from.channel * taps * width;
            t.columns = std::min(width, columns - at);
            for (std::int64_t a = 0; a < n[0]; ++a)
              for (std::int64_t b = 0; b < n[1]; ++b)
                for (std::int64_t piece = 0; piece < pieces; ++piece) {
                  const std::int64_t p = n[2] * piece / pieces, pixels = n[2] * (piece + 1) / pieces - p;
                  t.a = slab.data() + a * line[0].step * stride[0] + b * line[1].step * stride[1] + p * t.a_step;
                  t.out = results.row(a, b) + p * t.out_step + at;
                  loop.tile(t, pixels);
                }
          }
        }
        results.end();
      }
    });
  }
}

// ---- depthwise -------------------------------------------------------------------------------------------------------

/// Weights of taps x channels in the order of the taps of a correlation.
template <class T>
void order_taps(const Line* line, const Weights<T>& w, std::int64_t channels, T* to) {
  for (std::int64_t a = 0; a < line[0].taps; ++a)
    for (std::int64_t b = 0; b < line[1].taps; ++b)
      for (std::int64_t c = 0; c < line[2].taps; ++c, to += channels)
        std::copy_n(w.data + (line[0].weight_start + a * line[0].weight_step) * w.tap[0] + (line[1].weight_start + b * line[1].weight_step) * w.tap[1] +
                        (line[2].weight_start + c * line[2].weight_step) * w.tap[2],
                    channels, to);
}

/// x has c channels, each of which is read `repeat` times; y has c * repeat or, where `sums`, c / repeat of those of x.
template <class T>
void correlate_depthwise(const Line* line, const Images& x, const Images& y, std::int64_t images, const Weights<T>& w, std::int64_t repeat, bool sums) {
  const std::int64_t channels = sums ? x.channels : x.channels * repeat, taps = line[0].taps * line[1].taps * line[2].taps;
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const Tiling tiles = cut(line, images, channels * kItem, 4);
  const std::int64_t points = tiles.size[0] * tiles.size[1] * tiles.size[2];
  Scratch<T> weights(taps * channels);
  order_taps(line, w, channels, weights.get());
  parallel_for(tiles.count(), std::max<std::int64_t>(1, conv_limits.grain / (8 * taps * channels * points)), [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, sums ? 1 : repeat, 1);
    Results<T> results(y, points, y.channels);
    const bool folds = sums && repeat > 1;
    Scratch<T> wide(folds ? tiles.size[2] * channels : 0);
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t first[3], n[3];
      const std::int64_t image = tiles.place(i, first, n);
      Box from = input_box(line, image, first, n), to = output_box(line, image, first, n);
      from.channels = x.channels;
      to.channels = y.channels;
      slab.read(from);
      results.begin(to);
      const std::int64_t* stride = slab.stride();
      const Stretches window(line, stride, kApart);
      for (std::int64_t a = 0; a < n[0]; ++a)
        for (std::int64_t b = 0; b < n[1]; ++b) {
          T* row = results.row(a, b);
          loops<T>().depthwise({.a = slab.data() + a * line[0].step * stride[0] + b * line[1].step * stride[1], .a_step = line[2].step * stride[2],
                                .offsets = window.offsets.data(), .taps = taps, .b = weights.get(), .out = folds ? wide.get() : row,
                                .out_step = folds ? channels : results.step(), .pixels = n[2], .channels = channels});
          for (std::int64_t p = 0; folds && p < n[2]; ++p)
            for (std::int64_t c = 0; c < y.channels; ++c) {
              const T* parts = wide.get() + p * channels + c * repeat;
              T sum = parts[0];
              for (std::int64_t k = 1; k < repeat; ++k) sum += parts[k];
              row[p * results.step() + c] = sum;
            }
        }
      results.end();
    }
  });
}

// ---- gradient of the kernel ------------------------------------------------------------------------------------------

/// Partial sums over parts of the batch, which are added in their order: one for each part, `size` elements apart.
template <class T>
void add_partials(T* partial, std::int64_t parts, std::int64_t size) {
  parallel_for(size, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = 1; part < parts; ++part)
      for (std::int64_t i = begin; i < end; ++i) partial[i] += partial[part * size + i];
  });
}

/// The gradient, taps x input channels x output channels, as T.
template <class T>
void kernel_gradient(const Line* line, const Images& x, const Images& dy, std::int64_t repeat, bool depthwise, Scratch<T>& to, std::int64_t parts,
                     const Tiling& tiles) {
  const ConvLoops<T>& loop = loops<T>();
  const std::int64_t c_in = x.channels, c_out = dy.channels, taps = line[0].taps * line[1].taps * line[2].taps;
  const std::int64_t size = depthwise ? taps * c_out : taps * c_in * c_out, vector = loop.columns / 2;
  // Few parts of the batch: columns are shared among threads too.
  const std::int64_t panels = depthwise ? 1 : ceil_div(c_out, loop.columns), groups = std::min(panels, ceil_div(conv_limits.tiles / 2, parts));
  parallel_for(parts * groups, 1, [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, repeat, 1), slopes(dy, 1, depthwise ? 1 : vector);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t part = i / groups, group = i % groups;
      T* sum = to.get() + part * size;
      const std::int64_t first_column = panels * group / groups * loop.columns, last_column = std::min(c_out, panels * (group + 1) / groups * loop.columns);
      for (std::int64_t tile = tiles.count() * part / parts; tile < tiles.count() * (part + 1) / parts; ++tile) {
        std::int64_t first[3], n[3];
        const std::int64_t image = tiles.place(tile, first, n);
        Box from = input_box(line, image, first, n), of = output_box(line, image, first, n);
        from.channels = c_in;
        of.channels = c_out;
        slab.read(from);
        slopes.read(of);
        const std::int64_t *stride = slab.stride(), *of_dy = slopes.stride(), a_step = line[2].step * stride[2];
        if (depthwise) {
          const Stretches window(line, stride, kApart);
          for (std::int64_t a = 0; a < n[0]; ++a)
            for (std::int64_t b = 0; b < n[1]; ++b)
              loop.depthwise_gradient({.a = slab.data() + a * line[0].step * stride[0] + b * line[1].step * stride[1],
                                       .b = slopes.data() + a * of_dy[0] + b * of_dy[1], .a_step = a_step, .b_step = of_dy[2],
                                       .offsets = window.offsets.data(), .taps = taps, .out = sum, .pixels = n[2], .channels = c_out});
          continue;
        }
        const Stretches window(line, stride, c_in);
        for (std::int64_t r = 0; r < window.count(); ++r) {
          const std::int64_t pieces = ceil_div(window.length, loop.rows);
          for (std::int64_t piece = 0; piece < pieces; ++piece) {
            const std::int64_t m = window.length * piece / pieces, rows = window.length * (piece + 1) / pieces - m;
            for (std::int64_t column = first_column; column < last_column; column += loop.columns)
              for (std::int64_t a = 0; a < n[0]; ++a)
                loop.kernel_gradient({.a = slab.data() + window.offsets[static_cast<std::size_t>(r)] + m + a * line[0].step * stride[0],
                                      .b = slopes.data() + column + a * of_dy[0], .a_step = a_step, .b_step = of_dy[2], .a_line = line[1].step * stride[1],
                                      .b_line = of_dy[1], .lines = n[1], .pixels = n[2], .out = sum + (r * window.length + m) * c_out + column,
                                      .out_step = c_out, .columns = std::min<std::int64_t>(loop.columns, last_column - column)},
                                     rows);
          }
        }
      }
    }
  });
  add_partials(to.get(), parts, size);
}

// ---- kernels ---------------------------------------------------------------------------------------------------------

Images images_of(const ConvShape& s, const std::byte* data, DType dtype, bool input) {
  return Images(data, dtype, input ? s.in : s.out, input ? s.c_in : s.c_out, s.channels_first);
}

/// The kernel's elements as T, which half types are converted to.
template <class T>
class AsWide {
 public:
  AsWide(const std::byte* data, DType dtype, std::int64_t n) : data_(reinterpret_cast<const T*>(data)) {
    if (dtype.size() == static_cast<int>(sizeof(T))) return;
    wide_.reset(new Scratch<T>(n));
    cast_elements(wide_->get(), float32, data, dtype, n);
    data_ = wide_->get();
  }
  const T* get() const { return data_; }

 private:
  const T* data_;
  std::unique_ptr<Scratch<T>> wide_;
};

/// Strides of the taps of a kernel whose innermost block, both kinds of channels, has `block` elements.
template <class T>
Weights<T> weights_of(const ConvShape& s, const T* data, std::int64_t block, std::int64_t in, std::int64_t out) {
  const WindowAxis* w = s.window;
  return {data, {w[1].size * w[2].size * block, w[2].size * block, block}, in, out};
}

template <class T>
void forward(const Call& call) {
  const Body& y = *call.out[0];
  const ConvShape s(call.attrs, call.spec(0), call.spec(1), y);
  const AsWide<T> w(call.in[1].data, y.dtype, call.spec(1).numel());
  const Images x = images_of(s, call.in[0].data, y.dtype, true), to = images_of(s, y.data(), y.dtype, false);
  Line line[3];
  for (int d = 0; d < 3; ++d) line[d] = forward_line(s.window[d], s.in[d], s.out[d]);
  if (s.depthwise) correlate_depthwise<T>(line, x, to, s.batch, weights_of(s, w.get(), s.c_out, 0, 1), s.c_out / s.c_in, /*sums=*/false);
  else correlate<T>(line, x, to, s.batch, weights_of(s, w.get(), s.c_in * s.c_out, s.c_out, 1));
}

template <class T>
void input_gradient(const Call& call) {
  const Body& dx = *call.out[0];
  const ConvShape s(call.attrs, dx, call.spec(1), call.spec(0));
  const AsWide<T> w(call.in[1].data, dx.dtype, call.spec(1).numel());
  const Images dy = images_of(s, call.in[0].data, dx.dtype, false), to = images_of(s, dx.data(), dx.dtype, true);
  const WindowAxis* window = s.window;
  bool gaps = false;
  for (int d = 0; d < 3; ++d) gaps |= window[d].stride > window[d].size;
  if (gaps) zero_bytes(dx.data(), dx.bytes());
  for (std::int64_t a = 0; a < window[0].stride; ++a)
    for (std::int64_t b = 0; b < window[1].stride; ++b)
      for (std::int64_t c = 0; c < window[2].stride; ++c) {
        Line line[3] = {backward_line(window[0], s.in[0], a), backward_line(window[1], s.in[1], b), backward_line(window[2], s.in[2], c)};
        if (line[0].taps * line[1].taps * line[2].taps == 0 || line[0].results * line[1].results * line[2].results == 0) continue;
        if (s.depthwise) correlate_depthwise<T>(line, dy, to, s.batch, weights_of(s, w.get(), s.c_out, 0, 1), s.c_out / s.c_in, /*sums=*/true);
        else correlate<T>(line, dy, to, s.batch, weights_of(s, w.get(), s.c_in * s.c_out, 1, s.c_out));
      }
}

template <class T>
void kernel_gradient_of(const Call& call) {
  const Body& dw = *call.out[0];
  const ConvShape s(call.attrs, call.spec(0), dw, call.spec(1));
  Images x = images_of(s, call.in[0].data, dw.dtype, true), dy = images_of(s, call.in[1].data, dw.dtype, false);
  std::int64_t images = s.batch;
  Line line[3];
  for (int d = 0; d < 3; ++d) line[d] = forward_line(s.window[d], s.in[d], s.out[d]);
  if (!s.depthwise) join_axes(line, x, dy, images);
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t n = dw.numel(), repeat = s.depthwise ? s.c_out / s.c_in : 1;
  const Tiling tiles = cut(line, images, s.c_in * repeat * kItem, 8);
  const std::int64_t parts = std::clamp<std::int64_t>(conv_limits.partial_bytes / (n * kItem), 1, std::min<std::int64_t>(tiles.count(), conv_limits.tiles / 2));
  Scratch<T> sums(parts * n);
  zero_bytes(reinterpret_cast<std::byte*>(sums.get()), parts * n * kItem);
  kernel_gradient<T>(line, x, dy, repeat, s.depthwise, sums, parts, tiles);
  if (dw.dtype.size() == static_cast<int>(sizeof(T))) std::copy_n(sums.get(), n, reinterpret_cast<T*>(dw.data()));
  else cast_elements(dw.data(), dw.dtype, sums.get(), float32, n);
}

/// Whether there is nothing to sum: the result is empty, or zeros.
bool nothing(const Call& call) {
  Body& out = *call.out[0];
  if (out.numel() == 0) return true;
  if (call.spec(0).numel() > 0 && call.spec(1).numel() > 0) return false;
  zero_bytes(out.data(), out.bytes());
  return true;
}

}  // namespace

constinit ConvLimits conv_limits;

void run_convolution(const Call& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) forward<double>(call);
  else forward<float>(call);
}
void run_convolution_input_gradient(const Call& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) input_gradient<double>(call);
  else input_gradient<float>(call);
}
void run_convolution_kernel_gradient(const Call& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) kernel_gradient_of<double>(call);
  else kernel_gradient_of<float>(call);
}

}  // namespace kassette

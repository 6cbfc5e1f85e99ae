// ops/convolution/conv_kernel_gradient.cpp - the gradient of a convolution's kernel on the CPU.
//
// Its sums go over all pixels of all images. To share the work among threads, the pixels are divided into parts, each
// with sums of its own that are added at the end, and the output channels into groups, each of which reads x again. The
// numbers of parts and groups depend on the shape only, so the bits do not depend on the number of threads.
#include <algorithm>

#include "ops/convolution/conv_sums.h"

namespace kassette::ops {
namespace {

struct Division {
  std::int64_t parts, groups;
};
/// Chooses parts and groups that give enough tasks for little memory traffic: each part costs `sums` elements, each
/// group `read` elements.
Division divide(std::int64_t sums, std::int64_t read, std::int64_t panels) {
  const std::int64_t tasks = conv_limits.tiles / 2;
  Division d{tasks, 1};
  while (d.groups < panels && d.parts > 1 && d.parts * sums > d.groups * read) {
    d.groups = std::min(panels, 2 * d.groups);
    d.parts = ceil_div(tasks, d.groups);
  }
  return d;
}

/// A kernel gradient, (taps, channels of x, channels of dy), which is summed in `to`.
template <class T>
class KernelGradient {
 public:
  KernelGradient(const Block& kernel, const Images& x, const Images& dy, std::int64_t images, T* to)
      : axis_{kernel.axis[0], kernel.axis[1], kernel.axis[2]}, x_(x), dy_(dy), to_(to) {
    for (CorrelationAxis& l : axis_) l.weight_start = 0;
    join_axes(axis_, x_, dy_, images);
    taps_ = axis_[0].taps * axis_[1].taps * axis_[2].taps;
    panels_ = ceil_div(dy_.channels, gemm_.columns);
    const std::int64_t c_in = x_.channels, most = conv_limits.slab_bytes / kItem;
    d_ = divide(size(), images * x_.size[0] * x_.size[1] * x_.size[2] * c_in, panels_);
    d_.parts = std::min(d_.parts, most_parts<T>(size()));
    const bool copied = !Slab<T>(dy_, 1, vector_).direct() || dy_.channels % vector_ != 0;  // dy, to whole vectors
    if (copied) d_.groups = std::clamp(ceil_div(dy_.channels * kItem, conv_limits.slab_bytes), d_.groups, panels_);
    blocks_ = blocks_of(axis_, c_in, most, static_cast<double>(most));
    const Block largest = largest_of(blocks_);
    tiles_ = cut(largest.axis, images, largest.channels * kItem,
                 copied ? ceil_div(panels_, d_.groups) * gemm_.columns * kItem : 0, 8, d_.parts);
    d_.parts = std::min(d_.parts, tiles_.count());
  }

  void run() const {
    const Partials<T> partials(to_, d_.parts, size());
    devices::parallel_for(d_.parts * d_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
      Slab<T> slab(x_, 1, 1), slopes(dy_, 1, vector_);
      for (std::int64_t i = begin; i < end; ++i)
        sum_part(i / d_.groups, columns_of(i % d_.groups), slab, slopes, partials.of(i / d_.groups));
    });
    partials.add();
  }

 private:
  static constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kMaxProducts = 4096;
  struct Columns {
    std::int64_t first, end;
  };

  std::int64_t size() const { return taps_ * x_.channels * dy_.channels; }
  Columns columns_of(std::int64_t group) const {
    return {panels_ * group / d_.groups * gemm_.columns,
            std::min(dy_.channels, panels_ * (group + 1) / d_.groups * gemm_.columns)};
  }

  /// Sets these columns of `sum` to their sums over a part of the pixels.
  void sum_part(std::int64_t part, const Columns& columns, Slab<T>& slab, Slab<T>& slopes, T* sum) const {
    const std::int64_t c_out = dy_.channels;
    for (std::int64_t row = 0; row < taps_ * x_.channels; ++row)
      std::fill(sum + row * c_out + columns.first, sum + row * c_out + columns.end, T(0));
    for (std::int64_t tile = tiles_.count() * part / d_.parts; tile < tiles_.count() * (part + 1) / d_.parts; ++tile) {
      std::int64_t first[3], n[3];
      const std::int64_t image = tiles_.place(tile, first, n);
      slopes.read(output_box(axis_, image, first, n, columns.first, columns.end - columns.first));
      for (const Block& block : blocks_) {
        slab.read(input_box(block.axis, image, first, n, block.channel, block.channels));
        add_block(block, n, columns, slab, slopes, sum);
      }
    }
  }

  /// Adds the sums of a block over a tile of n results.
  void add_block(const Block& block, const std::int64_t* n, const Columns& columns, const Slab<T>& slab,
                 const Slab<T>& slopes, T* sum) const {
    const std::int64_t c_out = dy_.channels, *stride = slab.stride(), *of_dy = slopes.stride();
    const bool joined = axis_[2].tap_step == 1 && blocks_.size() == 1 && stride[2] == x_.channels;
    const Stretches window(block.axis, stride, block.channels, joined);
    const std::int64_t pieces = ceil_div(window.length, gemm_.rows);
    std::vector<std::int64_t> lines_of_x(std::min(n[1], kMaxProducts));
    for (std::size_t i = 0; i < lines_of_x.size(); ++i)
      lines_of_x[i] = static_cast<std::int64_t>(i) * axis_[1].step * stride[1];
    for (std::int64_t r = 0; r < window.count(); ++r) {
      const std::int64_t row = tap_of(block, joined, r) * x_.channels + block.channel;
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const std::int64_t m = window.length * piece / pieces, rows = window.length * (piece + 1) / pieces - m;
        for (std::int64_t column = columns.first; column < columns.end; column += gemm_.columns)
          for (std::int64_t a = 0; a < n[0]; ++a) {
            const T* x = slab.data() + window.offsets.data()[r] + m + a * axis_[0].step * stride[0];
            const T* dy = slopes.data() + (column - columns.first) + a * of_dy[0];
            each_block(n, [&](std::int64_t line, std::int64_t pixel, std::int64_t lines, std::int64_t pixels) {
              gemm_.block({.a = x + line * axis_[1].step * stride[1] + pixel * axis_[2].step * stride[2],
                           .a_step = axis_[2].step * stride[2],
                           .b = dy + line * of_dy[1] + pixel * of_dy[2],
                           .b_step = of_dy[2],
                           .run = pixels,
                           .out = sum + (row + m) * c_out + column,
                           .out_step = c_out,
                           .columns = std::min<std::int64_t>(gemm_.columns, columns.end - column),
                           .by_columns = true,
                           .runs = lines,
                           .b_run = of_dy[1],
                           .a_runs = lines_of_x.data(),
                           .finish = {.add = true}},
                          rows);
            });
          }
      }
    }
  }

  /// Calls f(line, pixel, lines, pixels) for parts of a tile, of at most kMaxProducts pixels, whose products are added
  /// one after the other: Note [Blocks of reductions].
  template <class F>
  static void each_block(const std::int64_t* n, F&& f) {
    const std::int64_t pixels = std::min(n[2], kMaxProducts), lines = std::max<std::int64_t>(1, kMaxProducts / pixels);
    for (std::int64_t line = 0; line < n[1]; line += lines)
      for (std::int64_t pixel = 0; pixel < n[2]; pixel += pixels)
        f(line, pixel, std::min(lines, n[1] - line), std::min(pixels, n[2] - pixel));
  }

  /// The index of the first tap in stretch r of a window (see Stretches). If `joined`, a stretch is a row of taps.
  std::int64_t tap_of(const Block& block, bool joined, std::int64_t r) const {
    const std::int64_t row = r / (joined ? 1 : block.axis[2].taps);
    return (block.axis[0].weight(row / block.axis[1].taps) * axis_[1].taps +
            block.axis[1].weight(row % block.axis[1].taps)) *
               axis_[2].taps +
           block.axis[2].weight(joined ? 0 : r % block.axis[2].taps);
  }

  const devices::GemmLoops<T>& gemm_ = devices::gemm_loops<T>();
  const std::int64_t vector_ = gemm_.columns / 2;
  CorrelationAxis axis_[3];
  Images x_, dy_;
  T* const to_;
  std::int64_t taps_ = 0, panels_ = 0;
  Division d_{};
  std::vector<Block> blocks_;
  Tiling tiles_{};
};

}  // namespace

template <class T>
void kernel_gradient(const CorrelationAxis* axis, const Images& x, const Images& dy, std::int64_t images,
                     const Weights& to) {
  const std::int64_t taps = axis[0].taps * axis[1].taps * axis[2].taps, c_in = x.channels, c_out = dy.channels,
                     columns = devices::gemm_loops<T>().columns;
  const bool whole = to.in == c_out && to.tap[2] == c_in * c_out && to.dtype.size() == static_cast<int>(sizeof(T));
  // If the sums need a buffer, only as many columns are computed at a time as fit in it.
  const std::int64_t most = whole ? INT64_MAX : conv_limits.partial_bytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t at_once = std::clamp(most / (taps * c_in) / columns * columns, std::min(columns, c_out), c_out);
  const std::vector<Block> blocks = blocks_of(axis, c_in, most / at_once);
  const KernelSums<T> sums(to, whole, whole ? 0 : largest_of(blocks).products() * at_once);
  for (std::int64_t first = 0; first < c_out; first += at_once)
    for (const Block& block : blocks) {
      const std::int64_t n = std::min(at_once, c_out - first);
      KernelGradient<T>(block, x.part(block.channel, block.channels), dy.part(first, n), images, sums.get()).run();
      sums.write(block, first, n);
    }
}

template void kernel_gradient<float>(const CorrelationAxis*, const Images&, const Images&, std::int64_t,
                                     const Weights&);
template void kernel_gradient<double>(const CorrelationAxis*, const Images&, const Images&, std::int64_t,
                                      const Weights&);

}  // namespace kassette::ops

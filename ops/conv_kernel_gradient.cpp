// ops/conv_kernel_gradient.cpp - the gradient of a convolution's kernel on the CPU.
//
// Its sums go over all pixels of all images. The pixels are shared out in parts, each with sums of its own that are added in the end, and the output
// channels in groups, each of which reads x anew: how many of each depends on the shape alone, so the bits do not depend on the threads.
#include <algorithm>

#include "devices/cpu/threads.h"
#include "ops/conv_tiles.h"

namespace kassette {
namespace {

struct Division {
  std::int64_t parts, groups;
};
/// Enough tasks, with as few bytes as that takes: a part costs `sums` elements, a group `read`.
Division divide(std::int64_t sums, std::int64_t read, std::int64_t panels) {
  const std::int64_t tasks = conv_limits.tiles / 2;
  Division d{tasks, 1};
  while (d.groups < panels && d.parts > 1 && d.parts * sums > d.groups * read) {
    d.groups = std::min(panels, 2 * d.groups);
    d.parts = ceil_div(tasks, d.groups);
  }
  return d;
}
std::int64_t most_parts(std::int64_t sums_bytes) { return 1 + conv_limits.partial_bytes / sums_bytes; }

/// Where each part sums: the first in the result itself. All begin as zeros.
template <class T>
class Partials {
 public:
  Partials(T* to, std::int64_t parts, std::int64_t size) : to_(to), parts_(parts), size_(size), others_((parts - 1) * size) {}
  /// Part i of the parts, zeros.
  T* of(std::int64_t part) const { return part == 0 ? to_ : others_.get() + (part - 1) * size_; }
  /// Adds all to the first, in their order.
  void add() const {
    if (parts_ == 1) return;
    parallel_for(size_, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = 1; part < parts_; ++part)
        for (std::int64_t i = begin; i < end; ++i) to_[i] += of(part)[i];
    });
  }

 private:
  T* to_;
  std::int64_t parts_, size_;
  Scratch<T> others_;
};

}  // namespace

template <class T>
void kernel_gradient(Line* line, Images x, Images dy, std::int64_t images, T* to) {
  join_axes(line, x, dy, images);
  const ConvLoops<T>& loop = loops<T>();
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t c_in = x.channels, c_out = dy.channels, taps = line[0].taps * line[1].taps * line[2].taps, size = taps * c_in * c_out;
  const std::int64_t panels = ceil_div(c_out, loop.columns);
  Division d = divide(size, images * x.size[0] * x.size[1] * x.size[2] * c_in, panels);
  d.parts = std::min(d.parts, most_parts(size * kItem));
  const std::vector<Block> blocks = blocks_of(line, c_in, conv_limits.slab_bytes / kItem);
  const Block largest = largest_of(blocks);
  const Tiling tiles = cut(largest.line, images, largest.channels * kItem, Results<T>::direct(dy) ? 0 : ceil_div(panels, d.groups) * loop.columns * kItem, 8, d.parts);
  d.parts = std::min(d.parts, tiles.count());
  const Partials<T> partials(to, d.parts, size);
  parallel_for(d.parts * d.groups, 1, [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, 1, 1), slopes(dy, 1, loop.columns / 2);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t part = i / d.groups, group = i % d.groups;
      const std::int64_t first_column = panels * group / d.groups * loop.columns, last_column = std::min(c_out, panels * (group + 1) / d.groups * loop.columns);
      T* sum = partials.of(part);
      for (std::int64_t row = 0; row < taps * c_in; ++row) std::fill(sum + row * c_out + first_column, sum + row * c_out + last_column, T(0));
      for (std::int64_t tile = tiles.count() * part / d.parts; tile < tiles.count() * (part + 1) / d.parts; ++tile) {
        std::int64_t first[3], n[3];
        const std::int64_t image = tiles.place(tile, first, n);
        slopes.read(output_box(line, image, first, n, first_column, last_column - first_column));
        const std::int64_t* of_dy = slopes.stride();
        for (const Block& block : blocks) {
          slab.read(input_box(block.line, image, first, n, block.channel, block.channels));
          const std::int64_t* stride = slab.stride();
          const bool joined = line[2].tap_step == 1 && blocks.size() == 1 && stride[2] == c_in;
          const Stretches window(block.line, stride, block.channels, joined);
          const std::int64_t pieces = ceil_div(window.length, loop.rows), taps_apart = joined ? 1 : block.line[2].taps;
          for (std::int64_t r = 0; r < window.count(); ++r) {
            const std::int64_t tap = (block.line[0].weight(r / taps_apart / block.line[1].taps) * line[1].taps +
                                      block.line[1].weight(r / taps_apart % block.line[1].taps)) * line[2].taps + block.line[2].weight(r % taps_apart);
            for (std::int64_t piece = 0; piece < pieces; ++piece) {
              const std::int64_t m = window.length * piece / pieces, rows = window.length * (piece + 1) / pieces - m;
              for (std::int64_t column = first_column; column < last_column; column += loop.columns)
                for (std::int64_t a = 0; a < n[0]; ++a)
                  loop.kernel_gradient({.a = slab.data() + window.offsets[static_cast<std::size_t>(r)] + m + a * line[0].step * stride[0],
                                        .b = slopes.data() + (column - first_column) + a * of_dy[0], .a_step = line[2].step * stride[2], .b_step = of_dy[2],
                                        .a_line = line[1].step * stride[1], .b_line = of_dy[1], .lines = n[1], .pixels = n[2],
                                        .out = sum + (tap * c_in + block.channel + m) * c_out + column, .out_step = c_out,
                                        .columns = std::min<std::int64_t>(loop.columns, last_column - column)},
                                       rows);
            }
          }
        }
      }
    }
  });
  partials.add();
}

template <class T>
void kernel_gradient_depthwise(const Line* line, const Images& x, const Images& dy, std::int64_t images, std::int64_t repeat, T* to) {
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t c_out = dy.channels, size = line[0].taps * line[1].taps * line[2].taps * c_out;
  const Tiling tiles = cut(line, images, c_out * kItem, 0, 8, conv_limits.tiles);
  const std::int64_t parts = std::min({most_parts(size * kItem), tiles.count(), conv_limits.tiles / 2});
  const std::int64_t weight_step[3] = {line[1].taps * line[2].taps * c_out, line[2].taps * c_out, c_out};
  const Partials<T> partials(to, parts, size);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, repeat, 1), slopes(dy, 1, 1);
    for (std::int64_t part = begin; part < end; ++part) {
      T* sum = partials.of(part);
      std::fill_n(sum, size, T(0));
      for (std::int64_t tile = tiles.count() * part / parts; tile < tiles.count() * (part + 1) / parts; ++tile) {
        std::int64_t first[3], n[3];
        const std::int64_t image = tiles.place(tile, first, n);
        slopes.read(output_box(line, image, first, n, 0, c_out));
        const DepthwiseTile<T> from(slab, line, x, image, first, n, weight_step, 0);
        const std::int64_t* of_dy = slopes.stride();
        from.each_run(n, [&](std::int64_t a, std::int64_t b, const T* origin, std::int64_t a_step, const WindowRun& run) {
          loops<T>().depthwise_gradient({.a = origin, .b = slopes.data() + a * of_dy[0] + b * of_dy[1] + run.first * of_dy[2], .a_step = a_step,
                                         .b_step = of_dy[2], .offsets = run.at, .weights = run.weight, .taps = run.taps, .out = sum, .pixels = run.count,
                                         .channels = c_out});
        });
      }
    }
  });
  partials.add();
}

template void kernel_gradient(Line*, Images, Images, std::int64_t, float*);
template void kernel_gradient(Line*, Images, Images, std::int64_t, double*);
template void kernel_gradient_depthwise(const Line*, const Images&, const Images&, std::int64_t, std::int64_t, float*);
template void kernel_gradient_depthwise(const Line*, const Images&, const Images&, std::int64_t, std::int64_t, double*);

}  // namespace kassette

// ops/conv_kernel_gradient.cpp - the gradient of a convolution's kernel on the CPU.
//
// Its sums go over all pixels of all images. To share the work among threads, the pixels are divided into parts, each with sums of its own that are
// added at the end, and the output channels into groups, each of which reads x again. The numbers of parts and groups depend on the shape only, so
// the bits do not depend on the number of threads.
#include <algorithm>

#include "ops/conv_sums.h"

namespace kassette {
namespace {

struct Division {
  std::int64_t parts, groups;
};
/// Chooses parts and groups that give enough tasks for little memory traffic: each part costs `sums` elements, each group `read` elements.
Division divide(std::int64_t sums, std::int64_t read, std::int64_t panels) {
  const std::int64_t tasks = conv_limits.tiles / 2;
  Division d{tasks, 1};
  while (d.groups < panels && d.parts > 1 && d.parts * sums > d.groups * read) {
    d.groups = std::min(panels, 2 * d.groups);
    d.parts = ceil_div(tasks, d.groups);
  }
  return d;
}

/// Computes a kernel gradient, (taps, channels of x, channels of dy).
template <class T>
void sum_kernel(const Block& kernel, Images x, Images dy, std::int64_t images, T* to) {
  Line line[3] = {kernel.line[0], kernel.line[1], kernel.line[2]};
  for (Line& l : line) l.weight_start = 0;
  join_axes(line, x, dy, images);
  const ConvLoops<T>& loop = loops<T>();
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t c_in = x.channels, c_out = dy.channels, taps = line[0].taps * line[1].taps * line[2].taps,
                     size = taps * c_in * c_out;
  const std::int64_t panels = ceil_div(c_out, loop.columns), vector = loop.columns / 2;
  Division d = divide(size, images * x.size[0] * x.size[1] * x.size[2] * c_in, panels);
  d.parts = std::min(d.parts, most_parts<T>(size));
  const bool copied = !Slab<T>(dy, 1, vector).direct() || c_out % vector != 0;  // dy, to whole vectors of channels
  if (copied) d.groups = std::clamp(ceil_div(c_out * kItem, conv_limits.slab_bytes), d.groups, panels);
  const std::int64_t most = conv_limits.slab_bytes / kItem;
  const std::vector<Block> blocks = blocks_of(line, c_in, most, static_cast<double>(most));
  const Block largest = largest_of(blocks);
  const Tiling tiles = cut(largest.line, images, largest.channels * kItem,
                           copied ? ceil_div(panels, d.groups) * loop.columns * kItem : 0, 8, d.parts);
  d.parts = std::min(d.parts, tiles.count());
  const Partials<T> partials(to, d.parts, size);
  parallel_for(d.parts * d.groups, 1, [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, 1, 1), slopes(dy, 1, vector);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t part = i / d.groups, group = i % d.groups;
      const std::int64_t first_column = panels * group / d.groups * loop.columns,
                         last_column = std::min(c_out, panels * (group + 1) / d.groups * loop.columns);
      T* sum = partials.of(part);
      for (std::int64_t row = 0; row < taps * c_in; ++row)
        std::fill(sum + row * c_out + first_column, sum + row * c_out + last_column, T(0));
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
                                      block.line[1].weight(r / taps_apart % block.line[1].taps)) *
                                         line[2].taps +
                                     block.line[2].weight(r % taps_apart);
            for (std::int64_t piece = 0; piece < pieces; ++piece) {
              const std::int64_t m = window.length * piece / pieces, rows = window.length * (piece + 1) / pieces - m;
              for (std::int64_t column = first_column; column < last_column; column += loop.columns)
                for (std::int64_t a = 0; a < n[0]; ++a)
                  loop.kernel_gradient({.a = slab.data() + window.offsets[r] + m + a * line[0].step * stride[0],
                                        .b = slopes.data() + (column - first_column) + a * of_dy[0],
                                        .a_step = line[2].step * stride[2],
                                        .b_step = of_dy[2],
                                        .a_line = line[1].step * stride[1],
                                        .b_line = of_dy[1],
                                        .lines = n[1],
                                        .pixels = n[2],
                                        .out = sum + (tap * c_in + block.channel + m) * c_out + column,
                                        .out_step = c_out,
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

}  // namespace

template <class T>
void kernel_gradient(const Line* line, const Images& x, const Images& dy, std::int64_t images, const Weights& to) {
  const std::int64_t taps = line[0].taps * line[1].taps * line[2].taps, c_in = x.channels, c_out = dy.channels,
                     columns = loops<T>().columns;
  const bool whole = to.in == c_out && to.tap[2] == c_in * c_out && to.dtype.size() == static_cast<int>(sizeof(T));
  // If the sums need a buffer, only as many columns are computed at a time as fit in it.
  const std::int64_t most = whole ? INT64_MAX : conv_limits.partial_bytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t at_once = std::clamp(most / (taps * c_in) / columns * columns, std::min(columns, c_out), c_out);
  const std::vector<Block> blocks = blocks_of(line, c_in, most / at_once);
  const KernelSums<T> sums(to, whole, whole ? 0 : largest_of(blocks).products() * at_once);
  for (std::int64_t first = 0; first < c_out; first += at_once)
    for (const Block& block : blocks) {
      const std::int64_t n = std::min(at_once, c_out - first);
      sum_kernel(block, x.part(block.channel, block.channels), dy.part(first, n), images, sums.get());
      sums.write(block, first, n);
    }
}

template void kernel_gradient<float>(const Line*, const Images&, const Images&, std::int64_t, const Weights&);
template void kernel_gradient<double>(const Line*, const Images&, const Images&, std::int64_t, const Weights&);

}  // namespace kassette

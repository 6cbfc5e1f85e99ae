// ops/conv_depthwise.cpp - depthwise convolution on the CPU: a correlation of each channel by itself.
#include "devices/cpu/threads.h"
#include "ops/conv_tiles.h"

namespace kassette {

template <class T>
void correlate_depthwise(const Line* line, const Images& x, const Images& y, std::int64_t images, const Weights<T>& w, std::int64_t repeat, bool sums) {
  const std::int64_t channels = sums ? x.channels : x.channels * repeat, taps = line[0].taps * line[1].taps * line[2].taps;
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const Tiling tiles = cut(line, images, channels * kItem, 0, 4, conv_limits.tiles);
  const std::int64_t points = tiles.size[0] * tiles.size[1] * tiles.size[2];
  const std::int64_t weight_step[3] = {line[0].weight_step * w.tap[0], line[1].weight_step * w.tap[1], line[2].weight_step * w.tap[2]};
  const std::int64_t weight_start = w.of(line, 0, 0, 0) - w.data;
  parallel_for(tiles.count(), std::max<std::int64_t>(1, conv_limits.grain / (8 * taps * channels * points)), [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, sums ? 1 : repeat, 1);
    Results<T> results(y, points, y.channels);
    const bool folds = sums && repeat > 1;
    Scratch<T> wide(folds ? tiles.size[2] * channels : 0);
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t first[3], n[3];
      const std::int64_t image = tiles.place(i, first, n);
      results.begin(output_box(line, image, first, n, 0, y.channels));
      const DepthwiseTile<T> from(slab, line, x, image, first, n, weight_step, weight_start);
      from.each_run(n, [&](std::int64_t a, std::int64_t b, const T* origin, std::int64_t a_step, const WindowRun& run) {
        T* row = results.row(a, b) + run.first * results.step();
        loops<T>().depthwise({.a = origin, .a_step = a_step, .offsets = run.at, .weights = run.weight, .taps = run.taps, .b = w.data,
                              .out = folds ? wide.get() : row, .out_step = folds ? channels : results.step(), .pixels = run.count, .channels = channels});
        for (std::int64_t p = 0; folds && p < run.count; ++p)
          for (std::int64_t c = 0; c < y.channels; ++c) {
            const T* parts = wide.get() + p * channels + c * repeat;
            T sum = parts[0];
            for (std::int64_t k = 1; k < repeat; ++k) sum += parts[k];
            row[p * results.step() + c] = sum;
          }
      });
      results.end();
    }
  });
}

template void correlate_depthwise(const Line*, const Images&, const Images&, std::int64_t, const Weights<float>&, std::int64_t, bool);
template void correlate_depthwise(const Line*, const Images&, const Images&, std::int64_t, const Weights<double>&, std::int64_t, bool);

}  // namespace kassette

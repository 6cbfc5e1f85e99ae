// ops/convolution/conv_depthwise.cpp - depthwise convolution on the CPU, and the gradient of its kernel: a correlation
// of each channel by itself.
#include <optional>

#include "ops/convolution/conv_sums.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kMaxTaps = 1 << 16;  // in a block: each thread keeps a list of them
// Of products that are added one after the other, so that rounding errors grow as in pairwise summation (Note [Blocks
// of reductions]).
constexpr std::int64_t kMaxProducts = 2048;

/// The division of a depthwise convolution into groups of channels and blocks of taps, which bounds the size of its
/// buffers.
template <class T>
class DepthwiseParts {
 public:
  /// Each of c channels is read `repeat` times, from x in place or, if `copied`, from a slab.
  DepthwiseParts(const CorrelationAxis* axis, std::int64_t c, std::int64_t repeat, bool copied)
      : axis_(axis), copied_(copied), taps_(axis[0].taps * axis[1].taps * axis[2].taps) {
    const std::int64_t vector = devices::gemm_loops<T>().columns / 2;
    at_once_ = std::clamp(kSlab / (repeat * (copied ? taps_ : 1)), std::min(c, ceil_div(vector, repeat)), c);
  }
  std::int64_t taps() const { return taps_; }
  /// The number of input channels of the kernel in a group.
  std::int64_t at_once() const { return at_once_; }
  /// Blocks of at most `most` taps, for `channels` channels that are computed together.
  std::vector<Block> blocks(std::int64_t channels, std::int64_t most) const {
    return blocks_of(axis_, 1, std::clamp<std::int64_t>(most, 1, kMaxTaps),
                     copied_ ? static_cast<double>(kSlab) / static_cast<double>(channels) : HUGE_VAL);
  }
  /// The tiles in which `blocks` are computed. If x is read in place, a tile needs no memory for the elements between
  /// taps.
  Tiling tiles(const std::vector<Block>& blocks, std::int64_t images, std::int64_t channels,
               std::int64_t least_columns) const {
    Block largest = largest_of(blocks);
    for (CorrelationAxis& l : largest.axis)
      if (!copied_) l.tap_step = 1;
    return cut(largest.axis, images, channels * kItem, 0, least_columns, conv_limits.tiles);
  }

 private:
  static constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t kSlab = conv_limits.slab_bytes / kItem;
  const CorrelationAxis* axis_;
  bool copied_;
  std::int64_t taps_, at_once_;
};

template <class T>
void correlate_channels(const DepthwiseParts<T>& parts, const Images& x, const Images& y, std::int64_t images,
                        const Weights& w, std::int64_t repeat, bool sums) {
  const std::int64_t channels = sums ? x.channels : x.channels * repeat;
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  // Weights are packed once, before all tiles. If they take too much memory, each tile packs those of each block
  // itself.
  const bool before = parts.taps() * channels * kItem <= conv_limits.packed_bytes;
  const std::vector<Block> blocks = parts.blocks(
      channels, std::min(kMaxProducts, before ? parts.taps() : conv_limits.panel_bytes / (channels * kItem)));
  const Tiling tiles = parts.tiles(blocks, images, channels, 4);
  const std::int64_t points = tiles.size[0] * tiles.size[1] * tiles.size[2];
  Scratch<T> packed(before ? parts.taps() * channels : 0);
  auto pack = [&](const Block& block, T* to) { pack_panel(block.axis, w, 1, channels, channels, to); };
  for (const Block& block : blocks)
    if (before) pack(block, packed.get() + block.before * channels);
  devices::parallel_for(
      tiles.count(), std::max<std::int64_t>(1, conv_limits.grain / (8 * parts.taps() * channels * points)),
      [&](std::int64_t begin, std::int64_t end) {
        Slab<T> slab(x, sums ? 1 : repeat, 1);
        Results<T> results(y, points, y.channels);
        // The products of a block are summed by themselves where a result has several blocks or channels.
        const std::int64_t of_result = sums ? repeat : 1;
        const bool apart = of_result > 1 || blocks.size() > 1;
        Scratch<T> wide(apart ? tiles.size[2] * channels : 0),
            own(before ? 0 : largest_of(blocks).products() * channels);
        for (std::int64_t i = begin; i < end; ++i) {
          std::int64_t first[3], n[3];
          const std::int64_t image = tiles.place(i, first, n);
          results.begin(output_box(blocks[0].axis, image, first, n, 0, y.channels));
          for (const Block& block : blocks) {
            const bool add = block.before > 0;
            if (!before) pack(block, own.get());
            const T* weights = before ? packed.get() + block.before * channels : own.get();
            const DepthwiseTile<T> from(slab, block.axis, x, image, first, n, channels);
            from.each_run(
                n, [&](std::int64_t a, std::int64_t b, const T* origin, std::int64_t a_step, const WindowRun& run) {
                  T* row = results.row(a, b) + run.first * results.step();
                  loops<T>().depthwise({.a = origin,
                                        .a_step = a_step,
                                        .offsets = run.at,
                                        .weights = run.weight,
                                        .taps = run.taps,
                                        .b = weights,
                                        .out = apart ? wide.get() : row,
                                        .out_step = apart ? channels : results.step(),
                                        .pixels = run.count,
                                        .channels = channels});
                  for (std::int64_t p = 0; apart && p < run.count; ++p)
                    for (std::int64_t c = 0; c < y.channels; ++c) {
                      const T* products = wide.get() + p * channels + c * of_result;
                      T sum = products[0];
                      for (std::int64_t k = 1; k < of_result; ++k) sum += products[k];
                      T& to = row[p * results.step() + c];
                      to = add ? to + sum : sum;
                    }
                });
          }
          results.end();
        }
      });
}

/// The sums of a part of the pixels: every kMaxProducts pixels are summed by themselves.
template <class T>
class PixelSums {
 public:
  PixelSums(T* to, std::int64_t size) : to_(to), size_(size) { std::fill_n(to, size, T(0)); }
  /// The sums to which the next pixels, at most kMaxProducts, are to be added.
  T* of(std::int64_t pixels) {
    if (done_ + pixels > kMaxProducts) begin_block();
    done_ += pixels;
    return block_ ? block_->get() : to_;
  }
  void end() const {
    for (std::int64_t i = 0; block_ && i < size_; ++i) to_[i] += block_->get()[i];
  }

 private:
  void begin_block() {
    end();
    if (!block_) block_.emplace(size_);
    std::fill_n(block_->get(), size_, T(0));
    done_ = 0;
  }
  T* to_;
  std::int64_t size_, done_ = 0;
  std::optional<Scratch<T>> block_;  // the first block is summed in the result itself
};

/// Computes the kernel gradient for a block of taps, (taps, channels).
template <class T>
void sum_channels(const DepthwiseParts<T>& parts, const std::vector<Block>& blocks, const Block& block, const Images& x,
                  const Images& dy, std::int64_t images, std::int64_t repeat, T* to) {
  const std::int64_t channels = dy.channels, size = block.products() * channels;
  const Tiling tiles = parts.tiles(blocks, images, channels, 8);
  const std::int64_t n_parts = std::min({most_parts<T>(size), tiles.count(), conv_limits.tiles / 2});
  const Partials<T> partials(to, n_parts, size);
  devices::parallel_for(n_parts, 1, [&](std::int64_t begin, std::int64_t end) {
    Slab<T> slab(x, repeat, 1), slopes(dy, 1, 1);
    for (std::int64_t part = begin; part < end; ++part) {
      PixelSums<T> sums(partials.of(part), size);
      for (std::int64_t tile = tiles.count() * part / n_parts; tile < tiles.count() * (part + 1) / n_parts; ++tile) {
        std::int64_t first[3], n[3];
        const std::int64_t image = tiles.place(tile, first, n);
        slopes.read(output_box(block.axis, image, first, n, 0, channels));
        const DepthwiseTile<T> from(slab, block.axis, x, image, first, n, channels);
        const std::int64_t* of_dy = slopes.stride();
        from.each_run(n,
                      [&](std::int64_t a, std::int64_t b, const T* origin, std::int64_t a_step, const WindowRun& run) {
                        const T* slope = slopes.data() + a * of_dy[0] + b * of_dy[1] + run.first * of_dy[2];
                        for (std::int64_t p = 0, some; p < run.count; p += some) {
                          some = std::min(kMaxProducts, run.count - p);
                          loops<T>().depthwise_gradient({.a = origin + p * a_step,
                                                         .b = slope + p * of_dy[2],
                                                         .a_step = a_step,
                                                         .b_step = of_dy[2],
                                                         .offsets = run.at,
                                                         .weights = run.weight,
                                                         .taps = run.taps,
                                                         .out = sums.of(some),
                                                         .pixels = some,
                                                         .channels = channels});
                        }
                      });
      }
      sums.end();
    }
  });
  partials.add();
}

}  // namespace

template <class T>
void correlate_depthwise(const CorrelationAxis* axis, const Images& x, const Images& y, std::int64_t images,
                         const Weights& w, std::int64_t repeat, bool sums) {
  const std::int64_t c = sums ? y.channels : x.channels;
  auto side = [&](const Images& of, bool wide, std::int64_t first, std::int64_t n) {
    return wide ? of.part(first * repeat, n * repeat) : of.part(first, n);
  };
  if (repeat > conv_limits.repeated) {  // each channel is convolved on its own
    for (std::int64_t i = 0; i < c; ++i)
      correlate<T>(axis, side(x, sums, i, 1), side(y, !sums, i, 1), images, w.from(i * repeat));
    return;
  }
  const DepthwiseParts<T> parts(axis, c, repeat, !Slab<T>(x, sums ? 1 : repeat, 1).direct());
  for (std::int64_t first = 0; first < c; first += parts.at_once()) {
    const std::int64_t n = std::min(parts.at_once(), c - first);
    correlate_channels(parts, side(x, sums, first, n), side(y, !sums, first, n), images, w.from(first * repeat), repeat,
                       sums);
  }
}

template <class T>
void kernel_gradient_depthwise(const CorrelationAxis* axis, const Images& x, const Images& dy, std::int64_t images,
                               std::int64_t repeat, const Weights& to) {
  const std::int64_t c = x.channels;
  if (repeat > conv_limits.repeated) {
    for (std::int64_t i = 0; i < c; ++i)
      kernel_gradient<T>(axis, x.part(i, 1), dy.part(i * repeat, repeat), images, to.from(i * repeat));
    return;
  }
  const DepthwiseParts<T> parts(axis, c, repeat, !Slab<T>(x, repeat, 1).direct());
  const std::int64_t most = conv_limits.partial_bytes / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t first = 0; first < c; first += parts.at_once()) {
    const std::int64_t n = std::min(parts.at_once(), c - first), channels = n * repeat;
    const std::vector<Block> blocks = parts.blocks(channels, most / channels);
    const Images from = x.part(first, n), slopes = dy.part(first * repeat, channels);
    const KernelSums<T> sums(to, dy.channels == channels && blocks.size() == 1,
                             largest_of(blocks).products() * channels);
    for (const Block& block : blocks) {
      sum_channels(parts, blocks, block, from, slopes, images, repeat, sums.get());
      sums.write(block, first * repeat, channels);
    }
  }
}

template void correlate_depthwise<float>(const CorrelationAxis*, const Images&, const Images&, std::int64_t,
                                         const Weights&, std::int64_t, bool);
template void correlate_depthwise<double>(const CorrelationAxis*, const Images&, const Images&, std::int64_t,
                                          const Weights&, std::int64_t, bool);
template void kernel_gradient_depthwise<float>(const CorrelationAxis*, const Images&, const Images&, std::int64_t,
                                               std::int64_t, const Weights&);
template void kernel_gradient_depthwise<double>(const CorrelationAxis*, const Images&, const Images&, std::int64_t,
                                                std::int64_t, const Weights&);

}  // namespace kassette::ops

// ops/conv_cpu.cpp - convolution and its gradients on the CPU: Note [Correlations] in window.h.
#include "ops/conv_tiles.h"

#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/cast.h"
#include "ops/strided.h"

namespace kassette {

constinit ConvLimits conv_limits;

namespace {

template <class E>
void copy_panel(const Line* line, const Weights& w, std::int64_t n, std::int64_t columns, std::int64_t width, E* to) {
  const E* data = reinterpret_cast<const E*>(w.data);
  for (std::int64_t a = 0; a < line[0].taps; ++a)
    for (std::int64_t b = 0; b < line[1].taps; ++b)
      for (std::int64_t c = 0; c < line[2].taps; ++c, to += n * width) {
        const E* tap = data + w.at(line, a, b, c);
        if (columns < width) std::fill_n(to, n * width, E(0));
        if (w.out == 1) {
          for (std::int64_t k = 0; k < n; ++k) std::copy_n(tap + k * w.in, columns, to + k * width);
        } else {
          for (std::int64_t j = 0; j < columns; ++j)
            for (std::int64_t k = 0; k < n; ++k) to[k * width + j] = tap[k * w.in + j * w.out];
        }
      }
}

/// Packs the weights for dot products, in the order described at kDotColumns (conv_loops.h).
template <class E>
void copy_dots(const Line* line, const Weights& w, std::int64_t channels, std::int64_t columns, bool joined,
               std::int64_t vector, E* to) {
  const E* data = reinterpret_cast<const E*>(w.data);
  const std::int64_t taps = joined ? line[2].taps : 1, chunk = columns * vector,
                     stretch = ceil_div(taps * channels, vector) * chunk;
  for (std::int64_t a = 0; a < line[0].taps; ++a)
    for (std::int64_t b = 0; b < line[1].taps; ++b)
      for (std::int64_t first = 0; first < line[2].taps; first += taps, to += stretch) {
        std::fill_n(to, stretch, E(0));
        for (std::int64_t c = 0; c < taps; ++c) {
          const E* tap = data + w.at(line, a, b, first + c);
          for (std::int64_t k = 0; k < channels; ++k)
            for (std::int64_t j = 0, i = c * channels + k; j < columns; ++j)
              to[i / vector * chunk + j * vector + i % vector] = tap[k * w.in + j * w.out];
        }
      }
}

/// Calls copy(p), which writes n elements of `dtype` at p, and converts them to T.
template <class T, class F>
void as_wide(DType dtype, std::int64_t n, T* to, F copy) {
  if (dtype.size() == static_cast<int>(sizeof(T))) return copy(to);
  const Scratch<std::uint16_t> half(n);
  copy(half.get());
  cast_elements(to, float32, half.get(), dtype, n);
}

/// True if results are computed as dot products along windows: they have few channels (`columns`), of `products` products each, and the stretches
/// of the windows, of `run` elements, are long enough for vectors.
bool dot_products(std::int64_t columns, std::int64_t products, std::int64_t run, std::int64_t vector,
                  std::int64_t item) {
  return columns <= std::min<std::int64_t>({conv_limits.dot_columns, kDotColumns, vector / 2}) && run >= vector / 2 &&
         products * columns * item <= conv_limits.panel_bytes;
}

}  // namespace

template <class T>
void pack_panel(const Line* line, const Weights& w, std::int64_t n, std::int64_t columns, std::int64_t width, T* to) {
  as_wide(w.dtype, line[0].taps * line[1].taps * line[2].taps * n * width, to,
          [&](auto* raw) { copy_panel(line, w, n, columns, width, raw); });
}

void join_axes(Line* line, Images& x, Images& y, std::int64_t& images) {
  for (int d = 0; d < 3; ++d)
    if (line[d].taps != 1 || line[d].step != 1 || line[d].start != 0 || line[d].out_step != 1 ||
        line[d].results != x.size[d] || x.size[d] != y.size[d])
      return;
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
void correlate(const Line* along, Images x, Images y, std::int64_t images, const Weights& w, const Finish<T>& finish) {
  Line line[3] = {along[0], along[1], along[2]};
  join_axes(line, x, y, images);
  const ConvLoops<T>& loop = loops<T>();
  constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t taps = line[0].taps * line[1].taps * line[2].taps, c_in = x.channels, c_out = y.channels,
                     vector = loop.columns / 2;
  // True if the taps of a row are contiguous wherever a tile reads them; they are not if x is a view of some of an image's channels.
  const bool neighbours = line[2].tap_step == 1 && (!x.channels_last() || x.stride[2] == c_in);
  const std::int64_t run = neighbours ? line[2].taps * c_in : c_in;
  const double most_elements = static_cast<double>(conv_limits.slab_bytes / kItem);
  const bool dots = dot_products(c_out, taps * c_in, run, vector, kItem) &&
                    blocks_of(line, c_in, taps * c_in, most_elements).size() == 1;
  const auto tile = dots ? loop.dot_products : loop.tile;
  const std::int64_t width = dots ? c_out : loop.columns, rows = dots ? loop.dots / c_out : loop.rows;
  // The blocks are so small that the weights of one panel stay in a cache.
  const std::vector<Block> blocks =
      blocks_of(line, c_in, dots ? taps * c_in : conv_limits.panel_bytes / (width * kItem), most_elements);
  const auto n_blocks = static_cast<std::int64_t>(blocks.size());
  const Block largest = largest_of(blocks);
  // Panels are packed once, before all tiles. If a single panel takes too much memory, each tile packs the blocks of its panels itself.
  const std::int64_t panels = ceil_div(c_out, width),
                     panel_size = (dots ? taps * c_in / run * round_up(run, vector) : taps * c_in) * width;
  const bool before = dots || panel_size * kItem <= conv_limits.packed_bytes;
  const std::int64_t panels_at_once =
      before ? std::clamp<std::int64_t>(conv_limits.packed_bytes / (panel_size * kItem), 1, panels) : panels;
  const std::int64_t most_columns =
      Results<T>::direct(y) ? c_out : std::min(c_out, 16 * width);  // in a buffer for results
  const Tiling tiles = cut(largest.line, images, largest.channels * kItem,
                           Results<T>::direct(y) ? 0 : most_columns * kItem, rows, conv_limits.tiles);
  const std::int64_t tile_points = tiles.size[0] * tiles.size[1] * tiles.size[2];
  Scratch<T> packed(before ? panels_at_once * panel_size : 0);
  if (dots)
    as_wide(w.dtype, panel_size, packed.get(),
            [&](auto* raw) { copy_dots(line, w, c_in, c_out, neighbours, vector, raw); });
  auto pack = [&](const Block& block, std::int64_t panel, T* to) {
    const std::int64_t column = panel * width;
    pack_panel(block.line, w.from(block.channel * w.in + column * w.out), block.channels,
               std::min(width, c_out - column), width, to);
  };

  for (std::int64_t first_panel = 0; first_panel < panels; first_panel += panels_at_once) {
    const std::int64_t n_panels = std::min(panels_at_once, panels - first_panel);
    if (before && !dots)
      parallel_for(n_panels * n_blocks, std::max<std::int64_t>(1, (1 << 15) * n_blocks / panel_size),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       const Block& block = blocks[i % n_blocks];
                       pack(block, first_panel + i / n_blocks,
                            packed.get() + i / n_blocks * panel_size + block.before * width);
                     }
                   });

    // If there are few tiles, the columns are divided among threads too.
    const std::int64_t groups = std::min(
        n_panels, std::max(ceil_div(conv_limits.tiles / 2, tiles.count()), ceil_div(n_panels * width, most_columns)));
    const std::int64_t products = std::max<std::int64_t>(1, tile_points * panel_size * n_panels / groups);
    parallel_for(
        tiles.count() * groups, std::max<std::int64_t>(1, conv_limits.grain / products),
        [&](std::int64_t begin, std::int64_t end) {
          Slab<T> slab(x, 1, 1);
          Results<T> results(y, tile_points, std::min(c_out, (ceil_div(n_panels, groups)) * width));
          Scratch<T> own(before ? 0 : largest.products() * width);
          for (std::int64_t i = begin; i < end; ++i) {
            std::int64_t first[3], n[3];
            const std::int64_t image = tiles.place(i / groups, first, n), group = i % groups;
            const std::int64_t panel_begin = n_panels * group / groups, panel_end = n_panels * (group + 1) / groups;
            const std::int64_t column = (first_panel + panel_begin) * width,
                               columns = std::min(c_out, (first_panel + panel_end) * width) - column;
            results.begin(output_box(line, image, first, n, column, columns));
            for (const Block& block : blocks) {
              slab.read(input_box(block.line, image, first, n, block.channel, block.channels));
              const std::int64_t* stride = slab.stride();
              const Stretches window(block.line, stride, block.channels, neighbours && stride[2] == block.channels);
              ConvTile<T> t{.a = nullptr,
                            .a_step = line[2].step * stride[2],
                            .offsets = window.offsets.data(),
                            .runs = window.count(),
                            .run = window.length,
                            .b = own.get(),
                            .out = nullptr,
                            .out_step = results.step(),
                            .columns = 0,
                            .add = block.before > 0};
              const std::int64_t pieces = ceil_div(n[2], rows);
              for (std::int64_t panel = panel_begin; panel < panel_end; ++panel) {
                const std::int64_t at = (panel - panel_begin) * width;
                if (before) t.b = packed.get() + panel * panel_size + block.before * width;
                else pack(block, panel, own.get());
                t.columns = std::min(width, columns - at);
                if (&block == &blocks.back()) {
                  t.bias = finish.bias ? finish.bias + column + at : nullptr;
                  t.relu = finish.relu;
                }
                for (std::int64_t a = 0; a < n[0]; ++a)
                  for (std::int64_t b = 0; b < n[1]; ++b)
                    for (std::int64_t piece = 0; piece < pieces; ++piece) {
                      const std::int64_t p = n[2] * piece / pieces, pixels = n[2] * (piece + 1) / pieces - p;
                      t.a = slab.data() + a * line[0].step * stride[0] + b * line[1].step * stride[1] + p * t.a_step;
                      t.out = results.row(a, b) + p * t.out_step + at;
                      tile(t, pixels);
                    }
              }
            }
            results.end();
          }
        });
  }
}

template void correlate(const Line*, Images, Images, std::int64_t, const Weights&, const Finish<float>&);
template void correlate(const Line*, Images, Images, std::int64_t, const Weights&, const Finish<double>&);
template void pack_panel(const Line*, const Weights&, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_panel(const Line*, const Weights&, std::int64_t, std::int64_t, std::int64_t, double*);

namespace {

// ---- kernels ---------------------------------------------------------------------------------------------------------

Images images_of(const ConvShape& s, const std::byte* data, DType dtype, bool input) {
  return Images(data, dtype, input ? s.in : s.out, input ? s.c_in : s.c_out, s.channels_first);
}

/// The kernel at `data`. `in` and `out` are the strides of the channels that are summed over and of the results' channels; in a depthwise convolution
/// both are 1.
Weights weights_of(const ConvShape& s, const std::byte* data, DType dtype, std::int64_t in, std::int64_t out) {
  const WindowAxis* w = s.window;
  const std::int64_t block = s.depthwise ? s.c_out : s.c_in * s.c_out;  // of a tap
  return {const_cast<std::byte*>(data),
          dtype,
          {w[1].size * w[2].size * block, w[2].size * block, block},
          s.depthwise ? 1 : in,
          s.depthwise ? 1 : out};
}

template <class T>
void forward(const OpCall& call, const Finish<T>& finish = {}) {
  const Body& y = *call.out[0];
  const ConvShape s(call.attrs, call.spec(0), call.spec(1), y);
  const Images x = images_of(s, call.in[0].data, y.dtype, true), to = images_of(s, y.data(), y.dtype, false);
  Line line[3];
  for (int d = 0; d < 3; ++d) line[d] = forward_line(s.window[d], s.in[d], s.out[d]);
  const Weights w = weights_of(s, call.in[1].data, y.dtype, s.c_out, 1);
  if (s.depthwise) correlate_depthwise<T>(line, x, to, s.batch, w, s.c_out / s.c_in, /*sums=*/false);
  else correlate<T>(line, x, to, s.batch, w, finish);
}

template <class T>
void input_gradient(const OpCall& call) {
  const Body& dx = *call.out[0];
  const ConvShape s(call.attrs, dx, call.spec(1), call.spec(0));
  const Images dy = images_of(s, call.in[0].data, dx.dtype, false), to = images_of(s, dx.data(), dx.dtype, true);
  const Weights w = weights_of(s, call.in[1].data, dx.dtype, 1, s.c_out);
  const WindowAxis* window = s.window;
  bool gaps = false;
  for (int d = 0; d < 3; ++d) gaps |= window[d].stride > window[d].size;
  if (gaps) zero_bytes(dx.data(), dx.bytes());
  for (std::int64_t a = 0; a < std::min(window[0].stride, s.in[0]); ++a)
    for (std::int64_t b = 0; b < std::min(window[1].stride, s.in[1]); ++b)
      for (std::int64_t c = 0; c < std::min(window[2].stride, s.in[2]); ++c) {
        const Line line[3] = {backward_line(window[0], s.in[0], a), backward_line(window[1], s.in[1], b),
                              backward_line(window[2], s.in[2], c)};
        if (line[0].taps * line[1].taps * line[2].taps == 0 || line[0].results * line[1].results * line[2].results == 0)
          continue;
        if (s.depthwise) correlate_depthwise<T>(line, dy, to, s.batch, w, s.c_out / s.c_in, /*sums=*/true);
        else correlate<T>(line, dy, to, s.batch, w);
      }
}

template <class T>
void kernel_gradient_of(const OpCall& call) {
  const Body& dw = *call.out[0];
  const ConvShape s(call.attrs, call.spec(0), dw, call.spec(1));
  const Images x = images_of(s, call.in[0].data, dw.dtype, true), dy = images_of(s, call.in[1].data, dw.dtype, false);
  const Weights to = weights_of(s, dw.data(), dw.dtype, s.c_out, 1);
  Line line[3];
  for (int d = 0; d < 3; ++d) line[d] = forward_line(s.window[d], s.in[d], s.out[d]);
  if (s.depthwise) kernel_gradient_depthwise<T>(line, x, dy, s.batch, s.c_out / s.c_in, to);
  else kernel_gradient<T>(line, x, dy, s.batch, to);
}

/// True if there is nothing to sum, so that the result is empty or, set here, zeros.
bool nothing(const OpCall& call) {
  Body& out = *call.out[0];
  if (out.numel() == 0) return true;
  if (call.spec(0).numel() > 0 && call.spec(1).numel() > 0) return false;
  zero_bytes(out.data(), out.bytes());
  return true;
}

}  // namespace

void run_convolution(const OpCall& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) forward<double>(call);
  else forward<float>(call);
}
bool convolve_with_bias(const OpCall& call, const Body& row, bool relu) {
  Body& out = *call.out[0];
  const ConvForm& form = form_of(call.attrs);
  if (call.device != cpu || form.channels_first || form.depthwise || row.dtype != out.dtype ||
      row.numel() != out.dims[out.rank - 1])
    return false;
  if ((out.dtype != float32 && out.dtype != float64) || out.numel() == 0 || call.spec(0).numel() == 0 ||
      call.spec(1).numel() == 0)
    return false;
  out.storage = Storage::allocate(out.checked_bytes(call.op.name), cpu);
  if (out.dtype == float64) forward<double>(call, {reinterpret_cast<const double*>(row.data()), relu});
  else forward<float>(call, {reinterpret_cast<const float*>(row.data()), relu});
  return true;
}
void run_convolution_input_gradient(const OpCall& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) input_gradient<double>(call);
  else input_gradient<float>(call);
}
void run_convolution_kernel_gradient(const OpCall& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) kernel_gradient_of<double>(call);
  else kernel_gradient_of<float>(call);
}

}  // namespace kassette
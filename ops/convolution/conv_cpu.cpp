// ops/convolution/conv_cpu.cpp - convolution and its gradients on the CPU: Note [Correlations] in window.h.
#include "ops/convolution/conv_tiles.h"

#include "core/text.h"
#include "devices/cpu/blas.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/cast.h"
#include "ops/convolution/conv_zeros.h"
#include "ops/shape/strided.h"

namespace kassette::ops {

constinit ConvLimits conv_limits;

namespace {

template <class E>
void copy_panel(const CorrelationAxis* axis, const Weights& w, std::int64_t n, std::int64_t columns, std::int64_t width,
                E* to) {
  const E* data = reinterpret_cast<const E*>(w.data);
  for (std::int64_t a = 0; a < axis[0].taps; ++a)
    for (std::int64_t b = 0; b < axis[1].taps; ++b)
      for (std::int64_t c = 0; c < axis[2].taps; ++c, to += n * width) {
        const E* tap = data + w.at(axis, a, b, c);
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
void copy_dots(const CorrelationAxis* axis, const Weights& w, std::int64_t channels, std::int64_t columns, bool joined,
               std::int64_t vector, E* to) {
  const E* data = reinterpret_cast<const E*>(w.data);
  const std::int64_t taps = joined ? axis[2].taps : 1, chunk = columns * vector,
                     stretch = ceil_div(taps * channels, vector) * chunk;
  for (std::int64_t a = 0; a < axis[0].taps; ++a)
    for (std::int64_t b = 0; b < axis[1].taps; ++b)
      for (std::int64_t first = 0; first < axis[2].taps; first += taps, to += stretch) {
        std::fill_n(to, stretch, E(0));
        for (std::int64_t c = 0; c < taps; ++c) {
          const E* tap = data + w.at(axis, a, b, first + c);
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

/// True if results are computed as dot products along windows: they have few channels (`columns`), of `products`
/// products each, and the stretches of the windows, of `run` elements, are long enough for vectors.
bool dot_products(std::int64_t columns, std::int64_t products, std::int64_t run, std::int64_t vector,
                  std::int64_t item) {
  return columns <= std::min<std::int64_t>({conv_limits.dot_columns, kDotColumns, vector / 2}) && run >= vector / 2 &&
         products * columns * item <= conv_limits.panel_bytes;
}

}  // namespace

template <class T>
void pack_panel(const CorrelationAxis* axis, const Weights& w, std::int64_t n, std::int64_t columns, std::int64_t width,
                T* to) {
  as_wide(w.dtype, axis[0].taps * axis[1].taps * axis[2].taps * n * width, to,
          [&](auto* raw) { copy_panel(axis, w, n, columns, width, raw); });
}

void join_axes(CorrelationAxis* axis, Images& x, Images& y, std::int64_t& images) {
  for (int d = 0; d < 3; ++d)
    if (axis[d].taps != 1 || axis[d].step != 1 || axis[d].start != 0 || axis[d].out_step != 1 ||
        axis[d].results != x.size[d] || x.size[d] != y.size[d])
      return;
  if (!x.channels_last() || !y.channels_last()) return;
  const std::int64_t n = images * x.size[0] * x.size[1] * x.size[2];
  for (Images* t : {&x, &y}) {
    t->size[0] = t->size[1] = 1;
    t->size[2] = n;
  }
  for (int d = 0; d < 3; ++d) axis[d].results = x.size[d];
  images = 1;
}

namespace {

/// A correlation: the channels of the results are cut into panels, the sum of a result into blocks, and the results
/// into tiles.
template <class T>
class Correlation {
 public:
  Correlation(const CorrelationAxis* along, const Images& x, const Images& y, std::int64_t images, const Weights& w,
              const devices::Finish<T>& finish)
      : axis_{along[0], along[1], along[2]}, x_(x), y_(y), w_(w), finish_(finish) {
    join_axes(axis_, x_, y_, images);
    choose_loop();
    panels_ = ceil_div(y_.channels, width_);
    panel_size_ = dots_ ? products_ / run_ * round_up(run_, gemm_.columns / 2) * width_ : products_ * width_;
    packed_before_ = dots_ || panel_size_ * kItem <= conv_limits.packed_bytes;
    const bool direct = Results<T>::direct(y_);
    most_columns_ = direct ? y_.channels : std::min(y_.channels, 16 * width_);  // in a buffer for results
    largest_ = largest_of(blocks_);
    tiles_ = cut(largest_.axis, images, largest_.channels * kItem, direct ? 0 : most_columns_ * kItem, rows_,
                 conv_limits.tiles);
  }

  /// Panels are packed once, before all tiles. If a single panel takes too much memory, each tile packs the blocks of
  /// its panels itself.
  void run() {
    const std::int64_t at_once =
        packed_before_ ? std::clamp<std::int64_t>(conv_limits.packed_bytes / (panel_size_ * kItem), 1, panels_)
                       : panels_;
    const Scratch<T> packed(packed_before_ ? at_once * panel_size_ : 0);
    packed_ = packed.get();
    if (dots_)
      as_wide(w_.dtype, panel_size_, packed_,
              [&](auto* raw) { copy_dots(axis_, w_, x_.channels, y_.channels, neighbours_, gemm_.columns / 2, raw); });
    for (std::int64_t first = 0; first < panels_; first += at_once) {
      const std::int64_t n = std::min(at_once, panels_ - first);
      if (packed_before_ && !dots_) pack_panels(first, n);
      run_panels(first, n);
    }
  }

 private:
  static constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));

  /// The results of one tile in some of the panels that are packed.
  struct Part {
    std::int64_t image, first[3], n[3];  // the tile
    std::int64_t panel, panels;          // from the first packed one on
    std::int64_t column, columns;        // the channels of the results
  };

  /// Chooses the loop for a tile, and the blocks: so small that the weights of one panel stay in a cache.
  void choose_loop() {
    const std::int64_t c_in = x_.channels, c_out = y_.channels;
    products_ = axis_[0].taps * axis_[1].taps * axis_[2].taps * c_in;
    // True if the taps of a row are contiguous wherever a tile reads them; they are not if x is a view of some of an
    // image's channels.
    neighbours_ = axis_[2].tap_step == 1 && (!x_.channels_last() || x_.stride[2] == c_in);
    run_ = neighbours_ ? axis_[2].taps * c_in : c_in;
    const double most_elements = static_cast<double>(conv_limits.slab_bytes / kItem);
    dots_ = dot_products(c_out, products_, run_, gemm_.columns / 2, kItem) &&
            blocks_of(axis_, c_in, products_, most_elements).size() == 1;
    block_ = dots_ ? loop_.dot_products : gemm_.block;
    width_ = dots_ ? c_out : gemm_.columns;
    rows_ = dots_ ? loop_.dots / c_out : gemm_.rows;
    blocks_ = blocks_of(axis_, c_in, dots_ ? products_ : conv_limits.panel_bytes / (width_ * kItem), most_elements);
  }

  void pack(const Block& block, std::int64_t panel, T* to) const {
    const std::int64_t column = panel * width_;
    pack_panel(block.axis, w_.from(block.channel * w_.in + column * w_.out), block.channels,
               std::min(width_, y_.channels - column), width_, to);
  }
  /// Where the weights of a block begin, in the panel at this position among the packed ones.
  T* packed(const Block& block, std::int64_t at) const { return packed_ + at * panel_size_ + block.before * width_; }

  void pack_panels(std::int64_t first, std::int64_t n) const {
    const auto n_blocks = static_cast<std::int64_t>(blocks_.size());
    devices::parallel_for(n * n_blocks, std::max<std::int64_t>(1, (1 << 15) * n_blocks / panel_size_),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t i = begin; i < end; ++i) {
                              const Block& block = blocks_.data()[i % n_blocks];
                              pack(block, first + i / n_blocks, packed(block, i / n_blocks));
                            }
                          });
  }

  /// Computes the results of n panels. If there are few tiles, the panels are divided among threads too.
  void run_panels(std::int64_t first_panel, std::int64_t n) const {
    const std::int64_t groups =
        std::min(n, std::max(ceil_div(conv_limits.tiles / 2, tiles_.count()), ceil_div(n * width_, most_columns_)));
    const std::int64_t points = tiles_.size[0] * tiles_.size[1] * tiles_.size[2],
                       products = std::max<std::int64_t>(1, points * panel_size_ * n / groups);
    devices::parallel_for(tiles_.count() * groups, std::max<std::int64_t>(1, conv_limits.grain / products),
                          [&](std::int64_t begin, std::int64_t end) {
                            Slab<T> slab(x_, 1, 1);
                            Results<T> results(y_, points, std::min(y_.channels, ceil_div(n, groups) * width_));
                            const Scratch<T> own(packed_before_ ? 0 : largest_.products() * width_);
                            for (std::int64_t i = begin; i < end; ++i) {
                              const std::int64_t group = i % groups;
                              Part part;
                              part.image = tiles_.place(i / groups, part.first, part.n);
                              part.panel = n * group / groups;
                              part.panels = n * (group + 1) / groups - part.panel;
                              part.column = (first_panel + part.panel) * width_;
                              part.columns = std::min(y_.channels, part.column + part.panels * width_) - part.column;
                              run_part(part, slab, results, own.get());
                            }
                          });
  }

  void run_part(const Part& part, Slab<T>& slab, Results<T>& results, T* own) const {
    results.begin(output_box(axis_, part.image, part.first, part.n, part.column, part.columns));
    for (const Block& block : blocks_) {
      slab.read(input_box(block.axis, part.image, part.first, part.n, block.channel, block.channels));
      add_block(part, block, slab, results, own);
    }
    results.end();
  }

  /// Adds the products of a block to the results; after the last block, the bias too.
  void add_block(const Part& part, const Block& block, const Slab<T>& slab, const Results<T>& results, T* own) const {
    const std::int64_t* stride = slab.stride();
    const Stretches window(block.axis, stride, block.channels, neighbours_ && stride[2] == block.channels);
    devices::GemmBlock<T> t{.a = nullptr,
                            .a_step = axis_[2].step * stride[2],
                            .b = own,
                            .b_step = width_,
                            .run = window.length,
                            .out = nullptr,
                            .out_step = results.step(),
                            .columns = 0,
                            .runs = window.count(),
                            .b_run = window.length * width_,
                            .a_runs = window.offsets.data()};
    const std::int64_t pieces = ceil_div(part.n[2], rows_);
    for (std::int64_t panel = 0; panel < part.panels; ++panel) {
      const std::int64_t at = panel * width_;
      if (packed_before_) t.b = packed(block, part.panel + panel);
      else pack(block, part.column / width_ + panel, own);
      t.columns = std::min(width_, part.columns - at);
      if (&block == &blocks_.back()) t.finish = finish_.from(part.column + at);
      t.finish.add = block.before > 0;
      for (std::int64_t a = 0; a < part.n[0]; ++a)
        for (std::int64_t b = 0; b < part.n[1]; ++b)
          for (std::int64_t piece = 0; piece < pieces; ++piece) {
            const std::int64_t p = part.n[2] * piece / pieces, pixels = part.n[2] * (piece + 1) / pieces - p;
            t.a = slab.data() + a * axis_[0].step * stride[0] + b * axis_[1].step * stride[1] + p * t.a_step;
            t.out = results.row(a, b) + p * t.out_step + at;
            block_(t, pixels);
          }
    }
  }

  const ConvLoops<T>& loop_ = loops<T>();
  const devices::GemmLoops<T>& gemm_ = devices::gemm_loops<T>();
  CorrelationAxis axis_[3];
  Images x_, y_;
  const Weights w_;
  const devices::Finish<T> finish_;
  std::int64_t products_ = 0, run_ = 0;  // of a result; of a stretch of contiguous elements of its window
  bool neighbours_ = false, dots_ = false;
  decltype(devices::GemmLoops<T>::block) block_ = nullptr;
  std::int64_t width_ = 0, rows_ = 0;  // the columns of a panel; the results of a line that the loop computes at once
  std::vector<Block> blocks_;
  Block largest_{};
  std::int64_t panels_ = 0, panel_size_ = 0, most_columns_ = 0;
  bool packed_before_ = false;
  Tiling tiles_{};
  T* packed_ = nullptr;
};

}  // namespace

template <class T>
void correlate(const CorrelationAxis* along, Images x, Images y, std::int64_t images, const Weights& w,
               const devices::Finish<T>& finish) {
  Correlation<T>(along, x, y, images, w, finish).run();
}

template void correlate(const CorrelationAxis*, Images, Images, std::int64_t, const Weights&,
                        const devices::Finish<float>&);
template void correlate(const CorrelationAxis*, Images, Images, std::int64_t, const Weights&,
                        const devices::Finish<double>&);
template void pack_panel(const CorrelationAxis*, const Weights&, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_panel(const CorrelationAxis*, const Weights&, std::int64_t, std::int64_t, std::int64_t, double*);

namespace {

// --- kernels ---------------------------------------------------------------------------------------------------------

Images images_of(const ConvShape& s, const std::byte* data, DType dtype, bool input) {
  return Images(data, dtype, input ? s.in : s.out, input ? s.c_in : s.c_out, s.channels_first);
}

/// The kernel at `data`. `in` and `out` are the strides of the channels that are summed over and of the results'
/// channels; in a depthwise convolution both are 1.
Weights weights_of(const ConvShape& s, const std::byte* data, DType dtype, std::int64_t in, std::int64_t out) {
  const WindowAxis* w = s.window;
  const std::int64_t block = s.depthwise ? s.c_out : s.c_in * s.c_out;  // of a tap
  return {const_cast<std::byte*>(data),
          dtype,
          {w[1].size * w[2].size * block, w[2].size * block, block},
          s.depthwise ? 1 : in,
          s.depthwise ? 1 : out};
}

/// True if every image of the result is a product of the kernel, or of its transpose, and an image: of channels by
/// pixels.
template <class T>
bool is_product(const ConvShape& s, DType dtype) {
  return s.channels_first && !s.depthwise && s.taps() == 1 && s.in_size() == s.out_size() &&
         dtype.size() == static_cast<int>(sizeof(T));
}
/// Multiplies each image of n_in channels by the kernel, which has rows of c_out.
template <class T>
void multiply_images(const ConvShape& s, const T* w, bool transposed, std::int64_t n_in, const T* images,
                     std::int64_t n_out, T* out) {
  const std::int64_t pixels = s.in_size();
  const devices::GemmShape shape{n_out, pixels, n_in, transposed, false, s.c_out, pixels, pixels};
  const devices::BatchStrides batch{
      .rank = 1, .count = s.batch, .dims = {s.batch}, .a = {0}, .b = {n_in * pixels}, .out = {n_out * pixels}};
  devices::multiply(shape, batch, w, images, out);
}

template <class T>
void forward(const OpCall& call, const devices::Finish<T>& finish = {}) {
  const TensorDesc& y = *call.out[0];
  const ConvShape s(call.attrs, call.spec(0), call.spec(1), y);
  if (is_product<T>(s, y.dtype))
    return multiply_images(s, call.in[1].as<T>(), /*transposed=*/true, s.c_in, call.in[0].as<T>(), s.c_out,
                           call.out_as<T>());
  const Images x = images_of(s, call.in[0].data, y.dtype, /*input=*/true),
               to = images_of(s, y.data(), y.dtype, /*input=*/false);
  CorrelationAxis axis[3];
  for (int d = 0; d < 3; ++d) axis[d] = forward_axis(s.window[d], s.in[d], s.out[d]);
  const Weights w = weights_of(s, call.in[1].data, y.dtype, s.c_out, 1);
  if (s.depthwise) correlate_depthwise<T>(axis, x, to, s.batch, w, s.c_out / s.c_in, /*sums=*/false);
  else correlate<T>(axis, x, to, s.batch, w, finish);
}

template <class T>
void input_gradient(const OpCall& call) {
  const TensorDesc& dx = *call.out[0];
  const ConvShape s(call.attrs, dx, call.spec(1), call.spec(0));
  if (is_product<T>(s, dx.dtype))
    return multiply_images(s, call.in[1].as<T>(), /*transposed=*/false, s.c_out, call.in[0].as<T>(), s.c_in,
                           call.out_as<T>());
  const Images dy = images_of(s, call.in[0].data, dx.dtype, /*input=*/false),
               to = images_of(s, dx.data(), dx.dtype, /*input=*/true);
  const Weights w = weights_of(s, call.in[1].data, dx.dtype, 1, s.c_out);
  const WindowAxis* window = s.window;
  bool gaps = false;
  for (int d = 0; d < 3; ++d) gaps |= window[d].stride > window[d].size;
  if (gaps) zero_bytes(dx.data(), dx.bytes());
  for (std::int64_t a = 0; a < std::min(window[0].stride, s.in[0]); ++a)
    for (std::int64_t b = 0; b < std::min(window[1].stride, s.in[1]); ++b)
      for (std::int64_t c = 0; c < std::min(window[2].stride, s.in[2]); ++c) {
        const CorrelationAxis axis[3] = {backward_axis(window[0], s.in[0], a), backward_axis(window[1], s.in[1], b),
                                         backward_axis(window[2], s.in[2], c)};
        if (axis[0].taps * axis[1].taps * axis[2].taps == 0 || axis[0].results * axis[1].results * axis[2].results == 0)
          continue;
        if (s.depthwise) correlate_depthwise<T>(axis, dy, to, s.batch, w, s.c_out / s.c_in, /*sums=*/true);
        else correlate<T>(axis, dy, to, s.batch, w);
      }
}

template <class T>
void kernel_gradient_of(const OpCall& call) {
  const TensorDesc& dw = *call.out[0];
  const ConvShape s(call.attrs, call.spec(0), dw, call.spec(1));
  const Images x = images_of(s, call.in[0].data, dw.dtype, /*input=*/true),
               dy = images_of(s, call.in[1].data, dw.dtype, /*input=*/false);
  const Weights to = weights_of(s, dw.data(), dw.dtype, s.c_out, 1);
  CorrelationAxis axis[3];
  for (int d = 0; d < 3; ++d) axis[d] = forward_axis(s.window[d], s.in[d], s.out[d]);
  if (s.depthwise) kernel_gradient_depthwise<T>(axis, x, dy, s.batch, s.c_out / s.c_in, to);
  else kernel_gradient<T>(axis, x, dy, s.batch, to);
}

/// True if there is nothing to sum, so that the result is empty or, set here, zeros.
bool nothing(const OpCall& call) {
  TensorDesc& out = *call.out[0];
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
  respect_zeros(call, {call.attrs, call.spec(0), call.spec(1), *call.out[0]}, ConvResult::y);
}
bool convolve_with_bias(const OpCall& call, const TensorDesc& bias, bool relu) {
  TensorDesc& out = *call.out[0];
  const ConvForm& form = form_of(call.attrs);
  if (call.device != cpu || form.channels_first || form.depthwise || form.cotangent != Cotangent::neither ||
      bias.dtype != out.dtype || bias.numel() != out.dims[out.rank - 1])
    return false;
  if ((out.dtype != float32 && out.dtype != float64) || out.numel() == 0 || call.spec(0).numel() == 0 ||
      call.spec(1).numel() == 0)
    return false;
  out.storage = Storage::allocate(out.checked_bytes(call.op.name), cpu);
  if (out.dtype == float64) forward<double>(call, {.bias = reinterpret_cast<const double*>(bias.data()), .relu = relu});
  else forward<float>(call, {.bias = reinterpret_cast<const float*>(bias.data()), .relu = relu});
  return true;
}
void run_convolution_input_gradient(const OpCall& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) input_gradient<double>(call);
  else input_gradient<float>(call);
  respect_zeros(call, {call.attrs, *call.out[0], call.spec(1), call.spec(0)}, ConvResult::x);
}
void run_convolution_kernel_gradient(const OpCall& call) {
  if (nothing(call)) return;
  if (call.out[0]->dtype == float64) kernel_gradient_of<double>(call);
  else kernel_gradient_of<float>(call);
  respect_zeros(call, {call.attrs, call.spec(0), *call.out[0], call.spec(1)}, ConvResult::w);
}

}  // namespace kassette::ops
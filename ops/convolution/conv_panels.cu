// ops/convolution/conv_panels.cu - convolution and its gradients on CUDA as matrix products.
//
// Note [Panels]
// A correlation (window.h) is a matrix product: row p of the left matrix contains the elements under the window at
// result p (im2col), all channels of all taps, and the right matrix is the kernel. The left matrix is larger than the
// image by the number of taps, so it is never formed as a whole: a CUDA kernel gathers a panel, as many rows as fit a
// bounded workspace, and cuBLAS multiplies it. If the window has one tap and a stride of 1, the image itself is the
// left matrix. A panel has the data format of the images: (image, point, tap, channel), or (image, tap, channel, point)
// if channels are first. In both formats the product is written in place; only the results of an input gradient with
// strides, which are not contiguous, go through a buffer.
//
// The kernel gradient is the transpose of the panels times the cotangent, accumulated panel after panel. If channels
// are first, its panels are (tap, channel, image, point), and those of the cotangent (channel, image, point), so that a
// panel is one product rather than one for each image. Its result is small and its sums are long: too
// little for a device at once. So the sums are cut into slices, whose products are one batch, and the results of the
// slices are added in order. No sum depends on the order of threads.
#include <algorithm>
#include <optional>

#include "ops/convolution/conv_panels.cuh"
#include "ops/product/product.cuh"
#include "ops/engine/teams.cuh"
#include "ops/convolution/windows.cuh"

namespace kassette::cuda {
namespace {

const DeviceConvLimits& limits() { return *host_services().convolution; }
std::int64_t panel_bytes() { return limits().workspace / 2; }
std::int64_t other_bytes() {
  return limits().workspace / 4;
}  // for packed kernels, and for results that are not contiguous or are wider than their dtype

/// A tensor of images, or of results.
struct Images {
  std::byte* data;
  std::int64_t batch, size[3], channels;
  bool channels_first;

  Images(const ConvShape& s, const std::byte* bytes, bool input)
      : data(const_cast<std::byte*>(bytes)), batch(s.batch), channels(input ? s.c_in : s.c_out),
        channels_first(s.channels_first) {
    for (int d = 0; d < 3; ++d) size[d] = input ? s.in[d] : s.out[d];
  }
  KASSETTE_FN std::int64_t points() const { return size[0] * size[1] * size[2]; }
  /// The index of an element.
  KASSETTE_FN std::int64_t at(std::int64_t image, std::int64_t point, std::int64_t channel) const {
    return channels_first ? (image * channels + channel) * points() + point
                          : (image * points() + point) * channels + channel;
  }
};

struct CorrelationAxes {
  CorrelationAxis of[3];
  Divider by_results[3];
  CorrelationAxes(const CorrelationAxis& a, const CorrelationAxis& b, const CorrelationAxis& c)
      : of{a, b, c}, by_results{Divider(a.results), Divider(b.results), Divider(c.results)} {}
  KASSETTE_FN std::int64_t taps() const { return of[0].taps * of[1].taps * of[2].taps; }
  KASSETTE_FN std::int64_t results() const { return of[0].results * of[1].results * of[2].results; }
  bool apart() const { return of[0].out_step > 1 || of[1].out_step > 1 || of[2].out_step > 1; }
  /// True if row p of the left matrix is point p of x, so that x needs no gathering.
  bool one_to_one(const Images& x) const {
    for (int d = 0; d < 3; ++d)
      if (of[d].taps != 1 || of[d].step != 1 || of[d].start != 0 || of[d].results != x.size[d]) return false;
    return true;
  }
};

/// A range of points of a range of images: all points if there are several images.
struct Part {
  std::int64_t image, images, point, points;
  KASSETTE_FN std::int64_t rows() const { return images * points; }
};
template <class F>
void each_part(std::int64_t batch, std::int64_t points, std::int64_t most_rows, F f) {
  const std::int64_t images = std::clamp<std::int64_t>(most_rows / points, 1, batch),
                     step = std::min(points, most_rows);
  for (std::int64_t image = 0; image < batch; image += images)
    for (std::int64_t point = 0; point < points; point += step)
      f(Part{image, std::min(images, batch - image), point, std::min(step, points - point)});
}

// ---- kernels: E is as wide as an element, or as several neighbouring channels ---------------------------------------

struct alignas(16) Sixteen {
  std::uint64_t half[2];
};
/// Calls f with a null pointer to the type that a thread copies at once, and the number of channels in it: 16 bytes if
/// channels are last, their number is a multiple of that and both pointers are aligned, else one channel.
template <class F>
void with_width(const Images& x, const void* other, int item, F f) {
  const int lanes = 16 / item;
  const bool aligned = (reinterpret_cast<std::uintptr_t>(x.data) | reinterpret_cast<std::uintptr_t>(other)) % 16 == 0;
  if (!x.channels_first && x.channels % lanes == 0 && aligned) return f(static_cast<Sixteen*>(nullptr), lanes);
  for_size(item, [&](auto* p) { f(p, 1); });
}

/// Gathers a panel; `joined`: with channels before images, if they are before points. A thread gathers one channel of
/// one point, so that neighbouring threads read and write neighbouring elements.
template <class E>
__global__ void gather_panel(CorrelationAxes axes, Images x, Part part, Divider by_points, Divider by_channels,
                             bool joined, E* panel) {
  const CorrelationAxis* axis = axes.of;
  const std::int64_t n = part.images * part.points * x.channels, taps = axes.taps(),
                     step = x.channels_first ? 1 : x.channels, row = joined ? part.rows() : part.points,
                     image_step = joined ? part.points : taps * x.channels * row,
                     tap_step = x.channels_first ? x.channels * row : x.channels;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const PixelIndex p(t, by_points, by_channels, x.channels_first);
    const E* from = reinterpret_cast<const E*>(x.data) + x.at(part.image + p.image, 0, p.channel);
    E* to = panel + (x.channels_first ? p.image * image_step + p.channel * row + p.point
                                      : (p.image * part.points + p.point) * taps * x.channels + p.channel);
    std::int64_t low[3], point = part.point + p.point;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t rest = axes.by_results[d](point);
      low[d] = axis[d].low(point - rest * axis[d].results);
      point = rest;
    }
    for (std::int64_t a = 0, i = low[0]; a < axis[0].taps; ++a, i += axis[0].tap_step)
      for (std::int64_t b = 0, j = low[1]; b < axis[1].taps; ++b, j += axis[1].tap_step) {
        const bool inside = i >= 0 && i < x.size[0] && j >= 0 && j < x.size[1];
        const std::int64_t line = (i * x.size[1] + j) * x.size[2];
        for (std::int64_t c = 0, k = low[2]; c < axis[2].taps; ++c, k += axis[2].tap_step, to += tap_step)
          *to = inside && k >= 0 && k < x.size[2] ? from[(line + k) * step] : E{};
      }
  }
}

/// Copies a kernel, (taps, input channels, output channels), to (input channels from `first` on, taps of the axes,
/// output channels).
template <class E>
__global__ void pack_kernel(CorrelationAxes axes, std::int64_t sizes1, std::int64_t sizes2, std::int64_t c_in,
                            std::int64_t c_out, std::int64_t first, std::int64_t count, const E* w, E* packed) {
  const CorrelationAxis* axis = axes.of;
  const std::int64_t taps = axes.taps(), n = count * taps * c_out;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t f = t % c_out, tap = t / c_out % taps, c = first + t / c_out / taps;
    const std::int64_t a = tap / axis[2].taps / axis[1].taps, b = tap / axis[2].taps % axis[1].taps,
                       d = tap % axis[2].taps;
    const std::int64_t from = (axis[0].weight(a) * sizes1 + axis[1].weight(b)) * sizes2 + axis[2].weight(d);
    packed[t] = w[(from * c_in + c) * c_out + f];
  }
}

/// Copies the results of a part, `count` channels from `first` on, to their places in y.
template <class E>
__global__ void put_results(CorrelationAxes axes, Images y, Part part, Divider by_points, std::int64_t first,
                            Divider by_channels, const E* results) {
  const CorrelationAxis* axis = axes.of;
  const std::int64_t n = part.images * part.points * by_channels.by;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const PixelIndex p(t, by_points, by_channels, y.channels_first);
    std::int64_t at = 0, scale = 1, point = part.point + p.point;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t rest = axes.by_results[d](point);
      at += (axis[d].out_start + (point - rest * axis[d].results) * axis[d].out_step) * scale;
      scale *= y.size[d];
      point = rest;
    }
    reinterpret_cast<E*>(y.data)[y.at(part.image + p.image, at, first + p.channel)] = results[t];
  }
}

template <class T>
__global__ void narrow_sums(std::int64_t rows, std::int64_t columns, const float* sums, std::int64_t step, T* to) {
  for (std::int64_t t = Thread::first(); t < rows * columns; t += Thread::step())
    store(to + t / columns * step + t % columns, sums[t]);
}

/// Sums the results of slices in their order.
template <class T>
__global__ void add_slices(std::int64_t n, Divider by_columns, std::int64_t step, std::int64_t slices, bool add,
                           const T* partial, T* to) {
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t row = by_columns(t), at = row * step + (t - row * by_columns.by);
    T sum = add ? to[at] : T(0);
#pragma unroll 4
    for (std::int64_t i = 0; i < slices; ++i) sum += partial[i * n + t];
    to[at] = sum;
  }
}

// ---- products -------------------------------------------------------------------------------------------------------

/// How panels are laid out whose images have channels first.
enum class Layout { each_image, joined };
/// The left matrix of a correlation, part by part.
class Panels {
 public:
  /// most_rows: a limit on the rows of a part; rows() may be less, as a panel has to fit the workspace.
  Panels(const OpCall& call, CudaDevice& device, const CorrelationAxes& axes, const Images& x, int item,
         std::int64_t most_rows, Layout layout = Layout::each_image)
      : name_(call.op.name), device_(device), axes_(axes), x_(x), item_(item), columns_(axes.taps() * x.channels),
        joined_(layout == Layout::joined && x.channels_first && x.batch > 1), direct_(axes.one_to_one(x) && !joined_) {
    if (!direct_) most_rows = std::min(most_rows, panel_bytes() / (columns_ * item));
    rows_ = std::min(most_rows, x.batch * axes.results());
    if (!direct_) memory_.emplace(device, rows_ * columns_ * item);
  }
  std::int64_t rows() const { return rows_; }
  /// The columns of the left matrix: the number of products that a result sums.
  std::int64_t columns() const { return columns_; }
  const std::byte* of(const Part& part) const {
    if (direct_) return x_.data + x_.at(part.image, part.point, 0) * item_;
    with_width(x_, memory_->get(), item_, [&](auto* p, int lanes) {
      using E = std::remove_pointer_t<decltype(p)>;
      Images x = x_;
      x.channels /= lanes;
      launch(name_, device_, blocks_for(part.rows() * x.channels), gather_panel<E>, axes_, x, part,
             Divider(part.points), Divider(x.channels), joined_, static_cast<E*>(memory_->get()));
    });
    return static_cast<const std::byte*>(memory_->get());
  }
  /// The leading dimension of the matrix that of() returns: elements from row to row or, if channels are first, from
  /// column to column.
  std::int64_t step(const Part& part) const {
    return !x_.channels_first ? columns_ : joined_ ? part.rows() : direct_ ? axes_.results() : part.points;
  }

 private:
  const char* name_;
  CudaDevice& device_;
  CorrelationAxes axes_;
  Images x_;
  int item_;
  std::int64_t columns_, rows_;
  bool joined_, direct_;
  std::optional<DeviceScratch> memory_;
};

/// The right matrix, (products of a result) x (results' channels), or its transpose.
struct Right {
  const std::byte* data;
  bool transposed;
  std::int64_t step;  // from row to row
};

/// y = correlation of x; right(first, count) gives columns of the right matrix, at most `block` at a time.
template <class F>
void correlate(const OpCall& call, CudaDevice& device, const CorrelationAxes& axes, const Images& x, const Images& y,
               std::int64_t block, F right) {
  const int item = call.out[0]->dtype.size();
  const bool apart = axes.apart();
  const Panels panels(call, device, axes, x, item, apart ? other_bytes() / (block * item) : x.batch * axes.results());
  const DeviceScratch results(device, apart ? panels.rows() * block * item : 0);
  for (std::int64_t first = 0; first < y.channels; first += block) {
    const std::int64_t count = std::min(block, y.channels - first);
    const Right w = right(first, count);
    each_part(x.batch, axes.results(), panels.rows(), [&](const Part& part) {
      const std::byte* panel = panels.of(part);
      std::byte* out =
          apart ? static_cast<std::byte*>(results.get()) : y.data + y.at(part.image, part.point, first) * item;
      BlasProduct p{
          .of = {}, .dtype = call.out[0]->dtype, .out_dtype = call.out[0]->dtype, .a = panel, .b = w.data, .out = out};
      if (y.channels_first) {
        std::swap(p.a, p.b);
        p.of = {.m = count,
                .n = part.points,
                .k = panels.columns(),
                .ta = !w.transposed,
                .tb = false,
                .lda = w.step,
                .ldb = panels.step(part),
                .ldo = apart ? part.points : y.points()};
        p.batch = part.images;
        p.next_b = panels.columns() * p.of.ldb;
        p.next_out = (apart ? count : y.channels) * p.of.ldo;
      } else {
        p.of = {.m = part.rows(),
                .n = count,
                .k = panels.columns(),
                .ta = false,
                .tb = w.transposed,
                .lda = panels.step(part),
                .ldb = w.step,
                .ldo = apart ? count : y.channels};
      }
      multiply(call.op.name, device, p);
      if (!apart) return;
      for_size(item, [&](auto* null) {
        using E = std::remove_pointer_t<decltype(null)>;
        launch(call.op.name, device, blocks_for(part.rows() * count), put_results<E>, axes, y, part,
               Divider(part.points), first, Divider(count), static_cast<const E*>(results.get()));
      });
    });
  }
}

CorrelationAxes forward_axes(const ConvShape& s) {
  auto axis = [&](int d) { return forward_axis(s.window[d], s.in[d], s.out[d]); };
  return CorrelationAxes(axis(0), axis(1), axis(2));
}

/// The axes with which the points of an image are the rows of a panel.
CorrelationAxes points_of(const Images& x) {
  auto axis = [&](int d) { return forward_axis(WindowAxis(), x.size[d], x.size[d]); };
  return CorrelationAxes(axis(0), axis(1), axis(2));
}

/// The number of slices for sums over `rows` products of m * n results. `room`: for how many results of slices there is
/// memory. cuBLAS computes about 128 x 64 results in a block, and a device has about a hundred multiprocessors.
std::int64_t slices_of(std::int64_t m, std::int64_t n, std::int64_t rows, std::int64_t room) {
  constexpr std::int64_t kBlocks = 256, kLeast = 512;
  return std::max<std::int64_t>(
      std::min({kBlocks / (ceil_div(m, 128) * ceil_div(n, 64)), rows / kLeast, room / (m * n) - 1}), 1);
}
/// A product of contiguous matrices with long sums. `partial` has room for the results of slices + 1 slices.
void multiply_slices(const char* what, CudaDevice& device, const BlasProduct& product, std::int64_t slices,
                     std::byte* partial) {
  const devices::GemmShape& of = product.of;
  constexpr std::int64_t kAligned = 8;
  const std::int64_t length = of.k / slices / kAligned * kAligned, rest = of.k - slices * length;
  if (slices == 1 || length == 0) return multiply(what, device, product);
  BlasProduct part = product;
  part.of.k = length;
  part.of.ldo = of.n;
  part.batch = slices;
  part.next_a = of.ta ? length * of.lda : length;
  part.next_b = of.tb ? length : length * of.ldb;
  part.next_out = of.m * of.n;
  part.out = partial;
  part.add = false;
  multiply(what, device, part);
  if (rest > 0) {
    part.of.k = rest;
    part.batch = 1;
    part.a += slices * part.next_a * part.dtype.size();
    part.b += slices * part.next_b * part.dtype.size();
    part.out += slices * part.next_out * part.out_dtype.size();
    multiply(what, device, part);
  }
  auto add = [&](auto* sums) {
    using T = std::remove_pointer_t<decltype(sums)>;
    launch(what, device, blocks_for(of.m * of.n), add_slices<T>, of.m * of.n, Divider(of.n), of.ldo,
           slices + (rest > 0), product.add, reinterpret_cast<const T*>(partial), reinterpret_cast<T*>(product.out));
  };
  if (product.out_dtype == float64) add(static_cast<double*>(nullptr));
  else add(static_cast<float*>(nullptr));
}

/// Computes the results of the input gradient with one remainder modulo the strides.
void correlate_back(const OpCall& call, CudaDevice& device, const ConvShape& s, const CorrelationAxes& axes) {
  const int item = call.out[0]->dtype.size();
  const std::int64_t sums = axes.taps() * s.c_out;
  const Images dy(s, call.in[0].data, /*input=*/false), dx(s, call.out[0]->data(), /*input=*/true);
  // A kernel of a single tap is the right matrix without a copy. Several are packed, since the product needs the input
  // channels first.
  const bool packs = axes.taps() > 1;
  const std::int64_t block = packs ? std::min(s.c_in, other_bytes() / (sums * item)) : s.c_in;
  const DeviceScratch packed(device, packs ? block * sums * item : 0);
  const CorrelationAxis* axis = axes.of;
  const std::int64_t tap =
      (axis[0].weight(0) * s.window[1].size + axis[1].weight(0)) * s.window[2].size + axis[2].weight(0);
  correlate(call, device, axes, dy, dx, block, [&](std::int64_t first, std::int64_t count) {
    if (!packs) return Right{call.in[1].data + (tap * s.c_in + first) * s.c_out * item, true, s.c_out};
    for_size(item, [&](auto* null) {
      using E = std::remove_pointer_t<decltype(null)>;
      launch(call.op.name, device, blocks_for(count * sums), pack_kernel<E>, axes, s.window[1].size, s.window[2].size,
             s.c_in, s.c_out, first, count, call.in[1].as<E>(), static_cast<E*>(packed.get()));
    });
    return Right{static_cast<const std::byte*>(packed.get()), true, sums};
  });
}

}  // namespace

bool by_panels(const ConvShape& s, std::int64_t sums, std::int64_t columns) {
  // A row of a panel, a column of a packed kernel and a column of wide sums have to fit the workspace.
  if (s.depthwise || std::max(sums, columns) * static_cast<std::int64_t>(sizeof(double)) > other_bytes()) return false;
  if (limits().way != DeviceConvLimits::automatic) return limits().way == DeviceConvLimits::panels;
  // Gathering costs a write and a read for each element of a panel, and saves as many reads as there are columns.
  return sums >= 16 && columns >= 8;
}

void convolve_by_panels(const OpCall& call, const ConvShape& s) {
  const TensorDesc& y = *call.out[0];
  correlate(call, device_of(call.device), forward_axes(s), Images(s, call.in[0].data, /*input=*/true),
            Images(s, y.data(), /*input=*/false), s.c_out, [&](std::int64_t, std::int64_t) {
              return Right{call.in[1].data, false, s.c_out};
            });
}

void input_gradient_by_panels(const OpCall& call, const ConvShape& s) {
  const WindowAxis* w = s.window;
  CudaDevice& device = device_of(call.device);
  // Elements between windows get no gradient.
  if (w[0].stride > w[0].size || w[1].stride > w[1].size || w[2].stride > w[2].size)
    device.zero(call.out[0]->data(), call.out[0]->bytes(), call.op.name);
  for (std::int64_t a = 0; a < w[0].stride; ++a)
    for (std::int64_t b = 0; b < w[1].stride; ++b)
      for (std::int64_t c = 0; c < w[2].stride; ++c) {
        const CorrelationAxes axes(backward_axis(w[0], s.in[0], a), backward_axis(w[1], s.in[1], b),
                                   backward_axis(w[2], s.in[2], c));
        if (axes.taps() > 0 && axes.results() > 0) correlate_back(call, device, s, axes);
      }
}

void kernel_gradient_by_panels(const OpCall& call, const ConvShape& s) {
  const TensorDesc& dw = *call.out[0];
  const int item = dw.dtype.size();
  CudaDevice& device = device_of(call.device);
  const Images x(s, call.in[0].data, /*input=*/true), dy(s, call.in[1].data, /*input=*/false);
  // Half of a quarter of the workspace is for panels of dy, if channels are first, half for the results of slices.
  const std::int64_t room = other_bytes() / 2;
  const Panels panels(call, device, forward_axes(s), x, item,
                      s.channels_first ? std::max<std::int64_t>(room / (s.c_out * item), 1) : s.batch * s.out_size(),
                      Layout::joined);
  const Panels slopes(call, device, points_of(dy), dy, item, panels.rows(), Layout::joined);
  // Sums over panels are kept in float32 if the dtype is a half type.
  const bool wide = item == 2;
  const DType sums_dtype = wide ? float32 : dw.dtype;
  const std::int64_t sums = panels.columns(), wide_item = sums_dtype.size(),
                     block = wide ? std::min(s.c_out, other_bytes() / (sums * wide_item)) : s.c_out,
                     slices = slices_of(sums, block, panels.rows(), room / wide_item);
  const DeviceScratch wide_sums(device, wide ? sums * block * wide_item : 0),
      partial(device, slices > 1 ? (slices + 1) * sums * block * wide_item : 0);
  for (std::int64_t first = 0; first < s.c_out; first += block) {
    const std::int64_t count = std::min(block, s.c_out - first), step = wide ? count : s.c_out;
    std::byte* out = wide ? static_cast<std::byte*>(wide_sums.get()) : dw.data() + first * item;
    bool add = false;
    each_part(s.batch, s.out_size(), panels.rows(), [&](const Part& part) {
      const std::int64_t ldb = slopes.step(part);
      multiply_slices(call.op.name, device,
                      {.of = {.m = sums,
                              .n = count,
                              .k = part.rows(),
                              .ta = !s.channels_first,
                              .tb = s.channels_first,
                              .lda = panels.step(part),
                              .ldb = ldb,
                              .ldo = step},
                       .dtype = dw.dtype,
                       .out_dtype = sums_dtype,
                       .a = panels.of(part),
                       .b = slopes.of(part) + first * (s.channels_first ? ldb : 1) * item,
                       .out = out,
                       .add = add},
                      slices, static_cast<std::byte*>(partial.get()));
      add = true;
    });
    if (!wide) continue;
    with_floats(call, [&](auto* null) {
      using T = std::remove_pointer_t<decltype(null)>;
      if constexpr (sizeof(T) == 2)
        launch(call.op.name, device, blocks_for(sums * count), narrow_sums<T>, sums, count,
               static_cast<const float*>(wide_sums.get()), s.c_out, call.out_as<T>() + first);
    });
  }
}

}  // namespace kassette::cuda

// ops/convolution/pool.cpp - pooling: rules, gradients and CPU kernels.
#include "ops/convolution/pool.h"

#include <memory>
#include <vector>

#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/convolution/conv_boxes.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/convolution/pool_loops.h"
#include "ops/shape/strided.h"

namespace kassette::ops {

constinit PoolLimits pool_limits;

namespace {

void check_float(const TensorSpec& x) {
  if (!x.dtype.is_float()) fail_not_float({"pool", "x"}, x.dtype);
}

void rule(const OpCall& call, TensorSpec* out) {
  const ConvForm& form = form_of(call.attrs);
  const TensorSpec& x = call.spec(0);
  check_float(x);
  check_rank("pool", form, x, "x");
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(form.axes + 2);
  out->dims[0] = x.dim(0);
  out->dims[form.channel_axis()] = x.dim(form.channel_axis());
  for (int i = 0; i < form.axes; ++i) {
    const WindowAxis& w = form.window[i];
    const std::int64_t n = x.dim(form.space_axis(i));
    if (n >= 0 && w.padding == Padding::valid && n < w.size)
      fail<ValueError>({"pool", "x"}, x, " is smaller than the window: ", n, " against ", w.size, kRemedy,
                       "padding \"same\" takes any size");
    out->dims[form.space_axis(i)] = n < 0 ? kUnknown : w.positions(n);
  }
}
void like_first_rule(const OpCall& call, TensorSpec* out) { out->set(call.spec(0)); }
void like_second_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(1));
  out->dtype = call.spec(0).dtype;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

constexpr std::int64_t kChannels = 64;  // of a piece of work: few enough that there are pieces for many threads

template <class T>
const PoolLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(pool_table).f32;
  else return KASSETTE_PICK(pool_table).f64;
}

/// A tensor of images in pooling: the one that windows cover, or the one with a point for each window.
struct Side {
  enum Use { reads, writes, adds };  // adds: to zeros
  Images images;
  bool windows;
  Use use;
};

/// True if pooling can use a tensor of images in place: elements of T, channels last.
template <class T>
bool direct(const Images& x) {
  return x.channels_last() && x.dtype.size() == static_cast<int>(sizeof(T));
}

/// The ranges of a tile along one axis: its results, the elements that their windows cover, and those of them that the
/// tile writes.
struct TileAxis {
  std::int64_t results[2], shown[2], own[2];  // half-open
};
struct Tile {
  TileAxis axis[3];
};
/// Part i of n of an axis. Parts divide the results or, if `spreads`, the elements: a part then has all windows that
/// cover one of its elements.
TileAxis tile_axis(const WindowAxis& w, std::int64_t in, std::int64_t out, std::int64_t i, std::int64_t n,
                   bool spreads) {
  TileAxis t;
  const std::int64_t before = w.before(in), total = spreads ? in : out, first = total * i / n,
                     last = total * (i + 1) / n;
  t.results[0] = spreads ? std::clamp<std::int64_t>(
                               first + before < w.size ? 0 : ceil_div(first + before - w.size + 1, w.stride), 0, out)
                         : first;
  t.results[1] = spreads ? std::clamp((last - 1 + before) / w.stride + 1, t.results[0], out) : last;
  t.shown[0] = std::max<std::int64_t>(0, t.results[0] * w.stride - before);
  t.shown[1] = std::min(in, (t.results[1] - 1) * w.stride - before + w.size);
  if (spreads) {
    const bool empty = t.results[0] == t.results[1];
    t.shown[0] = empty ? first : std::min(t.shown[0], first);
    t.shown[1] = empty ? last : std::max(t.shown[1], last);
  }
  t.own[0] = spreads ? first : t.shown[0];
  t.own[1] = spreads ? last : t.shown[1];
  return t;
}

/// An image cut into tiles, along the first axes first.
struct Tiles {
  const ConvShape& s;
  bool spreads;
  std::int64_t n[3];
  Tiles(const ConvShape& shape, std::int64_t wanted, bool shares_elements) : s(shape), spreads(shares_elements) {
    for (int d = 0; d < 3; ++d) {
      n[d] = std::min(wanted, spreads ? s.in[d] : s.out[d]);
      wanted = ceil_div(wanted, n[d]);
    }
  }
  std::int64_t count() const { return n[0] * n[1] * n[2]; }
  Tile operator[](std::int64_t i) const {
    const std::int64_t at[3] = {i / n[2] / n[1], i / n[2] % n[1], i % n[2]};
    Tile tile;
    for (int d = 0; d < 3; ++d) tile.axis[d] = tile_axis(s.window[d], s.in[d], s.out[d], at[d], n[d], spreads);
    return tile;
  }
};

/// Some channels of a tile of an image as T, channels last: in place, or a copy.
template <class T>
class Image {
 public:
  explicit Image(const Side& side) : side_(side), direct_(direct<T>(side.images)) {}
  void begin(std::int64_t image, const Tile& tile, std::int64_t channel, std::int64_t channels) {
    const Images& from = side_.images;
    box_ = Box{.image = image, .low = {}, .count = {}, .channel = channel, .channels = channels};
    for (int d = 0; d < 3; ++d) {
      const std::int64_t* part = side_.windows ? tile.axis[d].shown : tile.axis[d].results;
      box_.low[d] = part[0];
      box_.count[d] = part[1] - part[0];
    }
    const std::int64_t points = box_.points();
    if (direct_) {
      data_ = reinterpret_cast<T*>(from.data) + from.offset(image, box_.low, channel);
      step_ = from.channels;
    } else {
      if (points * channels > room_) {
        buffer_.reset(new Scratch<T>(points * channels));
        spare_.reset(new Scratch<std::uint16_t>(from.dtype.size() == 2 ? points * channels : 1));
        room_ = points * channels;
      }
      data_ = buffer_->get();
      step_ = channels;
      if (side_.use == Side::reads) read_box(from, box_, 1, channels, data_, spare_->get());
    }
    if (side_.use == Side::adds)
      for (std::int64_t i = 0; i < points; ++i) std::fill_n(data_ + i * step_, channels, T(0));
  }
  T* at(std::int64_t point) const { return data_ + point * step_; }
  std::int64_t step() const { return step_; }
  void end(const Tile& tile) {
    if (direct_ || side_.use == Side::reads) return;
    if (side_.use == Side::writes) return write_box(side_.images, box_, step_, data_, spare_->get());
    // The tile's own elements, in pieces that are contiguous in the buffer: planes, rows, or parts of rows.
    Box to = box_;
    std::int64_t by[3];  // size of a piece
    bool whole = true;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t own = tile.axis[d].own[1] - tile.axis[d].own[0];
      to.count[d] = by[d] = whole ? own : 1;
      whole &= own == box_.count[d];
    }
    const TileAxis* axis = tile.axis;
    to.low[2] = axis[2].own[0];
    for (to.low[0] = axis[0].own[0]; to.low[0] < axis[0].own[1]; to.low[0] += by[0])
      for (to.low[1] = axis[1].own[0]; to.low[1] < axis[1].own[1]; to.low[1] += by[1]) {
        const std::int64_t row = (to.low[0] - box_.low[0]) * box_.count[1] + to.low[1] - box_.low[1];
        write_box(side_.images, to, step_, at(row * box_.count[2] + to.low[2] - box_.low[2]), spare_->get());
      }
  }

 private:
  const Side& side_;
  bool direct_;
  Box box_{};
  std::int64_t room_ = -1, step_ = 0;
  std::unique_ptr<Scratch<T>> buffer_;
  std::unique_ptr<Scratch<std::uint16_t>> spare_;
  T* data_ = nullptr;
};

/// Calls f(window, origin, result) for each window of a tile of one image, whose points are `step` elements apart.
/// window.at counts from element `origin` of the tile, and `result` is the index of the window's result in the tile.
template <class T, class F>
void each_window(const ConvShape& s, const Tile& tile, std::int64_t step, std::int64_t channels, F&& f) {
  const WindowAxis* w = s.window;
  const TileAxis* axis = tile.axis;
  const std::int64_t before[3] = {w[0].before(s.in[0]), w[1].before(s.in[1]), w[2].before(s.in[2])};
  const std::int64_t row = (axis[2].shown[1] - axis[2].shown[0]) * step,
                     stride[3] = {(axis[1].shown[1] - axis[1].shown[0]) * row, row, step};
  const std::int64_t base = -axis[0].shown[0] * stride[0] - axis[1].shown[0] * stride[1] - axis[2].shown[0] * stride[2];
  std::int64_t first[3], last[3];
  std::vector<std::int64_t> whole, cut;
  auto list = [&](std::vector<std::int64_t>& to) {
    to.clear();
    for (std::int64_t a = first[0]; a < last[0]; ++a)
      for (std::int64_t b = first[1]; b < last[1]; ++b)
        for (std::int64_t c = first[2]; c < last[2]; ++c) to.push_back(a * stride[0] + b * stride[1] + c * stride[2]);
  };
  for (int d = 0; d < 3; ++d) first[d] = 0, last[d] = w[d].size;
  if (w[0].size <= s.in[0] && w[1].size <= s.in[1] && w[2].size <= s.in[2])
    list(whole);  // a larger window is never whole
  auto clip = [&](int d, std::int64_t p) {
    const std::int64_t low = p * w[d].stride - before[d];
    first[d] = std::max<std::int64_t>(0, -low);
    last[d] = std::min(w[d].size, s.in[d] - low);
    return low;
  };
  std::int64_t result = 0;
  for (std::int64_t a = axis[0].results[0]; a < axis[0].results[1]; ++a) {
    const std::int64_t low_a = clip(0, a);
    for (std::int64_t b = axis[1].results[0]; b < axis[1].results[1]; ++b) {
      const std::int64_t low_b = clip(1, b);
      const bool inner = first[0] == 0 && last[0] == w[0].size && first[1] == 0 && last[1] == w[1].size;
      for (std::int64_t c = axis[2].results[0]; c < axis[2].results[1]; ++c, ++result) {
        const std::int64_t low_c = clip(2, c);
        const bool all = inner && first[2] == 0 && last[2] == w[2].size;
        if (!all) list(cut);
        const std::vector<std::int64_t>& at = all ? whole : cut;
        f(PoolWindow<T>{at.data(), static_cast<std::int64_t>(at.size()), channels},
          base + low_a * stride[0] + low_b * stride[1] + low_c * stride[2], result);
      }
    }
  }
}

/// Calls f(window, pointers) for each window, with a pointer into each of the sides, which all have one dtype and data
/// format.
template <class T, int kSides, class F>
void pool(const ConvShape& s, const Side (&sides)[kSides], F f) {
  // Images that must be copied are cut into tiles that stay in a cache, with few channels if the window is large;
  // others are one tile.
  const bool spreads = sides[kSides - 1].use == Side::adds, copied = !direct<T>(sides[0].images);
  std::int64_t shown = 1;  // elements that the windows of a tile of one result, or of one element, cover
  for (int d = 0; d < 3; ++d)
    shown *= std::min(spreads ? 2 * std::min(s.window[d].size, s.in[d]) - 1 : s.window[d].size, s.in[d]);
  const std::int64_t at_once = copied ? std::clamp<std::int64_t>(pool_limits.window / shown, 1, kChannels) : kChannels;
  const std::int64_t blocks = ceil_div(s.c_in, at_once), work = s.in_size() * std::min(s.c_in, at_once);
  const Tiles tiles(s, copied ? ceil_div(work, std::max(pool_limits.tile, shown * at_once)) : 1, spreads);
  const std::int64_t n = tiles.count();
  devices::parallel_for(
      s.batch * blocks * n, std::max<std::int64_t>(1, (1 << 15) * n / work), [&](std::int64_t begin, std::int64_t end) {
        std::vector<Image<T>> images;
        images.reserve(kSides);
        for (const Side& side : sides) images.emplace_back(side);
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t channel = i / n % blocks * at_once, channels = std::min(at_once, s.c_in - channel);
          Tile tile = tiles[i % n];
          for (int d = 0; d < 3 && !copied; ++d) tile.axis[d].shown[0] = 0, tile.axis[d].shown[1] = s.in[d];
          for (Image<T>& image : images) image.begin(i / n / blocks, tile, channel, channels);
          each_window<T>(s, tile, images[0].step(), channels,
                         [&](const PoolWindow<T>& w, std::int64_t origin, std::int64_t result) {
                           T* at[kSides];
                           for (int k = 0; k < kSides; ++k)
                             at[k] = sides[k].windows ? images[k].at(0) + origin : images[k].at(result);
                           f(w, at);
                         });
          for (Image<T>& image : images) image.end(tile);
        }
      });
}

/// Pools images in channels_first without copying them: `whole` computes lines of windows that padding does not cut
/// along the last axis, and `cut` a single window. Returns false, and does nothing, if the elements of x are not T,
/// channels are last, or `whole` does not support the stride.
template <class T>
bool pool_lines(const ConvShape& s, const Side& x, const Side& y, void (*whole)(const PoolLines<T>&, const T*, T*),
                void (*cut)(const PoolWindow<T>&, const T*, T*)) {
  const WindowAxis* w = s.window;
  if (x.images.channels_last() || x.images.dtype.size() != static_cast<int>(sizeof(T)) || w[2].stride > 2 ||
      w[2].size < w[2].stride)
    return false;
  const std::int64_t before[3] = {w[0].before(s.in[0]), w[1].before(s.in[1]), w[2].before(s.in[2])};
  // Windows [low, high) of an axis are whole.
  std::int64_t low[3], high[3];
  for (int d = 0; d < 3; ++d) {
    low[d] = std::min(s.out[d], ceil_div(before[d], w[d].stride));
    high[d] = std::clamp(s.in[d] + before[d] < w[d].size ? 0 : (s.in[d] + before[d] - w[d].size) / w[d].stride + 1,
                         low[d], s.out[d]);
  }
  devices::parallel_for(
      s.batch * s.c_in, std::max<std::int64_t>(1, (1 << 15) / s.in_size()), [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int64_t> rows, taps;
        for (std::int64_t plane = begin; plane < end; ++plane) {
          const T* from = reinterpret_cast<const T*>(x.images.data) + plane * s.in_size();
          T* to = reinterpret_cast<T*>(y.images.data) + plane * s.out_size();
          for (std::int64_t a = 0; a < s.out[0]; ++a)
            for (std::int64_t b = 0, lines; b < s.out[1]; b += lines) {
              lines = b == low[1] && high[1] > b ? high[1] - b : 1;
              const std::int64_t first_a = a * w[0].stride - before[0], first_b = b * w[1].stride - before[1];
              rows.clear();
              for (std::int64_t i = std::max<std::int64_t>(0, first_a); i < std::min(s.in[0], first_a + w[0].size); ++i)
                for (std::int64_t j = std::max<std::int64_t>(0, first_b); j < std::min(s.in[1], first_b + w[1].size);
                     ++j)
                  rows.push_back((i * s.in[1] + j) * s.in[2]);
              const std::int64_t x_step = w[1].stride * s.in[2];
              T* line = to + (a * s.out[1] + b) * s.out[2];
              whole({rows.data(), static_cast<std::int64_t>(rows.size()), w[2].size, w[2].stride, lines,
                     high[2] - low[2], x_step, s.out[2]},
                    from + low[2] * w[2].stride - before[2], line + low[2]);
              for (std::int64_t c = low[2] > 0 ? 0 : high[2]; c < s.out[2]; c = c + 1 == low[2] ? high[2] : c + 1) {
                const std::int64_t first_c = c * w[2].stride - before[2];
                taps.clear();
                for (std::int64_t row : rows)
                  for (std::int64_t k = std::max<std::int64_t>(0, first_c); k < std::min(s.in[2], first_c + w[2].size);
                       ++k)
                    taps.push_back(row + k);
                for (std::int64_t l = 0; l < lines; ++l)
                  cut({taps.data(), static_cast<std::int64_t>(taps.size()), 1}, from + l * x_step,
                      line + l * s.out[2] + c);
              }
            }
        }
      });
  return true;
}

/// Calls run(shape, zero) with the geometry between a tensor of windows and one of results; zero has the type to
/// compute in, float for half types.
template <class F>
void with_shape(const OpCall& call, const TensorSpec& windows, const TensorSpec& results, F&& run) {
  if (call.out[0]->numel() == 0) return;
  const ConvShape s(call.attrs, windows, results);
  if (windows.dtype == float64) run(s, 0.0);
  else run(s, 0.0f);
}
Side side(const ConvShape& s, const TensorDesc& b, const std::byte* data, bool windows, Side::Use use) {
  return {Images(data, b.dtype, windows ? s.in : s.out, s.c_in, s.channels_first), windows, use};
}
Side input(const ConvShape& s, const OpCall& call, int i, bool windows) {
  return side(s, *call.in[i].desc, call.in[i].data, windows, Side::reads);
}
Side output(const ConvShape& s, const OpCall& call, bool windows) {
  return side(s, *call.out[0], call.out[0]->data(), windows, windows ? Side::adds : Side::writes);
}

void max_kernel(const OpCall& call) {
  with_shape(call, call.spec(0), *call.out[0], [&](const ConvShape& s, auto zero) {
    using T = decltype(zero);
    const Side x = input(s, call, 0, /*windows=*/true), y = output(s, call, /*windows=*/false);
    if (pool_lines<T>(s, x, y, loops<T>().max_lines, loops<T>().max)) return;
    pool<T>(s, {x, y}, [](const PoolWindow<T>& w, T* const* p) { loops<T>().max(w, p[0], p[1]); });
  });
}
void max_grad_kernel(const OpCall& call) {
  with_shape(call, call.spec(0), call.spec(1), [&](const ConvShape& s, auto zero) {
    using T = decltype(zero);
    pool<T>(
        s,
        {input(s, call, 0, /*windows=*/true), input(s, call, 1, /*windows=*/false), output(s, call, /*windows=*/true)},
        [](const PoolWindow<T>& w, T* const* p) { loops<T>().max_grad(w, p[0], p[1], p[2]); });
  });
}
void max_take_kernel(const OpCall& call) {
  with_shape(call, call.spec(0), *call.out[0], [&](const ConvShape& s, auto zero) {
    using T = decltype(zero);
    pool<T>(
        s,
        {input(s, call, 0, /*windows=*/true), input(s, call, 1, /*windows=*/true), output(s, call, /*windows=*/false)},
        [](const PoolWindow<T>& w, T* const* p) { loops<T>().max_take(w, p[0], p[1], p[2]); });
  });
}
void avg_kernel(const OpCall& call) {
  with_shape(call, call.spec(0), *call.out[0], [&](const ConvShape& s, auto zero) {
    using T = decltype(zero);
    const Side x = input(s, call, 0, /*windows=*/true), y = output(s, call, /*windows=*/false);
    if (s.window[0].size * s.window[1].size * s.window[2].size <= kMostTaps &&
        pool_lines<T>(s, x, y, loops<T>().mean_lines, loops<T>().mean))
      return;
    pool<T>(s, {x, y}, [](const PoolWindow<T>& w, T* const* p) { loops<T>().mean(w, p[0], p[1]); });
  });
}
void avg_grad_kernel(const OpCall& call) {
  with_shape(call, *call.out[0], call.spec(0), [&](const ConvShape& s, auto zero) {
    using T = decltype(zero);
    pool<T>(s, {input(s, call, 0, /*windows=*/false), output(s, call, /*windows=*/true)},
            [](const PoolWindow<T>& w, T* const* p) { loops<T>().mean_grad(w, p[0], p[1]); });
  });
}

// --- adjoints --------------------------------------------------------------------------------------------------------

void max_vjp(const VjpContext& ctx) { ctx.din(0) = apply1(max_pool_grad_op, ctx.attrs, {ctx.in(0), ctx.dy()}); }
void max_grad_vjp(const VjpContext& ctx) {
  if (ctx.wants(1)) ctx.din(1) = apply1(max_pool_take_op, ctx.attrs, {ctx.in(0), ctx.dy()});
}
void max_take_vjp(const VjpContext& ctx) {
  if (ctx.wants(1)) ctx.din(1) = apply1(max_pool_grad_op, ctx.attrs, {ctx.in(0), ctx.dy()});
}
void avg_vjp(const VjpContext& ctx) { ctx.din(0) = apply1(avg_pool_grad_op, ctx.attrs, {ctx.dy(), ctx.in(0)}); }
void avg_grad_vjp(const VjpContext& ctx) { ctx.din(0) = apply1(avg_pool_op, ctx.attrs, {ctx.dy()}); }

}  // namespace

constinit const OpDef max_pool_op{.name = "max_pool", .rule = rule, .cpu = max_kernel, .vjp = max_vjp, .saves_in = 1};
constinit const OpDef max_pool_grad_op{
    .name = "max_pool_grad", .rule = like_first_rule, .cpu = max_grad_kernel, .vjp = max_grad_vjp, .saves_in = 1};
constinit const OpDef max_pool_take_op{
    .name = "max_pool_take", .rule = rule, .cpu = max_take_kernel, .vjp = max_take_vjp, .saves_in = 1};
constinit const OpDef avg_pool_op{.name = "avg_pool", .rule = rule, .cpu = avg_kernel, .vjp = avg_vjp};
constinit const OpDef avg_pool_grad_op{
    .name = "avg_pool_grad", .rule = like_second_rule, .cpu = avg_grad_kernel, .vjp = avg_grad_vjp, .shape_only = 2};

Tensor max_pool(const Tensor& x, const ConvForm& form) { return apply1(max_pool_op, window_attrs(form), {x}); }
Tensor avg_pool(const Tensor& x, const ConvForm& form) { return apply1(avg_pool_op, window_attrs(form), {x}); }

}  // namespace kassette::ops

// ops/convolution/conv_boxes.cpp - reading and writing boxes of images.
#include "ops/convolution/conv_boxes.h"

#include <cstring>

#include "ops/elementwise/cast.h"
#include "ops/shape/strided.h"

namespace kassette::ops {

Images::Images(const std::byte* bytes, DType type, const std::int64_t* sizes, std::int64_t n_channels,
               bool channels_first)
    : data(const_cast<std::byte*>(bytes)), dtype(type), channels(n_channels) {
  std::copy_n(sizes, 3, size);
  // If an image is a single point its channels are contiguous in both formats, so it is treated as channels_last.
  const std::int64_t points = size[0] * size[1] * size[2], unit = channels_first && points != 1 ? 1 : channels;
  channel_stride = channels_first ? points : 1;
  stride[2] = unit;
  stride[1] = size[2] * unit;
  stride[0] = size[1] * stride[1];
  batch_stride = points * channels;
}

bool Box::inside(const Images& x) const {
  for (int i = 0; i < 3; ++i)
    if (low[i] < 0 || low[i] + (count[i] - 1) * step[i] >= x.size[i]) return false;
  return true;
}

namespace {

template <class T>
constexpr DType kDType = sizeof(T) == 4 ? float32 : float64;

/// The part of a box that lies inside the image: `from` is its first point in the image, `at` the same point in the
/// box.
struct InsidePart {
  std::int64_t from[3], at[3], count[3];
  bool empty = false, whole = true;
};
InsidePart part_inside(const Images& x, const Box& box) {
  InsidePart p;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t first = std::max<std::int64_t>(0, -box.low[i]),
                       last = std::min(box.count[i], x.size[i] - box.low[i]);
    p.at[i] = first;
    p.from[i] = box.low[i] + first;
    p.count[i] = last - first;
    p.empty |= p.count[i] <= 0;
    p.whole &= p.count[i] == box.count[i];
  }
  return p;
}

}  // namespace

template <class T>
void read_box(const Images& x, const Box& box, std::int64_t repeat, std::int64_t point_stride, T* to, void* spare) {
  const DType wanted = kDType<T>;
  const bool convert = x.dtype != wanted;
  const std::int64_t item = x.dtype.size(), total = box.points() * point_stride;
  auto* raw = static_cast<std::byte*>(convert ? spare : static_cast<void*>(to));
  const InsidePart p = part_inside(x, box);
  if (p.empty || !p.whole || point_stride != box.channels * repeat)
    std::memset(raw, 0, static_cast<std::size_t>(total * item));
  if (!p.empty) {
    const std::int64_t row = box.count[2] * point_stride, plane = box.count[1] * row;
    Strided copy;
    copy.push(p.count[0], x.stride[0], plane);
    copy.push(p.count[1], x.stride[1], row);
    copy.push(p.count[2], x.stride[2], point_stride);
    copy.push(box.channels, x.channel_stride, repeat);
    if (repeat > 1) copy.push(repeat, 0, 1);
    const std::int64_t origin = (p.at[0] * box.count[1] + p.at[1]) * row + p.at[2] * point_stride;
    copy_strided(copy, x.data + x.offset(box.image, p.from, box.channel) * item, raw + origin * item,
                 static_cast<int>(item));
  }
  if (convert) cast_elements(to, wanted, raw, x.dtype, total);
}

template <class T>
void write_box(const Images& y, const Box& box, std::int64_t point_stride, const T* from, void* spare) {
  const DType have = kDType<T>;
  const std::int64_t item = y.dtype.size();
  auto* raw = reinterpret_cast<const std::byte*>(from);
  if (y.dtype != have) {
    cast_elements(spare, y.dtype, from, have, box.points() * point_stride);
    raw = static_cast<const std::byte*>(spare);
  }
  const std::int64_t row = box.count[2] * point_stride;
  Strided copy;
  copy.push(box.count[0], box.count[1] * row, box.step[0] * y.stride[0]);
  copy.push(box.count[1], row, box.step[1] * y.stride[1]);
  copy.push(box.count[2], point_stride, box.step[2] * y.stride[2]);
  copy.push(box.channels, 1, y.channel_stride);
  copy_strided(copy, raw, y.data + y.offset(box.image, box.low, box.channel) * item, static_cast<int>(item));
}

template void read_box(const Images&, const Box&, std::int64_t, std::int64_t, float*, void*);
template void read_box(const Images&, const Box&, std::int64_t, std::int64_t, double*, void*);
template void write_box(const Images&, const Box&, std::int64_t, const float*, void*);
template void write_box(const Images&, const Box&, std::int64_t, const double*, void*);

}  // namespace kassette::ops

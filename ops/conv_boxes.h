// ops/conv_boxes.h - boxes of images: how convolution and pooling on the CPU read and write tensors of either data format and any float
// dtype through a small buffer in which channels are last and padding is there as zeros.
#pragma once
#include <algorithm>

#include "ops/conv.h"

namespace kassette {

/// A tensor of images as five axes: batch, three of space, channels. Strides in elements.
struct Images {
  std::byte* data;
  DType dtype;
  std::int64_t size[3];
  std::int64_t batch_stride, stride[3], channel_stride;
  std::int64_t channels;

  /// `size` along the spatial axes.
  Images(const std::byte* bytes, DType type, const std::int64_t* size, std::int64_t channels, bool channels_first);
  bool channels_last() const { return channel_stride == 1; }
  /// The same images with n of their channels.
  Images part(std::int64_t channel, std::int64_t n) const {
    Images some = *this;
    some.data += channel * channel_stride * dtype.size();
    some.channels = n;
    return some;
  }
  /// Of an element, counted from the first.
  std::int64_t offset(std::int64_t image, const std::int64_t* place, std::int64_t channel) const {
    return image * batch_stride + place[0] * stride[0] + place[1] * stride[1] + place[2] * stride[2] +
           channel * channel_stride;
  }
};

/// A box of one image. `low` may lie before the image and low + count behind it: zeros are there.
struct Box {
  std::int64_t image, low[3], count[3], step[3] = {1, 1, 1};
  std::int64_t channel, channels;  // the first, and how many
  std::int64_t points() const { return count[0] * count[1] * count[2]; }
  /// Whether nothing of it is padding.
  bool inside(const Images& x) const;
};

/// The elements of a box as T, points in row-major order with `point_stride` elements from one to the next, each channel `repeat` times
/// in a row; zeros in padding and behind the channels. `spare` holds as many elements of 2 bytes, and is used for half types.
template <class T>
void read_box(const Images& x, const Box& box, std::int64_t repeat, std::int64_t point_stride, T* to, void* spare);
/// The other way: the box lies inside.
template <class T>
void write_box(const Images& y, const Box& box, std::int64_t point_stride, const T* from, void* spare);

}  // namespace kassette

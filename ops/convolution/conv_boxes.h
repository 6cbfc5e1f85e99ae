// ops/convolution/conv_boxes.h - boxes of images: convolution and pooling on the CPU read and write tensors of either
// data format and any float dtype through a small buffer, in which channels are last and padding is filled with zeros.
#pragma once
#include <algorithm>

#include "ops/convolution/conv.h"

namespace kassette::ops {

/// A view of a tensor of images with five axes: batch, three spatial axes, channels. Strides are in elements.
struct Images {
  std::byte* data;
  DType dtype;
  std::int64_t size[3];
  std::int64_t batch_stride, stride[3], channel_stride;
  std::int64_t channels;

  /// `size`: the sizes of the spatial axes.
  Images(const std::byte* bytes, DType type, const std::int64_t* size, std::int64_t channels, bool channels_first);
  bool channels_last() const { return channel_stride == 1; }
  /// A view of n channels of these images, from `channel` on.
  Images part(std::int64_t channel, std::int64_t n) const {
    Images some = *this;
    some.data += channel * channel_stride * dtype.size();
    some.channels = n;
    return some;
  }
  /// The offset of an element from the first one, in elements.
  std::int64_t offset(std::int64_t image, const std::int64_t* place, std::int64_t channel) const {
    return image * batch_stride + place[0] * stride[0] + place[1] * stride[1] + place[2] * stride[2] +
           channel * channel_stride;
  }
};

/// A box of points of one image. It may extend beyond the image on both sides: the elements outside are padding, which
/// reads as zeros.
struct Box {
  std::int64_t image, low[3], count[3], step[3] = {1, 1, 1};
  std::int64_t channel, channels;  // the first channel, and their number
  std::int64_t points() const { return count[0] * count[1] * count[2]; }
  /// True if the box contains no padding.
  bool inside(const Images& x) const;
};

/// Copies a box to `to`, converted to T: points in row-major order, `point_stride` elements apart, each channel
/// `repeat` times in a row, with zeros for padding and after the last channel. `spare`, used for half types only, has
/// room for as many elements of 2 bytes. The steps of the box must be 1.
template <class T>
void read_box(const Images& x, const Box& box, std::int64_t repeat, std::int64_t point_stride, T* to, void* spare);
/// Copies `from`, in that layout, to a box of y, which must lie inside the image. box.step may be larger than 1.
template <class T>
void write_box(const Images& y, const Box& box, std::int64_t point_stride, const T* from, void* spare);

}  // namespace kassette::ops

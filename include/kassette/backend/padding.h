// include/kassette/backend/padding.h - zeros around sequences and images, and enlarging images.
#ifndef KASSETTE_BACKEND_PADDING_H
#define KASSETTE_BACKEND_PADDING_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// x (batch, steps, channels) with zeros before and after the steps. Throws AssertionError unless padding is two
/// numbers.
KASSETTE_API Tensor temporal_padding(const Operand& x, const Operand& padding = {1, 1});
/// x, images of rank 4, with zeros around them: {{top, bottom}, {left, right}}. Throws AssertionError unless padding is
/// two pairs.
KASSETTE_API Tensor spatial_2d_padding(const Operand& x, const Operand& padding = {{1, 1}, {1, 1}},
                                       Name data_format = None);
/// x, volumes of rank 5, with zeros around them: three pairs.
KASSETTE_API Tensor spatial_3d_padding(const Operand& x, const Operand& padding = {{1, 1}, {1, 1}, {1, 1}},
                                       Name data_format = None);

/// Images of rank 4 enlarged by whole factors. "nearest" repeats elements and keeps the dtype; "bilinear" gives float32
/// (float64 for float64), and places row i of the result at row i / height_factor of x, without centred pixels, as
/// Keras 2.3 does. data_format is "channels_last" or "channels_first", not None. Throws ValueError for any other data
/// format or interpolation, and for a factor below 1.
KASSETTE_API Tensor resize_images(const Operand& x, int height_factor, int width_factor, Name data_format,
                                  Name interpolation = "nearest");
/// Volumes of rank 5 enlarged by whole factors: each element repeated along the three axes of space.
KASSETTE_API Tensor resize_volumes(const Operand& x, int depth_factor, int height_factor, int width_factor,
                                   Name data_format);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_PADDING_H

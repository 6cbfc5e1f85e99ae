// include/kassette/nn/convolution.h - convolution with groups, pooling, and patches of images, as Keras 3 has them.
#ifndef KASSETTE_NN_CONVOLUTION_H
#define KASSETTE_NN_CONVOLUTION_H
#include <kassette/backend/convolution.h>

namespace kassette {
namespace nn {

// x is (batch, space..., channels) if data_format is "channels_last" and (batch, channels, space...) if it is
// "channels_first"; None means K::image_data_format(). There are one to three axes of space, by the rank of x or of the
// kernel. Shapes that do not fit throw ValueError.

using backend::ConvOptions;

/// The convolution of x with a kernel (size of each axis..., input channels, output channels). If the kernel has fewer
/// input channels than x, by a factor, that is the number of groups: the channels of x and of the result are divided,
/// and each group of results sees its own. Options are those of K::conv2d.
KASSETTE_API Tensor conv(const Operand& inputs, const Operand& kernel, const ConvOptions& options = {});

/// The arguments of pooling by name: strides are those of pool_size if None.
struct PoolOptions {
  Named only_by_name{0};
  Dims strides = None;
  Name padding = "valid";
  Name data_format = None;
};
/// The largest element of each window of a channel.
KASSETTE_API Tensor max_pool(const Operand& inputs, const Dims& pool_size, const PoolOptions& options = {});
/// The mean of each window of a channel, not counting padding.
KASSETTE_API Tensor average_pool(const Operand& inputs, const Dims& pool_size, const PoolOptions& options = {});
/// The means of output_size windows that divide each axis as evenly as can be: window i of m over n elements is from
/// floor(i n / m) to ceil((i + 1) n / m). The sizes of x along these axes must be known.
KASSETTE_API Tensor adaptive_average_pool(const Operand& inputs, const Dims& output_size, Name data_format = None);
/// The largest elements of the same windows.
KASSETTE_API Tensor adaptive_max_pool(const Operand& inputs, const Dims& output_size, Name data_format = None);

/// Images with fewer channels and more places: each place becomes block_size x block_size ones, whose channels follow
/// each other, row by row, in that of x.
KASSETTE_API Tensor depth_to_space(const Operand& x, int block_size, Name data_format = None);
/// The inverse of depth_to_space: blocks of places become channels.
KASSETTE_API Tensor space_to_depth(const Operand& x, int block_size, Name data_format = None);

/// The patches of images (batch, channels, rows, columns) as (batch, channels * rows of the kernel * its columns,
/// patches), in the order of PyTorch's unfold: im2col.
KASSETTE_API Tensor unfold(const Operand& x, const Dims& kernel_size, const Dims& dilation = 1, int padding = 0,
                           const Dims& stride = 1);
/// Images (batch, channels, output_size...) from patches as unfold gives them, which are added where they overlap: the
/// adjoint of unfold.
KASSETTE_API Tensor fold(const Operand& x, const Dims& output_size, const Dims& kernel_size, const Dims& dilation = 1,
                         int padding = 0, const Dims& stride = 1);

}  // namespace nn
}  // namespace kassette

#endif  // KASSETTE_NN_CONVOLUTION_H

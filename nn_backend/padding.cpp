// nn_backend/padding.cpp - zeros around sequences and images, and enlarging images.
#include <kassette/backend/padding.h>

#include <kassette/backend/config.h>

#include "core/convert.h"
#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/windows.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/convolution/resize.h"
#include "ops/shape/shaping.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;
namespace {

/// x padded by pairs of amounts for `axes` axes from axis `first` on; for one axis the amounts are a single pair.
Tensor padded(const char* what, const Operand& operand, const Operand& amounts, int axes, int first) {
  Arg x(operand, DType(), {what, "x"});
  dense(what, "x", x);
  const TensorSpec& s = x.desc();
  check_rank({what, "x"}, s, axes + 2);
  if (amounts.is_none()) fail<AssertionError>({what, "padding"}, "is None");
  Arg given(amounts, int64, {what, "padding"});
  const Tensor& pairs = dense(what, "padding", given);
  const TensorSpec& p = Access::desc(pairs);
  const bool right = axes == 1 ? p.rank == 1 && p.dims[0] == 2 : p.rank == 2 && p.dims[0] == axes && p.dims[1] == 2;
  if (!right)
    fail<AssertionError>({what, "padding"}, "has shape ", p, kExpected, "it must be ",
                         axes == 1   ? "two numbers"
                         : axes == 2 ? "two pairs"
                                     : "three pairs");
  if (!p.dtype.is_integer()) fail<TypeError>({what, "padding"}, "is ", p.dtype, kExpected, "it must be integers");
  if (Access::desc(pairs).symbolic())
    fail<ValueError>({what, "padding"}, "depends on a placeholder", kExpected, "it must be numbers");
  const Tensor numbers = pairs.device() == cpu ? pairs : pairs.to(cpu);
  const Value value = read_value(Access::desc(numbers));
  std::int64_t at[6];
  convert(at, int64, static_cast<const std::byte*>(value.storage->data) + value.offset, p.dtype, 2 * axes);
  Pads pads;
  pads.rank = axes + 2;
  for (int i = 0; i < axes; ++i) {
    for (int k = 0; k < 2; ++k)
      if (at[2 * i + k] < 0)
        fail<ValueError>({what, "padding"}, "holds ", at[2 * i + k], kExpected, "amounts must not be negative");
    pads.before[first + i] = at[2 * i];
    pads.after[first + i] = at[2 * i + 1];
  }
  return pad(x, pads);
}

/// The first axis of space. The format must be in lower case and not None.
int first_axis(const char* what, Name data_format) {
  const std::string_view name = view_of(data_format);
  if (name == "channels_first") return 2;
  if (name == "channels_last") return 1;
  fail<ValueError>({what, "data_format"}, "is ", quoted(data_format), kExpected,
                   "it must be \"channels_last\" or \"channels_first\"");
}
void check_factor(const At& at, int factor) {
  if (factor < 1) fail<ValueError>(at, "is ", factor, kExpected, "it must be at least 1");
}

}  // namespace

Tensor temporal_padding(const Operand& x, const Operand& padding) {
  KASSETTE_DISPATCH(temporal_padding, x, padding);
  return attribute_errors("temporal_padding", [&] { return padded("temporal_padding", x, padding, 1, 1); });
}
Tensor spatial_2d_padding(const Operand& x, const Operand& padding, Name data_format) {
  KASSETTE_DISPATCH(spatial_2d_padding, x, padding, data_format);
  const char* what = "spatial_2d_padding";
  return attribute_errors(what, [&] {
    return padded(what, x, padding, 2, is_channels_first({what, "data_format"}, data_format) ? 2 : 1);
  });
}
Tensor spatial_3d_padding(const Operand& x, const Operand& padding, Name data_format) {
  KASSETTE_DISPATCH(spatial_3d_padding, x, padding, data_format);
  const char* what = "spatial_3d_padding";
  return attribute_errors(what, [&] {
    return padded(what, x, padding, 3, is_channels_first({what, "data_format"}, data_format) ? 2 : 1);
  });
}

Tensor resize_images(const Operand& operand, int height_factor, int width_factor, Name data_format,
                     Name interpolation) {
  KASSETTE_DISPATCH(resize_images, operand, height_factor, width_factor, data_format, interpolation);
  const char* what = "resize_images";
  return attribute_errors(what, [&] {
    const int axis = first_axis(what, data_format);
    check_factor({what, "height_factor"}, height_factor);
    check_factor({what, "width_factor"}, width_factor);
    const std::string_view name = view_of(interpolation);
    const bool bilinear = name == "bilinear";
    if (!bilinear && name != "nearest")
      fail<ValueError>({what, "interpolation"}, "is ", quoted(interpolation), kExpected,
                       "it must be \"nearest\" or \"bilinear\"");
    Arg x(operand, DType(), {what, "x"});
    check_rank({what, "x"}, Access::desc(dense(what, "x", x)), 4);
    if (bilinear) {
      const DType d = x.desc().dtype;
      return resize_bilinear(d == float32 || d == float64 ? x.tensor() : cast(x, float32),
                             {height_factor, width_factor, axis == 2});
    }
    if (x.desc().rank < 0) fail_unknown_rank({what, "x"});
    return ops::repeat_elements(ops::repeat_elements(x, width_factor, axis + 1), height_factor, axis);
  });
}
Tensor resize_volumes(const Operand& operand, int depth_factor, int height_factor, int width_factor, Name data_format) {
  KASSETTE_DISPATCH(resize_volumes, operand, depth_factor, height_factor, width_factor, data_format);
  const char* what = "resize_volumes";
  return attribute_errors(what, [&] {
    const int axis = first_axis(what, data_format);
    check_factor({what, "depth_factor"}, depth_factor);
    check_factor({what, "height_factor"}, height_factor);
    check_factor({what, "width_factor"}, width_factor);
    Arg x(operand, DType(), {what, "x"});
    check_rank({what, "x"}, Access::desc(dense(what, "x", x)), 5);
    if (x.desc().rank < 0) fail_unknown_rank({what, "x"});
    Tensor wide = ops::repeat_elements(ops::repeat_elements(x, width_factor, axis + 2), height_factor, axis + 1);
    return ops::repeat_elements(wide, depth_factor, axis);
  });
}

}  // namespace backend
}  // namespace kassette

// nn_backend/pooling.cpp - pooling, local convolution and bias; the arguments that convolution and pooling share.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <kassette/backend/config.h>
#include <kassette/backend/convolution.h>

#include "core/rank.h"
#include "core/sparse.h"
#include "core/text.h"
#include "nn_backend/windows.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/shape/index.h"
#include "ops/shape/like.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/convolution/pool.h"
#include "ops/shape/shaping.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;

namespace {

/// Throws E for sizes that are None (`held` is empty), or among which is `held`: "strides hold 0; they must be at least
/// 1".
template <class E = ValueError, class... Wanted>
[[noreturn]] __attribute__((noinline, cold)) void refuse_sizes(const At& at, const std::string& held,
                                                               const Wanted&... wanted) {
  const bool many = at.argument[std::strlen(at.argument) - 1] == 's';  // "strides hold", "pool_size holds"
  const char* verb = held.empty() ? (many ? "are None" : "is None") : many ? "hold " : "holds ";
  fail<E>(at, verb, held, kExpected, many ? "they must be " : "it must be ", wanted...);
}

}  // namespace

void detail::numbers_for(const char* what, const char* name, const Dims& given, int axes, std::int64_t* to) {
  if (given.whole_) refuse_sizes<TypeError>({what, name}, "a tensor", "numbers");
  if (given.size_ != axes && given.size_ != 1)
    refuse_sizes({what, name}, given.size_ < 0 ? "" : text(given.size_, " sizes"), axes,
                 axes == 1 ? " number" : " numbers, or one for all axes");
  for (int i = 0; i < axes; ++i) {
    const Dim& d = given.dims_[given.size_ == 1 ? 0 : i];
    if (d.tensor_) refuse_sizes<TypeError>({what, name}, "a tensor", "numbers");
    if (d.value_ == Dim::kNoneDim || d.value_ < 1)
      refuse_sizes({what, name}, d.value_ == Dim::kNoneDim ? "None" : text(d.value_), "at least 1");
    if (d.value_ > INT32_MAX) refuse_sizes({what, name}, text(d.value_), "at most ", INT32_MAX);
    to[i] = d.value_;
  }
}

std::string detail::quoted(Name name) { return name.given() ? text('"', string_of(name), '"') : "None"; }

Padding detail::padding_of(const char* what, Name padding, bool causal) {
  const std::string_view name = view_of(padding);
  if (name == "valid") return Padding::valid;
  if (name == "same") return Padding::same;
  if (name == "causal" && causal) return Padding::causal;
  fail<ValueError>({what, "padding"}, "is ", quoted(padding), kExpected, "it must be \"valid\"",
                   causal ? ", \"same\" or \"causal\"" : " or \"same\"");
}

const Tensor& detail::dense(const char* what, const char* name, const Tensor& t) {
  if (!t.defined()) fail_empty({what, name});
  refuse_sparse({what, name}, t);
  return t;
}

namespace {

Tensor pool(const char* what, int axes, const Operand& operand, const Dims& pool_size, const Dims& strides,
            Name padding, Name data_format, Name pool_mode) {
  ConvForm form;
  form.axes = axes;
  form.channels_first = is_channels_first({what, "data_format"}, data_format);
  const Padding kind = padding_of(what, padding, /*causal=*/false);
  std::int64_t size[3], stride[3];
  numbers_for(what, "pool_size", pool_size, axes, size);
  numbers_for(what, "strides", strides, axes, stride);
  for (int i = 0; i < axes; ++i)
    form.window[i] = {.size = size[i], .stride = stride[i], .dilation = 1, .padding = kind};
  const std::string_view mode = view_of(pool_mode);
  const bool max = mode == "max";
  if (!max && mode != "avg")
    fail<ValueError>({what, "pool_mode"}, "is ", quoted(pool_mode), kExpected, "it must be \"max\" or \"avg\"");
  Arg x(operand, DType(), {what, "x"});
  dense(what, "x", x);
  return max ? max_pool(x, form) : avg_pool(x, form);
}

std::int64_t known_size(const char* what, const TensorDesc& b, int axis) {
  if (b.rank < 0) fail_unknown_rank({what, "kernel"});
  check_rank({what, "kernel"}, b, 3, ": (places, features, output channels)");
  if (b.dims[axis] < 0)
    fail<ValueError>({what, "kernel"}, "has shape ", static_cast<const TensorSpec&>(b), kExpected,
                     "its sizes must be known");
  return b.dims[axis];
}

/// The elements of x under one tap of a patch, in all patches: `count` of them from `first` on, `step` apart, along
/// axes `axis`, axis + 1, ...
Tensor under_tap(const Tensor& x, int axis, int axes, const std::int64_t* first, const std::int64_t* step,
                 const std::int64_t* count) {
  auto list = Ref<IndexList>::adopt(new IndexList);
  // A negative stop would count from the end.
  const auto stop = [&](int i) { return count[i] == 0 ? first[i] : first[i] + (count[i] - 1) * step[i] + 1; };
  for (int i = 0; i < axis; ++i) list->push({});
  for (int i = 0; i < axes; ++i)
    list->push({.kind = IndexList::kSlice,
                .has_start = true,
                .has_stop = true,
                .start = first[i],
                .stop = stop(i),
                .step = step[i]});
  return index(x, Ref<Extra>(list.get()));
}

/// How many elements of an axis `places` patches cover.
std::int64_t extent_of_patches(const char* what, std::int64_t places, std::int64_t stride, std::int64_t size) {
  std::int64_t extent;
  if (places == 0) return 0;
  if (__builtin_mul_overflow(places - 1, stride, &extent) || __builtin_add_overflow(extent, size, &extent))
    fail<ValueError>({what, "strides"}, "hold ", stride, ", with which ", places,
                     " patches take more elements than a tensor can have");
  return extent;
}

/// Joins the taps of all patches to one matrix for each place, (places, batch, features), and multiplies it by the
/// kernel of that place.
Tensor local(const char* what, int axes, const Operand& inputs, const Operand& kernel, const std::int64_t* size,
             const std::int64_t* stride, const std::int64_t* places, bool channels_first) {
  const DType dtype = dtype_for_numbers(inputs, kernel);
  Arg x(inputs, dtype, {what, "inputs"}), w(kernel, dtype, {what, "kernel"});
  dense(what, "inputs", x);
  const TensorDesc &b = x.desc(), &k = Access::desc(dense(what, "kernel", w));
  if (!b.dtype.is_float())
    fail<TypeError>({what, "inputs"}, "are ", b.dtype, ", not a float dtype", kRemedy, "cast them first (K::cast)");
  if (b.dtype != k.dtype)
    fail<TypeError>({what}, "inputs are ", b.dtype, ", the kernel is ", k.dtype, kRemedy, "cast one of them (K::cast)");
  check_rank({what, "inputs"}, b, axes + 2);
  std::int64_t all = 1, taps = 1, extent[2];
  for (int i = 0; i < axes; ++i) {
    all *= places[i], taps *= size[i];
    extent[i] = extent_of_patches(what, places[i], stride[i], size[i]);
  }
  const std::int64_t features = known_size(what, k, 1), filters = known_size(what, k, 2);
  if (known_size(what, k, 0) != all)
    fail<ValueError>({what, "kernel"}, static_cast<const TensorSpec&>(k), " has ", k.dims[0],
                     " places, and output_shape asks for ", all);
  const int space = channels_first ? 2 : 1, channel_axis = channels_first ? 1 : axes + 1;
  const std::int64_t channels = b.dim(channel_axis);
  if (features % taps != 0 || differ(features / taps, channels))
    fail<ValueError>({what}, "inputs ", static_cast<const TensorSpec&>(b), " and a kernel ",
                     static_cast<const TensorSpec&>(k), ": patches have ", taps, " elements of each channel",
                     channels < 0 ? "" : text(", ", taps * channels, " in all"), ", and the kernel takes ", features,
                     " features");
  for (int i = 0; i < axes && b.rank >= 0; ++i) {
    const std::int64_t n = b.dims[space + i];
    if (n >= 0 && extent[i] > n)
      fail<ValueError>({what, "inputs"}, static_cast<const TensorSpec&>(b), " have ", n,
                       " elements along an axis, and ", places[i], " patches take ", extent[i]);
  }
  // Indexing clips at the end of x, a slice throws; it also checks sizes that are unknown until the call.
  Tensor covered = x.tensor();
  if (!b.known()) {
    std::vector<std::int64_t> count(axes + 2, -1);
    std::copy_n(extent, axes, count.begin() + space);
    covered = slice_from(covered, std::vector<std::int64_t>(count.size(), 0), count);
  }
  Tensors parts;
  std::int64_t at[2] = {};
  for (at[0] = 0; at[0] < size[0]; ++at[0])
    for (at[1] = 0; at[1] < (axes > 1 ? size[1] : 1); ++at[1])
      parts.push_back(under_tap(covered, space, axes, at, stride, places));
  // (batch, places..., taps, channels), or channels before space and taps last.
  Tensor patches = ops::stack(parts, channels_first ? axes + 2 : axes + 1);
  if (channels_first) {
    // Positions come before channels in the features: this is the only order for one axis. For two axes: places...,
    // batch, channels, taps.
    patches = axes == 1 ? permute(patches, {2, 0, 3, 1}) : permute(patches, {2, 3, 0, 1, 4});
  } else {
    patches = axes == 1 ? permute(patches, {1, 0, 2, 3}) : permute(patches, {1, 2, 0, 3, 4});
  }
  // -1 in a reshape would hide a wrong number of channels, and cannot be inferred without elements.
  const bool known_batch = b.rank >= 0 && b.dims[0] >= 0;
  const Tensor size_now = known_batch ? Tensor() : shape_of(x, int64)[0];
  const Dim batch = known_batch ? Dim(b.dims[0]) : Dim(size_now);
  const Tensor features_now = channels < 0 ? shape_of(x, int64)[channel_axis] * taps : Tensor();
  patches = ops::reshape(patches, {all, batch, channels < 0 ? Dim(features_now) : Dim(features)});
  Tensor y = matmul(patches, w);  // (places, batch, filters)
  if (channels_first) {
    y = permute(y, {1, 2, 0});
    return axes == 1 ? y : ops::reshape(y, {batch, filters, places[0], places[1]});
  }
  y = permute(y, {1, 0, 2});
  return axes == 1 ? y : ops::reshape(y, {batch, places[0], places[1], filters});
}

}  // namespace

Tensor pool2d(const Operand& x, const Dims& pool_size, const Dims& strides, Name padding, Name data_format,
              Name pool_mode) {
  KASSETTE_DISPATCH(pool2d, x, pool_size, strides, padding, data_format, pool_mode);
  return attribute_errors("pool2d",
                          [&] { return pool("pool2d", 2, x, pool_size, strides, padding, data_format, pool_mode); });
}
Tensor pool3d(const Operand& x, const Dims& pool_size, const Dims& strides, Name padding, Name data_format,
              Name pool_mode) {
  KASSETTE_DISPATCH(pool3d, x, pool_size, strides, padding, data_format, pool_mode);
  return attribute_errors("pool3d",
                          [&] { return pool("pool3d", 3, x, pool_size, strides, padding, data_format, pool_mode); });
}

Tensor local_conv1d(const Operand& inputs, const Operand& kernel, const Dims& kernel_size, const Dims& strides,
                    Name data_format) {
  KASSETTE_DISPATCH(local_conv1d, inputs, kernel, kernel_size, strides, data_format);
  const char* what = "local_conv1d";
  return attribute_errors(what, [&] {
    std::int64_t size, stride;
    const bool channels_first = is_channels_first({what, "data_format"}, data_format);
    numbers_for(what, "kernel_size", kernel_size, 1, &size);
    numbers_for(what, "strides", strides, 1, &stride);
    Arg w(kernel, dtype_for_numbers(inputs, kernel), {what, "kernel"});
    const std::int64_t places = known_size(what, Access::desc(dense(what, "kernel", w)), 0);
    return local(what, 1, inputs, w.tensor(), &size, &stride, &places, channels_first);
  });
}
Tensor local_conv2d(const Operand& inputs, const Operand& kernel, const Dims& kernel_size, const Dims& strides,
                    const Dims& output_shape, Name data_format) {
  KASSETTE_DISPATCH(local_conv2d, inputs, kernel, kernel_size, strides, output_shape, data_format);
  const char* what = "local_conv2d";
  return attribute_errors(what, [&] {
    std::int64_t size[2], stride[2], places[2];
    const bool channels_first = is_channels_first({what, "data_format"}, data_format);
    numbers_for(what, "kernel_size", kernel_size, 2, size);
    numbers_for(what, "strides", strides, 2, stride);
    numbers_for(what, "output_shape", output_shape, 2, places);
    return local(what, 2, inputs, kernel, size, stride, places, channels_first);
  });
}

Tensor bias_add(const Operand& x_operand, const Operand& bias_operand, Name data_format) {
  KASSETTE_DISPATCH(bias_add, x_operand, bias_operand, data_format);
  const char* what = "bias_add";
  return attribute_errors(what, [&] {
    const bool channels_first = is_channels_first({what, "data_format"}, data_format);
    const DType dtype = dtype_for_numbers(x_operand, bias_operand);
    Arg x(x_operand, dtype, {what, "x"}), bias(bias_operand, dtype, {what, "bias"});
    dense(what, "x", x);
    const TensorSpec &s = x.desc(), &b = Access::desc(dense(what, "bias", bias));
    if (b.rank < 0) fail_unknown_rank({what, "bias"});
    Tensor fitted = assert_shape_of(channels_first ? ShapeCheck::bias_first : ShapeCheck::bias_last, bias, x);
    if (!channels_first || s.rank == 2) return x.tensor() + fitted;
    if (s.rank < 0) fail_unknown_rank({what, "x"});
    if (b.rank == 1) {
      Dims shape(None);
      shape.size_ = s.rank - 1;
      shape.dims_[0] = Dim(-1);
      for (int i = 1; i < shape.size_; ++i) shape.dims_[i] = Dim(1);
      return x.tensor() + ops::reshape(fitted, shape);
    }
    // Stored as (space..., channels) whatever the format.
    Dims shape(None);
    shape.size_ = b.rank;
    Tensor now[kMaxRank];  // of sizes that are unknown
    for (int i = 0; i < b.rank; ++i) {
      const int from = i == 0 ? b.rank - 1 : i - 1;
      if (b.dims[from] < 0) now[i] = shape_of(bias, int64)[from];
      shape.dims_[i] = b.dims[from] < 0 ? Dim(now[i]) : Dim(b.dims[from]);
    }
    return x.tensor() + ops::reshape(fitted, shape);
  });
}

}  // namespace backend
}  // namespace kassette

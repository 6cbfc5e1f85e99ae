// python/src/networks.cpp - K functions of neural networks: activations, losses, normalisation, convolution, random
// tensors.
#include <cmath>

#include "convert.h"

namespace kassette {
namespace python {
namespace {

using nb::arg;

template <class F>
void convolution(nb::module_& m, const char* name, F f, nb::object one) {
  m.def(
      name,
      [f](Value& x, Value& kernel, const Sizes& strides, const Label& padding, const Label& data_format,
          const Sizes& dilation_rate) {
        match({&x, &kernel});
        Recorded on;
        return f(x.operand(), kernel.operand(), strides.dims(), padding.name(), data_format.name(),
                 dilation_rate.dims());
      },
      arg("x"), arg("kernel"), arg("strides") = one, arg("padding") = "valid", arg("data_format").none() = nb::none(),
      arg("dilation_rate") = one);
}
template <class F>
void separable(nb::module_& m, const char* name, F f, nb::object one) {
  m.def(
      name,
      [f](Value& x, Value& depthwise, Value& pointwise, const Sizes& strides, const Label& padding,
          const Label& data_format, const Sizes& dilation_rate) {
        match({&x, &depthwise, &pointwise});
        Recorded on;
        return f(x.operand(), depthwise.operand(), pointwise.operand(), strides.dims(), padding.name(),
                 data_format.name(), dilation_rate.dims());
      },
      arg("x"), arg("depthwise_kernel"), arg("pointwise_kernel"), arg("strides") = one, arg("padding") = "valid",
      arg("data_format").none() = nb::none(), arg("dilation_rate") = one);
}
template <class F>
void pooling(nb::module_& m, const char* name, F f, nb::object one) {
  m.def(
      name,
      [f](const Value& x, const Sizes& pool_size, const Sizes& strides, const Label& padding, const Label& data_format,
          const Label& pool_mode) {
        Recorded on;
        return f(x.operand(), pool_size.dims(), strides.dims(), padding.name(), data_format.name(), pool_mode.name());
      },
      arg("x"), arg("pool_size"), arg("strides") = one, arg("padding") = "valid",
      arg("data_format").none() = nb::none(), arg("pool_mode") = "max");
}
using DrawOfTwo = Tensor (*)(const Dims&, const Operand&, const Operand&, DType, Scalar);
void draw(nb::module_& m, const char* name, DrawOfTwo f, const char* a_name, double a_default, const char* b_name,
          double b_default) {
  m.def(
      name,
      [f, what = std::string(name) + ": seed"](const Sizes& shape, const Value& a, const Value& b, DType dtype,
                                               nb::handle seed) {
        Recorded on;
        return f(shape.dims(), a.operand(), b.operand(), dtype, to_scalar(seed, what.c_str()));
      },
      arg("shape"), arg(a_name) = a_default, arg(b_name) = b_default, arg("dtype").none() = nb::none(),
      arg("seed").none() = nb::none());
}

// ---- with a tensor where Keras documents a number: composed as Keras' TensorFlow backend composes them
// ------------------

Tensor relu_of(const Tensor& x, const Number& alpha, const Number& max_value, const Number& threshold) {
  const bool leaks = alpha.tensor() || alpha.value() != 0, above = threshold.tensor() || threshold.value() != 0;
  Tensor y = above ? x * K::cast(K::greater(x, threshold.operand()), x.dtype()) : K::relu(x);
  if (!max_value.is_none()) y = K::clip(y, 0, max_value.operand());
  if (!leaks) return y;
  return y - alpha.operand() * K::relu(above ? threshold.operand() - x : -x);
}

/// Whether fewer than k classes are above the target; false for targets that are none, and beside what is not finite.
Tensor in_top_k_of(const Operand& predictions, const Operand& targets, const Tensor& k) {
  const Tensor p = K::identity(predictions);
  const Tensor classes = K::arange(K::shape(p)[1], None, 1, int64);
  const Tensor chosen = K::equal(K::expand_dims(K::cast(targets, int64), -1), classes);
  const Tensor of_target = K::max(K::switch_(chosen, p, K::zeros_like(p) - INFINITY), -1, true);
  const Tensor above = K::sum(K::cast(K::greater(p, of_target), k.dtype()), -1);
  return (above < k) & K::any(chosen, -1) & K::all(K::abs(p) < INFINITY, -1);
}

Tensor dropout_of(const Tensor& x, const Tensor& level, Sizes& noise_shape, Scalar seed) {
  const Tensor rate = K::cast(level, x.dtype());
  noise_shape.complete(x);
  const Tensor noise = K::random_uniform(noise_shape.dims(), 0, 1, x.dtype(), seed);
  return x / (1 - rate) * K::cast(noise >= rate, x.dtype());
}

/// What normalize_batch_in_training computes, with another epsilon.
Tensor normalized_with(const Operand& operand, const Value& gamma, const Value& beta, const Axes& axes,
                       const Tensor& epsilon) {
  const Tensor x = K::identity(operand), mean = K::mean(x, axes, true);
  Tensor y = (x - mean) / K::sqrt(K::var(x, axes, true) + epsilon);
  if (!gamma.is_none()) y = y * K::reshape(gamma.operand(), K::shape(mean));
  if (!beta.is_none()) y = y + K::reshape(beta.operand(), K::shape(mean));
  return y;
}

}  // namespace

// clang-format off
void bind_networks(nb::module_& m) {
  nb::object one2 = nb::make_tuple(1, 1), one3 = nb::make_tuple(1, 1, 1), one1 = nb::int_(1);
  m.def("relu", [](const Value& x, const Number& alpha, const Number& max_value, const Number& threshold) {
    Recorded on;
    const bool tensors = alpha.tensor() || max_value.tensor() || threshold.tensor();
    if (const bool integers = K::dtype(x.operand()).is_integer(); tensors || integers) {
      Tensor of = K::identity(x.operand());   // a slope makes integers float32, as with TensorFlow
      return relu_of(integers && (alpha.tensor() || alpha.value() != 0) ? K::cast(of, float32) : of, alpha, max_value, threshold);
    }
    return K::relu(x.operand(), alpha.value(), max_value.scalar(), threshold.value());
  }, arg("x"), arg("alpha") = 0.0, arg("max_value").none() = nb::none(), arg("threshold") = 0.0);
  m.def("elu", [](const Value& x, const Number& alpha) {
    Recorded on;
    if (!alpha.tensor()) return K::elu(x.operand(), alpha.value());
    Tensor y = K::elu(x.operand());
    return K::switch_(K::greater(x.operand(), 0), y, *alpha.tensor() * y);
  }, arg("x"), arg("alpha") = 1.0);
  m.def("softmax", [](const Value& x, const Integer& axis) { Recorded on; return K::softmax(x.operand(), axis); }, arg("x"), arg("axis") = -1);
  m.def("categorical_crossentropy", [](Value& target, Value& output, bool from_logits, const Integer& axis) {
    match({&output, &target});
    Recorded on;
    return K::categorical_crossentropy(target.operand(), output.operand(), from_logits, axis);
  }, arg("target"), arg("output"), arg("from_logits") = false, arg("axis") = -1);
  m.def("sparse_categorical_crossentropy", [](const Value& target, const Value& output, bool from_logits, const Integer& axis) {
    Recorded on;
    return K::sparse_categorical_crossentropy(target.operand(), output.operand(), from_logits, axis);
  }, arg("target"), arg("output"), arg("from_logits") = false, arg("axis") = -1);
  m.def("binary_crossentropy", [](Value& target, Value& output, bool from_logits) {
    match({&output, &target});
    Recorded on;
    return K::binary_crossentropy(target.operand(), output.operand(), from_logits);
  }, arg("target"), arg("output"), arg("from_logits") = false);
  m.def("in_top_k", [](const Value& predictions, const Value& targets, nb::handle k) {
    Recorded on;
    if (const Tensor* t = tensor_of(k)) return in_top_k_of(predictions.operand(), targets.operand(), *t);
    return K::in_top_k(predictions.operand(), targets.operand(), static_cast<int>(to_int(k, "in_top_k: k")));
  }, arg("predictions"), arg("targets"), arg("k"));
  m.def("dropout", [](const Value& x, const Number& level, Sizes& noise_shape, nb::handle seed) {
    Recorded on;
    const Scalar from = to_scalar(seed, "dropout: seed");
    if (!level.tensor()) return K::dropout(x.operand(), level.value(), noise_shape.dims(), from);
    return dropout_of(K::identity(x.operand()), *level.tensor(), noise_shape, from);
  }, arg("x"), arg("level"), arg("noise_shape").none() = nb::none(), arg("seed").none() = nb::none());
  m.def("l2_normalize", [](const Value& x, nb::handle axis) { Recorded on; return K::l2_normalize(x.operand(), to_axes(axis, "l2_normalize: axis")); },
        arg("x"), arg("axis").none() = nb::none());
  m.def("normalize_batch_in_training", [](const Value& x, const Value& gamma, const Value& beta, nb::handle axes, const Number& epsilon) {
    Recorded on;
    const Axes over = to_axes(axes, "normalize_batch_in_training: reduction_axes");
    auto r = K::normalize_batch_in_training(x.operand(), gamma.operand(), beta.operand(), over, epsilon.tensor() ? 1e-3 : epsilon.value());
    if (epsilon.tensor()) r.normalized = normalized_with(x.operand(), gamma, beta, over, *epsilon.tensor());
    return nb::make_tuple(r.normalized, r.mean, r.variance);
  }, arg("x"), arg("gamma").none(), arg("beta").none(), arg("reduction_axes"), arg("epsilon") = 1e-3);
  m.def("batch_normalization", [](const Value& x, const Value& mean, const Value& var, const Value& beta, const Value& gamma, const Integer& axis, const Number& epsilon) {
    Recorded on;
    if (epsilon.tensor())
      return K::batch_normalization(x.operand(), mean.operand(), K::identity(var.operand()) + *epsilon.tensor(), beta.operand(), gamma.operand(), axis, 0);
    return K::batch_normalization(x.operand(), mean.operand(), var.operand(), beta.operand(), gamma.operand(), axis, epsilon.value());
  }, arg("x"), arg("mean"), arg("var"), arg("beta").none(), arg("gamma").none(), arg("axis") = -1, arg("epsilon") = 1e-3);

  convolution(m, "conv1d", [](auto&&... a) { return K::conv1d(a...); }, one1);
  convolution(m, "conv2d", [](auto&&... a) { return K::conv2d(a...); }, one2);
  convolution(m, "conv3d", [](auto&&... a) { return K::conv3d(a...); }, one3);
  m.def("depthwise_conv2d", [](Value& x, Value& kernel, const Sizes& strides, const Label& padding, const Label& data_format, const Sizes& dilation_rate) {
    match({&x, &kernel});
    Recorded on;
    return K::depthwise_conv2d(x.operand(), kernel.operand(), strides.dims(), padding.name(), data_format.name(), dilation_rate.dims());
  }, arg("x"), arg("depthwise_kernel"), arg("strides") = one2, arg("padding") = "valid", arg("data_format").none() = nb::none(),
        arg("dilation_rate") = one2);
  m.def("conv2d_transpose", [](Value& x, Value& kernel, const Sizes& output_shape, const Sizes& strides, const Label& padding,
                               const Label& data_format, const Sizes& dilation_rate) {
    match({&x, &kernel});
    Recorded on;
    return K::conv2d_transpose(x.operand(), kernel.operand(), output_shape.dims(), strides.dims(), padding.name(), data_format.name(), dilation_rate.dims());
  }, arg("x"), arg("kernel"), arg("output_shape"), arg("strides") = one2, arg("padding") = "valid", arg("data_format").none() = nb::none(),
        arg("dilation_rate") = one2);
  m.def("conv3d_transpose", [](Value& x, Value& kernel, const Sizes& output_shape, const Sizes& strides, const Label& padding,
                               const Label& data_format) {
    match({&x, &kernel});
    Recorded on;
    return K::conv3d_transpose(x.operand(), kernel.operand(), output_shape.dims(), strides.dims(), padding.name(), data_format.name());
  }, arg("x"), arg("kernel"), arg("output_shape"), arg("strides") = one3, arg("padding") = "valid", arg("data_format").none() = nb::none());
  separable(m, "separable_conv1d", [](auto&&... a) { return K::separable_conv1d(a...); }, one1);
  separable(m, "separable_conv2d", [](auto&&... a) { return K::separable_conv2d(a...); }, one2);
  pooling(m, "pool2d", [](auto&&... a) { return K::pool2d(a...); }, one2);
  pooling(m, "pool3d", [](auto&&... a) { return K::pool3d(a...); }, one3);
  m.def("local_conv1d", [](const Value& inputs, const Value& kernel, const Sizes& kernel_size, const Sizes& strides, const Label& data_format) {
    Recorded on;
    return K::local_conv1d(inputs.operand(), kernel.operand(), kernel_size.dims(), strides.dims(), data_format.name());
  }, arg("inputs"), arg("kernel"), arg("kernel_size"), arg("strides"), arg("data_format").none() = nb::none());
  m.def("local_conv2d", [](const Value& inputs, const Value& kernel, const Sizes& kernel_size, const Sizes& strides, const Sizes& output_shape,
                           const Label& data_format) {
    Recorded on;
    return K::local_conv2d(inputs.operand(), kernel.operand(), kernel_size.dims(), strides.dims(), output_shape.dims(), data_format.name());
  }, arg("inputs"), arg("kernel"), arg("kernel_size"), arg("strides"), arg("output_shape"), arg("data_format").none() = nb::none());
  m.def("bias_add", [](Value& x, Value& bias, const Label& data_format) {
    match({&x, &bias});
    Recorded on;
    return K::bias_add(x.operand(), bias.operand(), data_format.name());
  }, arg("x"), arg("bias"), arg("data_format").none() = nb::none());
  m.def("temporal_padding", [](const Value& x, const Value& padding) { Recorded on; return K::temporal_padding(x.operand(), padding.operand()); },
        arg("x"), arg("padding") = one2);
  m.def("spatial_2d_padding", [](const Value& x, const Value& padding, const Label& data_format) {
    Recorded on;
    return K::spatial_2d_padding(x.operand(), padding.operand(), data_format.name());
  }, arg("x"), arg("padding") = nb::make_tuple(one2, one2), arg("data_format").none() = nb::none());
  m.def("spatial_3d_padding", [](const Value& x, const Value& padding, const Label& data_format) {
    Recorded on;
    return K::spatial_3d_padding(x.operand(), padding.operand(), data_format.name());
  }, arg("x"), arg("padding") = nb::make_tuple(one2, one2, one2), arg("data_format").none() = nb::none());
  m.def("resize_images", [](const Value& x, nb::handle rows, nb::handle columns, const Label& data_format, const Label& interpolation) {
    Recorded on;
    return K::resize_images(x.operand(), static_cast<int>(to_int(rows, "resize_images: height_factor")), static_cast<int>(to_int(columns, "resize_images: width_factor")),
                            data_format.name(), interpolation.name());
  }, arg("x"), arg("height_factor"), arg("width_factor"), arg("data_format"), arg("interpolation") = "nearest");
  m.def("resize_volumes", [](const Value& x, nb::handle depth, nb::handle rows, nb::handle columns, const Label& data_format) {
    Recorded on;
    return K::resize_volumes(x.operand(), static_cast<int>(to_int(depth, "resize_volumes: depth_factor")), static_cast<int>(to_int(rows, "resize_volumes: height_factor")),
                             static_cast<int>(to_int(columns, "resize_volumes: width_factor")), data_format.name());
  }, arg("x"), arg("depth_factor"), arg("height_factor"), arg("width_factor"), arg("data_format"));

  draw(m, "random_normal", &K::random_normal, "mean", 0.0, "stddev", 1.0);
  draw(m, "random_uniform", &K::random_uniform, "minval", 0.0, "maxval", 1.0);
  draw(m, "truncated_normal", &K::truncated_normal, "mean", 0.0, "stddev", 1.0);
  m.def("random_binomial", [](const Sizes& shape, const Value& p, DType dtype, nb::handle seed) {
    Recorded on;
    return K::random_binomial(shape.dims(), p.operand(), dtype, to_scalar(seed, "random_binomial: seed"));
  }, arg("shape"), arg("p") = 0.0, arg("dtype").none() = nb::none(), arg("seed").none() = nb::none());
  m.def("random_uniform_variable", [](const Sizes& shape, double low, double high, DType dtype, const Label& name, nb::handle seed) {
    return K::random_uniform_variable(shape.dims(), low, high, dtype, name.name(), to_scalar(seed, "random_uniform_variable: seed"));
  }, arg("shape"), arg("low"), arg("high"), arg("dtype").none() = nb::none(), arg("name").none() = nb::none(), arg("seed").none() = nb::none());
  m.def("random_normal_variable", [](const Sizes& shape, double mean, double scale, DType dtype, const Label& name, nb::handle seed) {
    return K::random_normal_variable(shape.dims(), mean, scale, dtype, name.name(), to_scalar(seed, "random_normal_variable: seed"));
  }, arg("shape"), arg("mean"), arg("scale"), arg("dtype").none() = nb::none(), arg("name").none() = nb::none(), arg("seed").none() = nb::none());
  m.def("set_random_seed", [](nb::handle seed) { K::set_random_seed(to_scalar(seed, "set_random_seed: seed")); }, arg("seed"));

  m.def("ctc_label_dense_to_sparse", [](const Value& labels, const Value& lengths) {
    Recorded on;
    return K::ctc_label_dense_to_sparse(labels.operand(), lengths.operand());
  }, arg("labels"), arg("label_lengths"));
  m.def("ctc_batch_cost", [](const Value& y_true, const Value& y_pred, const Value& input_length, const Value& label_length) {
    Recorded on;
    return K::ctc_batch_cost(y_true.operand(), y_pred.operand(), input_length.operand(), label_length.operand());
  }, arg("y_true"), arg("y_pred"), arg("input_length"), arg("label_length"));
  m.def("ctc_decode", [](const Value& y_pred, const Value& input_length, bool greedy, int beam_width, int top_paths, bool merge_repeated) {
    Recorded on;
    auto r = K::ctc_decode(y_pred.operand(), input_length.operand(), greedy, beam_width, top_paths, merge_repeated);
    return nb::make_tuple(to_list(r.decoded), r.log_prob);
  }, arg("y_pred"), arg("input_length"), arg("greedy") = true, arg("beam_width") = 100, arg("top_paths") = 1, arg("merge_repeated") = false);
}
// clang-format on

}  // namespace python
}  // namespace kassette

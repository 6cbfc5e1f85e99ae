// tests/sweeps/wrong_calls_test.cpp - calls that users get wrong: the error names the function as it was typed, and the
// argument if one is at fault.
#include <kassette/distributed.h>
#include <kassette/inspect.h>
#include <kassette/io.h>
#include <kassette/testing.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sources.h"
#include "tests/sweeps/parameters.h"

namespace K = kassette::backend;
namespace D = kassette::distributed;
using namespace kassette;
using namespace kassette::test;

namespace {

struct WrongCall {
  const char *function, *argument;  // "" where several arguments do not fit each other
  std::function<void()> run;
};

Tensor x() { return K::ones({2, 3}); }
Tensor image() { return K::ones({2, 5, 6, 3}); }
Tensor ints() { return K::constant({1, 2}, "int32"); }
Tensor steps() { return K::ones({2, 4, 3}); }
K::Step step(const Tensor& t, const Tensors& states) { return {t, states}; }

const std::vector<WrongCall>& wrong_calls() {
  static const std::vector<WrongCall> all{
      // clang-format off
      // numbers and lists
      {"dot", "y", [] { K::dot(x(), {{1, 2}, {3}}); }},
      {"batch_dot", "x", [] { K::batch_dot({{1, 2}, {3}}, x()); }},
      {"variable", "value", [] { K::variable(None); }},
      {"constant", "value", [] { K::constant(-1, "uint8"); }},
      {"clip", "min_value", [] { K::clip(ints(), .5, 2); }},
      {"clip", "max_value", [] { K::clip(ints(), 0, 2.5); }},
      {"round", "x", [] { K::round(None); }},
      {"sum", "x", [] { K::sum({{1, 2}, {3}}); }},
      {"reshape", "x", [] { K::reshape(None, {1}); }},
      {"gather", "indices", [] { K::gather(x(), {0, 1.5}); }},
      {"one_hot", "indices", [] { K::one_hot(.5, 3); }},
      {"in_top_k", "targets", [] { K::in_top_k(x(), {0, .5}, 1); }},
      {"conv1d", "kernel", [] { K::conv1d(steps(), {{1, 2}, {3}}); }},
      {"separable_conv2d", "pointwise_kernel", [] { K::separable_conv2d(image(), K::ones({1, 1, 3, 1}), {{1, 2}, {3}}); }},
      {"bias_add", "bias", [] { K::bias_add(x(), {{1, 2}, {3}}); }},
      {"temporal_padding", "padding", [] { K::temporal_padding(steps(), {1, .5}); }},
      {"random_uniform", "maxval", [] { K::random_uniform({2}, 0, 257, "uint8"); }},
      {"random_normal", "stddev", [] { K::random_normal({2}, 0, {{1, 2}, {3}}); }},
      {"arange", "stop", [] { K::arange(0, {{1, 2}, {3}}); }},
      {"foldl", "initializer", [] { K::foldl([](const Tensor& a, const Tensor& b) { return a + b; }, x(), {{1, 2}, {3}}); }},
      {"switch_", "then_expression", [] { K::switch_(true, {{1, 2}, {3}}, x()); }},
      {"in_train_phase", "training", [] { K::in_train_phase(x(), x(), .5); }},
      {"rnn", "mask", [] { K::rnn(step, steps(), Tensors(), false, {{1, 0}, {1}}); }},
      {"batch_normalization", "gamma", [] { K::batch_normalization(x(), 0, 1, 0, {{1, 2}, {3}}); }},
      {"categorical_crossentropy", "target", [] { K::categorical_crossentropy({{1, 2}, {3}}, x()); }},
      {"ctc_label_dense_to_sparse", "labels", [] { K::ctc_label_dense_to_sparse({{1, 2}, {3}}, {1, 2}); }},
      {"update", "new_x", [] { K::update(K::variable(1.0), {{1, 2}, {3}}); }},
      {"set_value", "value", [] { K::set_value(K::variable({1.0, 2.0}), {{1, 2}, {3}}); }},
      {"function", "input 1", [] { Tensor a = K::placeholder({2}), b = K::placeholder({2}); K::function({a, b}, {a + b})({{1.0, 2.0}, {{1, 2}, {3}}}); }},
      // names
      {"conv2d", "data_format", [] { K::conv2d(image(), K::ones({3, 3, 3, 4}), 1, "same", "channel_last"); }},
      {"conv2d", "padding", [] { K::conv2d(image(), K::ones({3, 3, 3, 4}), 1, "smae"); }},
      {"bias_add", "data_format", [] { K::bias_add(x(), {1, 2, 3}, "first"); }},
      {"pool2d", "pool_mode", [] { K::pool2d(image(), {2, 2}, {1, 1}, "valid", None, "mean"); }},
      {"pool2d", "data_format", [] { K::pool2d(image(), {2, 2}, {1, 1}, "valid", "last"); }},
      {"spatial_2d_padding", "data_format", [] { K::spatial_2d_padding(image(), {{1, 1}, {1, 1}}, "NHWC"); }},
      {"local_conv1d", "data_format", [] { K::local_conv1d(steps(), K::ones({3, 6, 2}), 2, 1, "NWC"); }},
      {"resize_images", "interpolation", [] { K::resize_images(image(), 2, 2, "channels_last", "cubic"); }},
      {"resize_images", "data_format", [] { K::resize_images(image(), 2, 2, "last"); }},
      {"resize_images", "width_factor", [] { K::resize_images(image(), 2, 0, "channels_last"); }},
      {"resize_volumes", "depth_factor", [] { K::resize_volumes(K::ones({1, 2, 2, 2, 1}), -1, 2, 2, "channels_last"); }},
      {"set_floatx", "floatx", [] { K::set_floatx("float8"); }},
      {"set_image_data_format", "data_format", [] { K::set_image_data_format("NCHW"); }},
      {"normalize_data_format", "value", [] { K::normalize_data_format("NCHW"); }},
      {"name_scope", "name", [] { auto scope = K::name_scope(""); }},
      // convolutions
      {"conv2d", "x", [] { K::conv2d(x(), K::ones({3, 3, 3, 4})); }},
      {"conv2d", "kernel", [] { K::conv2d(image(), K::ones({3, 3, 3})); }},
      {"conv2d", "kernel", [] { K::conv2d(image(), K::ones({3, 0, 3, 4})); }},
      {"conv2d", "", [] { K::conv2d(K::ones({3, 3, 3, 4}), image()); }}, // swapped
      {"conv2d", "strides", [] { K::conv2d(image(), K::ones({3, 3, 3, 4}), 0); }},
      {"conv2d_transpose", "output_shape", [] { K::conv2d_transpose(image(), K::ones({3, 3, 4, 3}), {10, 12}, 2, "same"); }},
      {"conv2d_transpose", "output_shape", [] { K::conv2d_transpose(image(), K::ones({3, 3, 4, 3}), x(), 2, "same"); }},
      {"depthwise_conv2d", "depthwise_kernel", [] { K::depthwise_conv2d(image(), K::ones({3, 3})); }},
      {"separable_conv2d", "pointwise_kernel", [] { K::separable_conv2d(image(), K::ones({3, 3, 3, 1}), K::ones({3, 3, 3, 4})); }},
      {"bias_add", "", [] { K::bias_add(x(), {1, 2}); }},
      {"local_conv1d", "kernel", [] { K::local_conv1d(steps(), K::ones({6, 2}), 2, 1); }},
      {"temporal_padding", "padding", [] { K::temporal_padding(steps(), {1, 2, 3}); }},
      // shapes
      {"reshape", "shape", [] { K::reshape(x(), {4, 2}); }},
      {"reshape", "shape", [] { K::reshape(x(), {-1, -1}); }},
      {"reshape", "shape", [] { K::reshape(x(), x()); }},
      {"reshape", "shape", [] { K::reshape(x(), None); }},
      {"zeros", "shape", [] { K::zeros({2, -3}); }},
      {"eye", "size", [] { K::eye({2, -3}); }},
      {"eye", "size", [] { K::eye({1, 2, 3}); }},
      {"placeholder", "shape", [] { K::placeholder({-1, 3}); }},
      {"placeholder", "ndim", [] { K::placeholder(None, 1.5); }},
      {"constant", "value", [] { K::constant({1, 2, 3}, None, {2, 2}); }},
      {"tile", "n", [] { K::tile(x(), {2, 2, 2}); }},
      {"permute_dimensions", "pattern", [] { K::permute_dimensions(x(), {0, 2}); }},
      {"permute_dimensions", "pattern", [] { K::permute_dimensions(x(), {0, 1, 2}); }},
      {"squeeze", "axis", [] { K::squeeze(x(), 0); }},
      {"sum", "axis", [] { K::sum(x(), 2); }},
      {"argmax", "axis", [] { K::argmax(x(), {0, 1}); }},
      {"reverse", "axes", [] { K::reverse(x(), None); }},
      {"repeat_elements", "rep", [] { K::repeat_elements(x(), 0, 1); }},
      {"concatenate", "tensors", [] { K::concatenate({}); }},
      {"concatenate", "", [] { K::concatenate({x(), K::ones({3, 2})}, 0); }},
      {"stack", "x", [] { K::stack({}); }},
      {"gather", "indices", [] { K::gather(x(), K::constant({0.5})); }},
      {"gather", "indices", [] { K::gather(ints(), x()); }}, // swapped
      {"one_hot", "indices", [] { K::one_hot(x(), 3); }},
      {"one_hot", "num_classes", [] { K::one_hot(ints(), -1); }},
      {"arange", "step", [] { K::arange(0, 5, 0); }},
      {"dot", "", [] { K::dot(x(), x()); }},
      {"batch_dot", "axes", [] { K::batch_dot(steps(), steps(), {1, 2, 2}); }},
      // random draws
      {"random_normal", "shape", [] { K::random_normal(x()); }},
      {"random_normal", "dtype", [] { K::random_normal({2}, 0, 1, "int32"); }},
      {"random_normal", "seed", [] { K::random_normal({2}, 0, 1, None, 0.5); }},
      {"random_uniform", "maxval", [] { K::random_uniform({2}, 0, 0.5, "int32"); }},
      {"dropout", "level", [] { K::dropout(x(), 1.5); }},
      {"dropout", "noise_shape", [] { K::dropout(x(), 0.5, {3, 3}); }},
      {"set_random_seed", "seed", [] { K::set_random_seed(0.5); }},
      // variables, functions, gradients
      {"update", "x", [] { K::update(x() * 1, 1); }},
      {"update", "new_x", [] { K::update(K::variable(1.0), Tensor()); }},
      {"update", "", [] { K::update(K::variable({1.0, 2.0}, None, "w"), {1, 2, 3}); }},
      {"update_add", "x", [] { K::update_add(K::variable(true, "bool"), true); }},
      {"set_value", "x", [] { K::set_value(K::constant(1.0), 2); }},
      {"set_value", "", [] { K::set_value(K::variable({1.0, 2.0}, None, "w"), 1); }},
      {"moving_average_update", "momentum", [] { K::moving_average_update(K::variable(1.0), 2.0, {0.5, 0.5}); }},
      {"gradients", "loss", [] { K::gradients(ints(), {K::variable(1.0)}); }},
      {"gradients", "variable 1", [] { K::gradients(K::variable(1.0) * 2, {K::variable(1.0), K::constant(1.0)}); }},
      {"gradients", "variable 0", [] { K::gradients(K::variable(1.0) * 2, {Tensor()}); }},
      {"function", "input 0", [] { K::function({K::constant(1.0)}, {K::constant(1.0)}); }},
      {"function", "outputs", [] { K::function({K::placeholder({2})}, {Tensor()}); }},
      {"function", "input 1", [] { Tensor p = K::placeholder({2}), q = K::placeholder({None, 3}, None, None, false, "rows"); K::function({p, q}, {p, q})({{1, 2}, {3, 4}}); }},
      {"function", "update 0", [] { Tensor p = K::placeholder({2}); K::function({p}, {p}, {{p, p}}); }},
      {"set_learning_phase", "value", [] { K::set_learning_phase(2); }},
      {"in_train_phase", "training", [] { K::in_train_phase(x(), x(), {1, 0}); }},
      {"switch_", "condition", [] { K::switch_(K::ones({2, 3, 4}), x(), x()); }},
      {"switch_", "", [] { K::switch_(true, x(), K::ones({3, 2})); }},
      // loops
      {"rnn", "inputs", [] { K::rnn(step, {x()}, {x()}); }},
      {"rnn", "inputs", [] { K::rnn(step, {}, {x()}); }},
      {"rnn", "initial_states", [] { K::rnn(step, {steps()}, {Tensor()}); }},
      {"rnn", "", [] { K::rnn(step, {steps()}, {x()}, false, K::ones({4, 2})); }},
      {"rnn", "input_length", [] { K::rnn(step, {steps()}, {x()}, false, None, None, false, 7); }},
      {"foldl", "elems", [] { K::foldl([](const Tensor& a, const Tensor& b) { return a + b; }, 1.0); }},
      {"foldl", "elems", [] { K::foldl([](const Tensor& a, const Tensor& b) { return a + b; }, K::zeros({0})); }},
      {"map_fn", "elems", [] { K::map_fn([](const Tensor& t) { return t; }, {}); }},
      // losses
      {"ctc_batch_cost", "y_pred", [] { K::ctc_batch_cost(ints(), ints(), {{1}}, {{1}}); }},
      {"ctc_batch_cost", "y_pred", [] { K::ctc_batch_cost(K::ones({2, 2}), x(), {{1}, {1}}, {{1}, {1}}); }},
      {"ctc_batch_cost", "input_length", [] { K::ctc_batch_cost(K::ones({2, 2}), steps(), {1, 1}, {{1}, {1}}); }},
      {"ctc_batch_cost", "input_length", [] { K::ctc_batch_cost(K::ones({2, 2}), steps(), {{9}, {1}}, {{1}, {1}}); }},
      {"ctc_batch_cost", "label_length", [] { K::ctc_batch_cost(K::ones({2, 2}), steps(), {{4}, {4}}, {{-1}, {1}}); }},
      {"ctc_decode", "top_paths", [] { K::ctc_decode(steps(), {4, 4}, false, 2, 3); }},
      {"ctc_label_dense_to_sparse", "label_lengths", [] { K::ctc_label_dense_to_sparse(K::ones({2, 2}), {{1}, {1}}); }},
      {"in_top_k", "targets", [] { K::in_top_k(x(), K::constant({0.5, 0.5}), 1); }},
      {"categorical_crossentropy", "axis", [] { K::categorical_crossentropy(x(), x(), false, 2); }},
      {"sparse_categorical_crossentropy", "target", [] { K::sparse_categorical_crossentropy({9, 0}, x()); }},
      {"batch_normalization", "", [] { K::batch_normalization(x(), {1, 2}, {1, 1, 1}, None, None); }},
      {"normalize_batch_in_training", "", [] { K::normalize_batch_in_training(x(), {1, 2}, {1, 1, 1}, {0}); }},
      // arguments that an op inside of the function sees first
      {"sqrt", "x", [] { K::sqrt(Tensor()); }},
      {"exp", "x", [] { K::exp(K::to_sparse(x())); }},
      {"pow", "a", [] { K::pow(x(), Tensor()); }},
      {"maximum", "y", [] { K::maximum(x(), None); }},
      {"equal", "x", [] { K::equal(None, x()); }},
      {"gather", "indices", [] { K::gather(x(), Tensor()); }},
      {"one_hot", "indices", [] { K::one_hot(Tensor(), 3); }},
      {"ndim", "x", [] { K::ndim(Tensor()); }},
      {"dtype", "x", [] { K::dtype(Tensor()); }},
      {"get_variable_shape", "x", [] { K::get_variable_shape(Tensor()); }},
      {"plot", "y", [] { plot(Tensor()); }},
      {"categorical_crossentropy", "target", [] { K::categorical_crossentropy(K::to_sparse(x()), x()); }},
      {"ctc_decode", "y_pred", [] { K::ctc_decode(K::to_sparse(steps()), {4, 4}); }},
      {"reverse", "axes", [] { K::reverse(x(), {0, 0}); }},
      {"reverse", "axes", [] { K::reverse(x(), 3); }},
      {"normalize_batch_in_training", "reduction_axes", [] { K::normalize_batch_in_training(x(), None, None, 4); }},
      {"normalize_batch_in_training", "reduction_axes", [] { K::normalize_batch_in_training(x(), None, None, {0, 0}); }},
      {"batch_dot", "axes", [] { K::batch_dot(x(), x(), {1, 3}); }},
      {"batch_dot", "axes", [] { K::batch_dot(x(), x(), {0, 1}); }},
      {"zeros", "shape", [] { K::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}); }},
      {"tile", "n", [] { K::tile(x(), {1, 1, 1, 1, 1, 1, 1, 1, 1}); }},
      {"placeholder", "shape", [] { K::placeholder({1, 1, 1, 1, 1, 1, 1, 1, 1}); }},
      {"placeholder", "ndim", [] { K::placeholder(None, -1); }},
      {"sum", "axis", [] { K::sum(x(), {0, 1, 2, 3, 4, 5, 6, 7, 8}); }},
      {"random_uniform", "maxval", [] { K::random_uniform({2}, 0, INFINITY); }},
      {"random_uniform_variable", "high", [] { K::random_uniform_variable({2}, 0, 0.5, "int32"); }},
      {"random_normal", "mean", [] { K::random_normal({2}, K::ones({3})); }},
      {"arange", "start", [] { K::arange(x()); }},
      {"arange", "stop", [] { K::arange(0, NAN); }},
      {"slice", "start", [] { K::slice(x(), {-1, 0}, {1, 1}); }},
      {"slice", "size", [] { K::slice(x(), {0, 0}, {1, -2}); }},
      {"sparse_coo", "indices", [] { K::sparse_coo({{0, 0}, {5, 1}}, {1, 2}, {2, 2}); }},
      {"sparse_csr", "columns", [] { K::sparse_csr({0, 1, 2}, {0, 2}, {1, 2}, {2, 2}); }},
      {"map_fn", "elems", [] { K::map_fn([](const Tensors& t) { return t[0]; }, {K::ones({2}), K::ones({5})}); }},
      {"moving_average_update", "x", [] { K::moving_average_update(K::constant(1.0), 2.0, 0.5); }},
      {"constraint_of", "variable", [] { constraint_of(ints()); }},
      {"separable_conv2d", "", [] { K::separable_conv2d(image(), K::ones({3, 3, 3, 1}), K::ones({1, 1, 5, 4})); }},
      {"switch_", "", [] { K::switch_(K::ones({3}), x(), x()); }},
      {"batch_normalization", "", [] { K::batch_normalization(x(), {1, 2, 3}, {1, 2, 3, 4}, None, None); }},
      // the item of a list
      {"concatenate", "tensor 1", [] { K::concatenate({x(), Tensor()}); }},
      {"stack", "tensor 1", [] { K::stack({x(), Tensor()}); }},
      {"stop_gradient", "variable 2", [] { K::stop_gradient({x(), x(), Tensor()}); }},
      {"batch_get_value", "op 1", [] { K::batch_get_value({K::variable(1.0), Tensor()}); }},
      {"batch_set_value", "variable 1", [] { K::batch_set_value({{K::variable(1.0), 1}, {ints(), 1}}); }},
      {"batch_set_value", "pair 1", [] { K::batch_set_value({{K::variable(1.0), 1}, {K::variable({1.0, 2.0}), 1}}); }},
      {"function", "update 0", [] { Tensor p = K::placeholder({2}); K::function({p}, {p}, {{K::variable(1.0), p}}); }},
      // sparse tensors, files, tools, ranks
      {"sparse_coo", "indices", [] { K::sparse_coo(K::constant({{0.5, 0.0}}), {1}, {2, 2}); }},
      {"sparse_coo", "dense_shape", [] { K::sparse_coo({{0, 0}}, {1}, {2, -2}); }},
      {"sparse_csr", "row_starts", [] { K::sparse_csr({0, 2, 1}, {0, 1}, {1, 2}, {2, 2}); }},
      {"sparse_parts", "x", [] { K::sparse_parts(x()); }},
      {"load_csv", "path", [] { load_csv(None); }},
      {"load_npz", "path", [] { load_npz(None); }},
      {"load_npy", "path", [] { load_npy(""); }},
      {"set_print_options", "precision", [] { set_print_options({.precision = -1}); }},
      {"save_csv", "x", [] { save_csv("/no/file.csv", image()); }},
      {"save_png", "x", [] { save_png("/no/file.png", K::ones({2, 3}, "int32")); }},
      {"save_npy", "x", [] { save_npy("/no/file.npy", Tensor()); }},
      {"NamedTensors", "", [] { save_safetensors("/no/file", {{"w", Tensor()}}); }},
      {"describe", "x", [] { describe(Tensor()); }},
      {"plot", "y", [] { plot(K::ones({2, 3, 4})); }},
      {"hist", "options", [] { hist({1, 2}, {.bins = -1}); }},
      {"timeit", "options", [] { timeit([] { return x(); }, {.runs = -1}); }},
      {"Random", "seed", [] { testing::Random random(0.5); }},
      {"compare_golden", "name", [] { testing::compare_golden("", 1.0); }},
      {"send", "to", [] { D::send(x(), 1); }},
      {"broadcast", "root", [] { D::broadcast(x(), 3); }},
      {"shard", "x", [] { D::shard(K::constant(1.0)); }},
      {"split", "colour", [] { D::init().split(-1); }},
      {"set_timeout", "seconds", [] { D::set_timeout(-1); }},
      // an empty Tensor, to functions that no other row calls
      {"abs", "x", [] { K::abs(Tensor()); }},
      {"batch_flatten", "x", [] { K::batch_flatten(Tensor()); }},
      {"cast", "x", [] { K::cast(Tensor(), "int32"); }},
      {"cast_to_floatx", "x", [] { K::cast_to_floatx(Tensor()); }},
      {"cos", "x", [] { K::cos(Tensor()); }},
      {"count_params", "x", [] { K::count_params(Tensor()); }},
      {"elu", "x", [] { K::elu(Tensor()); }},
      {"equal", "y", [] { K::equal(x(), Tensor()); }},
      {"eval", "x", [] { K::eval(Tensor()); }},
      {"flatten", "x", [] { K::flatten(Tensor()); }},
      {"get_value", "x", [] { K::get_value(Tensor()); }},
      {"greater", "x", [] { K::greater(Tensor(), x()); }},
      {"greater_equal", "y", [] { K::greater_equal(x(), Tensor()); }},
      {"hard_sigmoid", "x", [] { K::hard_sigmoid(Tensor()); }},
      {"identity", "x", [] { K::identity(Tensor()); }},
      {"int_shape", "x", [] { K::int_shape(Tensor()); }},
      {"less", "y", [] { K::less(x(), Tensor()); }},
      {"less_equal", "x", [] { K::less_equal(Tensor(), x()); }},
      {"log", "x", [] { K::log(Tensor()); }},
      {"log1p", "x", [] { K::log1p(Tensor()); }},
      {"minimum", "x", [] { K::minimum(Tensor(), x()); }},
      {"not_equal", "y", [] { K::not_equal(x(), Tensor()); }},
      {"ones_like", "x", [] { K::ones_like(Tensor()); }},
      {"print_tensor", "x", [] { K::print_tensor(Tensor()); }},
      {"relu", "x", [] { K::relu(Tensor()); }},
      {"shape", "x", [] { K::shape(Tensor()); }},
      {"sigmoid", "x", [] { K::sigmoid(Tensor()); }},
      {"sign", "x", [] { K::sign(Tensor()); }},
      {"sin", "x", [] { K::sin(Tensor()); }},
      {"size", "x", [] { K::size(Tensor()); }},
      {"softplus", "x", [] { K::softplus(Tensor()); }},
      {"softsign", "x", [] { K::softsign(Tensor()); }},
      {"square", "x", [] { K::square(Tensor()); }},
      {"stop_gradient", "variables", [] { K::stop_gradient(Tensor()); }},
      {"tanh", "x", [] { K::tanh(Tensor()); }},
      {"to_dense", "tensor", [] { K::to_dense(Tensor()); }},
      {"to_sparse", "x", [] { K::to_sparse(Tensor()); }},
      {"transpose", "x", [] { K::transpose(Tensor()); }},
      {"zeros_like", "x", [] { K::zeros_like(Tensor()); }},
      {"mark_keras_tensor", "x", [] { K::mark_keras_tensor(Tensor()); }},
      {"batch_set_value", "value 0", [] { K::batch_set_value({K::variable(1.0)}, {Tensor()}); }},
      // axes and sizes, likewise
      {"all", "axis", [] { K::all(x(), 2); }},
      {"any", "axis", [] { K::any(x(), {0, 0}); }},
      {"argmin", "axis", [] { K::argmin(x(), -3); }},
      {"cumprod", "axis", [] { K::cumprod(x(), 2); }},
      {"cumsum", "axis", [] { K::cumsum(x(), -3); }},
      {"expand_dims", "axis", [] { K::expand_dims(x(), 3); }},
      {"l2_normalize", "axis", [] { K::l2_normalize(x(), 2); }},
      {"logsumexp", "axis", [] { K::logsumexp(x(), 2); }},
      {"max", "axis", [] { K::max(x(), 2); }},
      {"mean", "axis", [] { K::mean(x(), {1, -1}); }},
      {"min", "axis", [] { K::min(x(), 2); }},
      {"nanmean", "axis", [] { K::nanmean(x(), 2); }},
      {"prod", "axis", [] { K::prod(x(), 2); }},
      {"softmax", "axis", [] { K::softmax(x(), 2); }},
      {"std", "axis", [] { K::std(x(), 2); }},
      {"var", "axis", [] { K::var(x(), 2); }},
      {"ones", "shape", [] { K::ones({2, -3}); }},
      {"repeat", "n", [] { K::repeat(x(), 0); }},
      // the others
      {"binary_crossentropy", "target", [] { K::binary_crossentropy({{1, 2}, {3}}, x()); }},
      {"conv3d", "kernel", [] { K::conv3d(K::ones({1, 2, 3, 4, 1}), K::ones({2, 2, 1, 1})); }},
      {"conv3d_transpose", "output_shape", [] { K::conv3d_transpose(K::ones({1, 2, 3, 4, 1}), K::ones({2, 2, 2, 1, 1}), {3, 4, 5}); }},
      {"foldr", "elems", [] { K::foldr([](const Tensor& a, const Tensor& b) { return a + b; }, 1.0); }},
      {"in_test_phase", "training", [] { K::in_test_phase(x(), x(), .5); }},
      {"local_conv2d", "kernel", [] { K::local_conv2d(image(), K::ones({6, 2}), {2, 2}, {1, 1}, {4, 5}); }},
      {"pool3d", "pool_size", [] { K::pool3d(K::ones({1, 2, 3, 4, 1}), {2, 0, 2}); }},
      {"random_binomial", "p", [] { K::random_binomial({2}, {{1, 2}, {3}}); }},
      {"random_normal_variable", "shape", [] { K::random_normal_variable({2, -3}, 0, 1); }},
      {"separable_conv1d", "pointwise_kernel", [] { K::separable_conv1d(steps(), K::ones({2, 3, 1}), {{1, 2}, {3}}); }},
      {"spatial_3d_padding", "padding", [] { K::spatial_3d_padding(K::ones({1, 2, 3, 4, 1}), {1, 1}); }},
      {"truncated_normal", "stddev", [] { K::truncated_normal({2}, 0, {{1, 2}, {3}}); }},
      {"update_sub", "decrement", [] { K::update_sub(K::variable(1.0), {{1, 2}, {3}}); }},
      // clang-format on
  };
  return all;
}

struct Excused {
  const char *name, *why;
};
constexpr Excused kExcused[] = {
    {"backend", "no argument"},
    {"epsilon", "no argument"},
    {"floatx", "no argument"},
    {"image_data_format", "no argument"},
    {"learning_phase", "no argument"},
    {"clear_session", "no argument"},
    {"reload", "no argument"},
    {"reset_uids", "no argument"},
    {"manual_variable_initialization", "both values are right"},
    {"set_epsilon", "every number is right"},
    {"get_uid", "every prefix is right"},
    {"is_tensor", "says of everything whether it is one"},
    {"is_keras_tensor", "says of everything whether it is one"},
    {"is_placeholder", "says of everything whether it is one"},
    {"is_variable", "says of everything whether it is one"},
    {"is_sparse", "says of everything whether it is one"},
};

}  // namespace

TEST_CASE("a wrong call is refused in one line that names the function and the argument at fault", "[sweep][bad]") {
  for (const WrongCall& call : wrong_calls()) {
    std::string message = "no error", function, argument;
    try {
      call.run();
    } catch (const Error& e) {
      message = e.what();
      function = e.function();
      argument = e.argument();
      // A part that is missing from the structure would be glued to another.
      for (std::string part : {e.given(), e.expected(), e.remedy()}) {
        INFO(part);
        CHECK(part.find("; ") == std::string::npos);
      }
    }
    INFO(message);
    CHECK(function == call.function);
    CHECK(argument == call.argument);
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.find(std::string(call.function) + ": " + call.argument) == 0);
  }
}

TEST_CASE("every K function is called with an argument at fault, or is excused with a reason", "[sweep][bad]") {
  const std::multimap<std::string, Strings> declared = parameters();
  std::set<std::string> called, excused;
  for (const WrongCall& call : wrong_calls()) {
    const std::string argument = call.argument;
    if (argument.empty()) continue;
    called.insert(call.function);
    const auto [from, to] = declared.equal_range(call.function);
    bool is = from == to || argument.find(' ') != std::string::npos;  // declared elsewhere; an item of a list
    for (auto at = from; at != to; ++at) is = is || std::count(at->second.begin(), at->second.end(), argument) > 0;
    if (!is) FAIL_CHECK(call.function << " has no parameter " << argument);
  }
  for (const Excused& e : kExcused) {
    excused.insert(e.name);
    if (called.count(e.name)) FAIL_CHECK("K::" << e.name << " is excused, and is called");
  }
  const std::set<std::string> functions = declared_functions();
  CHECK(functions.size() > 60);
  for (const std::string& name : functions)
    if (!called.count(name) && !excused.count(name))
      FAIL_CHECK("no call of K::" << name << " has an argument at fault: give it a row");
  for (const std::string& name : excused)
    if (!functions.count(name)) FAIL_CHECK("K::" << name << " is excused, and no header of nn_backend declares it");
}

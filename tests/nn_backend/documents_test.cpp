// tests/nn_backend/documents_test.cpp - every example of the five documents, line by line, with the output that the
// page prints. The Keras objects in them (Input, Dense) have only what the examples need. Their NumPy code is in
// reference_test.
#include <kassette/backend.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/nn_backend/page.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::shows;

namespace {

/// np.random.random(shape)
Tensor np_random(const kassette::Dims& shape) { return K::random_uniform(shape, 0.0, 1.0, "float64"); }
/// np.array([[1, 2], [3, 4]])
Tensor np_array() { return K::constant({{1, 2}, {3, 4}}, "int64"); }

/// Restores the settings that an example changes, and resets the counters.
struct Settings : kassette::test::SettingsScope {
  ~Settings() { K::clear_session(); }
};

Tensor Input(const std::vector<int>& shape) { return K::mark_keras_tensor(K::placeholder({K::None, shape.at(0)})); }
class Dense {
 public:
  explicit Dense(int units) : units_(units) {
    std::int64_t uid = K::get_uid("dense") - 1;  // dense, dense_1, dense_2
    name = uid == 0 ? "dense" : "dense_" + std::to_string(uid);
  }
  Tensor operator()(const Tensor& x) {
    if (!kernel_.defined()) kernel_ = K::random_normal_variable({K::int_shape(x)[-1], units_}, 0, 0.05);
    return K::mark_keras_tensor(K::dot(x, kernel_));
  }
  std::string name;

 private:
  int units_;
  Tensor kernel_;
};

}  // namespace

TEST_CASE("documents: writing new code", "[documents]") {
  Tensor inputs = K::placeholder({2, 4, 5});
  CHECK(shows(K::int_shape(inputs), "(2, 4, 5)"));
  inputs = K::placeholder({K::None, 4, 5});  // also works
  CHECK(shows(K::int_shape(inputs), "(None, 4, 5)"));
  inputs = K::placeholder(K::None, 3);  // also works
  CHECK(shows(K::int_shape(inputs), "(None, None, None)"));

  Tensor val = np_random({3, 4, 5});
  Tensor var = K::variable(val);
  CHECK(K::is_variable(var));
  CHECK(shows(K::int_shape(var), "(3, 4, 5)"));
  var = K::zeros({3, 4, 5});
  CHECK(K::sum(K::abs(var)).item<double>() == 0);
  var = K::ones({3, 4, 5});
  CHECK(K::min(var).item<double>() == 1);

  Tensor b = K::random_uniform_variable({3, 4}, 0, 1);  // Uniform distribution
  Tensor c = K::random_normal_variable({3, 4}, 0, 1);   // Gaussian distribution
  Tensor d = K::random_normal_variable({3, 4}, 0, 1);
  Tensor a = b + c * K::abs(d);
  CHECK(shows(K::int_shape(a), "(3, 4)"));
  c = K::dot(a, K::transpose(b));
  CHECK(shows(K::int_shape(c), "(3, 3)"));
  a = K::sum(b, 1);
  CHECK(shows(K::int_shape(a), "(3,)"));
  a = K::softmax(b);
  CHECK(K::sum(a).item<double>() == Approx(3));
  a = K::concatenate({b, c}, -1);
  CHECK(shows(K::int_shape(a), "(3, 7)"));
}

TEST_CASE("documents: backend, epsilon and set_epsilon", "[documents]") {
  Settings restore;
  CHECK(shows(K::backend(), "'tensorflow'"));
  CHECK(shows(K::epsilon(), "1e-07"));
  K::set_epsilon(1e-05);
  CHECK(shows(K::epsilon(), "1e-05"));
}

TEST_CASE("documents: floatx, set_floatx and cast_to_floatx", "[documents]") {
  Settings restore;
  CHECK(shows(K::floatx(), "'float32'"));
  Tensor arr = K::constant({1.0, 2.0}, "float64");
  CHECK(shows(arr.dtype(), "'float64'"));
  Tensor new_arr = K::cast_to_floatx(arr);
  CHECK(shows(new_arr, "array([ 1.,  2.], dtype=float32)"));
  CHECK(shows(new_arr.dtype(), "'float32'"));
  K::set_floatx("float16");
  CHECK(shows(K::floatx(), "'float16'"));
}

TEST_CASE("documents: image_data_format and set_image_data_format", "[documents]") {
  Settings restore;
  K::set_image_data_format("channels_first");  // what the page's keras.json says
  CHECK(shows(K::image_data_format(), "'channels_first'"));
  K::set_image_data_format("channels_last");
  CHECK(shows(K::image_data_format(), "'channels_last'"));
}

TEST_CASE("documents: get_uid and clear_session", "[documents]") {
  Settings restore;
  K::reset_uids();
  CHECK(shows(K::get_uid("dense"), "1"));
  CHECK(shows(K::get_uid("dense"), "2"));

  K::clear_session();
  std::vector<Dense> layers;
  for (int i = 0; i < 10; ++i) layers.push_back(Dense(10));
  Dense new_layer(10);
  CHECK(shows(new_layer.name, "dense_10"));
  K::set_learning_phase(1);
  CHECK(K::learning_phase().item<int>() == 1);
  K::clear_session();
  new_layer = Dense(10);
  CHECK(shows(new_layer.name, "dense"));

  // With clear_session() at the beginning memory is constant over time.
  for (int i = 0; i < 100; ++i) {
    K::clear_session();
    std::vector<Dense> model;
    for (int k = 0; k < 10; ++k) model.push_back(Dense(10));
    CHECK(model.back().name == "dense_9");
  }
}

TEST_CASE("documents: variable", "[documents]") {
  Tensor val = np_array();
  Tensor kvar = K::variable(val, "float64", "example_var");
  CHECK(shows(K::dtype(kvar), "'float64'"));
  CHECK(shows(
      kvar,
      "array([[ 1.,  2.],\n       [ 3.,  4.]])"));  // print(kvar) is example_var on the page, where it has no value yet
  CHECK(shows(K::eval(kvar), "array([[ 1.,  2.],\n       [ 3.,  4.]])"));
}

TEST_CASE("documents: variable with a constraint", "[documents]") {
  // constraint: projection function that is applied to the variable after an optimizer update.
  auto non_neg = [](const Tensor& w) {
    return w * K::cast(K::greater_equal(w, 0), K::floatx());
  };  // keras.constraints.NonNeg
  Tensor kvar = K::variable({{1, -2}, {-3, 4}}, "float32", "example_var", non_neg);
  // The constraint is not applied to the initial value.
  CHECK(shows(K::eval(kvar), "array([[ 1., -2.],\n       [-3.,  4.]], dtype=float32)"));
  K::update_sub(kvar, {{3, 0}, {0, 1}});
  CHECK(shows(K::eval(kvar), "array([[-2., -2.],\n       [-3.,  3.]], dtype=float32)"));  // nor by an update
  K::update(kvar, kassette::constraint_of(kvar)(kvar));                                   // what an optimizer does
  CHECK(shows(K::eval(kvar), "array([[-0., -0.],\n       [-0.,  3.]], dtype=float32)"));
}

TEST_CASE("documents: is_sparse and to_dense", "[documents]") {
  Tensor a = K::placeholder({2, 2}, K::None, K::None, /*sparse=*/false);
  CHECK(shows(K::is_sparse(a), "False"));
  Tensor b = K::placeholder({2, 2}, K::None, K::None, /*sparse=*/true);
  CHECK(shows(K::is_sparse(b), "True"));
  Tensor c = K::to_dense(b);
  CHECK(shows(K::is_sparse(c), "False"));
  auto f = K::function({b}, {c});
  CHECK(shows(f({K::sparse_coo({{0, 1}, {1, 0}}, {2, 3}, {2, 2})})[0],
              "array([[ 0.,  2.],\n       [ 3.,  0.]], dtype=float32)"));
}

TEST_CASE("documents: print_tensor", "[documents]") {
  std::vector<std::string> lines;
  kassette::test::PrintsTo caught([&](const char* line) { lines.push_back(line); });
  Tensor x = K::placeholder({2}), without = x;
  x = K::print_tensor(x, "x is: ");
  CHECK(lines.empty());  // prints when it is evaluated
  auto f = K::function({without}, {x * 2});
  CHECK(shows(f({{1, 2}})[0], "array([ 2.,  4.], dtype=float32)"));  // the same tensor, unchanged
  CHECK(lines == std::vector<std::string>{"x is:  [1. 2.]"});
  // which should be used in the following code: otherwise the print operation is not taken into account during
  // evaluation
  K::function({without}, {without * 2})({{1, 2}});
  CHECK(lines.size() == 1);
}

TEST_CASE("documents: is_keras_tensor", "[documents]") {
  Settings restore;
  std::vector<long> np_var{1, 2};
  CHECK_THROWS_AS(K::is_keras_tensor(np_var), kassette::ValueError);  // A numpy array is not a symbolic tensor.
  Tensor k_var = K::placeholder({1, 1});
  CHECK(shows(K::is_keras_tensor(k_var), "False"));
  Tensor keras_var = K::variable(np_var);
  CHECK(shows(K::is_keras_tensor(keras_var), "False"));
  Tensor keras_placeholder = K::placeholder({2, 4, 5});
  CHECK(shows(K::is_keras_tensor(keras_placeholder), "False"));
  CHECK_THROWS_WITH(K::mark_keras_tensor(Tensor()),
                    "mark_keras_tensor: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  Tensor keras_input = Input({10});
  CHECK(shows(K::is_keras_tensor(keras_input), "True"));
  Tensor keras_layer_output = Dense(10)(keras_input);
  CHECK(shows(K::is_keras_tensor(keras_layer_output), "True"));
  CHECK(shows(K::is_keras_tensor(keras_layer_output + 1), "False"));  // no layer made it
  CHECK(shows(K::is_placeholder(keras_input), "True"));
  auto f = K::function({keras_input}, {keras_layer_output});
  CHECK(shows(f({K::ones({3, 10})})[0].shape(), "(3, 10)"));
}

TEST_CASE("documents: placeholder", "[documents]") {
  Tensor input_ph = K::placeholder({2, 4, 5});
  CHECK(shows(input_ph.shape(), "(2, 4, 5)"));  // _keras_shape
  CHECK(shows(input_ph, "<tf.Tensor 'Placeholder_4:0' shape=(2, 4, 5) dtype=float32>"));
}

TEST_CASE("documents: shape, int_shape, ndim and size", "[documents]") {
  Tensor val = np_array();
  Tensor kvar = K::variable(val);
  Tensor inputs = K::placeholder({2, 4, 5});
  CHECK(shows(K::shape(kvar), "<tf.Tensor 'Shape_8:0' shape=(2,) dtype=int32>"));
  CHECK(shows(K::shape(inputs), "<tf.Tensor 'Shape_9:0' shape=(3,) dtype=int32>"));
  CHECK(shows(K::eval(K::shape(kvar)), "array([2, 2], dtype=int32)"));
  CHECK(shows(K::eval(K::shape(inputs)), "array([2, 4, 5], dtype=int32)"));
  CHECK(shows(K::int_shape(inputs), "(2, 4, 5)"));
  CHECK(shows(K::int_shape(kvar), "(2, 2)"));
  CHECK(shows(K::ndim(inputs), "3"));
  CHECK(shows(K::ndim(kvar), "2"));
  CHECK(shows(K::size(kvar), "<tf.Tensor: id=9, shape=(), dtype=int32, numpy=4>"));
}

TEST_CASE("documents: dtype", "[documents]") {
  CHECK(shows(K::dtype(K::placeholder({2, 4, 5})), "'float32'"));
  CHECK(shows(K::dtype(K::placeholder({2, 4, 5}, K::None, "float32")), "'float32'"));
  CHECK(shows(K::dtype(K::placeholder({2, 4, 5}, K::None, "float64")), "'float64'"));
  Tensor kvar = K::variable(np_array());
  CHECK(shows(K::dtype(kvar), "'float32'"));  // the page: 'float32_ref', of reference variables
  kvar = K::variable(np_array(), "float32");
  CHECK(shows(K::dtype(kvar), "'float32'"));
}

TEST_CASE("documents: eval", "[documents]") {
  Tensor kvar = K::variable(np_array(), "float32");
  CHECK(shows(K::eval(kvar), "array([[ 1.,  2.],\n       [ 3.,  4.]], dtype=float32)"));
}

TEST_CASE("documents: zeros, ones and eye", "[documents]") {
  Tensor kvar = K::zeros({3, 4});
  CHECK(shows(
      K::eval(kvar),
      "array([[ 0.,  0.,  0.,  0.],\n       [ 0.,  0.,  0.,  0.],\n       [ 0.,  0.,  0.,  0.]], dtype=float32)"));
  kvar = K::ones({3, 4});
  CHECK(shows(
      K::eval(kvar),
      "array([[ 1.,  1.,  1.,  1.],\n       [ 1.,  1.,  1.,  1.],\n       [ 1.,  1.,  1.,  1.]], dtype=float32)"));
  kvar = K::eye(3);
  CHECK(shows(K::eval(kvar),
              "array([[ 1.,  0.,  0.],\n       [ 0.,  1.,  0.],\n       [ 0.,  0.,  1.]], dtype=float32)"));
  CHECK(shows(K::eval(K::eye({2, 3})), "array([[1., 0., 0.],\n[0., 1., 0.]], dtype=float32)"));
}

TEST_CASE("documents: zeros_like and ones_like", "[documents]") {
  Tensor kvar = K::variable(np_random({2, 3}));
  Tensor kvar_zeros = K::zeros_like(kvar);
  CHECK(shows(K::eval(kvar_zeros), "array([[ 0.,  0.,  0.],\n       [ 0.,  0.,  0.]], dtype=float32)"));
  Tensor kvar_ones = K::ones_like(kvar);
  CHECK(shows(K::eval(kvar_ones), "array([[ 1.,  1.,  1.],\n       [ 1.,  1.,  1.]], dtype=float32)"));
}

TEST_CASE("documents: random_uniform_variable and random_normal_variable", "[documents]") {
  Tensor kvar = K::random_uniform_variable({2, 3}, 0, 1);
  CHECK(K::is_variable(kvar));
  Tensor drawn = K::eval(kvar);
  CHECK(shows(drawn.shape(), "(2, 3)"));
  CHECK(shows(drawn.dtype(), "float32"));
  CHECK(K::min(drawn).item<double>() >= 0);
  CHECK(K::max(drawn).item<double>() < 1);
  kvar = K::random_normal_variable({2, 3}, 0, 1);
  CHECK(K::is_variable(kvar));
  CHECK(shows(K::eval(kvar).shape(), "(2, 3)"));
}

TEST_CASE("documents: count_params", "[documents]") {
  Tensor kvar = K::zeros({2, 3});
  CHECK(shows(K::count_params(kvar), "6"));
  CHECK(shows(K::eval(kvar), "array([[ 0.,  0.,  0.],\n       [ 0.,  0.,  0.]], dtype=float32)"));
}

TEST_CASE("documents: cast", "[documents]") {
  Tensor input = K::placeholder({2, 3}, K::None, "float32");
  CHECK(shows(input, "<tf.Tensor 'Placeholder_2:0' shape=(2, 3) dtype=float32>"));
  // It doesn't work in-place as below.
  CHECK(shows(K::cast(input, "float16"), "<tf.Tensor 'Cast_1:0' shape=(2, 3) dtype=float16>"));
  CHECK(shows(input, "<tf.Tensor 'Placeholder_2:0' shape=(2, 3) dtype=float32>"));
  // you need to assign it.
  input = K::cast(input, "float16");
  CHECK(shows(input, "<tf.Tensor 'Cast_2:0' shape=(2, 3) dtype=float16>"));
}

TEST_CASE("documents: dot", "[documents]") {
  Tensor x = K::placeholder({2, 3});
  Tensor y = K::placeholder({3, 4});
  Tensor xy = K::dot(x, y);
  CHECK(shows(xy, "<tf.Tensor 'MatMul_9:0' shape=(2, 4) dtype=float32>"));
  x = K::placeholder({32, 28, 3});
  y = K::placeholder({3, 4});
  xy = K::dot(x, y);
  CHECK(shows(xy, "<tf.Tensor 'MatMul_9:0' shape=(32, 28, 4) dtype=float32>"));
  // Theano-like behavior example
  x = K::random_uniform_variable({2, 3}, 0, 1);
  y = K::ones({4, 3, 5});
  xy = K::dot(x, y);
  CHECK(shows(K::int_shape(xy), "(2, 4, 5)"));
}

TEST_CASE("documents: batch_dot", "[documents]") {
  Tensor x = K::constant({{1, 2}, {3, 4}}), y = K::constant({{5, 6}, {7, 8}});
  CHECK(shows(K::batch_dot(x, y, 1), "array([[17.], [53.]], dtype=float32)"));
  // the main diagonal of x.dot(y.T)
  Tensor full = K::dot(x, K::transpose(y));
  CHECK(full(0, 0).item<double>() == 17);
  CHECK(full(1, 1).item<double>() == 53);
  // Pseudocode
  Tensors inner_products;
  for (int i = 0; i < 2; ++i) inner_products.push_back(K::dot(x[i], y[i]));
  CHECK(shows(K::stack(inner_products), "array([17., 53.], dtype=float32)"));
  // Shape inference
  CHECK(
      shows(K::int_shape(K::batch_dot(K::placeholder({100, 20}), K::placeholder({100, 30, 20}), {1, 2})), "(100, 30)"));
  Tensor x_batch = K::ones({32, 20, 1});
  Tensor y_batch = K::ones({32, 30, 20});
  Tensor xy_batch_dot = K::batch_dot(x_batch, y_batch, {1, 2});
  CHECK(shows(K::int_shape(xy_batch_dot), "(32, 1, 30)"));
}

TEST_CASE("documents: transpose", "[documents]") {
  Tensor var = K::variable({{1, 2, 3}, {4, 5, 6}});
  CHECK(shows(K::eval(var), "array([[ 1.,  2.,  3.],\n       [ 4.,  5.,  6.]], dtype=float32)"));
  Tensor var_transposed = K::transpose(var);
  CHECK(shows(K::eval(var_transposed), "array([[ 1.,  4.],\n       [ 2.,  5.],\n       [ 3.,  6.]], dtype=float32)"));
  Tensor inputs = K::placeholder({2, 3});
  CHECK(shows(inputs, "<tf.Tensor 'Placeholder_11:0' shape=(2, 3) dtype=float32>"));
  Tensor input_transposed = K::transpose(inputs);
  CHECK(shows(input_transposed, "<tf.Tensor 'transpose_4:0' shape=(3, 2) dtype=float32>"));
}

TEST_CASE("documents: a slice is what NumPy's slice is", "[documents]") {
  // new_x = x[start[0]: start[0] + size[0], ..., start[-1]: start[-1] + size[-1]]
  Tensor x = K::reshape(K::arange(24), {2, 3, 4});
  Tensor new_x = K::slice(x, {0, 1, 2}, {2, 2, 1}),
         by_index = x(kassette::slice(0, 2), kassette::slice(1, 3), kassette::slice(2, 3));
  CHECK(K::all(K::equal(new_x, by_index)).item<bool>());
  CHECK(shows(new_x.shape(), "(2, 2, 1)"));
}

TEST_CASE("documents: what the prose says of shapes", "[documents]") {
  Tensor x = K::placeholder({3, 4, 5});
  CHECK(shows(K::int_shape(K::repeat_elements(x, 2, 1)), "(3, 8, 5)"));           // (s1, s2 * rep, s3)
  CHECK(shows(K::int_shape(K::repeat(K::placeholder({7, 4}), 2)), "(7, 2, 4)"));  // (samples, n, dim)
  CHECK(shows(K::int_shape(K::dot(K::placeholder({2, 3}), K::placeholder({4, 3, 5}))), "(2, 4, 5)"));
  // (batch_size, dim1, ..., num_classes)
  CHECK(shows(K::int_shape(K::one_hot(K::placeholder({7, 2}, K::None, "int32"), 5)), "(7, 2, 5)"));
  CHECK(shows(K::int_shape(K::batch_flatten(x)), "(3, 20)"));
  CHECK(shows(K::int_shape(K::sum(x, 1)), "(3, 5)"));
  CHECK(shows(K::int_shape(K::sum(x, 1, true)), "(3, 1, 5)"));
}

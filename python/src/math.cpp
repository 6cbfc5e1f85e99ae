// python/src/math.cpp - K functions of one op or few: creation, arithmetic, reductions, shapes.
#include "convert.h"

namespace kassette {
namespace python {
namespace {

using nb::arg;
using Unary = Tensor (*)(const Operand&);
using Binary = Tensor (*)(const Operand&, const Operand&);
using Reduction = Tensor (*)(const Operand&, const Axes&, bool);

void unary(nb::module_& m, const char* name, Unary f, const char* x_name = "x") {
  m.def(
      name,
      [f](const Value& x) {
        Recorded on;
        return f(x.operand());
      },
      arg(x_name).none());
}
void binary(nb::module_& m, const char* name, Binary f, const char* x_name = "x", const char* y_name = "y") {
  m.def(
      name,
      [f](Value& x, Value& y) {
        match({&x, &y});
        Recorded on;
        return f(x.operand(), y.operand());
      },
      arg(x_name).none(), arg(y_name).none());
}
void reduction(nb::module_& m, const char* name, Reduction f) {
  m.def(
      name,
      [f, what = std::string(name) + ": axis"](const Value& x, nb::handle axis, bool keepdims) {
        Recorded on;
        return f(x.operand(), to_axes(axis, what.c_str()), keepdims);
      },
      arg("x").none(), arg("axis").none() = nb::none(), arg("keepdims") = false);
}

}  // namespace

// clang-format off
void bind_math(nb::module_& m) {
  unary(m, "square", &K::square), unary(m, "abs", &K::abs), unary(m, "sqrt", &K::sqrt), unary(m, "exp", &K::exp), unary(m, "log", &K::log);
  unary(m, "round", &K::round), unary(m, "sign", &K::sign), unary(m, "sin", &K::sin), unary(m, "cos", &K::cos);
  unary(m, "transpose", &K::transpose), unary(m, "flatten", &K::flatten), unary(m, "batch_flatten", &K::batch_flatten);
  unary(m, "softplus", &K::softplus), unary(m, "softsign", &K::softsign), unary(m, "sigmoid", &K::sigmoid);
  unary(m, "hard_sigmoid", &K::hard_sigmoid), unary(m, "tanh", &K::tanh), unary(m, "to_dense", &K::to_dense, "tensor");
  binary(m, "dot", &K::dot), binary(m, "pow", &K::pow, "x", "a"), binary(m, "maximum", &K::maximum), binary(m, "minimum", &K::minimum);
  binary(m, "equal", &K::equal), binary(m, "not_equal", &K::not_equal), binary(m, "greater", &K::greater);
  binary(m, "greater_equal", &K::greater_equal), binary(m, "less", &K::less), binary(m, "less_equal", &K::less_equal);
  reduction(m, "sum", &K::sum), reduction(m, "max", &K::max), reduction(m, "min", &K::min), reduction(m, "mean", &K::mean);
  reduction(m, "prod", &K::prod), reduction(m, "var", &K::var), reduction(m, "std", &K::std), reduction(m, "any", &K::any);
  reduction(m, "all", &K::all), reduction(m, "logsumexp", &K::logsumexp);

  m.def("argmax", [](const Value& x, nb::handle axis) { Recorded on; return K::argmax(x.operand(), to_axes(axis, "argmax: axis")); },
        arg("x").none(), arg("axis").none() = -1);
  m.def("argmin", [](const Value& x, nb::handle axis) { Recorded on; return K::argmin(x.operand(), to_axes(axis, "argmin: axis")); },
        arg("x").none(), arg("axis").none() = -1);
  m.def("cumsum", [](const Value& x, const Integer& axis) { Recorded on; return K::cumsum(x.operand(), axis); }, arg("x").none(), arg("axis") = 0);
  m.def("cumprod", [](const Value& x, const Integer& axis) { Recorded on; return K::cumprod(x.operand(), axis); }, arg("x").none(), arg("axis") = 0);
  m.def("clip", [](Value& x, Value& low, Value& high) {
    match({&x, &low, &high});
    Recorded on;
    return K::clip(x.operand(), low.operand(), high.operand());
  }, arg("x").none(), arg("min_value").none(), arg("max_value").none());
  m.def("batch_dot", [](Value& x, Value& y, nb::handle axes) {
    match({&x, &y});
    Recorded on;
    return K::batch_dot(x.operand(), y.operand(), to_axes(axes, "batch_dot: axes"));
  }, arg("x").none(), arg("y").none(), arg("axes").none() = nb::none());

  m.def("constant", [](const Value& value, DType dtype, const Sizes& shape, const Label& name) {
    return named(K::constant(value.operand(), dtype, shape.dims(), name.name()), name);
  }, arg("value").none(), arg("dtype").none() = nb::none(), arg("shape").none() = nb::none(), arg("name").none() = nb::none());
  m.def("variable", [](const Value& value, DType dtype, const Label& name) {
    // An initialiser's tensor is recorded: the variable starts with the value that it has now.
    if (value.tensor() && value.tensor()->symbolic()) return K::variable(K::eval(*value.tensor()), dtype, name.name());
    return K::variable(value.operand(), dtype, name.name());
  }, arg("value").none(), arg("dtype").none() = nb::none(), arg("name").none() = nb::none());
  m.def("placeholder", [](const Sizes& shape, nb::handle ndim, DType dtype, bool sparse, const Label& name) {
    return K::placeholder(shape.dims(), to_scalar(ndim, "placeholder: ndim"), dtype, sparse, name.name());
  }, arg("shape").none() = nb::none(), arg("ndim").none() = nb::none(), arg("dtype").none() = nb::none(), arg("sparse") = false,
        arg("name").none() = nb::none());
  m.def("zeros", [](const Sizes& shape, DType dtype, const Label& name) { Recorded on; return named(K::zeros(shape.dims(), dtype, name.name()), name); },
        arg("shape"), arg("dtype").none() = nb::none(), arg("name").none() = nb::none());
  m.def("ones", [](const Sizes& shape, DType dtype, const Label& name) { Recorded on; return named(K::ones(shape.dims(), dtype, name.name()), name); },
        arg("shape"), arg("dtype").none() = nb::none(), arg("name").none() = nb::none());
  m.def("eye", [](const Sizes& size, DType dtype, const Label& name) { return named(K::eye(size.dims(), dtype, name.name()), name); }, arg("size"),
        arg("dtype").none() = nb::none(), arg("name").none() = nb::none());
  m.def("zeros_like", [](const Value& x, DType dtype, const Label& name) { Recorded on; return named(K::zeros_like(x.operand(), dtype, name.name()), name); },
        arg("x"), arg("dtype").none() = nb::none(), arg("name").none() = nb::none());
  m.def("ones_like", [](const Value& x, DType dtype, const Label& name) { Recorded on; return named(K::ones_like(x.operand(), dtype, name.name()), name); },
        arg("x"), arg("dtype").none() = nb::none(), arg("name").none() = nb::none());
  m.def("identity", [](const Value& x, const Label& name) { Recorded on; return named(K::identity(x.operand(), name.name()), name); }, arg("x"),
        arg("name").none() = nb::none());
  m.def("arange", [](const Value& start, const Value& stop, const Value& step, DType dtype) {
    Recorded on;
    return K::arange(start.operand(), stop.operand(), step.operand(), dtype);
  }, arg("start"), arg("stop").none() = nb::none(), arg("step") = 1, arg("dtype").none() = "int32");
  m.def("cast", [](const Value& x, DType dtype) { Recorded on; return K::cast(x.operand(), dtype); }, arg("x"), arg("dtype"));
  m.def("shape", [](const Value& x) { Recorded on; return K::shape(x.operand()); }, arg("x"));
  m.def("size", [](const Value& x, const Label& name) { Recorded on; return named(K::size(x.operand(), name.name()), name); }, arg("x"),
        arg("name").none() = nb::none());
  m.def("int_shape", [](const Value& x) { return to_tuple(K::int_shape(x.operand())); }, arg("x"));
  m.def("ndim", [](const Value& x) -> nb::object {
    Extent n = K::ndim(x.operand());
    return n.known() ? nb::object(nb::int_(static_cast<std::int64_t>(n))) : nb::object(nb::none());
  }, arg("x"));
  m.def("dtype", [](const Value& x) { return K::dtype(x.operand()); }, arg("x"));
  m.def("is_tensor", [](nb::handle x) { return tensor_of(x) != nullptr; }, arg("x").none());
  m.def("is_variable", [](nb::handle x) { return tensor_of(x) && K::is_variable(*tensor_of(x)); }, arg("x").none());
  m.def("is_placeholder", [](nb::handle x) { return tensor_of(x) && K::is_placeholder(*tensor_of(x)); }, arg("x").none());
  m.def("is_sparse", [](nb::handle x) { return tensor_of(x) && K::is_sparse(*tensor_of(x)); }, arg("tensor").none());

  m.def("concatenate", [](const Tensors& tensors, const Integer& axis) { Recorded on; return K::concatenate(tensors, axis); }, arg("tensors"), arg("axis") = -1);
  m.def("stack", [](const Tensors& x, const Integer& axis) { Recorded on; return K::stack(x, axis); }, arg("x"), arg("axis") = 0);
  m.def("reshape", [](const Value& x, const Sizes& shape) { Recorded on; return K::reshape(x.operand(), shape.dims()); }, arg("x"), arg("shape"));
  m.def("permute_dimensions", [](const Value& x, nb::handle pattern) {
    Recorded on;
    return K::permute_dimensions(x.operand(), to_axes(pattern, "permute_dimensions: pattern"));
  }, arg("x"), arg("pattern"));
  m.def("repeat_elements", [](const Value& x, nb::handle rep, const Integer& axis) {
    Recorded on;
    return K::repeat_elements(x.operand(), static_cast<int>(to_int(rep, "repeat_elements: rep")), axis);
  }, arg("x"), arg("rep"), arg("axis"));
  m.def("repeat", [](const Value& x, nb::handle n) {
    Recorded on;
    const Tensor* t = tensor_of(n);
    if (!t || K::ndim(x.operand()) != 2) return K::repeat(x.operand(), static_cast<int>(to_int(n, "repeat: n")));
    return K::tile(K::expand_dims(x.operand(), 1), {1, *t, 1});
  }, arg("x"), arg("n"));
  m.def("tile", [](const Value& x, const Sizes& n) { Recorded on; return K::tile(x.operand(), n.dims()); }, arg("x"), arg("n"));
  m.def("expand_dims", [](const Value& x, const Integer& axis) { Recorded on; return K::expand_dims(x.operand(), axis); }, arg("x"), arg("axis") = -1);
  m.def("squeeze", [](const Value& x, const Integer& axis) { Recorded on; return K::squeeze(x.operand(), axis); }, arg("x"), arg("axis"));
  m.def("reverse", [](const Value& x, nb::handle axes) { Recorded on; return K::reverse(x.operand(), to_axes(axes, "reverse: axes")); }, arg("x"), arg("axes"));
  m.def("slice", [](const Value& x, const Sizes& start, const Sizes& size) { Recorded on; return K::slice(x.operand(), start.dims(), size.dims()); },
        arg("x"), arg("start"), arg("size"));
  m.def("one_hot", [](const Value& indices, nb::handle classes) {
    Recorded on;
    const Tensor* t = tensor_of(classes);
    if (!t) {
      Integer n;
      n.set(classes);
      return K::one_hot(indices.operand(), n);
    }
    Tensor rows = K::expand_dims(K::cast(indices.operand(), int64), -1);
    return K::cast(K::equal(rows, K::arange(*t, None, 1, int64)), float32);
  }, arg("indices"), arg("num_classes"));
  m.def("gather", [](const Value& reference, const Value& indices) { Recorded on; return K::gather(reference.operand(), indices.operand()); },
        arg("reference"), arg("indices"));
  m.def("sparse_coo", [](const Value& indices, const Value& values, const Sizes& shape, DType dtype) {
    return K::sparse_coo(indices.operand(), values.operand(), shape.dims(), dtype);
  }, arg("indices"), arg("values"), arg("dense_shape"), arg("dtype").none() = nb::none());
  m.def("sparse_parts", [](const Tensor& x) {
    K::SparseParts parts = K::sparse_parts(x);
    return nb::make_tuple(parts.indices, parts.values, parts.dense_shape);
  }, arg("x"));
}
// clang-format on

}  // namespace python
}  // namespace kassette

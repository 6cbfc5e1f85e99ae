// python/src/tensor.cpp - the class Tensor of Python.
#include <nanobind/stl/complex.h>

#include <complex>
#include <sstream>
#include <unordered_map>

#include "arrays.h"

namespace kassette {
namespace python {
namespace {

/// What a Python object of class Tensor holds.
struct Held {
  Tensor tensor;
  PyObject* self = nullptr;  // not counted
  bool is_array = false;     // its operators are those of kassette.numpy
  std::string name;          // of the result of an op, where one was asked for

  explicit Held(const Tensor& t) : tensor(t) {}
  Held(Held&& o) noexcept : tensor(static_cast<Tensor&&>(o.tensor)) {}
  Held(const Held&) = delete;
  ~Held();
  /// x[key] = value: it holds another tensor from then on. Nodes of the tape, views, and NumPy's arrays over the memory
  /// keep the one before.
  void assign(nb::handle key, nb::handle value);

 private:
  /// Takes it from the table of objects.
  void forget() const;
};

/// The Python object of each tensor that has one. Python's lock guards it. Never destroyed: tensors may outlive this
/// module's statics.
std::unordered_map<std::uintptr_t, PyObject*>& objects() {
  static auto* table = new std::unordered_map<std::uintptr_t, PyObject*>;
  return *table;
}

Held::~Held() {
  if (self) forget();
}
void Held::forget() const {
  auto it = objects().find(tensor.id());
  if (it != objects().end() && it->second == self) objects().erase(it);
}
void Held::assign(nb::handle key, nb::handle value) {
  if (!is_array)
    throw TypeError("", "", "the elements of a tensor of Keras cannot be assigned", "",
                    "K.update changes a variable, and kassette.numpy.asarray makes an array");
  Tensor other = array_with(tensor, key, value);
  forget();
  tensor = static_cast<Tensor&&>(other);
  objects()[tensor.id()] = self;
}

PyTypeObject* tensor_type = nullptr;

/// Whether an operator accepts this operand. Otherwise Python tries the other operand's method, or throws TypeError.
bool may_be_operand(nb::handle object) {
  PyObject* o = object.ptr();
  return tensor_of(object) || PyLong_Check(o) || PyFloat_Check(o) || PyList_Check(o) || PyTuple_Check(o) ||
         nb::hasattr(object, "__array__") || nb::hasattr(object, "tocoo");
}

bool is_array_object(nb::handle object) {
  return Py_TYPE(object.ptr()) == tensor_type && nb::inst_ptr<Held>(object)->is_array;
}
/// Whether what becomes of this operand is decided when a function is called.
bool waits(nb::handle object) {
  const Tensor* t = tensor_of(object);
  return t && (t->symbolic() || K::is_variable(*t));
}
/// Whether an operator is that of kassette.numpy: with an array, and with nothing that Keras records.
bool is_for_arrays(nb::handle a, nb::handle b) {
  return (is_array_object(a) || is_array_object(b)) && !waits(a) && !waits(b);
}

using Function = Tensor (*)(const Operand&, const Operand&);

/// `name` is the prefix of errors about an operand.
nb::object binary(const char* name, nb::handle a, nb::handle b, Function f, Function of_arrays) {
  const bool arrays = is_for_arrays(a, b);
  if ((!arrays && !f) || !may_be_operand(a) || !may_be_operand(b)) return nb::borrow(Py_NotImplemented);
  Value x(a, name), y(b, name);
  if (arrays) {
    return to_array(compute(is_large(x, y), [&] { return of_arrays(x.operand(), y.operand()); }));
  }
  match({&x, &y});
  Recorded on;
  return to_python(f(x.operand(), y.operand()));
}
nb::object unary(const Held& a, Tensor (*f)(const Operand&), Tensor (*of_arrays)(const Operand&)) {
  if (a.is_array) return to_array(of_arrays(a.tensor));
  Recorded on;
  return to_python(f(a.tensor));
}

std::string text_of(const Tensor& t) {
  std::ostringstream os;
  if (!t.symbolic()) {
    os << t;
    return os.str();
  }
  os << "<kassette.Tensor";
  Text name = name_of(t);
  if (!name.empty()) os << " '" << name.c_str() << "'";
  os << " shape=" << t.shape() << " dtype=" << t.dtype().name() << ">";
  return os.str();
}

Tensor logical_xor(const Operand& x, const Operand& y) {
  if (!K::dtype(x).is_bool() && !K::dtype(y).is_bool())
    throw TypeError("logical_xor", "", K::dtype(x).name(), "both must be bool", "cast them (K::cast)");
  return K::not_equal(x, y);
}

// `as`: the op's name in errors; `op`: what Keras' backend does with x and y; `of_arrays`: the function of
// kassette.numpy.
#define KASSETTE_BOUND(name, as, first, second, op, of_arrays) \
  .def( \
      name, \
      [](const Held& a, nb::handle b) { \
        const nb::object self = to_python(a.tensor); \
        return binary( \
            as, first, second, [](const Operand& x, const Operand& y) -> Tensor { return op; }, &numpy::of_arrays); \
      }, \
      nb::is_operator())
#define KASSETTE_COMPARISON(name, op, of_arrays) KASSETTE_BOUND("__" name "__", #of_arrays, self, b, op, of_arrays)
#define KASSETTE_OPERATOR(name, as, op, of_arrays) \
  KASSETTE_BOUND("__" name "__", as, self, b, op, of_arrays) KASSETTE_BOUND("__r" name "__", as, b, self, op, of_arrays)
// One that Keras' backend does not have: of two tensors that are no arrays Python decides.
#define KASSETTE_OF_ARRAYS(name, first, second, of_arrays) \
  .def( \
      "__" name "__", \
      [](const Held& a, nb::handle b) { \
        const nb::object self = to_python(a.tensor); \
        return binary(#of_arrays, first, second, nullptr, &numpy::of_arrays); \
      }, \
      nb::is_operator())
#define KASSETTE_SHIFT(name, of_arrays) \
  KASSETTE_OF_ARRAYS(name, self, b, of_arrays) KASSETTE_OF_ARRAYS("r" name, b, self, of_arrays)

}  // namespace

const Tensor* tensor_of(nb::handle object) {
  if (Py_TYPE(object.ptr()) != tensor_type) return nullptr;  // nobody derives from it
  return &nb::inst_ptr<Held>(object)->tensor;
}

nb::object to_python(const Tensor& x) {
  if (!x.defined()) return nb::none();
  auto it = objects().find(x.id());
  // One that is being destroyed has no references left.
  if (it != objects().end() && Py_REFCNT(it->second) > 0) return nb::borrow(it->second);
  nb::object object = nb::cast(Held(x));
  nb::inst_ptr<Held>(object)->self = object.ptr();
  objects()[x.id()] = object.ptr();
  return object;
}

nb::object to_array(const Tensor& x) {
  if (!x.defined() || x.symbolic()) return to_python(x);
  auto it = objects().find(x.id());
  const bool is_held = it != objects().end() && Py_REFCNT(it->second) > 0;
  // A function may return what it was given. Keras' object stays Keras', and an array's is another one, since its
  // elements may be assigned.
  nb::object object = to_python(is_held ? K::identity(x) : x);
  nb::inst_ptr<Held>(object)->is_array = true;
  return object;
}

Tensors to_tensors(nb::handle list, const char* what) {
  Tensors tensors;
  if (list.is_none()) return tensors;
  if (const Tensor* one = tensor_of(list)) {
    tensors.push_back(*one);
    return tensors;
  }
  std::vector<Value> values;
  DType first;  // that of the first tensor
  if (!nb::hasattr(list, "__iter__"))
    throw TypeError(prefixed(what, "a list of tensors is expected, not " + type_of(list)).c_str());
  for (nb::handle item : nb::iter(list)) {
    values.emplace_back(item, what);
    if (!first.given() && values.back().tensor()) first = values.back().tensor()->dtype();
  }
  for (Value& v : values) {
    if (v.is_none()) throw TypeError(prefixed(what, "None where a tensor is expected").c_str());
    if (v.tensor()) {
      tensors.push_back(*v.tensor());
      continue;
    }
    if (first.given()) v.take(first);
    tensors.push_back(K::constant(v.operand(), first));
  }
  return tensors;
}

nb::list to_list(const Tensors& tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(to_python(t));
  return list;
}

nb::object named(const Tensor& x, const Label& name) {
  nb::object object = to_python(x);
  if (name.given() && name_of(x).empty()) nb::inst_ptr<Held>(object)->name = scope_names() + name.text();
  return object;
}

nb::object to_tuple(const Shape& shape) {
  if (shape == None) return nb::none();
  nb::list sizes;
  for (const std::int64_t* n = shape.begin(); n != shape.end(); ++n) {
    if (*n < 0) sizes.append(nb::none());
    else sizes.append(*n);
  }
  return nb::tuple(sizes);
}

namespace {

/// The only element of a tensor.
template <class T>
T number_of(const Held& x, const char* what, DType dtype) {
  if (x.tensor.symbolic())
    throw TypeError("", "", (std::string("a symbolic tensor is no ") + what).c_str(), "", "use K.eval or K.function");
  T value;
  x.tensor.item(&value, dtype);
  return value;
}
/// The only element as Python's integer, truncated.
nb::object integer_of(const Held& x) {
  const DType dtype = x.tensor.dtype();
  if (dtype.is_float()) {
    PyObject* whole = PyLong_FromDouble(number_of<double>(x, "int", float64));
    if (!whole) throw nb::python_error();
    return nb::steal(whole);
  }
  return nb::int_(number_of<std::int64_t>(x, "int", int64));
}

/// The static shape as kassette._shape.Shape, a tuple with the methods of TensorFlow's; None for an unknown rank.
nb::object shape_of(const Held& x) {
  static PyObject* type = nb::object(nb::module_::import_("kassette._shape").attr("Shape")).release().ptr();
  nb::object sizes = to_tuple(x.tensor.shape());
  return sizes.is_none() ? sizes : nb::handle(type)(sizes);
}

}  // namespace

void bind_tensor(nb::module_& m) {
  auto type =
      nb::class_<Held>(
          m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::is_final(),
          "An array with a dtype and a place on the tape; symbolic where its value waits for placeholders.")
          .def_prop_ro("shape", &shape_of, "The static shape, None for unknown sizes.")
          .def_prop_ro("ndim", [](const Held& x) { return x.tensor.ndim(); })
          .def_prop_ro(
              "dtype", [](const Held& x) { return x.tensor.dtype(); },
              "The name of the element type, such as 'float32'.")
          .def_prop_ro("name",
                       [](const Held& x) {
                         Text own = name_of(x.tensor);
                         return nb::str(own.empty() ? x.name.c_str() : own.c_str());
                       })
          .def_prop_ro(
              "symbolic", [](const Held& x) { return x.tensor.symbolic(); },
              "Whether the value waits for placeholders.")
          .def_prop_ro(
              "is_array", [](const Held& x) { return x.is_array; },
              "Whether kassette.numpy made it: then operators are those of kassette.numpy.")
          .def("get_shape", &shape_of)
          .def(
              "__getitem__",
              [](const Held& x, nb::handle key) {
                return x.is_array ? to_array(array_item(x.tensor, key)) : to_python(item(x.tensor, key));
              },
              nb::arg("key").none())
          .def(
              "__setitem__", [](Held& x, nb::handle key, nb::handle value) { x.assign(key, value); },
              nb::arg("key").none(), nb::arg("value").none(),
              "Of an array: it is another tensor from then on, with these elements. What was computed before keeps the "
              "old one, whose memory does not change.")
          .def("__repr__", [](const Held& x) { return nb::str(text_of(x.tensor).c_str()); })
          .def("__hash__",
               [](const Held& x) {
                 // `x[k] = v` lets an array hold another tensor. Its hash stays, since it may be a key of a dict.
                 const std::uintptr_t own = x.is_array ? reinterpret_cast<std::uintptr_t>(x.self) : x.tensor.id();
                 return static_cast<Py_hash_t>(own >> 4);
               })
          .def(
              "__bool__",
              [](const Held& x) {
                if (x.tensor.symbolic())
                  throw TypeError(
                      "a symbolic tensor has no truth value: use K.switch, or K.eval where it depends on variables alone");
                bool b;
                x.tensor.item(&b, bool_);
                return b;
              })
          .def("__float__", [](const Held& x) { return number_of<double>(x, "float", float64); })
          .def("__int__", &integer_of)
          .def("__complex__",
               [](const Held& x) { return std::complex<double>(number_of<double>(x, "complex", float64)); })
          .def("__index__",
               [](const Held& x) {
                 if (!x.tensor.dtype().is_integer())
                   throw TypeError("", "", ("a tensor of " + std::string(x.tensor.dtype().name())).c_str(),
                                   "an index is an integer");
                 return integer_of(x);
               })
          .def("__len__",
               [](const Held& x) {
                 if (x.tensor.ndim() == 0) throw TypeError("a scalar tensor has no length");
                 Extent n = x.tensor.ndim() < 0 ? Extent(-1) : x.tensor.shape()[0];
                 if (!n.known())
                   throw TypeError("", "", "the length of this tensor is not known before a function is called", "",
                                   "use K.shape(x)[0]");
                 return static_cast<std::int64_t>(n);
               })
          .def(
              "__array__",
              [](const Held& x, nb::handle dtype, nb::handle) {
                if (x.tensor.symbolic())
                  throw NotImplementedError("", "", "a symbolic tensor has no values for NumPy", "",
                                            "use K.eval or K.function");
                nb::object array = nb::module_::import_("numpy").attr("asarray")(to_numpy(x.tensor));
                return dtype.is_none() ? array : array.attr("astype")(dtype);
              },
              nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none())
          .def("__iter__",
               [](nb::handle self) -> nb::object {
                 const Tensor& x = *tensor_of(self);
                 if (x.ndim() < 1 || !x.shape()[0].known())
                   throw TypeError("a tensor whose length is not known cannot be iterated over");
                 // Each row is made when it is asked for: there may be 2^40.
                 nb::object length = nb::int_(static_cast<std::int64_t>(x.shape()[0])),
                            builtins = nb::module_::import_("builtins");
                 return builtins.attr("map")(self.attr("__getitem__"), builtins.attr("range")(length));
               })
          .def("__neg__",
               [](const Held& x) {
                 return unary(
                     x, [](const Operand& a) { return -a; }, &numpy::negative);
               })
          .def("__pos__",
               [](const Held& x) {
                 return unary(
                     x, [](const Operand& a) { return +a; }, &numpy::positive);
               })
          .def("__abs__", [](const Held& x) { return unary(x, &K::abs, &numpy::abs); })
          .def("__invert__",
               [](const Held& x) {
                 return unary(
                     x, [](const Operand& a) { return ~a; }, &numpy::bitwise_invert);
               })
      // clang-format off
          KASSETTE_OPERATOR("add", "add", x + y, add)
          KASSETTE_OPERATOR("sub", "subtract", x - y, subtract)
          KASSETTE_OPERATOR("mul", "multiply", x * y, multiply)
          KASSETTE_OPERATOR("truediv", "divide", x / y, divide)
          KASSETTE_OPERATOR("floordiv", "floor_divide", floor_divide(x, y), floor_divide)
          KASSETTE_OPERATOR("mod", "remainder", x % y, remainder)
          KASSETTE_OPERATOR("pow", "pow", K::pow(x, y), power)
          KASSETTE_OPERATOR("and", "logical_and", x & y, bitwise_and)
          KASSETTE_OPERATOR("or", "logical_or", x | y, bitwise_or)
          KASSETTE_OPERATOR("xor", "logical_xor", logical_xor(x, y), bitwise_xor)
          KASSETTE_OPERATOR("matmul", "matmul", matmul(x, y), matmul)
          KASSETTE_COMPARISON("lt", x < y, less)
          KASSETTE_COMPARISON("le", x <= y, less_equal)
          KASSETTE_COMPARISON("gt", x > y, greater)
          KASSETTE_COMPARISON("ge", x >= y, greater_equal)
          KASSETTE_SHIFT("lshift", bitwise_left_shift)
          KASSETTE_SHIFT("rshift", bitwise_right_shift)
          KASSETTE_OF_ARRAYS("eq", self, b, equal)
          KASSETTE_OF_ARRAYS("ne", self, b, not_equal);
  // clang-format on
  // NumPy's arrays leave arithmetic with tensors to the tensors.
  type.attr("__array_ufunc__") = nb::none();
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace python
}  // namespace kassette

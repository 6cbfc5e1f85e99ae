// python/src/tensor.cpp - the class Tensor of Python.
#include <sstream>
#include <unordered_map>

#include "convert.h"

namespace kassette {
namespace python {
namespace {

/// What a Python object of class Tensor holds.
struct Held {
  Tensor tensor;
  PyObject* self = nullptr;  // not counted
  std::string name;          // of the result of an op, where one was asked for

  explicit Held(const Tensor& t) : tensor(t) {}
  Held(Held&& o) noexcept : tensor(static_cast<Tensor&&>(o.tensor)) {}
  Held(const Held&) = delete;
  ~Held();
};

/// The Python object of each tensor that has one. Python's lock guards it. Never destroyed: tensors may outlive this
/// module's statics.
std::unordered_map<std::uintptr_t, PyObject*>& objects() {
  static auto* table = new std::unordered_map<std::uintptr_t, PyObject*>;
  return *table;
}

Held::~Held() {
  if (!self) return;
  auto it = objects().find(tensor.id());
  if (it != objects().end() && it->second == self) objects().erase(it);
}

PyTypeObject* tensor_type = nullptr;

/// Whether an operator accepts this operand. Otherwise Python tries the other operand's method, or throws TypeError.
bool may_be_operand(nb::handle object) {
  PyObject* o = object.ptr();
  return tensor_of(object) || PyLong_Check(o) || PyFloat_Check(o) || PyList_Check(o) || PyTuple_Check(o) ||
         nb::hasattr(object, "__array__") || nb::hasattr(object, "tocoo");
}

/// `name` is the prefix of errors about an operand.
Tensor binary(const char* name, nb::handle a, nb::handle b, Tensor (*f)(const Operand&, const Operand&)) {
  if (!may_be_operand(a) || !may_be_operand(b)) throw nb::next_overload();
  Value x(a, name), y(b, name);
  match({&x, &y});
  Recorded on;
  return f(x.operand(), y.operand());
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

// `as`: the op's name in errors.
#define KASSETTE_BOUND(name, as, first, second, op) \
  .def( \
      name, \
      [](const Held& a, nb::handle b) { \
        const nb::object self = to_python(a.tensor); \
        return binary(as, first, second, [](const Operand& x, const Operand& y) { return op; }); \
      }, \
      nb::is_operator())
#define KASSETTE_COMPARISON(name, as, op) KASSETTE_BOUND("__" name "__", as, self, b, op)
#define KASSETTE_OPERATOR(name, as, op) \
  KASSETTE_COMPARISON(name, as, op) KASSETTE_BOUND("__r" name "__", as, b, self, op)

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
          .def("get_shape", &shape_of)
          .def(
              "__getitem__", [](const Held& x, nb::handle key) { return item(x.tensor, key); }, nb::arg("key").none())
          .def("__repr__", [](const Held& x) { return nb::str(text_of(x.tensor).c_str()); })
          .def("__hash__", [](const Held& x) { return static_cast<Py_hash_t>(x.tensor.id() >> 4); })
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
                 Recorded on;
                 return -x.tensor;
               })
          .def("__pos__",
               [](const Held& x) {
                 Recorded on;
                 return +x.tensor;
               })
          .def("__abs__",
               [](const Held& x) {
                 Recorded on;
                 return K::abs(x.tensor);
               })
          .def("__invert__",
               [](const Held& x) {
                 Recorded on;
                 return ~x.tensor;
               }) KASSETTE_OPERATOR("add", "add", x + y) KASSETTE_OPERATOR("sub", "subtract", x - y)
              KASSETTE_OPERATOR("mul", "multiply", x * y) KASSETTE_OPERATOR("truediv", "divide", x / y)
                  KASSETTE_OPERATOR("floordiv", "floor_divide", floor_divide(x, y))
                      KASSETTE_OPERATOR("mod", "remainder", x % y) KASSETTE_OPERATOR("pow", "pow", K::pow(x, y))
                          KASSETTE_OPERATOR("and", "logical_and", x & y) KASSETTE_OPERATOR("or", "logical_or", x | y)
                              KASSETTE_OPERATOR("xor", "logical_xor", logical_xor(x, y))
                                  KASSETTE_OPERATOR("matmul", "matmul", matmul(x, y))
                                      KASSETTE_COMPARISON("lt", "less", x < y)
                                          KASSETTE_COMPARISON("le", "less_equal", x <= y)
                                              KASSETTE_COMPARISON("gt", "greater", x > y)
                                                  KASSETTE_COMPARISON("ge", "greater_equal", x >= y);
  // NumPy's arrays leave arithmetic with tensors to the tensors.
  type.attr("__array_ufunc__") = nb::none();
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace python
}  // namespace kassette

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

/// One index of x[...]; `held` keeps what it points to.
Index to_index(nb::handle object) {
  if (const Tensor* t = tensor_of(object)) return *t;
  if (object.is_none()) return newaxis;
  if (object.ptr() == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(object.ptr())) {
    auto bound = [&](const char* name) -> Scalar {
      nb::object v = object.attr(name);
      if (const Tensor* t = tensor_of(v)) return Scalar(t->item<std::int64_t>());
      return v.is_none() ? Scalar(None) : Scalar(static_cast<long>(to_int(v, "a slice")));
    };
    return slice(bound("start"), bound("stop"), bound("step"));
  }
  if (is_int(object)) return static_cast<long>(to_int(object, "an index"));
  throw TypeError(
      (std::string("an index is an integer, a slice, ..., None or a scalar tensor, not ") + type_of(object)).c_str());
}

Tensor item(const Held& self, nb::handle key) {
  Recorded on;
  if (!PyTuple_Check(key.ptr())) return self.tensor[to_index(key)];
  Index index[kMaxRank];
  std::size_t n = nb::len(key);
  if (n > kMaxRank) throw ValueError("an index of more than 8 axes");
  for (std::size_t i = 0; i < n; ++i) index[i] = to_index(nb::borrow<nb::tuple>(key)[i]);
  if (n == 0) return self.tensor[ellipsis];
  return self.tensor(index[0], index[1], index[2], index[3], index[4], index[5], index[6], index[7]);
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

nb::object to_tuple(const Shape& shape) {
  if (shape == None) return nb::none();
  nb::list sizes;
  for (const std::int64_t* n = shape.begin(); n != shape.end(); ++n) {
    if (*n < 0) sizes.append(nb::none());
    else sizes.append(*n);
  }
  return nb::tuple(sizes);
}

void bind_tensor(nb::module_& m) {
  auto type =
      nb::class_<Held>(
          m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::is_final(),
          "An array with a dtype and a place on the tape; symbolic where its value waits for placeholders.")
          .def_prop_ro(
              "shape", [](const Held& x) { return to_tuple(x.tensor.shape()); },
              "The static shape, None for unknown sizes.")
          .def_prop_ro("ndim", [](const Held& x) { return x.tensor.ndim(); })
          .def_prop_ro(
              "dtype", [](const Held& x) { return x.tensor.dtype(); },
              "The name of the element type, such as 'float32'.")
          .def_prop_ro("name", [](const Held& x) { return nb::str(name_of(x.tensor).c_str()); })
          .def_prop_ro(
              "symbolic", [](const Held& x) { return x.tensor.symbolic(); },
              "Whether the value waits for placeholders.")
          .def("get_shape", [](const Held& x) { return to_tuple(x.tensor.shape()); })
          .def("__getitem__", &item)
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
                              KASSETTE_OPERATOR("matmul", "dot", K::dot(x, y)) KASSETTE_COMPARISON("lt", "less", x < y)
                                  KASSETTE_COMPARISON("le", "less_equal", x <= y)
                                      KASSETTE_COMPARISON("gt", "greater", x > y)
                                          KASSETTE_COMPARISON("ge", "greater_equal", x >= y);
  // NumPy's arrays leave arithmetic with tensors to the tensors.
  type.attr("__array_ufunc__") = nb::none();
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace python
}  // namespace kassette

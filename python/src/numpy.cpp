// python/src/numpy.cpp - tensors and NumPy's arrays.
#define KASSETTE_NUMPY_TABLE
#include "numpy.h"

#include <nanobind/stl/string.h>
#include <numpy/arrayscalars.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "convert.h"

namespace kassette {
namespace python {

bool import_numpy() { return _import_array() >= 0; }

std::string type_of(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

bool is_array(nb::handle object) { return PyArray_Check(object.ptr()); }

namespace {

char kind_of(DType dtype) { return dtype.is_bool() ? 'b' : dtype.is_float() ? 'f' : dtype.is_unsigned() ? 'u' : 'i'; }
/// None where tensors do not support NumPy's dtype. NumPy has no bfloat16.
DType dtype_of(PyArray_Descr* descr) {
#define KASSETTE_MATCH(constant, code, type, name) \
  if (constant != bfloat16 && kind == kind_of(constant) && size == constant.size()) return constant;
  const char kind = descr->kind;
  const auto size = PyDataType_ELSIZE(descr);
  if (PyTypeNum_ISUSERDEF(descr->type_num)) return None;
  KASSETTE_DTYPES(KASSETTE_MATCH)
#undef KASSETTE_MATCH
  return None;
}
/// The number of NumPy's type for a dtype, the lowest of several; NPY_NOTYPE for bfloat16.
int number_of(DType dtype) {
  static const std::array<int, DType::kCount> numbers = [] {
    std::array<int, DType::kCount> all;
    all.fill(NPY_NOTYPE);
    for (int number = NPY_HALF; number >= 0; --number) {  // NPY_HALF is the highest
      PyArray_Descr* descr = PyArray_DescrFromType(number);
      if (const DType match = dtype_of(descr); match.given()) all[match.code()] = number;
      Py_DECREF(descr);
    }
    return all;
  }();
  return numbers[dtype.code()];
}

nb::object checked(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

}  // namespace

Tensor from_numpy(nb::handle object) {
  auto* a = reinterpret_cast<PyArrayObject*>(object.ptr());
  DType dtype = dtype_of(PyArray_DESCR(a));
  if (!dtype.given()) {
    nb::str name(nb::handle(reinterpret_cast<PyObject*>(PyArray_DESCR(a))));
    throw TypeError((std::string("an array of dtype ") + name.c_str() + ": tensors do not support it").c_str());
  }
  if (PyArray_ISBYTESWAPPED(a)) return from_numpy(checked(PyArray_Cast(a, PyArray_TYPE(a))));
  int rank = PyArray_NDIM(a);
  if (rank > kMaxRank)
    throw ValueError("", "", ("an array of rank " + std::to_string(rank)).c_str(), "a tensor has 0 to 8 axes");
  std::int64_t sizes[kMaxRank], strides[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    sizes[i] = PyArray_DIM(a, i);
    if (PyArray_STRIDE(a, i) % dtype.size() != 0)
      return from_numpy(checked(PyArray_NewCopy(a, NPY_CORDER)));  // a field of a record
    strides[i] = PyArray_STRIDE(a, i) / dtype.size();
  }
  struct List {
    const std::int64_t* numbers;
    int count;
    const std::int64_t* data() const { return numbers; }
    std::size_t size() const { return static_cast<std::size_t>(count); }
  };
  return from_memory(PyArray_DATA(a), dtype, List{sizes, rank},
                     PyArray_ISCARRAY_RO(a) ? Dims(None) : Dims(List{strides, rank}));
}

namespace {

/// Below this a copy costs less than an owner.
constexpr std::size_t kLarge = 1 << 15;

/// An array over x's own elements.
nb::object array_over(const Tensor& x, void* data, int rank, npy_intp* sizes, int number) {
  nb::capsule owner(new Tensor(x), [](void* t) noexcept { delete static_cast<Tensor*>(t); });
  nb::object array = checked(PyArray_SimpleNewFromData(rank, sizes, number, data));
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.release().ptr()) != 0)
    throw nb::python_error();
  return array;
}

}  // namespace

nb::object to_numpy(const Tensor& x) {
  if (K::is_sparse(x)) return to_numpy(K::eval(x));
  DType dtype = x.dtype() == bfloat16 ? float32 : x.dtype();
  const bool there = x.device() == cpu && dtype == x.dtype();
  Tensor copied = there ? Tensor() : host_copy(x, dtype);
  const Tensor& value = there ? x : copied;
  npy_intp sizes[kMaxRank];
  int rank = value.ndim();
  Shape shape = value.shape();
  for (int i = 0; i < rank; ++i) sizes[i] = shape.begin()[i];
  const void* data = value.data(dtype);
  if (rank == 0) {
    nb::object descr = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(number_of(dtype))));
    return checked(PyArray_Scalar(const_cast<void*>(data), reinterpret_cast<PyArray_Descr*>(descr.ptr()), nullptr));
  }
  const std::size_t bytes = static_cast<std::size_t>(value.size() * dtype.size());
  if (bytes >= kLarge)
    if (void* own = exclusive_data(value)) return array_over(value, own, rank, sizes, number_of(dtype));
  nb::object array = checked(PyArray_SimpleNew(rank, sizes, number_of(dtype)));
  auto* a = reinterpret_cast<PyArrayObject*>(array.ptr());
  if (bytes < 1 << 20) {
    std::memcpy(PyArray_DATA(a), data, bytes);
  } else {
    nb::gil_scoped_release free;
    std::memcpy(PyArray_DATA(a), data, bytes);
  }
  return array;
}

std::string prefixed(const char* what, const std::string& line) {
  return what ? std::string(what) + ": " + line : line;
}

namespace {

/// NumPy's numbers as Python's.
nb::object plain(nb::handle object) {
  if (PyArray_IsScalar(object.ptr(), Generic)) return object.attr("item")();
  return nb::borrow(object);
}

Scalar scalar_of(nb::handle object, bool& is_number) {
  PyObject* o = object.ptr();
  is_number = true;
  if (o == Py_None) return None;
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Scalar(v);
    unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      throw ValueError("an integer of more than 64 bits");
    }
    return Scalar(u);
  }
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  is_number = false;
  return None;
}

}  // namespace

Scalar to_scalar(nb::handle object, const char* what) {
  bool is_number;
  Scalar s = scalar_of(object, is_number);
  if (is_number) return s;
  nb::object number = plain(object);
  if (is_array(number) && PyArray_SIZE(reinterpret_cast<PyArrayObject*>(number.ptr())) == 1)
    number = number.attr("item")();
  s = scalar_of(number, is_number);
  if (!is_number) throw TypeError(prefixed(what, "a number is expected, not " + type_of(object)).c_str());
  return s;
}

bool is_int(nb::handle object) { return PyLong_Check(object.ptr()) || PyArray_IsScalar(object.ptr(), Integer); }

namespace {

/// Hands `use` the value of a tensor of integers that stands for numbers of the graph itself, such as an axis.
template <class F>
void known_value(const Tensor& t, const char* what, F use) {
  if (!t.dtype().is_integer())
    throw TypeError(prefixed(what, "an integer is expected, not a tensor of " + std::string(t.dtype().name())).c_str());
  try {
    use(t.symbolic() || K::is_variable(t) ? K::eval(t) : t);
  } catch (const ValueError&) {
    throw TypeError(prefixed(what, "an integer is expected, not a tensor whose value waits for placeholders").c_str());
  }
}

}  // namespace

std::int64_t to_int(nb::handle object, const char* what) {
  if (const Tensor* t = tensor_of(object)) {
    std::int64_t value = 0;
    if (t->ndim() != 0) throw TypeError(prefixed(what, "an integer is expected, not a tensor with axes").c_str());
    known_value(*t, what, [&](const Tensor& v) { value = v.item<std::int64_t>(); });
    return value;
  }
  nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    nb::object whole = plain(object);  // Keras computes sizes with floats here and there
    if (PyFloat_Check(whole.ptr()) && PyFloat_AS_DOUBLE(whole.ptr()) == static_cast<double>(static_cast<std::int64_t>(
                                                                            PyFloat_AS_DOUBLE(whole.ptr()))))
      return static_cast<std::int64_t>(PyFloat_AS_DOUBLE(whole.ptr()));
    throw TypeError(prefixed(what, "an integer is expected, not " + type_of(object)).c_str());
  }
  long long v = PyLong_AsLongLong(number.ptr());
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw ValueError(prefixed(what, "an integer of more than 64 bits").c_str());
  }
  return v;
}

static Value::Numbers numbers_of(nb::handle object) {
  PyObject* o = object.ptr();
  if (PyBool_Check(o)) return Value::Numbers::bools;
  if (PyLong_Check(o)) return Value::Numbers::integers;
  return PyFloat_Check(o) ? Value::Numbers::floats : Value::Numbers::nothing;
}

void Value::set(nb::handle object) {
  if (const Tensor* t = tensor_of(object)) {
    kind_ = Kind::tensor;
    tensor_ = *t;
    return;
  }
  bool is_number;
  number_ = scalar_of(object, is_number);
  kind_ = Kind::number;
  numbers_ = numbers_of(object);
  if (is_number) return;
  if (PyArray_IsScalar(object.ptr(), Generic)) {
    number_ = to_scalar(object, "a number of NumPy's");
    numbers_ = numbers_of(plain(object));
    return;
  }
  if (is_array(object)) {
    kind_ = Kind::array;
    tensor_ = from_numpy(object);
    return;
  }
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) return set_list(object);
  if (nb::hasattr(object, "tocoo")) {  // of SciPy
    nb::object coo = object.attr("tocoo")(), np = nb::module_::import_("numpy");
    Tensor rows = from_numpy(np.attr("asarray")(coo.attr("row"), "int64")),
           columns = from_numpy(np.attr("asarray")(coo.attr("col"), "int64"));
    Sizes shape;
    shape.set(coo.attr("shape"));
    kind_ = Kind::array;
    Tensors both;
    both.push_back(rows);
    both.push_back(columns);
    tensor_ = K::sparse_coo(K::stack(both, 1), from_numpy(coo.attr("data")), shape.dims());
    return;
  }
  if (nb::hasattr(object, "__array__")) return set(nb::module_::import_("numpy").attr("asarray")(object));
  throw TypeError((std::string("a tensor, a number or an array is expected, not ") + type_of(object)).c_str());
}

Value::Value(nb::handle object, const char* what) : Value() {
  try {
    set(object);
  } catch (const TypeError& e) {
    if (!what) throw;
    throw TypeError(what, e.argument(), e.given(), e.expected(), e.remedy());
  } catch (const ValueError& e) {
    if (!what) throw;
    throw ValueError(what, e.argument(), e.given(), e.expected(), e.remedy());
  }
}

void Value::set_list(nb::handle list) {
  kind_ = Kind::list;
  for (nb::handle item : list) items_.emplace_back(item);
}

Operand Value::operand() const {
  switch (kind_) {
    case Kind::tensor:
    case Kind::array: return tensor_;
    case Kind::list:
      list_.clear();
      for (const Value& item : items_) list_.push_back(item.operand());
      return list_;
    default: break;
  }
  // An operand is made of a number, not of a Scalar.
  Operand o(None);
  static_cast<Scalar&>(o) = number_;
  return o;
}

void Value::take(DType dtype) {
  if (kind_ == Kind::array && tensor_.dtype() != dtype) tensor_ = K::cast(tensor_, dtype);
  for (Value& item : items_) item.take(dtype);
}

bool Value::has_dtype() const {
  if (kind_ == Kind::tensor || kind_ == Kind::array) return true;
  return std::any_of(items_.begin(), items_.end(), [](const Value& item) { return item.has_dtype(); });
}

Value::Numbers Value::numbers() const {
  if (kind_ == Kind::number) return numbers_;
  Numbers widest = Numbers::nothing;
  for (const Value& item : items_) widest = std::max(widest, item.numbers());
  return widest;
}

void Value::become(const Tensor& array) {
  kind_ = Kind::array;
  tensor_ = array;
  items_.clear();
}

void match(std::initializer_list<Value*> values) {
  for (Value* v : values)
    if (v->tensor()) {
      DType dtype = v->tensor()->dtype();
      for (Value* w : values)
        if (!w->tensor()) w->take(dtype);
      return;
    }
}

void Sizes::set(nb::handle object) {
  kind_ = Kind::none;
  if (object.is_none()) return;
  if (const Tensor* t = tensor_of(object)) {
    kind_ = Kind::tensor;
    whole_ = *t;
    return;
  }
  if (is_int(object)) {
    kind_ = Kind::number;
    number_ = to_int(object, nullptr);
    return;
  }
  kind_ = Kind::list;
  dims_.clear();
  tensors_.clear();
  for (nb::handle item : nb::iter(object)) {
    tensors_.emplace_back();
    if (item.is_none()) dims_.push_back(Dim(None));
    else if (const Tensor* t = tensor_of(item)) dims_.push_back(Dim(0)), tensors_.back() = *t;
    else dims_.push_back(Dim(static_cast<long>(to_int(item, nullptr))));
  }
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if (tensors_[i].defined()) dims_[i] = Dim(tensors_[i]);
}

void Sizes::complete(const Tensor& x) {
  if (kind_ == Kind::none) {
    kind_ = Kind::tensor;
    whole_ = K::shape(x);
  }
  if (kind_ != Kind::list) return;
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if (!dims_[i].tensor_ && dims_[i].value_ == Dim::kNoneDim) {
      tensors_[i] = K::shape(x)[static_cast<long>(i)];
      dims_[i] = Dim(tensors_[i]);
    }
}

Dims Sizes::dims() const {
  switch (kind_) {
    case Kind::none: return None;
    case Kind::tensor: return whole_;
    case Kind::number: return static_cast<long>(number_);
    default: return dims_;
  }
}

void Number::set(nb::handle object) {
  if (const Tensor* t = tensor_of(object)) {
    tensor_ = *t;
    number_ = Scalar(0);
    return;
  }
  number_ = to_scalar(object, nullptr);
  if (!number_.is_none()) value_ = K::constant(operand(), float64).item<double>();
}

Operand Number::operand() const {
  if (tensor_.defined()) return tensor_;
  Operand o(None);
  static_cast<Scalar&>(o) = number_;
  return o;
}

void Integer::set(nb::handle object) {
  constexpr const char* kExpected = "an integer of 32 bits is expected, not ";
  if (!tensor_of(object) && !PyIndex_Check(object.ptr())) throw TypeError((kExpected + type_of(object)).c_str());
  const std::int64_t v = to_int(object, nullptr);
  if (v != static_cast<int>(v)) throw TypeError((kExpected + type_of(object)).c_str());
  value_ = static_cast<int>(v);
}

void Label::set(nb::handle object) {
  given_ = !object.is_none();
  if (!given_) return;
  if (!PyUnicode_Check(object.ptr()))
    throw TypeError((std::string("text is expected, not ") + type_of(object)).c_str());
  text_ = nb::cast<std::string>(object);
}

DType to_dtype(nb::handle object) {
  if (object.is_none()) return None;
  if (PyUnicode_Check(object.ptr())) return DType(nb::cast<std::string>(object));
  if (std::strcmp(Py_TYPE(object.ptr())->tp_name, "DType") == 0)  // of kassette.numpy, which has bfloat16 as well
    if (nb::object name = nb::getattr(object, "name"); PyUnicode_Check(name.ptr()))
      return DType(nb::cast<std::string>(name));
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(object.ptr(), &descr)) throw nb::python_error();
  nb::object keep = nb::steal(reinterpret_cast<PyObject*>(descr));
  DType dtype = dtype_of(descr);
  if (!dtype.given())
    throw TypeError((std::string("dtype ") + nb::str(keep).c_str() + ": tensors do not support it").c_str());
  return dtype;
}

Axes to_axes(nb::handle object, const char* what) {
  if (object.is_none()) return None;
  const Tensor* t = tensor_of(object);
  if (is_int(object) || (t && t->ndim() == 0)) return static_cast<long>(to_int(object, what));
  std::vector<std::int64_t> axes;
  if (t) {
    known_value(*t, what, [&](const Tensor& v) { axes = K::cast(v, int64).to_vector<std::int64_t>(); });
    return axes;
  }
  for (nb::handle item : nb::iter(object)) axes.push_back(to_int(item, what));
  return axes;
}

}  // namespace python
}  // namespace kassette

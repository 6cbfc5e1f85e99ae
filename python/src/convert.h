// python/src/convert.h - Python objects to arguments of kassette, and tensors to Python objects.
#pragma once
#include <nanobind/nanobind.h>

#include <kassette/backend.h>
#include <kassette/borrow.h>

#include <string>
#include <vector>

namespace kassette {
namespace python {

namespace nb = nanobind;
namespace K = kassette::backend;

/// The Python object of a tensor: the one that it already has, with the attributes that Keras put there, or a new one.
/// None for an empty Tensor.
nb::object to_python(const Tensor& x);
/// The tensor of a Python object, or null where it is none.
const Tensor* tensor_of(nb::handle object);

/// The value of a concrete tensor: a NumPy array of its own, over the tensor's memory where nothing else sees that and
/// else a copy, or a NumPy scalar where it has no axes.
nb::object to_numpy(const Tensor& x);
/// A copy of a NumPy array, in its own dtype, but unsigned integers of 32 and 64 bits as int64. Throws TypeError where
/// tensors do not support its dtype.
Tensor from_numpy(nb::handle array);
bool is_array(nb::handle object);

/// What is accepted where a tensor is expected: a tensor, a number, None, an array, or a list of these.
class Value {
 public:
  Value() : number_(None) {}
  explicit Value(nb::handle object) : Value() { set(object); }
  /// `what` is the prefix of error messages.
  Value(nb::handle object, const char* what);
  void set(nb::handle object);
  /// Points into this object.
  Operand operand() const;
  /// The tensor that was given, or null.
  const Tensor* tensor() const { return kind_ == Kind::tensor ? &tensor_ : nullptr; }
  bool is_none() const { return kind_ == Kind::number && number_.is_none(); }
  /// Whether it was a matrix of SciPy's, and the tensor that was made of it.
  bool is_sparse() const { return kind_ == Kind::array && K::is_sparse(tensor_); }
  const Tensor& sparse() const { return tensor_; }
  /// An array or a list takes that dtype.
  void take(DType dtype);
  /// Whether a tensor or an array in it has a dtype of its own.
  bool has_dtype() const;
  /// What its numbers are, the widest: nothing, bool, integers or floats.
  enum class Numbers { nothing, bools, integers, floats };
  Numbers numbers() const;
  bool is_list() const { return kind_ == Kind::list; }
  /// It is that array from now on.
  void become(const Tensor& array);
  /// The number of elements of a tensor or an array, 0 where that is not known.
  std::int64_t elements() const { return tensor_.defined() && !tensor_.symbolic() ? tensor_.size() : 0; }

 private:
  void set_list(nb::handle list);

  enum class Kind { number, tensor, array, list };
  Kind kind_ = Kind::number;
  Numbers numbers_ = Numbers::nothing;
  Scalar number_;
  Tensor tensor_;  // of an array its copy
  std::vector<Value> items_;
  mutable std::vector<Operand> list_;
};
/// Arrays take the dtype of the first tensor among them.
void match(std::initializer_list<Value*> values);

/// A shape: a number, None, a tensor or an array of integers, or a list of numbers, None and scalar tensors.
class Sizes {
 public:
  void set(nb::handle object);
  /// Points into this object.
  Dims dims() const;
  /// Puts the sizes of x, as they are when a function is called, in the place of None.
  void complete(const Tensor& x);

 private:
  enum class Kind { none, number, list, tensor };
  Kind kind_ = Kind::none;
  std::int64_t number_ = 0;
  Tensor whole_;
  std::vector<Dim> dims_;
  std::vector<Tensor> tensors_;  // what dims_ points to
};

/// A number, or a tensor in its place; None where the argument may be that.
class Number {
 public:
  void set(nb::handle object);
  bool is_none() const { return number_.is_none(); }
  /// The tensor that was given, or null.
  const Tensor* tensor() const { return tensor_.defined() ? &tensor_ : nullptr; }
  /// The number that was given.
  double value() const { return value_; }
  const Scalar& scalar() const { return number_; }
  /// Points into this object.
  Operand operand() const;

 private:
  Scalar number_ = None;
  double value_ = 0;
  Tensor tensor_;
};

/// An integer of 32 bits, or a scalar tensor of integers whose value is known while the graph is built.
class Integer {
 public:
  void set(nb::handle object);
  operator int() const { return value_; }

 private:
  int value_ = 0;
};

/// Text or None; of a dtype its name.
class Label {
 public:
  void set(nb::handle object);
  Name name() const { return given_ ? Name(text_) : Name(None); }
  bool given() const { return given_; }
  const std::string& text() const { return text_; }

 private:
  bool given_ = false;
  std::string text_;
};

/// `what` is the prefix of error messages, or null.
Tensors to_tensors(nb::handle list, const char* what);
nb::list to_list(const Tensors& tensors);
Axes to_axes(nb::handle object, const char* what);
/// `what` followed by `line`; `line` alone if `what` is null.
std::string prefixed(const char* what, const std::string& line);
/// What an object is, for errors.
std::string type_of(nb::handle object);
/// A dtype by its name or NumPy's; not given for None.
DType to_dtype(nb::handle object);
/// An integer of Python's or NumPy's, or the value of a scalar tensor of integers. Throws TypeError for anything else.
/// Here and below `what` is the prefix of error messages.
std::int64_t to_int(nb::handle object, const char* what);
bool is_int(nb::handle object);
/// A number or None.
Scalar to_scalar(nb::handle object, const char* what);
/// Python's shape: a tuple with None for unknown sizes, or None for an unknown rank.
nb::object to_tuple(const Shape& shape);

/// Keras builds graphs: what its functions do to variables is recorded, and done when a function is called.
struct Recorded {
  K::Scope scope{K::Scope::kSymbolic};
};

/// While it lives, other threads of Python run, and Ctrl-C reaches what this one computes.
class Computing {
 public:
  Computing();
  ~Computing();

 private:
  nb::gil_scoped_release others_;
};

/// x[key]
Tensor item(const Tensor& x, nb::handle key);
/// The same for an array: NumPy's rules, and its value at once.
Tensor array_item(const Tensor& x, nb::handle key);
/// An array with other elements at x[key]: of a value that has or takes its dtype, or one of that kind.
Tensor array_with(const Tensor& x, nb::handle key, nb::handle value);
/// The Python object of what a function of kassette.numpy computed: an array, whose operators are those of
/// kassette.numpy. What is symbolic stays Keras' own.
nb::object to_array(const Tensor& x);
/// Gives what an op computed the name that was asked for, which its Python object keeps.
nb::object named(const Tensor& x, const Label& name);
/// The names of the scopes around, each with a slash behind it.
std::string scope_names();

void bind_tensor(nb::module_& m);
void bind_math(nb::module_& m);
/// The module numpy within m; python/make_numpy.py writes it.
void bind_numpy(nb::module_& m);
void bind_networks(nb::module_& m);
void bind_control(nb::module_& m);
void bind_distributed(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_profile(nb::module_& m);
/// Has the functions of a module name the argument that does not fit.
void explain_arguments(nb::module_& m);
/// Binds the functions by which kassette._arguments checks whether an argument fits.
void bind_checks(nb::module_& m);

}  // namespace python
}  // namespace kassette

// Casters throw if an object does not convert. kassette._arguments puts the name of the argument before the message; it
// knows the types below by name.
namespace nanobind {
namespace detail {

#define KASSETTE_SET_CASTER(T, name) \
  template <> \
  struct type_caster<T> { \
    NB_TYPE_CASTER(T, const_name(name)) \
    bool from_python(handle src, uint8_t, cleanup_list*) { \
      value.set(src); \
      return true; \
    } \
  };
KASSETTE_SET_CASTER(kassette::python::Value, "Value")
KASSETTE_SET_CASTER(kassette::python::Sizes, "Shape")
KASSETTE_SET_CASTER(kassette::python::Label, "Text")
KASSETTE_SET_CASTER(kassette::python::Number, "Number")
KASSETTE_SET_CASTER(kassette::python::Integer, "Integer")
#undef KASSETTE_SET_CASTER

template <>
struct type_caster<kassette::DType> {
  NB_TYPE_CASTER(kassette::DType, const_name("DType"))
  bool from_python(handle src, uint8_t, cleanup_list*) {
    value = kassette::python::to_dtype(src);
    return true;
  }
  static handle from_cpp(kassette::DType d, rv_policy, cleanup_list*) { return PyUnicode_InternFromString(d.name()); }
};
template <>
struct type_caster<kassette::Tensor> {
  NB_TYPE_CASTER(kassette::Tensor, const_name("Tensor"))
  bool from_python(handle src, uint8_t, cleanup_list*) {
    const kassette::Tensor* t = kassette::python::tensor_of(src);
    if (t) value = *t;
    return t != nullptr;
  }
  static handle from_cpp(const kassette::Tensor& t, rv_policy, cleanup_list*) {
    return kassette::python::to_python(t).release();
  }
};
template <>
struct type_caster<kassette::Tensors> {
  NB_TYPE_CASTER(kassette::Tensors, const_name("list"))
  bool from_python(handle src, uint8_t, cleanup_list*) {
    value = kassette::python::to_tensors(src, nullptr);
    return true;
  }
  static handle from_cpp(const kassette::Tensors& t, rv_policy, cleanup_list*) {
    return kassette::python::to_list(t).release();
  }
};

}  // namespace detail
}  // namespace nanobind

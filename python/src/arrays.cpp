// python/src/arrays.cpp - the arguments and the results of the functions of kassette.numpy.
#include "arrays.h"

#include <algorithm>

namespace kassette {
namespace python {
namespace {

/// The dtype of an array of such numbers; that of nothing is floatx.
DType dtype_of(Value::Numbers numbers) {
  switch (numbers) {
    case Value::Numbers::bools: return bool_;
    case Value::Numbers::integers: return int64;
    default: return None;
  }
}

void make_array(Value& x, Value::Numbers numbers) {
  if (!x.has_dtype()) x.become(numpy::array(x.operand(), dtype_of(numbers)));
}

}  // namespace

void settle(std::initializer_list<Value*> values) {
  if (std::any_of(values.begin(), values.end(), [](const Value* x) { return x->has_dtype(); })) return;
  Value::Numbers widest = Value::Numbers::nothing;
  for (const Value* x : values) widest = std::max(widest, x->numbers());
  const bool lists = std::any_of(values.begin(), values.end(), [](const Value* x) { return x->is_list(); });
  // A number beside a list takes the list's dtype.
  for (Value* x : values)
    if (!x->is_none() && x->is_list() == lists) make_array(*x, widest);
}

Tensor array_of(const Value& x) {
  if (x.is_none()) return Tensor();
  if (x.tensor()) return *x.tensor();
  return numpy::array(x.operand(), x.has_dtype() ? DType() : dtype_of(x.numbers()));
}

Tensors to_arrays(nb::handle list, const char* what) {
  Tensors arrays;
  if (const Tensor* one = tensor_of(list)) {  // its parts along the first axis
    for (const Tensor& part : numpy::unstack(*one)) arrays.push_back(part);
    return arrays;
  }
  if (!nb::hasattr(list, "__iter__"))
    throw TypeError(prefixed(what, "a list of arrays is expected, not " + type_of(list)).c_str());
  for (nb::handle item : nb::iter(list)) {
    const Value x(item, what);
    if (x.is_none()) throw TypeError(prefixed(what, "None where an array is expected").c_str());
    arrays.push_back(array_of(x));
  }
  return arrays;
}

SignalArrays to_signal(nb::handle x, const char* what) {
  auto one = [&](nb::handle part) {
    Value v(part, what);
    if (v.is_none()) throw TypeError(prefixed(what, "None where an array is expected").c_str());
    settle({&v});
    return array_of(v);
  };
  if (nb::isinstance<nb::tuple>(x) && nb::len(x) == 2) return {{one(x[0]), one(x[1])}};
  return {{one(x), Tensor()}};
}

nb::list to_array(const Tensors& tensors) {
  nb::list list;
  for (const Tensor& t : tensors) list.append(to_array(t));
  return list;
}

nb::object to_record(const char* name, std::initializer_list<const char*> fields,
                     std::initializer_list<nb::object> values) {
  static PyObject* types = nb::dict().release().ptr();  // as long as the module
  const nb::str key(name);
  if (!PyDict_Contains(types, key.ptr())) {
    nb::list names;
    for (const char* field : fields) names.append(field);
    nb::object type = nb::module_::import_("collections").attr("namedtuple")(key, names);
    type.attr("__module__") = "kassette.numpy";
    PyDict_SetItem(types, key.ptr(), type.ptr());
  }
  nb::list items;
  for (const nb::object& value : values) items.append(value);
  return nb::handle(PyDict_GetItem(types, key.ptr()))(*items);
}

}  // namespace python
}  // namespace kassette

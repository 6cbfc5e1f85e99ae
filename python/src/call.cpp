// python/src/call.cpp - the functions of the module, with one line for arguments that do not fit.
#include "convert.h"

#include <structmember.h>

#include <cstddef>

namespace kassette {
namespace python {
namespace {

/// A wrapped nanobind function. If a call fails, kassette._arguments finds the argument at fault.
struct Call {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
};

nb::object arguments_module() { return nb::module_::import_("kassette._arguments"); }

/// Replaces the current exception if a better message can be made. Exceptions of user code pass unchanged.
void explain(PyObject* self, PyObject* const* args, std::size_t nargs, PyObject* names) {
  PyObject* kind = PyErr_Occurred();
  if (kind != PyExc_TypeError && kind != PyExc_ValueError) return;
  nb::python_error error;  // takes it
  try {
    nb::list given;
    for (std::size_t i = 0; i < nargs; ++i) given.append(nb::handle(args[i]));
    nb::dict named;
    for (std::size_t i = 0; names && i < static_cast<std::size_t>(PyTuple_GET_SIZE(names)); ++i)
      named[nb::handle(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)))] = nb::handle(args[nargs + i]);
    nb::object line = arguments_module().attr("explain")(nb::handle(self), nb::str(error.value()), given, named);
    if (!line.is_none()) {
      PyErr_SetObject(kind, line.ptr());
      return;
    }
  } catch (const std::exception&) {
    PyErr_Clear();
  }
  error.restore();
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  PyObject* result = PyObject_Vectorcall(reinterpret_cast<Call*>(self)->function, args, nargsf, names);
  if (!result) explain(self, args, static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)), names);
  return result;
}

/// Looks up attribute `name` of the wrapped function.
PyObject* of_function(PyObject* self, void* name) {
  return PyObject_GetAttrString(reinterpret_cast<Call*>(self)->function, static_cast<const char*>(name));
}
PyObject* signature(PyObject* self, void*) {
  try {
    return arguments_module().attr("signature")(nb::handle(self)).release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
    return nullptr;
  }
}
PyObject* by_name(PyObject* self, PyObject*) { return of_function(self, const_cast<char*>("__name__")); }
PyObject* text(PyObject* self) {
  return PyUnicode_FromFormat("<kassette function %U>", nb::steal<nb::str>(by_name(self, nullptr)).ptr());
}
void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<Call*>(self)->function);
  type->tp_free(self);
  Py_DECREF(type);
}

char kName[] = "__name__", kQualified[] = "__qualname__", kDoc[] = "__doc__", kSignature[] = "__nb_signature__";
PyGetSetDef properties[] = {{kName, of_function, nullptr, nullptr, kName},
                            {kQualified, of_function, nullptr, nullptr, kQualified},
                            {kDoc, of_function, nullptr, nullptr, kDoc},
                            {kSignature, of_function, nullptr, nullptr, kSignature},
                            {"__signature__", signature, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", by_name, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Call, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                       {Py_tp_repr, reinterpret_cast<void*>(&text)},
                       {Py_tp_getset, properties},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {
    "kassette._core.Call", sizeof(Call), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    slots};

/// Defines a function that accepts only a T: kassette._arguments calls it to find out whether an argument converts.
template <class T>
void check(nb::module_& m, const char* name) {
  m.def(
      name, [](const T&) {}, nb::arg("x").none());
}

}  // namespace

void explain_arguments(nb::module_& m) {
  static PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  nb::dict functions = nb::cast<nb::dict>(m.attr("__dict__"));
  for (nb::handle name : functions.keys()) {
    nb::object function = functions[name];
    if (!nb::hasattr(function, "__nb_signature__") || PyType_Check(function.ptr())) continue;
    auto* c = PyObject_New(Call, reinterpret_cast<PyTypeObject*>(type));
    if (!c) throw nb::python_error();
    c->call = &call;
    c->function = function.release().ptr();
    functions[name] = nb::steal(reinterpret_cast<PyObject*>(c));
  }
}

void bind_checks(nb::module_& m) {
  check<Value>(m, "check_value"), check<Sizes>(m, "check_shape"), check<Label>(m, "check_text"),
      check<DType>(m, "check_dtype");
  check<Tensors>(m, "check_tensors"), check<Number>(m, "check_number"), check<Integer>(m, "check_integer");
}

}  // namespace python
}  // namespace kassette

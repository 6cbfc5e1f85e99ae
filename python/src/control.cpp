// python/src/control.cpp - functions, gradients, state, loops and branches.
#include <kassette/runtime.h>

#include <nanobind/stl/string.h>

#include <memory>

#include "convert.h"

namespace kassette {
namespace python {
namespace {

using nb::arg;

/// Converts the result of a Python callable to a tensor.
Tensor tensor_from(nb::handle object, const char* what) {
  if (const Tensor* t = tensor_of(object)) return *t;
  return K::constant(Value(object, what).operand());
}

/// One branch: a value, or a callable that is called only if needed.
class PythonBranch {
 public:
  PythonBranch(nb::handle object, const char* what) : call_{object, what} {
    if (!PyCallable_Check(object.ptr())) value_ = Value(object, what);
  }
  Branch branch() {
    if (PyCallable_Check(call_.function.ptr())) return Branch(call_);
    return Branch(value_.operand());
  }
  Value& value() { return value_; }

 private:
  struct Call {
    nb::handle function;
    const char* what;
    Tensor operator()() const { return tensor_from(function(), what); }
  };
  Call call_;
  Value value_;
};

/// The first of a pair of a variable and its value.
Tensor variable_of(nb::handle pair, const char* what) {
  const bool is_pair = (PyTuple_Check(pair.ptr()) || PyList_Check(pair.ptr())) && nb::len(pair) == 2;
  const Tensor* v = is_pair ? tensor_of(pair[0]) : nullptr;
  if (!v)
    throw TypeError(prefixed(what, "a pair of a variable and a value is expected, not " +
                                       type_of(is_pair ? nb::handle(pair[0]) : pair))
                        .c_str());
  return *v;
}

K::Step step_from(nb::handle result) {
  if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr()))
    throw TypeError("rnn", "", "the step returned no pair", "it must return the output and the list of new states");
  if (nb::len(result) != 2)
    throw ValueError("rnn", "", "the step returned no pair", "it must return the output and the list of new states");
  return {tensor_from(result[0], "rnn: the output that the step returned"),
          to_tensors(result[1], "rnn: the states that the step returned")};
}

/// What K.function returns.
class PythonFunction {
 public:
  PythonFunction(const Tensors& in, const Tensors& out, nb::handle updates, const Tensors& fetches, nb::object arrange)
      : arrange_(std::move(arrange)) {
    for (const Tensor& t : in) dtypes_.push_back(t.dtype());
    K::FunctionOptions options;
    for (nb::handle u : nb::iter(updates)) {
      if (const Tensor* op = tensor_of(u)) options.updates.push_back(*op);
      else
        options.updates.push_back(
            K::Update(variable_of(u, "function: updates"), tensor_from(u[1], "function: updates")));
    }
    options.fetches = fetches;
    function_ = K::function(in, out, options);
  }
  nb::list operator()(nb::handle inputs, const nb::args& more) const {
    if (nb::len(nb::handle(more)) > 0)
      throw TypeError("function", "", "is called with several arguments", "the values must be given as one list");
    nb::object arranged;
    if (!is_plain(inputs)) inputs = arranged = arrange_(inputs);
    Tensors feeds;
    std::size_t n = nb::len(inputs), i = 0;
    feeds.reserve(static_cast<std::int64_t>(n));
    for (nb::handle item : nb::iter(inputs)) {
      feeds.push_back(feed(item, i < dtypes_.size() ? dtypes_[i] : DType()));
      ++i;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();  // while the arrays were copied
    Tensors results;
    {
      Computing now;
      results = function_(feeds);
    }
    nb::list list;
    for (const Tensor& t : results) list.append(to_numpy(t));
    return list;
  }

 private:
  /// Whether it is a list of one value for each input, and none of them a list or a dict. Anything else is arranged.
  bool is_plain(nb::handle inputs) const {
    if ((!PyList_Check(inputs.ptr()) && !PyTuple_Check(inputs.ptr())) || nb::len(inputs) != dtypes_.size())
      return false;
    for (nb::handle item : nb::iter(inputs))
      if (PyList_Check(item.ptr()) || PyTuple_Check(item.ptr()) || PyDict_Check(item.ptr())) return false;
    return true;
  }
  static Tensor feed(nb::handle item, DType dtype) {
    if (is_array(item)) return from_numpy(item);
    if (const Tensor* t = tensor_of(item)) return t->symbolic() ? K::eval(*t) : *t;
    if (item.is_none()) return Tensor();
    Value v(item);
    return v.is_sparse() ? v.sparse() : K::constant(v.operand(), dtype);
  }
  nb::object arrange_;  // refers to no tensor: Python's collector does not look into this object
  std::vector<DType> dtypes_;
  Function function_;
};

/// A scope of C++ as a context manager of Python.
template <class S, class A>
class PythonScope {
 public:
  explicit PythonScope(A argument) : argument_(std::move(argument)) {}
  void enter() { scope_ = std::make_unique<S>(argument_); }
  void exit(const nb::args&) { scope_.reset(); }

 private:
  A argument_;
  std::unique_ptr<S> scope_;
};

/// K.name_scope, as TensorFlow has it: a name that ends with a slash is a whole one, and without a name names begin
/// anew.
class PythonNames {
 public:
  explicit PythonNames(std::string name) : name_(std::move(name)) {}
  PythonNames(PythonNames&&) = default;
  std::string enter() {
    scopes_.clear();
    const bool whole = name_.empty() || name_.back() == '/';
    if (whole) scopes_.push_back(std::make_unique<K::NameScope>(None));
    const std::string own = name_.substr(0, name_.size() - (whole && !name_.empty()));
    if (!own.empty()) scopes_.push_back(std::make_unique<K::NameScope>(own));
    return scope_names();
  }
  void exit(const nb::args&) {
    while (!scopes_.empty()) scopes_.pop_back();
  }

 private:
  std::string name_;
  std::vector<std::unique_ptr<K::NameScope>> scopes_;
};

struct SeveralResults {};

/// K.map_fn of one result. Throws SeveralResults if fn returned a list of tensors.
template <class F>
Tensor mapped_to_one(const F& call, const Tensors& elems, const Label& name, DType dtype) {
  auto one = [&](const Tensors& x) {
    nb::object y = call(x);
    if (PyList_Check(y.ptr()) || PyTuple_Check(y.ptr()))
      for (nb::handle part : nb::iter(y))
        if (tensor_of(part)) {
          if (elems.size() > 1 && !dtype.given()) throw SeveralResults();
          throw TypeError("map_fn", "fn", "returned a list of tensors", "", "give dtype as a list, one for each");
        }
    return tensor_from(y, "map_fn: what fn returned");
  };
  return K::map_fn(one, elems, name.name(), dtype);
}

nb::object value_of(const Value& x) {
  Tensor value;
  {
    Operand o = x.operand();
    Computing now;
    value = K::eval(o);
  }
  return to_numpy(value);
}

}  // namespace

std::string scope_names() {
  const std::string name = name_of(K::placeholder({}, None, None, false, "x")).c_str();
  return name.substr(0, name.size() - 1);
}

void bind_control(nb::module_& m) {
  nb::class_<PythonFunction>(m, "Function")
      .def("__call__", &PythonFunction::operator(), arg("inputs").none() = nb::none(), arg("more"));
  m.def(
      "function",
      [](const Tensors& inputs, const Tensors& outputs, nb::handle updates, const Tensors& fetches,
         nb::object arrange) { return PythonFunction(inputs, outputs, updates, fetches, std::move(arrange)); },
      arg("inputs"), arg("outputs"), arg("updates"), arg("fetches").none(), arg("arrange"));

  m.def("eval", &value_of, arg("x"));
  m.def("get_value", &value_of, arg("x"));
  m.def(
      "batch_get_value",
      [](nb::handle ops) {
        nb::list values;
        for (nb::handle x : nb::iter(ops)) values.append(value_of(Value(x)));
        return values;
      },
      arg("ops"));
  m.def(
      "set_value", [](const Tensor& x, const Value& value) { K::set_value(x, value.operand()); }, arg("x"),
      arg("value"));
  m.def(
      "batch_set_value",
      [](nb::handle tuples) {
        Tensors variables, values;
        for (nb::handle pair : nb::iter(tuples)) {
          Tensor v = variable_of(pair, "batch_set_value: tuples");
          Value x(pair[1], "batch_set_value: tuples");
          values.push_back(x.tensor() ? K::eval(*x.tensor()) : K::constant(x.operand(), v.dtype()));
          variables.push_back(v);
        }
        K::batch_set_value(variables, values);
      },
      arg("tuples"));
  m.def(
      "count_params", [](const Tensor& x) { return K::count_params(x); }, arg("x"));

  m.def(
      "update",
      [](const Tensor& x, Value& new_x) {
        new_x.take(x.dtype());
        Recorded on;
        return K::update(x, new_x.operand());
      },
      arg("x"), arg("new_x"));
  m.def(
      "update_add",
      [](const Tensor& x, Value& by) {
        by.take(x.dtype());
        Recorded on;
        return K::update_add(x, by.operand());
      },
      arg("x"), arg("increment"));
  m.def(
      "update_sub",
      [](const Tensor& x, Value& by) {
        by.take(x.dtype());
        Recorded on;
        return K::update_sub(x, by.operand());
      },
      arg("x"), arg("decrement"));
  m.def(
      "moving_average_update",
      [](const Tensor& x, Value& value, const Value& momentum) {
        value.take(x.dtype());
        Recorded on;
        return K::moving_average_update(x, value.operand(), momentum.operand());
      },
      arg("x"), arg("value"), arg("momentum"));
  m.def(
      "print_tensor",
      [](const Value& x, const Label& message) {
        Recorded on;
        return K::print_tensor(x.operand(), message.name());
      },
      arg("x"), arg("message") = "");

  m.def(
      "gradients",
      [](const Tensors& losses, const Tensors& of) {
        Recorded on;
        if (losses.empty()) throw ValueError("gradients", "loss", "is an empty list");
        Tensor sum = K::sum(losses[0]);
        for (std::int64_t i = 1; i < losses.size(); ++i) sum = sum + K::sum(losses[i]);
        return K::gradients(losses.size() == 1 ? losses[0] : sum, of);
      },
      arg("loss"), arg("variables"));
  m.def(
      "stop_gradient",
      [](nb::handle variables) -> nb::object {
        Recorded on;
        if (const Tensor* t = tensor_of(variables)) return to_python(K::stop_gradient(*t));
        return to_list(K::stop_gradient(to_tensors(variables, "stop_gradient")));
      },
      arg("variables"));
  m.def(
      "depends_on", [](const Tensor& y, const Tensor& x) { return depends_on(y, x); }, arg("y"), arg("x"));

  m.def(
      "switch",
      [](const Value& condition, nb::handle yes, nb::handle no) {
        PythonBranch then(yes, "switch: then_expression"), otherwise(no, "switch: else_expression");
        match({&then.value(), &otherwise.value()});
        Recorded on;
        return K::switch_(condition.operand(), then.branch(), otherwise.branch());
      },
      arg("condition"), arg("then_expression"), arg("else_expression"));
  m.def(
      "in_train_phase",
      [](nb::handle x, nb::handle alt, const Value& training) {
        PythonBranch then(x, "in_train_phase: x"), otherwise(alt, "in_train_phase: alt");
        match({&then.value(), &otherwise.value()});
        Recorded on;
        return K::in_train_phase(then.branch(), otherwise.branch(), training.operand());
      },
      arg("x"), arg("alt"), arg("training").none() = nb::none());
  m.def("learning_phase", [] { return K::learning_phase(); });

  m.def(
      "rnn",
      [](nb::callable step, nb::handle inputs, const Tensors& states, bool go_backwards, const Value& mask,
         const Tensors& more, bool unroll, const Value& input_length) {
        Recorded on;
        Tensors in = to_tensors(inputs, "rnn: inputs");
        K::RnnResult r =
            in.size() == 1 && tensor_of(inputs)
                ? K::rnn([&](const Tensor& x, const Tensors& s) { return step_from(step(to_python(x), to_list(s))); },
                         in, states, go_backwards, mask.operand(), more, unroll, input_length.operand())
                : K::rnn([&](const Tensors& x, const Tensors& s) { return step_from(step(to_list(x), to_list(s))); },
                         in, states, go_backwards, mask.operand(), more, unroll, input_length.operand());
        return nb::make_tuple(r.last_output, r.outputs, to_list(r.new_states));
      },
      arg("step_function"), arg("inputs"), arg("initial_states"), arg("go_backwards") = false,
      arg("mask").none() = nb::none(), arg("constants").none() = nb::none(), arg("unroll") = false,
      arg("input_length").none() = nb::none());
  m.def(
      "map_fn",
      [](nb::callable fn, nb::handle elems, const Label& name, nb::handle dtype) -> nb::object {
        Recorded on;
        Tensors in = to_tensors(elems, "map_fn");
        const bool one = tensor_of(elems) || is_array(elems);
        auto call = [&](const Tensors& x) { return one ? fn(to_python(x[0])) : fn(to_list(x)); };
        std::vector<DType> dtypes;
        if (PyList_Check(dtype.ptr()) || PyTuple_Check(dtype.ptr()))
          for (nb::handle each : nb::iter(dtype)) dtypes.push_back(to_dtype(each));
        else if (one || !dtype.is_none()) return named(mapped_to_one(call, in, name, to_dtype(dtype)), name);
        if (dtypes.empty()) {
          // Without a dtype the results are as many as the elements, with TensorFlow; ours may also be one.
          try {
            return named(mapped_to_one(call, in, name, None), name);
          } catch (const SeveralResults&) {
            for (const Tensor& t : in) dtypes.push_back(t.dtype());
          }
        }
        nb::list results = to_list(K::map_fn(
            [&](const Tensors& x) { return to_tensors(call(x), "map_fn: what fn returned"); }, in, K::DTypes(dtypes)));
        if (PyTuple_Check(dtype.is_none() ? elems.ptr() : dtype.ptr())) return nb::tuple(results);
        return results;
      },
      arg("fn"), arg("elems"), arg("name").none() = nb::none(), arg("dtype").none() = nb::none());
  auto fold = [&m](const char* name, auto f) {
    m.def(
        name,
        [f, what = std::string(name) + ": what fn returned"](const nb::callable& fn, const Value& elems,
                                                             const Value& initializer, const Label& label) {
          Recorded on;
          return named(f([&](const Tensor& acc,
                             const Tensor& x) { return tensor_from(fn(to_python(acc), to_python(x)), what.c_str()); },
                         elems.operand(), initializer.operand(), label.name()),
                       label);
        },
        arg("fn"), arg("elems"), arg("initializer").none() = nb::none(), arg("name").none() = nb::none());
  };
  fold("foldl", [](auto&&... a) { return K::foldl(a...); });
  fold("foldr", [](auto&&... a) { return K::foldr(a...); });

  nb::class_<PythonNames>(m, "NameScope").def("__enter__", &PythonNames::enter).def("__exit__", &PythonNames::exit);
  m.def(
      "name_scope",
      [](const Label& name, const Label& default_name, nb::handle) {
        return PythonNames(name.given() ? name.text() : default_name.text());
      },
      arg("name").none(), arg("default_name").none() = nb::none(), arg("values").none() = nb::none());
  using After = PythonScope<K::ControlDependencies, Tensors>;
  nb::class_<After>(m, "ControlDependencies").def("__enter__", &After::enter).def("__exit__", &After::exit);
  m.def(
      "control_dependencies", [](const Tensors& updates) { return After(updates); }, arg("control_inputs").none());

  m.def("epsilon", &K::epsilon);
  m.def("floatx", &K::floatx);
  m.def("image_data_format", [] { return nb::str(K::image_data_format().c_str()); });
  m.def("set_epsilon", &K::set_epsilon, arg("e"));
  m.def(
      "set_floatx", [](const Label& name) { K::set_floatx(name.name()); }, arg("floatx"));
  m.def(
      "set_image_data_format", [](const Label& name) { K::set_image_data_format(name.name()); }, arg("data_format"));
  m.def("clear_session", &K::clear_session);
  m.def(
      "get_uid", [](const Label& prefix) { return K::get_uid(prefix.name()); }, arg("prefix") = "");
  m.def("reset_uids", &K::reset_uids);
  m.def("manual_variable_initialization", &K::manual_variable_initialization, arg("value"));
  m.def("live_nodes", &live_nodes);
}

}  // namespace python
}  // namespace kassette

// python/src/indexing.cpp - x[...]: NumPy's basic indexing, with bounds of slices that may wait for placeholders.
#include <nanobind/stl/string.h>

#include <deque>
#include <vector>

#include "arrays.h"

namespace kassette {
namespace python {
namespace {

/// A bound of a slice: absent, an integer, or a tensor whose value is read when the function is called.
struct Bound {
  bool given = false;
  std::int64_t number = 0;
  Tensor tensor;

  Bound(nb::handle slice, const char* name) {
    nb::object v = slice.attr(name);
    if (v.is_none()) return;
    given = true;
    if (const Tensor* t = tensor_of(v)) {
      if (!t->dtype().is_integer() || t->ndim() > 0)
        throw TypeError("", "", ("a slice with a tensor of " + std::string(t->dtype().name())).c_str(),
                        "a bound is an integer scalar");
      if (t->symbolic() || K::is_variable(*t)) tensor = *t;
      else number = t->item<std::int64_t>();
    } else {
      number = to_int(v, "a slice");
    }
  }
  bool waits() const { return tensor.defined(); }
  Scalar scalar() const { return given ? Scalar(static_cast<long>(number)) : Scalar(None); }
  /// Where the bound lies in an axis of n elements: negative ones count from the end, and what is outside is clipped.
  Tensor within(const Tensor& n) const { return K::clip(from_front(n), 0, n); }
  /// The same for the element behind it, where a slice walks backwards.
  Tensor behind(const Tensor& n) const { return K::clip(from_front(n) + 1, 0, n); }

 private:
  Tensor from_front(const Tensor& n) const {
    if (!waits()) return number < 0 ? n + number : K::constant(static_cast<long>(number), int64);
    const Tensor at = K::cast(tensor, int64);
    return at + n * K::cast(at < 0, int64);
  }
};

/// One slice whose bounds are tensors: the first element and how many there are, and the step over these.
struct Range {
  Tensor start, count;
  Index rest;
};
Range range_of(const Tensor& x, int axis, const Bound& from, const Bound& to, std::int64_t step) {
  const Tensor n = K::cast(K::shape(x), int64)[axis], zero = K::constant(0, int64);
  const Index rest = slice(None, None, static_cast<long>(step));
  if (step > 0) {
    Tensor start = from.given ? from.within(n) : zero;
    return {start, K::maximum((to.given ? to.within(n) : n) - start, 0), rest};
  }
  // From the last element back: those from `to` + 1 to `from`, in the other order.
  Tensor start = to.given ? to.behind(n) : zero;
  return {start, K::maximum((from.given ? from.behind(n) : n) - start, 0), rest};
}

/// NumPy's integer without axes, which it counts among the integers too.
bool is_array_of_one(nb::handle object) {
  return is_array(object) && nb::cast<int>(object.attr("ndim")) == 0 && PyIndex_Check(object.ptr());
}

/// A list among the indices as NumPy's array of integers or bools; an empty one selects nothing.
nb::object listed(nb::handle object) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("asarray")(object);
  return nb::len(object) ? array : array.attr("astype")("int64");
}

/// How many axes of x an index takes: a mask as many as it has.
int axes_of(nb::handle object) {
  if (const Tensor* t = tensor_of(object)) return t->dtype() == bool_ ? t->ndim() : 1;
  const bool mask = is_array(object) && nb::cast<std::string>(object.attr("dtype").attr("kind")) == "b";
  return mask ? nb::cast<int>(object.attr("ndim")) : 1;
}

/// The indices of x[...]: a tuple, or as with TensorFlow a list of them.
class Indices {
 public:
  Indices(const Tensor& x, nb::handle key) : x_(x) {
    if (!PyTuple_Check(key.ptr()) && !PyList_Check(key.ptr())) {
      add(key);
      return;
    }
    const std::size_t n = nb::len(key);
    if (n > kMaxRank) throw ValueError("an index of more than 8 axes");
    for (std::size_t i = 0; i < n; ++i) ellipsis_ = key[i].ptr() == Py_Ellipsis ? static_cast<int>(i) : ellipsis_;
    for (std::size_t i = 0; i < n; ++i)
      taken_ += key[i].is_none() || static_cast<int>(i) == ellipsis_ ? 0 : axes_of(key[i]);
    for (std::size_t i = 0; i < n; ++i) {
      held_.push_back(nb::borrow(key[i]));
      add(held_.back());
    }
  }
  Tensor of() const {
    Tensor y = x_;
    if (!ranges_.empty()) {
      std::vector<Dim> start(static_cast<std::size_t>(x_.ndim()), Dim(0)), size(start.size(), Dim(-1));
      for (const auto& [axis, range] : ranges_) {
        start[static_cast<std::size_t>(axis)] = Dim(range.start),
        size[static_cast<std::size_t>(axis)] = Dim(range.count);
      }
      y = K::slice(x_, start, size);
    }
    if (list_.empty()) return y[ellipsis];
    Index i[kMaxRank];
    for (std::size_t k = 0; k < list_.size(); ++k) i[k] = list_[k];
    return list_.size() == 1 ? y[i[0]] : y(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]);
  }
  /// x with that value at the indices, none of which waits for a placeholder.
  Tensor with(const Operand& value) const {
    if (!ranges_.empty()) throw TypeError("", "", "a bound of a slice is symbolic", "its value must be known");
    if (list_.empty()) return x_.at(ellipsis).set(value);
    Index i[kMaxRank];
    for (std::size_t k = 0; k < list_.size(); ++k) i[k] = list_[k];
    return x_.at(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]).set(value);
  }

 private:
  void add(nb::handle object) {
    if (object.is_none()) return list_.push_back(newaxis);
    if (object.ptr() == Py_Ellipsis) {
      list_.push_back(ellipsis);
      axis_ = x_.ndim() - (taken_ - axis_);
      return;
    }
    list_.push_back(PySlice_Check(object.ptr()) ? sliced(object) : single(object));
    axis_ += axes_of(object);
  }
  Index single(nb::handle object) {
    if (const Tensor* t = tensor_of(object)) return *t;
    if (is_int(object) || is_array_of_one(object)) return static_cast<long>(to_int(object, "an index"));
    if (is_array(object)) return arrays_.emplace_back(from_numpy(object));
    if (PyList_Check(object.ptr())) return arrays_.emplace_back(from_numpy(listed(object)));
    throw TypeError(
        (std::string("an index is an integer, a slice, ..., None, a tensor or an array, not ") + type_of(object))
            .c_str());
  }
  Index sliced(nb::handle object) {
    Bound from(object, "start"), to(object, "stop"), step(object, "step");
    if (step.waits())
      throw TypeError("", "", "a slice whose step is a tensor", "a step is an integer", "K.gather takes rows");
    if (!from.waits() && !to.waits()) return slice(from.scalar(), to.scalar(), step.scalar());
    if (step.given && step.number == 0) return slice(None, None, 0L);  // throws
    if (x_.ndim() < 0)
      throw ValueError("", "", "a slice with a tensor, of a tensor of unknown rank", "the rank must be known");
    if (axis_ >= x_.ndim()) throw ValueError("an index of more axes than the tensor has");
    ranges_.push_back({axis_, range_of(x_, axis_, from, to, step.given ? step.number : 1)});
    return ranges_.back().second.rest;
  }

  const Tensor& x_;
  int axis_ = 0, taken_ = 0, ellipsis_ = -1;
  std::vector<Index> list_;
  // What list_ points to.
  std::vector<nb::object> held_;
  std::deque<Tensor> arrays_;
  std::vector<std::pair<int, Range>> ranges_;
};

}  // namespace

Tensor item(const Tensor& x, nb::handle key) {
  Recorded on;
  return Indices(x, key).of();
}

/// A list is an array of indices here.
static nb::object key_of_array(nb::handle key) {
  return PyList_Check(key.ptr()) ? nb::object(nb::make_tuple(key)) : nb::borrow(key);
}
Tensor array_item(const Tensor& x, nb::handle key) { return Indices(x, key_of_array(key)).of(); }

Tensor array_with(const Tensor& x, nb::handle key, nb::handle value) {
  const nb::object indices = key_of_array(key);
  Value v(value, "set: value");
  if (v.is_none()) throw TypeError("set: value: None where an array or a number is expected");
  if (!v.has_dtype()) return Indices(x, indices).with(v.operand());
  Tensor array = array_of(v);
  if (array.symbolic()) throw TypeError("", "", "a symbolic tensor has no value to assign", "", "use K.eval");
  const DType from = array.dtype(), to = x.dtype();
  const bool one_kind = (from.is_float() && to.is_float()) || (from.is_integer() && to.is_integer());
  return Indices(x, indices).with(one_kind ? numpy::astype(array, to) : array);
}

}  // namespace python
}  // namespace kassette

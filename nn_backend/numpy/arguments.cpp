// nn_backend/numpy/arguments.cpp - the dtypes of arguments, and their promotion.
#include "nn_backend/numpy/arguments.h"

#include <algorithm>

#include "core/rank.h"
#include "core/text.h"
#include "ops/engine/dims.h"
#include "ops/shape/index.h"
#include "ops/shape/shaping.h"

namespace kassette::numpy {
using namespace ops;
namespace {

/// The signed integer of that many bytes.
DType signed_of(int bytes) { return bytes == 2 ? int16 : bytes == 4 ? int32 : int64; }

}  // namespace

DType own_dtype(const Operand& x) {
  switch (Access::kind(x)) {
    case Scalar::kTensor: return tensor_of(x).defined() ? Access::desc(tensor_of(x)).dtype : DType();
    case Scalar::kArray:
    case Scalar::kShaped: return Access::dtype(x);
    case Scalar::kList: {
      auto* items = static_cast<const Operand*>(Access::pointer(x));
      DType found;
      for (std::size_t i = 0; i < Access::count(x) && !found.given(); ++i) found = own_dtype(items[i]);
      return found;
    }
    default: return DType();
  }
}

DType promoted(DType a, DType b, const char* what, const char* first, const char* second) {
  if (a == b) return a;
  if (a.is_float() && b.is_float()) return a.size() == b.size() ? float32 : a.size() > b.size() ? a : b;
  if (a.is_integer() && b.is_integer()) {
    if (a.is_unsigned() == b.is_unsigned()) return a.size() > b.size() ? a : b;
    const DType without = a.is_unsigned() ? a : b, with = a.is_unsigned() ? b : a;
    if (with.size() > without.size()) return with;
    if (without.size() < 8) return signed_of(2 * without.size());
  }
  fail<TypeError>({what, second}, "is ", b.name(), " and ", first, " is ", a.name(), kRemedy,
                  "cast one of them (K::cast)");
}

DType widest(DType dtype) { return dtype.is_float() ? dtype : dtype.is_unsigned() ? uint64 : int64; }

/// Makes the operand point to its tensor of that dtype, which is put into `made` if it is another than was given.
static void convert_operand(Operand& x, DType dtype, const At& at, Tensor& made) {
  if (is_tensor_operand(x)) {
    if (!tensor_of(x).defined()) fail_empty(at);
    if (Access::desc(tensor_of(x)).dtype == dtype) return;
    made = cast(tensor_of(x), dtype);
  } else {
    // A number beside a tensor is converted by the op, to the tensor's device as well.
    if (dtype.given() && Access::kind(x) <= Scalar::kFloat && Access::kind(x) != Scalar::kNone) return;
    made = as_tensor(x, dtype, at);
  }
  x = Operand(made);
}

Pair::Pair(const Operand& x, const Operand& y, const char* what, const char* first, const char* second) : x_(x), y_(y) {
  const DType a = own_dtype(x), b = own_dtype(y);
  const DType dtype = !a.given() ? b : !b.given() ? a : promoted(a, b, what, first, second);
  convert_operand(x_, dtype, {what, first}, made_x_);
  convert_operand(y_, dtype, {what, second}, made_y_);
}

Tensors of_one_dtype(const char* what, const Tensors& x) {
  if (x.empty()) fail<ValueError>({what, "x"}, "is an empty list", kExpected, "there must be a tensor");
  DType dtype;
  for (const Tensor& t : x) {
    if (!t.defined()) fail_empty({what, "x"});
    dtype = dtype.given() ? promoted(dtype, t.dtype(), what) : t.dtype();
  }
  Tensors all;
  for (const Tensor& t : x) all.push_back(ops::cast(t, dtype));
  return all;
}

Integers integers_of(const Operand& x, const At& at) {
  const Tensor t = is_tensor_operand(x) ? tensor_of(x) : as_tensor(x, int64, at);
  if (!t.defined()) fail_empty(at);
  if (!t.dtype().is_integer()) fail<TypeError>(at, "holds ", t.dtype(), kExpected, "it must hold integers");
  if (t.symbolic()) fail<ValueError>(at, "depends on a placeholder", kExpected, "it must be known");
  const Values<std::int64_t> all = t.to_vector<std::int64_t>();
  return {std::vector<std::int64_t>(all.begin(), all.end()), t.shape()};
}

int known_rank(const Tensor& x, const At& at) {
  const int rank = Access::desc(x).rank;
  if (rank < 0) fail_unknown_rank(at);
  return rank;
}
std::int64_t known_size(const Tensor& x, int axis, const At& at) {
  const std::int64_t n = Access::desc(x).dims[axis];
  if (n < 0) fail<ValueError>(at, "of shape ", x.shape(), kExpected, "the size of axis ", axis, " must be known");
  return n;
}
const Axes& one_axis(const At& at, const Axes& axis) {
  if (axis.size_ >= 0 && axis.size_ != 1)
    fail<ValueError>(at, "lists ", axis.size_, " axes", kExpected, "it must be one, or None");
  return axis;
}
int one_axis_of(const char* what, Tensor& x, const Axes& axis) {
  if (one_axis({what, "axis"}, axis).size_ < 0) {
    x = flatten(x, 0);
    return 0;
  }
  (void)known_rank(x, {what, "x"});
  return place_axis(what, axis.axes_[0], Access::desc(x));
}
std::vector<int> places_of(const At& at, const Axes& axes, int rank) {
  std::vector<int> places;
  if (axes.size_ < 0) {
    for (int i = 0; i < rank; ++i) places.push_back(i);
    return places;
  }
  check_length(at, axes);
  for (int i = 0; i < axes.size_; ++i) {
    const int axis = from_front(axes.axes_[i], rank);
    if (axis < 0)
      fail<ValueError>(at, axes.axes_[i], " is out of range", kExpected, "there are ", rank,
                       rank == 1 ? " axis" : " axes");
    if (std::find(places.begin(), places.end(), axis) != places.end())
      fail<ValueError>(at, "lists ", axes.axes_[i], " twice", kExpected, "axes must differ");
    places.push_back(axis);
  }
  return places;
}

Tensor slice_along(const Tensor& x, int axis, Scalar start, Scalar stop, std::int64_t step) {
  auto list = Ref<IndexList>::adopt(new IndexList);
  if (axis < 0) list->push({.kind = IndexList::kEllipsis});
  for (int i = 0; i < axis; ++i) list->push({});
  list->push({.kind = IndexList::kSlice,
              .has_start = !start.is_none(),
              .has_stop = !stop.is_none(),
              .start = start.is_none() ? 0 : Access::int_value(start),
              .stop = stop.is_none() ? 0 : Access::int_value(stop),
              .step = step});
  for (int i = axis + 1; i < 0; ++i) list->push({});
  return ops::index(x, Ref<Extra>(list.get()));
}

Tensor size_along(const Tensor& x, int axis) {
  const TensorDesc& d = Access::desc(x);
  const int front = d.rank < 0 ? -1 : from_front(axis, d.rank);
  if (front >= 0 && d.dims[front] >= 0) return scalar_tensor(d.dims[front], int64);
  return shape_of(x, int64)[axis];
}

void SizesOf::push_size(const Tensor& x, int axis) {
  const std::int64_t n = Access::desc(x).dims[axis];
  if (n >= 0) push(n);
  else push(size_along(x, axis));
}
void SizesOf::push(const Tensor& n) {
  kept_.push_back(std::make_unique<Tensor>(n));
  dims_.push_back(*kept_.back());
}

/// The dtype that they have in common; none if all are numbers.
static DType common_dtype(const char* what, std::initializer_list<NamedOperand> arguments) {
  DType dtype;
  const char* from = nullptr;
  for (const NamedOperand& a : arguments) {
    const DType own = own_dtype(a.value);
    if (!own.given()) continue;
    dtype = from ? promoted(dtype, own, what, from, a.name) : own;
    from = from ? from : a.name;
  }
  return dtype;
}
void check_device(const Tensor& x, const Tensor& other, const At& at) {
  if (x.device() != other.device())
    fail<DeviceError>(at, "is on ", x.device(), ", another argument on ", other.device(), kRemedy, "use .to(\"",
                      other.device(), "\")");
}
Tensor beside(const Tensor& x, const Operand& argument, const Tensor& array, const At& at) {
  if (is_tensor_operand(argument)) check_device(array, x, at);
  return array.device() == x.device() ? array : array.to(x.device());
}
Tensors tensors_as(const char* what, std::initializer_list<NamedOperand> arguments, DType dtype) {
  const Tensor* place = nullptr;
  for (const NamedOperand& a : arguments)
    if (!place && is_tensor_operand(a.value)) place = &tensor_of(a.value);
  Tensors out;
  for (const NamedOperand& a : arguments) {
    const ArrayArg array(a.value, {what, a.name}, dtype);
    const Tensor t = dtype.given() ? cast(array, dtype) : array.tensor();
    out.push_back(place ? beside(*place, a.value, t, {what, a.name}) : t);
  }
  return out;
}

Tensors promoted_tensors(const char* what, std::initializer_list<NamedOperand> arguments) {
  return tensors_as(what, arguments, common_dtype(what, arguments));
}
Tensors float_tensors(const char* what, std::initializer_list<NamedOperand> arguments) {
  const DType dtype = common_dtype(what, arguments);
  return tensors_as(what, arguments, dtype.is_float() ? dtype : default_float());
}

void check_float(const Tensor& x, const At& at) {
  if (!x.dtype().is_float())
    fail<TypeError>(at, "is ", x.dtype(), ", not a float dtype", kRemedy, "cast it first (K::cast)");
}

}  // namespace kassette::numpy

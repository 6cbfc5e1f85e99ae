// nn_backend/creation.cpp - variables, placeholders, constants.
#include <kassette/backend/creation.h>

#include "core/convert.h"
#include "core/text.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {
namespace {

/// The concrete value of an operand as `dtype` (not given: floatx), without history.
Tensor value_as(const Operand& x, DType dtype, const char* what) {
  if (!dtype.given()) dtype = default_float();
  Tensor t = as_tensor(x, dtype, what);
  if (!t.defined()) fail<ValueError>(what, ": the value is an empty Tensor (an uninitialised variable?)");
  Value v = concrete_value(Access::body(t), what);
  // Memory of somebody else may be written by its owner, and a variable's is written by us.
  bool borrowed = v.storage->kind == Storage::kBorrowed;
  if (t.dtype() != dtype || borrowed) {
    Device device = t.device();
    t = host_copy(t, dtype);
    return device == cpu ? t : t.to(device);
  }
  return Access::body(t).node || !Access::body(t).storage ? t.detach() : t;
}

/// The static shape that a placeholder declares.
void declare(const Dims& shape, const Scalar& ndim, Spec& spec) {
  if (shape.whole_) fail<TypeError>("placeholder: shape is a tensor; it takes numbers and None");
  if (shape.size_ >= 0) {
    spec.rank = static_cast<std::int8_t>(shape.size_);
    for (int i = 0; i < shape.size_; ++i) {
      const Dim& d = shape.dims_[i];
      if (d.tensor_) fail<TypeError>("placeholder: shape holds a tensor; it takes numbers and None");
      if (d.value_ < 0 && d.value_ != Dim::kNoneDim)
        fail<ValueError>("placeholder: a size of ", d.value_, "; an unknown size is K::None");
      spec.dims[i] = d.value_ == Dim::kNoneDim ? kUnknown : d.value_;
    }
    return;
  }
  if (ndim.is_none()) {
    spec.rank = -1;
    return;
  }
  if (Access::kind(ndim) != Scalar::kInt) fail<TypeError>("placeholder: ndim is not an integer");
  std::int64_t n = Access::int_value(ndim);
  if (n < 0 || n > kMaxRank) fail<ValueError>("placeholder: ndim ", n, "; a rank lies between 0 and ", kMaxRank);
  spec.rank = static_cast<std::int8_t>(n);
  for (int i = 0; i < n; ++i) spec.dims[i] = kUnknown;
}

}  // namespace

Tensor variable(const Operand& value, DType dtype, Name name) {
  Tensor t = value_as(value, dtype, "variable");
  const Body& b = Access::body(t);
  return make_leaf(Leaf::variable, b, b.device, {b.storage, b.offset}, name);
}

Tensor constant(const Operand& value, DType dtype, const Dims& shape, Name) {
  if (shape.size_ >= 0 || shape.whole_) fail<NotImplementedError>("constant: shape");
  return value_as(value, dtype, "constant");
}

Tensor placeholder(const Dims& shape, Scalar ndim, DType dtype, bool sparse, Name name) {
  if (sparse) fail<NotImplementedError>("placeholder: sparse placeholders are not there yet; feed a dense tensor");
  Spec spec;
  spec.dtype = dtype.given() ? dtype : default_float();
  declare(shape, ndim, spec);
  return make_leaf(Leaf::placeholder, spec, cpu, {}, name);
}

}  // namespace backend
}  // namespace kassette

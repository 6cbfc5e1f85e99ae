// nn_backend/creation.cpp - variables, placeholders, constants.
#include <kassette/backend/creation.h>

#include <cmath>

#include "core/convert.h"
#include "core/rank.h"
#include "core/whole.h"
#include "nn_backend/configuration/settings.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dispatch.h"
#include "ops/shape/like.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"
#include "ops/sparse/sparse.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;
namespace {

/// The concrete value of an operand as `dtype` (by default floatx), without history.
Tensor value_as(const Operand& x, DType dtype, const char* what) {
  if (!dtype.given()) dtype = default_float();
  Tensor t = as_tensor(x, dtype, {what, "value"});
  if (!t.defined()) fail_empty({what, "value"});
  // The owner of borrowed memory may write to it, and updates write to a variable's.
  const TensorDesc& b = Access::desc(t);
  bool borrowed = b.storage && b.storage->kind == Storage::kBorrowed;
  if (!is_tensor_operand(x) && b.device != context().default_device) return t.to(context().default_device);
  if (!b.node && b.storage && !borrowed && b.dtype == dtype) return t;
  concrete_value(b, what);
  if (b.dtype == dtype && !borrowed) return t.detach();
  if (b.dtype != dtype) return value_cast(t, dtype);
  Tensor copy = host_copy(t, dtype);  // of borrowed memory
  return b.device == cpu ? copy : copy.to(b.device);
}

/// Makes a leaf; its name, if it has one, is prefixed with those of the name scopes.
Tensor named_leaf(Leaf kind, const TensorSpec& spec, Device device, Value value, Name name) {
  if (!name.given()) return make_leaf(kind, spec, device, std::move(value), name);
  return make_leaf(kind, spec, device, std::move(value), scoped_name(name));
}

/// A variable with that initial value; a symbolic value is returned as it is.
Tensor as_variable(const Tensor& value, Name name) {
  if (value.symbolic()) return value;
  const TensorDesc& b = Access::desc(value);
  return named_leaf(Leaf::variable, b, b.device, initialises_variables() ? Value{b.storage, b.offset} : Value(), name);
}

/// A sparse value without history.
Tensor sparse_value(const Tensor& x) {
  concrete_value(sparse_part(Access::desc(x), kValues), "variable");
  return x.detach();
}

/// The value of a constant with the requested shape, on a device.
Tensor with_shape(const Tensor& value, const TensorSpec& to, Device device) {
  TensorDesc b = Access::desc(value);
  if (b.rank == 0) return filled_tensor(value.to(cpu), to, device, "constant");
  if (to.checked_bytes("constant") != b.bytes())
    fail<ValueError>({"constant", "value"}, "of shape ", static_cast<const TensorSpec&>(b), " does not fill ", to);
  b.set(to);
  return Access::wrap(std::move(b)).to(device);
}

/// Leaves for the three parts, and a handle over them. Shape rules also see what the declared shape says beyond the
/// leaf that the dense shape is fed to.
Tensor sparse_placeholder(const TensorSpec& declared, Name name) {
  if (declared.rank < 1)
    fail<ValueError>({"placeholder", "shape"}, declared.rank < 0 ? "of unknown rank" : "is ()", kExpected,
                     "the rank of a sparse one must be known and at least 1");
  Tensor values =
      named_leaf(Leaf::placeholder, TensorSpec(declared.dtype, {kUnknown}), context().default_device, {}, name);
  // The name of the indices is for the message that nothing is fed to them.
  const char* own = Access::desc(values).node->cell->name;
  std::string part = own ? text("indices of ", own) : "indices of a sparse placeholder";
  Tensor indices = make_leaf(Leaf::placeholder, TensorSpec(int64, {kUnknown, declared.rank}), cpu, {}, part);
  Tensor shape = make_leaf(Leaf::placeholder, TensorSpec(int64, {declared.rank}), cpu, {}, Name());
  return make_sparse(indices, values, with_known_dims(declared, shape), declared, shape);
}

/// The static shape that a placeholder declares.
void declare(const Dims& shape, const Scalar& ndim, TensorSpec& spec) {
  if (shape.whole_) fail<TypeError>({"placeholder", "shape"}, "is a tensor", kExpected, "it must be numbers and None");
  if (shape.size_ >= 0) {
    check_length({"placeholder", "shape"}, shape);
    spec.rank = static_cast<std::int8_t>(shape.size_);
    for (int i = 0; i < shape.size_; ++i) {
      const Dim& d = shape.dims_[i];
      if (d.tensor_)
        fail<TypeError>({"placeholder", "shape"}, "holds a tensor", kExpected, "it must hold numbers and None");
      if (d.value_ < 0 && d.value_ != Dim::kNoneDim)
        fail<ValueError>({"placeholder", "shape"}, "holds ", d.value_, kExpected, "an unknown size is K::None");
      spec.dims[i] = d.value_ == Dim::kNoneDim ? kUnknown : d.value_;
    }
    return;
  }
  if (ndim.is_none()) {
    spec.rank = -1;
    return;
  }
  if (Access::kind(ndim) != Scalar::kInt)
    fail<TypeError>({"placeholder", "ndim"}, "is ", scalar_text(ndim), kExpected, "it must be an integer or None");
  std::int64_t n = Access::int_value(ndim);
  if (!is_rank(n))
    fail<ValueError>({"placeholder", "ndim"}, "is ", n, kExpected, "a tensor has 0 to ", kMaxRank, " axes");
  spec.rank = static_cast<std::int8_t>(n);
  for (int i = 0; i < n; ++i) spec.dims[i] = kUnknown;
}

struct HeldConstraint final : Extra {
  explicit HeldConstraint(const Constraint& c) : constraint(c) {}
  Constraint constraint;
};

}  // namespace

Tensor variable(const Operand& value, DType dtype, Name name, const Constraint& constraint) {
  KASSETTE_DISPATCH(variable, value, dtype, name, constraint);
  if (is_tensor_operand(value) && is_sparse(tensor_of(value))) {
    if (constraint.defined())
      fail<ValueError>({"variable", "constraint"}, "is given for a sparse value, and the result is not a variable",
                       kExpected, "it must be None");
    return sparse_value(tensor_of(value));
  }
  Tensor v = as_variable(value_as(value, dtype, "variable"), name);
  if (constraint.defined()) Access::desc(v).node->cell->constraint = Ref<Extra>::adopt(new HeldConstraint(constraint));
  return v;
}

Tensor constant(const Operand& value, DType dtype, const Dims& shape, Name name) {
  KASSETTE_DISPATCH(constant, value, dtype, shape, name);
  if (is_tensor_operand(value)) refuse_sparse({"constant", "value"}, tensor_of(value));
  if (shape.size_ < 0 && !shape.whole_) return value_as(value, dtype, "constant");
  const Device place = is_tensor_operand(value) ? Device() : context().default_device;
  Tensor t;
  {
    // A number is copied to the device as one element, and filled there.
    Scoped<Device> here(context().default_device, cpu);
    t = value_as(value, dtype, "constant");
  }
  Tensor to = dims_tensor(shape, "constant");
  if (to.symbolic())
    fail<ValueError>({"constant", "shape"}, "depends on a placeholder", kRemedy,
                     "K::zeros and K::ones take such a shape");
  return with_shape(t, shape_from(to, t.dtype(), "constant"), place.given() ? place : t.device());
}

Tensor placeholder(const Dims& shape, Scalar ndim, DType dtype, bool sparse, Name name) {
  KASSETTE_DISPATCH(placeholder, shape, ndim, dtype, sparse, name);
  TensorSpec spec;
  spec.dtype = dtype.given() ? dtype : default_float();
  declare(shape, ndim, spec);
  if (sparse) return sparse_placeholder(spec, name);
  return named_leaf(Leaf::placeholder, spec, context().default_device, {}, name);
}

namespace {

Tensor filled(int value, const Dims& shape, DType dtype, Name name, const char* what) {
  if (!dtype.given()) dtype = default_float();
  Tensor to = dims_tensor(shape, what);
  TensorSpec spec;
  if (to.symbolic()) {
    Tensor one = scalar_tensor(value, dtype, what);
    Tensor dynamic = attribute_errors(what, [&] {
      return apply1(broadcast_to_op, {one.to(context().default_device), to});
    });
    spec = Access::desc(dynamic);
    if (!spec.known()) return dynamic;
  } else {
    spec = shape_from(to, dtype, what);
  }
  return as_variable(filled_with(value, spec, context().default_device, what), name);
}
Tensor filled_like(int value, const Operand& x, DType dtype, const char* what) {
  Arg like(x, DType(), {what, "x"});
  if (!like.tensor().defined()) fail_empty({what, "x"});
  refuse_sparse({what, "x"}, like);
  if (!dtype.given()) dtype = default_float();
  const TensorDesc& b = like.desc();
  if (!b.node && !b.symbolic()) {
    TensorSpec spec = b;
    spec.dtype = dtype;
    return filled_with(value, spec, b.device, what);
  }
  Tensor one = scalar_tensor(value, dtype, what);
  if (like.desc().device != cpu) one = one.to(like.desc().device);
  return broadcast_like(one, like);
}

/// A scalar of arange: a number keeps its kind. A start alone is the op's stop, so it is checked here.
Tensor range_number(const Operand& x, const char* which) {
  const At at{"arange", which};
  if (!is_tensor_operand(x)) {
    const bool is_float = Access::kind(x) == Scalar::kFloat;
    if (is_float && !std::isfinite(Access::float_value(x)))
      fail<ValueError>(at, "is ", Access::float_value(x), kExpected, "it must be finite");
    return as_tensor(x, is_float ? float64 : integer_dtype(x), at);
  }
  const Tensor& t = tensor_of(x);
  if (!t.defined()) fail_empty(at);
  if (is_sparse(t)) fail_sparse(at, Access::desc(t));
  if (Access::desc(t).rank > 0) fail<ValueError>(at, "has shape ", t.shape(), kExpected, "it must be a scalar");
  return t;
}

}  // namespace

Tensor zeros(const Dims& shape, DType dtype, Name name) {
  KASSETTE_DISPATCH(zeros, shape, dtype, name);
  return filled(0, shape, dtype, name, "zeros");
}
Tensor ones(const Dims& shape, DType dtype, Name name) {
  KASSETTE_DISPATCH(ones, shape, dtype, name);
  return filled(1, shape, dtype, name, "ones");
}

Tensor eye(const Dims& size, DType dtype, Name name) {
  KASSETTE_DISPATCH(eye, size, dtype, name);
  if (!dtype.given()) dtype = default_float();
  if (size.size_ == 1) return as_variable(ops::eye({size.dims_[0], size.dims_[0]}, dtype), name);
  if (size.whole_ && size.whole_->defined() && size.whole_->ndim() == 0)
    return as_variable(ops::eye({*size.whole_, *size.whole_}, dtype), name);
  return as_variable(ops::eye(size, dtype), name);
}

Tensor zeros_like(const Operand& x, DType dtype, Name name) {
  KASSETTE_DISPATCH(zeros_like, x, dtype, name);
  return filled_like(0, x, dtype, "zeros_like");
}
Tensor ones_like(const Operand& x, DType dtype, Name name) {
  KASSETTE_DISPATCH(ones_like, x, dtype, name);
  return filled_like(1, x, dtype, "ones_like");
}
Tensor identity(const Operand& x, Name name) {
  KASSETTE_DISPATCH(identity, x, name);
  Arg t(x, DType(), {"identity", "x"});
  if (is_sparse(t.tensor())) return with_values(t, ops::identity(sparse_part(t, kValues)));
  return ops::identity(t);
}

Tensor arange(const Operand& start, const Operand& stop, const Operand& step, DType dtype) {
  KASSETTE_DISPATCH(arange, start, stop, step, dtype);
  Tensor from = range_number(start, "start"), by = range_number(step, "step"), to;
  if (stop.is_none()) {
    to = std::move(from);
    from = scalar_tensor(0, int64, "arange");
  } else {
    to = range_number(stop, "stop");
  }
  const bool floats =
      Access::desc(from).dtype.is_float() || Access::desc(to).dtype.is_float() || Access::desc(by).dtype.is_float();
  return ops::arange(from, to, by, dtype.given() ? dtype : floats ? float32 : int32);
}

}  // namespace backend

Constraint constraint_of(const Tensor& variable) {
  if (!variable.defined()) fail_empty({"constraint_of", "variable"});
  const TensorDesc& b = Access::desc(variable);
  if (!(b.flags & kLeaf) || b.node->cell->kind != Leaf::variable)
    fail<TypeError>({"constraint_of", "variable"}, "is not a variable", kRemedy, "make it with K::variable");
  auto* held = static_cast<const backend::HeldConstraint*>(b.node->cell->constraint.get());
  return held ? held->constraint : Constraint();
}

Text name_of(const Tensor& x) {
  if (!x.defined()) fail_empty({"name_of", "x"});
  const TensorDesc& handle = Access::desc(x);
  const TensorDesc& b = is_sparse(handle) ? sparse_part(handle, kValues) : handle;
  return b.flags & kLeaf ? Text(b.node->cell->name) : Text();
}

}  // namespace kassette

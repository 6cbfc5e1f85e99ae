// nn_backend/introspection.cpp - properties of tensors: kind, shape, dtype.
#include <kassette/backend/introspection.h>

#include "core/convert.h"
#include "core/text.h"
#include "nn_backend/snapshot.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dims.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/sparse/sparse.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;
namespace {

/// The cell of a leaf, or null.
const Cell* cell_of(const Operand& x) {
  if (!is_tensor_operand(x) || !tensor_of(x).defined()) return nullptr;
  const TensorDesc& b = Access::desc(tensor_of(x));
  return b.flags & kLeaf ? b.node->cell.get() : nullptr;
}

Shape shape_known(const Operand& x, const char* what) {
  Arg t(x, DType(), {what, "x"});
  if (!t.tensor().defined()) fail_empty({what, "x"});
  return t.tensor().shape();
}

}  // namespace

bool is_variable(const Operand& x) {
  KASSETTE_DISPATCH(is_variable, x);
  const Cell* c = cell_of(x);
  return c && c->kind == Leaf::variable;
}
// The learning phase is fed as well, but it has a default.
bool is_placeholder(const Operand& x) {
  KASSETTE_DISPATCH(is_placeholder, x);
  if (is_tensor_operand(x) && tensor_of(x).defined() && is_sparse_placeholder(Access::desc(tensor_of(x)))) return true;
  const Cell* c = cell_of(x);
  return c && c->kind == Leaf::placeholder && !c->value.storage;
}
bool is_tensor(const Operand& x) {
  KASSETTE_DISPATCH(is_tensor, x);
  return is_tensor_operand(x) && tensor_of(x).defined();
}
bool is_keras_tensor(const Operand& x) {
  KASSETTE_DISPATCH(is_keras_tensor, x);
  if (!is_tensor(x))
    fail<ValueError>({"is_keras_tensor", "x"}, "is ", is_tensor_operand(x) ? kEmptyTensor : scalar_text(x), kExpected,
                     "it must be a tensor");
  return Access::desc(tensor_of(x)).flags & kLayer;
}
Tensor mark_keras_tensor(const Tensor& x) {
  KASSETTE_DISPATCH(mark_keras_tensor, x);
  if (!x.defined()) fail_empty({"mark_keras_tensor", "x"});
  TensorDesc b = Access::desc(x);
  b.flags |= kLayer;
  return Access::wrap(std::move(b));
}

Tensor shape(const Operand& x) {
  KASSETTE_DISPATCH(shape, x);
  Arg t(x, DType(), {"shape", "x"});
  return is_sparse(t.tensor()) ? ops::cast(sparse_part(t, kDenseShape), int32) : shape_of(t, int32);
}
Tensor size(const Operand& x, Name name) {
  KASSETTE_DISPATCH(size, x, name);
  Arg t(x, DType(), {"size", "x"});
  return is_sparse(t.tensor()) ? ops::cast(prod(sparse_part(t, kDenseShape)), int32) : size_of(t);
}
Shape int_shape(const Operand& x) {
  KASSETTE_DISPATCH(int_shape, x);
  return shape_known(x, "int_shape");
}
Shape get_variable_shape(const Operand& x) {
  KASSETTE_DISPATCH(get_variable_shape, x);
  return shape_known(x, "get_variable_shape");
}
Extent ndim(const Operand& x) {
  KASSETTE_DISPATCH(ndim, x);
  Arg t(x, DType(), {"ndim", "x"});
  if (!t.tensor().defined()) fail_empty({"ndim", "x"});
  return Extent(t.tensor().ndim());
}
DType dtype(const Operand& x) {
  KASSETTE_DISPATCH(dtype, x);
  Arg t(x, DType(), {"dtype", "x"});
  if (!t.tensor().defined()) fail_empty({"dtype", "x"});
  return t.desc().dtype;
}
Tensor cast(const Operand& x, DType dtype) {
  KASSETTE_DISPATCH(cast, x, dtype);
  Arg t(x, DType(), {"cast", "x"});
  if (!t.tensor().defined()) fail_empty({"cast", "x"});
  if (t.desc().dtype != dtype) return ops::cast(t, dtype);
  return attribute_errors("cast", [&] { return copy_if_variable(t); });
}
std::int64_t count_params(const Operand& x) {
  KASSETTE_DISPATCH(count_params, x);
  Arg t(x, DType(), {"count_params", "x"});
  if (!t.tensor().defined()) fail_empty({"count_params", "x"});
  if (!t.desc().known())
    fail<ValueError>({"count_params", "x"}, "of shape ", static_cast<const TensorSpec&>(t.desc()),
                     " has an unknown size", kRemedy, "use K::size(x)");
  return t.desc().numel();
}

}  // namespace backend
}  // namespace kassette

// nn_backend/sparse.cpp - sparse tensors.
#include <kassette/backend/sparse.h>

#include <ostream>

#include "core/context.h"
#include "core/convert.h"
#include "core/text.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/sparse/sparse.h"

namespace kassette {
using namespace ops;

/// Between backends the parts are a list of three.
template <>
struct ops::Unbox<backend::SparseParts> {
  static backend::SparseParts from(const external::Value& v) {
    if (v.size() != 3) fail_list(v, "three tensors");
    return {v[0].as_tensor(), v[1].as_tensor(), v[2].as_tensor()};
  }
};

namespace backend {

external::Value box(const SparseParts& parts) { return Tensors{parts.indices, parts.values, parts.dense_shape}; }

namespace {

/// An operand as a tensor; numbers and lists become one on the device in use.
Tensor placed(const Tensor& made, const Operand& from) {
  return is_tensor_operand(from) || !made.defined() ? made : made.to(context().default_device);
}

/// The values as a tensor; a container keeps its dtype.
Tensor values_of(const Operand& x, DType dtype, const char* what) {
  DType own = Access::kind(x) >= Scalar::kArray ? Access::dtype(x) : DType();
  Tensor values = placed(as_tensor(x, dtype.given() ? dtype : own, {what, "values"}), x);
  if (!values.defined()) fail_empty({what, "values"});
  refuse_sparse({what, "values"}, values);
  return dtype.given() ? cast(values, dtype) : values;
}

Tensor integers_of(const Operand& x, const char* what, const char* which) {
  Tensor t = as_tensor(x, int64, {what, which});
  if (!t.defined()) fail_empty({what, which});
  refuse_sparse({what, which}, t);
  if (!t.dtype().is_integer())
    fail<TypeError>({what, which}, "are ", t.dtype(), kExpected, "they must be integers", kRemedy,
                    "cast them (K::cast)");
  return t;
}

/// Reshapes a flat list of indices, which may be empty, to (entries, axes); returns indices of another rank as they
/// are.
Tensor paired(const Tensor& indices, const Tensor& shape) {
  const TensorDesc &i = Access::desc(indices), &s = Access::desc(shape);
  if (i.rank != 1 || s.dims[0] < 1) return indices;
  if (i.dims[0] >= 0 && i.dims[0] % s.dims[0] != 0)
    fail<ValueError>({"sparse_coo", "indices"}, "are a list of ", i.dims[0], " for a dense_shape of ", s.dims[0],
                     " axes", kExpected, "there must be one for each axis of each entry");
  return reshape(indices, {Dim(-1), Dim(s.dims[0])});
}

Tensor checked_shape(const Dims& dims, const char* what) {
  Tensor shape = dims_tensor(dims, what, "dense_shape");
  if (Access::desc(shape).dims[0] == 0)
    fail<ValueError>({what, "dense_shape"}, "is ()", kExpected, "a sparse tensor has at least one axis");
  return shape;
}

const std::int64_t* host_integers(const Tensor& t, const char* which) {
  if (t.symbolic())
    fail<ValueError>({"sparse_csr", which}, "are symbolic", kRemedy,
                     "K::sparse_coo takes indices that depend on placeholders");
  check_rank({"sparse_csr", which}, Access::desc(t), 1);
  return t.data<std::int64_t>();
}

}  // namespace

Tensor sparse_coo(const Operand& indices, const Operand& values, const Dims& dense_shape, DType dtype) {
  KASSETTE_DISPATCH(sparse_coo, indices, values, dense_shape, dtype);
  Tensor shape = checked_shape(dense_shape, "sparse_coo"), v = values_of(values, dtype, "sparse_coo");
  Tensor at = integers_of(indices, "sparse_coo", "indices");
  return attribute_errors("sparse_coo", [&] { return ops::sparse_coo(paired(at, shape), v, shape); });
}

Tensor sparse_csr(const Operand& row_starts, const Operand& columns, const Operand& values, const Dims& dense_shape,
                  DType dtype) {
  KASSETTE_DISPATCH(sparse_csr, row_starts, columns, values, dense_shape, dtype);
  const char* what = "sparse_csr";
  Tensor shape = checked_shape(dense_shape, what), v = values_of(values, dtype, what);
  Tensor starts = cast(integers_of(row_starts, what, "row_starts"), int64).to(cpu),
         at = cast(integers_of(columns, what, "columns"), int64).to(cpu);
  const std::int64_t *start = host_integers(starts, "row_starts"), *column = host_integers(at, "columns");
  TensorSpec matrix = shape_from(shape, v.dtype(), what, "dense_shape");
  if (matrix.rank != 2)
    fail<ValueError>({what, "dense_shape"}, "has ", int(matrix.rank), " axes", kExpected,
                     "compressed rows describe a matrix");
  std::int64_t n = at.size(), rows = starts.size() - 1;
  if (rows != matrix.dims[0])
    fail<ValueError>({what, "row_starts"}, "are ", rows + 1, " for the dense_shape ", matrix, kExpected,
                     "there must be ", matrix.dims[0] + 1, ", one more than rows");
  bool rises = start[0] == 0 && start[rows] == n;
  for (std::int64_t r = 0; rises && r < rows; ++r) rises = start[r] <= start[r + 1];
  if (!rises) fail<ValueError>({what, "row_starts"}, "do not rise from 0 to the number of columns given, ", n);
  Tensor indices = empty_tensor(TensorSpec(int64, {n, 2}));
  auto* to = mutable_data<std::int64_t>(indices);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = start[r]; k < start[r + 1]; ++k) {
      if (column[k] < 0 || column[k] >= matrix.dims[1])
        fail<ValueError>({what, "columns"}, "hold ", column[k], " in row ", r, ", outside of ", matrix);
      to[2 * k] = r;
      to[2 * k + 1] = column[k];
    }
  return attribute_errors(what, [&] { return ops::sparse_coo(indices, v, shape); });
}

Tensor to_sparse(const Operand& x) {
  KASSETTE_DISPATCH(to_sparse, x);
  Arg t(x, DType(), {"to_sparse", "x"});
  if (!t.tensor().defined()) fail_empty({"to_sparse", "x"});
  if (kassette::is_sparse(t.tensor())) return t;
  return attribute_errors("to_sparse", [&] { return ops::to_sparse(placed(t, x)); });
}

bool is_sparse(const Operand& tensor) {
  KASSETTE_DISPATCH(is_sparse, tensor);
  return is_tensor_operand(tensor) && kassette::is_sparse(tensor_of(tensor));
}

Tensor to_dense(const Operand& tensor) {
  KASSETTE_DISPATCH(to_dense, tensor);
  Arg t(tensor, DType(), {"to_dense", "tensor"});
  if (!t.tensor().defined()) fail_empty({"to_dense", "tensor"});
  if (!kassette::is_sparse(t.tensor())) return t;
  return attribute_errors("to_dense", [&] { return ops::to_dense(t); });
}

SparseParts sparse_parts(const Tensor& x) {
  KASSETTE_DISPATCH(sparse_parts, x);
  if (!kassette::is_sparse(x))
    fail<TypeError>({"sparse_parts", "x"}, "is not sparse", kRemedy, "K::to_sparse(x) makes it so");
  return {sparse_part(x, kIndices), sparse_part(x, kValues), cast(sparse_part(x, kDenseShape), int64)};
}

std::ostream& operator<<(std::ostream& os, const SparseParts& parts) {
  return os << text("SparseParts(indices=", parts.indices, ",\nvalues=", parts.values,
                    ",\ndense_shape=", parts.dense_shape, ')');
}

}  // namespace backend
}  // namespace kassette

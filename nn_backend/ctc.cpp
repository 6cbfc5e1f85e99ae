// nn_backend/ctc.cpp - connectionist temporal classification.
#include <kassette/backend/ctc.h>

#include <kassette/backend/config.h>

#include "core/sparse.h"
#include "core/text.h"
#include "nn_backend/named.h"
#include "ops/ctc.h"
#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {
namespace {

/// Labels and lengths, which come in any dtype, floats too, as int64.
Tensor integers(const Operand& x, const char* what, const char* which) {
  Tensor t = as_tensor(x, int64, what, Fractions::cut);
  if (!t.defined()) fail<ValueError>(what, ": ", which, " is an empty Tensor (an uninitialised variable?)");
  refuse_sparse(what, t);
  if (t.dtype().is_bool()) fail<TypeError>(what, ": ", which, " is bool, not a number; cast it first (K::cast)");
  return t.dtype() == int64 ? t : cast(t, int64);
}
/// Half types as float32.
Tensor scores(const Operand& x, const char* what) {
  Tensor t = as_tensor(x, DType(), what);
  if (!t.defined()) fail<ValueError>(what, ": y_pred is an empty Tensor (an uninitialised variable?)");
  if (!t.dtype().is_float()) fail<TypeError>(what, ": y_pred is ", t.dtype(), ", not a float dtype; cast it first (K::cast)");
  return t.dtype().size() < 4 ? cast(t, float32) : t;
}

}  // namespace

Tensor ctc_batch_cost(const Operand& y_true, const Operand& y_pred, const Operand& input_length, const Operand& label_length) {
  KASSETTE_DISPATCH(ctc_batch_cost, y_true, y_pred, input_length, label_length);
  const char* what = "ctc_batch_cost";
  Tensor y = scores(y_pred, what);
  return kassette::ctc_batch_cost(integers(y_true, what, "y_true"), y, integers(input_length, what, "input_length"),
                                  integers(label_length, what, "label_length"), epsilon());
}

Tensor ctc_label_dense_to_sparse(const Operand& labels, const Operand& label_lengths) {
  KASSETTE_DISPATCH(ctc_label_dense_to_sparse, labels, label_lengths);
  const char* what = "ctc_label_dense_to_sparse";
  Tensor x = as_tensor(labels, DType(), what);
  if (!x.defined()) fail<ValueError>(what, ": labels is an empty Tensor (an uninitialised variable?)");
  refuse_sparse(what, x);
  Tensor lengths = integers(label_lengths, what, "label_lengths");
  return in_name_of(what, [&] { return kassette::ctc_label_dense_to_sparse(x, lengths); });
}

}  // namespace backend
}  // namespace kassette

// nn_backend/ctc.cpp - connectionist temporal classification.
#include <kassette/backend/ctc.h>

#include <kassette/backend/config.h>

#include <ostream>

#include "core/sparse.h"
#include "core/text.h"
#include "ops/ctc/ctc.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;

/// Between backends a CtcDecoded is the list of its paths and then the scores.
template <>
struct ops::Unbox<backend::CtcDecoded> {
  static backend::CtcDecoded from(const external::Value& v) {
    if (v.size() < 2) fail_list(v, "tensors, the scores after the paths");
    backend::CtcDecoded d;
    for (std::int64_t i = 0; i + 1 < v.size(); ++i) d.decoded.push_back(v[i].as_tensor());
    d.log_prob = v[v.size() - 1].as_tensor();
    return d;
  }
};

namespace backend {

external::Value box(const CtcDecoded& d) {
  Tensors all = d.decoded;
  all.push_back(d.log_prob);
  return all;
}

namespace {

/// Labels and lengths as int64; they may have any dtype, floats too.
Tensor integers(const Operand& x, const char* what, const char* which) {
  Tensor t = as_tensor(x, int64, {what, which}, Fractions::truncate);
  if (!t.defined()) fail_empty({what, which});
  refuse_sparse({what, which}, t);
  if (t.dtype().is_bool()) fail<TypeError>({what, which}, "is bool, not a number", kRemedy, "cast it first (K::cast)");
  return t.dtype() == int64 ? t : cast(t, int64);
}
/// Half types as float32.
Tensor scores(const Operand& x, const char* what) {
  Tensor t = as_tensor(x, DType(), {what, "y_pred"});
  if (!t.defined()) fail_empty({what, "y_pred"});
  refuse_sparse({what, "y_pred"}, t);
  if (!t.dtype().is_float()) fail_not_float({what, "y_pred"}, t.dtype());
  return t.dtype().size() < 4 ? cast(t, float32) : t;
}

}  // namespace

Tensor ctc_batch_cost(const Operand& y_true, const Operand& y_pred, const Operand& input_length,
                      const Operand& label_length) {
  KASSETTE_DISPATCH(ctc_batch_cost, y_true, y_pred, input_length, label_length);
  const char* what = "ctc_batch_cost";
  Tensor y = scores(y_pred, what);
  return ops::ctc_batch_cost(integers(y_true, what, "y_true"), y, integers(input_length, what, "input_length"),
                             integers(label_length, what, "label_length"), epsilon());
}

Tensor ctc_label_dense_to_sparse(const Operand& labels, const Operand& label_lengths) {
  KASSETTE_DISPATCH(ctc_label_dense_to_sparse, labels, label_lengths);
  const char* what = "ctc_label_dense_to_sparse";
  Tensor x = as_tensor(labels, DType(), {what, "labels"});
  if (!x.defined()) fail_empty({what, "labels"});
  refuse_sparse({what, "labels"}, x);
  Tensor lengths = integers(label_lengths, what, "label_lengths");
  return attribute_errors(what, [&] { return ops::ctc_label_dense_to_sparse(x, lengths); });
}

CtcDecoded ctc_decode(const Operand& y_pred, const Operand& input_length, bool greedy, int beam_width, int top_paths,
                      bool merge_repeated) {
  KASSETTE_DISPATCH(ctc_decode, y_pred, input_length, greedy, beam_width, top_paths, merge_repeated);
  const char* what = "ctc_decode";
  if (!greedy && beam_width < 1)
    fail<ValueError>({what, "beam_width"}, "is ", beam_width, kExpected, "it must be at least 1");
  if (!greedy && (top_paths < 1 || top_paths > beam_width))
    fail<ValueError>({what, "top_paths"}, "is ", top_paths, kExpected, "it must be between 1 and beam_width, ",
                     beam_width);
  Tensor y = scores(y_pred, what), steps = integers(input_length, what, "input_length");
  Tensors all = attribute_errors(what, [&] {
    return greedy ? ctc_greedy(y, steps, epsilon())
                  : ctc_beam_search(y, steps, {beam_width, top_paths, merge_repeated}, epsilon());
  });
  CtcDecoded d;
  for (std::int64_t i = 0; i + 1 < all.size(); ++i) d.decoded.push_back(all[i]);
  d.log_prob = all[all.size() - 1];
  return d;
}

std::ostream& operator<<(std::ostream& os, const CtcDecoded& d) {
  return os << text("CtcDecoded(decoded=", d.decoded, ", log_prob=", d.log_prob, ")");
}

}  // namespace backend
}  // namespace kassette

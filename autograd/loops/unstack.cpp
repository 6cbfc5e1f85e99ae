// autograd/loops/unstack.cpp - the elements of a tensor along the axis that a loop iterates over.
#include "autograd/loops/unstack.h"

#include <algorithm>

#include "core/rank.h"
#include "core/text.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"

namespace kassette::autograd {
using namespace ops;
namespace {

// Up to kMaxOutputs elements are made by one op, whose adjoint is one pass. A longer x is unstacked in slices of
// kTogether elements: foldl over a million elements with its gradient then takes 0.7 GB instead of 1.0 GB, with fewer
// page faults in a program's first iteration.
constexpr std::int64_t kTogether = 16384;

}  // namespace

TensorSpec element_spec(const TensorSpec& x, int axis) {
  TensorSpec s(x.dtype, {});
  for (int k = 0; k < x.rank; ++k)
    if (k != axis) s.dims[s.rank++] = x.dims[k];
  return s;
}

TensorSpec stacked_spec(const char* what, const TensorSpec& element, std::int64_t n, int axis) {
  TensorSpec s = element;
  if (s.rank < 0) return s;
  s.rank = checked_rank(what, element.rank + 1, "outputs of shape ", element, ", stacked");
  std::copy_backward(s.dims + axis, s.dims + element.rank, s.dims + s.rank);
  s.dims[axis] = n;
  return s;
}

LazyUnstack::LazyUnstack(const char* what, const Tensor& x, std::int64_t size, int axis) : what_(what), axis_(axis) {
  attribute_errors(what, [&] {
    if (size <= kMaxOutputs || axis != 0) parts_ = unstack(x, size, axis);
    else
      for (std::int64_t i = 0; i < size; i += kTogether) runs_.push_back(x[slice(i, std::min(size, i + kTogether))]);
  });
}

void LazyUnstack::load(std::int64_t i) {
  begin_ = i / kTogether * kTogether;
  const Tensor& run = runs_[i / kTogether];
  parts_ = Tensors();  // released before the next are allocated
  parts_ = attribute_errors(what_, [&] { return unstack(run, Access::desc(run).dims[0], axis_); });
}

}  // namespace kassette::autograd

// autograd/elements.cpp - the elements of a tensor that a loop goes through at once, one op a step.
#include "autograd/elements.h"

#include <algorithm>

#include "ops/expr.h"
#include "ops/named.h"

namespace kassette {
namespace {

// As many parts as one op gives are made by one op, whose adjoint is one pass. Beyond that: a million elements of foldl with a
// gradient take 0.7 GB this way and 1.0 GB all at once, and fresh memory is what the first round of a program waits for.
constexpr std::int64_t kTogether = 16384;

}  // namespace

Elements::Elements(const char* what, const Tensor& x, std::int64_t size, int axis) : what_(what), axis_(axis) {
  in_name_of(what, [&] {
    if (size <= kMaxOutputs || axis != 0) parts_ = unstack(x, static_cast<int>(size), axis);
    else
      for (std::int64_t i = 0; i < size; i += kTogether) runs_.push_back(x[slice(i, std::min(size, i + kTogether))]);
  });
}

void Elements::load(std::int64_t i) {
  begin_ = i / kTogether * kTogether;
  const Tensor& run = runs_[i / kTogether];
  parts_ = Tensors();   // before the next are made
  parts_ = in_name_of(what_, [&] { return unstack(run, static_cast<int>(Access::body(run).dims[0]), axis_); });
}

}  // namespace kassette

// autograd/unstack.h - the elements of a tensor that a loop goes through at once, one op a step.
#pragma once
#include "core/impl.h"

namespace kassette {

/// The shape of an element of x along an axis, and of n such elements stacked.
TensorSpec element_spec(const TensorSpec& x, int axis = 0);
TensorSpec stacked_spec(const char* what, const TensorSpec& element, std::int64_t n, int axis = 0);

/// x cut along an axis. Of a very long x the parts are made as the loop comes to them, thousands at a time: those that are done with
/// are gone before the last are made, and so are their cotangents on the way back.
class LazyUnstack {
 public:
  /// `what`: the function in whose name ops are recorded.
  LazyUnstack(const char* what, const Tensor& x, std::int64_t size, int axis);
  const Tensor& operator[](std::int64_t i) {
    if (i < begin_ || i - begin_ >= parts_.size()) load(i);
    return parts_.begin()[i - begin_];
  }

 private:
  void load(std::int64_t i);

  const char* what_;
  int axis_;
  Tensors runs_;  // of a very long x: it as it was, in views of thousands of elements
  std::int64_t begin_ = 0;
  Tensors parts_;  // of one of them, or all
};

}  // namespace kassette

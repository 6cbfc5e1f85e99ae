// autograd/loops/unstack.h - the elements of a tensor along the axis that a loop iterates over.
#pragma once
#include "core/impl.h"

namespace kassette::autograd {

/// The shape of an element of x along an axis; the shape of n such elements stacked.
TensorSpec element_spec(const TensorSpec& x, int axis = 0);
TensorSpec stacked_spec(const char* what, const TensorSpec& element, std::int64_t n, int axis = 0);

/// x unstacked along an axis. The elements of a very long x are made as the loop reaches them, thousands at a time, so
/// that elements that have been used, and in the backward pass their cotangents, are released early.
class LazyUnstack {
 public:
  /// `what`: the function that errors name.
  LazyUnstack(const char* what, const Tensor& x, std::int64_t size, int axis);
  const Tensor& operator[](std::int64_t i) {
    if (i < begin_ || i - begin_ >= parts_.size()) load(i);
    return parts_.begin()[i - begin_];
  }

 private:
  void load(std::int64_t i);

  const char* what_;
  int axis_;
  Tensors runs_;  // a very long x as slices of thousands of elements; else empty
  std::int64_t begin_ = 0;
  Tensors parts_;  // the elements from begin_ on: those of one slice, or all
};

}  // namespace kassette::autograd

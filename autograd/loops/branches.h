// autograd/loops/branches.h - one of two bodies, picked by a scalar condition.
#pragma once
#include <kassette/api.h>

#include "autograd/program/program.h"

namespace kassette::autograd {

/// The dtype of both branches, and a shape with each size that either knows. Throws if dtypes differ or shapes cannot
/// be equal.
TensorSpec common_spec(const char* what, const TensorSpec& yes, const TensorSpec& no);
/// The result of the branch that a scalar condition picks; the other branch is not run.
Tensor branch(const char* what, const Tensor& condition, const Callable<Tensor()>& yes, const Callable<Tensor()>& no);

}  // namespace kassette::autograd

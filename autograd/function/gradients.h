// autograd/function/gradients.h - K::gradients: a backward pass from a loss, whose results have a history of their own.
#pragma once
#include "autograd/tape/backward.h"

namespace kassette::autograd {

/// d(sum of loss)/dx for each x: K::gradients. Throws ValueError if an x was never recorded, TypeError if the loss has
/// no float dtype. Pass SavedValues::rematerialize only if the caller gives up the loss and no other tensor keeps the
/// segment alive.
Tensors gradients(const Tensor& loss, const Tensors& xs, SavedValues saved = SavedValues::retain,
                  GradientHook* hook = nullptr);

}  // namespace kassette::autograd

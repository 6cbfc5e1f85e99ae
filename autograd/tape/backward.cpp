// autograd/tape/backward.cpp - a backward pass from given cotangents.
#include "autograd/tape/backward.h"

#include "autograd/tape/backward_pass.h"
#include "core/stack.h"

namespace kassette::autograd {

Tensors backward(const Tensors& ys, const Tensors& xs, const Tensors& seeds, SavedValues saved, GradientHook* hook,
                 const Tensors& ends) {
  check_stack("gradients");
  return BackwardPass(xs, saved, hook, ends).run(ys.begin(), seeds.begin(), ys.size());
}

}  // namespace kassette::autograd

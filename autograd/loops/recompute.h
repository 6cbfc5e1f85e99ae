// autograd/loops/recompute.h - a function that is run again in the backward pass, which keeps its arguments alone.
#pragma once
#include <kassette/api.h>

#include "autograd/program/program.h"

namespace kassette::autograd {

/// f(args) as one node of the tape: of what it computes nothing is kept, and its adjoint runs it again. Random numbers
/// are the same in both runs. What f captures has gradients as args have.
Tensor recomputed(const char* what, const Tensors& args, const Callable<Tensor(const Tensors&)>& f);

}  // namespace kassette::autograd

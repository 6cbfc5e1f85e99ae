// nn_backend/batching.h - a function of one row run for all rows at once: Note [Batching].
#pragma once
#include <kassette/api.h>
#include <kassette/tensor.h>

namespace kassette {

/// f of each row of the arguments, which have a first axis of the same known size, and known shapes: one op for all
/// rows in place of each op of f. Empty if an op of f has no rule; `dtype` is then that of the result.
Tensor batched(const Callable<Tensor(const Tensors&)>& f, const Tensors& args, DType* dtype);

}  // namespace kassette

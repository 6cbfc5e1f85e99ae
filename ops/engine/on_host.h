// ops/engine/on_host.h - ops that run on the host alone: tensors of other devices go there and back.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// x on the host, and a result on the device of x.
inline Tensor on_host(const Tensor& x) { return x.device() == cpu ? x : x.to(cpu); }
inline Tensor back_to(const Tensor& x, const Tensor& y) { return x.device() == cpu ? y : y.to(x.device()); }

}  // namespace kassette::ops

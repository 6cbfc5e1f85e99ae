// ops/engine/stop.cpp - stop_gradient: an identity without a gradient.
#include "ops/engine/stop.h"

#include "ops/elementwise/elementwise.h"

namespace kassette::ops {

constinit const OpDef stop_gradient_op{
    .name = "stop_gradient", .rule = same_rule, .cpu = share, .traits = kView, .cuda = share, .inputs = "variables"};

Tensor stop_gradient(const Tensor& x) { return apply1(stop_gradient_op, {x}); }

}  // namespace kassette::ops

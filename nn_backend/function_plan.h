// nn_backend/function_plan.h - what is behind a Function.
#pragma once
#include <kassette/backend/graph.h>

#include "autograd/function/plan.h"

namespace kassette::backend::detail {

/// Null for an empty function.
const autograd::Plan* plan_of(const Function& f);

}  // namespace kassette::backend::detail

// nn_backend/function_plan.h - what is behind a Function.
#pragma once
#include <kassette/backend/graph.h>

#include "autograd/function/compiled_function.h"

namespace kassette::backend::detail {

/// Null for an empty function.
const autograd::CompiledFunction* compiled(const Function& f);

}  // namespace kassette::backend::detail

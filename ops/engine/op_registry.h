// ops/engine/op_registry.h - the list of all ops. Tests look them up by name, and so does the code that connects the
// CUDA library's kernels (connect.cpp).
#pragma once
#include <vector>

#include "ops/engine/op.h"

namespace kassette::ops {

/// Returns all ops, by family; no two have the same name.
std::vector<const OpDef*> all_ops();

}  // namespace kassette::ops

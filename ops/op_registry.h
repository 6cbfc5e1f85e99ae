// ops/op_registry.h - the list of all rows of ops/, for those who look them up by name: tests, and the CUDA library's join.
#pragma once
#include <vector>

#include "ops/op.h"

namespace kassette {

/// Every row, by family; no two have the same name.
std::vector<const OpDef*> all_ops();

}  // namespace kassette

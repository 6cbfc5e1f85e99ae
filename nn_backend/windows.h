// nn_backend/windows.h - the arguments that convolution and pooling share.
#pragma once
#include <string>

#include <kassette/tensor.h>

#include "ops/window.h"

namespace kassette {
namespace backend {

/// Numbers for each axis, all at least 1; one stands for all. `name` is plural.
void numbers_for(const char* what, const char* name, const Dims& given, int axes, std::int64_t* to);
/// A name as messages show it: "same", or None.
std::string quoted(Name name);
/// The padding of that name; throws ValueError for another.
Padding padding_of(const char* what, Name padding, bool causal);
/// The same tensor; throws for an empty and for a sparse one.
const Tensor& dense(const char* what, const char* name, const Tensor& t);

}  // namespace backend
}  // namespace kassette

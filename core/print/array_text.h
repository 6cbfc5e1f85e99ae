// core/print/array_text.h - the elements of dense tensors as NumPy writes them.
#pragma once
#include <kassette/print.h>

#include <string>
#include <vector>

#include "core/impl.h"

namespace kassette {

/// The elements in brackets and aligned columns, abbreviated as `options` say; a scalar has no brackets. Neither dtype
/// nor shape is printed.
std::string dense_text(const TensorDesc& b, const PrintOptions& options);

/// The text of each element of a rank-1 tensor, all padded to one width. Nothing is abbreviated.
std::vector<std::string> element_texts(const TensorDesc& list, const PrintOptions& options);

}  // namespace kassette

// core/array_text.h - the elements of dense tensors as NumPy writes them.
#pragma once
#include <kassette/print.h>

#include <string>
#include <vector>

#include "core/impl.h"

namespace kassette {

/// The elements in brackets, in columns, cut where `options` say so; a scalar without brackets. No dtype, no shape.
std::string dense_text(const Body& b, const PrintOptions& options);

/// A text for each element of a list (rank 1), all of one width, none cut.
std::vector<std::string> element_texts(const Body& list, const PrintOptions& options);

}  // namespace kassette

// nn_backend/windows.h - checks of the arguments that convolution and pooling share.
#pragma once
#include <string>
#include <string_view>

#include <kassette/tensor.h>

#include "core/text.h"
#include "ops/convolution/window.h"

namespace kassette::backend::detail {

/// Writes one number per axis to `to`; a single given number is used for all axes. Throws ValueError unless all are 1
/// to INT32_MAX. `name`, the argument in messages, is plural.
void numbers_for(const char* what, const char* name, const Dims& given, int axes, std::int64_t* to);
/// The characters of a name, to compare; empty for None.
inline std::string_view view_of(Name name) {
  return name.given() ? std::string_view(name.data(), name.size()) : std::string_view();
}
/// A name as messages show it: quoted, or None.
std::string quoted(Name name);
/// True for "channels_first", in any case, and for None where that is the default. Throws ValueError for an unknown
/// name.
bool is_channels_first(const At& at, Name given);
/// The padding of that name. Throws ValueError for an unknown one, and for "causal" unless `causal`.
ops::Padding padding_of(const char* what, Name padding, bool causal);
/// Returns t. Throws if it is an empty or a sparse Tensor.
const Tensor& dense(const char* what, const char* name, const Tensor& t);

}  // namespace kassette::backend::detail

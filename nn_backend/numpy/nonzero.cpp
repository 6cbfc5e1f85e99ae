// nn_backend/numpy/nonzero.cpp - what is not zero: NumPy's functions whose sizes depend on values.
#include <kassette/numpy/selection.h>
#include <kassette/numpy/shaping.h>

#include <string>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "ops/reduce/scan.h"
#include "ops/shape/positions.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Whether there is an element that is not zero before or at each place of a vector.
Tensor begun(const Tensor& x) { return ops::greater(ops::cumsum(ops::cast(ops::not_equal(x, 0), int64), 0), 0); }

}  // namespace

Tensors nonzero(const Operand& x) {
  return of_array("nonzero", x, [](const Tensor& t) { return ops::nonzero_indices(t); });
}
Tensor argwhere(const Operand& x) {
  return of_array("argwhere", x, [](const Tensor& t) { return ops::nonzero(t); });
}
Tensor flatnonzero(const Operand& x) {
  return of_array("flatnonzero", x, [](const Tensor& t) { return ops::nonzero_positions(t); });
}
Tensor compress(const Operand& condition, const Operand& x, const Axes& axis) {
  constexpr const char* kWhat = "compress";
  return attribute_errors(kWhat, [&] {
    const ArrayArg mask(condition, {kWhat, "condition"}), array(x, {kWhat, "x"});
    if (differ(known_rank(mask, {kWhat, "condition"}), 1))
      fail<ValueError>({kWhat, "condition"}, "has shape ", mask.desc(), kExpected, "it must be a vector");
    Tensor t = array;
    const int along = one_axis_of(kWhat, t, axis);
    return ops::gather(t, ops::nonzero_positions(beside(t, condition, mask, {kWhat, "condition"})), along);
  });
}
Tensor extract(const Operand& condition, const Operand& x) {
  return attribute_errors("extract", [&] {
    const ArrayArg mask(condition, {"extract", "condition"}), array(x, {"extract", "x"});
    const Tensor places = ops::nonzero_positions(beside(array, condition, mask, {"extract", "condition"}));
    return ops::gather(ops::flatten(array, 0), places, 0);
  });
}

Tensor trim_zeros(const Operand& x, Name trim) {
  return of_array("trim_zeros", x, [&](const Tensor& t) {
    const std::string ends = Access::text(trim);
    if (ends.find_first_not_of("fb") != std::string::npos)
      fail<ValueError>({"trim_zeros", "trim"}, "is '", ends, "'", kExpected, "it must be 'f', 'b' or 'fb'");
    if (known_rank(t, {"trim_zeros", "x"}) != 1)
      fail<ValueError>({"trim_zeros", "x"}, "has shape ", Access::desc(t), kExpected, "the rank must be 1");
    Tensor y = t;
    if (ends.find('f') != std::string::npos) y = ops::gather(y, ops::nonzero_positions(begun(y)), 0);
    if (ends.find('b') == std::string::npos) return y;
    const Tensor kept = ops::reverse(begun(ops::reverse(y, 0)), 0);
    return ops::gather(y, ops::nonzero_positions(kept), 0);
  });
}

}  // namespace numpy
}  // namespace kassette

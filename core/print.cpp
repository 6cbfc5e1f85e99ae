// core/print.cpp - printing tensors.
#include <ostream>

#include "core/text.h"

namespace kassette {

std::ostream& operator<<(std::ostream& os, const Tensor& x) {
  if (!x.defined()) return os << "Tensor()";
  return os << "Tensor" << x.shape();
}

}  // namespace kassette

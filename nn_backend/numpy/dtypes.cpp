// nn_backend/numpy/dtypes.cpp - which dtypes are promoted to which.
#include <kassette/numpy/dtypes.h>

#include <string>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "ops/engine/operand.h"

namespace kassette {
namespace numpy {

DType promote_types(DType x, DType y) {
  for (DType d : {x, y})
    if (!d.given()) fail<TypeError>({"promote_types"}, "a dtype is None", kExpected, "it must be a dtype");
  return promoted(x, y, "promote_types");
}
DType result_type(std::initializer_list<Operand> arrays) {
  DType found;
  for (const Operand& x : arrays) {
    const DType own = own_dtype(x);
    if (own.given()) found = found.given() ? promoted(found, own, "result_type") : own;
  }
  return found.given() ? found : ops::default_float();
}
bool can_cast(DType from, DType to) {
  if (from == to) return true;
  if (from.is_float() != to.is_float() || from.is_bool() || to.is_bool()) return false;
  // Of one size: float16 and bfloat16, or a signed and an unsigned integer.
  if (from.size() >= to.size()) return false;
  return from.is_float() || from.is_unsigned() || !to.is_unsigned();
}
bool isdtype(DType dtype, Name kind) {
  const std::string text = Access::text(kind);
  if (text == "bool") return dtype.is_bool();
  if (text == "signed integer") return dtype.is_integer() && !dtype.is_unsigned();
  if (text == "unsigned integer") return dtype.is_integer() && dtype.is_unsigned();
  if (text == "integral") return dtype.is_integer();
  if (text == "real floating") return dtype.is_float();
  if (text == "numeric") return !dtype.is_bool();
  try {
    return dtype == DType(text.c_str());
  } catch (const TypeError&) {
    fail<ValueError>({"isdtype", "kind"}, "is '", text, "'", kExpected,
                     "it must be a dtype, 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating' "
                     "or 'numeric'");
  }
}

}  // namespace numpy
}  // namespace kassette

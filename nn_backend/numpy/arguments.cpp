// nn_backend/numpy/arguments.cpp - the dtypes of arguments, and their promotion.
#include "nn_backend/numpy/arguments.h"

#include "core/text.h"

namespace kassette::numpy {
using namespace ops;
namespace {

/// The signed integer of that many bytes.
DType signed_of(int bytes) { return bytes == 2 ? int16 : bytes == 4 ? int32 : int64; }

}  // namespace

DType own_dtype(const Operand& x) {
  switch (Access::kind(x)) {
    case Scalar::kTensor: return tensor_of(x).defined() ? Access::desc(tensor_of(x)).dtype : DType();
    case Scalar::kArray:
    case Scalar::kShaped: return Access::dtype(x);
    case Scalar::kList: {
      auto* items = static_cast<const Operand*>(Access::pointer(x));
      DType found;
      for (std::size_t i = 0; i < Access::count(x) && !found.given(); ++i) found = own_dtype(items[i]);
      return found;
    }
    default: return DType();
  }
}

DType promoted(DType a, DType b, const char* what) {
  if (a == b) return a;
  if (a.is_float() && b.is_float()) return a.size() == b.size() ? float32 : a.size() > b.size() ? a : b;
  if (a.is_integer() && b.is_integer()) {
    if (a.is_unsigned() == b.is_unsigned()) return a.size() > b.size() ? a : b;
    const DType without = a.is_unsigned() ? a : b, with = a.is_unsigned() ? b : a;
    if (with.size() > without.size()) return with;
    if (without.size() < 8) return signed_of(2 * without.size());
  }
  fail<TypeError>({what, "y"}, "is ", b.name(), " and x is ", a.name(), kRemedy, "cast one of them (K::cast)");
}

DType widest(DType dtype) { return dtype.is_float() ? dtype : int64; }

/// The dtype that two arguments have in common; none if both are numbers.
static DType common_dtype(const Operand& x, const Operand& y, const char* what) {
  const DType a = own_dtype(x), b = own_dtype(y);
  return !a.given() ? b : !b.given() ? a : promoted(a, b, what);
}

Pair::Pair(const Operand& x, const Operand& y, const char* what)
    : x_(converted(x, common_dtype(x, y, what), {what, "x"}, sides_[0])),
      y_(converted(y, common_dtype(x, y, what), {what, "y"}, sides_[1])) {}

const Operand& Pair::converted(const Operand& x, DType dtype, const At& at, Side& side) {
  if (is_tensor_operand(x)) {
    if (!tensor_of(x).defined()) fail_empty(at);
    if (Access::desc(tensor_of(x)).dtype == dtype) return x;
    side.tensor = cast(tensor_of(x), dtype);
  } else {
    // A number beside a tensor is converted by the op, to the tensor's device as well.
    if (dtype.given() && Access::kind(x) <= Scalar::kFloat && Access::kind(x) != Scalar::kNone) return x;
    side.tensor = as_tensor(x, dtype, at);
  }
  side.operand = Operand(side.tensor);
  return side.operand;
}

}  // namespace kassette::numpy

// include/kassette/numpy/dtypes.h - which dtypes are promoted to which, as NumPy asks for them.
#ifndef KASSETTE_NUMPY_DTYPES_H
#define KASSETTE_NUMPY_DTYPES_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

/// The smallest dtype of one kind that holds both. Throws TypeError if they are of two kinds.
KASSETTE_API DType promote_types(DType x, DType y);
/// The dtype of what is computed of these; numbers and lists of numbers have none of their own, and floatx alone.
KASSETTE_API DType result_type(std::initializer_list<Operand> arrays);
/// Whether promotion allows a cast: to a dtype of the same kind that holds all numbers of the other.
KASSETTE_API bool can_cast(DType from, DType to);
/// Whether a dtype is of a kind, or has this name. Kinds are "bool", "signed integer", "unsigned integer", "integral",
/// "real floating" and "numeric".
KASSETTE_API bool isdtype(DType dtype, Name kind);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_DTYPES_H

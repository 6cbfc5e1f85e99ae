// tests/core/dtype_test.cpp - the list of dtypes, and what is made from it.
#include <iterator>
#include <string>

#include <kassette/dtype.h>

#include "core/convert.h"
#include "tests/catch.h"

namespace kassette {
namespace {

struct Expected {
  const char* name;
  int size;
  bool is_float, is_integer, is_unsigned;
};
// NumPy's (and ml_dtypes') itemsize and kind.
constexpr Expected kExpected[] = {
    {"bool", 1, false, false, false},   {"uint8", 1, false, true, true},     {"uint16", 2, false, true, true},
    {"uint32", 4, false, true, true},   {"uint64", 8, false, true, true},    {"int8", 1, false, true, false},
    {"int16", 2, false, true, false},   {"int32", 4, false, true, false},    {"int64", 8, false, true, false},
    {"float16", 2, true, false, false}, {"bfloat16", 2, true, false, false}, {"float32", 4, true, false, false},
    {"float64", 8, true, false, false}};

TEST_CASE("each dtype has its name, size and kind", "[core][dtype]") {
  static_assert(std::size(kExpected) == std::size(kAllDTypes) && std::size(kAllDTypes) == DType::kCount - 1);
  for (const Expected& e : kExpected) {
    INFO(e.name);
    const DType d(e.name);
    CHECK(d.name() == std::string(e.name));
    CHECK(d.size() == e.size);
    CHECK(d.is_float() == e.is_float);
    CHECK(d.is_integer() == e.is_integer);
    CHECK(d.is_unsigned() == e.is_unsigned);
    CHECK(d.is_bool() == (e.size == 1 && !e.is_integer));
  }
  CHECK(DType().size() == 0);
  CHECK_FALSE(DType().is_unsigned());
}

TEST_CASE("dispatch and dtype_of name the same C++ type", "[core][dtype]") {
  for (DType d : kAllDTypes)
    dispatch(d, [&](auto* p) {
      CHECK(dtype_of(p) == d);
      CHECK(static_cast<int>(sizeof *p) == d.size());
    });
  CHECK(dtype_of(static_cast<long*>(nullptr)) == int64);
  CHECK(dtype_of(static_cast<long long*>(nullptr)) == int64);
  CHECK(dtype_of(static_cast<unsigned long*>(nullptr)) == uint64);
  CHECK(dtype_of(static_cast<unsigned long long*>(nullptr)) == uint64);
}

}  // namespace
}  // namespace kassette

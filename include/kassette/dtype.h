// include/kassette/dtype.h - names, element types and devices.
#ifndef KASSETTE_DTYPE_H
#define KASSETTE_DTYPE_H
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>
#include <utility>

#include <kassette/error.h>
#include <kassette/export.h>
#include <kassette/none.h>

namespace kassette {

/// The type of `None`: no value, an unknown size, or all axes. Neither 0, -1 nor {} converts to it.
struct NoneType {
  explicit constexpr NoneType(int) {}
};
inline constexpr NoneType None{0};

namespace detail {
template <class S, class = void>
struct IsTextView : std::false_type {};
template <class S>
struct IsTextView<
    S, std::void_t<typename S::traits_type, decltype(static_cast<const char*>(std::declval<const S&>().data()),
                                                     std::declval<const S&>().size())>> : std::true_type {};
template <class S, class = void>
struct IsPath : std::false_type {};
template <class S>
struct IsPath<S, std::enable_if_t<IsTextView<std::decay_t<decltype(std::declval<const S&>().native())>>::value>>
    : std::true_type {};
template <class P>
using IsTextPointer =
    std::integral_constant<bool, std::is_same<P, const char*>::value || std::is_same<P, char*>::value>;
}  // namespace detail

/// A piece of text, borrowed for the call: a string literal, a `const char*`, a std::string, a std::string_view, a path
/// or anything else with c_str(). An array and a C string end at the first NUL; other text with a NUL in it is refused
/// with a ValueError. A null pointer means no name, like None; 0 and nullptr do not compile.
class KASSETTE_API Name {
 public:
  constexpr Name() : text_(nullptr), bound_(0) {}
  constexpr Name(NoneType) : Name() {}
  template <std::size_t N>
  constexpr Name(const char (&text)[N]) : text_(text), bound_(N) {}
  // A template: P is deduced as a pointer type, so that 0 and nullptr do not match.
  template <class P, std::enable_if_t<detail::IsTextPointer<P>::value, int> = 0>
  constexpr Name(const P& text) : text_(text), bound_(kOpen) {}
  template <class S, std::enable_if_t<detail::IsTextView<S>::value, int> = 0>
  constexpr Name(const S& s) : text_(s.size() ? s.data() : ""), bound_(kWhole | s.size()) {}
  template <class S, std::enable_if_t<!detail::IsTextView<S>::value && !detail::IsPath<S>::value, int> = 0,
            class = decltype(std::declval<const S&>().c_str())>
  Name(const S& s) : text_(s.c_str()), bound_(kOpen) {}
  template <class S, std::enable_if_t<detail::IsPath<S>::value, int> = 0>
  Name(const S& s) : Name(s.native()) {}
  /// Whether a name was given.
  constexpr bool given() const { return text_ != nullptr; }
  /// The size() characters, not always followed by a NUL. Null if no name was given.
  constexpr const char* data() const { return text_; }
  std::size_t size() const;

 private:
  static constexpr std::size_t kOpen = SIZE_MAX, kWhole = ~(SIZE_MAX >> 1);
  const char* text_;
  std::size_t bound_;  // kWhole | the length; or the text ends here, or at a NUL before
};

/// The bits of an IEEE half; arithmetic on them happens inside the library.
struct Half {
  std::uint16_t bits;
};
/// The upper half of a float32.
struct BFloat16 {
  std::uint16_t bits;
};
/// The integer types: X(constant, code, C++ type, name) for each, in the order of the codes.
#define KASSETTE_INTEGER_DTYPES(X) \
  X(uint8, kUint8, std::uint8_t, "uint8") \
  X(uint16, kUint16, std::uint16_t, "uint16") \
  X(uint32, kUint32, std::uint32_t, "uint32") \
  X(uint64, kUint64, std::uint64_t, "uint64") \
  X(int8, kInt8, std::int8_t, "int8") \
  X(int16, kInt16, std::int16_t, "int16") \
  X(int32, kInt32, std::int32_t, "int32") \
  X(int64, kInt64, std::int64_t, "int64")
/// The float types, likewise.
#define KASSETTE_FLOAT_DTYPES(X) \
  X(float16, kFloat16, Half, "float16") \
  X(bfloat16, kBfloat16, BFloat16, "bfloat16") \
  X(float32, kFloat32, float, "float32") \
  X(float64, kFloat64, double, "float64")
/// All element types. Code that the library has for each dtype is generated from this list.
#define KASSETTE_DTYPES(X) \
  X(bool_, kBool, bool, "bool") \
  KASSETTE_INTEGER_DTYPES(X) \
  KASSETTE_FLOAT_DTYPES(X)

/// An element type. Made from a constant (kassette::float32) or a name ("float32"); DType() means "not given".
/// Throws TypeError on an unknown name. float16 and bfloat16 are stored as such and computed in float32.
class KASSETTE_API DType {
 public:
#define KASSETTE_CODE(constant, code, type, name) code,
  enum Code : std::uint8_t { kNone, KASSETTE_DTYPES(KASSETTE_CODE) kCount };
#undef KASSETTE_CODE
  constexpr DType() : code_(kNone) {}
  constexpr DType(NoneType) : code_(kNone) {}
  constexpr explicit DType(Code code) : code_(code) {}
  DType(const DType&) = default;
  DType& operator=(const DType&) & = default;
  void operator=(const DType&) && = delete;  // x.dtype() = d would change nothing: x = K::cast(x, d)
  template <class N, class = decltype(Name(std::declval<const N&>()))>
  DType(const N& name) : DType(parse(Name(name))) {}
  template <class Number, std::enable_if_t<std::is_arithmetic<Number>::value, int> = 0>
  DType(Number) KASSETTE_DELETED("a dtype is text, \"float32\"; a shape is one argument: K::zeros({2, 3})");

  constexpr Code code() const { return static_cast<Code>(code_); }
  constexpr bool given() const { return code_ != kNone; }
  constexpr bool is_float() const { return code_ >= kFloat16; }
  constexpr bool is_integer() const { return code_ > kBool && code_ < kFloat16; }
  constexpr bool is_bool() const { return code_ == kBool; }
  /// Whether it is an unsigned integer.
  constexpr bool is_unsigned() const { return (kUnsigned >> code_ & 1) != 0; }
  /// The bytes of one element; 0 if no dtype is given.
  constexpr int size() const { return static_cast<int>(kSizes >> (4 * code_) & 15); }
  /// The name, such as "float32"; "none" if no dtype is given.
  const char* name() const;
  /// The same as name(), so that a DType is accepted wherever a Name is.
  const char* c_str() const { return name(); }
  friend constexpr bool operator==(DType a, DType b) { return a.code_ == b.code_; }
  friend constexpr bool operator!=(DType a, DType b) { return a.code_ != b.code_; }
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, DType dtype);

 private:
  static DType parse(Name name);
#define KASSETTE_SIZE(constant, code, type, name) | std::uint64_t(sizeof(type)) << (4 * code)
#define KASSETTE_UNSIGNED(constant, code, type, name) | unsigned(std::is_unsigned<type>::value) << code
  static_assert(4 * kCount <= 64, "kSizes has room for 16 codes");
  static constexpr std::uint64_t kSizes = 0 KASSETTE_DTYPES(KASSETTE_SIZE);  // four bits for each code
  static constexpr unsigned kUnsigned = 0 KASSETTE_INTEGER_DTYPES(KASSETTE_UNSIGNED);
#undef KASSETTE_SIZE
#undef KASSETTE_UNSIGNED
  std::uint8_t code_;
};

#define KASSETTE_CONSTANT(constant, code, type, name) inline constexpr DType constant{DType::code};
/// The element types.
KASSETTE_DTYPES(KASSETTE_CONSTANT)
#undef KASSETTE_CONSTANT

#define KASSETTE_DTYPE_OF(constant, code, type, name) \
  constexpr DType dtype_of(const type*) { return constant; }
/// The DType of a C++ element type, passed as a null pointer to it. A type without an overload is not an element type.
KASSETTE_DTYPES(KASSETTE_DTYPE_OF)
#undef KASSETTE_DTYPE_OF
/// `long` and `long long` are both int64; std::int64_t is one of them.
constexpr DType dtype_of(const std::conditional_t<std::is_same<std::int64_t, long>::value, long long, long>*) {
  return int64;
}
/// `unsigned long` and `unsigned long long` are both uint64, likewise.
constexpr DType dtype_of(
    const std::conditional_t<std::is_same<std::uint64_t, unsigned long>::value, unsigned long long, unsigned long>*) {
  return uint64;
}

}  // namespace kassette

#endif  // KASSETTE_DTYPE_H

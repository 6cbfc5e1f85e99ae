// core/dtype.h - names, element types and devices.
#ifndef KASSETTE_DTYPE_H
#define KASSETTE_DTYPE_H
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>
#include <utility>

#include <kassette/export.h>

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
template <class P>
using IsTextPointer =
    std::integral_constant<bool, std::is_same<P, const char*>::value || std::is_same<P, char*>::value>;
}  // namespace detail

/// A piece of text, borrowed for the call: a string literal, a `const char*`, a std::string, a std::string_view, or
/// anything else with c_str(). It ends at the first NUL. A null pointer is no name, as None; 0 and nullptr do not
/// compile.
class KASSETTE_API Name {
 public:
  constexpr Name() : text_(nullptr), bound_(0) {}
  constexpr Name(NoneType) : Name() {}
  template <std::size_t N>
  constexpr Name(const char (&text)[N]) : text_(text), bound_(N) {}
  // A template: P is deduced as a pointer type, so that 0 and nullptr do not match.
  template <class P, std::enable_if_t<detail::IsTextPointer<P>::value, int> = 0>
  constexpr Name(const P& text) : text_(text), bound_(SIZE_MAX) {}
  template <class S, std::enable_if_t<detail::IsTextView<S>::value, int> = 0>
  constexpr Name(const S& s) : text_(s.size() ? s.data() : ""), bound_(s.size()) {}
  template <class S, std::enable_if_t<!detail::IsTextView<S>::value, int> = 0,
            class = decltype(std::declval<const S&>().c_str())>
  Name(const S& s) : text_(s.c_str()), bound_(SIZE_MAX) {}
  /// Whether there is one.
  constexpr bool given() const { return text_ != nullptr; }
  /// The characters: size() of them, and not always a NUL behind them. Null where no name was given.
  constexpr const char* data() const { return text_; }
  std::size_t size() const;

 private:
  const char* text_;
  std::size_t bound_;  // the text ends here, or at a NUL before
};

/// An element type. Made from a constant (kassette::float32) or a name ("float32"); zero means "not given".
/// Throws TypeError on an unknown name. float16 and bfloat16 are stored as such and computed in float32.
class KASSETTE_API DType {
 public:
  enum Code : std::uint8_t {
    kNone,
    kBool,
    kUint8,
    kUint16,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kFloat16,
    kBfloat16,
    kFloat32,
    kFloat64,
    kCount
  };
  constexpr DType() : code_(kNone) {}
  constexpr DType(NoneType) : code_(kNone) {}
  constexpr explicit DType(Code code) : code_(code) {}
  template <class N, class = decltype(Name(std::declval<const N&>()))>
  DType(const N& name) : DType(parse(Name(name))) {}

  constexpr Code code() const { return static_cast<Code>(code_); }
  constexpr bool given() const { return code_ != kNone; }
  constexpr bool is_float() const { return code_ >= kFloat16; }
  constexpr bool is_integer() const { return code_ > kBool && code_ < kFloat16; }
  constexpr bool is_bool() const { return code_ == kBool; }
  /// Bytes of one element; 0 where not given.
  constexpr int size() const { return static_cast<int>(0x842284212110u >> (4 * code_) & 15); }  // a digit a code
  /// "float32" and so on; "none" where not given.
  const char* name() const;
  /// The same, so that a DType goes wherever a Name is taken.
  const char* c_str() const { return name(); }
  friend constexpr bool operator==(DType a, DType b) { return a.code_ == b.code_; }
  friend constexpr bool operator!=(DType a, DType b) { return a.code_ != b.code_; }
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, DType dtype);

 private:
  static DType parse(Name name);
  std::uint8_t code_;
};

/// The element types.
inline constexpr DType bool_{DType::kBool}, uint8{DType::kUint8}, uint16{DType::kUint16}, int8{DType::kInt8},
    int16{DType::kInt16}, int32{DType::kInt32}, int64{DType::kInt64}, float16{DType::kFloat16},
    bfloat16{DType::kBfloat16}, float32{DType::kFloat32}, float64{DType::kFloat64};

/// The bits of an IEEE half; arithmetic on them happens inside the library.
struct Half {
  std::uint16_t bits;
};
/// The upper half of a float32.
struct BFloat16 {
  std::uint16_t bits;
};

/// The DType of a C++ element type, by an overload on a null pointer of it. No overload: not an element type.
constexpr DType dtype_of(const bool*) { return bool_; }
constexpr DType dtype_of(const std::uint8_t*) { return uint8; }
constexpr DType dtype_of(const std::uint16_t*) { return uint16; }
constexpr DType dtype_of(const std::int8_t*) { return int8; }
constexpr DType dtype_of(const std::int16_t*) { return int16; }
constexpr DType dtype_of(const std::int32_t*) { return int32; }
constexpr DType dtype_of(const long*) { return int64; }
constexpr DType dtype_of(const long long*) { return int64; }
constexpr DType dtype_of(const Half*) { return float16; }
constexpr DType dtype_of(const BFloat16*) { return bfloat16; }
constexpr DType dtype_of(const float*) { return float32; }
constexpr DType dtype_of(const double*) { return float64; }

}  // namespace kassette

#endif  // KASSETTE_DTYPE_H

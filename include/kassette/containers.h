// include/kassette/containers.h - the C++ arrays that are accepted where a tensor is expected: nested containers, C
// arrays, Eigen's matrices.
#ifndef KASSETTE_CONTAINERS_H
#define KASSETTE_CONTAINERS_H
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <kassette/dtype.h>
#include <kassette/shape.h>

namespace kassette {

class Tensor;

/// Converts arrays of another library to tensors wherever an operand is expected. A specialisation has
/// `static DType dtype()` and `static Tensor tensor(const void* array)`; the returned tensor is released before the
/// call returns. <kassette/xtensor.h> specialises it for xtensor.
template <class C, class = void>
struct ArrayOf;

namespace detail {

template <class T>
struct IsCharacter : std::false_type {};
template <>
struct IsCharacter<char> : std::true_type {};
template <>
struct IsCharacter<wchar_t> : std::true_type {};
template <>
struct IsCharacter<char16_t> : std::true_type {};
template <>
struct IsCharacter<char32_t> : std::true_type {};
#ifdef __cpp_char8_t
template <>
struct IsCharacter<char8_t> : std::true_type {};
#endif
/// The dtype that holds an element of a C++ array: the element's own, or the widest of its kind if tensors have no such
/// dtype.
template <class T, class = void>
struct ElementType {
  static constexpr bool known = std::is_arithmetic<T>::value && !IsCharacter<T>::value;
  using type = std::conditional_t<std::is_floating_point<T>::value, double, std::int64_t>;
};
template <class T>
struct ElementType<T, std::void_t<decltype(dtype_of(static_cast<const T*>(nullptr)))>> {
  static constexpr bool known = true;
  using type = T;
};

// C arrays, in addition to containers.
template <class C>
auto begin_of(const C& c) -> decltype(c.begin()) {
  return c.begin();
}
template <class T, std::size_t n>
const T* begin_of(const T (&c)[n]) {
  return c;
}
template <class C>
using ItemOf = std::remove_cv_t<std::remove_reference_t<decltype(*begin_of(std::declval<const C&>()))>>;

/// Types with begin() and end(), except those that are their own element type (std::filesystem::path) and Shape, whose
/// None has no value outside the library.
template <class C, class = void>
struct IsRange : std::false_type {};
template <class C>
struct IsRange<C, std::void_t<ItemOf<C>>>
    : std::integral_constant<bool, !std::is_same<C, ItemOf<C>>::value && !std::is_same<C, Shape>::value> {};
/// The element of the innermost container.
template <class C, bool range = IsRange<C>::value>
struct LeafOf {
  using type = C;
};
template <class C>
struct LeafOf<C, true> : LeafOf<ItemOf<C>> {};

/// Matrices like Eigen's, with m.rows(), m.cols() and m(i, j); an expression has m.eval() as well.
template <class C, class = void>
struct IsMatrix : std::false_type {};
template <class C>
struct IsMatrix<C, std::void_t<decltype(std::declval<const C&>()(
                       std::declval<const C&>().rows() - 1, std::declval<const C&>().cols() - 1))>> : std::true_type {};
template <class M>
auto evaluated(const M& m, int) -> decltype(m.eval()) {
  return m.eval();
}
template <class M>
const M& evaluated(const M& m, long) {
  return m;
}
template <class M, class = void>
struct IsVector : std::false_type {};
template <class M>
struct IsVector<M, std::enable_if_t<M::IsVectorAtCompileTime>> : std::true_type {};

template <class C, class = void>
struct HasShape : std::false_type {};
template <class C>
struct HasShape<C, std::void_t<decltype(std::declval<const C&>().shape())>> : std::true_type {};
template <class C, class = void>
struct HasDimensions : std::false_type {};
template <class C>
struct HasDimensions<C, std::void_t<decltype(std::declval<const C&>().dimensions())>> : std::true_type {
};  // Eigen::Tensor
/// Whether a type has a shape of its own. It is then no flat list: its elements in memory order would make a wrong
/// tensor.
template <class C>
using HasOwnShape = std::integral_constant<bool, HasShape<C>::value || HasDimensions<C>::value || IsMatrix<C>::value>;
// A function, since clang 14 fails at a protected data() (std::vector<bool>) in a specialisation.
template <class C>
auto data_of(const C& c) -> decltype(c.data());
/// Containers of numbers in one piece of memory.
template <class C, class = void>
struct IsFlat : std::false_type {};
template <class C>
struct IsFlat<C, std::void_t<decltype(dtype_of(data_of(std::declval<const C&>())))>>
    : std::integral_constant<bool, !HasOwnShape<C>::value> {};
/// Containers of such items in one piece of memory.
template <class C, class Item, class = void>
struct IsListOf : std::false_type {};
template <class C, class Item>
struct IsListOf<C, Item, std::void_t<decltype(data_of(std::declval<const C&>()))>>
    : std::is_same<decltype(data_of(std::declval<const C&>())), const Item*> {};
/// The element type of an array that copied() accepts, and whether it accepts the array. Flat arrays need no copy.
template <class C, bool matrix = IsMatrix<C>::value>
struct ElementOf : ElementType<typename LeafOf<C>::type> {};
template <class M>
struct ElementOf<M, true> : ElementType<std::decay_t<decltype(std::declval<const M&>()(0, 0))>> {};
template <class C>
using CopiedElement = typename ElementOf<C>::type;
template <class C>
using IsCopied =
    std::integral_constant<bool,
                           (IsMatrix<C>::value || (IsRange<C>::value && !HasOwnShape<C>::value && !IsFlat<C>::value)) &&
                               ElementOf<C>::known>;

/// A new tensor on the CPU; `data` is set to the address of its elements, to be filled before anybody else sees the
/// tensor.
KASSETTE_API Tensor writable_memory(const Shape& shape, DType dtype, void*& data);
[[noreturn]] KASSETTE_API void fail_ragged(int depth, std::int64_t size, std::int64_t first);
[[noreturn]] KASSETTE_API void fail_depth();

/// The sizes of a nested container, the outermost first.
struct Sizes {
  std::int64_t dims[kMaxRank] = {};
  int rank = 0;
  void push(std::int64_t n) {
    if (rank == kMaxRank) fail_depth();
    dims[rank++] = n;
  }
};
template <class C>
std::int64_t count(const C& c) {
  std::int64_t n = 0;
  for (const auto& item : c) static_cast<void>(item), ++n;
  return n;
}
/// Measures a nested container that is at `depth` (0: the outermost).
template <class C>
void measure(const C& c, Sizes& s, int depth) {
  std::int64_t n = count(c);
  if (s.rank == depth) s.push(n);
  else if (s.dims[depth] != n) fail_ragged(depth, n, s.dims[depth]);
  if constexpr (IsRange<ItemOf<C>>::value)
    for (const auto& row : c) measure(row, s, depth + 1);
}
template <class C, class T>
void fill(const C& c, T*& to) {
  for (const auto& item : c) {
    if constexpr (IsRange<ItemOf<C>>::value) fill(item, to);
    else *to++ = static_cast<T>(item);
  }
}
template <class M, class T>
void fill_matrix(const M& m, std::int64_t rows, std::int64_t cols, T* to) {
  using At = decltype(m.rows());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) *to++ = static_cast<T>(m(static_cast<At>(i), static_cast<At>(j)));
}

}  // namespace detail
}  // namespace kassette

#endif  // KASSETTE_CONTAINERS_H

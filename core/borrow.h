// core/borrow.h - tensors over memory owned by others.
#ifndef KASSETTE_CORE_BORROW_H
#define KASSETTE_CORE_BORROW_H

#include <kassette/tensor.h>

namespace kassette {

/// What happens to the owner of borrowed memory: `release` when the last tensor over it is gone, on whichever thread
/// that is; `discard` instead if no tensor was created. Neither may throw.
struct BorrowOwner {
  void (*release)(void* state);
  void (*discard)(void* state);
  void* state;
};
/// Implements borrow(). A shape of None means (count,); a count of detail::kOfShape means the number of elements of
/// `shape`.
KASSETTE_API Tensor borrow_memory(const void* data, std::int64_t count, DType dtype, const Dims& shape,
                                  BorrowOwner owner);

/// A copy of an array whose dtype is known only when the program runs, such as one of another language's:
/// from_memory(p, "int16", {2, 3}). `strides` say for each axis how many elements lie from one index to the next,
/// negative or 0 too; None: row-major. The address need not be aligned. Throws ValueError where a size is None or
/// negative or the numbers of sizes and strides differ, TypeError without a dtype.
KASSETTE_API Tensor from_memory(const void* data, DType dtype, const Dims& shape, const Dims& strides = None);

/// A pointer for writing to the elements of x, row-major, or null unless x is the only tensor over memory that the
/// library has allocated on the CPU, so that neither another tensor, nor the tape, nor an owner of borrowed memory can
/// see the change. For handing a result to another library without a copy, with x as its owner.
KASSETTE_API void* exclusive_data(const Tensor& x);

namespace detail {
inline constexpr std::int64_t kOfShape = INT64_MIN;
template <class F>
auto run_owner(F& f, int) -> decltype(static_cast<void>(f())) {
  f();
}
template <class F>
void run_owner(F&, long) {}
template <class O>
struct OwnerState {
  O owner;
  static void release(void* state) {
    run_owner(static_cast<OwnerState*>(state)->owner, 0);
    discard(state);
  }
  static void discard(void* state) { delete static_cast<OwnerState*>(state); }
};
template <class O>
struct Plain {
  using type = O;
};
template <class O>
struct Plain<O&> {
  using type = O;
};
template <class O>
struct Plain<const O&> {
  using type = O;
};
template <class O>
struct IsShape {
  static constexpr bool value = false;
};
template <>
struct IsShape<Shape> {
  static constexpr bool value = true;
};
template <>
struct IsShape<Dims> {
  static constexpr bool value = true;
};
}  // namespace detail

/// A tensor over the elements of `span` (anything with data() and size()), not copied, of the given shape or flat.
/// `owner` is kept until the last tensor over them is gone: a shared_ptr, a moved container, or a callable, which is
/// then called. The elements must not change meanwhile. Throws ValueError where shape and size differ; a callable is
/// not called then.
template <class C, class O, class = decltype(dtype_of(static_cast<const C*>(nullptr)->data()))>
Tensor borrow(const C& span, const Dims& shape, O&& owner) {
  using State = detail::OwnerState<typename detail::Plain<O>::type>;
  const auto* data = span.data();  // before the owner is moved: it may be the span itself
  auto count = static_cast<std::int64_t>(span.size());
  return borrow_memory(data, count, dtype_of(data), shape,
                       {State::release, State::discard, new State{static_cast<O&&>(owner)}});
}
template <class C, class O, class = decltype(dtype_of(static_cast<const C*>(nullptr)->data()))>
Tensor borrow(const C& span, O&& owner) {
  static_assert(!detail::IsShape<typename detail::Plain<O>::type>::value,
                "borrow(span, shape, owner): the owner is missing");
  return borrow(span, Dims(None), static_cast<O&&>(owner));
}
/// The same over row-major memory whose dtype is known only when the program runs: borrow(p, "int16", {2, 3}, owner).
/// Throws ValueError where the address is not aligned for the dtype and where a byte of a bool is neither 0 nor 1;
/// from_memory copies these.
template <class O>
Tensor borrow(const void* data, DType dtype, const Dims& shape, O&& owner) {
  using State = detail::OwnerState<typename detail::Plain<O>::type>;
  return borrow_memory(data, detail::kOfShape, dtype, shape,
                       {State::release, State::discard, new State{static_cast<O&&>(owner)}});
}

}  // namespace kassette

#endif  // KASSETTE_CORE_BORROW_H

// include/kassette/borrow.h - tensors over memory owned by others.
#ifndef KASSETTE_CORE_BORROW_H
#define KASSETTE_CORE_BORROW_H

#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {

/// Callbacks for the owner of borrowed memory: `release` is called when the last tensor over the memory is gone, on
/// whichever thread that happens; `discard` is called instead if no tensor was created. Neither may throw.
struct BorrowOwner {
  void (*release)(void* state);
  void (*discard)(void* state);
  void* state;
};
/// Implements borrow(). A shape of None means (count,); a count of detail::kOfShape means the number of elements of
/// `shape`.
KASSETTE_API Tensor borrow_memory(const void* data, std::int64_t count, DType dtype, const Dims& shape,
                                  BorrowOwner owner);

/// A copy of an array whose dtype is known only at run time, such as an array of another language: from_memory(p,
/// "int16", {2, 3}). `strides` has one number of elements per axis, which may be negative or 0; None means row-major.
/// The address need not be aligned. Throws ValueError if a size is None or negative or if there are not as many strides
/// as sizes, TypeError if no dtype is given.
KASSETTE_API Tensor from_memory(const void* data, DType dtype, const Dims& shape, const Dims& strides = None);

/// A pointer through which the row-major elements of x may be written; null unless x is the only tensor over memory
/// that the library has allocated on the CPU: only then can no other tensor, nor the tape, nor an owner of borrowed
/// memory see the change. Used to hand a result to another library without a copy; x remains its owner.
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

/// A tensor over the elements of `span` (anything with data() and size()), which are not copied. It has the given
/// shape, or is flat. `owner` is kept until the last tensor over the elements is gone; it is a shared_ptr, a moved
/// container, or a callable that is called at that point. The elements must not change meanwhile. Throws ValueError if
/// shape and size differ; a callable is then not called.
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
/// The same for row-major memory whose dtype is known only at run time: borrow(p, "int16", {2, 3}, owner). Throws
/// ValueError if the address is not aligned for the dtype or if a byte of a bool is neither 0 nor 1; from_memory copies
/// such memory.
template <class O>
Tensor borrow(const void* data, DType dtype, const Dims& shape, O&& owner) {
  using State = detail::OwnerState<typename detail::Plain<O>::type>;
  return borrow_memory(data, detail::kOfShape, dtype, shape,
                       {State::release, State::discard, new State{static_cast<O&&>(owner)}});
}

}  // namespace kassette

#endif  // KASSETTE_CORE_BORROW_H

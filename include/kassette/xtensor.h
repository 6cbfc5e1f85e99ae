// include/kassette/xtensor.h - xtensor's arrays to and from tensors. Opt-in; the program provides xtensor:
// <kassette/xtensor.h>.
//
// An operand of a K function may also be an xtensor array or expression: K::dot(x, xt::sin(a)). Like any container it
// gets the dtype of the tensor that it is combined with, or floatx; from_xtensor keeps the array's own dtype.
#ifndef KASSETTE_XTENSOR_H
#define KASSETTE_XTENSOR_H
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#endif

#include <kassette/borrow.h>
#include <kassette/error.h>
#include <kassette/tensor.h>

namespace kassette {

template <class E>
Tensor from_xtensor(const xt::xexpression<E>& expression);

namespace detail {

template <class E>
using XValue = typename std::decay_t<E>::value_type;

template <class T, class = void>
struct IsElement : std::false_type {};
template <class T>
struct IsElement<T, std::void_t<decltype(dtype_of(static_cast<const T*>(nullptr)))>> : std::true_type {};

template <class E, class = void>
struct IsXElement : std::false_type {};
template <class E>
struct IsXElement<E, std::void_t<XValue<E>>> : IsElement<XValue<E>> {};
template <class E>
constexpr void check_element() {
  static_assert(IsXElement<E>::value,
                "from_xtensor: a tensor has no dtype for the elements of this array; cast it: xt::cast<double>(array)");
}

/// Whether the elements may be row-major in one piece of memory, as far as the type can tell; the object is checked at
/// run time.
template <class E, class = void>
struct HasMemory : std::false_type {};
template <class E>
struct HasMemory<
    E, std::void_t<decltype(dtype_of(std::declval<const E&>().data())), decltype(std::declval<const E&>().strides()),
                   decltype(std::declval<const E&>().data_offset())>> : std::true_type {};

template <class E>
Shape xshape(const E& e) {
  std::int64_t dims[kMaxRank];
  int rank = 0;
  for (auto n : e.shape()) {
    if (rank < kMaxRank) dims[rank] = static_cast<std::int64_t>(n);
    ++rank;
  }
  return Shape(dims, rank);
}
inline xt::xarray<bool>::shape_type xdims(const Tensor& x) {
  Shape s = x.shape();
  return xt::xarray<bool>::shape_type(s.begin(), s.end());
}

/// The address of the elements if they are row-major in one piece of memory, as a tensor's are, else null.
template <class E>
const XValue<E>* row_major(const E& e) {
  if constexpr (HasMemory<E>::value) {
    std::ptrdiff_t expected = 1;
    auto n = e.dimension();
    for (std::size_t i = n; i-- > 0;) {
      auto size = static_cast<std::ptrdiff_t>(e.shape()[i]);
      // xtensor gives an axis of size 1 the stride 0.
      if (size != 1 && static_cast<std::ptrdiff_t>(e.strides()[i]) != expected) return nullptr;
      expected *= size;
    }
    return e.data() + e.data_offset();
  } else {
    return nullptr;
  }
}

/// A flat piece of memory, for borrow().
template <class T>
struct Piece {
  const T* data_;
  std::int64_t size_;
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
};

template <class A>
Tensor taken_over(A&& array) {
  using T = XValue<A>;
  auto kept = std::make_shared<A>(std::move(array));  // first: small arrays move with their elements
  const T* data = row_major(*kept);
  if (!data) return from_xtensor(*kept);
  Shape shape = xshape(*kept);
  return borrow(Piece<T>{data, shape.numel()}, shape, kept);
}

}  // namespace detail

/// A copy of an xtensor array, view or any other expression, whatever the order of its elements in memory. Its elements
/// are bool or of an integer or float type that tensors have; others do not compile. Throws ValueError above 8 axes.
template <class E>
Tensor from_xtensor(const xt::xexpression<E>& expression) {
  detail::check_element<E>();
  using T = detail::XValue<E>;
  const E& e = expression.derived_cast();
  Shape shape = detail::xshape(e);
  void* data = nullptr;
  Tensor t = detail::writable_memory(shape, dtype_of(static_cast<const T*>(nullptr)), data);
  if (const T* from = detail::row_major(e)) std::copy(from, from + shape.numel(), static_cast<T*>(data));
  // Not for an empty one: xtensor computes its end with a stride below its beginning.
  else if (shape.numel())
    std::copy(e.template begin<xt::layout_type::row_major>(), e.template end<xt::layout_type::row_major>(),
              static_cast<T*>(data));
  return t;
}
/// Takes over the array: its elements are not copied if they are row-major.
template <class S, xt::layout_type L, class D, class G>
Tensor from_xtensor(xt::xarray_container<S, L, D, G>&& array) {
  return detail::taken_over(std::move(array));
}
template <class S, std::size_t N, xt::layout_type L, class G>
Tensor from_xtensor(xt::xtensor_container<S, N, L, G>&& array) {
  return detail::taken_over(std::move(array));
}

/// A tensor over the elements of an array or a view, not copied; `owner` is kept until the last tensor over them is
/// gone, as in borrow(). The elements must not change meanwhile. Throws ValueError if they are not row-major in one
/// piece of memory.
template <class E, class O>
Tensor borrow_xtensor(const xt::xexpression<E>& expression, O&& owner) {
  detail::check_element<E>();
  const E& e = expression.derived_cast();
  Shape shape = detail::xshape(e);
  const detail::XValue<E>* data = detail::row_major(e);
  if (!data && shape.numel() > 0)
    throw ValueError("borrow_xtensor", "", "the elements do not lie row-major in one piece", "",
                     "from_xtensor copies them");
  return borrow(detail::Piece<detail::XValue<E>>{data, shape.numel()}, shape, std::forward<O>(owner));
}

/// The elements converted to T, copied, from any device. Throws ValueError for a symbolic tensor.
template <class T, xt::layout_type L = xt::layout_type::row_major>
xt::xarray<T, L> to_xarray(const Tensor& x) {
  Values<T> values = x.to_vector<T>();
  xt::xarray<T, L> a = xt::xarray<T, L>::from_shape(detail::xdims(x));
  std::copy(values.begin(), values.end(), a.template begin<xt::layout_type::row_major>());
  return a;
}

/// A read-only xtensor array over the tensor's own elements, which keeps the tensor alive. Throws as x.data<T>() does:
/// TypeError if T is not the dtype's C++ type, ValueError if the tensor is symbolic, DeviceError if it is not on the
/// CPU.
template <class T>
auto xview(const Tensor& x) {
  const T* data = x.data<T>();
  return xt::adapt_smart_ptr(data, detail::xdims(x), std::make_shared<const Tensor>(x));
}

template <class E>
struct ArrayOf<E, std::enable_if_t<xt::is_xexpression<E>::value && detail::IsXElement<E>::value>> {
  static DType dtype() { return dtype_of(static_cast<const detail::XValue<E>*>(nullptr)); }
  static Tensor tensor(const void* array) {
    const E& e = *static_cast<const E*>(array);
    return detail::row_major(e) ? borrow_xtensor(e, 0) : from_xtensor(e);
  }
};

}  // namespace kassette

#endif  // KASSETTE_XTENSOR_H

// include/kassette/tensor.h - Tensor, lists of tensors, and arguments that are accepted where a tensor is expected.
#ifndef KASSETTE_TENSOR_H
#define KASSETTE_TENSOR_H
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <type_traits>
#include <utility>

#include <kassette/containers.h>
#include <kassette/device.h>
#include <kassette/dtype.h>
#include <kassette/none.h>
#include <kassette/shape.h>

namespace kassette {

class Operand;
class Tensor;
class Tensors;
struct TensorImpl;
struct Access;  // the library's way into the public classes

/// A number of the host, or None. A number is kept exactly, but a long double is rounded to double.
class KASSETTE_API Scalar {
 public:
  enum Kind : std::uint8_t { kNone, kBool, kInt, kUint, kFloat, kTensor, kList, kArray, kShaped };
  constexpr Scalar(NoneType) : kind_(kNone), dtype_(), count_(0), int_(0) {}
  constexpr Scalar(bool v) : kind_(kBool), dtype_(), count_(0), int_(v) {}
  constexpr Scalar(int v) : kind_(kInt), dtype_(), count_(0), int_(v) {}
  constexpr Scalar(unsigned v) : kind_(kInt), dtype_(), count_(0), int_(v) {}
  constexpr Scalar(long v) : kind_(kInt), dtype_(), count_(0), int_(v) {}
  constexpr Scalar(unsigned long v) : kind_(kUint), dtype_(), count_(0), int_(static_cast<std::int64_t>(v)) {}
  constexpr Scalar(long long v) : kind_(kInt), dtype_(), count_(0), int_(v) {}
  constexpr Scalar(unsigned long long v) : kind_(kUint), dtype_(), count_(0), int_(static_cast<std::int64_t>(v)) {}
  constexpr Scalar(float v) : kind_(kFloat), dtype_(), count_(0), float_(v) {}
  constexpr Scalar(double v) : kind_(kFloat), dtype_(), count_(0), float_(v) {}
  constexpr Scalar(long double v) : Scalar(static_cast<double>(v)) {}
  Scalar(Extent v) : Scalar(static_cast<std::int64_t>(v)) {}
  Scalar(const void*) = delete;  // else every pointer and string would be a bool
  template <class F,
            class = std::enable_if_t<std::is_function<std::remove_pointer_t<std::remove_reference_t<F>>>::value>>
  Scalar(F&&) = delete;  // and a function too
  constexpr bool is_none() const { return kind_ == kNone; }

 protected:
  constexpr Scalar(Kind kind, DType dtype, std::size_t count, const void* pointer)
      : kind_(kind), dtype_(dtype), count_(count), pointer_(pointer) {}
  constexpr Scalar(DType dtype, Tensor (*make)(const void*), const void* array)
      : kind_(kShaped), dtype_(dtype), make_(make), pointer_(array) {}
  Kind kind_;
  DType dtype_;
  union {
    std::size_t count_;            // kList, kArray
    Tensor (*make_)(const void*);  // kShaped: ArrayOf::tensor
  };
  union {
    std::int64_t int_;
    double float_;
    const void* pointer_;
  };
  friend struct Access;
};

/// The arithmetic of tensors, and of everything that is or converts to an Operand.
struct Arithmetic {
  friend KASSETTE_API Tensor operator+(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator-(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator*(const Operand& a, const Operand& b);
  /// True division: integers give float64 (8- and 16-bit ones float32).
  friend KASSETTE_API Tensor operator/(const Operand& a, const Operand& b);
  /// The remainder with the divisor's sign.
  friend KASSETTE_API Tensor operator%(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator<(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator<=(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator>(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator>=(const Operand& a, const Operand& b);
  /// Logical and: on bool only; operator| is the logical or.
  friend KASSETTE_API Tensor operator&(const Operand& a, const Operand& b);
  friend KASSETTE_API Tensor operator|(const Operand& a, const Operand& b);
  friend bool operator==(const Operand&, const Operand&) KASSETTE_DELETED("K::equal(x, y) compares the elements");
  friend bool operator!=(const Operand&, const Operand&) KASSETTE_DELETED("K::not_equal(x, y) compares the elements");
};

/// An argument that is accepted where a tensor is expected: a Tensor (borrowed for the call), a number (with a weak
/// dtype: it gets the dtype of the tensor that it is combined with), a nested list of both, a container of numbers,
/// which may be nested (copied; throws ValueError if rows differ in length), an Eigen matrix, an array for which
/// ArrayOf is specialised (copied), or None if the function allows it.
class KASSETTE_API Operand : public Scalar, private Arithmetic {
 public:
  using Scalar::Scalar;
  Operand(const Tensor& tensor) : Scalar(kTensor, DType(), 0, &tensor) {}
  template <class C, std::enable_if_t<detail::IsFlat<C>::value, int> = 0>
  Operand(const C& c) : Scalar(kArray, dtype_of(c.data()), c.size(), c.data()) {}
  template <class C, class = decltype(ArrayOf<C>::tensor(nullptr))>
  Operand(const C& c)
      : Scalar(ArrayOf<C>::dtype(), &ArrayOf<C>::tensor, __builtin_addressof(c)) {}  // xtensor overloads &
  Operand(std::initializer_list<Operand> items);
  /// A list that is built at run time: a std::vector<Operand>, which has to outlive the call.
  template <class C, std::enable_if_t<detail::IsListOf<C, Operand>::value, int> = 0>
  Operand(const C& items) : Scalar(kList, DType(), items.size(), static_cast<const void*>(items.data())) {}
  friend KASSETTE_API Tensor operator~(const Operand& a);
  friend KASSETTE_API Tensor operator-(const Operand& a);
  friend KASSETTE_API Tensor operator+(const Operand& a);
};

/// One index of x(...): an int, a tensor of integers or a mask, slice(a, b, step), all, ellipsis, newaxis, or text:
/// "..., 1:5".
class KASSETTE_API Index {
 public:
  enum Kind : std::uint8_t { kAbsent, kInt, kTensor, kSlice, kEllipsis, kNewAxis, kText };
  constexpr Index() : kind_(kAbsent), has_(0), start_(0), stop_(0), step_(1), pointer_(nullptr) {}
  constexpr Index(int i) : kind_(kInt), has_(0), start_(i), stop_(0), step_(1), pointer_(nullptr) {}
  constexpr Index(long i) : kind_(kInt), has_(0), start_(i), stop_(0), step_(1), pointer_(nullptr) {}
  constexpr Index(long long i) : kind_(kInt), has_(0), start_(i), stop_(0), step_(1), pointer_(nullptr) {}
  constexpr Index(unsigned long long i) : Index(i > INT64_MAX ? INT64_MAX : static_cast<long>(i)) {}
  constexpr Index(unsigned long i) : Index(static_cast<unsigned long long>(i)) {}
  constexpr Index(unsigned i) : Index(static_cast<long>(i)) {}
  Index(Extent i) : Index(static_cast<long>(i)) {}
  constexpr Index(NoneType) : kind_(kNewAxis), has_(0), start_(0), stop_(0), step_(1), pointer_(nullptr) {}
  Index(const Tensor& i) : kind_(kTensor), has_(0), start_(0), stop_(0), step_(1), pointer_(&i) {}
  template <class N, class = decltype(Name(std::declval<const N&>()))>
  Index(const N& text) : Index(Name(text), 0) {}
  Index(bool) KASSETTE_DELETED("an index is an integer; K::switch_(mask, x, y) selects by a condition");
  Index(double) KASSETTE_DELETED("an index is an integer");
  constexpr Index(Kind kind, std::uint8_t has, std::int64_t start, std::int64_t stop, std::int64_t step)
      : kind_(kind), has_(has), start_(start), stop_(stop), step_(step), pointer_(nullptr) {}

 private:
  Index(Name text, int);
  Kind kind_;
  std::uint8_t has_;  // bit 0: start given, bit 1: stop given
  std::int64_t start_, stop_, step_;
  const void* pointer_;  // the tensor or the text, whose size is stop_
  friend struct Access;
};

/// A range of one axis, as start:stop:step in NumPy; None leaves a bound open, a negative step walks backwards.
KASSETTE_API Index slice(Scalar start, Scalar stop = None, Scalar step = None);
inline constexpr Index all{Index::kSlice, 0, 0, 0, 1};
inline constexpr Index ellipsis{Index::kEllipsis, 0, 0, 0, 1};
inline constexpr Index newaxis{Index::kNewAxis, 0, 0, 0, 1};

template <class T>
class Values;
class Indexed;

namespace detail {
template <class... A>
using AreNumbers = std::conjunction<std::is_arithmetic<A>...>;
}

/// A dense, row-major, immutable array with a dtype, a device and a place on the tape. It is one pointer; copies share
/// the array. An object whose bytes are all 0 is the empty Tensor: defined() is false, and it prints as "Tensor()".
/// Assignment makes a Tensor refer to another array, and no array is ever changed: x[0] = y does not compile.
class KASSETTE_API Tensor : private Arithmetic {
 public:
  Tensor() noexcept : impl_(nullptr) {}
  Tensor(NoneType) noexcept : impl_(nullptr) {}
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept : impl_(other.impl_) { other.impl_ = nullptr; }
  template <class A, class B, class... More, std::enable_if_t<detail::AreNumbers<A, B, More...>::value, int> = 0>
  Tensor(A, B, More...) KASSETTE_DELETED("K::constant({1, 2, 3}) makes a tensor of these numbers");
  template <class A, std::enable_if_t<detail::AreNumbers<A>::value, int> = 0>
  Tensor(std::initializer_list<std::initializer_list<A>>) KASSETTE_DELETED("use K::constant({{1, 2}, {3, 4}})");
  Tensor& operator=(const Tensor& other) & noexcept;
  Tensor& operator=(Tensor&& other) & noexcept {
    TensorImpl* impl = impl_;
    impl_ = other.impl_;
    other.impl_ = impl;
    return *this;
  }
  void operator=(const Tensor& other) &&
      KASSETTE_UNAVAILABLE(
          "this would change nothing: tensors are immutable, and x[i] is a tensor of its own. Make another tensor, by "
          "x.at(i).set(y) or K::switch_(mask, y, x); a variable changes by K::update");
  ~Tensor();

  /// False for the empty Tensor. (There is no operator bool: `if (K::all(x))` would ask this, not the value.)
  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const KASSETTE_DELETED("a condition is a bool: K::all(x > 0).item<bool>(), or x.defined()");
  template <class A, std::enable_if_t<detail::AreNumbers<A>::value, int> = 0>
  explicit operator A() const KASSETTE_DELETED("x.item<double>() is the number");
  /// The same number for all copies of a tensor, and another for every other tensor that lives meanwhile: a key for
  /// tables.
  std::uintptr_t id() const { return reinterpret_cast<std::uintptr_t>(impl_); }
  /// The static shape.
  Shape shape() const;
  int ndim() const;
  /// The number of elements. Throws ValueError if it is not known.
  std::int64_t size() const;
  DType dtype() const;
  Device device() const;
  /// True if the tensor has no value yet: it depends on a placeholder, or was built inside K::symbolic.
  bool symbolic() const;
  /// The elements, row-major, on the CPU; valid while the tensor lives. Throws TypeError if T is not the dtype's C++
  /// type, ValueError if the tensor is symbolic, DeviceError if it is not on the CPU. Cannot be called on a temporary,
  /// whose elements end with it: name the tensor first.
  template <class T>
  const T* data() const& {
    return static_cast<const T*>(data(dtype_of(static_cast<const T*>(nullptr))));
  }
  const void* data(DType dtype) const&;
  template <class T>
  const T* data() const&& KASSETTE_UNAVAILABLE("the elements would end with this temporary: name the tensor first");
  const void* data(DType) const&& KASSETTE_UNAVAILABLE("the elements would end with this temporary: name it first");
  /// The only element, converted to T. Throws ValueError unless there is exactly one.
  template <class T>
  T item() const {
    T value;
    item(&value, dtype_of(static_cast<const T*>(nullptr)));
    return value;
  }
  void item(void* value, DType dtype) const;
  /// All elements converted to T: the result converts to std::vector<T>, or can be iterated over directly.
  template <class T>
  Values<T> to_vector() const;
  /// The same value without history: it keeps no earlier op or tensor alive.
  Tensor detach() const;
  /// The same value on another device.
  Tensor to(Device device, ToOptions options = {}) const;

  /// NumPy's indexing. Throws ValueError for integers out of range; slices are clipped.
  Tensor operator[](const Index& i) const;
  Tensor operator()(const Index& i0, const Index& i1 = {}, const Index& i2 = {}, const Index& i3 = {},
                    const Index& i4 = {}, const Index& i5 = {}, const Index& i6 = {}, const Index& i7 = {}) const;
  /// The elements x(i, j, ...), to make a tensor that has other values there: x.at(i).set(0).
  Indexed at(const Index& i0, const Index& i1 = {}, const Index& i2 = {}, const Index& i3 = {}, const Index& i4 = {},
             const Index& i5 = {}, const Index& i6 = {}, const Index& i7 = {}) const;

  friend KASSETTE_API Tensor operator~(const Tensor& a);
  friend KASSETTE_API Tensor operator-(const Tensor& a);
  friend KASSETTE_API Tensor operator+(const Tensor& a);
  /// Prints like NumPy; see PrintOptions.
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Tensor& x);

 private:
  explicit Tensor(TensorImpl* impl) noexcept : impl_(impl) {}
  TensorImpl* impl_;
  friend struct Access;
};

/// Some elements of a tensor, from Tensor::at. Each function but get() returns a tensor with other values there; x
/// stays as it is. The values are broadcast to the shape of get(). If an element is indexed several times its values
/// come one after another, in their order: the last one stays, or all are added.
class KASSETTE_API Indexed {
 public:
  Indexed(const Indexed&) = delete;
  Indexed& operator=(const Indexed&) = delete;
  ~Indexed();
  Tensor get() const;
  Tensor set(const Operand& v) const;
  Tensor add(const Operand& v) const;
  Tensor multiply(const Operand& v) const;
  /// The element divided by the product of its values. Throws TypeError unless x is of a float dtype.
  Tensor divide(const Operand& v) const;
  Tensor min(const Operand& v) const;
  Tensor max(const Operand& v) const;

 private:
  Indexed(const Tensor& x, void* expression, std::int64_t row) noexcept;
  Tensor x_;
  void* expression_;  // none: x[row]
  std::int64_t row_;
  friend class Tensor;
};

/// The quotient rounded down, as Python's //.
KASSETTE_API Tensor floor_divide(const Operand& a, const Operand& b);

/// The elements of a tensor as T.
template <class T>
class Values {
 public:
  explicit Values(Tensor owner)
      : owner_(static_cast<Tensor&&>(owner)), data_(owner_.template data<T>()), size_(owner_.size()) {}
  // Not on a temporary: begin() and end() of two calls of x.to_vector<T>() would belong to two copies.
  const T* begin() const& { return data_; }
  const T* end() const& { return data_ + size_; }
  const T* begin() const&& = delete;
  const T* end() const&& = delete;
  const T* data() const& { return data_; }
  const T* data() const&& = delete;
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  const T& operator[](std::size_t i) const& { return data_[i]; }
  T operator[](std::size_t i) const&& { return data_[i]; }
  template <class C, class = decltype(C(std::declval<const T*>(), std::declval<const T*>()))>
  operator C() const {
    return C(begin(), end());
  }

 private:
  Tensor owner_;
  const T* data_;
  std::int64_t size_;
};
/// x with its elements converted, without history, on the CPU.
KASSETTE_API Tensor host_copy(const Tensor& x, DType dtype);
template <class T>
Values<T> Tensor::to_vector() const {
  return Values<T>(host_copy(*this, dtype_of(static_cast<const T*>(nullptr))));
}

/// A list of tensors. Elements may be given as operands: f({x, 1}).
class KASSETTE_API Tensors {
 public:
  Tensors() noexcept : data_(nullptr), size_(0), capacity_(0) {}
  Tensors(NoneType) noexcept : data_(nullptr), size_(0), capacity_(0) {}
  Tensors(const Tensor& one);
  Tensors(std::initializer_list<Operand> items);
  Tensors(const Tensors& other);
  Tensors(Tensors&& other) noexcept : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
  }
  /// Any container of tensors with begin() and end().
  template <class C, class = decltype(static_cast<const Tensor&>(*std::declval<const C&>().begin()))>
  Tensors(const C& c) : Tensors() {
    for (const Tensor& t : c) push_back(t);
  }
  Tensors& operator=(const Tensors& other);
  Tensors& operator=(Tensors&& other) noexcept;
  ~Tensors();
  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The i-th tensor; negative i counts from the end. Throws ValueError if i is out of range.
  const Tensor& operator[](std::int64_t i) const&;
  Tensor& operator[](std::int64_t i) &;
  Tensor operator[](std::int64_t i) &&;
  void push_back(Tensor tensor);
  void reserve(std::int64_t n);
  void clear();
  // Not on a temporary: f({x}).begin() and f({x}).end() would belong to two lists.
  const Tensor* begin() const& { return data_; }
  const Tensor* end() const& { return data_ + size_; }
  Tensor* begin() & { return data_; }
  Tensor* end() & { return data_ + size_; }
  const Tensor* begin() const&& = delete;
  const Tensor* end() const&& = delete;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Tensors& list);

 private:
  Tensor* data_;
  std::int64_t size_, capacity_;
};

namespace detail {
/// The elements, in the order of their indices, whatever the order in memory. A matrix that is a vector by its type has
/// one axis.
template <class C>
Tensor copied(const C& c) {
  using T = CopiedElement<C>;
  Sizes s;
  void* data = nullptr;
  if constexpr (IsMatrix<C>::value) {
    auto rows = static_cast<std::int64_t>(c.rows()), cols = static_cast<std::int64_t>(c.cols());
    if (IsVector<C>::value) s.push(rows * cols);
    else s.push(rows), s.push(cols);
    Tensor x = writable_memory(Shape(s.dims, s.rank), dtype_of(static_cast<const T*>(nullptr)), data);
    fill_matrix(evaluated(c, 0), rows, cols, static_cast<T*>(data));
    return x;
  } else {
    measure(c, s, 0);
    Tensor x = writable_memory(Shape(s.dims, s.rank), dtype_of(static_cast<const T*>(nullptr)), data);
    T* to = static_cast<T*>(data);
    fill(c, to);
    return x;
  }
}
}  // namespace detail
/// Nested containers, C arrays and matrices, copied.
template <class C>
struct ArrayOf<C, std::enable_if_t<detail::IsCopied<C>::value>> {
  static DType dtype() { return dtype_of(static_cast<const detail::CopiedElement<C>*>(nullptr)); }
  static Tensor tensor(const void* array) { return detail::copied(*static_cast<const C*>(array)); }
};

}  // namespace kassette

#endif  // KASSETTE_TENSOR_H

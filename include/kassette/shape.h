// include/kassette/shape.h - shapes as results (Shape), and shapes and axes as arguments (Dims, Axes).
#ifndef KASSETTE_SHAPE_H
#define KASSETTE_SHAPE_H
#include <cstdint>
#include <initializer_list>

#include <kassette/dtype.h>
#include <kassette/none.h>

namespace kassette {

class Tensor;
/// The largest number of axes that a tensor can have.
inline constexpr int kMaxRank = 8;

/// One size of a shape: a number, or None if it is unknown until a function is called.
class KASSETTE_API Extent {
 public:
  constexpr Extent() : value_(0) {}
  constexpr explicit Extent(std::int64_t value) : value_(value) {}
  Extent(const Extent&) = default;
  Extent& operator=(const Extent&) & = default;
  void operator=(const Extent&) && = delete;  // x.shape()[0] = n would change nothing: x = K::reshape(x, {n, ...})
  /// The number. Throws ValueError if it is unknown; the message names K::shape.
  operator std::int64_t() const;
  constexpr bool known() const { return value_ >= 0; }
  friend bool operator==(Extent a, NoneType) { return a.value_ < 0; }
  friend bool operator!=(Extent a, NoneType) { return a.value_ >= 0; }
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, Extent extent);

 private:
  std::int64_t value_;
};

/// The static shape of a tensor: up to eight sizes, each known or None. The rank may be unknown too. A Shape converts
/// to a container of integers, with -1 for None: `std::vector<std::int64_t> dims = x.shape();`.
class KASSETTE_API Shape {
 public:
  Shape();
  Shape(std::initializer_list<std::int64_t> dims);
  Shape(const std::int64_t* dims, int rank);
  Shape(const Shape&) = default;
  Shape& operator=(const Shape&) & = default;
  void operator=(const Shape&) && = delete;  // x.shape() = s would change nothing: x = K::reshape(x, s)
  /// The number of axes; -1 if it is unknown.
  int rank() const { return rank_; }
  int size() const { return rank_ < 0 ? 0 : rank_; }
  /// The size along an axis; negative axes count from the end.
  Extent operator[](int axis) const;
  /// True if the rank and every size are known.
  bool known() const;
  /// The product of the sizes. Throws ValueError if one is unknown.
  std::int64_t numel() const;
  /// The sizes, with -1 for an unknown one. Cannot be called on a temporary: begin() and end() of two calls of
  /// x.shape() would belong to two copies.
  const std::int64_t* begin() const& { return dims_; }
  const std::int64_t* end() const& { return dims_ + size(); }
  const std::int64_t* begin() const&& = delete;
  const std::int64_t* end() const&& = delete;
  template <
      class C, class = decltype(C(std::declval<const std::int64_t*>(), std::declval<const std::int64_t*>())),
      class = std::enable_if_t<std::is_integral<typename C::value_type>::value && sizeof(typename C::value_type) >= 4>>
  operator C() const {
    return C(dims_, dims_ + size());
  }
  friend KASSETTE_API bool operator==(const Shape& a, const Shape& b);
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }
  /// Whether the rank is unknown: shape == None.
  friend bool operator==(const Shape& a, NoneType) { return a.rank_ < 0; }
  friend bool operator!=(const Shape& a, NoneType) { return a.rank_ >= 0; }
  /// Prints as (2, 3), (None, 3), () and (...) for an unknown rank.
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const Shape& shape);

 private:
  std::int64_t dims_[kMaxRank];  // -1: unknown
  int rank_;
  friend class Dims;
};

/// One entry of a shape argument: a number, None, or a scalar integer tensor (borrowed for the call).
class Dim {
 public:
  constexpr Dim() : value_(0), tensor_(nullptr) {}
  constexpr Dim(int value) : value_(value), tensor_(nullptr) {}
  constexpr Dim(unsigned value) : value_(value), tensor_(nullptr) {}
  constexpr Dim(long value) : value_(value), tensor_(nullptr) {}
  constexpr Dim(unsigned long value) : value_(static_cast<std::int64_t>(value)), tensor_(nullptr) {}
  constexpr Dim(long long value) : value_(value), tensor_(nullptr) {}
  constexpr Dim(unsigned long long value) : value_(static_cast<std::int64_t>(value)), tensor_(nullptr) {}
  constexpr Dim(NoneType) : value_(kNoneDim), tensor_(nullptr) {}
  Dim(Extent extent) : value_(extent.known() ? std::int64_t(extent) : kNoneDim), tensor_(nullptr) {}
  Dim(const Tensor& tensor) : value_(0), tensor_(&tensor) {}
  static constexpr std::int64_t kNoneDim = INT64_MIN;
  std::int64_t value_;  // kNoneDim: None
  const Tensor* tensor_;
};

/// A shape argument: {2, K::None}, one integer, a Shape, one integer tensor, or numbers and scalar tensors mixed. {} is
/// rank 0; None is an unknown rank. A shape that is built at run time is a container of integers, or a
/// `std::vector<kassette::Dim>` if a size may be unknown or a tensor. The function that takes it throws
/// ValueError above rank 8.
class KASSETTE_API Dims {
 public:
  Dims(NoneType);
  Dims(int one);
  Dims(long one);
  Dims(unsigned one) : Dims({Dim(one)}) {}
  Dims(unsigned long one) : Dims({Dim(one)}) {}
  Dims(long long one) : Dims({Dim(one)}) {}
  Dims(unsigned long long one) : Dims({Dim(one)}) {}
  Dims(Extent one) : Dims({Dim(one)}) {}
  Dims(const Tensor& integers);
  Dims(const Shape& shape);
  Dims(std::initializer_list<Dim> dims);
  template <class C, class = decltype(std::declval<const C&>().size(), Dim(*std::declval<const C&>().data()))>
  Dims(const C& c) : Dims(None) {
    size_ = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.size()); ++i) push(Dim(c.data()[i]));
  }

  int size_;             // -1: the rank is unknown, or given by `whole_`; above kMaxRank: too many (check_length)
  const Tensor* whole_;  // one integer tensor that holds the shape
  union {
    Dim dims_[kMaxRank];  // the first size_ are there; zeroing them all takes longer than making a small tensor
  };

 private:
  void push(const Dim& dim);
};

/// An axis argument: one axis, a list, or None for all. {} reduces nothing. bool does not compile: sum(x, true) is a
/// mistake.
class KASSETTE_API Axes {
 public:
  Axes(NoneType);
  Axes(int one);
  Axes(bool) = delete;
  template <class Integer, class = std::enable_if_t<std::is_integral<Integer>::value>>
  Axes(Integer one) : size_(0) {
    push(one);
  }
  Axes(std::initializer_list<int> list);
  template <class C, class = decltype(std::declval<const C&>().size(), *std::declval<const C&>().data() + 0)>
  Axes(const C& c) : Axes(None) {
    size_ = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.size()); ++i) push(c.data()[i]);
  }

  int size_;  // -1: all; above kMaxRank: too many (check_length)
  int axes_[kMaxRank];

 private:
  void push(std::int64_t axis);
};

}  // namespace kassette

#endif  // KASSETTE_SHAPE_H

// core/shape.cpp - Shape, Dims, Axes.
#include <kassette/shape.h>

#include <climits>
#include <cstring>
#include <ostream>
#include <string>

#include "core/rank.h"

namespace kassette {

Extent::operator std::int64_t() const {
  if (value_ < 0)
    fail<ValueError>({"int_shape"}, "this dimension is unknown until the function is called", kRemedy,
                     "use K::shape(x)[i]");
  return value_;
}
std::ostream& operator<<(std::ostream& os, Extent extent) {
  return os << (extent.known() ? text(std::int64_t(extent)) : "None");
}

Shape::Shape() : dims_(), rank_(0) {}
Shape::Shape(std::initializer_list<std::int64_t> dims) : dims_(), rank_(0) {
  (void)checked_rank("Shape", static_cast<std::int64_t>(dims.size()));
  for (std::int64_t d : dims) dims_[rank_++] = d;
}
// -1 stands for an unknown rank.
Shape::Shape(const std::int64_t* dims, int rank) : dims_(), rank_(rank == -1 ? -1 : checked_rank("Shape", rank)) {
  for (int i = 0; i < rank; ++i) dims_[i] = dims[i];
}
Extent Shape::operator[](int axis) const {
  if (rank_ < 0) fail<ValueError>({"shape"}, "the rank is unknown until the function is called");
  int i = from_front(axis, rank_);
  if (i < 0) fail<ValueError>({"shape", "axis"}, axis, " is out of range for ", *this, " of rank ", rank_);
  return Extent(dims_[i]);
}
bool Shape::known() const {
  if (rank_ < 0) return false;
  for (std::int64_t d : *this)
    if (d < 0) return false;
  return true;
}
std::int64_t Shape::numel() const {
  if (!known()) fail<ValueError>({"shape"}, *this, " has an unknown size", kRemedy, "use K::size(x)");
  std::uint64_t n = 1;  // wraps beside a 0, and gives 0: see TensorSpec::numel
  for (std::int64_t d : *this) n *= static_cast<std::uint64_t>(d);
  return static_cast<std::int64_t>(n);
}
bool operator==(const Shape& a, const Shape& b) {
  if (a.rank_ != b.rank_) return false;
  for (int i = 0; i < a.size(); ++i)
    if (a.dims_[i] != b.dims_[i]) return false;
  return true;
}
std::ostream& operator<<(std::ostream& os, const Shape& shape) { return os << shape_text(shape); }

std::string shape_text(const Shape& shape) {
  if (shape.rank() < 0) return "(...)";
  std::string s = "(";
  const char* comma = "";
  for (std::int64_t d : shape) {
    s += comma;
    s += d < 0 ? "None" : std::to_string(d);
    comma = ", ";
  }
  return s + (shape.rank() == 1 ? ",)" : ")");
}
std::string shape_text(const TensorSpec& spec) { return shape_text(spec.shape()); }
std::ostream& operator<<(std::ostream& os, const TensorSpec& spec) { return os << spec.shape(); }

std::int64_t TensorSpec::checked_empty(const char* what) const {
  std::int64_t n = dtype.size();
  bool over = false;
  for (int i = 0; i < rank; ++i)
    if (dims[i] != 0) over |= __builtin_mul_overflow(n, dims[i], &n);
  if (over || n > kMaxBytes) fail_size(*this, what);
  return 0;
}

int place_axis(const char* op, std::int64_t axis, const TensorSpec& x, int added, const char* name) {
  int at = from_front(axis, x.rank + added);
  if (at < 0) fail_axis(op, axis, x, added, name);
  return at;
}
void fail_unknown_rank(const At& at) {
  fail<ValueError>(at, "of unknown rank", kRemedy, "declare the rank in the placeholder");
}
void fail_axis(const char* op, std::int64_t axis, const TensorSpec& x, int added, const char* name) {
  const bool listed = std::strcmp(name, "axis") != 0;
  const std::string given = listed ? text("hold ", axis, ", which") : text(axis);
  if (x.rank < 0)
    fail<ValueError>({op, name}, given, " is out of range", kExpected, "a tensor has 0 to ", kMaxRank, " axes");
  int n = x.rank + added;
  fail<ValueError>({op, name}, given, " is out of range for ", x, " of rank ", int(x.rank), kExpected,
                   added ? text("it lies between ", -n, " and ", n - 1) : "");
}
void fail_length(const At& at, int length) {
  fail<ValueError>(at, "of ", length, " numbers", kExpected, "a tensor has 0 to ", kMaxRank, " axes");
}

void fail_size(const TensorSpec& spec, const char* what) {
  fail<ValueError>({what}, "a result of shape ", spec, " and dtype ", spec.dtype, " is too large to address");
}

Dims::Dims(NoneType) : size_(-1), whole_(nullptr) {}
Dims::Dims(int one) : Dims({Dim(one)}) {}
Dims::Dims(long one) : Dims({Dim(one)}) {}
Dims::Dims(const Tensor& integers) : size_(-1), whole_(&integers) {}
Dims::Dims(const Shape& shape) : size_(0), whole_(nullptr) {
  if (shape.rank() < 0) {
    size_ = -1;
    return;
  }
  for (std::int64_t d : shape) push(d < 0 ? Dim(None) : Dim(static_cast<long>(d)));
}
Dims::Dims(std::initializer_list<Dim> dims) : size_(0), whole_(nullptr) {
  for (const Dim& d : dims) push(d);
}
void Dims::push(const Dim& dim) {
  if (size_ < kMaxRank) dims_[size_] = dim;
  ++size_;
}

Axes::Axes(NoneType) : size_(-1), axes_() {}
Axes::Axes(int one) : size_(1), axes_{one} {}
Axes::Axes(std::initializer_list<int> list) : size_(0), axes_() {
  for (int a : list) push(a);
}
void Axes::push(std::int64_t axis) {
  if (axis < INT_MIN || axis > INT_MAX)
    fail<ValueError>({"", "axis"}, axis, " is out of range", kExpected, "a tensor has 0 to ", kMaxRank, " axes");
  if (size_ < kMaxRank) axes_[size_] = static_cast<int>(axis);
  ++size_;
}

}  // namespace kassette

// core/borrow.cpp - tensors over memory that the caller owns.
#include <kassette/borrow.h>

#include "core/convert.h"
#include "core/rank.h"
#include "core/text.h"

namespace kassette {
namespace {

/// The TensorSpec of a dtype and a known shape.
TensorSpec known_spec(const char* what, DType dtype, const Dims& shape) {
  if (!dtype.given()) fail<TypeError>({what, "dtype"}, "is None");
  TensorSpec spec(dtype, {});
  if (shape.whole_) fail<TypeError>({what, "shape"}, "is a tensor", kExpected, "it must be numbers");
  if (shape.size_ < 0) fail<ValueError>({what, "shape"}, "is None");
  check_length({what, "shape"}, shape);
  spec.rank = static_cast<std::int8_t>(shape.size_);
  for (int i = 0; i < shape.size_; ++i) {
    const Dim& d = shape.dims_[i];
    if (d.tensor_) fail<TypeError>({what, "shape"}, "holds a tensor", kExpected, "it must hold numbers");
    if (d.value_ < 0)
      fail<ValueError>({what, "shape"}, "holds ", d.value_ == Dim::kNoneDim ? "None" : text(d.value_), kExpected,
                       "sizes must be known and not negative");
    spec.dims[i] = d.value_;
  }
  return spec;
}

TensorSpec borrowed_spec(std::int64_t count, DType dtype, const Dims& shape) {
  if (shape.size_ < 0 && !shape.whole_ && count != detail::kOfShape) return TensorSpec(dtype, {count});
  TensorSpec spec = known_spec("borrow", dtype, shape);
  std::int64_t bytes = spec.checked_bytes("borrow");
  if (count != detail::kOfShape && bytes != count * dtype.size())
    fail<ValueError>({"borrow"}, count, " elements for the shape ", spec, ", which takes ", spec.numel());
  return spec;
}

}  // namespace

Tensor borrow_memory(const void* data, std::int64_t count, DType dtype, const Dims& shape, BorrowOwner owner) {
  TensorDesc b;
  try {
    if (count < 0 && count != detail::kOfShape)
      fail<ValueError>({"borrow", "span"}, "has size ", count, kExpected, "it must not be negative");
    b.set(borrowed_spec(count, dtype, shape));
    if (!data && b.numel()) fail<ValueError>({"borrow", "data"}, "is a null pointer for ", b.numel(), " elements");
    if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(dtype.size()) != 0)
      fail<ValueError>({"borrow", "data"}, "is not aligned for ", dtype, kRemedy, "copy it with from_memory");
    if (count == detail::kOfShape && dtype.is_bool() && !holds_bools(static_cast<const std::byte*>(data), b.numel()))
      fail<ValueError>({"borrow", "data"}, "has a byte that is neither 0 nor 1 for bool", kRemedy,
                       "copy it with from_memory");
    b.device = cpu;
    b.storage = Storage::borrow(data, b.bytes(), {owner.release, owner.state});
  } catch (...) {
    owner.discard(owner.state);
    throw;
  }
  return Access::wrap(std::move(b));
}

Tensor from_memory(const void* data, DType dtype, const Dims& shape, const Dims& strides) {
  TensorSpec spec = known_spec("from_memory", dtype, shape);
  std::int64_t bytes = spec.checked_bytes("from_memory"), apart[kMaxRank] = {};
  if (strides.whole_) fail<TypeError>({"from_memory", "strides"}, "are a tensor", kExpected, "they must be numbers");
  const bool given = strides.size_ >= 0;
  if (given && strides.size_ != spec.rank)
    fail<ValueError>({"from_memory", "strides"}, "are ", strides.size_, " for the shape ", spec, kExpected,
                     "there must be one for each axis");
  for (int i = 0; i < strides.size_; ++i) {
    const Dim& d = strides.dims_[i];
    if (d.tensor_ || d.value_ == Dim::kNoneDim)
      fail<TypeError>({"from_memory", "strides"}, "hold ", d.tensor_ ? "a tensor" : "None", kExpected,
                      "they must be numbers of elements");
    apart[i] = d.value_;
  }
  if (!data && bytes) fail<ValueError>({"from_memory", "data"}, "is a null pointer for the shape ", spec);
  TensorDesc b;
  b.set(spec);
  b.device = cpu;
  b.storage = Storage::allocate(bytes, cpu);
  copy_strided(b.data(), spec, static_cast<const std::byte*>(data), given ? apart : nullptr);
  return Access::wrap(std::move(b));
}

void detail::fail_ragged(int depth, std::int64_t size, std::int64_t first) {
  fail<ValueError>({"array"}, "a nested container is ragged: along axis ", depth, " a size is ", size, ", and ", first,
                   " before it");
}
void detail::fail_depth() { fail<ValueError>({"array"}, "a container nested deeper than ", kMaxRank); }

Tensor detail::writable_memory(const Shape& shape, DType dtype, void*& data) {
  TensorDesc b;
  b.dtype = dtype;
  b.rank = static_cast<std::int8_t>(shape.rank());
  for (int i = 0; i < b.rank; ++i) b.dims[i] = shape.begin()[i];
  b.device = cpu;
  b.storage = Storage::allocate(b.checked_bytes("tensor"), cpu);
  data = b.data();
  return Access::wrap(std::move(b));
}

void* exclusive_data(const Tensor& x) {
  if (!x.defined()) return nullptr;
  const TensorDesc& b = Access::desc(x);
  if (!b.storage || b.node || b.device != cpu || b.storage->kind == Storage::kBorrowed) return nullptr;
  const bool alone = Access::impl(x)->count.load(std::memory_order_acquire) == 1 &&
                     b.storage->count.load(std::memory_order_acquire) == 1;
  return alone ? b.data() : nullptr;
}

}  // namespace kassette

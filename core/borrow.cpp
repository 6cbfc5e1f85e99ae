// core/borrow.cpp - tensors over memory of somebody else.
#include <kassette/borrow.h>

#include "core/text.h"

namespace kassette {
namespace {

Spec borrowed_spec(std::int64_t count, DType dtype, const Dims& shape) {
  Spec spec(dtype, {count});
  if (shape.size_ < 0 && !shape.whole_) return spec;
  if (shape.whole_) fail<TypeError>("borrow: the shape is a tensor; it takes numbers");
  spec.rank = static_cast<std::int8_t>(shape.size_);
  for (int i = 0; i < shape.size_; ++i) {
    const Dim& d = shape.dims_[i];
    if (d.tensor_) fail<TypeError>("borrow: the shape holds a tensor; it takes numbers");
    if (d.value_ < 0) fail<ValueError>("borrow: a size of the shape is ", d.value_ == Dim::kNoneDim ? "None" : "negative");
    spec.dims[i] = d.value_;
  }
  if (spec.checked_bytes("borrow") != count * dtype.size())
    fail<ValueError>("borrow: ", count, " elements for the shape ", spec, ", which takes ", spec.numel());
  return spec;
}

}  // namespace

Tensor borrow_memory(const void* data, std::int64_t count, DType dtype, const Dims& shape, BorrowOwner owner) {
  Body b;
  try {
    if (count < 0) fail<ValueError>("borrow: ", count, " elements");
    b.set(borrowed_spec(count, dtype, shape));
    if (!data && count) fail<ValueError>("borrow: a null pointer for ", count, " elements");
    b.device = cpu;
    b.storage = Storage::borrow(data, b.bytes(), {owner.release, owner.state});
  } catch (...) {
    owner.discard(owner.state);
    throw;
  }
  return Access::wrap(std::move(b));
}

Tensor detail::writable_memory(const Shape& shape, DType dtype, void*& data) {
  Body b;
  b.dtype = dtype;
  b.rank = static_cast<std::int8_t>(shape.rank());
  for (int i = 0; i < b.rank; ++i) b.dims[i] = shape.begin()[i];
  b.device = cpu;
  b.storage = Storage::allocate(b.checked_bytes("tensor"), cpu);
  data = b.data();
  return Access::wrap(std::move(b));
}

}  // namespace kassette

// ops/engine/desc.h - descriptors without history: making them, comparing them, and giving them other bytes.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// A tensor without history. Without `bytes`: shape, dtype and device alone.
inline TensorDesc make_desc(const TensorSpec& spec, Device device, Ref<Storage> bytes = {}, std::int64_t offset = 0) {
  TensorDesc b;
  b.set(spec);
  b.device = device;
  b.storage = std::move(bytes);
  b.offset = offset;
  return b;
}
inline TensorDesc make_desc(const TensorSpec& spec, Device device, Value v) {
  return make_desc(spec, device, std::move(v.storage), v.offset);
}
/// Replaces the bytes of a tensor; shape, dtype and device stay.
inline void put(TensorDesc& to, Value v) {
  to.storage = std::move(v.storage);
  to.offset = v.offset;
}
inline Value value_in(const TensorDesc& b) { return {b.storage, b.offset}; }
/// True if shape, dtype and device are equal.
inline bool alike(const TensorDesc& a, const TensorDesc& b) {
  return a.same_shape(b) && a.dtype == b.dtype && a.device == b.device;
}
/// A tensor with the current value of `from`, without history.
Tensor detached(const TensorDesc& from);

}  // namespace kassette::ops

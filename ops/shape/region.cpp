// ops/shape/region.cpp - copying a box of elements out of a tensor, and into zeros.
#include "ops/shape/region.h"

#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

/// The layout that copies the region out of a tensor of shape x. Sets *first to the offset of the region's first
/// element.
Strided layout_of(const Region& r, const TensorSpec& x, std::int64_t* first) {
  std::int64_t strides[kMaxRank], to = 1;
  row_strides(x, strides);
  Strided reversed, layout;
  *first = 0;
  for (int i = r.rank - 1; i >= 0; --i) {
    *first += r.start[i] * strides[i];
    reversed.push(r.count[i], strides[i] * r.step[i], to);
    to *= r.count[i];
  }
  for (int i = reversed.rank - 1; i >= 0; --i) layout.push(reversed.dims[i], reversed.from[i], reversed.to[i]);
  return layout;
}

/// True if the elements are contiguous in memory.
bool contiguous(const Strided& layout) {
  for (int i = 0; i < layout.rank; ++i)
    if (layout.dims[i] > 1 && layout.from[i] != layout.to[i]) return false;
  return true;
}

}  // namespace

void take(const OpCall& call, const Region& r) {
  const TensorSpec& x = call.spec(0);
  TensorDesc& out = *call.out[0];
  std::int64_t first;
  Strided layout = layout_of(r, x, &first);
  int size = x.dtype.size();
  if (contiguous(layout)) {
    Value v = read_value(*call.in[0].desc);
    out.storage = std::move(v.storage);
    out.offset = v.offset + (out.numel() ? first * size : 0);
    return;
  }
  allocate_output(out, call.device);
  copy_strided(call, layout, call.in[0].data + first * size, out.data(), size);
}

void write_padded(const OpCall& call, const Region& r) {
  TensorDesc& out = *call.out[0];
  std::int64_t first;
  Strided layout = layout_of(r, out, &first);
  for (int i = 0; i < layout.rank; ++i) std::swap(layout.from[i], layout.to[i]);
  int size = out.dtype.size();
  zero_bytes(call, out.data(), out.bytes());
  copy_strided(call, layout, call.in[0].data, out.data() + first * size, size);
}

void padded_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(call.n_in - 1));
  out->dtype = call.spec(0).dtype;
}

}  // namespace kassette::ops

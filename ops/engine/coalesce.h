// ops/engine/coalesce.h - strides of arrays that are walked together, with neighbouring axes joined into one.
#pragma once
#include "core/impl.h"

namespace kassette::ops {

/// Writes the stride, in elements, of an array of shape x along each axis of `out`, to which it broadcasts: 0 where it
/// repeats.
inline void broadcast_strides(const TensorSpec& x, const TensorSpec& out, std::int64_t* strides) {
  const int lead = out.rank - x.rank;
  std::int64_t step = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    strides[lead + i] = x.dims[i] == 1 ? 0 : step;
    step *= x.dims[i];
  }
  for (int i = 0; i < lead; ++i) strides[i] = 0;
}

/// The strides of an array along the axes so far, outermost first, and along the next one.
struct Along {
  std::int64_t* strides;
  std::int64_t next;
};
/// Appends an axis of n elements, if n is not 1, to `rank` axes. It is joined to the last one if for every array a step
/// along that one is as far as n steps along the new one. at(k) is the Along of array k.
template <class At>
void push_coalesced(int& rank, std::int64_t* dims, std::int64_t n, int arrays, At at) {
  if (n == 1) return;
  int last = rank - 1;
  bool joins = last >= 0;
  for (int k = 0; joins && k < arrays; ++k) joins = at(k).strides[last] == at(k).next * n;
  if (joins) {
    dims[last] *= n;
  } else {
    dims[++last] = n;
    rank = last + 1;
  }
  for (int k = 0; k < arrays; ++k) at(k).strides[last] = at(k).next;
}

}  // namespace kassette::ops

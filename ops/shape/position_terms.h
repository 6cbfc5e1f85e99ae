// ops/shape/position_terms.h - what the kernels of index_positions compute. For the library and the device library.
#pragma once
#include "ops/engine/coalesce.h"
#include "ops/shape/positions.h"

namespace kassette::ops {

inline const PositionList& position_list(const OpCall& call) { return call.attrs.extra->as<PositionList>(); }

/// Whether the list is one tensor, whose indices are the positions then.
inline bool one_tensor(const PositionList& list) { return list.n == 1 && list.parts[0].tensor >= 0; }

/// Walks over the axes of the result. `put` is called with the size of each, and with the step of a slice in axes of
/// x; `put_tensors` where those of the index tensors are; `index` with each integer and its axis.
template <class Put, class PutTensors, class Index>
void walk(const PositionList& list, const TensorSpec& x, Put put, PutTensors put_tensors, Index index) {
  bool placed = list.in_front;
  if (placed) put_tensors();
  int axis = list.first;
  for (int k = 0; k < list.n; ++k) {
    const PositionList::Part& p = list.parts[k];
    if (p.tensor >= 0) {
      if (!placed) put_tensors();
      placed = true;
      axis += p.axes;
    } else if (p.basic.kind == IndexList::kNewAxis) {
      put(1, axis, Run());
    } else if (p.basic.kind == IndexList::kInt) {
      index(p.basic.start, axis++);
    } else {
      const Run run = run_of(p.basic, x.dims[axis]);
      put(run.count, axis++, run);
    }
  }
}

/// Element i of the result is `base`, plus `steps` times its place along each axis, plus `weight` times an element of
/// each index tensor.
struct PositionTerms {
  struct Term {
    std::int64_t size = 0, weight = 0, axis = 0, count = 0;  // of the axis; how many indices there are
    std::int64_t strides[kMaxRank] = {};
  };
  int rank = 0, n;
  std::int64_t base = 0, dims[kMaxRank] = {}, steps[kMaxRank] = {};
  Term terms[kMaxRank];
  /// The rule has accepted the call.
  explicit PositionTerms(const OpCall& call);

 private:
  std::int64_t weights_[kMaxRank + 1] = {};  // of an axis: how many positions one place along it is
  void find_weights(const PositionList& list, const TensorSpec& x);
  void find_terms(const PositionList& list, const OpCall& call);
};

/// The shape that the index tensors, inputs 1 and on, are broadcast to.
inline TensorSpec broadcast_known(const OpCall& call) {
  TensorSpec all(int64, {});
  for (int k = 1; k < call.n_in; ++k) all.rank = std::max(all.rank, call.spec(k).rank);
  for (int i = 0; i < all.rank; ++i) all.dims[i] = 1;
  for (int k = 1; k < call.n_in; ++k) {
    const TensorSpec& s = call.spec(k);
    for (int i = 0; i < s.rank; ++i)
      if (s.dims[i] != 1) all.dims[all.rank - s.rank + i] = s.dims[i];
  }
  return all;
}

inline void PositionTerms::find_weights(const PositionList& list, const TensorSpec& x) {
  std::int64_t weight = 1;
  for (int axis = list.first + list.axes; axis > list.first; --axis) {
    weights_[axis - 1] = weight;
    weight *= x.dims[axis - 1];
  }
}

inline void PositionTerms::find_terms(const PositionList& list, const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  int axis = list.first;
  for (int k = 0; k < list.n; ++k) {
    const PositionList::Part& p = list.parts[k];
    if (p.tensor >= 0) {
      Term& term = terms[p.tensor];
      term.axis = p.named;
      term.size = 1;
      for (int i = 0; i < p.axes; ++i) term.size *= x.dims[axis + i];
      term.weight = p.axes ? weights_[axis + p.axes - 1] : 0;
      term.count = call.spec(p.tensor + 1).numel();
    }
    axis += p.tensor >= 0 ? p.axes : p.basic.kind != IndexList::kNewAxis;
  }
}

inline PositionTerms::PositionTerms(const OpCall& call) : n(call.n_in - 1) {
  const PositionList& list = position_list(call);
  const TensorSpec &x = call.spec(0), all = broadcast_known(call);
  find_weights(list, x);
  find_terms(list, call);
  const auto put = [&](std::int64_t size, int of, const Run& run) {
    dims[rank] = size;
    base += run.count ? run.start * weights_[of] : 0;
    steps[rank++] = run.count ? run.step * weights_[of] : 0;
  };
  const auto put_tensors = [&] {
    for (int k = 0; k < n; ++k) broadcast_strides(call.spec(k + 1), all, terms[k].strides + rank);
    for (int i = 0; i < all.rank; ++i) dims[rank++] = all.dims[i];
  };
  walk(list, x, put, put_tensors, [&](std::int64_t i, int of) { base += (i < 0 ? i + x.dims[of] : i) * weights_[of]; });
  if (rank == 0) dims[rank++] = 1;
}

}  // namespace kassette::ops

// ops/fold.cuh - folding groups of elements on CUDA: what all reductions are made of.
#pragma once
#include "ops/teams.cuh"

namespace kassette::cuda {

/// One team for a part of one group: blockIdx.y is the part. A single part is finished here, others wait in `partial`.
template <class Team, class C, class Fold, class Map, class Finish>
__global__ void fold_parts(Groups g, Fold fold, Map map, Finish finish, C* partial, std::int64_t length) {
  const std::int64_t begin = blockIdx.y * length, end = begin + length < g.along.n ? begin + length : g.along.n;
  for (std::int64_t o = Team::first(); o < g.kept.n; o += Team::step()) {
    const std::int64_t from = g.kept[o];
    C value = fold.identity;
    for (std::int64_t i = begin + Team::rank(); i < end; i += Team::kSize) value = fold(value, map(o, i, from + g.along[i]));
    value = Team::fold(value, fold);
    if (Team::rank()) continue;
    if (gridDim.y == 1) finish(o, value);
    else partial[blockIdx.y * g.kept.n + o] = value;
  }
}
template <class C, class Fold, class Finish>
__global__ void fold_partial(std::int64_t n, Fold fold, Finish finish, const C* partial, int parts) {
  for (std::int64_t o = Thread::first(); o < n; o += Thread::step()) {
    C value = partial[o];
    for (int i = 1; i < parts; ++i) value = fold(value, partial[i * n + o]);
    finish(o, value);
  }
}

/// So many parts that few groups still occupy the whole device; fixed by the shape, so that bits are.
template <class Team>
int parts_of(const Groups& g) {
  constexpr std::int64_t kBusy = 1 << 16, kLeast = Team::kSize == 1 ? 64 : 1 << 13, kMost = 1024;
  std::int64_t wanted = kBusy / (g.kept.n * Team::kSize), possible = g.along.n / kLeast;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(wanted, possible), 1, kMost));
}

/// finish(o, fold of map(o, i, element) over the members i of group o) for all groups. Each element is read once.
template <class C, class Fold, class Map, class Finish>
void fold_groups(const Call& call, const Groups& g, Fold fold, Map map, Finish finish) {
  if (g.kept.n == 0) return;
  CudaBackend& device = device_of(call.device);
  with_team(g, [&](auto team) {
    using Team = decltype(team);
    const int parts = parts_of<Team>(g);
    Scratch partial(device, parts > 1 ? g.kept.n * parts * static_cast<std::int64_t>(sizeof(C)) : 0);
    C* held = static_cast<C*>(partial.get());
    launch(call.op.name, device, dim3(blocks_of<Team>(g), static_cast<unsigned>(parts)), fold_parts<Team, C, Fold, Map, Finish>, g, fold, map, finish,
           held, (g.along.n + parts - 1) / parts);
    if (parts > 1) launch(call.op.name, device, blocks_for(g.kept.n), fold_partial<C, Fold, Finish>, g.kept.n, fold, finish, held, parts);
  });
}

/// An element as what it is computed in.
template <class T>
struct Plain {
  const T* x;
  __device__ Wide<T> operator()(std::int64_t, std::int64_t, std::int64_t at) const { return load(x + at); }
};
/// The result, divided by a number.
template <class T>
struct Divided {
  T* out;
  Wide<T> by;
  __device__ void operator()(std::int64_t o, Wide<T> v) const { store(out + o, static_cast<Wide<T>>(v / by)); }
};

template <class T>
struct Gap {
  const T* x;
  const Wide<T>* mean;
  __device__ Wide<T> operator()(std::int64_t o, std::int64_t, std::int64_t at) const {
    Wide<T> gap = load(x + at) - mean[o];
    return gap * gap;
  }
};
template <class C>
struct Held {   // kept as it is computed, for a later pass
  C* out;
  C by;
  __device__ void operator()(std::int64_t o, C v) const { out[o] = v / by; }
};

}  // namespace kassette::cuda

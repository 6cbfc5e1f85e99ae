// ops/reduce/reduce_groups.cuh - reductions of groups of elements on CUDA.
#pragma once
#include <algorithm>
#include <iterator>
#include <utility>

#include "ops/engine/packs.cuh"
#include "ops/reduce/rounded_mean.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {

// Note [Reductions on CUDA]
// Tensors are contiguous, so the last axis belongs either to the members of a group (rows) or to the groups (columns).
//   Rows     A group consists of runs of contiguous elements. A run is cut into packs of at most 16 bytes, counted
//            from the tensor's first element, so that packs are aligned whatever the length of a row; the first and
//            the last pack may belong to the run only in part. A short group gets some lanes of a warp, a long one a
//            block.
//   Columns  A block has `width` threads side by side, each with a pack of columns, or with one column if the number
//            of columns is not a multiple of a pack. The other threads of the block process other members of the same
//            groups.
// A thread issues kAhead loads of packs before it uses the first, and __launch_bounds__ asks for two to four resident
// blocks per multiprocessor. If groups are few, each is cut into parts, up to some thousand blocks; a second launch
// reduces the values of the parts, as columns. All of this depends on the shape alone, never on the device or on
// addresses (which decide only whether a pack is one load), and so do the bits of the result.

/// A pack of each of the kStreams tensors, all of one shape, that a map reads.
template <class Map>
struct Fetched {
  using T = typename Map::T;
  static constexpr int kSize = kPack<T>;
  Packed<T> of[Map::kStreams];

  /// Loads the packs that begin at element `at`, each in one load if `packed`.
  __device__ void whole(const Map& map, std::int64_t at, bool packed) {
#pragma unroll
    for (int s = 0; s < Map::kStreams; ++s) {
      const T* from = map.stream[s] + at;
      if (packed) {
        of[s] = *reinterpret_cast<const Packed<T>*>(from);
      } else {
#pragma unroll
        for (int k = 0; k < kSize; ++k) of[s].v[k] = from[k];
      }
    }
  }
  __device__ auto value(const Map& map, std::int64_t o, std::int64_t i, int k) const {
    if constexpr (Map::kStreams == 1) return map(o, i, of[0].v[k]);
    else return map(o, i, of[0].v[k], of[1].v[k]);
  }
};
template <class Map>
using Mapped = decltype(std::declval<Fetched<Map>>().value(std::declval<Map>(), 0, 0, 0));
/// The minimum of resident blocks per multiprocessor, for __launch_bounds__: 4 leave 64 registers for a thread, 2 leave
/// 128.
inline constexpr int kResident = 4;
template <class C, class Map>
inline constexpr int kResidentRows = sizeof(C) >= 16 && sizeof(Mapped<Map>) == 8 ? 2 : kResident;
template <class C, class Map>
inline constexpr int kResidentColumns = kPack<typename Map::T> * sizeof(C) >= 128 || kResidentRows<C, Map> == 2 ||
                                                (sizeof(C) >= 16 && std::is_same_v<typename Map::T, C>)
                                            ? 2
                                        : sizeof(C) <= 4 ? kResident
                                                         : 3;

/// The number of packs of each stream that a thread loads before it uses the first: as many as there are registers for.
template <class Map>
inline constexpr int kAhead =
    std::clamp(64 / (kPack<typename Map::T> * std::max(4, static_cast<int>(sizeof(Mapped<Map>)))), Map::kStreams, 4) /
    Map::kStreams;

/// Applies the map to element `at`, which is member i of group o.
template <class Map>
__device__ auto map_at(const Map& map, std::int64_t o, std::int64_t i, std::int64_t at) {
  if constexpr (Map::kStreams == 1) return map(o, i, map.stream[0][at]);
  else return map(o, i, map.stream[0][at], map.stream[1][at]);
}
template <class C, class Combine, class Map>
__device__ C take_one(const Combine& combine, const C& value, const Map& map, std::int64_t o, std::int64_t i,
                      std::int64_t at) {
  const Mapped<Map> values[1] = {map_at(map, o, i, at)};
  return take(combine, value, values, 1);
}

// ---- rows -----------------------------------------------------------------------------------------------------------
/// A pack of a run: its first element, and the index of that in the group and in the run, negative if it lies before
/// the run.
struct RowPack {
  std::int64_t first, member, j;
};
/// Groups as runs of contiguous elements that are cut into packs.
struct Rows {
  AxesLayout kept, outer;   // first elements of groups; offsets of the runs in a group
  std::int64_t run, packs;  // members of a run; the most packs that it can touch
  Divider by_packs;
  bool aligned;  // every run begins with a pack
  bool packed;   // a pack is one load
  std::int64_t total() const { return outer.n * packs; }
  __device__ RowPack pack(std::int64_t from, std::int64_t slot, int size) const {
    std::int64_t r = 0;
    if (outer.n > 1) {
      r = by_packs(slot);
      from += outer[r];
      slot -= r * packs;
    }
    const std::int64_t j = slot * size - (aligned ? 0 : from & (size - 1));
    return {from + j, r * run + j, j};
  }
};
template <class T>
Rows rows_of(const Groups& g, bool packed) {
  constexpr std::int64_t kSize = kPack<T>;
  Rows r;
  r.kept = g.kept;
  const int last = g.along.rank - 1;
  r.run = last < 0 ? 1 : g.along.dims[last];
  for (int i = 0; i < last; ++i) r.outer.push(g.along.dims[i], g.along.strides[i]);
  r.aligned = r.run % kSize == 0 || (g.kept.n == 1 && r.outer.n == 1);
  for (int i = 0; i < g.kept.rank; ++i) r.aligned = r.aligned && g.kept.strides[i] % kSize == 0;
  for (int i = 0; i < r.outer.rank; ++i) r.aligned = r.aligned && r.outer.strides[i] % kSize == 0;
  r.packs = (r.run + (r.aligned ? 0 : kSize - 1) + kSize - 1) / kSize;
  r.by_packs = Divider(r.packs);
  r.packed = packed;
  return r;
}

/// Each team, a block or `lanes` (2^k) threads of a warp, reduces part blockIdx.y of a group: to `partial`, or by
/// `finish` if it is the only part.
template <bool kBlock, class C, class Combine, class Map, class Finish>
__global__ void __launch_bounds__(kThreads, (kResidentRows<C, Map>))
    reduce_rows(Rows g, int lanes, Combine combine, Map map, Finish finish, C* partial, std::int64_t length) {
  constexpr int kSize = kPack<typename Map::T>, kDeep = kAhead<Map>;
  const int size = kBlock ? kThreads : lanes, lane = static_cast<int>(threadIdx.x) & (size - 1);
  const std::int64_t teams = kBlock ? 1 : kThreads / lanes, total = g.outer.n * g.packs;
  const std::int64_t begin = blockIdx.y * length, end = begin + length < total ? begin + length : total;
  // All threads of a block make the same number of rounds, since shuffles need every lane.
  for (std::int64_t first = blockIdx.x * teams; first < g.kept.n; first += gridDim.x * teams) {
    const std::int64_t o = first + (kBlock ? 0 : threadIdx.x / static_cast<unsigned>(lanes));
    C value = combine.identity;
    const std::int64_t from = o < g.kept.n ? g.kept[o] : 0, stop = o < g.kept.n ? end : begin;
    std::int64_t s = begin + lane;
    for (; s < stop; s += std::int64_t(kDeep) * size) {
      // The packs of a thread are loaded together if all are whole; only those at the ends of runs may not be.
      RowPack at[kDeep];
      bool whole = s + (kDeep - 1) * size < stop;
      if (whole)
#pragma unroll
        for (int u = 0; u < kDeep; ++u) {
          at[u] = g.pack(from, s + u * size, kSize);
          whole = whole && at[u].j >= 0 && at[u].j + kSize <= g.run;
        }
      if (whole) {
        Fetched<Map> packs[kDeep];
#pragma unroll
        for (int u = 0; u < kDeep; ++u) packs[u].whole(map, at[u].first, g.packed);
        Mapped<Map> values[kDeep * kSize];
#pragma unroll
        for (int u = 0; u < kDeep; ++u)
#pragma unroll
          for (int k = 0; k < kSize; ++k) values[u * kSize + k] = packs[u].value(map, o, at[u].member + k, k);
        value = take(combine, value, values, ~0u);
      } else {
#pragma unroll 1
        for (std::int64_t slot = s; slot < stop && slot < s + std::int64_t(kDeep) * size; slot += size) {
          const RowPack pack = g.pack(from, slot, kSize);
          const std::int64_t low = pack.j < 0 ? -pack.j : 0, high = pack.j + kSize <= g.run ? kSize : g.run - pack.j;
          if (low == 0 && high == kSize) {
            Fetched<Map> packed;
            packed.whole(map, pack.first, g.packed);
            Mapped<Map> values[kSize];
#pragma unroll
            for (int k = 0; k < kSize; ++k) values[k] = packed.value(map, o, pack.member + k, k);
            value = take(combine, value, values, ~0u);
          } else {
#pragma unroll 1
            for (std::int64_t k = low; k < high; ++k)
              value = take_one(combine, value, map, o, pack.member + k, pack.first + k);
          }
        }
      }
    }
    if constexpr (kBlock) value = Block::reduce(value, combine);
    else
#pragma unroll 1
      for (int half = lanes / 2; half > 0; half /= 2) value = combine(value, shuffle_xor(value, half));
    if (lane || o >= g.kept.n) continue;
    if (gridDim.y == 1) finish(o, value);
    else partial[blockIdx.y * g.kept.n + o] = value;
  }
}

// ---- columns --------------------------------------------------------------------------------------------------------
/// Groups as columns of a matrix.
struct Columns {
  AxesLayout kept, along;
  int width;    // threads side by side, 2^k
  bool whole;   // a thread has a pack of columns, else one column
  bool packed;  // a pack is one load
};
template <class C, class Combine, class Map, class Finish>
__global__ void __launch_bounds__(kThreads, (kResidentColumns<C, Map>))
    reduce_columns(Columns g, Combine combine, Map map, Finish finish, C* partial, std::int64_t length) {
  constexpr int kSize = kPack<typename Map::T>, kDeep = kAhead<Map>, kAlone = kDeep * kSize;
  // Results of the warps, or of the rows of threads if a row is at least as long as a warp.
  __shared__ C of_row[kSize * kThreads];
  const int width = g.width, height = kThreads / width, x = static_cast<int>(threadIdx.x) & (width - 1),
            y = static_cast<int>(threadIdx.x) / width;
  const int rows = width < kWarp ? kThreads / kWarp : height,
            row = width < kWarp ? static_cast<int>(threadIdx.x) / kWarp : y;
  const int each = g.whole ? kSize : 1;
  const std::int64_t begin = blockIdx.y * length, end = begin + length < g.along.n ? begin + length : g.along.n;
  for (std::int64_t first = std::int64_t(blockIdx.x) * width * each; first < g.kept.n;
       first += std::int64_t(gridDim.x) * width * each) {
    const std::int64_t column = first + x * each;
    C value[kSize];
#pragma unroll
    for (int k = 0; k < kSize; ++k) value[k] = combine.identity;
    if (column < g.kept.n) {
      const std::int64_t from = g.kept[column];
      std::int64_t i = begin + y;
      if (g.whole) {
        for (; i + (kDeep - 1) * height < end; i += kDeep * height) {
          Fetched<Map> packs[kDeep];
#pragma unroll
          for (int u = 0; u < kDeep; ++u) packs[u].whole(map, from + g.along[i + u * height], g.packed);
#pragma unroll
          for (int k = 0; k < kSize; ++k) {
            Mapped<Map> values[kDeep];
#pragma unroll
            for (int u = 0; u < kDeep; ++u) values[u] = packs[u].value(map, column + k, i + u * height, k);
            value[k] = take(combine, value[k], values, ~0u);
          }
        }
#pragma unroll 1
        for (; i < end; i += height) {
          const std::int64_t at = from + g.along[i];
#pragma unroll
          for (int k = 0; k < kSize; ++k) value[k] = take_one(combine, value[k], map, column + k, i, at + k);
        }
      } else {
        for (; i + (kAlone - 1) * height < end; i += kAlone * height) {
          Mapped<Map> values[kAlone];
#pragma unroll
          for (int u = 0; u < kAlone; ++u)
            values[u] = map_at(map, column, i + u * height, from + g.along[i + u * height]);
          value[0] = take(combine, value[0], values, ~0u);
        }
#pragma unroll 1
        for (; i < end; i += height) value[0] = take_one(combine, value[0], map, column, i, from + g.along[i]);
      }
    }
    __syncthreads();  // all threads have read the results of the previous columns
#pragma unroll
    for (int k = 0; k < kSize; ++k) {
      if (k >= each) continue;
#pragma unroll 1
      for (int lanes = kWarp / 2; lanes >= width; lanes /= 2)
        value[k] = combine(value[k], shuffle_xor(value[k], lanes));
      if (width >= kWarp || static_cast<int>(threadIdx.x) % kWarp < width)
        of_row[(k * rows + row) * width + x] = value[k];
    }
    __syncthreads();
#pragma unroll 1
    for (int c = static_cast<int>(threadIdx.x); c < width * each; c += kThreads) {
      const int k = c / width, at = c & (width - 1);
      const std::int64_t o = first + at * each + k;
      if (o >= g.kept.n) continue;
      C all = of_row[k * rows * width + at];
#pragma unroll 1
      for (int r = 1; r < rows; ++r) all = combine(all, of_row[(k * rows + r) * width + at]);
      if (gridDim.y == 1) finish(o, all);
      else partial[blockIdx.y * g.kept.n + o] = all;
    }
  }
}

// ---- launches -------------------------------------------------------------------------------------------------------
inline constexpr std::int64_t kManyBlocks = 4096;  // four rounds of a device that holds 1,056 blocks at once
/// The number of parts to cut each group into if the groups, uncut, take `blocks` blocks: at most `possible`, at least
/// 1.
inline std::int64_t parts_of(std::int64_t blocks, std::int64_t possible) {
  return std::clamp<std::int64_t>(std::min(kManyBlocks / std::max<std::int64_t>(blocks, 1), possible), 1, kManyBlocks);
}
/// True if packs of every tensor that the map reads are aligned.
template <class Map>
bool packs_of(const Map& map) {
  return std::all_of(std::begin(map.stream), std::end(map.stream), [](auto* x) { return packs_at(x); });
}
/// The map of the second launch, which returns the values of parts unchanged.
template <class C>
struct PartOf {
  using T = C;
  static constexpr int kStreams = 1;
  const C* stream[1];
  __device__ C operator()(std::int64_t, std::int64_t, C v) const { return v; }
};

template <class C, class Combine, class Map, class Finish>
void launch_columns(const OpCall& call, CudaDevice& device, const Groups& g, const Combine& combine, const Map& map,
                    const Finish& finish, bool parts);

/// Calls first(partial), which launches the reduction of each part of each group. If there are several, a second
/// launch reduces their values, `partial`.
template <class C, class Combine, class Finish, class Launch>
void in_parts(const OpCall& call, CudaDevice& device, std::int64_t groups, std::int64_t parts, const Combine& combine,
              const Finish& finish, Launch first) {
  DeviceScratch held(device, parts > 1 ? groups * parts * static_cast<std::int64_t>(sizeof(C)) : 0);
  C* partial = static_cast<C*>(held.get());
  first(partial);
  if (parts > 1)
    launch_columns<C>(call, device, Groups(groups, parts), combine, PartOf<C>{{partial}}, finish, /*parts=*/false);
}

template <class C, class Combine, class Map, class Finish>
void launch_columns(const OpCall& call, CudaDevice& device, const Groups& g, const Combine& combine, const Map& map,
                    const Finish& finish, bool parts) {
  using T = typename Map::T;
  constexpr int kSize = kPack<T>;
  const bool whole = kSize == 1 || (g.kept.dense() && g.kept.dims[g.kept.rank - 1] % kSize == 0);
  // A row of threads for every eight members, so that the threads are all side by side if groups are short.
  const std::int64_t units = ceil_div(g.kept.n, whole ? kSize : 1);
  const int width = power_of_two(units, kThreads / power_of_two(g.along.n / 8, 8)), height = kThreads / width;
  const Columns c{g.kept, g.along, width, whole, whole && packs_of(map)};
  const std::int64_t blocks = ceil_div(g.kept.n, std::int64_t(width) * (whole ? kSize : 1)),
                     n_parts = parts ? parts_of(blocks, g.along.n / (std::int64_t(height) * 8)) : 1;
  auto first = [&](C* partial) {
    launch(call.op.name, device, dim3(grid_of(blocks), static_cast<unsigned>(n_parts)),
           reduce_columns<C, Combine, Map, Finish>, c, combine, map, finish, partial, ceil_div(g.along.n, n_parts));
  };
  if constexpr (std::is_same_v<Map, PartOf<C>>) first(nullptr);  // the second launch, which has one part
  else in_parts<C>(call, device, g.kept.n, n_parts, combine, finish, first);
}

template <class C, class Combine, class Map, class Finish>
void launch_rows(const OpCall& call, CudaDevice& device, const Groups& g, const Combine& combine, const Map& map,
                 const Finish& finish) {
  // In packs: the longest group that lanes of a warp reduce, and the shortest part of a group that is cut.
  constexpr std::int64_t kLong = 128, kLeast = 8 * kThreads;
  const Rows r = rows_of<typename Map::T>(g, packs_of(map));
  const bool block = r.total() > kLong;
  const int lanes = block ? kThreads : power_of_two(ceil_div(r.total(), 2), kWarp);
  const std::int64_t parts = block ? parts_of(g.kept.n, r.total() / kLeast) : 1;
  in_parts<C>(call, device, g.kept.n, parts, combine, finish, [&](C* partial) {
    launch(call.op.name, device, dim3(grid_of(ceil_div(g.kept.n, kThreads / lanes)), static_cast<unsigned>(parts)),
           block ? reduce_rows<true, C, Combine, Map, Finish> : reduce_rows<false, C, Combine, Map, Finish>, r, lanes,
           combine, map, finish, partial, ceil_div(r.total(), parts));
  });
}

/// Calls finish(o, reduction of map(o, i, element) over the members i of group o) for every group. Each element is read
/// once. A map has `stream`, the kStreams tensors of T that it reads. `combine` has `identity` and combines two values
/// of C; it needs an overload of take() if the map returns another type, and may have one to combine many values
/// faster.
template <class C, class Combine, class Map, class Finish>
void reduce_groups(const OpCall& call, const Groups& g, Combine combine, Map map, Finish finish) {
  if (g.kept.n == 0) return;
  CudaDevice& device = device_of(call.device);
  if (g.along.n == 0 || g.kept.dense()) launch_columns<C>(call, device, g, combine, map, finish, /*parts=*/true);
  else launch_rows<C>(call, device, g, combine, map, finish);
}

// ---- maps and what is done with results -----------------------------------------------------------------------------
/// The map that returns the element, as Wide<T>.
template <class U>
struct Plain {
  using T = U;
  static constexpr int kStreams = 1;
  const T* stream[1];
  __device__ Wide<T> operator()(std::int64_t, std::int64_t, const T& v) const { return load(&v); }
};
/// Stores the result divided by a number.
template <class T>
struct Divided {
  T* out;
  Wide<T> by;
  __device__ void operator()(std::int64_t o, Wide<T> v) const { store(out + o, static_cast<Wide<T>>(v / by)); }
};

// ---- mean and variance in one read ----------------------------------------------------------------------------------
/// Count, an element, the sum of the differences to it, and the sum of squared deviations from the mean. Deviations of
/// a few elements from their own mean are joined as in Chan, Golub and LeVeque (1979): nothing cancels, as it would in
/// a sum of squares. Differences to an element round less than elements: Note [The rounding of a mean].
template <class C>
struct Moments {
  C n, from, sum, squares;
  __device__ ops::RoundedMean<C> mean() const { return {from, sum / n}; }
};
/// Combines Moments.
template <class C>
struct Spread {
  Moments<C> identity{C(0), C(0), C(0), C(0)};
  __device__ Moments<C> operator()(const Moments<C>& a, const Moments<C>& b) const {
    if (a.n == C(0)) return b;
    if (b.n == C(0)) return a;
    const C n = a.n + b.n, apart = b.from - a.from, gap = apart + (b.sum / b.n - a.sum / a.n);
    return {n, a.from, a.sum + (b.sum + b.n * apart), a.squares + b.squares + gap * gap * (a.n * (b.n / n))};
  }
};
template <class C, int n>
__device__ Moments<C> take(const Spread<C>& combine, const Moments<C>& value, const C (&values)[n], unsigned valid) {
  Moments<C> m = combine.identity;
#pragma unroll
  for (int k = 0; k < n; ++k) {
    if (!(valid >> k & 1)) continue;
    if (m.n == C(0)) m.from = values[k];
    m.n += C(1);
    m.sum += values[k] - m.from;
  }
  const C gap = m.sum / m.n;
#pragma unroll
  for (int k = 0; k < n; ++k) {
    if (!(valid >> k & 1)) continue;
    const C d = (values[k] - m.from) - gap;
    m.squares += d * d;
  }
  return combine(value, m);
}

}  // namespace kassette::cuda

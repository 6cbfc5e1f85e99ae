// ops/softmax/lines.cuh - kernels that read groups of elements and write groups of the same size: softmax and related
// ops.
#pragma once
#include "ops/engine/packs.cuh"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {

// Note [Lines on CUDA]
// The body of a kernel is written once for all kinds of lines; a line is a group of elements along one axis. read(x)
// prepares an input; reduce(f, map, x...) reduces map(i, values of member i); write(y, map, x...) stores map(i, values
// of member i); exponentials(x) is the reduction of a softmax. There are three kinds of lines.
//   Dense, short  Contiguous elements, kPerThread in each of up to 32 (or kThreads) threads. read() loads them into
//                 registers, a pack at once, so memory is read once.
//   Dense, long   Contiguous elements, in pieces that fit in the registers of a block. Each reduce and write reads them
//                 again, at best from the cache.
//   Strided       A line for each thread if lines are short, or neighbours in memory and many; for each column of
//                 threads in a block if neighbours are few; else for each block.
// The kind depends on the shape alone, and so do the bits.

/// The packs, and elements, of each input that a thread has in registers.
template <class T>
inline constexpr int kPacksPerThread = 16 / kPack<T> < 4 ? 16 / kPack<T> : 4;
template <class T>
inline constexpr int kPerThread = kPacksPerThread<T>* kPack<T>;

/// Groups of contiguous elements.
struct DenseGroups {
  AxesLayout kept;
  std::int64_t n;       // members of a group
  std::int64_t pieces;  // of a group
  int lanes;
  bool aligned, packed;  // every group begins with a pack; a pack is one load
};

/// A line of contiguous elements, for a block if kBlock, else for some lanes of a warp; in several pieces if kLong.
template <class U, bool kBlock, bool kLong>
class DenseLine {
 public:
  using C = Wide<U>;
  static constexpr int kSize = kPack<U>, kAll = kPerThread<U>;
  /// The elements of a piece that a thread holds.
  struct Values {
    C v[kAll];
  };
  /// An input: its elements in registers or, if kLong, its address.
  using Input = std::conditional_t<kLong, const U*, Values>;

  __device__ DenseLine(const DenseGroups& g, std::int64_t start, bool live)
      : start_(start), n_(live ? g.n : 0), live_(live), pieces_(g.pieces), size_(kBlock ? kThreads : g.lanes),
        lane_(static_cast<int>(threadIdx.x) & (size_ - 1)), skew_(g.aligned ? 0 : static_cast<int>(start % kSize)),
        packed_(g.packed) {}
  __device__ std::int64_t members() const { return n_; }
  __device__ bool leads() const { return lane_ == 0 && live_; }

  __device__ Input read(const U* x) const {
    if constexpr (kLong) return x;
    else return load_piece(x, 0);
  }
  template <class Combine, class Map, class... Inputs>
  __device__ C reduce(const Combine& combine, Map map, const Inputs&... in) const {
    return reduced(
        combine, combine.identity,
        [&](const C& value, std::int64_t piece, const auto&... x) {
          C all = value;
#pragma unroll
          for (int k = 0; k < kAll; ++k)
            if (const std::int64_t i = place(piece, k); i >= 0 && i < n_) all = combine(all, map(i, x.v[k]...));
          return all;
        },
        in...);
  }
  __device__ Exponentials<C> exponentials(const Input& in) const {
    const SumExp<C> combine;
    return reduced(
        combine, combine.identity,
        [&](const Exponentials<C>& value, std::int64_t piece, const Values& x) {
          unsigned valid = 0;
#pragma unroll
          for (int k = 0; k < kAll; ++k)
            if (const std::int64_t i = place(piece, k); i >= 0 && i < n_) valid |= 1u << k;
          return valid ? take(combine, value, x.v, valid) : value;
        },
        in);
  }
  template <class Map, class... Inputs>
  __device__ void write(U* y, Map map, const Inputs&... in) const {
    for (std::int64_t piece = 0; piece < (kLong ? pieces_ : 1); ++piece)
      write_piece(y, piece, map, values(in, piece)...);
  }

 private:
  /// The index in the line of the thread's element k of a piece; outside of [0, n_) if the line has no such element.
  __device__ std::int64_t place(std::int64_t piece, int k) const {
    return ((piece * kPacksPerThread<U> + k / kSize) * size_ + lane_) * kSize + k % kSize - skew_;
  }
  __device__ bool whole(std::int64_t first) const { return packed_ && first >= 0 && first + kSize <= n_; }
  __device__ Values load_piece(const U* x, std::int64_t piece) const {
    Values out;
#pragma unroll
    for (int u = 0; u < kPacksPerThread<U>; ++u) {
      const std::int64_t first = place(piece, u * kSize);
      Packed<U> pack;
      if (whole(first)) {
        pack = *reinterpret_cast<const Packed<U>*>(x + start_ + first);
      } else {
#pragma unroll
        for (int k = 0; k < kSize; ++k) pack.v[k] = first + k >= 0 && first + k < n_ ? x[start_ + first + k] : U();
      }
#pragma unroll
      for (int k = 0; k < kSize; ++k) out.v[u * kSize + k] = load(&pack.v[k]);
    }
    return out;
  }
  __device__ const Values& values(const Values& in, std::int64_t) const { return in; }
  __device__ Values values(const U* in, std::int64_t piece) const { return load_piece(in, piece); }

  template <class Combine, class V, class Take, class... Inputs>
  __device__ V reduced(const Combine& combine, V value, Take more, const Inputs&... in) const {
    for (std::int64_t piece = 0; piece < (kLong ? pieces_ : 1); ++piece)
      value = more(value, piece, values(in, piece)...);
    if constexpr (kBlock) {
      return Block::reduce(value, combine);
    } else {
#pragma unroll 1
      for (int half = size_ / 2; half > 0; half /= 2) value = combine(value, shuffle_xor(value, half));
      return value;
    }
  }
  template <class Map, class... X>
  __device__ void write_piece(U* y, std::int64_t piece, Map map, const X&... x) const {
#pragma unroll
    for (int u = 0; u < kPacksPerThread<U>; ++u) {
      const std::int64_t first = place(piece, u * kSize);
      if (first >= n_) continue;
      Packed<U> pack;
#pragma unroll
      for (int k = 0; k < kSize; ++k) store(&pack.v[k], static_cast<C>(map(first + k, x.v[u * kSize + k]...)));
      if (whole(first)) {
        *reinterpret_cast<Packed<U>*>(y + start_ + first) = pack;
      } else {
#pragma unroll
        for (int k = 0; k < kSize; ++k)
          if (first + k >= 0 && first + k < n_) y[start_ + first + k] = pack.v[k];
      }
    }
  }

  const std::int64_t start_, n_;
  const bool live_;
  const std::int64_t pieces_;
  const int size_, lane_, skew_;
  const bool packed_;
};

/// A line of elements at a stride, for a team (ops/engine/teams.cuh).
template <class U, class Team>
class StridedLine {
 public:
  using C = Wide<U>;
  using Input = const U*;
  __device__ StridedLine(const Groups& g, std::int64_t start, bool live)
      : along_(g.along), start_(start), n_(live ? g.along.n : 0), live_(live) {}
  __device__ std::int64_t members() const { return n_; }
  __device__ bool leads() const { return Team::lane() == 0 && live_; }
  __device__ Input read(const U* x) const { return x + start_; }
  template <class Combine, class Map, class... Inputs>
  __device__ C reduce(const Combine& combine, Map map, const Inputs*... in) const {
    C value = combine.identity;
#pragma unroll 4
    for (std::int64_t i = Team::lane(); i < n_; i += Team::kSize)
      value = combine(value, map(i, load(in + along_[i])...));
    return Team::reduce(value, combine);
  }
  __device__ Exponentials<C> exponentials(const U* in) const {
    const SumExp<C> combine;
    Exponentials<C> value = combine.identity;
    for (std::int64_t i = Team::lane(); i < n_; i += kAtOnce * Team::kSize) {
      C some[kAtOnce];
      unsigned valid = 0;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (i + k * Team::kSize >= n_) continue;
        some[k] = load(in + along_[i + k * Team::kSize]);
        valid |= 1u << k;
      }
      value = take(combine, value, some, valid);
    }
    return Team::reduce(value, combine);
  }
  template <class Map, class... Inputs>
  __device__ void write(U* y, Map map, const Inputs*... in) const {
    for (std::int64_t i = Team::lane(); i < n_; i += kAtOnce * Team::kSize) {
      // Loads come before stores, as in store_each.
      auto member = [&](int k) { return i + k * Team::kSize < n_ ? i + k * Team::kSize : i; };
      std::int64_t at[kAtOnce];
      C v[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) at[k] = along_[member(k)];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) v[k] = static_cast<C>(map(member(k), load(in + at[k])...));
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (i + k * Team::kSize < n_) store(y + start_ + at[k], v[k]);
    }
  }

 private:
  const AxesLayout& along_;
  const std::int64_t start_, n_;
  const bool live_;
};

template <bool kBlock, bool kLong, class Body>
__global__ void __launch_bounds__(kThreads, 2) run_dense(DenseGroups g, Body body) {
  const std::int64_t teams = kBlock ? 1 : kThreads / g.lanes;
  // All threads of a block make the same number of rounds, since shuffles need every lane.
  for (std::int64_t first = blockIdx.x * teams; first < g.kept.n; first += gridDim.x * teams) {
    const std::int64_t o = first + (kBlock ? 0 : threadIdx.x / static_cast<unsigned>(g.lanes));
    const bool live = o < g.kept.n;
    body.run(live ? o : 0, DenseLine<typename Body::Element, kBlock, kLong>(g, live ? g.kept[o] : 0, live));
  }
}
template <class Team, class Body>
__global__ void __launch_bounds__(kThreads) run_strided(Groups g, Body body) {
  for (std::int64_t o = Team::first(); o < g.kept.n; o += Team::step())
    body.run(o, StridedLine<typename Body::Element, Team>(g, g.kept[o], /*live=*/true));
}
constexpr int kSideBySide = 8;  // lines of a block: eight float32 are the 32 bytes that memory delivers at once
template <class Body>
__global__ void __launch_bounds__(kThreads) run_columns(Groups g, Body body) {
  // All threads of a block make the same number of rounds, since they reduce together.
  for (std::int64_t first = std::int64_t(blockIdx.x) * kSideBySide; first < g.kept.n;
       first += std::int64_t(gridDim.x) * kSideBySide) {
    const std::int64_t o = first + threadIdx.x % kSideBySide;
    const bool live = o < g.kept.n;
    body.run(live ? o : 0, StridedLine<typename Body::Element, Column<kSideBySide>>(g, live ? g.kept[o] : 0, live));
  }
}
/// True for long lines that are neighbours in memory, but too few for a thread each: a device holds 270,000 threads.
inline bool few_columns(const Groups& g) {
  return g.along.n > kWarp && g.kept.n < 1 << 16 && g.kept.dense() && g.kept.dims[g.kept.rank - 1] >= kSideBySide;
}

/// Calls body.run(o, line of group o) for every group. Body::Element is the type of all elements that it reads and
/// writes along a line; body.packed() is packs_at() of their addresses.
template <class Body>
void launch_lines(const OpCall& call, const Groups& g, Body body) {
  using T = typename Body::Element;
  if (g.kept.n == 0) return;
  CudaDevice& device = device_of(call.device);
  if (few_columns(g))
    return launch(call.op.name, device, grid_of(ceil_div(g.kept.n, kSideBySide)), run_columns<Body>, g, body);
  if (g.along.n > 1 && !g.along.dense())
    return with_team(g, [&](auto team) {
      using Team = decltype(team);
      launch(call.op.name, device, blocks_of<Team>(g), run_strided<Team, Body>, g, body);
    });
  DenseGroups d{g.kept, g.along.n, 1, 1, g.kept.n == 1 || g.along.n % kPack<T> == 0, body.packed()};
  const std::int64_t packs = ceil_div(g.along.n + (d.aligned ? 0 : kPack<T> - 1), kPack<T>);
  if (packs <= kWarp * kPacksPerThread<T>) {
    d.lanes = power_of_two(ceil_div(packs, 2), kWarp);
    launch(call.op.name, device, grid_of(ceil_div(g.kept.n, kThreads / d.lanes)), run_dense<false, false, Body>, d,
           body);
  } else if (packs <= kThreads * kPacksPerThread<T>) {
    launch(call.op.name, device, grid_of(g.kept.n), run_dense<true, false, Body>, d, body);
  } else {
    d.pieces = ceil_div(packs, kThreads * kPacksPerThread<T>);
    launch(call.op.name, device, grid_of(g.kept.n), run_dense<true, true, Body>, d, body);
  }
}

}  // namespace kassette::cuda

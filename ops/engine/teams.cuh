// ops/engine/teams.cuh - groups of elements along axes of a tensor, and the teams that work on one: a thread, a warp or
// a block.
#pragma once
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/engine/axes.h"
#include "ops/engine/coalesce.h"
#include "ops/elementwise/elementwise.cuh"

namespace kassette::cuda {

/// Some axes of a tensor: maps a row-major number over these axes to an offset in elements. Neighbouring axes are
/// joined if strides allow.
struct AxesLayout {
  int rank = 0;
  // Zeros: stale bytes of a kernel's argument may look like a host pointer, which the emulated device refuses.
  std::int64_t n = 1, dims[kMaxRank] = {}, strides[kMaxRank] = {};
  Divider by[kMaxRank];  // the dims
  void push(std::int64_t size, std::int64_t stride) {
    n *= size;
    if (size == 1) return;
    push_coalesced(rank, dims, size, 1, [&](int) { return Along{strides, stride}; });
    by[rank - 1] = Divider(dims[rank - 1]);
  }
  /// True if elements along the last axis are adjacent in memory.
  KASSETTE_FN bool dense() const { return rank > 0 && strides[rank - 1] == 1; }
  __device__ std::int64_t operator[](std::int64_t i) const {
    if (rank == 1) return i * strides[0];
    std::int64_t at = 0;
#pragma unroll 1
    for (int d = rank - 1; d > 0; --d) {
      std::int64_t rest = by[d](i);
      at += (i - rest * dims[d]) * strides[d];
      i = rest;
    }
    return rank ? at + i * strides[0] : 0;
  }
};

/// The groups along the axes of a mask, as a reduction has them: member i of group o is element kept[o] + along[i].
struct Groups {
  AxesLayout kept, along;
  /// The columns of a matrix.
  Groups(std::int64_t columns, std::int64_t rows) {
    kept.push(columns, 1);
    along.push(rows, columns);
  }
  Groups(const TensorSpec& x, unsigned mask) {
    std::int64_t stride = x.numel();
    for (int i = 0; i < x.rank; ++i) {
      stride = x.dims[i] ? stride / x.dims[i] : 0;
      (mask >> i & 1 ? along : kept).push(x.dims[i], stride);
    }
  }
};

// ---- teams ----------------------------------------------------------------------------------------------------------
// A team works on groups first(), first() + step(), ... Its threads share the members: a thread takes lane(), lane() +
// kSize, ... reduce() combines one value of each thread and returns the result to all of them.
/// The value of v in the thread whose lane differs in the bits of `lanes`. Structs are exchanged word by word.
template <class V>
__device__ V shuffle_xor(V v, int lanes) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(__shfl_xor_sync(~0u, v, lanes));
  } else {
    static_assert(sizeof(V) % 4 == 0);
    std::uint32_t words[sizeof(V) / 4];
    memcpy(words, &v, sizeof v);
    for (std::uint32_t& word : words) word = __shfl_xor_sync(~0u, word, lanes);
    memcpy(&v, words, sizeof v);
    return v;
  }
}

/// A single thread per group.
struct Thread {
  static constexpr int kSize = 1;
  __device__ static std::int64_t first() { return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
  __device__ static std::int64_t step() { return std::int64_t(gridDim.x) * blockDim.x; }
  __device__ static int lane() { return 0; }
  template <class V, class Combine>
  __device__ static V reduce(V v, Combine) {
    return v;
  }
};
/// A warp per group.
struct Warp {
  static constexpr int kSize = kWarp;
  __device__ static std::int64_t first() { return (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; }
  __device__ static std::int64_t step() { return std::int64_t(gridDim.x) * blockDim.x / kWarp; }
  __device__ static int lane() { return threadIdx.x % kWarp; }
  template <class V, class Combine>
  __device__ static V reduce(V v, Combine f) {
    for (int half = kWarp / 2; half > 0; half /= 2) v = f(v, shuffle_xor(v, half));
    return v;
  }
};
/// A block of kThreads threads per group.
struct Block {
  static constexpr int kSize = kThreads;
  __device__ static std::int64_t first() { return blockIdx.x; }
  __device__ static std::int64_t step() { return gridDim.x; }
  __device__ static int lane() { return threadIdx.x; }
  template <class V, class Combine>
  __device__ static V reduce(V v, Combine f) {
    __shared__ V of_warp[kThreads / kWarp];
    v = Warp::reduce(v, f);
    __syncthreads();  // all threads have read the values of the last reduction
    if (Warp::lane() == 0) of_warp[threadIdx.x / kWarp] = v;
    __syncthreads();
    v = of_warp[0];
    for (int i = 1; i < kThreads / kWarp; ++i) v = f(v, of_warp[i]);
    return v;
  }
};
/// The kWidth threads side by side in a block work on neighbouring groups, the rows of threads on the members. All
/// threads of a block reduce together.
template <int kWidth>
struct Column {
  static constexpr int kSize = kThreads / kWidth;
  __device__ static int lane() { return threadIdx.x / kWidth; }
  template <class V, class Combine>
  __device__ static V reduce(V v, Combine f) {
    __shared__ V of_warp[kThreads / kWarp][kWidth];
    for (int half = kWarp / 2; half >= kWidth; half /= 2) v = f(v, shuffle_xor(v, half));
    const int x = threadIdx.x % kWidth;
    __syncthreads();  // all threads have read the values of the last reduction
    if (static_cast<int>(threadIdx.x) % kWarp < kWidth) of_warp[threadIdx.x / kWarp][x] = v;
    __syncthreads();
    v = of_warp[0][x];
    for (int i = 1; i < kThreads / kWarp; ++i) v = f(v, of_warp[i][x]);
    return v;
  }
};

/// Calls f(Thread()) or f(Block()), whichever suits the groups. The choice depends on the shape alone, and so do the
/// bits of results.
template <class F>
void with_team(const Groups& g, F f) {
  constexpr std::int64_t kShort = 32;
  // If the members of neighbouring groups are adjacent in memory, single threads read them coalesced.
  const bool columns = g.kept.dense() && g.kept.dims[g.kept.rank - 1] >= kWarp;
  if (g.along.n <= kShort || columns) f(Thread());
  else f(Block());
}
/// The number of blocks for a team per group. It is bounded: teams loop over the rest.
template <class Team>
unsigned blocks_of(const Groups& g) {
  return blocks_for(g.kept.n * Team::kSize);
}

/// Operands for a launch over the elements of x, which output 0 has as well: operand 0 is the element, operand 1 the
/// number of its group.
inline Operands operands_by_group(const OpCall& call, const TensorSpec& x, unsigned mask) {
  Operands o{};
  o.out = call.out[0]->data();
  o.n = x.numel();
  std::int64_t stride[2][kMaxRank], step = 1, group = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    stride[0][i] = step;
    stride[1][i] = mask >> i & 1 ? 0 : group;
    step *= x.dims[i];
    if (!(mask >> i & 1)) group *= x.dims[i];
  }
  for (int i = 0; i < x.rank; ++i) push_axis<2>(o, x.dims[i], {stride[0][i], stride[1][i]});
  if (o.rank == 0) o.dims[o.rank++] = 1;
  return o;
}

// ---- reductions -----------------------------------------------------------------------------------------------------
/// Combines `value` with those of `values` whose bit in `valid` is set. Overloads do the same in fewer steps for a
/// particular Combine.
template <class C, class Combine, class M, int n>
__device__ C take(const Combine& combine, const C& value, const M (&values)[n], unsigned valid) {
  C all = value;
#pragma unroll
  for (int k = 0; k < n; ++k)
    if (valid >> k & 1) all = combine(all, values[k]);
  return all;
}
/// The sum; integers narrower than int wrap.
template <class C>
struct Sum {
  C identity = C(0);
  __device__ C operator()(C a, C b) const { return static_cast<C>(a + b); }
};
/// The maximum; NaN if an operand is NaN.
template <class C>
struct Max {
  C identity =
      std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
  __device__ C operator()(C a, C b) const { return a != a ? a : b > a || b != b ? b : a; }
};

/// The state of an online softmax (Milakov and Gimelshein, 2018): the largest element so far, and the sum of
/// exp(element - shift()).
template <class C>
struct Exponentials {
  C max, sum;
  /// The largest element, or 0 if it is not finite, since inf - inf is NaN.
  __device__ C shift() const { return max - max == C(0) ? max : C(0); }
};
/// Combines Exponentials.
template <class C>
struct SumExp {
  Exponentials<C> identity{-std::numeric_limits<C>::infinity(), C(0)};
  __device__ Exponentials<C> operator()(const Exponentials<C>& a, const Exponentials<C>& b) const {
    if (a.sum == C(0)) return b;  // no element above -inf so far
    if (b.sum == C(0)) return a;
    Exponentials<C> e{Max<C>()(a.max, b.max), C(0)};
    const C shift = e.shift();
    e.sum = a.sum * m::exp(a.shift() - shift) + b.sum * m::exp(b.shift() - shift);
    return e;
  }
};
template <class C, int n>
__device__ Exponentials<C> take(const SumExp<C>& combine, const Exponentials<C>& value, const C (&values)[n],
                                unsigned valid) {
  const Max<C> larger;
  Exponentials<C> e = combine.identity;
#pragma unroll
  for (int k = 0; k < n; ++k)
    if (valid >> k & 1) e.max = larger(e.max, values[k]);
  const C shift = e.shift();
#pragma unroll
  for (int k = 0; k < n; ++k)
    if (valid >> k & 1) e.sum += m::exp(values[k] - shift);
  return combine(value, e);
}

}  // namespace kassette::cuda

// ops/strided.cu - copying between two strided layouts on CUDA.
#include <cstdlib>
#include <utility>

#include "devices/cuda/launch.cuh"
#include "ops/moving.cuh"

namespace kassette::cuda {
namespace {

/// Adds to `from` and `to` the offsets of index i, row-major over the first `axes` axes. Index has 32 bits if these suffice: a 64-bit
/// division costs four times as much.
template <class Index>
__device__ void locate(const Strided& l, int axes, Index i, std::int64_t& from, std::int64_t& to) {
  for (int d = axes - 1; d >= 0; --d) {
    Index size = static_cast<Index>(l.dims[d]), rest = i / size;
    std::int64_t c = static_cast<std::int64_t>(i - rest * size);
    from += c * l.from[d];
    to += c * l.to[d];
    i = rest;
  }
}

template <class T, class Index>
__global__ void copy_each(Strided l, std::int64_t n, const T* from, T* to) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    std::int64_t at_from = 0, at_to = 0;
    locate(l, l.rank, static_cast<Index>(i), at_from, at_to);
    to[at_to] = from[at_from];
  }
}

constexpr int kTile = 32, kTileRows = kThreads / kTile;

/// Copies a layout that is contiguous along the last axis in writing and the last but one in reading. Tiles in shared memory make both accesses
/// coalesced.
template <class T>
__global__ void copy_tiles(Strided l, std::int64_t n_tiles, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];  // one extra column: the elements of a column are in different banks
  const int last = l.rank - 1, x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const std::int64_t rows = l.dims[last - 1], columns = l.dims[last];
  const std::int64_t across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  for (std::int64_t t = blockIdx.x; t < n_tiles; t += gridDim.x) {
    const std::int64_t c0 = t % across * kTile, r0 = t / across % down * kTile;
    std::int64_t at_from = 0, at_to = 0;
    locate(l, last - 1, static_cast<std::uint64_t>(t / across / down), at_from, at_to);
    __syncthreads();  // all threads have read the tile before
    for (int j = y; j < kTile; j += kTileRows)
      if (r0 + x < rows && c0 + j < columns)
        tile[j][x] = from[at_from + (r0 + x) * l.from[last - 1] + (c0 + j) * l.from[last]];
    __syncthreads();
    for (int j = y; j < kTile; j += kTileRows)
      if (r0 + j < rows && c0 + x < columns) to[at_to + (r0 + j) * l.to[last - 1] + (c0 + x) * l.to[last]] = tile[x][j];
  }
}

/// If reading is contiguous along another axis than writing, and both are long enough for tiles, makes that axis the last but one and returns
/// true. Else returns false.
bool transposes(Strided& l) {
  int last = l.rank - 1, reads = -1;
  if (last < 1 || l.to[last] != 1 || std::abs(l.from[last]) <= 1 || l.dims[last] < kTile / 2) return false;
  for (int d = 0; d < last; ++d)
    if (std::abs(l.from[d]) == 1) reads = d;
  if (reads < 0 || l.dims[reads] < kTile / 2) return false;
  for (int d = reads; d < last - 1; ++d) {
    std::swap(l.dims[d], l.dims[d + 1]);
    std::swap(l.from[d], l.from[d + 1]);
    std::swap(l.to[d], l.to[d + 1]);
  }
  return true;
}

template <class T>
__global__ void fill_elements(T* to, std::int64_t count, T value) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = value;
}

}  // namespace

void fill(CudaBackend& device, void* to, std::int64_t count, std::uint64_t bits, int size) {
  for_size(size, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch("fill", device, blocks_for(count), fill_elements<T>, static_cast<T*>(to), count, static_cast<T>(bits));
  });
}

Strided whole(const Strided& layout) {
  Strided l{};
  for (int d = 0; d < layout.rank; ++d) l.push(layout.dims[d], layout.from[d], layout.to[d]);
  return l;
}

void copy_strided(CudaBackend& device, const Strided& layout, const void* from, void* to, int size) {
  Strided l = whole(layout);
  std::int64_t n = 1;
  for (int d = 0; d < l.rank; ++d) n *= l.dims[d];
  if (l.rank == 1 && l.from[0] == 1 && l.to[0] == 1) return device.copy(to, from, n * size);
  const bool tiles = transposes(l);
  for_size(size, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const T* f = static_cast<const T*>(from);
    T* t = static_cast<T*>(to);
    if (tiles) {
      const std::int64_t rows = l.dims[l.rank - 2], columns = l.dims[l.rank - 1];
      const std::int64_t n_tiles =
          n / (rows * columns) * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
      launch("copy", device, blocks_for(n_tiles * kThreads), copy_tiles<T>, l, n_tiles, f, t);
    } else if (n <= 0x7fffffff) {
      launch("copy", device, blocks_for(n), copy_each<T, std::uint32_t>, l, n, f, t);
    } else {
      launch("copy", device, blocks_for(n), copy_each<T, std::uint64_t>, l, n, f, t);
    }
  });
}

}  // namespace kassette::cuda

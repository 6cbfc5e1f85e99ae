// ops/shape/strided.cu - copying between two strided layouts on CUDA.
#include <cstdlib>
#include <utility>

#include "ops/elementwise/elementwise.cuh"
#include "ops/shape/moving.cuh"

namespace kassette::cuda {
namespace {

/// A layout, with dividers by its dims.
struct Layout : Strided {
  Divider by[kAxes];
  /// Adds to `from` and `to` the offsets of index i, row-major over the first `axes` axes.
  __device__ void locate(int axes, std::int64_t i, std::int64_t& at_from, std::int64_t& at_to) const {
#pragma unroll 1
    for (int d = axes - 1; d > 0; --d) {
      const std::int64_t rest = by[d](i), c = i - rest * dims[d];
      at_from += c * from[d];
      at_to += c * to[d];
      i = rest;
    }
    at_from += i * from[0];  // without axes i is 0
    at_to += i * to[0];
  }
};

template <class T>
__global__ void copy_each(Layout l, std::int64_t n, const T* from, T* to) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    std::int64_t at_from = 0, at_to = 0;
    l.locate(l.rank, i, at_from, at_to);
    to[at_to] = from[at_from];
  }
}

constexpr int kTile = 32, kTileRows = kThreads / kTile;

/// Copies a layout that is contiguous along the last axis in writing and the last but one in reading. Tiles in shared
/// memory make both accesses coalesced.
template <class T>
__global__ void copy_tiles(Layout l, Divider across, Divider down, std::int64_t n_tiles, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];  // one extra column: the elements of a column are in different banks
  const int last = l.rank - 1, x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const std::int64_t rows = l.dims[last - 1], columns = l.dims[last];
  for (std::int64_t t = blockIdx.x; t < n_tiles; t += gridDim.x) {
    const std::int64_t row = across(t), outer = down(row);  // of tiles
    const std::int64_t c0 = (t - row * across.by) * kTile, r0 = (row - outer * down.by) * kTile;
    std::int64_t at_from = 0, at_to = 0;
    l.locate(last - 1, outer, at_from, at_to);
    __syncthreads();  // all threads have read the tile before
    for (int j = y; j < kTile; j += kTileRows)
      if (r0 + x < rows && c0 + j < columns)
        tile[j][x] = from[at_from + (r0 + x) * l.from[last - 1] + (c0 + j) * l.from[last]];
    __syncthreads();
    for (int j = y; j < kTile; j += kTileRows)
      if (r0 + j < rows && c0 + x < columns) to[at_to + (r0 + j) * l.to[last - 1] + (c0 + x) * l.to[last]] = tile[x][j];
  }
}

/// If reading is contiguous along another axis than writing, and both are long enough for tiles, makes that axis the
/// last but one and returns true. Else returns false.
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

void fill(CudaDevice& device, void* to, std::int64_t count, std::uint64_t bits, int size) {
  for_size(size, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch("fill", device, blocks_for(count), fill_elements<T>, static_cast<T*>(to), count, static_cast<T>(bits));
  });
}

void copy_strided(const char* what, CudaDevice& device, const Strided& layout, const void* from, void* to, int size) {
  // Zeros for unused axes: the emulated device would mistake an old pointer among a kernel's arguments for a pointer to
  // host memory.
  Layout l{};
  std::int64_t n = 1;
  for (int d = 0; d < layout.rank; ++d) {
    l.push(layout.dims[d], layout.from[d], layout.to[d]);
    n *= l.dims[d];
  }
  if (l.rank == 1 && l.from[0] == 1 && l.to[0] == 1) return device.copy(to, from, n * size, what);
  const bool tiles = transposes(l);
  for (int d = 0; d < l.rank; ++d) l.by[d] = Divider(l.dims[d]);
  for_size(size, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const T* f = static_cast<const T*>(from);
    T* t = static_cast<T*>(to);
    if (tiles) {
      const std::int64_t rows = l.dims[l.rank - 2], columns = l.dims[l.rank - 1];
      const Divider across(ceil_div(columns, kTile)), down(ceil_div(rows, kTile));
      const std::int64_t n_tiles = n / (rows * columns) * across.by * down.by;
      launch(what, device, blocks_for(n_tiles * kThreads), copy_tiles<T>, l, across, down, n_tiles, f, t);
    } else {
      launch(what, device, blocks_for(n), copy_each<T>, l, n, f, t);
    }
  });
}

}  // namespace kassette::cuda

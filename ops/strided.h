// ops/strided.h - copying between two strided layouts: what transposes, slices, joins, repeats and reversals are made of.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/impl.h"

namespace kassette {

/// Axes with a stride on each side, in elements; a stride of 0 on the side that is read repeats, a negative one walks
/// backwards. Twice the largest rank, since a repetition splits an axis in two.
struct Strided {
  static constexpr int kAxes = 2 * kMaxRank;
  int rank = 0;
  std::int64_t dims[kAxes], from[kAxes], to[kAxes];

  void push(std::int64_t n, std::int64_t from_stride, std::int64_t to_stride) {
    dims[rank] = n;
    from[rank] = from_stride;
    to[rank] = to_stride;
    ++rank;
  }
};

/// Row-major strides of a known shape.
void row_strides(const TensorSpec& s, std::int64_t* strides);

/// Copies every element of the layout. `from` and `to` point to the element at index zero; elements of `size` bytes (1, 2, 4
/// or 8). The axes may be in any order; no element is written twice.
void copy_strided(const Strided& layout, const std::byte* from, std::byte* to, int size);

/// On several threads where that pays.
void zero_bytes(std::byte* to, std::int64_t n);

// The same on any device, enqueued there: kernels made of these two alone serve every column of their row.
void copy_strided(Device device, const Strided& layout, const std::byte* from, std::byte* to, int size);
void zero_bytes(Device device, std::byte* to, std::int64_t n);
/// `n` elements of `size` bytes, each that of the host which is given; on a device other than the CPU.
void fill_elements(Device device, std::byte* to, std::int64_t n, const void* element, int size);

struct DeviceMoves;
/// Those of the device library; filled in before its device is visible. What a GPU's copy is given has been put in order as a CPU's is:
/// no axis of size 0 or 1, those with the larger stride on the side that is written first, neighbours joined.
DeviceMoves& device_moves();

}  // namespace kassette

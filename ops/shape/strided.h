// ops/shape/strided.h - copying between two strided layouts, the kernel of transposes, slices, concatenations, repeats
// and reversals.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/impl.h"

namespace kassette {

namespace devices {
struct DeviceMoves;  // devices/plugin.h
}

namespace ops {

struct OpCall;  // ops/engine/op.h

/// Axes with a stride for reading and one for writing, in elements. Reading with stride 0 repeats, with a negative
/// stride reverses. There are up to twice kMaxRank axes, since a repetition splits an axis in two.
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

/// Writes the row-major strides of a known shape to `strides`.
void row_strides(const TensorSpec& s, std::int64_t* strides);

/// Copies every element of the layout. `from` and `to` point to the element at index zero. Elements have `size` bytes
/// (1, 2, 4 or 8). Axes may be in any order; no element may be written twice.
void copy_strided(const Strided& layout, const std::byte* from, std::byte* to, int size);

/// Clears n bytes, on several threads if they are many.
void zero_bytes(std::byte* to, std::int64_t n);

/// copy_strided() and zero_bytes() on the device of a call, in its stream; errors name the op. A kernel that only calls
/// these two works for all devices of an op's OpDef.
void copy_strided(const OpCall& call, const Strided& layout, const std::byte* from, std::byte* to, int size);
void zero_bytes(const OpCall& call, std::byte* to, std::int64_t n);
/// Fills `to`, on a device other than the CPU, with n copies of `element`, which is in host memory and has `size`
/// bytes.
void fill_elements(Device device, std::byte* to, std::int64_t n, const void* element, int size);

/// The functions of the device library, which fills them in before its devices are visible. copy_strided of a device
/// gets coalesced layouts: no axis of size 0 or 1 (except in a copy of one element), axes sorted by descending stride
/// of the target, adjacent axes joined where the strides of both arrays allow it.
devices::DeviceMoves& device_moves();

}  // namespace ops
}  // namespace kassette

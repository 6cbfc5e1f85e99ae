// ops/elementwise/device_chain.h - chains of elementwise ops on a CUDA device: the code as plain data, passed as the
// argument of one kernel. See Note [Chains].
#pragma once
#include "ops/elementwise/binary_ops.h"
#include "ops/elementwise/unary_ops.h"

namespace kassette::ops {

/// Code that a kernel interprets for each element, whose value is in a register, `acc`. Kernel arguments are
/// limited to 4 KiB.
struct DeviceChain {
  /// Values of Code::opcode. Ops are numbered by their positions in UnaryOps and BinaryOps.
  static constexpr int kLoad = 1, kStore = 2, kUnary = 3, kBinary = kUnary + UnaryOps::size,
                       kEnd = kBinary + BinaryOps::size;
  /// Where the operand of an opcode is.
  enum Where : std::uint8_t {
    kKept,    // an intermediate value of the element, stored by an earlier kStore
    kMemory,  // in memory, one number for each element
    kOne      // in memory, one number for all elements; 0 where its address is null
  };
  /// An opcode with its operand: what ChainCode is on the CPU.
  struct Code {
    std::uint8_t opcode;
    Where where;         // of the operand
    std::uint8_t index;  // of the operand; for unary ops, of their attributes
    bool reversed;       // acc = operand op acc
  };
  /// An operand in memory.
  struct Operand {
    std::byte* base;
    std::int64_t row_gap;  // bytes between the end of a row and the start of the next
  };
  static constexpr int kMaxOps = 32, kMaxCode = 112, kMaxOperands = 100, kMaxUnary = kMaxOps, kMaxKept = kMaxOps;
  static_assert(3 * kMaxOps <= kMaxCode && 3 * kMaxOps <= kMaxOperands);  // for each op: a load, the op, a store

  /// True if an op (a load, an op of a second operand, a store) may follow so many opcodes, operands in memory,
  /// unary ops and intermediate values.
  static constexpr bool has_room(int n_code, int n_operands, int n_unary, int n_kept) {
    return n_code + 5 < kMaxCode && n_operands + 5 < kMaxOperands && n_unary + 1 < kMaxUnary && n_kept + 2 < kMaxKept;
  }

  bool is_double;
  int n_code, n_kept;
  std::int64_t n, width;  // the number of elements, in all and per row
  Code code[kMaxCode];
  Operand operands[kMaxOperands];
  ChainAttrs attrs[kMaxUnary];
};
static_assert(sizeof(DeviceChain) <= 4096 && DeviceChain::kEnd <= 255);
/// A number that changes with the lists of ops and the layout of DeviceChain, by which the device library is checked
/// when it is loaded.
inline constexpr std::uint64_t kChainAbi = DeviceChain::kEnd + 256 * sizeof(DeviceChain);

}  // namespace kassette::ops

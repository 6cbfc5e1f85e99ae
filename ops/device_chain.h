// ops/device_chain.h - chains of elementwise ops on a device: the program as plain data, which is the argument of one kernel. See Note [Chains].
#pragma once
#include "ops/binary_ops.h"

namespace kassette {

/// What a kernel interprets for each element, whose value is in a register, `acc`. At most 4 KiB, as arguments of kernels are.
struct DeviceChain {
  /// Ops by their places in UnaryOps and BinaryOps.
  static constexpr int kLoad = 1, kStore = 2, kUnary = 3, kBinary = kUnary + UnaryOps::size,
                       kEnd = kBinary + BinaryOps::size;
  enum Where : std::uint8_t {
    kKept,    // a value of the element that an instruction stored before
    kMemory,  // an operand that moves on with the elements
    kOne      // an operand that is one number
  };
  struct Instruction {
    std::uint8_t code;
    Where where;         // of the operand
    std::uint8_t index;  // of the operand; of an op with one operand, of its params
    bool turned;         // acc = operand op acc
  };
  struct Operand {
    std::byte* base;
    std::int64_t skip;  // bytes between the end of a row and the start of the next
  };
  static constexpr int kMostSteps = 32, kMostCode = 112, kMostOperands = 100, kMostParams = kMostSteps,
                       kMostKept = kMostSteps;
  static_assert(3 * kMostSteps <= kMostCode && 3 * kMostSteps <= kMostOperands);  // of a step: a load, the op, a store

  bool is_double;
  int n_code, n_kept;
  std::int64_t n, width;  // elements, of rows of so many
  Instruction code[kMostCode];
  Operand operands[kMostOperands];
  Params params[kMostParams];
};
static_assert(sizeof(DeviceChain) <= 4096 && DeviceChain::kEnd <= 255);
/// Changes with the ops that there are.
inline constexpr std::uint64_t kChainAbi = DeviceChain::kEnd + 256 * sizeof(DeviceChain);

}  // namespace kassette

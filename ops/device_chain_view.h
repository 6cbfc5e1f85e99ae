// ops/device_chain_view.h - the engine's representation of a chain of elementwise ops, and running it on a device.
#pragma once
#include <kassette/device.h>

#include "ops/chain.h"
#include "ops/device_chain.h"

namespace kassette::ops {

/// A chain whose instructions are from device_chain_table(), by pointers to its parts.
struct ChainView {
  int is_double;
  ChainShape shape;
  const ChainCode* code;
  const ChainOperand* from;  // one for each instruction
  int n_code;
  const ChainConstant* ones;
  int n_ones;
};
/// The instructions for devices: their ChainOpcode is a code of DeviceChain instead of a function. Every op has one.
const ChainTable& device_chain_table();
/// Enqueues a chain of at most DeviceChain::kMostOps ops.
void run_chain(Device device, const ChainView& chain);

}  // namespace kassette::ops

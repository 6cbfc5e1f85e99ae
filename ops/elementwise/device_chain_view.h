// ops/elementwise/device_chain_view.h - a chain of elementwise ops as autograd builds it, and running it on a device.
#pragma once
#include <kassette/device.h>

#include "ops/elementwise/chain.h"
#include "ops/elementwise/device_chain.h"

namespace kassette::ops {

/// A chain whose opcodes are from device_chain_table(), by pointers to its parts.
struct ChainView {
  int is_double;
  ChainShape shape;
  const ChainCode* code;
  const ChainOperand* from;  // one for each of `code`
  int n_code;
  const ChainConstant* constants;
  int n_constants;
};
/// The opcodes for devices: numbers of DeviceChain. Every op has one.
const ChainTable& device_chain_table();
/// Enqueues a chain of at most DeviceChain::kMaxOps ops.
void run_chain(Device device, const ChainView& chain);

}  // namespace kassette::ops

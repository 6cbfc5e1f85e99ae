// ops/device_chain_view.h - a chain of elementwise ops as the engine has it, and running it on a device.
#pragma once
#include <kassette/device.h>

#include "ops/chain.h"
#include "ops/device_chain.h"

namespace kassette {

/// A chain as it was made with device_chain_table().
struct ChainView {
  int is_double;
  ChainShape shape;
  const ChainCode* code;
  const Place* from;  // one for each instruction
  int n_code;
  const ChainOne* ones;
  int n_ones;
};
/// The instructions of DeviceChain (ops/device_chain.h): each op has one.
const ChainTable& device_chain_table();
/// Enqueues a chain of at most DeviceChain::kMostSteps steps.
void run_chain(Device device, const ChainView& chain);

}  // namespace kassette

// ops/collective/collective_device.h - collectives from GPU memory to GPU memory, without a copy to the host.
#pragma once
#include "devices/device_transport.h"
#include "ops/collective/collective_parts.h"

namespace kassette::ops {
using devices::DeviceCommunicator;

/// Returns the communicator for a call on GPU tensors; null if the data has to go through host memory. The first such
/// call of a group sets the communicator up, together with the other ranks. Throws on all ranks if this rank's tensors
/// are not on the group's GPU.
DeviceCommunicator* direct_way(const OpCall& call, bool rows_differ = false);

void direct_all_reduce(const OpCall& call, DeviceCommunicator& comm);
void direct_broadcast(const OpCall& call, DeviceCommunicator& comm);
void direct_reduce(const OpCall& call, DeviceCommunicator& comm);
void direct_all_gather(const OpCall& call, DeviceCommunicator& comm);
void direct_reduce_scatter(const OpCall& call, DeviceCommunicator& comm);
void direct_all_to_all(const OpCall& call, DeviceCommunicator& comm);

}  // namespace kassette::ops

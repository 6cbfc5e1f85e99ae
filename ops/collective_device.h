// ops/collective_device.h - collectives between the memories of GPUs, without the host.
#pragma once
#include "devices/device_transport.h"
#include "ops/collective_parts.h"

namespace kassette {

/// How the ranks of this call exchange where its tensors are on a GPU; null: by way of the host. The first such call of a group finds out,
/// together with the other ranks.
DeviceCommunicator* direct_way(const OpCall& call, bool rows_differ = false);

void direct_all_reduce(const OpCall& call, DeviceCommunicator& comm);
void direct_broadcast(const OpCall& call, DeviceCommunicator& comm);
void direct_reduce(const OpCall& call, DeviceCommunicator& comm);
void direct_all_gather(const OpCall& call, DeviceCommunicator& comm);
void direct_reduce_scatter(const OpCall& call, DeviceCommunicator& comm);
void direct_all_to_all(const OpCall& call, DeviceCommunicator& comm);

}  // namespace kassette

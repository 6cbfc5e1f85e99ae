// ops/collective_kernels.h - kernels that exchange bytes with the other ranks of a group.
#pragma once
#include "ops/collective.h"

namespace kassette {

const char* reduction_name(Reduction how);

// For all devices: what is elsewhere goes by way of the host.
void all_reduce_kernel(const Call& call);
void broadcast_kernel(const Call& call);
void reduce_kernel(const Call& call);
void all_gather_kernel(const Call& call);
void reduce_scatter_kernel(const Call& call);
void all_to_all_kernel(const Call& call);
void send_kernel(const Call& call);
void recv_kernel(const Call& call);

}  // namespace kassette

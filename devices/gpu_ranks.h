// devices/gpu_ranks.h - setting up the exchange between the GPUs of a group of ranks.
#pragma once
#include "devices/ranks.h"

namespace kassette::devices {

/// Sets up a communicator between the GPUs of the group, of which this rank's is `device`, if each rank has a GPU of
/// its own, libkassette_nccl.so and NCCL; otherwise rank 0 logs a warning with the reason. All ranks of the group call
/// it once, within a RankCall.
void connect_gpus(RankGroup& group, Device device);

}  // namespace kassette::devices

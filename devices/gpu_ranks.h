// devices/gpu_ranks.h - how the ranks of a group get to exchange between their GPUs.
#pragma once
#include "devices/ranks.h"

namespace kassette {

/// Finds out whether the ranks of the group can exchange from GPU to GPU, this one from `device`, and if so joins them: where each has a GPU
/// of its own, libkassette_nccl.so and NCCL. All ranks of the group call it, within a RankCall, once. Where they cannot, rank 0
/// warns of the reason.
void meet_gpus(RankGroup& group, Device device);

}  // namespace kassette

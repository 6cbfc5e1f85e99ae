// tests/emulated_cuda/cudnn.h - counters and switches of the emulated cuDNN, exported for tests.
#pragma once
#include "cuda_runtime.h"

/// What is refused from now on: 0 nothing, 1 to describe a tensor, 2 to propose an algorithm, 3 to be asked for one,
/// 4 the call itself; 5: the call fails.
EMULATED_ASKED void emulated_cudnn_refuses(int how);
/// The number of calls that were computed, of those that allowed TF32, and of questions for an algorithm.
EMULATED_ASKED std::int64_t emulated_cudnn_calls();
EMULATED_ASKED std::int64_t emulated_cudnn_tf32_calls();
EMULATED_ASKED std::int64_t emulated_cudnn_questions();

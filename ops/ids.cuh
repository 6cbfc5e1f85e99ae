// ops/ids.cuh - integers that select: on the host to be checked, since a wrong one is an error of the call that was given it.
#pragma once
#include <cstring>
#include <vector>

#include "core/text.h"
#include "devices/cuda/cuda.h"
#include "ops/op.h"

namespace kassette::cuda {

/// Input i, of int32 or int64, as the host sees it; waits for the device.
inline std::vector<std::int64_t> read_ids(const Call& call, int i) {
  const Spec& s = call.spec(i);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(s.numel()));
  if (ids.empty()) return ids;
  CudaBackend& device = device_of(call.device);
  if (s.dtype == int64) {
    device.copy_to_host(ids.data(), call.in[i].data, s.bytes());
  } else {
    std::vector<std::int32_t> narrow(ids.size());
    device.copy_to_host(narrow.data(), call.in[i].data, s.bytes());
    ids.assign(narrow.begin(), narrow.end());
  }
  return ids;
}

}  // namespace kassette::cuda

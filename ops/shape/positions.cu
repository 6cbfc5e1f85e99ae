// ops/shape/positions.cu - where the elements are that several index tensors select, on CUDA.
#include <iterator>

#include "devices/cuda/faults.cuh"
#include "ops/engine/refusals.h"
#include "ops/engine/teams.cuh"
#include "ops/shape/position_terms.h"

namespace kassette::cuda {
namespace {

/// PositionTerms for a kernel.
struct Terms {
  int rank, n;
  std::int64_t base;
  Divider by[kMaxRank];  // the sizes of the result
  std::int64_t dims[kMaxRank] = {}, steps[kMaxRank] = {};
  PositionTerms::Term terms[kMaxRank];
  const std::int64_t* indices[kMaxRank] = {};
  Terms(const PositionTerms& t, const OpCall& call) : rank(t.rank), n(t.n), base(t.base) {
    for (int d = 0; d < rank; ++d) {
      by[d] = Divider(t.dims[d]);
      dims[d] = t.dims[d];
      steps[d] = t.steps[d];
    }
    for (int k = 0; k < n; ++k) {
      terms[k] = t.terms[k];
      indices[k] = call.in[k + 1].as<std::int64_t>();
    }
  }
};

__global__ void check_each(const std::int64_t* indices, PositionTerms::Term term, Faults faults) {
  for (std::int64_t i = Thread::first(); i < term.count; i += Thread::step()) {
    const std::int64_t at = indices[i];
    if (at < -term.size || at >= term.size) report(faults, Refusal::index_of_axis, i, at, term.axis, term.size);
  }
}
/// The offset of element i of the result in an array with these strides. Without a list of places per axis, which would
/// need a stack.
__device__ std::int64_t offset_of(const Terms& t, const std::int64_t* strides, std::int64_t i) {
  std::int64_t sum = 0;
#pragma unroll 1
  for (int d = t.rank - 1; d > 0; --d) {
    const std::int64_t rest = t.by[d](i);
    sum += (i - rest * t.dims[d]) * strides[d];
    i = rest;
  }
  return sum + i * strides[0];
}
/// Indices out of range, which check_each reports, count as 0.
__global__ void position_each(Terms t, std::int64_t total, std::int64_t* out) {
  for (std::int64_t i = Thread::first(); i < total; i += Thread::step()) {
    std::int64_t sum = t.base + offset_of(t, t.steps, i);
#pragma unroll 1
    for (int k = 0; k < t.n; ++k) {
      const std::int64_t index = t.indices[k][offset_of(t, t.terms[k].strides, i)], size = t.terms[k].size;
      if (index >= -size && index < size) sum += (index < 0 ? index + size : index) * t.terms[k].weight;
    }
    out[i] = sum;
  }
}

void run_positions(const OpCall& call) {
  const PositionTerms t(call);
  CudaDevice& device = device_of(call.device);
  for (int k = 0; k < t.n; ++k)
    if (t.terms[k].count > 0)
      launch(call.op.name, device, blocks_for(t.terms[k].count), check_each, call.in[k + 1].as<std::int64_t>(),
             t.terms[k], device.faults());
  const std::int64_t total = call.out[0]->numel();
  host_services().allocate_output(*call.out[0], call.device);
  if (total > 0)
    launch(call.op.name, device, blocks_for(total), position_each, Terms(t, call), total, call.out_as<std::int64_t>());
}

const PluginKernel kernels[] = {{"index_positions", run_positions}};

}  // namespace

Kernels positions_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

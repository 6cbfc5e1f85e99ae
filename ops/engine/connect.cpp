// ops/engine/connect.cpp - registration of the kernels of a device library in the op table.
#include <cstring>
#include <memory>
#include <string>

#include "core/log.h"
#include "devices/plugin.h"
#include "devices/tf32.h"
#include "ops/convolution/conv.h"
#include "ops/elementwise/device_chain.h"
#include "ops/engine/dims.h"
#include "ops/engine/refusals.h"
#include "ops/engine/op_registry.h"
#include "ops/sparse/sparse_index.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

void with_sparse_index(const OpCall& call, int dense_shape, int part, void (*use)(void*, const SparseView&),
                       void* state) {
  TensorSpec shape;
  dims_from(call, dense_shape, &shape);
  std::unique_ptr<SparseIndex> made;  // its device memory is released in stream order, after use()
  const SparseIndex& index = SparseIndex::owner_of(call.op.name, *call.in[0].desc, shape, made);
  use(state, index.on(call.device, static_cast<SparseView::Part>(part)));
}

}  // namespace

static_assert(devices::kFaultNumbers == kRefusalNumbers);

bool connect_plugin(const devices::DevicePlugin& plugin, devices::HostServices* services) {
  if (plugin.chain_abi != kChainAbi) return false;
  *services = {allocate_output,
               share_input,
               with_sparse_index,
               &device_conv_limits,
               &devices::tf32_flag(),
               [](int refusal, const std::int64_t* numbers, bool asynchronous) {
                 refuse(static_cast<Refusal>(refusal), numbers, asynchronous ? Thrown::by_later_wait : Thrown::by_call);
               },
               &devices::cudnn_flag(),
               [](const char* text) { log_warning(text); }};
  device_moves() = plugin.moves;
  const std::vector<const OpDef*> list = all_ops();
  for (int i = 0; i < plugin.n_kernels; ++i) {
    const devices::PluginKernel& kernel = plugin.kernels[i];
    bool known = false;
    for (const OpDef* op : list)
      if (!std::strcmp(op->name, kernel.op)) {
        op->cuda = kernel.run;
        op->cuda_with_bias = kernel.with_bias;
        known = true;
      }
    if (!known)
      log_warning(std::string("libkassette_cuda.so has a kernel for \"") + kernel.op +
                  "\", which is not an op of this library");
  }
  return true;
}

}  // namespace kassette::ops

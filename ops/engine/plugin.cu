// ops/engine/plugin.cu - the exports of libkassette_cuda.so: its device and its kernels.
#include <vector>

#include "devices/cuda/cudnn.h"
#include "ops/elementwise/elementwise.cuh"
#include "ops/elementwise/device_chain.h"
#include "ops/shape/moving.cuh"
#include "kernel_families.inc"  // KASSETTE_FAMILIES: each .cu but those that ops/CMakeLists.txt names

#define KASSETTE_KERNELS_OF(family) family##_kernels()

namespace kassette::cuda {

Kernels KASSETTE_FAMILIES(KASSETTE_KERNELS_OF);  // declares unary_kernels() and so on

namespace {

const std::vector<PluginKernel>& kernels() {
  static const auto* all = [] {
    auto* list = new std::vector<PluginKernel>;
    for (const Kernels& k : {KASSETTE_FAMILIES(KASSETTE_KERNELS_OF)}) list->insert(list->end(), k.first, k.first + k.n);
    return list;
  }();
  return *all;
}

}  // namespace
}  // namespace kassette::cuda

extern "C" KASSETTE_API const kassette::devices::DevicePlugin* kassette_cuda_plugin() {
  using namespace kassette;
  static const devices::DevicePlugin plugin{
      devices::kPluginAbi,
      static_cast<int>(cuda::kernels().size()),
      cuda::kernels().data(),
      cuda::open_device,
      cuda::count_devices,
      cuda::describe_device,
      {[](const ops::OpCall& call, const ops::Strided& layout, const void* from, void* to, int size) {
         cuda::copy_strided(call.op.name, cuda::device_of(call.device), layout, from, to, size);
       },
       [](const ops::OpCall& call, void* to, std::int64_t bytes) {
         cuda::device_of(call.device).zero(to, bytes, call.op.name);
       },
       [](Device device, void* to, std::int64_t count, std::uint64_t bits, int size) {
         cuda::fill(cuda::device_of(device), to, count, bits, size);
       },
       cuda::sum_copies, cuda::run_chain, cuda::allocate_pinned, cuda::release_pinned},
      ops::kChainAbi,
      cuda::describe_cudnn};
  return &plugin;
}

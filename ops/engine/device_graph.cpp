// ops/engine/device_graph.cpp - capturing a function's work in a CUDA graph.
#include "ops/engine/device_graph.h"

#include <algorithm>

#include "core/fast_paths.h"
#include "core/log.h"
#include "core/text.h"
#include "devices/plugin.h"

namespace kassette::ops {
namespace {

constinit thread_local devices::CudaDeviceApi* capturing = nullptr;  // the device that this thread captures on

Device device_numbered(int index) { return Device(Device::kCuda, static_cast<std::uint8_t>(index)); }

}  // namespace

FunctionGraph::~FunctionGraph() {
  if (graph_) devices::cuda_device_api(device_numbered(device_)).destroy(graph_);
}

devices::CudaDeviceApi* FunctionGraph::begin(const std::vector<TensorDesc>& known) {
  int device = device_.load(std::memory_order_relaxed);
  if (device == kNotLookedUp) {
    const auto on_device =
        std::ranges::find_if(known, [](const TensorDesc& b) { return b.device.type() == Device::kCuda; });
    device = on_device == known.end() ? kNoCudaDevice : on_device->device.index();
    device_.store(device, std::memory_order_relaxed);
  }
  if (device == kNoCudaDevice || capturing || !may_take(FastPath::device_graph)) return nullptr;
  if (errors_.load(std::memory_order_relaxed) == kMaxErrors) return nullptr;
  devices::CudaDeviceApi& api = devices::cuda_device_api(device_numbered(device));
  if (!api.begin_capture(graph_)) return nullptr;
  return capturing = &api;
}

bool FunctionGraph::end(devices::CudaDeviceApi& api, const char* device_error) noexcept {
  capturing = nullptr;
  const bool dropped = &api.launched_on(api.current()) != &api.current();  // the work is still captured
  const char* refused = api.end_capture();
  if (!device_error) {
    errors_.store(0, std::memory_order_relaxed);
  } else if (!refused && dropped) {
    // A library that cannot be captured may say so itself, before CUDA does. If the device has failed, the second run
    // will report it.
    errors_.fetch_add(1, std::memory_order_relaxed);
    refused = device_error;
  }
  if (refused) log_debug(text("function: runs without a CUDA graph, because CUDA refused it: ", refused));
  return refused;
}

void launch_captured() {
  if (capturing && capturing->launch_captured()) count_taken(FastPath::device_graph);
}

}  // namespace kassette::ops

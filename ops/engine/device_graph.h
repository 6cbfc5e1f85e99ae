// ops/engine/device_graph.h - launches all kernels of a K::function on a CUDA device as one CUDA graph. See Note
// [Graphs] in devices/cuda/graph.cpp.
#pragma once
#include <atomic>
#include <vector>

#include <kassette/error.h>

#include "core/impl.h"

namespace kassette {

namespace devices {
struct DeviceGraph;
class CudaDeviceApi;
}  // namespace devices

namespace ops {

/// Launches the work that this thread has captured so far, if any. Call it before results become visible to other
/// threads.
void launch_captured();

/// The CUDA graph of a function with known shapes: from the second run on, the work that it enqueues is captured and
/// launched as one graph.
class FunctionGraph {
 public:
  FunctionGraph() = default;
  ~FunctionGraph();
  FunctionGraph(const FunctionGraph&) = delete;
  FunctionGraph& operator=(const FunctionGraph&) = delete;
  /// Returns run_function(). If CUDA refuses the graph, or one of its libraries a call that is captured, run_function()
  /// is called again, so before its call of launch_captured() it must have no effect except enqueued work. `known`: a
  /// descriptor for each value of the function, from which its device is found.
  template <class F>
  Tensors run(const std::vector<TensorDesc>& known, const F& run_function) {
    devices::CudaDeviceApi* api = begin(known);
    if (!api) return run_function();
    try {
      Tensors results = run_function();
      launch_captured();
      end(*api);
      return results;
    } catch (const DeviceError& error) {
      if (!end(*api, error.what())) throw;
    } catch (...) {
      if (!end(*api)) throw;
    }
    return run_function();
  }

 private:
  /// Begins a capture. Returns null if this run is not captured.
  devices::CudaDeviceApi* begin(const std::vector<TensorDesc>& known);
  /// Ends the capture. Returns true if CUDA has refused the graph, or nothing of it has run and there was a
  /// `device_error`.
  bool end(devices::CudaDeviceApi& api, const char* device_error = nullptr) noexcept;

  static constexpr int kMaxErrors = 3;
  std::atomic<int> errors_{0};  // successive runs with a device's error in the capture; at kMaxErrors capturing stops
  std::atomic<int> device_{kNotLookedUp};  // the index of a device, or one of these
  static constexpr int kNotLookedUp = -2, kNoCudaDevice = -1;
  devices::DeviceGraph* graph_ = nullptr;
};

}  // namespace ops
}  // namespace kassette

// ops/device_graph.h - a function's work on a device as one CUDA graph. See Note [Graphs] in devices/cuda/graph.cpp.
#pragma once
#include <atomic>
#include <vector>

#include "core/impl.h"

namespace kassette {

struct DeviceGraph;
class DeviceBackend;

/// Launches what this thread has captured, if anything: afterwards others may see what it makes.
void launch_captured();

/// What a function with known shapes enqueues on a CUDA device, captured and launched as one graph from its second run on.
class FunctionGraph {
 public:
  FunctionGraph() = default;
  ~FunctionGraph();
  FunctionGraph(const FunctionGraph&) = delete;
  FunctionGraph& operator=(const FunctionGraph&) = delete;
  /// What play() returns. It has an effect only through what it enqueues and, after launch_captured, variables: where CUDA refuses the graph it is
  /// called again. `known`: a body for each value of the function, on whose device that is.
  template <class Play>
  Tensors run(const std::vector<Body>& known, const Play& play) {
    DeviceBackend* backend = begin(known);
    if (!backend) return play();
    try {
      Tensors results = play();
      launch_captured();
      end(*backend);
      return results;
    } catch (...) {
      if (!end(*backend)) throw;
    }
    return play();
  }

 private:
  /// Null where nothing is captured.
  DeviceBackend* begin(const std::vector<Body>& known);
  /// Whether CUDA has refused the graph.
  bool end(DeviceBackend& backend) noexcept;

  std::atomic<int> device_{kUnknown};  // a number, or one of these
  static constexpr int kUnknown = -2, kNone = -1;
  DeviceGraph* graph_ = nullptr;
};

}  // namespace kassette

// devices/cuda/graph.cpp - capturing the work that a function enqueues, and launching it as one CUDA graph.
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <kassette/error.h>

#include "devices/cuda/cuda.h"

// Note [Graphs]
// Launching a kernel costs the host some microseconds, and the device idles for about one between two kernels of a
// stream. A graph is launched once, and its kernels follow each other without the host. We do not build graphs by hand:
// a function runs as always, step by step, and CUDA captures what it enqueues. The first run is not captured; the
// second is, and its graph is instantiated. From the third run on that executable graph is updated with the new
// arguments (cudaGraphExecUpdate) and launched; if the two differ in structure a new one is instantiated. So addresses,
// keys of random draws, numbers and sizes may differ from run to run, and the host's code runs each time: a graph is
// never replayed, and inputs need not be copied to fixed addresses. The price is that the host's work is not saved.
// PyTorch's graphs do save it: they replay over memory of their own, and it is up to the user that only the values of
// inputs change.
//
// Captured work runs later than it was enqueued, when the graph is launched, and other threads may enqueue on the same
// stream in the meantime.
//   Streams  The capture is on a separate stream, `captured`, which is current in the capturing thread. Other threads
//            keep the base stream, and what they enqueue there runs before the graph.
//   Memory   A block that any thread frees before the launch may still be used by captured work. It counts as freed in
//            the stream `captured`, whose number is below 0: only the capturing thread can reuse it, and it is not
//            returned to CUDA. When the graph is launched such blocks move to the base stream. The capturing thread
//            may also take blocks of the base stream: their earlier uses are enqueued before.
//   Others   Values that other threads can see are launched before they become visible: variables (commit) and
//            results. Numbers and sparse indices that are cached on the device are enqueued at once (NotCaptured).
//   Waiting  Operations that need the stream itself (a wait, a copy to the host or between devices, NCCL) end the
//            capture: the captured work is launched, and the rest of the run is enqueued as without graphs.
//   Errors   An exception drops the captured work. If CUDA refuses the graph, or a call while it captures, none of the
//            work has run and no variable has changed, and the function runs again without a graph (FunctionGraph,
//            ops/engine/device_graph.h).
//   Mode     A relaxed capture. In the other modes CUDA refuses some calls of this thread that have nothing to do with
//            the captured stream, and the capture fails: loading a module, as a kernel's first launch does, memory for
//            a library's handle, a wait for what was enqueued on the base stream (NotCaptured). None of these disturbs
//            the capture. Calls that do are refused in each mode.
// Only one thread at a time captures on a device; functions that other threads run meanwhile are not captured.

namespace kassette::devices {

struct DeviceGraph {
  static constexpr int kMaxMisses = 3;
  bool ran = false;  // the first run is not captured: CUDA loads modules, and the cuBLAS handle is made
  int misses = 0;    // consecutive runs in which the graph was of no use; at kMaxMisses capturing stops for good
  cudaGraphExec_t exec = nullptr;
};

}  // namespace kassette::devices

namespace kassette::cuda {
namespace {

bool graphs_wanted() {
  static const bool wanted = [] {
    const char* set = std::getenv("KASSETTE_CUDA_GRAPHS");
    return !set || std::strcmp(set, "0") != 0;
  }();
  return wanted;
}

/// Updates the executable graph to the captured one, or instantiates a new one.
cudaError_t bring_up_to_date(DeviceGraph& graph, cudaGraph_t captured) {
  if (graph.exec) {
    cudaGraphExecUpdateResultInfo info = {};
    if (cudaGraphExecUpdate(graph.exec, captured, &info) == cudaSuccess) return graph.misses = 0, cudaSuccess;
    cudaGetLastError();
    cudaGraphExecDestroy(graph.exec);  // once it has run
    graph.exec = nullptr;
    ++graph.misses;
  }
  const cudaError_t error = cudaGraphInstantiate(&graph.exec, captured, 0);
  if (error != cudaSuccess) graph.exec = nullptr;
  return error;
}

}  // namespace

void CudaDevice::begin_on(DeviceStream& base) {
  DeviceGuard now(*this);
  if (!base.captured) {
    cudaStream_t handle;
    check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "function");
    base.captured.reset(
        new DeviceStream{.device = this, .handle = handle, .number = -1 - base.number, .ours = true, .base = &base});
  }
  check(cudaStreamBeginCapture(base.captured->handle, cudaStreamCaptureModeRelaxed), "function");
}

bool CudaDevice::begin_capture(DeviceGraph*& graph) {
  DeviceStream& base = current();
  if (base.base || waits_ || !cache_->enabled() || !graphs_wanted()) return false;
  std::unique_lock<std::recursive_mutex> lock(capture_.mutex, std::try_to_lock);
  if (!lock || capture_.graph) return false;
  if (!graph) graph = new DeviceGraph;
  if (!std::exchange(graph->ran, true) || graph->misses == DeviceGraph::kMaxMisses) return false;
  try {
    begin_on(base);
  } catch (const Error&) {  // if the device has an error, the function will report it
    return ++graph->misses, false;
  }
  capture_.graph = graph;
  capture_.base = &base;
  capture_.enqueued = 0;
  capture_.refused = nullptr;
  base.awaits_graph.store(true, std::memory_order_release);
  set_current(*base.captured);
  lock.release();  // end_capture unlocks
  return true;
}

bool CudaDevice::launch_captured() {
  DeviceStream& captured = current();
  if (!captured.base) return false;
  DeviceStream& base = *captured.base;
  DeviceGuard now(*this);
  int& misses = capture_.graph->misses;
  const int before = misses;
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(captured.handle, &graph);
  set_current(base);
  if (error == cudaSuccess && capture_.enqueued > 0) {
    error = bring_up_to_date(*capture_.graph, graph);
    if (error == cudaSuccess) error = cudaGraphLaunch(capture_.graph->exec, base.handle);
    if (capture_.enqueued == 1) misses = before + 1;  // a graph of one kernel is of no use
  }
  if (graph) cudaGraphDestroy(graph);
  if (error != cudaSuccess) {
    capture_.refused = cudaGetErrorString(error);
    check(error, "function");
  }
  settle_capture();
  return capture_.enqueued > 0;
}

void CudaDevice::leave_capture() {
  if (!current().base) return;
  const int misses = capture_.graph->misses;
  launch_captured();
  capture_.graph->misses = misses + 1;
}

/// After the captured work was launched or dropped: moves the memory freed meanwhile to the base stream, and releases
/// `keep` in its order.
void CudaDevice::settle_capture() noexcept {
  DeviceStream& base = *capture_.base;
  base.awaits_graph.store(false, std::memory_order_release);
  cache_->hand_over(base.captured->number, base.number);
  for (const Owner& keep : std::exchange(capture_.keep, {})) {
    try {
      release_after(base, keep);
    } catch (const Error&) {  // it was released; the device is lost, and its next use throws
    }
  }
}

const char* CudaDevice::end_capture() noexcept {
  if (DeviceStream& captured = current(); captured.base) {
    std::optional<DeviceGuard> now;
    try {
      now.emplace(*this);
    } catch (const Error&) {  // the device is lost
    }
    cudaGraph_t graph = nullptr;
    // CUDA remembers a call that it has refused: then the exception is that call's, else it is the function's own.
    if (const cudaError_t error = cudaStreamEndCapture(captured.handle, &graph); error != cudaSuccess) {
      cudaGetLastError();
      if (!capture_.refused) capture_.refused = cudaGetErrorString(error);
    }
    if (graph) cudaGraphDestroy(graph);
    set_current(*captured.base);
  }
  if (capture_.base->awaits_graph) settle_capture();
  if (capture_.refused) capture_.graph->misses = DeviceGraph::kMaxMisses;
  capture_.graph = nullptr;
  const char* refused = capture_.refused;
  capture_.mutex.unlock();
  return refused;
}

void CudaDevice::destroy(DeviceGraph* graph) noexcept {
  if (graph && graph->exec) cudaGraphExecDestroy(graph->exec);  // if it is running, CUDA frees it afterwards
  delete graph;
}

}  // namespace kassette::cuda

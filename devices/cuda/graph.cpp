// devices/cuda/graph.cpp - what a function enqueues, captured and launched as one CUDA graph.
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <kassette/error.h>

#include "devices/cuda/cuda.h"

// Note [Graphs]
// A launch costs the host some microseconds, and between two kernels of a stream the device does nothing for one. A graph is launched once, and its
// kernels follow each other without the host. What goes into it is not decided by hand: a function runs as always, step by step, and CUDA captures
// what that enqueues. From the second run on the executable graph of the run before is given the arguments of the new one (cudaGraphExecUpdate)
// and launched; where the two are of another form it is made anew. So addresses, keys of random draws, numbers and sizes may differ from run to run,
// and all that the host does for a run, it does: a graph is never replayed, and nothing has to be copied to where it was before. The price is that
// the host's part of a run is not saved, which PyTorch's graphs do: they replay, over memory of their own, and leave it to the user that nothing but the
// values of inputs changes.
//
// Captured work runs later than it was enqueued, when the graph is launched, and other threads may enqueue on the same stream in the meantime.
//   Streams  What is captured is a stream of its own, `captured`. The thread that captures has it as its current one; others keep the stream, and what they
//            enqueue runs before the graph.
//   Memory   A block that is freed before the launch, by whoever, may still be read or written by what is captured. It counts as freed in the stream
//            `captured`, whose number is below 0: only the capturing thread gets it again, and it is not given back to CUDA. When the graph is
//            launched such blocks become those of the stream. The capturing thread takes blocks of the stream too: their users were enqueued before.
//   Others   What others can see is launched before they see it: variables (Plan::commit) and results. Numbers and sparse indices that are kept on
//            the device are enqueued at once (NotCaptured).
//   Waiting  Who needs the stream itself (a wait, a copy to the host or between devices, NCCL) leaves the capture: what was captured is launched, and
//            the rest of the run is enqueued as without graphs.
//   Errors   An exception drops what was captured. Where CUDA refuses the graph nothing of it has run and no variable has changed, so that the
//            function runs again, without (FunctionGraph, ops/device_graph.h).
// One thread at a time captures on a device; the functions of others run as without graphs.

namespace kassette {

struct DeviceGraph {
  static constexpr int kMostMisses = 3;
  bool ran = false;  // the first run makes what CUDA makes when it is first needed: modules, cuBLAS' handle
  int misses = 0;    // runs one after the other that had no use of it; after the last there is no more capture
  cudaGraphExec_t exec = nullptr;
};

namespace cuda {
namespace {

bool graphs_wanted() {
  static const bool wanted = [] {
    const char* set = std::getenv("KASSETTE_CUDA_GRAPHS");
    return !set || std::strcmp(set, "0") != 0;
  }();
  return wanted;
}

/// Makes the executable graph do what was captured.
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

void CudaBackend::begin_on(DeviceStream& base) {
  Current now(*this);
  if (!base.captured) {
    cudaStream_t handle;
    check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "function");
    base.captured.reset(
        new DeviceStream{.device = this, .handle = handle, .number = -1 - base.number, .ours = true, .base = &base});
  }
  DeviceStream& captured = *base.captured;
  if (base.blas && !captured.blas)
    captured.blas = make_blas(captured.handle, base.blas_workspace);  // which products use one after the other
  check(cudaStreamBeginCapture(captured.handle, cudaStreamCaptureModeThreadLocal), "function");
}

bool CudaBackend::begin_capture(DeviceGraph*& graph) {
  DeviceStream& base = current();
  if (base.base || waits_ || !cache_->keeps() || !graphs_wanted()) return false;
  std::unique_lock<std::recursive_mutex> lock(capture_.mutex, std::try_to_lock);
  if (!lock || capture_.graph) return false;
  if (!graph) graph = new DeviceGraph;
  if (!std::exchange(graph->ran, true) || graph->misses == DeviceGraph::kMostMisses) return false;
  try {
    begin_on(base);
  } catch (const Error&) {  // what is wrong with the device the function will say
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

bool CudaBackend::launch_captured() {
  DeviceStream& captured = current();
  if (!captured.base) return false;
  DeviceStream& base = *captured.base;
  Current now(*this);
  int& misses = capture_.graph->misses;
  const int before = misses;
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(captured.handle, &graph);
  set_current(base);
  if (error == cudaSuccess && capture_.enqueued > 0) {
    error = bring_up_to_date(*capture_.graph, graph);
    if (error == cudaSuccess) error = cudaGraphLaunch(capture_.graph->exec, base.handle);
    if (capture_.enqueued == 1) misses = before + 1;  // a kernel alone needs no graph
  }
  if (graph) cudaGraphDestroy(graph);
  if (error != cudaSuccess) {
    capture_.refused = cudaGetErrorString(error);
    check(error, "function");
  }
  settle_capture();
  return capture_.enqueued > 0;
}

void CudaBackend::leave_capture() {
  if (!current().base) return;
  const int misses = capture_.graph->misses;
  launch_captured();
  capture_.graph->misses = misses + 1;
}

/// Nothing is captured any more: it is launched, or will never run.
void CudaBackend::settle_capture() noexcept {
  DeviceStream& base = *capture_.base;
  base.awaits_graph.store(false, std::memory_order_release);
  cache_->hand_over(base.captured->number, base.number);
  for (const Owner& keep : std::exchange(capture_.keep, {})) {
    try {
      release_after(base, keep);
    } catch (const Error&) {  // it was released, and the device is lost: whoever uses it next is told
    }
  }
}

const char* CudaBackend::end_capture() noexcept {
  if (DeviceStream& captured = current(); captured.base) {
    std::optional<Current> now;
    try {
      now.emplace(*this);
    } catch (const Error&) {  // the device is lost
    }
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(captured.handle, &graph) != cudaSuccess) cudaGetLastError();
    if (graph) cudaGraphDestroy(graph);
    set_current(*captured.base);
  }
  if (capture_.base->awaits_graph) settle_capture();
  if (capture_.refused) capture_.graph->misses = DeviceGraph::kMostMisses;
  capture_.graph = nullptr;
  const char* refused = capture_.refused;
  capture_.mutex.unlock();
  return refused;
}

void CudaBackend::destroy(DeviceGraph* graph) noexcept {
  if (graph && graph->exec) cudaGraphExecDestroy(graph->exec);  // where it runs, CUDA does that afterwards
  delete graph;
}

}  // namespace cuda
}  // namespace kassette

// tests/emulated_cuda/graph.cpp - graphs: work that was enqueued while a stream was captured, to be run later.
#include "cuda_runtime.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// What a graph runs: its nodes, in the order in which they were enqueued.
struct Work {
  std::vector<EmulatedNode> kinds;
  std::vector<std::function<void()>> nodes;
  EmulatedBlocks blocks;  // of all nodes
};

}  // namespace

struct EmulatedGraph {
  Work work;
  std::thread::id thread;  // the one that captures
  bool relaxed;
  bool failed = false;  // a call was refused
};
struct EmulatedGraphExec {
  std::shared_ptr<const Work> work;  // shared with launches that have not run yet
};

namespace {

std::recursive_mutex mutex;
std::map<cudaStream_t, EmulatedGraph*> captured;
std::atomic<std::int64_t> enqueued{0};
thread_local int capturing = 0;  // the number of captures in this thread that are not relaxed
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

std::int64_t emulated_enqueued() { return enqueued; }

bool emulated_refuses(cudaStream_t stream) {
  Lock lock(mutex);
  const char* number = std::getenv("EMULATED_CUDA_NO_CAPTURE");
  auto found = captured.find(stream);
  return number && found != captured.end() && found->second->work.nodes.size() + 1 == std::strtoul(number, nullptr, 10);
}
bool emulated_captures(cudaStream_t stream, EmulatedNode kind, EmulatedBlocks& blocks, std::function<void()>& work,
                       cudaError_t& error) {
  Lock lock(mutex);
  auto found = captured.find(stream);
  if (found == captured.end()) return ++enqueued, false;
  if (found->second->thread != std::this_thread::get_id())
    emulated_die("a thread enqueues on a stream that another one captures");
  if (found->second->failed) return error = cudaErrorStreamCaptureInvalidated, true;
  if (emulated_refuses(stream)) return found->second->failed = true, error = cudaErrorStreamCaptureUnsupported, true;
  Work& recorded = found->second->work;
  recorded.kinds.push_back(kind);
  recorded.nodes.push_back(std::move(work));
  recorded.blocks.places.insert(recorded.blocks.places.end(), blocks.places.begin(), blocks.places.end());
  return true;
}
void emulated_not_captured(cudaStream_t stream, int device) {
  Lock lock(mutex);
  for (const auto& [other, graph] : captured)
    if (stream ? other == stream : emulated_device_of(other) == device)
      emulated_die("a stream that is captured cannot be waited for, nor an event be recorded there");
}
void emulated_beside_capture() {
  if (capturing && mode != cudaStreamCaptureModeRelaxed)
    emulated_die("a call that is not allowed beside a capture of this thread");
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  return std::swap(mode, *other), cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode begun) {
  Lock lock(mutex);
  const bool relaxed = begun == cudaStreamCaptureModeRelaxed;
  if (!captured.emplace(stream, new EmulatedGraph{{}, std::this_thread::get_id(), relaxed}).second)
    emulated_die("a capture inside of another");
  capturing += !relaxed;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Lock lock(mutex);
  *graph = captured.at(stream);
  if ((*graph)->thread != std::this_thread::get_id()) emulated_die("a thread ends the capture of another one");
  captured.erase(stream);
  capturing -= !(*graph)->relaxed;
  if (!(*graph)->failed) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (std::getenv("EMULATED_CUDA_NO_GRAPH")) return cudaErrorNotPermitted;
  return *exec = new EmulatedGraphExec{std::make_shared<const Work>(graph->work)}, cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
  if (exec->work->kinds != graph->work.kinds) return cudaErrorGraphExecUpdateFailure;
  return exec->work = std::make_shared<const Work>(graph->work), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  emulated_enqueue(stream, exec->work->blocks, [work = exec->work] {
    for (const auto& run : work->nodes) run();
  });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }

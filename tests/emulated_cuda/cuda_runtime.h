// tests/emulated_cuda/cuda_runtime.h - as much of CUDA's runtime as devices/cuda/ and ops/*.cu use, for a host compiler: they are
// built a second time with it, and their kernels run on the host. It shows on a machine without a GPU that kernels, indices, copies, allocations and
// the order of streams are right, and ends the program, by a line that names the kernel, where a GPU would go astray; about speed it says nothing.
//   Memory   An arena that nobody can touch. While streams run, the blocks can be touched that their work was given, and no page behind one. With
//            EMULATED_CUDA_OPEN the host can touch blocks always, as an MPI that takes memory of GPUs. Fresh blocks are NaN, and around each is a
//            pattern that nobody may write: looked at after each kernel that has a pointer to the block.
//   Pointers Those among a kernel's arguments, and the operands of products, copies and memsets, have to be null, or in a block of the stream's
//            device or a pinned one; an address of the host in a struct counts as well. That stands for memory of the host that kernels cannot read.
//            Loads have to be aligned as their types are.
//   Streams  Kernels and copies wait in a queue until somebody synchronizes, so that whoever forgets to reads old bytes; asking
//            after an event, or a call of the emulated NCCL, has a thread run what is enqueued, for other processes may wait for it. How far the other
//            streams get until then is drawn: in any order that events allow.
//   Faults   While EMULATED_CUDA_FAULT is set, who waits for a stream or wants memory is told of an error, as after a kernel that went astray.
//   Devices  Each thread has a current one, or none, which counts as 0: streams take work, and memory is freed, where theirs is. With
//            EMULATED_CUDA_CAPABILITY=70 they are of compute capability 7.0, and not 9.0.
//   Graphs   What is captured is recorded. To wait for a stream that is captured, or to get memory beside a capture that does not allow it, ends the
//            process.
//   Blocks   One after the other, in an order drawn for each launch, with the __shared__ memory poisoned before each. Their threads run one after the
//            other as well, each up to a barrier, on fibers: lanes in an order drawn for each launch, and a warp as far ahead of the others as
//            barriers let it.
// What is drawn comes from EMULATED_CUDA_SEED, else from 1; 0 is the order of numbers, and streams that run as late as they can.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ \
  static thread_local  // blocks run one at a time, each with this memory of its thread poisoned: symbols.h
#define CUDART_VERSION 0

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorNotPermitted = 800,
  cudaErrorGraphExecUpdateFailure = 910
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDisableTiming = 2 };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
enum { cudaEnableDefault = 0 };
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

/// The stream that CUDA has without one being made, of the current device.
inline const cudaStream_t cudaStreamLegacy = reinterpret_cast<cudaStream_t>(1);

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int index);
cudaError_t cudaGetDevice(int* index);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int index);
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int major, minor;
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index);
cudaError_t cudaDeviceSynchronize();
/// Every device reaches the memory of those that are its neighbours by number.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
/// The functions of cuda.h, by name.
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* found);
struct cudaPointerAttributes {
  int device;
};
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* block);
cudaError_t cudaMalloc(void** block, std::size_t bytes);
cudaError_t cudaFree(void* block);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int index);
cudaError_t cudaMallocHost(void** block, std::size_t bytes);
cudaError_t cudaFreeHost(void* block);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);

/// How often the host has waited for a stream, and copies that it was given, so far: for tests, which look it up in the library.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_waits();

// ---- what a thread sees ------------------------------------------------------------------------------------------------
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;
void __syncthreads();
void __syncwarp(unsigned lanes = ~0u);
/// The bits that the thread `lane` of this warp gives; all threads of the warp call it together.
std::uint64_t emulated_shuffle(std::uint64_t bits, int lane);
int emulated_lane();

template <class T>
T emulated_shuffle_of(T v, int lane) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  bits = emulated_shuffle(bits, lane);
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
template <class T>
T __shfl_xor_sync(unsigned, T v, int mask) {
  return emulated_shuffle_of(v, emulated_lane() ^ mask);
}
template <class T>
T __shfl_sync(unsigned, T v, int lane) {
  return emulated_shuffle_of(v, lane);
}
template <class T>
T __shfl_up_sync(unsigned, T v, unsigned by) {
  int lane = emulated_lane();
  return emulated_shuffle_of(v, lane < static_cast<int>(by) ? lane : lane - static_cast<int>(by));
}
inline std::uint64_t __umul64hi(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
// Nothing runs beside a thread.
template <class T>
T atomicCAS(T* p, T expected, T v) {
  return *p == expected ? std::exchange(*p, v) : *p;
}
template <class T>
T atomicExch(T* p, T v) {
  return std::exchange(*p, v);
}
inline void __threadfence() {}
inline void __threadfence_system() {}
using std::max;
using std::min;

// ---- graphs (graph.cpp) ------------------------------------------------------------------------------------------------
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum class EmulatedNode { kernel, copy_in, copy_out, copy, zero };
using cudaGraph_t = struct EmulatedGraph*;
using cudaGraphExec_t = struct EmulatedGraphExec*;
struct cudaGraphExecUpdateResultInfo {
  int result;
};
/// While EMULATED_CUDA_NO_GRAPH is set, each is refused.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
/// As CUDA: only for a graph of as many nodes of the same kinds.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
/// Ends the process where a stream, or where that is null any one of the device, is captured: it cannot be waited for, nor asked.
void emulated_not_captured(cudaStream_t stream, int device);
/// Ends the process where this thread captures and may not do what is no work of a stream.
void emulated_beside_capture();

// ---- launches ----------------------------------------------------------------------------------------------------------
/// What of a device's memory work may touch.
struct EmulatedBlocks {
  std::vector<std::size_t> places = {};
  /// Ends the program unless these bytes are the stream's device's to use. `what` wants them.
  void add(const void* from, std::size_t bytes, cudaStream_t stream, const char* what);
};
/// `for_others`: for other processes; it runs no sooner than somebody asks for what its stream holds.
void emulated_enqueue(cudaStream_t stream, EmulatedBlocks blocks, std::function<void()> work, bool for_others = false,
                      EmulatedNode kind = EmulatedNode::kernel);
/// Whether the work is recorded instead of enqueued.
bool emulated_captures(cudaStream_t stream, EmulatedNode kind, EmulatedBlocks& blocks, std::function<void()>& work);
int emulated_device_of(cudaStream_t stream);
/// Has a thread run what the stream holds.
void emulated_start(cudaStream_t stream);
/// Ends the program, for that reason.
[[noreturn]] void emulated_die(const std::string& why);

void emulated_run_grid(const void* kernel, dim3 grid, dim3 block, const std::function<void()>& thread);
/// A kernel and what it was given.
struct EmulatedLaunch {
  const void* kernel;
  cudaStream_t stream;
  EmulatedBlocks blocks = {};
  int arguments = 0;
  /// Takes the next argument: a pointer, or a struct, of which each word that is an address counts as a pointer. Ends the program unless the
  /// kernel may have it.
  void take(const void* argument, std::size_t bytes, bool pointer);
  void run(dim3 grid, dim3 block, const std::function<void()>& thread) const;
};

// What is between the members of a struct may be an old pointer, and is cleared; what is behind the last one, where C++ may put other members, cannot
// be cleared and does not count.
template <class P>
void emulated_clear_padding([[maybe_unused]] P& argument) {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  if constexpr (!std::is_empty_v<P>) __builtin_clear_padding(&argument);  // in a tuple that is a byte of another
#endif
}
template <class P>
struct EmulatedTail : P {
  char last;
};
template <class P>
constexpr std::size_t emulated_bytes() {
  if constexpr (std::is_class_v<P> && !std::is_final_v<P>)
    return sizeof(EmulatedTail<P>) == sizeof(P) ? sizeof(P) - 1 : sizeof(P);
  else return sizeof(P);
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  static_assert((std::is_trivially_copyable_v<P> && ...));
  EmulatedLaunch launch{reinterpret_cast<const void*>(kernel), config->stream};
  std::tuple<P...> held(std::forward<A>(arguments)...);
  std::apply([&](P&... each) { (emulated_clear_padding(each), ...); }, held);
  std::apply([&](const P&... each) { (launch.take(&each, emulated_bytes<P>(), std::is_pointer_v<P>), ...); }, held);
  EmulatedBlocks blocks = launch.blocks;
  emulated_enqueue(config->stream, std::move(blocks),
                   [launch = std::move(launch), grid = config->gridDim, block = config->blockDim, kernel, held] {
                     launch.run(grid, block, [&] { std::apply(kernel, held); });
                   });
  return cudaSuccess;
}

// ---- what tests ask, who look it up in the library ---------------------------------------------------------------------
#define EMULATED_ASKED extern "C" __attribute__((visibility("default")))
/// Copies between the host and devices, and blocks that cudaFree took, so far.
EMULATED_ASKED std::int64_t emulated_host_copies();
EMULATED_ASKED std::int64_t emulated_frees();
/// How often something was enqueued on a stream so far, a graph being one.
EMULATED_ASKED std::int64_t emulated_enqueued();
/// The device whose context is current in this thread; -1: there is none.
EMULATED_ASKED int emulated_context();
EMULATED_ASKED void emulated_set_context(int device);
/// Has those signals that a fault sends say what happened, as from the beginning: a test framework may have them say something else.
EMULATED_ASKED void emulated_catch_faults();
/// Does what has that name in misuse.cpp: 1 where values show that it is wrong, 0 where they do not, -1 where there is no such thing.
EMULATED_ASKED int emulated_misuse(const char* name);

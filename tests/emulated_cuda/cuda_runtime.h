// tests/emulated_cuda/cuda_runtime.h - the part of the CUDA runtime API that devices/cuda/ and ops/*.cu use, for a host
// compiler: they are built a second time with it, and their kernels run on the host. On a machine without a GPU this
// checks kernels, indices, copies, allocations and the order of streams; an access that would be an error on a GPU ends
// the program with a line that names the kernel. It says nothing about speed.
//   Memory   An arena that is inaccessible (mprotect). While streams run, only the blocks that were passed to their
//            work are accessible, and no page behind them. With EMULATED_CUDA_OPEN the host can always access blocks,
//            for an MPI that accepts GPU memory. New blocks hold NaN, and each is surrounded by a guard pattern, which
//            is checked after each kernel that has a pointer to the block.
//   Pointers Pointers among a kernel's arguments, and the operands of products, copies and memsets, must be null, or
//            point into a block of the stream's device or into pinned memory. So must words of structs that are
//            addresses of host memory, which a GPU's kernels cannot read. Loads must be aligned as their types demand.
//   Streams  Kernels and copies stay in a queue until the host synchronizes, so that code that forgets to synchronize
//            reads old bytes. Querying an event, or a call of the emulated NCCL, starts a thread that runs the queue,
//            since other processes may wait for it. How far other streams get in the meantime is random, in any order
//            that events allow.
//   Faults   While EMULATED_CUDA_FAULT is set, waiting for a stream and allocating memory return an error, as after a
//            kernel that failed.
//   Devices  Each thread has a current device, or none, which counts as 0. Work goes to streams, and memory is freed,
//            on the device they belong to. With EMULATED_CUDA_CAPABILITY=70 the devices have compute capability 7.0
//            instead of 9.0.
//   Graphs   Captured work is recorded. Waiting for a stream that is being captured, or allocating memory during a
//            capture that does not allow it, ends the process. While EMULATED_CUDA_NO_CAPTURE=n is set, the n-th call
//            of a capture is refused, and with it the capture; a product is refused by cuBLAS, which leaves it as it
//            is.
//   Blocks   Blocks run one after the other, in a random order for each launch, with __shared__ memory poisoned before
//            each. Threads also run one after the other, on fibers, each up to a barrier: lanes in a random order for
//            each launch, and a warp as far ahead of the others as barriers allow. Some launches get fewer blocks
//            along x than they ask for: the host bounds that number, and each of our kernels loops over the rest.
// Random choices come from EMULATED_CUDA_SEED, by default 1; with 0 the order is that of the numbers, and streams run
// as late as possible.
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
  static thread_local  // a thread runs one block at a time, and this memory is poisoned before each: symbols.h
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
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorGraphExecUpdateFailure = 910
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
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

/// The default stream of the current device.
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
/// Devices with successive numbers have peer access.
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
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second);
cudaError_t cudaEventDestroy(cudaEvent_t event);

/// How often the host has waited for a stream, or enqueued a copy from a device to the host, so far: for tests.
extern "C" __attribute__((visibility("default"))) std::int64_t emulated_waits();

// ---- what a thread sees ---------------------------------------------------------------------------------------------
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;
void __syncthreads();
void __syncwarp(unsigned lanes = ~0u);
/// The `bits` that thread `lane` of this warp passes; all threads of the warp call it together.
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
// Threads run one at a time, so these need not be atomic.
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

// ---- graphs (graph.cpp) ---------------------------------------------------------------------------------------------
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
/// Fails while EMULATED_CUDA_NO_GRAPH is set.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
/// As in CUDA, succeeds only for a graph with the same number and kinds of nodes.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
/// Ends the process if the stream, or, if that is null, any stream of the device, is being captured: it cannot be
/// waited for or queried.
void emulated_not_captured(cudaStream_t stream, int device);
/// Ends the process if this thread is capturing in a mode that forbids calls which are no work of a stream: a capture
/// that was begun as a relaxed one forbids none.
void emulated_beside_capture();

// ---- launches -------------------------------------------------------------------------------------------------------
/// The blocks of device memory that a piece of work may access.
struct EmulatedBlocks {
  std::vector<std::size_t> places = {};
  /// Adds the block of these bytes. Ends the program, naming `what`, unless the stream's device may access them.
  void add(const void* from, std::size_t bytes, cudaStream_t stream, const char* what);
};
/// Appends work to a stream. `for_others`: other processes wait for it; it does not run before the stream is queried or
/// waited for. Returns an error if the stream is being captured and does not take it.
cudaError_t emulated_enqueue(cudaStream_t stream, EmulatedBlocks blocks, std::function<void()> work,
                             bool for_others = false, EmulatedNode kind = EmulatedNode::kernel);
/// If the stream is being captured, records the work and returns true; it is then not enqueued. If the capture does not
/// take it, sets `error`.
bool emulated_captures(cudaStream_t stream, EmulatedNode kind, EmulatedBlocks& blocks, std::function<void()>& work,
                       cudaError_t& error);
/// True if the next work on the stream is the one that its capture refuses: number EMULATED_CUDA_NO_CAPTURE, from 1 on.
bool emulated_refuses(cudaStream_t stream);
int emulated_device_of(cudaStream_t stream);
/// Tells a stream from others that were or will be at the same address.
std::int64_t emulated_stream_number(cudaStream_t stream);
/// Starts a thread that runs the work in the stream.
void emulated_start(cudaStream_t stream);
/// Ends the program with the message `why`.
[[noreturn]] void emulated_die(const std::string& why);

void emulated_run_grid(const void* kernel, dim3 grid, dim3 block, const std::function<void()>& thread);
/// A kernel and its arguments.
struct EmulatedLaunch {
  const void* kernel;
  cudaStream_t stream;
  EmulatedBlocks blocks = {};
  int arguments = 0;
  /// Adds the next argument: a pointer, or a struct, in which each word that is an address counts as a pointer. Ends
  /// the program if the kernel may not access that address.
  void take(const void* argument, std::size_t bytes, bool pointer);
  void run(dim3 grid, dim3 block, const std::function<void()>& thread) const;
};

// Padding between the members of a struct may hold an old pointer, and is cleared in a copy. Padding behind the last
// member, where C++ may place other members, cannot be cleared, and is not checked. GCC 12 clears the wrong bytes if a
// struct has an array of structs that end in padding: the upper half of d[0].b in struct { short a; struct { long b, c;
// short e; char f; } d[3]; int g; }. With -ftrivial-auto-var-init=pattern it does so by itself, in each temporary that
// is made by braces, so arguments of kernels have no such arrays (Geometry::Axis in ops/convolution/windows.cuh).
template <class P>
P emulated_without_padding(P argument) {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&argument);
#endif
  return argument;
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
  auto take = [&]<class T>(const T& argument) {
    const T seen = emulated_without_padding(argument);
    launch.take(&seen, emulated_bytes<T>(), std::is_pointer_v<T>);
  };
  std::apply([&](const P&... each) { (take(each), ...); }, held);
  EmulatedBlocks blocks = launch.blocks;
  return emulated_enqueue(config->stream, std::move(blocks),
                          [launch = std::move(launch), grid = config->gridDim, block = config->blockDim, kernel, held] {
                            launch.run(grid, block, [&] { std::apply(kernel, held); });
                          });
}

// ---- counters and switches for tests, which look them up in the library ---------------------------------------------
#define EMULATED_ASKED extern "C" __attribute__((visibility("default")))
/// The numbers of copies between host and devices, and of blocks freed by cudaFree, so far.
EMULATED_ASKED std::int64_t emulated_host_copies();
EMULATED_ASKED std::int64_t emulated_frees();
/// How often work was enqueued on a stream so far; a graph counts once.
EMULATED_ASKED std::int64_t emulated_enqueued();
/// The device whose context is current in this thread; -1 if there is none.
EMULATED_ASKED int emulated_context();
EMULATED_ASKED void emulated_set_context(int device);
/// A stream of another library. The next one after one that ended has its address.
EMULATED_ASKED void* emulated_new_stream(int device);
EMULATED_ASKED void emulated_end_stream(void* stream);
/// Lets the stream's work wait, or run again. Meanwhile nothing may wait for it.
EMULATED_ASKED void emulated_hold_stream(void* stream, bool held);
/// The number of copies between devices and memory of the host that is not pinned.
EMULATED_ASKED std::int64_t emulated_pageable_copies();
/// How often the driver was asked for the current context, or told to change it.
EMULATED_ASKED std::int64_t emulated_context_calls();
/// Installs the handlers again for the signals of faulting accesses: a test framework may have replaced them.
EMULATED_ASKED void emulated_catch_faults();
/// Runs the misuse of that name in misuse.cpp. Returns 1 if wrong values show it, 0 if they do not, -1 if there is no
/// such misuse.
EMULATED_ASKED int emulated_misuse(const char* name);

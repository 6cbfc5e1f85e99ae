// tests/emulated_cuda/cuda_runtime.h - as much of CUDA's runtime as devices/cuda/ and ops/*.cu use, for a host compiler: they are
// built a second time with it, and their kernels run on the host. It shows that kernels, indices, copies and allocations are right
// on a machine without a GPU; about speed, or races between blocks, it says nothing.
//   Memory   An arena that the host cannot touch but while a stream runs: who dereferences a device pointer ends at once. With
//            EMULATED_CUDA_OPEN it can, as an MPI that takes memory of GPUs.
//   Streams  Kernels and copies wait in a queue until somebody synchronizes, so that whoever forgets to reads old bytes; asking
//            after an event, or a call of the emulated NCCL, has a thread run what is enqueued, for other processes may wait for it.
//   Faults   While EMULATED_CUDA_FAULT is set, who waits for a stream or wants memory is told of an error, as after a kernel that went astray.
//   Devices  Each thread has a current one, or none, which counts as 0: streams take work, and memory is freed, where theirs is. With
//            EMULATED_CUDA_CAPABILITY=70 they are of compute capability 7.0, and not 9.0.
//   Blocks   One after the other. Their threads run one after the other as well, each up to a barrier, on fibers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static   // blocks run one at a time
#define CUDART_VERSION 0

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorInsufficientDriver = 35, cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101, cudaErrorInvalidResourceHandle = 400, cudaErrorNotReady = 600, cudaErrorIllegalAddress = 700, cudaErrorPeerAccessAlreadyEnabled = 704 };
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
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* found);
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
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes, cudaStream_t stream);
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

// ---- launches ----------------------------------------------------------------------------------------------------------
void emulated_enqueue(cudaStream_t stream, std::function<void()> work);
/// Has a thread run what the stream holds.
void emulated_start(cudaStream_t stream);
void emulated_run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  static_assert((std::is_trivially_copyable_v<P> && ...));
  std::function<void()> thread = [kernel, held = std::tuple<P...>(std::forward<A>(arguments)...)] { std::apply(kernel, held); };
  emulated_enqueue(config->stream, [grid = config->gridDim, block = config->blockDim, thread = std::move(thread)] {
    emulated_run_grid(grid, block, thread);
  });
  return cudaSuccess;
}

// ---- what tests ask, who look it up in the library ---------------------------------------------------------------------
#define EMULATED_ASKED extern "C" __attribute__((visibility("default")))
/// Copies between the host and devices, and blocks that cudaFree took, so far.
EMULATED_ASKED std::int64_t emulated_host_copies();
EMULATED_ASKED std::int64_t emulated_frees();
/// The device whose context is current in this thread; -1: there is none.
EMULATED_ASKED int emulated_context();
EMULATED_ASKED void emulated_set_context(int device);

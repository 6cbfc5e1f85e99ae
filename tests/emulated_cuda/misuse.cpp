// tests/emulated_cuda/misuse.cpp - calls and kernels with one fault each, which the emulated device must detect:
// emulated_device_test.cpp.
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "cublasLt.h"

namespace {

constexpr unsigned kThreads = 64, kTries = 16;

struct Stream {
  cudaStream_t handle;
  Stream() { cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking); }
};
template <class T>
T* device(std::size_t n) {
  void* p = nullptr;
  cudaMalloc(&p, n * sizeof(T));
  return static_cast<T*>(p);
}
template <class T>
std::vector<T> host(const T* from, std::size_t n, cudaStream_t stream) {
  std::vector<T> to(n);
  cudaMemcpyAsync(to.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return to;
}
template <class... P, class... A>
void start(cudaStream_t stream, unsigned blocks, void (*kernel)(P...), A... arguments) {
  const cudaLaunchConfig_t config{dim3(blocks), dim3(kThreads), 0, stream};
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

struct Pair {
  std::int64_t n;
  float* at;
};
struct alignas(16) Four {
  float of[4];
};
struct Numbers {
  std::uint32_t low, high;
  float* at;
};
__global__ void set_low(Numbers n) {
  if (threadIdx.x == 0) n.at[0] = static_cast<float>(n.low);
}
__global__ void set_one(float* to, std::int64_t at) {
  if (threadIdx.x == 0) to[at] = 1;
}
__global__ void set_pair(Pair to) {
  if (threadIdx.x == 0) to.at[0] = 1;
}
__global__ void copy_one(const float* from, std::int64_t at, float* to) {
  if (threadIdx.x == 0) to[0] = from[at];
}
__global__ void copy_four(const float* from, float* to) {
  if (threadIdx.x == 0) *reinterpret_cast<Four*>(to) = *reinterpret_cast<const Four*>(from);
}
__global__ void sum_unset(float* to) {
  __shared__ float sums[kThreads];
  sums[threadIdx.x] += 1;
  to[threadIdx.x] = sums[threadIdx.x];
}
__global__ void set_from_unset(float* to, int set) {
  float of[2];
  of[set] = 1;
  if (threadIdx.x == 0) to[0] = of[0];
}
template <bool kWaits>
__global__ void reverse_block(float* to) {
  __shared__ float all[kThreads];
  all[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (kWaits) __syncthreads();
  to[threadIdx.x] = all[kThreads - 1 - threadIdx.x];
}
template <bool kWaits>
__global__ void reverse_warp(float* to) {
  __shared__ float all[kThreads];
  all[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (kWaits) __syncwarp();
  to[threadIdx.x] = all[threadIdx.x ^ 31];
}
__global__ void chain_blocks(float* to) {
  if (threadIdx.x == 0) to[blockIdx.x] = blockIdx.x ? to[blockIdx.x - 1] + 1 : 0;
}
template <bool kLoops>
__global__ void set_all(float* to, unsigned n) {
  unsigned i = blockIdx.x * kThreads + threadIdx.x;
  do {
    if (i < n) to[i] = 1;
    i += gridDim.x * kThreads;
  } while (kLoops && i < n);
}
/// True if one of kTries runs returns something other than `wanted`.
template <class F>
bool differs(const std::vector<float>& wanted, F run) {
  for (unsigned i = 0; i < kTries; ++i)
    if (run() != wanted) return true;
  return false;
}
std::vector<float> counted(std::size_t n, auto f) {
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<float>(f(i));
  return all;
}

/// One stream writes a value and another copies it, with or without waiting. True if a copy has the wrong value.
bool streams_differ(bool waits) {
  Stream first, second;
  float *a = device<float>(4), *b = device<float>(4);
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  return differs({1}, [&] {
    cudaMemsetAsync(a, 0, 16, first.handle);
    cudaStreamSynchronize(first.handle);
    start(first.handle, 1, set_one, a, 0);
    cudaEventRecord(done, first.handle);
    if (waits) cudaStreamWaitEvent(second.handle, done);
    start(second.handle, 1, copy_one, static_cast<const float*>(a), 0, b);
    return host(b, 1, second.handle);
  });
}

/// A launch of as many threads as there are elements. True if an element is not set.
template <bool kLoops>
bool blocks_miss() {
  constexpr unsigned kBlocks = 3, kElements = kBlocks * kThreads - 1;
  Stream s;
  float* a = device<float>(kElements);
  return differs(std::vector<float>(kElements, 1), [&] {
    cudaMemsetAsync(a, 0, kElements * sizeof *a, s.handle);
    return start(s.handle, kBlocks, set_all<kLoops>, a, kElements), host(a, kElements, s.handle);
  });
}

/// A product of 4 x 4 matrices and a bias, of whose addresses is said that they are multiples of `aligned` bytes.
void multiply_with_bias(const float* a, const float* bias, std::uint32_t aligned) {
  Stream s;
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSetStream(handle, s.handle);
  const auto lt = reinterpret_cast<cublasLtHandle_t>(handle);
  cublasLtMatmulDescOpaque_t form;
  cublasLtMatrixLayoutOpaque_t four;
  cublasLtMatmulPreferenceOpaque_t limits;
  cublasLtMatmulHeuristicResult_t best;
  int found = 0;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  const float one = 1, zero = 0;
  cublasLtMatmulDescInit(&form, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulDescSetAttribute(&form, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  cublasLtMatmulDescSetAttribute(&form, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  cublasLtMatrixLayoutInit(&four, CUDA_R_32F, 4, 4, 4);
  cublasLtMatmulPreferenceInit(&limits);
  cublasLtMatmulPreferenceSetAttribute(&limits, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned, sizeof aligned);
  cublasLtMatmulAlgoGetHeuristic(lt, &form, &four, &four, &four, &four, &limits, 1, &best, &found);
  float* to = device<float>(16);
  cublasLtMatmul(lt, &form, &one, a, &four, device<float>(16), &four, &zero, to, &four, to, &four, &best.algo,
                 device<float>(16), 64, s.handle);
  cudaStreamSynchronize(s.handle);
}

/// A named fault. Names that begin with "right" are correct code.
struct Misuse {
  const char* name;
  bool (*run)();  // returns true if wrong values show the fault
};
const Misuse all[] = {
    {"a pointer of the host",
     [] {
       Stream s;
       static float here[4];
       start(s.handle, 1, set_one, static_cast<float*>(here), 0);
       return false;
     }},
    {"a pointer of the host in a struct",
     [] {
       Stream s;
       static float here[4];
       start(s.handle, 1, set_pair, Pair{1, here});
       return false;
     }},
    {"a block that was freed",
     [] {
       Stream s;
       float* a = device<float>(4);
       cudaFree(a);
       start(s.handle, 1, set_one, a, 0);
       return false;
     }},
    {"a block of another device",
     [] {
       cudaSetDevice(1);
       float* a = device<float>(4);
       cudaSetDevice(0);
       Stream s;
       start(s.handle, 1, set_one, a, 0);
       return false;
     }},
    {"a write one element beyond",
     [] {
       Stream s;
       start(s.handle, 1, set_one, device<float>(5), 5);
       cudaStreamSynchronize(s.handle);
       return false;
     }},
    {"a write one element before",
     [] {
       Stream s;
       start(s.handle, 1, set_one, device<float>(5), -1);
       cudaStreamSynchronize(s.handle);
       return false;
     }},
    {"a read one element beyond",
     [] {
       Stream s;
       float* a = device<float>(8);
       start(s.handle, 1, copy_one, static_cast<const float*>(a), 8, a);
       cudaStreamSynchronize(s.handle);
       return false;
     }},
    {"a read of device memory on the host",
     [] {
       Stream s;
       float* a = device<float>(4);
       start(s.handle, 1, set_one, a, 0);
       cudaStreamSynchronize(s.handle);
       return *static_cast<volatile float*>(a) == 1;
     }},
    {"a read of a block that the kernel was not given",
     [] {
       Stream s;
       float *a = device<float>(4096), *b = device<float>(4096);
       start(s.handle, 1, copy_one, static_cast<const float*>(a), b - a, a);
       cudaStreamSynchronize(s.handle);
       return false;
     }},
    {"a load that is not aligned",
     [] {
       Stream s;
       float* a = device<float>(16);
       start(s.handle, 1, copy_four, static_cast<const float*>(a + 1), a + 8);
       cudaStreamSynchronize(s.handle);
       return false;
     }},
    {"a copy beyond the end",
     [] {
       Stream s;
       float here[8];
       cudaMemcpyAsync(here, device<float>(7), sizeof here, cudaMemcpyDeviceToHost, s.handle);
       return false;
     }},
    {"a bias of the host",
     [] {
       alignas(256) static float here[4];
       multiply_with_bias(device<float>(16), here, 256);
       return false;
     }},
    {"a matrix less aligned than was said",
     [] { return multiply_with_bias(device<float>(17) + 1, device<float>(4), 16), false; }},
    {"right: a matrix as aligned as was said",
     [] { return multiply_with_bias(device<float>(17) + 1, device<float>(4), 4), false; }},
    {"a copy the wrong way",
     [] {
       Stream s;
       float* a = device<float>(4);
       cudaMemcpyAsync(a, a, 16, cudaMemcpyHostToDevice, s.handle);
       return false;
     }},
    {"a memset of the host's memory",
     [] {
       Stream s;
       static float here[4];
       cudaMemsetAsync(here, 0, sizeof here, s.handle);
       return false;
     }},
    {"work while another device is current",
     [] {
       Stream s;
       float* a = device<float>(4);
       cudaSetDevice(1);
       cudaMemsetAsync(a, 0, 16, s.handle);
       return false;
     }},
    {"device memory that nobody has set",
     [] {
       Stream s;
       return host(device<float>(4), 4, s.handle) != std::vector<float>(4);
     }},
    {"a value on the host before its copy was waited for",
     [] {
       Stream s;
       float *a = device<float>(4), here = 5;
       return differs({1}, [&] {
         here = 5;
         start(s.handle, 1, set_one, a, 0);
         cudaMemcpyAsync(&here, a, 4, cudaMemcpyDeviceToHost, s.handle);
         const float seen = here;
         cudaStreamSynchronize(s.handle);
         return std::vector<float>{seen};
       });
     }},
    {"a buffer of the host that changes before its copy ran",
     [] {
       Stream s;
       float *a = device<float>(4), here;
       return differs({1}, [&] {
         here = 1;
         cudaMemcpyAsync(a, &here, 4, cudaMemcpyHostToDevice, s.handle);
         here = 2;
         return host(a, 1, s.handle);
       });
     }},
    {"shared memory that nobody has set",
     [] {
       Stream s;
       float* a = device<float>(kThreads);
       return differs(std::vector<float>(kThreads, 1),
                      [&] { return start(s.handle, 2, sum_unset, a), host(a, kThreads, s.handle); });
     }},
    {"a variable of a thread that nobody has set",
     [] {
       Stream s;
       float* a = device<float>(1);
       return differs({0}, [&] { return start(s.handle, 1, set_from_unset, a, 1), host(a, 1, s.handle); });
     }},
    {"no __syncthreads",
     [] {
       Stream s;
       float* a = device<float>(kThreads);
       return differs(counted(kThreads, [](std::size_t i) { return kThreads - 1 - i; }),
                      [&] { return start(s.handle, 1, reverse_block<false>, a), host(a, kThreads, s.handle); });
     }},
    {"no __syncwarp",
     [] {
       Stream s;
       float* a = device<float>(kThreads);
       return differs(counted(kThreads, [](std::size_t i) { return i ^ 31; }),
                      [&] { return start(s.handle, 1, reverse_warp<false>, a), host(a, kThreads, s.handle); });
     }},
    {"blocks that count on their order",
     [] {
       Stream s;
       float* a = device<float>(8);
       return differs(counted(8, [](std::size_t i) { return i; }), [&] {
         cudaMemsetAsync(a, 0, 32, s.handle);
         return start(s.handle, 8, chain_blocks, a), host(a, 8, s.handle);
       });
     }},
    {"no loop over the blocks", [] { return blocks_miss<false>(); }},
    {"no wait for another stream", [] { return streams_differ(/*waits=*/false); }},
    // Correct code must pass.
    {"right: a wait for another stream", [] { return streams_differ(/*waits=*/true); }},
    {"right: a loop over the blocks", [] { return blocks_miss<true>(); }},
    {"right: a small number before half of an address",
     [] {
       constexpr std::uint32_t kHigh = 0x2a00;
       void* page = reinterpret_cast<void*>(std::uintptr_t(kHigh) << 32);
       if (mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page) return true;
       Stream s;
       float* a = device<float>(1);
       return differs({3}, [&] { return start(s.handle, 1, set_low, Numbers{3, kHigh, a}), host(a, 1, s.handle); });
     }},
    {"right: __syncthreads and __syncwarp",
     [] {
       Stream s;
       float* a = device<float>(kThreads);
       return differs(counted(kThreads, [](std::size_t i) { return kThreads - 1 - i; }),
                      [&] { return start(s.handle, 1, reverse_block<true>, a), host(a, kThreads, s.handle); }) ||
              differs(counted(kThreads, [](std::size_t i) { return i ^ 31; }),
                      [&] { return start(s.handle, 1, reverse_warp<true>, a), host(a, kThreads, s.handle); });
     }},
};

}  // namespace

int emulated_misuse(const char* name) {
  for (const Misuse& m : all)
    if (!std::strcmp(m.name, name)) return m.run();
  return -1;
}

// devices/cuda/backend.cpp - a CUDA device: memory, stream, copies, cuBLAS.
#include "devices/cuda/cuda.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <kassette/error.h>

namespace kassette::cuda {
namespace {

constexpr int kMaxDevices = 256;
constexpr std::int64_t kBlasWorkspace = std::int64_t(32) << 20;   // what cuBLAS asks for on compute 9.0

CudaBackend* devices[kMaxDevices];   // written once each, under the registry's lock, before the device is visible
HostServices services;

void* take(std::int64_t bytes) noexcept {
  void* p = nullptr;
  const cudaError_t error = cudaMalloc(&p, static_cast<std::size_t>(bytes));
  if (error == cudaSuccess) return p;
  if (error == cudaErrorMemoryAllocation) cudaGetLastError();   // said by whoever asked; any other error waits for allocate()
  return nullptr;
}
/// cudaFree waits for the kernels that still use the block: for those of the current device. After the driver has shut down, when the process ends,
/// all of these answer with an error; the memory is gone anyway.
void give(void* block, std::int64_t) noexcept {
  int current = 0;
  cudaPointerAttributes of = {};
  const bool elsewhere = cudaGetDevice(&current) == cudaSuccess && cudaPointerGetAttributes(&of, block) == cudaSuccess && of.device != current &&
                         cudaSetDevice(of.device) == cudaSuccess;
  cudaFree(block);
  if (elsewhere) cudaSetDevice(current);
}
const MemorySource cuda_memory{take, give};

const MemorySource pinned_memory{[](std::int64_t bytes) noexcept -> void* {
                                   void* p = nullptr;
                                   if (cudaMallocHost(&p, static_cast<std::size_t>(bytes)) == cudaSuccess) return p;
                                   cudaGetLastError();
                                   return nullptr;
                                 },
                                 [](void* block, std::int64_t) noexcept { cudaFreeHost(block); }};
BlockCache& pinned_cache() {
  static BlockCache* cache = new BlockCache(cpu, pinned_memory);
  return *cache;
}

}  // namespace

void* allocate_pinned(std::int64_t bytes) {
  try {
    return pinned_cache().allocate(bytes);
  } catch (const MemoryError&) {
    return nullptr;
  }
}
void release_pinned(void* data, std::int64_t bytes) { pinned_cache().release(data, bytes); }

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw DeviceError((std::string(what) + ": CUDA says: " + cudaGetErrorString(error)).c_str());
}
void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError((std::string(what) + ": cuBLAS says: " + cublasGetStatusString(status)).c_str());
}

namespace {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text && std::strcmp(text, "0") != 0;
}

}  // namespace

CudaBackend::CudaBackend(int index)
    : index_(index), waits_(is_set("KASSETTE_CUDA_SYNC")), cache_(Device(Device::kCuda, static_cast<std::uint8_t>(index)), cuda_memory) {
  use();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cuda");
}

void CudaBackend::use() { check(cudaSetDevice(index_), "cuda"); }

void* CudaBackend::allocate(std::int64_t bytes) {
  use();
  try {
    return cache_.allocate(bytes);
  } catch (const MemoryError&) {
    check(cudaGetLastError(), "cuda");   // there may be memory: a kernel went astray
    throw;
  }
}
void CudaBackend::release(void* data, std::int64_t bytes) noexcept { cache_.release(data, bytes); }

void CudaBackend::copy_from_host(void* to, const void* from, std::int64_t bytes) {
  use();
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_), "to");
  synchronize();   // the host's bytes may change as soon as we return
}
void CudaBackend::copy_to_host(void* to, const void* from, std::int64_t bytes) {
  use();
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_), "to");
  synchronize();
}
void CudaBackend::copy(void* to, const void* from, std::int64_t bytes) {
  use();
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_), "to");
  launched("to");
}
void CudaBackend::zero(void* to, std::int64_t bytes) {
  if (bytes == 0) return;
  use();
  check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream_), "cuda");
  launched("cuda");
}
void CudaBackend::launched(const char* what) {
  if (waits_) check(cudaStreamSynchronize(stream_), what);
}
void CudaBackend::synchronize() { check(cudaStreamSynchronize(stream_), "cuda"); }
void CudaBackend::empty_cache() {
  use();
  cache_.trim();
}

cublasHandle_t CudaBackend::blas(std::unique_lock<std::mutex>* lock) {
  *lock = std::unique_lock<std::mutex>(blas_mutex_);
  if (blas_) return blas_;
  // A workspace of our own: with its default one cuBLAS may give other bits from run to run.
  if (!blas_workspace_) blas_workspace_ = allocate(kBlasWorkspace);
  cublasHandle_t handle;
  check(cublasCreate(&handle), "matmul");
  try {
    check(cublasSetStream(handle, stream_), "matmul");
    check(cublasSetWorkspace(handle, blas_workspace_, kBlasWorkspace), "matmul");
    // No TF32, which nothing asks for by default, and no sums in half precision. Tensor cores multiply half types.
    check(cublasSetMathMode(handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)), "matmul");
  } catch (...) {
    cublasDestroy(handle);
    throw;
  }
  return blas_ = handle;
}

CudaBackend& device_of(Device device) {
  CudaBackend& d = *devices[device.index()];
  d.use();
  return d;
}
const HostServices& host_services() { return services; }

Backend* open_device(int index, const HostServices& given, char* why, int why_bytes) {
  services = given;
  const auto room = static_cast<std::size_t>(why_bytes);
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0) std::snprintf(why, room, "there is no CUDA driver");
    else std::snprintf(why, room, "the CUDA driver is for CUDA %d.%d, and this library needs one for %d.%d", driver / 1000, driver % 1000 / 10,
                       CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return nullptr;
  }
  if (error != cudaSuccess && error != cudaErrorNoDevice) {
    std::snprintf(why, room, "CUDA says: %s", cudaGetErrorString(error));
    return nullptr;
  }
  if (count == 0) {
    std::snprintf(why, room, "there is no CUDA device");
    return nullptr;
  }
  if (index >= count) {
    std::snprintf(why, room, count == 1 ? "there is %d CUDA device, cuda:0" : "there are %d CUDA devices, from cuda:0 on", count);
    return nullptr;
  }
  try {
    return devices[index] = new CudaBackend(index);
  } catch (const Error& e) {
    std::snprintf(why, room, "%s", e.what());
    return nullptr;
  }
}

}  // namespace kassette::cuda

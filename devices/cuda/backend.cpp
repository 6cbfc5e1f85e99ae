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

// After the driver has shut down, when the process ends, frees answer with an error; the memory is gone anyway.
const MemorySource cuda_memory{
    [](std::int64_t bytes) noexcept -> void* {
      void* p = nullptr;
      if (cudaMalloc(&p, static_cast<std::size_t>(bytes)) == cudaSuccess) return p;
      cudaGetLastError();   // out of memory is said by whoever asked
      return nullptr;
    },
    [](void* block, std::int64_t) noexcept { cudaFree(block); }};

}  // namespace

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
  return cache_.allocate(bytes);
}
// The cache may give blocks back to the system here; cudaFree waits for the kernels that still use them.
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
}
void CudaBackend::zero(void* to, std::int64_t bytes) {
  if (bytes == 0) return;
  use();
  check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream_), "cuda");
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
  use();
  cublasHandle_t handle;
  check(cublasCreate(&handle), "matmul");
  check(cublasSetStream(handle, stream_), "matmul");
  // A workspace of our own: with its default one cuBLAS may give other bits from run to run.
  check(cublasSetWorkspace(handle, cache_.allocate(kBlasWorkspace), kBlasWorkspace), "matmul");
  check(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH), "matmul");   // no TF32, no sums in half precision
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

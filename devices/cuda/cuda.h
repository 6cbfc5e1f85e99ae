// devices/cuda/cuda.h - what the kernels of libkassette_cuda.so share: the device's stream, cuBLAS, scratch memory, errors.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "devices/block_cache.h"
#include "devices/plugin.h"

namespace kassette::cuda {

/// Throws DeviceError with CUDA's words, in the name of `what`.
void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);

/// One CUDA device: one stream, on which everything is ordered, so that a freed block may be handed out at once.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int index);
  void* allocate(std::int64_t bytes) override;
  void release(void* data, std::int64_t bytes) noexcept override;
  void copy_from_host(void* to, const void* from, std::int64_t bytes) override;
  void copy_to_host(void* to, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void synchronize() override;
  void* stream() override { return stream_; }
  MemoryStats memory_stats() override { return cache_.stats(); }
  void reset_peak_memory() override { cache_.reset_peak(); }
  void set_memory_limit(std::int64_t bytes) override { cache_.set_limit(bytes); }
  void empty_cache() override;

  /// Enqueued.
  void zero(void* to, std::int64_t bytes);
  /// With KASSETTE_CUDA_SYNC=1 waits for what was enqueued, so that its errors are said in the name of its op and not of a later one.
  void launched(const char* what);
  /// Makes this the device of the calling thread.
  void use();
  /// The stream's handle, with a workspace of its own; made when first asked for. Hold the lock while enqueuing.
  cublasHandle_t blas(std::unique_lock<std::mutex>* lock);

 private:
  const int index_;
  const bool waits_;
  cudaStream_t stream_ = nullptr;
  BlockCache cache_;
  std::mutex blas_mutex_;
  cublasHandle_t blas_ = nullptr;
  void* blas_workspace_ = nullptr;
};

/// The device that a call runs on, made current.
CudaBackend& device_of(Device device);
Backend* open_device(int index, const HostServices& services, char* why, int why_bytes);
const HostServices& host_services();
// As devices/plugin.h says.
void* allocate_pinned(std::int64_t bytes);
void release_pinned(void* data, std::int64_t bytes);

/// Device memory for the time of a kernel call; ordered by the stream, so it may end before the kernel has run.
class Scratch {
 public:
  Scratch(CudaBackend& device, std::int64_t bytes) : device_(&device), bytes_(bytes), data_(bytes ? device.allocate(bytes) : nullptr) {}
  ~Scratch() {
    if (data_) device_->release(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return data_; }

 private:
  CudaBackend* device_;
  std::int64_t bytes_;
  void* data_;
};

}  // namespace kassette::cuda

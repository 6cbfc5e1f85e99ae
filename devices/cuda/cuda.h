// devices/cuda/cuda.h - what the kernels of libkassette_cuda.so share: the device and its streams, cuBLAS, scratch memory, errors.
#pragma once
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "devices/block_cache.h"
#include "devices/cuda/faults.h"
#include "devices/plugin.h"

namespace kassette {

namespace cuda {
class CudaBackend;
}

/// A stream, and what belongs to it alone.
struct DeviceStream {
  cuda::CudaBackend* device;
  cudaStream_t handle;
  int number;      // 0: the device's own
  bool ours;       // made by us
  int owners = 0;  // Streams that have it
  std::mutex blas_mutex = {};
  cublasHandle_t blas = nullptr;
  void* blas_workspace = nullptr;
  // See Note [Graphs].
  DeviceStream* base = nullptr;                 // of a stream that is there to be captured: where that is launched
  std::unique_ptr<DeviceStream> captured = {};  // the stream that is captured for this one; made when first asked for
  std::atomic<bool> awaits_graph = false;       // until what is captured for this one is launched
};

namespace cuda {

/// Throws DeviceError with CUDA's words, in the name of `what`. What may say that a kernel went astray is for CudaBackend::check.
void check(cudaError_t error, const char* what);

/// One CUDA device. Everything is ordered on one stream, but for threads that have chosen another one. A freed block may be handed out at
/// once in the stream that is current where it is freed.
class CudaBackend final : public DeviceBackend {
 public:
  explicit CudaBackend(int index);
  void* allocate(std::int64_t bytes) override;
  void release(void* data, std::int64_t bytes) noexcept override;
  void copy_from_host(void* to, const void* from, std::int64_t bytes) override;
  void copy_to_host(void* to, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void synchronize() override { wait(current()); }
  /// Whoever asks enqueues there by himself.
  void* stream() override {
    leave_capture();
    return current().handle;
  }
  MemoryStats memory_stats() override { return cache_->stats(); }
  void reset_peak_memory() override { cache_->reset_peak(); }
  void set_memory_limit(std::int64_t bytes) override;
  void empty_cache() override;

  DeviceStream& stream_of(void* native) override;
  void close(DeviceStream& stream) noexcept override;
  DeviceStream& current() noexcept override;
  void set_current(DeviceStream& stream) noexcept override;
  void* native(DeviceStream& stream) override { return stream.handle; }
  void order(DeviceStream& first, DeviceStream& second) override;
  void wait(DeviceStream& stream) override { wait(&stream, "synchronize"); }
  void wait_for_all() override { wait(nullptr, "synchronize"); }
  void copy_from_host_later(void* to, const void* from, std::int64_t bytes, Owner keep) override;
  void copy_from(DeviceBackend& other, void* to, const void* from, std::int64_t bytes) override;

  bool begin_capture(DeviceGraph*& graph) override;
  bool launch_captured() override;
  const char* end_capture() noexcept override;
  void destroy(DeviceGraph* graph) noexcept override;
  DeviceStream& launched_on(DeviceStream& stream) noexcept override { return stream.base ? *stream.base : stream; }

  int index() const { return index_; }
  CUcontext context() const { return context_; }
  /// Enqueued.
  void zero(void* to, std::int64_t bytes, const char* what);
  /// Something was enqueued in the name of an op. With KASSETTE_CUDA_SYNC=1 waits for it, so that its errors are said in that name and not
  /// where somebody waits later.
  void launched(const char* what);
  /// What a kernel that checks values takes as an argument, new for each launch: where it reports one that is wrong.
  Faults faults() { return faults_.next(); }
  /// Throws DeviceError unless `error` is success. Where the device takes no more work since, that is said too, now and by every
  /// later call.
  void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) fail(error, what);
  }
  void check(cublasStatus_t status, const char* what);
  /// Throws DeviceError where an earlier error has ended the device.
  void check_alive() {
    if (lost_.load(std::memory_order_acquire)) fail_lost();
  }
  /// The handle of the current stream, with a workspace of its own; made when first asked for. Hold the lock while enqueuing.
  cublasHandle_t blas(std::unique_lock<std::mutex>* lock);

 private:
  /// What is to be released once an event has passed.
  struct Later {
    cudaEvent_t passed;
    Owner keep;
  };
  /// A capture, which lasts from begin_capture to end_capture.
  struct Capture {
    std::recursive_mutex
        mutex;  // of the thread that captures; or of one that waits for all streams, which CUDA forbids meanwhile
    DeviceGraph* graph = nullptr;  // null: nobody captures
    DeviceStream* base = nullptr;
    int enqueued = 0;
    const char* refused = nullptr;  // CUDA's words
    std::vector<Owner> keep;        // until what was captured has run
  };
  /// Has what the calling thread captures launched before its end.
  void leave_capture();
  void settle_capture() noexcept;
  void begin_on(DeviceStream& base);
  cublasHandle_t make_blas(cudaStream_t stream, void* workspace);
  /// The only place where the host waits for the device: for a stream, or where that is null for all of them.
  void wait(DeviceStream* stream, const char* what);
  [[noreturn]] void fail(cudaError_t error, const char* what);
  [[noreturn]] void fail_lost();
  /// " at or before 'exp', after 'add'"; empty where nothing was launched.
  std::string launched_last() const;
  void release_after(DeviceStream& stream, Owner keep);
  void release_passed() noexcept;

  const int index_;
  const bool waits_;
  CUcontext context_ = nullptr;
  DeviceStream own_;
  BlockCache* cache_ = nullptr;  // lives for ever, as every cache
  std::mutex streams_mutex_;
  std::vector<std::unique_ptr<DeviceStream>> streams_;  // all but our own
  std::mutex later_mutex_;
  std::deque<Later> later_;
  std::atomic<std::int64_t> staged_{0};  // bytes of pinned buffers of ours that copies are under way from
  static constexpr unsigned kRemembered = 4;
  std::atomic<const char*> launched_[kRemembered] = {};
  std::atomic<unsigned> n_launched_{0};
  std::atomic<bool> lost_{false};
  std::mutex lost_mutex_;
  std::string lost_words_;
  FaultBox faults_;
  Capture capture_;
};

/// Makes a device the current one of this thread, and at the end the one that was: a caller's own CUDA code finds it as it left it. Whoever
/// calls CUDA for a device holds one. Throws DeviceError where the device is lost.
class Current {
 public:
  explicit Current(CudaBackend& device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  CUcontext before_;
  bool changed_;
};

/// While it lives, this thread may do what is no work of a stream while it captures: get memory, ask after events.
class BesideCapture {
 public:
  BesideCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~BesideCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // afterwards the one before
};

/// The device that a call runs on.
CudaBackend& device_of(Device device);
DeviceBackend* open_device(int index, const HostServices& services, char* why, int why_bytes);
int count_devices();
bool describe_device(int index, DeviceFacts* facts);
const HostServices& host_services();
// As devices/plugin.h says.
void* allocate_pinned(std::int64_t bytes);
void release_pinned(void* data, std::int64_t bytes);
/// Gives free pinned memory back to the system; a device is current.
void trim_pinned();

/// Device memory for the time of a kernel call; ordered by the stream, so it may end before the kernel has run.
class Scratch {
 public:
  Scratch(CudaBackend& device, std::int64_t bytes)
      : device_(&device), bytes_(bytes), data_(bytes ? device.allocate(bytes) : nullptr) {}
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

}  // namespace cuda
}  // namespace kassette

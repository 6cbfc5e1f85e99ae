// devices/cuda/cuda.h - shared by the kernels of libkassette_cuda.so: the device and its streams, cuBLAS, scratch
// memory, errors.
#pragma once
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/block_cache.h"
#include "devices/cuda/faults.h"
#include "devices/plugin.h"

namespace kassette::cuda {
class CudaDevice;
}

namespace kassette::devices {

/// A CUDA stream with its workspace for cuBLAS and its state in graph capture.
struct DeviceStream {
  cuda::CudaDevice* device;
  cudaStream_t handle;
  int number;      // 0: the device's own stream; below 0: a stream that is captured
  bool ours;       // created by this library
  int owners = 0;  // number of Stream objects that refer to it
  void* blas_workspace = nullptr;
  // See Note [Graphs].
  DeviceStream* base = nullptr;  // in a stream that is captured: the stream on which the graph is launched; else null
  std::unique_ptr<DeviceStream> captured = {};  // the stream that is captured in place of this one; made at first use
  std::atomic<bool> awaits_graph = false;  // true from the begin of a capture to the launch of its graph on this stream
};

}  // namespace kassette::devices

namespace kassette::cuda {

using devices::BlockCache;
using devices::CudaDeviceApi;
using devices::DeviceFacts;
using devices::DeviceGraph;
using devices::DeviceStream;
using devices::HostServices;
using devices::PluginKernel;

/// Throws DeviceError with CUDA's message unless `error` is success; `what` is the function that it names. For calls
/// that may report the error of an earlier kernel use CudaDevice::check.
void check(cudaError_t error, const char* what);

/// One CUDA device. All threads use the device's own stream unless they have chosen another one. A freed block may be
/// reused at once, in the stream that is current when it is freed: Note [Streams and memory].
class CudaDevice final : public CudaDeviceApi {
 public:
  explicit CudaDevice(int index);
  void* allocate(std::int64_t bytes) override;
  void release(void* data, std::int64_t bytes) noexcept override;
  void copy_from_host(void* to, const void* from, std::int64_t bytes) override;
  void copy_to_host(void* to, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes, "to"); }
  void synchronize() override { wait(current()); }
  /// Ends a capture first: the caller enqueues on the stream directly.
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
  void copy_from(CudaDeviceApi& other, void* to, const void* from, std::int64_t bytes) override;

  bool begin_capture(DeviceGraph*& graph) override;
  bool launch_captured() override;
  const char* end_capture() noexcept override;
  void destroy(DeviceGraph* graph) noexcept override;
  DeviceStream& launched_on(DeviceStream& stream) noexcept override { return stream.base ? *stream.base : stream; }

  void* mark() override;
  bool passed(void* mark, bool wait) override;
  double seconds_between(void* first, void* second) override;
  void drop(void* mark) noexcept override;

  int index() const { return index_; }
  CUcontext context() const { return context_; }
  /// Enqueues a copy within this device.
  void copy(void* to, const void* from, std::int64_t bytes, const char* what);
  /// Enqueues a memset to 0.
  void zero(void* to, std::int64_t bytes, const char* what);
  /// To be called after work was enqueued for the op `what`. With KASSETTE_CUDA_SYNC=1 it waits for the work, so that
  /// an error names this op and does not surface at a later wait.
  void launched(const char* what);
  /// The argument by which a kernel reports a bad value; a new one for each launch.
  Faults faults() { return faults_.next(); }
  /// Throws DeviceError unless `error` is success. If the device no longer accepts work, the message says so, and every
  /// later call throws.
  void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) fail(error, what);
  }
  void check(cublasStatus_t status, const char* what);
  /// Throws DeviceError if an earlier error has made the device unusable.
  void check_alive() {
    if (lost_.load(std::memory_order_acquire)) fail_lost();
  }
  /// The device's cuBLAS handle, which enqueues on the current stream and has that stream's workspace. Hold the lock
  /// while enqueuing.
  cublasHandle_t blas(std::unique_lock<std::mutex>* lock);
  static constexpr std::int64_t kBlasWorkspace = std::int64_t(32) << 20;  // what cuBLAS asks for on compute 9.0
  /// That workspace, kBlasWorkspace bytes.
  void* blas_workspace() { return launched_on(current()).blas_workspace; }

 private:
  /// Memory to release once an event has passed.
  struct DeferredRelease {
    cudaEvent_t passed;
    Owner keep;
  };
  /// The state of a capture, from begin_capture() to end_capture().
  struct Capture {
    /// Held by the thread that captures, or by one that waits for all streams, which CUDA forbids during a capture.
    std::recursive_mutex mutex;
    DeviceGraph* graph = nullptr;  // null: no capture
    DeviceStream* base = nullptr;
    int enqueued = 0;
    const char* refused = nullptr;  // CUDA's message if it has refused the graph
    std::vector<Owner> keep;        // to release when the captured work has run
  };
  /// Launches what the calling thread has captured so far, and ends the capture; does nothing if it is not capturing.
  void leave_capture();
  void settle_capture() noexcept;
  void begin_on(DeviceStream& base);
  cublasHandle_t make_blas();
  /// Waits for one stream or, if `stream` is null, for all of them, and throws what kernels have reported. The host
  /// waits nowhere else, except to give memory back to CUDA, and to release memory after an error.
  void wait(DeviceStream* stream, const char* what);
  [[noreturn]] void fail(cudaError_t error, const char* what);
  [[noreturn]] void fail_lost();
  /// " at or before 'exp', after 'add'"; empty if nothing was launched.
  std::string launched_last() const;
  void release_after(DeviceStream& stream, Owner keep);
  void release_passed() noexcept;

  const int index_;
  const bool waits_;
  CUcontext context_ = nullptr;
  DeviceStream own_;
  BlockCache* cache_ = nullptr;  // never destroyed, as every BlockCache
  std::mutex streams_mutex_;
  std::vector<std::unique_ptr<DeviceStream>> streams_;  // all but own_
  std::mutex deferred_mutex_;
  std::map<const DeviceStream*, std::deque<DeferredRelease>> deferred_;  // by stream, in the order of its events
  std::atomic<std::int64_t> staged_{0};  // bytes of our own pinned buffers that pending copies read
  static constexpr unsigned kRemembered = 4;
  std::atomic<const char*> launched_[kRemembered] = {};
  std::atomic<unsigned> n_launched_{0};
  std::atomic<bool> lost_{false};
  std::mutex lost_mutex_;
  std::string lost_words_;
  FaultBox faults_;
  Capture capture_;
  std::mutex blas_mutex_;
  cublasHandle_t blas_ = nullptr;
  const DeviceStream* blas_stream_ = nullptr;  // the one that it enqueues on
};

/// Makes a device current in this thread, and restores the previous one at the end, so that a caller's own CUDA code is
/// not affected; only where none was may device 0 stay. To be held around all calls of CUDA for a device. Throws
/// DeviceError if the device is lost.
class DeviceGuard {
 public:
  explicit DeviceGuard(CudaDevice& device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  CUcontext before_;
  bool restores_;
};

/// While it lives, this thread may make calls during a capture that do not enqueue work: allocate memory, query events.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // after the first exchange: the mode to restore
};

/// An opened device.
CudaDevice& device_of(Device device);
CudaDeviceApi* open_device(int index, const HostServices& services, char* why, int why_bytes);
int count_devices();
bool describe_device(int index, DeviceFacts* facts);
const HostServices& host_services();
// See devices/plugin.h.
void* allocate_pinned(std::int64_t bytes);
void release_pinned(void* data, std::int64_t bytes);
/// Returns cached pinned memory to the system. A device has to be current.
void trim_pinned();

/// Device memory for a kernel. Freeing is ordered by the stream, so the object may be destroyed before the kernel has
/// run.
class DeviceScratch {
 public:
  DeviceScratch(CudaDevice& device, std::int64_t bytes)
      : device_(&device), bytes_(bytes), data_(bytes ? device.allocate(bytes) : nullptr) {}
  ~DeviceScratch() {
    if (data_) device_->release(data_, bytes_);
  }
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  void* get() const { return data_; }

 private:
  CudaDevice* device_;
  std::int64_t bytes_;
  void* data_;
};

}  // namespace kassette::cuda

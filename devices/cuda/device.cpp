// devices/cuda/device.cpp - a CUDA device: memory, copies, waiting, errors.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <kassette/error.h>

#include "devices/cuda/cuda.h"
#include "devices/cuda/driver.h"

namespace kassette::cuda {
using namespace devices;
namespace {

constexpr int kMaxDevices = 256;
constexpr std::int64_t kMaxNumber = 16;  // bytes
constexpr int kMaxCaptured = 1 << 14;    // in one graph
constexpr std::int64_t kMaxStaged = std::int64_t(16) << 20, kMaxStagedTogether = std::int64_t(256) << 20;  // bytes

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text && std::strcmp(text, "0") != 0;
}

/// Both make the device current: most allocations find a block in the cache, and need no device. After the driver has
/// shut down, at the end of the process, all these calls fail; the memory is gone anyway.
const MemorySource device_memory{[](void* of, std::int64_t bytes) noexcept -> void* {
                                   try {
                                     DeviceGuard now(*static_cast<CudaDevice*>(of));
                                     const RelaxedCapture allowed;
                                     void* p = nullptr;
                                     const cudaError_t error = cudaMalloc(&p, static_cast<std::size_t>(bytes));
                                     if (error == cudaSuccess) return p;
                                     // Out of memory is reported by the caller. Any other error is left for allocate()
                                     // to check.
                                     if (error == cudaErrorMemoryAllocation) cudaGetLastError();
                                   } catch (const Error&) {  // allocate() will meet it again
                                   }
                                   return nullptr;
                                 },
                                 [](void* of, void* block, std::int64_t) noexcept {
                                   const CUcontext context = static_cast<CudaDevice*>(of)->context();
                                   CUcontext before = nullptr;
                                   driver().get_current(&before);
                                   if (before != context) driver().set_current(context);
                                   const RelaxedCapture allowed;
                                   cudaFree(block);  // waits for the kernels of the device
                                   if (before != context) driver().set_current(before);
                                 }};

/// Enables access of the current device to a peer's memory if the hardware can; else the driver copies through the
/// host. Once for each pair.
void ask_for_peer_access(int device, int peer) {
  static std::atomic<bool> asked[kMaxDevices][kMaxDevices];
  if (asked[device][peer].exchange(true, std::memory_order_relaxed)) return;
  int direct = 0;
  if (cudaDeviceCanAccessPeer(&direct, device, peer) == cudaSuccess && direct &&
      cudaDeviceEnablePeerAccess(peer, 0) != cudaSuccess)
    cudaGetLastError();  // it was enabled already, or is refused
}

/// Pinned memory, if there is some left; none for 0 bytes.
class PinnedScratch {
 public:
  explicit PinnedScratch(std::int64_t bytes) : bytes_(bytes), data_(bytes ? allocate_pinned(bytes) : nullptr) {}
  ~PinnedScratch() {
    if (data_) release_pinned(data_, bytes_);
  }
  PinnedScratch(const PinnedScratch&) = delete;
  PinnedScratch& operator=(const PinnedScratch&) = delete;
  void* get() const { return data_; }

 private:
  std::int64_t bytes_;
  void* data_;
};

MemorySource memory_of(CudaDevice* device) {
  MemorySource source = device_memory;
  source.context = device;
  return source;
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw DeviceError(what, "", (std::string("CUDA says: ") + cudaGetErrorString(error)).c_str());
}

DeviceGuard::DeviceGuard(CudaDevice& device) : before_(nullptr), restores_(false) {
  device.check_alive();
  driver().get_current(&before_);
  if (before_ == device.context()) return;
  if (driver().set_current(device.context()) != CUDA_SUCCESS)
    throw DeviceError(
        ("cuda:" + std::to_string(device.index()) + ": the driver does not make its context current").c_str());
  // The runtime itself makes device 0 current in a thread that had none: that one may stay, for the next call.
  restores_ = before_ || device.index() != 0;
}
DeviceGuard::~DeviceGuard() {
  if (restores_) driver().set_current(before_);
}

CudaDevice::CudaDevice(int index)
    : index_(index),
      waits_(is_set("KASSETTE_CUDA_SYNC")), own_{.device = this, .handle = nullptr, .number = 0, .ours = true} {
  if (driver().retain(&context_, index) != CUDA_SUCCESS) throw DeviceError("cannot get its primary context");
  DeviceGuard now(*this);
  cuda::check(cudaStreamCreateWithFlags(&own_.handle, cudaStreamNonBlocking), "cuda");
  faults_.open();
  cache_ =
      new BlockCache(Device(Device::kCuda, static_cast<std::uint8_t>(index)), memory_of(this), CachePolicy::keep_all);
}

// ---- memory and copies ----------------------------------------------------------------------------------------------

void* CudaDevice::allocate(std::int64_t bytes) {
  check_alive();
  if (const DeviceStream& s = current(); s.base) {
    if (void* block = cache_->try_allocate(bytes, s.number, s.base->number)) return block;
    leave_capture();  // memory has to be freed first, which a capture forbids
  }
  try {
    return cache_->allocate(bytes, current().number);
  } catch (const MemoryError&) {
    DeviceGuard now(*this);
    check(cudaGetLastError(), "allocate");  // the cause may be the error of an earlier kernel instead
    throw;
  }
}
void CudaDevice::release(void* data, std::int64_t bytes) noexcept {
  const DeviceStream& s = current();
  cache_->release(data, bytes, s.awaits_graph.load(std::memory_order_acquire) ? s.captured->number : s.number);
}
void CudaDevice::set_memory_limit(std::int64_t bytes) {
  DeviceGuard now(*this);
  cache_->set_limit(bytes);
}
void CudaDevice::empty_cache() {
  DeviceGuard now(*this);
  cache_->trim();
  trim_pinned();
}

/// The caller may overwrite `from` when this returns: up to kMaxStaged bytes go through a pinned buffer; for more, or
/// without pinned memory, the host waits for the copy.
void CudaDevice::copy_from_host(void* to, const void* from, std::int64_t bytes) {
  struct Staged {
    CudaDevice* device;
    void* data;
    std::int64_t bytes;
  };
  if (void* data =
          bytes <= kMaxStaged && staged_.load() + bytes <= kMaxStagedTogether ? allocate_pinned(bytes) : nullptr) {
    std::memcpy(data, from, static_cast<std::size_t>(bytes));
    staged_.fetch_add(bytes);
    const Owner owner{[](void* state) {
                        auto* staged = static_cast<Staged*>(state);
                        release_pinned(staged->data, staged->bytes);
                        staged->device->staged_.fetch_sub(staged->bytes);
                        delete staged;
                      },
                      new Staged{this, data, bytes}};
    return copy_from_host_later(to, data, bytes, owner);
  }
  leave_capture();
  DeviceGuard now(*this);
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, current().handle), "to");
  wait(&current(), "to");
}
void CudaDevice::copy_from_host_later(void* to, const void* from, std::int64_t bytes, Owner keep) {
  try {
    DeviceGuard now(*this);
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, current().handle), "to");
  } catch (...) {
    keep.release(keep.state);
    throw;
  }
  if (current().base) capture_.keep.push_back(keep);
  else release_after(current(), keep);
  launched("to");
}
void CudaDevice::copy_to_host(void* to, const void* from, std::int64_t bytes) {
  leave_capture();
  DeviceGuard now(*this);
  // A number, as of item(), goes through pinned memory: the driver would copy it aside itself, and wait once more.
  const PinnedScratch pinned(bytes <= kMaxNumber ? bytes : 0);
  void* const into = pinned.get() ? pinned.get() : to;
  check(cudaMemcpyAsync(into, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, current().handle), "to");
  wait(&current(), "to");
  if (into != to) std::memcpy(to, into, static_cast<std::size_t>(bytes));
}
void CudaDevice::copy(void* to, const void* from, std::int64_t bytes, const char* what) {
  DeviceGuard now(*this);
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, current().handle), what);
  launched(what);
}
void CudaDevice::copy_from(CudaDeviceApi& other, void* to, const void* from, std::int64_t bytes) {
  auto& source = static_cast<CudaDevice&>(other);
  source.leave_capture();
  leave_capture();
  order(source.current(), current());
  {
    DeviceGuard now(*this);
    ask_for_peer_access(index_, source.index_);
    check(cudaMemcpyPeerAsync(to, index_, from, source.index_, static_cast<std::size_t>(bytes), current().handle),
          "to");
    launched("to");
  }
  order(current(), source.current());  // so that the source may be freed now
}
void CudaDevice::zero(void* to, std::int64_t bytes, const char* what) {
  if (bytes == 0) return;
  DeviceGuard now(*this);
  check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), current().handle), what);
  launched(what);
}

void CudaDevice::release_after(DeviceStream& stream, Owner keep) {
  const RelaxedCapture allowed;
  std::optional<DeviceGuard> now;
  cudaEvent_t passed = nullptr;
  try {
    now.emplace(*this);
    release_passed();
    check(cudaEventCreateWithFlags(&passed, cudaEventDisableTiming), "to");
    check(cudaEventRecord(passed, stream.handle), "to");
    std::lock_guard<std::mutex> lock(deferred_mutex_);
    deferred_[&stream].push_back({passed, keep});
  } catch (...) {
    if (passed) cudaEventDestroy(passed);
    if (now && !lost_) cudaStreamSynchronize(stream.handle);  // else nothing runs any more
    keep.release(keep.state);
    throw;
  }
}
/// The device is current.
void CudaDevice::release_passed() noexcept {
  for (;;) {
    DeferredRelease next;
    {
      std::lock_guard<std::mutex> lock(deferred_mutex_);
      const auto found = std::find_if(deferred_.begin(), deferred_.end(), [](const auto& of) {
        return !of.second.empty() && cudaEventQuery(of.second.front().passed) != cudaErrorNotReady;
      });
      if (found == deferred_.end()) return;
      next = found->second.front();
      found->second.pop_front();
    }
    cudaEventDestroy(next.passed);
    next.keep.release(next.keep.state);
  }
}

// ---- waiting and errors ---------------------------------------------------------------------------------------------

void CudaDevice::wait(DeviceStream* stream, const char* what) {
  leave_capture();
  if (stream) stream = &launched_on(*stream);
  std::unique_lock<std::recursive_mutex> lock(capture_.mutex, std::defer_lock);
  if (!stream) lock.lock();
  DeviceGuard now(*this);
  check(stream ? cudaStreamSynchronize(stream->handle) : cudaDeviceSynchronize(), what);
  release_passed();
  faults_.throw_reported(/*asynchronous=*/!waits_);
}
void CudaDevice::launched(const char* what) {
  launched_[n_launched_.fetch_add(1, std::memory_order_relaxed) % kRemembered].store(what, std::memory_order_relaxed);
  if (waits_) wait(&current(), what);
  else if (current().base && ++capture_.enqueued == kMaxCaptured) leave_capture();
}

std::string CudaDevice::launched_last() const {
  const unsigned n = n_launched_.load();
  std::string words;
  for (unsigned i = 1; i <= kRemembered && i <= n; ++i) {
    const char* what = launched_[(n - i) % kRemembered].load();
    if (!what) continue;
    words +=
        i == 1 ? std::string(" at or before '") + what + '\'' : std::string(i == 2 ? ", after '" : ", '") + what + '\'';
  }
  return words;
}

void CudaDevice::fail(cudaError_t error, const char* what) {
  std::string words = std::string("CUDA says: ") + cudaGetErrorString(error);
  const char* remedy = "";
  // Reading the error of a call clears it. The error of a kernel is sticky: every call returns it until the process
  // ends.
  cudaGetLastError();
  const RelaxedCapture allowed;
  const cudaError_t again = cudaStreamQuery(own_.handle);
  if (again != cudaSuccess && again != cudaErrorNotReady) {
    const std::string name = "cuda:" + std::to_string(index_),
                      where = waits_ ? std::string(" in '") + what + '\'' : launched_last();
    std::lock_guard<std::mutex> lock(lost_mutex_);
    if (!lost_.load(std::memory_order_relaxed)) {
      lost_words_ = name + " is lost to this process since an error" + where + ": " + cudaGetErrorString(error);
      lost_.store(true, std::memory_order_release);
    }
    words += (waits_ ? "" : where) + ", and " + name + " is lost to this process";
    if (!waits_) remedy = "KASSETTE_CUDA_SYNC=1 tells which op it was";
  }
  throw DeviceError(what, "", words.c_str(), "", remedy);
}
void CudaDevice::fail_lost() { throw DeviceError(lost_words_.c_str()); }

void CudaDevice::check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const RelaxedCapture allowed;
  // The product may have met the error of an earlier kernel.
  const cudaError_t error = cudaStreamQuery(launched_on(current()).handle);
  if (error != cudaSuccess && error != cudaErrorNotReady) fail(error, what);
  throw DeviceError(what, "", (std::string("cuBLAS says: ") + cublasGetStatusString(status)).c_str());
}

// ---- products -------------------------------------------------------------------------------------------------------

/// One handle for all streams, since it takes memory of its own, on compute 9.0 as much as the workspace. The workspace
/// is the stream's: otherwise the bits of cuBLAS may differ from run to run.
cublasHandle_t CudaDevice::blas(std::unique_lock<std::mutex>* lock) {
  *lock = std::unique_lock<std::mutex>(blas_mutex_);
  if (!blas_ || !blas_workspace()) leave_capture();
  DeviceStream& s = current();
  void*& workspace = launched_on(s).blas_workspace;
  if (!workspace) workspace = allocate(kBlasWorkspace);
  if (!blas_) blas_ = make_blas();
  if (std::exchange(blas_stream_, nullptr) != &s) {
    check(cublasSetStream(blas_, s.handle), "matmul");
    check(cublasSetWorkspace(blas_, workspace, kBlasWorkspace), "matmul");  // the stream's change has dropped it
  }
  blas_stream_ = &s;
  return blas_;
}

cublasHandle_t CudaDevice::make_blas() {
  cublasHandle_t handle;
  check(cublasCreate(&handle), "matmul");
  try {
    // No sums in half precision. Tensor cores multiply half types, and with allow_tf32 float32.
    check(cublasSetMathMode(handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
          "matmul");
  } catch (...) {
    cublasDestroy(handle);
    throw;
  }
  return handle;
}

}  // namespace kassette::cuda

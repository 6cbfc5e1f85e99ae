// devices/cuda/streams.cpp - the streams of a CUDA device.
//
// Note [Streams and memory]
// A freed block belongs to the stream that is current when it is freed, and is reused by allocations in that stream
// only: the earlier uses of the block are then enqueued before the new one. This holds because a user of a tensor from
// another stream is ordered after that stream: a thread that changes its stream makes the new one wait for the old one,
// and at the end the other way round (<kassette/stream.h>), and an event orders a tensor that is passed to a thread
// with another stream. One case is left to the user: if two threads, with a stream each, use a tensor at the same time,
// the stream of the thread that drops the last reference must be ordered after the other's use (Stream::wait_for). We
// keep no list of the streams that have used a block, as PyTorch's record_stream does.

#include <kassette/error.h>

#include "devices/cuda/cuda.h"

namespace kassette::cuda {
namespace {

thread_local DeviceStream* chosen[256];  // by device; null: its own

/// An event, destroyed at the end of the scope; CUDA keeps it until it has passed.
class Event {
 public:
  explicit Event(CudaDevice& device) {
    device.check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "stream");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

DeviceStream& CudaDevice::current() noexcept {
  DeviceStream* s = chosen[index_];
  return s ? *s : own_;
}
void CudaDevice::set_current(DeviceStream& stream) noexcept { chosen[index_] = &stream == &own_ ? nullptr : &stream; }

DeviceStream& CudaDevice::stream_of(void* native) {
  auto handle = static_cast<cudaStream_t>(native);
  if (handle == own_.handle) return own_;
  std::lock_guard<std::mutex> lock(streams_mutex_);
  for (const auto& s : streams_)
    if (handle ? s->handle == handle : s->ours && s->owners == 0) {
      if (s->owners == 0 && !s->ours) {
        // Another stream may be at the same address by now, which is new to cuBLAS. The workspace may still be in use
        // by what close() has ordered before the device's own stream.
        order(own_, *s);
        std::lock_guard<std::mutex> blas(blas_mutex_);
        if (blas_stream_ == s.get()) blas_stream_ = nullptr;
      }
      ++s->owners;
      return *s;
    }
  const bool ours = !handle;
  if (ours) {
    DeviceGuard now(*this);
    check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "stream");
  }
  streams_.push_back(
      std::unique_ptr<DeviceStream>(new DeviceStream{this, handle, static_cast<int>(streams_.size()) + 1, ours, 1}));
  return *streams_.back();
}

void CudaDevice::close(DeviceStream& stream) noexcept {
  if (&stream == &own_) return;
  // So that stream_of() does not return it before its memory has moved.
  std::lock_guard<std::mutex> lock(streams_mutex_);
  if (--stream.owners > 0) return;
  try {
    order(stream, own_);
  } catch (const Error&) {  // the device is lost: nothing runs there any more
  }
  cache_->hand_over(stream.number, own_.number);
}

void CudaDevice::order(DeviceStream& first, DeviceStream& second) {
  if (&first == &second) return;
  DeviceGuard now(*first.device);
  Event event(*first.device);
  first.device->check(cudaEventRecord(event.get(), first.handle), "stream");
  DeviceGuard then(*second.device);
  second.device->check(cudaStreamWaitEvent(second.handle, event.get(), 0), "stream");
}

// ---- marks ----------------------------------------------------------------------------------------------------------

void* CudaDevice::mark() {
  DeviceStream& stream = current();
  if (stream.base) return nullptr;  // captured: the event would be a part of the graph
  DeviceGuard now(*this);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault), "profile");
  if (const cudaError_t error = cudaEventRecord(event, stream.handle); error != cudaSuccess) {
    cudaEventDestroy(event);
    check(error, "profile");
  }
  return event;
}

bool CudaDevice::passed(void* mark, bool wait) {
  DeviceGuard now(*this);
  const auto event = static_cast<cudaEvent_t>(mark);
  const cudaError_t error = wait ? cudaEventSynchronize(event) : cudaEventQuery(event);
  if (error == cudaErrorNotReady) return false;
  check(error, "profile");
  return true;
}

double CudaDevice::seconds_between(void* first, void* second) {
  DeviceGuard now(*this);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(first), static_cast<cudaEvent_t>(second)),
        "profile");
  return milliseconds * 1e-3;
}

void CudaDevice::drop(void* mark) noexcept { cudaEventDestroy(static_cast<cudaEvent_t>(mark)); }

}  // namespace kassette::cuda

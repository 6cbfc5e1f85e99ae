// devices/cuda/streams.cpp - the streams of a CUDA device.
// Note [Streams and memory]
// A block belongs to the stream that is current where it is freed, and goes to an allocation in that stream alone: what used the block before
// has then been enqueued before. That holds because whoever gets a tensor of another stream is ordered behind it: a thread that changes
// its stream makes the new one wait for the old one, and back (<kassette/stream.h>), and a tensor that is handed to a thread with
// another stream is handed over by an event too. What is left to the user are two threads, with a stream each, that use a tensor at the
// same time: whoever is not the last to let go of it must have waited. No list of who used a block is kept, as PyTorch's record_stream has.
#include <algorithm>

#include <kassette/error.h>

#include "devices/cuda/cuda.h"

namespace kassette::cuda {
namespace {

thread_local DeviceStream* chosen[256];   // by device; null: its own

/// An event that is gone at the end; CUDA keeps it until it has passed.
class Event {
 public:
  explicit Event(CudaBackend& device) { device.check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "stream"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

DeviceStream& CudaBackend::current() noexcept {
  DeviceStream* s = chosen[index_];
  return s ? *s : own_;
}
void CudaBackend::set_current(DeviceStream& stream) noexcept {
  stream.used = true;
  chosen[index_] = &stream == &own_ ? nullptr : &stream;
}

DeviceStream& CudaBackend::stream_of(void* native) {
  const auto handle = static_cast<cudaStream_t>(native);
  if (handle == own_.handle) return own_;
  std::lock_guard<std::mutex> lock(streams_mutex_);
  if (!handle && !unused_.empty()) {
    DeviceStream* s = unused_.back();
    unused_.pop_back();
    return *s;
  }
  for (const auto& s : streams_)
    if (handle && s->handle == handle) return *s;
  streams_.push_back(std::unique_ptr<DeviceStream>(new DeviceStream{this, handle, static_cast<int>(streams_.size()) + 1, !handle}));
  if (!handle) {
    Current now(*this);
    try {
      check(cudaStreamCreateWithFlags(&streams_.back()->handle, cudaStreamNonBlocking), "stream");
    } catch (...) {
      streams_.pop_back();
      throw;
    }
  }
  return *streams_.back();
}

void CudaBackend::close(DeviceStream& stream) noexcept {
  if (stream.used) {
    try {
      order(stream, own_);
    } catch (const Error&) {   // its owner has destroyed it, or the device is lost: then nothing of it runs
    }
    cache_.hand_over(stream.number, own_.number);
    stream.used = false;
  }
  if (!stream.ours) return;
  std::lock_guard<std::mutex> lock(streams_mutex_);
  unused_.push_back(&stream);
}

void CudaBackend::order(DeviceStream& first, DeviceStream& second) {
  if (&first == &second) return;
  Current now(*first.device);
  Event event(*first.device);
  first.device->check(cudaEventRecord(event.get(), first.handle), "stream");
  Current then(*second.device);
  second.device->check(cudaStreamWaitEvent(second.handle, event.get(), 0), "stream");
}

}  // namespace kassette::cuda

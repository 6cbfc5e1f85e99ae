// core/stream.h - streams of CUDA devices, and memory of the host that they copy from. Opt-in: <kassette/stream.h>.
#ifndef KASSETTE_STREAM_H
#define KASSETTE_STREAM_H
#include <kassette/tensor.h>

namespace kassette {

namespace devices {
struct DeviceStream;
}

/// A stream of a CUDA device: work that is done in the order in which it is enqueued. All threads enqueue on one stream
/// of a device, its own, unless they have chosen another one by a StreamScope. On the CPU, where ops are done when they
/// return, a stream has nothing to do.
class KASSETTE_API Stream {
 public:
  /// A new one. Throws DeviceError where there is no such device.
  explicit Stream(Device device);
  /// That of a cudaStream_t of the device, somebody else's or one of ours. Somebody else's has to outlive this object.
  Stream(Device device, void* native);
  /// Does not wait for what is enqueued.
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Device device() const { return device_; }
  /// The cudaStream_t; null on the CPU.
  void* native() const;
  /// Waits until all that is enqueued has been done. Throws DeviceError where some of it failed.
  void synchronize() const;
  /// What is enqueued from now on is done after what has been enqueued on `other`, a stream of this or another device.
  /// The host does not wait.
  void wait_for(const Stream& other) const;

 private:
  Device device_;
  devices::DeviceStream* stream_ = nullptr;  // null on the CPU
  friend class StreamScope;
};

/// The stream that this thread enqueues on.
KASSETTE_API Stream current_stream(Device device);

/// While alive, ops of this thread on the stream's device are enqueued on this stream. It waits for the previous stream
/// at the beginning, and the previous stream waits for it at the end, so that values computed outside can be used
/// inside, and vice versa. Work is done at the same time where threads have a stream each. What one thread computes
/// another may use after the scope, or through Stream::wait_for; until both are done, both keep the tensor.
class KASSETTE_API StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device device_;
  devices::DeviceStream *stream_, *before_;
};

/// The value of x in memory of the CPU that CUDA devices copy from without the host's help: x.to("cuda:0",
/// {.non_blocking = true}) then returns at once. x itself where there is no CUDA device. Throws ValueError unless x is
/// a dense tensor with a value.
KASSETTE_API Tensor pin_memory(const Tensor& x);

}  // namespace kassette

#endif  // KASSETTE_STREAM_H

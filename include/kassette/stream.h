// include/kassette/stream.h - streams of CUDA devices, and host memory that they can copy from. Opt-in:
// <kassette/stream.h>.
#ifndef KASSETTE_STREAM_H
#define KASSETTE_STREAM_H
#include <kassette/tensor.h>

namespace kassette {

namespace devices {
struct DeviceStream;
}

/// A stream of a CUDA device: work on it is done in the order in which it is enqueued. All threads enqueue on the
/// device's own stream, unless they have chosen another one by a StreamScope. On the CPU, where an op is complete when
/// it returns, a stream does nothing.
class KASSETTE_API Stream {
 public:
  /// Makes a new stream. Throws DeviceError if there is no such device.
  explicit Stream(Device device);
  /// Wraps a cudaStream_t of the device, made by kassette or by other code. If other code made it, it has to outlive
  /// this object.
  Stream(Device device, void* native);
  /// Does not wait for enqueued work.
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Device device() const { return device_; }
  /// The cudaStream_t; null on the CPU.
  void* native() const;
  /// Waits until all enqueued work is done. Throws DeviceError if any of it failed.
  void synchronize() const;
  /// Makes work that is enqueued from now on run after the work enqueued on `other` so far, a stream of this or another
  /// device. The host does not wait.
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
/// inside, and vice versa. Threads that have a stream each can work at the same time. Another thread may use a result
/// after the scope, or by Stream::wait_for; both threads must keep the tensor until both are done.
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

/// The value of x in pinned memory of the host, from which CUDA devices copy without the host's help: x.to("cuda:0",
/// {.non_blocking = true}) then returns at once. Returns x itself if there is no CUDA device. Throws ValueError unless
/// x is a dense tensor with a value.
KASSETTE_API Tensor pin_memory(const Tensor& x);

}  // namespace kassette

#endif  // KASSETTE_STREAM_H

// devices/plugin.h - the interface between libkassette.so and the device library (libkassette_cuda.so), which is a
// plugin: it exports its devices and kernels as one table, DevicePlugin.
#pragma once
#include <atomic>
#include <cstdint>

#include "core/impl.h"

namespace kassette::ops {
struct OpCall;            // ops/engine/op.h
struct Strided;           // ops/shape/strided.h
struct SparseView;        // ops/sparse/sparse_view.h
struct DeviceConvLimits;  // ops/convolution/conv.h
struct DeviceChain;       // ops/elementwise/device_chain.h
}  // namespace kassette::ops

namespace kassette::devices {

struct DeviceStream;  // devices/cuda/cuda.h
struct DeviceGraph;   // devices/cuda/graph.cpp

/// The interface of a CUDA device: adds streams, asynchronous copies and graphs to what every device has.
class CudaDeviceApi : public DeviceApi {
 public:
  /// The DeviceStream of a cudaStream_t; of null one that is not in use, made if necessary. Pair each call with one of
  /// close(). The object lives until the process ends.
  virtual DeviceStream& stream_of(void* native) = 0;
  /// At the last close() of a stream, the free memory of that stream moves to the device's own stream.
  virtual void close(DeviceStream& stream) noexcept = 0;
  /// The stream that the calling thread enqueues on.
  virtual DeviceStream& current() noexcept = 0;
  virtual void set_current(DeviceStream& stream) noexcept = 0;
  virtual void* native(DeviceStream& stream) = 0;
  /// Makes all later work on `second` run after the work enqueued on `first` so far. The streams may be of two devices.
  virtual void order(DeviceStream& first, DeviceStream& second) = 0;
  /// Waits until the work enqueued on the stream has run.
  virtual void wait(DeviceStream& stream) = 0;
  /// Waits for all streams of the device, including those of other libraries.
  virtual void wait_for_all() = 0;
  /// copy_from_host() that returns at once. `from` must stay valid and unchanged until `keep` is released, some time
  /// after the copy.
  virtual void copy_from_host_later(void* to, const void* from, std::int64_t bytes, Owner keep) = 0;
  /// Enqueues a copy from another CUDA device, ordered with the current streams of both devices.
  virtual void copy_from(CudaDeviceApi& other, void* to, const void* from, std::int64_t bytes) = 0;

  // See Note [Graphs] in devices/cuda/graph.cpp.
  /// Captures what the calling thread enqueues on its stream, until end_capture(). Returns false if it does not
  /// capture; end_capture() is then not called. Makes `graph` if it is null; pass the same graph for runs that enqueue
  /// the same work.
  virtual bool begin_capture(DeviceGraph*& graph) = 0;
  /// Ends capturing and launches the captured work as one graph. Returns false if nothing was captured. Throws if CUDA
  /// refuses the graph: then none of it runs.
  virtual bool launch_captured() = 0;
  /// Drops work that was captured and not launched. Returns CUDA's reason if it has refused the graph, else null.
  virtual const char* end_capture() noexcept = 0;
  virtual void destroy(DeviceGraph* graph) noexcept = 0;
  /// The stream on which the graph captured on `stream` will be launched; `stream` itself if it is not one that is
  /// captured.
  virtual DeviceStream& launched_on(DeviceStream& stream) noexcept = 0;

  // For profiles.
  /// A point in the calling thread's work, whose time will be known: an event of CUDA. Null during a capture. Pair it
  /// with drop().
  virtual void* mark() = 0;
  /// Whether the device has got there; `wait`: waits for it.
  virtual bool passed(void* mark, bool wait) = 0;
  /// The seconds between two marks that have passed.
  virtual double seconds_between(void* first, void* second) = 0;
  virtual void drop(void* mark) noexcept = 0;
};

/// While it lives, the calling thread's work is enqueued at once and not captured: for values that other threads read.
class NotCaptured {
 public:
  explicit NotCaptured(CudaDeviceApi& api) : api_(api), before_(api.current()) {
    api_.set_current(api_.launched_on(before_));
  }
  ~NotCaptured() { api_.set_current(before_); }
  NotCaptured(const NotCaptured&) = delete;
  NotCaptured& operator=(const NotCaptured&) = delete;

 private:
  CudaDeviceApi& api_;
  DeviceStream& before_;
};

/// Properties of a device that are known without opening it.
struct DeviceFacts {
  char name[256];
  std::int64_t memory;  // bytes
  int major, minor;     // its compute capability
};

/// A kernel of the device library, by the name of its op; with_bias is OpDef::cuda_with_bias.
struct PluginKernel {
  const char* op;
  void (*run)(const ops::OpCall& call);
  bool (*with_bias)(const ops::OpCall& call, const TensorDesc& bias) = nullptr;
};

/// Numbers that go with a refusal (ops/engine/refusals.h).
inline constexpr int kFaultNumbers = 5;

/// Functions of libkassette.so that kernels of the device library need and cannot link to, as its symbols are hidden.
struct HostServices {
  /// Allocates the storage of an output, for ops whose kernel does that itself.
  void (*allocate_output)(TensorDesc& out, Device device);
  /// Makes output 0 share the storage of an input.
  void (*share_input)(const ops::OpCall& call, int i);
  /// Calls use(state, view) with one part (`part`, a SparseView::Part) of the indices in input 0, in memory of the
  /// call's device. `dense_shape` is the index of the input that holds the dense shape. The view stays valid until the
  /// kernels that `use` enqueues have run.
  void (*with_sparse_index)(const ops::OpCall& call, int dense_shape, int part,
                            void (*use)(void* state, const ops::SparseView& view), void* state);
  const ops::DeviceConvLimits* convolution;
  /// Whether products of float32 may be computed in TF32.
  const std::atomic<bool>* allow_tf32;
  /// Throws the error that a kernel has reported: a Refusal (ops/engine/refusals.h) and its numbers. `asynchronous`:
  /// the op was called earlier, and is not the one that throws.
  void (*refuse)(int refusal, const std::int64_t* numbers, bool asynchronous);
  /// Whether cuDNN may compute where it is installed.
  const std::atomic<bool>* allow_cudnn;
  /// Logs a warning of one line.
  void (*warn)(const char* text);
};

/// The device's part of kernels that are otherwise the same on every device (ops/shape/strided.h, ops/shape/tile.cpp),
/// and its pinned memory. All but the last two only enqueue work.
struct DeviceMoves {
  void (*copy_strided)(const ops::OpCall& call, const ops::Strided& layout, const void* from, void* to, int size);
  void (*zero)(const ops::OpCall& call, void* to, std::int64_t bytes);
  /// Sets `count` elements of `size` bytes (1, 2, 4 or 8) to the low bytes of `bits`, which is passed as a kernel
  /// argument: no copy from the host.
  void (*fill)(Device device, void* to, std::int64_t count, std::uint64_t bits, int size);
  /// Output 0: every element of `kept` in input 0, summed over all of `copies`.
  void (*sum_copies)(const ops::OpCall& call, const ops::Strided& kept, const ops::Strided& copies);
  void (*run_chain)(Device device, const ops::DeviceChain& chain);
  /// Pinned host memory, from a cache; null if there is none left.
  void* (*allocate_pinned)(std::int64_t bytes);
  void (*release_pinned)(void* data, std::int64_t bytes);
};

/// The table that the device library exports by `extern "C" const DevicePlugin* kassette_cuda_plugin()`.
struct DevicePlugin {
  // kPluginAbi of the headers it was built with; if it is not ours, the other members must not be read
  std::uint64_t abi;
  int n_kernels;
  const PluginKernel* kernels;
  /// Opens a device, made once and never destroyed. Returns null, with the reason in `why`, if there is none.
  CudaDeviceApi* (*open)(int index, const HostServices& services, char* why, int why_bytes);
  /// The number of devices; 0 without a driver.
  int (*count)();
  bool (*describe)(int index, DeviceFacts* facts);
  DeviceMoves moves;
  std::uint64_t chain_abi;  // kChainAbi (ops/elementwise/device_chain.h)
  /// Writes the version of cuDNN, or "none: " and why. A device has to be open.
  void (*describe_cudnn)(char* words, int room);
};

/// Changes with the size of the structs that both sides use. Increment the first number if a meaning changes and no
/// size does.
inline constexpr std::uint64_t kPluginAbi =
    12 + 16 * (sizeof(TensorDesc) +
               512 * (sizeof(Storage) +
                      512 * (sizeof(Attrs) +
                             512 * (sizeof(TensorSpec) + 512 * (sizeof(HostServices) + 512 * sizeof(DeviceMoves))))));

/// The interface of a CUDA device. Throws DeviceError with the reason if the device is absent.
CudaDeviceApi& cuda_device_api(Device device);
/// The device library; null if there is none.
const DevicePlugin* device_library();

/// Whether a device has been opened; does not open it.
bool device_in_use(Device device);

/// For tests: sets a library to load in place of libkassette_cuda.so. Call it before the first use of CUDA.
void use_device_library(const char* file);

}  // namespace kassette::devices

namespace kassette::ops {
/// Registers the device library's kernels with their ops and fills in the services. Returns false, and does nothing, if
/// the library was built for other ops. Defined in ops/engine/connect.cpp.
bool connect_plugin(const devices::DevicePlugin& plugin, devices::HostServices* services);
}  // namespace kassette::ops

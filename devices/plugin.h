// devices/plugin.h - what libkassette.so and a device library hand each other.
#pragma once
#include <atomic>
#include <cstdint>

#include "core/impl.h"

namespace kassette {

struct OpCall;            // ops/op.h
struct Strided;           // ops/strided.h
struct SparseView;        // ops/sparse_view.h
struct DeviceConvLimits;  // ops/conv.h
struct DeviceChain;       // ops/device_chain.h

struct DeviceStream;  // devices/cuda/cuda.h
struct DeviceGraph;   // devices/cuda/graph.cpp

/// The backend of a CUDA device: streams, and copies that the host does not wait for, beside what every device has.
class DeviceBackend : public Backend {
 public:
  /// The stream of a cudaStream_t, or where that is null one that nobody has. Each call is answered by one of close(); what is returned lives until
  /// the process ends.
  virtual DeviceStream& stream_of(void* native) = 0;
  /// Where the last who had it closes it, memory that was freed in its order becomes that of the device's own stream.
  virtual void close(DeviceStream& stream) noexcept = 0;
  /// The one that the calling thread enqueues on.
  virtual DeviceStream& current() noexcept = 0;
  virtual void set_current(DeviceStream& stream) noexcept = 0;
  virtual void* native(DeviceStream& stream) = 0;
  /// What is enqueued on `second` from now on runs after what has been enqueued on `first`, of this or another device.
  virtual void order(DeviceStream& first, DeviceStream& second) = 0;
  /// Returns when what has been enqueued has run; on all streams of the device, those of other libraries too.
  virtual void wait(DeviceStream& stream) = 0;
  virtual void wait_for_all() = 0;
  /// As copy_from_host, and returns at once: `from` stays as it is until `keep` is released, some time after the copy.
  virtual void copy_from_host_later(void* to, const void* from, std::int64_t bytes, Owner keep) = 0;
  /// From another device of this library; enqueued, in the order of both.
  virtual void copy_from(DeviceBackend& other, void* to, const void* from, std::int64_t bytes) = 0;

  // See Note [Graphs] in devices/cuda/graph.cpp.
  /// From now on what the calling thread enqueues on its stream is captured, until end_capture. False where it is not, and nothing is to be ended.
  /// A `graph` is made where that is null; it is for calls that enqueue the same.
  virtual bool begin_capture(DeviceGraph*& graph) = 0;
  /// Launches what the calling thread has captured, as one graph; what it enqueues now is no longer captured. False where it captures nothing.
  /// Throws where CUDA refuses: then nothing of it runs.
  virtual bool launch_captured() = 0;
  /// Drops what was captured and not launched. Returns why CUDA has refused it; null where it has not.
  virtual const char* end_capture() noexcept = 0;
  virtual void destroy(DeviceGraph* graph) noexcept = 0;
  /// The stream on which what is captured on this one will be launched; else this one.
  virtual DeviceStream& launched_on(DeviceStream& stream) noexcept = 0;
};

/// While it lives, what the calling thread enqueues is not captured: what others read is enqueued at once.
class NotCaptured {
 public:
  explicit NotCaptured(DeviceBackend& backend) : backend_(backend), before_(backend.current()) {
    backend_.set_current(backend_.launched_on(before_));
  }
  ~NotCaptured() { backend_.set_current(before_); }
  NotCaptured(const NotCaptured&) = delete;
  NotCaptured& operator=(const NotCaptured&) = delete;

 private:
  DeviceBackend& backend_;
  DeviceStream& before_;
};

/// What can be said of a device without opening it.
struct DeviceFacts {
  char name[256];
  std::int64_t memory;  // bytes
  int major, minor;     // its compute capability
};

/// A kernel of the device library, by the name of its row.
struct PluginKernel {
  const char* op;
  void (*run)(const OpCall& call);
};

/// Numbers that go with a refusal (ops/refusals.h).
inline constexpr int kFaultNumbers = 5;

/// What the library does for kernels of the device library, which cannot reach its hidden symbols.
struct HostServices {
  /// Gives an output storage of its shape, for rows whose kernel does that itself.
  void (*allocate_output)(Body& out, Device device);
  /// Makes output 0 share the storage of an input.
  void (*share_input)(const OpCall& call, int i);
  /// Calls use(state, view) with a SparseView::Part of the indices that are input 0, in memory of the call's device; the dense shape
  /// is another input. What is seen lives until the kernels have run that `use` enqueues.
  void (*with_sparse_index)(const OpCall& call, int dense_shape, int part,
                            void (*use)(void* state, const SparseView& view), void* state);
  const DeviceConvLimits* convolution;
  /// Whether products of float32 may be computed in TF32.
  const std::atomic<bool>* allow_tf32;
  /// Throws what a kernel found wrong: a Refusal (ops/refusals.h) and its numbers. `late`: of an op that was called before.
  void (*refuse)(int refusal, const std::int64_t* numbers, bool late);
};

/// What ops are made of whose kernel is otherwise the same on every device (ops/strided.h, ops/tile.cpp); enqueued.
struct DeviceMoves {
  void (*copy_strided)(Device device, const Strided& layout, const void* from, void* to, int size);
  void (*zero)(Device device, void* to, std::int64_t bytes);
  /// Sets `count` elements of `size` bytes (1, 2, 4 or 8) to the low bytes of `bits`, an argument of the kernel: nothing is copied from the host.
  void (*fill)(Device device, void* to, std::int64_t count, std::uint64_t bits, int size);
  /// Output 0: every element of `kept` in input 0, summed over all of `copies`.
  void (*sum_copies)(const OpCall& call, const Strided& kept, const Strided& copies);
  void (*run_chain)(Device device, const DeviceChain& chain);
  /// Memory of the host that the device copies from and to at full speed; null where there is none left. Kept for reuse.
  void* (*allocate_pinned)(std::int64_t bytes);
  void (*release_pinned)(void* data, std::int64_t bytes);
};

/// The one thing that the device library exports, from `extern "C" const DevicePlugin* kassette_cuda_plugin()`.
struct DevicePlugin {
  std::uint64_t abi;  // kPluginAbi of the headers it was built with; all else means something only if that is ours
  int n_kernels;
  const PluginKernel* kernels;
  /// The backend of a device, made once and never destroyed; null where there is none, then `why` has the reason.
  DeviceBackend* (*open)(int index, const HostServices& services, char* why, int why_bytes);
  /// How many devices there are; 0 where there is no driver.
  int (*count)();
  bool (*describe)(int index, DeviceFacts* facts);
  DeviceMoves moves;
  std::uint64_t chain_abi;  // kChainAbi (ops/device_chain.h)
};

/// Changes with the layout of what both sides touch. Count it up when a meaning changes and no size does.
inline constexpr std::uint64_t kPluginAbi =
    8 + 16 * (sizeof(Body) +
              512 * (sizeof(Storage) +
                     512 * (sizeof(Attrs) +
                            512 * (sizeof(TensorSpec) + 512 * (sizeof(HostServices) + 512 * sizeof(DeviceMoves))))));

/// Puts the kernels into the column of their rows and fills in the services; returns false, and does nothing, where the library was built for other ops.
/// Defined where the rows are: ops/connect.cpp.
bool connect_plugin(const DevicePlugin& plugin, HostServices* services);

/// Of a CUDA device. Throws DeviceError with the reason where it is absent.
DeviceBackend& device_backend(Device device);
/// The library; null where there is none.
const DevicePlugin* device_library();

/// Whether a device has been opened; does not open it.
bool device_in_use(Device device);

/// For tests, before CUDA is first asked for: a library that stands in for libkassette_cuda.so.
void use_device_library(const char* file);

}  // namespace kassette

// core/runtime.h - what a program can ask of the library as it runs, and set: threads, memory, configuration.
#ifndef KASSETTE_RUNTIME_H
#define KASSETTE_RUNTIME_H
#include <cstdint>
#include <iosfwd>

#include <kassette/device.h>

namespace kassette {

/// How many threads an op may use; the calling thread is one of them. Initially KASSETTE_NUM_THREADS, or what the CPU
/// affinity and the cgroup of the process allow.
KASSETTE_API int num_threads();
/// The one knob for all CPU work, matrix products included. 0 means what affinity and cgroup allow. Results do not
/// depend on it. Throws ValueError unless 0 <= n <= 256.
KASSETTE_API void set_num_threads(int n);

/// Bytes of tensors on a device. Blocks that were freed are kept for reuse: they count as `cached`.
struct MemoryStats {
  std::int64_t live;         ///< held by tensors, rounded up to whole blocks
  std::int64_t cached;       ///< free, kept for reuse
  std::int64_t peak;         ///< highest `live` since the start or reset_peak_memory()
  std::int64_t limit;        ///< what live and cached together may reach; 0: no limit
  std::int64_t allocations;  ///< blocks taken from the system since the start
};
KASSETTE_API std::ostream& operator<<(std::ostream& os, const MemoryStats& stats);

/// Throws DeviceError where there is no such device.
KASSETTE_API MemoryStats memory_stats(Device device = cpu);
KASSETTE_API void reset_peak_memory(Device device = cpu);
/// An allocation that would pass the limit gives back cached blocks first, then throws MemoryError. 0: no limit. On the
/// CPU tensors of up to 4 KiB are not counted. Throws ValueError on a negative number.
KASSETTE_API void set_memory_limit(std::int64_t bytes, Device device = cpu);
/// Gives cached blocks back to the system.
KASSETTE_API void empty_cache(Device device = cpu);

/// While it lives, what this thread makes of numbers, lists and draws lies on that device: constants, variables,
/// placeholders, zeros, ranges, random tensors. Ops run where their operands are. Throws DeviceError where there is no
/// such device.
class KASSETTE_API DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device before_;
};

/// Recorded ops that tensors keep alive, in all threads.
KASSETTE_API std::int64_t live_nodes();
/// Bytes that those hold for gradients and replays.
KASSETTE_API std::int64_t saved_bytes();

}  // namespace kassette

#endif  // KASSETTE_RUNTIME_H

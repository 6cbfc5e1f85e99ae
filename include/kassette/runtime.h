// include/kassette/runtime.h - what a program can query and set while it runs: threads, memory, configuration.
#ifndef KASSETTE_RUNTIME_H
#define KASSETTE_RUNTIME_H
#include <cstdint>
#include <iosfwd>

#include <kassette/device.h>

namespace kassette {

/// The number of threads that an op may use, the calling thread included. Initially KASSETTE_NUM_THREADS, or as many as
/// the CPU affinity and the cgroup of the process allow.
KASSETTE_API int num_threads();
/// Sets the number of threads for all CPU work, matrix products included. 0 means as many as affinity and cgroup allow.
/// Results do not depend on it. Throws ValueError unless 0 <= n <= 256.
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

/// The statistics of a device. Throws DeviceError if there is no such device.
KASSETTE_API MemoryStats memory_stats(Device device = cpu);
KASSETTE_API void reset_peak_memory(Device device = cpu);
/// Limits the memory of a device; 0 means no limit. An allocation that would exceed the limit first gives back cached
/// blocks, and throws MemoryError if that is not enough. On the CPU, tensors of up to 4 KiB are not counted. Throws
/// ValueError for a negative number.
KASSETTE_API void set_memory_limit(std::int64_t bytes, Device device = cpu);
/// Gives cached blocks back to the system.
KASSETTE_API void empty_cache(Device device = cpu);

/// While it lives, tensors that this thread makes from numbers, lists and random draws are placed on that device:
/// constants, variables, placeholders, zeros, ranges, random tensors. Ops run where their operands are. Throws
/// DeviceError if there is no such device.
class KASSETTE_API DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device before_;
};

/// The number of recorded ops that tensors keep alive, in all threads.
KASSETTE_API std::int64_t live_nodes();
/// The bytes that these ops hold for gradients and replays.
KASSETTE_API std::int64_t saved_bytes();

}  // namespace kassette

#endif  // KASSETTE_RUNTIME_H

// core/storage.h - the bytes of tensors, and the interface of a device.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <kassette/device.h>
#include <kassette/runtime.h>

#include "core/context.h"
#include "core/ref.h"

namespace kassette {

/// The interface of a device: memory, copies and synchronization. There is one instance for the CPU and one for each
/// CUDA device in use.
class DeviceApi {
 public:
  virtual ~DeviceApi() = default;
  /// Returns a 64-aligned block; `bytes` > 0. Throws MemoryError, which says how much was asked for and how much is in
  /// use.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* data, std::int64_t bytes) noexcept = 0;
  /// Copy between this device and the host, or within this device. A copy to the host returns when the bytes have
  /// arrived; a copy to the device returns when it is ordered before all work that is enqueued later.
  virtual void copy_from_host(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void synchronize() = 0;
  /// The native stream that kernels enqueue on; null on the CPU.
  virtual void* stream() = 0;
  // For <kassette/runtime.h>.
  virtual MemoryStats memory_stats() = 0;
  virtual void reset_peak_memory() = 0;
  virtual void set_memory_limit(std::int64_t bytes) = 0;
  virtual void empty_cache() = 0;
};
/// The interface of a device; loads CUDA at first use. Throws DeviceError with the reason if the device is absent.
DeviceApi& device_api(Device device);
/// Why a device is absent, in one line; null if it is present.
const char* device_absent(Device device);

/// Keeps borrowed memory alive: release(state) is called once when it is no longer used.
struct Owner {
  void (*release)(void* state);
  void* state;
};

/// A ref-counted block of bytes, which tensors share. Up to 4 KiB on the CPU header and data are one pooled block.
struct Storage {
  std::atomic<std::int32_t> count{1};
  Device device;
  /// Where the bytes are: after the header in a pooled block, in a block of the device, or in memory that other code
  /// owns.
  enum Kind : std::uint8_t { kPooled, kDevice, kBorrowed } kind;
  std::int64_t bytes;
  void* data;
  Owner* owner = nullptr;

  static constexpr std::int64_t kMaxSmall = 4096;  // bytes of data in a pooled block
  // Larger pooled blocks start on a cache line, and so does their data: loading a vector that straddles two lines costs
  // double.
  static constexpr std::size_t header_bytes(std::int64_t bytes) { return bytes > 960 ? 64 : sizeof(Storage); }

  static Ref<Storage> allocate(std::int64_t bytes, Device device) { return allocate(context(), bytes, device); }
  static Ref<Storage> allocate(Context& c, std::int64_t bytes, Device device) {
    return device.type() == Device::kCpu && bytes <= kMaxSmall ? allocate_small(c, bytes, device)
                                                               : allocate_large(bytes, device);
  }
  static Ref<Storage> allocate_small(Context& c, std::int64_t bytes, Device device) {
    std::size_t header = header_bytes(bytes);
    void* block = pool_allocate(c, header + bytes);
    c.live_bytes.add(bytes);
    return Ref<Storage>::adopt(new (block) Storage{1, device, kPooled, bytes, static_cast<char*>(block) + header});
  }
  static Ref<Storage> allocate_large(std::int64_t bytes, Device device);
  /// Wraps memory that the caller owns: `owner` is called once, when the last tensor over it is gone.
  static Ref<Storage> borrow(const void* data, std::int64_t bytes, Owner owner);
  static void destroy(Storage* s) noexcept;
  /// Ref<Storage>::drop for callers that already have the context.
  static void drop(Context& c, Storage* s) noexcept {
    if (!s || !Ref<Storage>::drop_is_last(s)) return;
    if (s->kind == kPooled) free_small(c, s);
    else destroy(s);
  }
  static void free_small(Context& c, Storage* s) noexcept {
    std::int64_t bytes = s->bytes;
    c.live_bytes.add(-bytes);
    pool_free(c, s, header_bytes(bytes) + bytes);
  }
};
static_assert(sizeof(Storage) == 32);

}  // namespace kassette

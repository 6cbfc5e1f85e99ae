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

/// A device: the only virtual interface. The CPU has one, every CUDA device that was asked for has one.
class Backend {
 public:
  virtual ~Backend() = default;
  /// `bytes` > 0, 64-aligned. Throws MemoryError with what was asked and what is held.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* data, std::int64_t bytes) noexcept = 0;
  /// Between this device and the host, or within this device; returns when the bytes are there (host side) or ordered
  /// before what is enqueued later (device side).
  virtual void copy_from_host(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void synchronize() = 0;
  /// The stream that kernels enqueue on; null on the CPU.
  virtual void* stream() = 0;
  // What <kassette/runtime.h> asks.
  virtual MemoryStats memory_stats() = 0;
  virtual void reset_peak_memory() = 0;
  virtual void set_memory_limit(std::int64_t bytes) = 0;
  virtual void empty_cache() = 0;
};
/// The backend of a device; loads CUDA when it is first asked for. Throws DeviceError with the reason where it is absent.
Backend& backend_of(Device device);
/// Why a device is absent, in one line; null where it is there.
const char* device_absent(Device device);

/// What keeps borrowed memory alive.
struct Owner {
  void (*release)(void* state);
  void* state;
};

/// A block of bytes. Up to 4 KiB on the CPU: header and data are one pooled block.
struct Storage {
  std::atomic<std::int32_t> count{1};
  Device device;
  enum Kind : std::uint8_t { kPooled, kDevice, kBorrowed } kind;
  std::int64_t bytes;
  void* data;
  Owner* owner = nullptr;

  static constexpr std::int64_t kMaxSmall = 4096;  // bytes of data in a pooled block
  // Larger pooled blocks start on a cache line, and so does their data: a vector that straddles two lines costs double.
  static constexpr std::size_t header_bytes(std::int64_t bytes) { return bytes > 960 ? 64 : sizeof(Storage); }

  static Ref<Storage> allocate(std::int64_t bytes, Device device) { return allocate(context(), bytes, device); }
  static Ref<Storage> allocate(Context& c, std::int64_t bytes, Device device) {
    return device.type() == Device::kCpu && bytes <= kMaxSmall ? allocate_small(c, bytes, device)
                                                               : allocate_large(bytes, device);
  }
  static Ref<Storage> allocate_small(Context& c, std::int64_t bytes, Device device) {
    std::size_t header = header_bytes(bytes);
    void* block = pool_allocate(c, header + static_cast<std::size_t>(bytes));
    c.live_bytes.add(bytes);
    return Ref<Storage>::adopt(new (block) Storage{1, device, kPooled, bytes, static_cast<char*>(block) + header});
  }
  static Ref<Storage> allocate_large(std::int64_t bytes, Device device);
  /// Memory of somebody else: `owner` is called once when the last tensor over it is gone.
  static Ref<Storage> borrow(const void* data, std::int64_t bytes, Owner owner);
  static void destroy(Storage* s) noexcept;
  /// Ref<Storage>::drop, for who has the context at hand.
  static void drop(Context& c, Storage* s) noexcept {
    if (!s || !Ref<Storage>::drop_is_last(s)) return;
    if (s->kind == kPooled) free_small(c, s);
    else destroy(s);
  }
  static void free_small(Context& c, Storage* s) noexcept {
    std::int64_t bytes = s->bytes;
    c.live_bytes.add(-bytes);
    pool_free(c, s, header_bytes(bytes) + static_cast<std::size_t>(bytes));
  }
};
static_assert(sizeof(Storage) == 32);

}  // namespace kassette

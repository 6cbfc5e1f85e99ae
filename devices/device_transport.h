// devices/device_transport.h - how ranks exchange between the memories of their GPUs: what a library beside that of the device
// (libkassette_nccl.so) implements.
#pragma once
#include <cstdint>
#include <string>

#include "devices/transport.h"

namespace kassette {

/// Elements that are combined over the ranks.
struct DevicePart {
  const void* in;
  void* out;  // other memory than `in`
  std::int64_t count;
  DType dtype;
  void* room;  // for packed_size(dtype, how) times `count` bytes; null where that is 0
};

/// The bytes that an element takes while it is combined; 0 where that is done with the elements as they are. Half types are combined as
/// float32 and 16-bit integers as int32, which NCCL lacks. So that the extremes of floats are NaN where one of them is, and -0 lies
/// below +0, they are found among integers in the same order.
inline int packed_size(DType dtype, Combine how) {
  if (dtype.size() == 2) return 4;
  const bool extreme = how == Combine::min || how == Combine::max;
  return extreme && dtype.is_float() ? dtype.size() : 0;
}

/// A group of ranks with a GPU each. Buffers are memory of that GPU, and a call returns when its work is enqueued on the stream that was
/// given to `join`. Every call is made by all ranks of the group, in the same order, by one thread at a time. A call that fails
/// throws std::runtime_error with one line.
class DeviceCommunicator {
 public:
  /// Each part combined, then divided by `divisor`; all parts in one message where that pays.
  virtual void all_reduce(const DevicePart* parts, int n, Combine how, int divisor) = 0;
  /// Sums, on `root`; zeros on the other ranks.
  virtual void reduce(const DevicePart* parts, int n, int root) = 0;
  virtual void broadcast(const DevicePart* parts, int n, int root) = 0;
  /// bytes[r]: those of rank r, whose part of `out` follows those of the ranks before.
  virtual void all_gather(const void* in, void* out, const std::int64_t* bytes) = 0;
  /// counts[r]: elements of all.in of which rank r gets the combined ones; all.out has room for those of this rank.
  virtual void reduce_scatter(const DevicePart& all, const std::int64_t* counts, Combine how, int divisor) = 0;
  /// Part r of `in` goes to rank r, whose part comes to part r of `out`.
  virtual void all_to_all(const void* in, void* out, std::int64_t part_bytes) = 0;

  /// A mark behind what has been enqueued.
  virtual void* mark() = 0;
  // In any thread.
  /// Whether all that was enqueued before the mark has run; if so the mark is gone.
  virtual bool passed(void* mark) = 0;
  /// What went wrong since, where no call can say it: between the GPUs, or on another rank. Empty where nothing did.
  virtual std::string failure() = 0;

 protected:
  ~DeviceCommunicator() = default;  // communicators live until the process ends
};

/// What the library exports: `extern "C" const DeviceTransport* kassette_nccl_transport()`.
struct DeviceTransport {
  static constexpr int kIdBytes = 128, kNameBytes = 40;
  std::uint64_t abi;  // kDeviceTransportAbi of the headers that it was built with
  /// A name that a GPU of this machine shares with no other one; false where it cannot be had, then `why` has the reason.
  bool (*name_gpu)(int index, char* name, char* why, int why_bytes);
  /// On one rank: the id of a new group, of kIdBytes bytes, for `join` on all of its ranks.
  bool (*new_id)(void* id, char* why, int why_bytes);
  /// Waits for the other ranks. Null where it fails.
  DeviceCommunicator* (*join)(const void* id, int rank, int size, int gpu, void* stream, char* why, int why_bytes);
  const char* (*describe)();  // "NCCL 2.28.9"
};

inline constexpr std::uint64_t kDeviceTransportAbi = 1;

}  // namespace kassette

// devices/device_transport.h - collectives between the GPUs of ranks: the interface that libkassette_nccl.so
// implements.
#pragma once
#include <cstdint>
#include <string>

#include "devices/transport.h"

namespace kassette::devices {

/// An array whose elements are combined over the ranks.
struct DevicePart {
  const void* in;
  void* out;  // must not overlap `in`
  std::int64_t count;
  DType dtype;
  void* room;  // scratch of packed_size(dtype, how) * count bytes; null if that is 0
};

/// The bytes per element of the packed form in which elements are combined; 0 if they are combined without packing.
/// Half types are packed as float32, and 16-bit integers, which NCCL lacks, as int32. For min and max, floats are
/// packed as integers in the same order, so that the result is NaN if any element is, and -0 is less than +0.
inline int packed_size(DType dtype, Reduction how) {
  if (dtype.size() == 2) return 4;
  const bool extreme = how == Reduction::min || how == Reduction::max;
  return extreme && dtype.is_float() ? dtype.size() : 0;
}

/// A group of ranks with one GPU each. Buffers are memory of that GPU, and a call returns when its work is enqueued on
/// the stream that was passed to `join`. All ranks of the group make the same calls in the same order, each from one
/// thread at a time. A call that fails throws std::runtime_error with a message of one line.
class DeviceCommunicator {
 public:
  /// Combines each part, then divides it by `divisor`; parts share a message if that is faster.
  virtual void all_reduce(const DevicePart* parts, int n, Reduction how, int divisor) = 0;
  /// The sums on `root`; zeros on the other ranks.
  virtual void reduce(const DevicePart* parts, int n, int root) = 0;
  virtual void broadcast(const DevicePart* parts, int n, int root) = 0;
  /// Concatenates the parts of all ranks in `out`, in the order of ranks. bytes[r]: the size of rank r's part.
  virtual void all_gather(const void* in, void* out, const std::int64_t* bytes) = 0;
  /// Combines all.in and divides it among the ranks: rank r gets counts[r] elements. all.out has room for those of this
  /// rank.
  virtual void reduce_scatter(const DevicePart& all, const std::int64_t* counts, Reduction how, int divisor) = 0;
  /// Sends part r of `in` to rank r, and receives rank r's part into part r of `out`.
  virtual void all_to_all(const void* in, void* out, std::int64_t part_bytes) = 0;

  /// Enqueues an event after all work so far.
  virtual void* record_event() = 0;
  // May be called in any thread.
  /// Whether all work before the event has run; if so, the event is freed.
  virtual bool event_passed(void* event) = 0;
  /// An asynchronous error, between the GPUs or on another rank, that no call has reported. Empty if there is none.
  virtual std::string failure() = 0;

 protected:
  ~DeviceCommunicator() = default;  // communicators live until the process ends
};

/// The table of functions that the library exports by `extern "C" const DeviceTransport* kassette_nccl_transport()`.
struct DeviceTransport {
  static constexpr int kIdBytes = 128, kNameBytes = 40;
  std::uint64_t abi;  // kDeviceTransportAbi of the headers that it was built with
  /// Writes a name that identifies a GPU of this machine. Returns false, with the reason in `why`, if that fails.
  bool (*name_gpu)(int index, char* name, char* why, int why_bytes);
  /// Called on one rank: makes the id of a new group, of kIdBytes bytes, which all of its ranks pass to `join`.
  bool (*new_id)(void* id, char* why, int why_bytes);
  /// Joins a group; waits for the other ranks. Returns null, with the reason in `why`, if that fails.
  DeviceCommunicator* (*join)(const void* id, int rank, int size, int gpu, void* stream, char* why, int why_bytes);
  const char* (*describe)();  // "NCCL 2.28.9"
};

inline constexpr std::uint64_t kDeviceTransportAbi = 3;

}  // namespace kassette::devices

// devices/nccl/communicator.cpp - the transport of libkassette_nccl.so: NCCL 2.13 or later, for ncclGetLastError.
#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "devices/cuda/driver.h"
#include "devices/nccl/packing.h"

namespace kassette::nccl {
using namespace devices;
namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA says: ") + cudaGetErrorString(error));
}
std::string words_of(ncclResult_t result) {
  std::string words = std::string("NCCL says: ") + ncclGetErrorString(result);
  if (const char* more = ncclGetLastError(nullptr); more && *more) words += std::string(" (") + more + ")";
  for (char& c : words)
    if (c == '\n') c = ' ';
  return words;
}
void check(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(words_of(result));
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype.code()) {
    case DType::kBool:  // 0 or 1: the minimum is all, the maximum any
    case DType::kUint8: return ncclUint8;
    case DType::kUint32: return ncclUint32;
    case DType::kUint64: return ncclUint64;
    case DType::kInt8: return ncclInt8;
    case DType::kInt32: return ncclInt32;
    case DType::kInt64: return ncclInt64;
    case DType::kFloat32: return ncclFloat32;
    case DType::kFloat64: return ncclFloat64;
    default: throw std::runtime_error("NCCL combines no half types here, and no integers of 16 bits");
  }
}
ncclRedOp_t op_of(Reduction how) {
  switch (how) {
    case Reduction::prod: return ncclProd;
    case Reduction::min: return ncclMin;
    case Reduction::max: return ncclMax;
    default: return ncclSum;
  }
}

/// Makes a GPU the current one of this thread, and at the end the one that was: see Driver.
class OnGpu {
 public:
  explicit OnGpu(int gpu) {
    cuda::driver().get_current(&before_);
    error = cudaSetDevice(gpu);
  }
  ~OnGpu() { cuda::driver().set_current(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  cudaError_t error;

 private:
  CUcontext before_ = nullptr;
};

/// Calls between its beginning and end() are one message, and run at the same time.
class Group {
 public:
  Group() { check(ncclGroupStart()); }
  ~Group() {
    if (open_) ncclGroupEnd();  // a call has failed
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end() {
    open_ = false;
    check(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

const std::byte* at(const void* data, std::int64_t bytes) { return static_cast<const std::byte*>(data) + bytes; }
std::byte* at(void* data, std::int64_t bytes) { return static_cast<std::byte*>(data) + bytes; }
std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(ncclComm_t comm, int rank, int size, int gpu, cudaStream_t stream)
      : comm_(comm), rank_(rank), size_(size), gpu_(gpu), stream_(stream) {}

  void all_reduce(const DevicePart* parts, int n, Reduction how, int divisor) override {
    const OnGpu now(gpu_);
    check_state(now);
    pack_all(parts, n, how);
    Group group;
    for (const DevicePart* p = parts; p < parts + n; ++p)
      if (p->count)
        check(ncclAllReduce(sent(*p), received(*p), size(p->count), wire(*p, how), op_of(how), comm_, stream_));
    group.end();
    unpack_all(parts, n, how, divisor);
  }

  void reduce(const DevicePart* parts, int n, int root) override {
    const OnGpu now(gpu_);
    check_state(now);
    pack_all(parts, n, Reduction::sum);
    Group group;
    for (const DevicePart* p = parts; p < parts + n; ++p)
      if (p->count)
        check(ncclReduce(sent(*p), received(*p), size(p->count), wire(*p, Reduction::sum), ncclSum, root, comm_,
                         stream_));
    group.end();
    if (rank_ == root) return unpack_all(parts, n, Reduction::sum, 1);
    for (const DevicePart* p = parts; p < parts + n; ++p)
      if (p->count) check(cudaMemsetAsync(p->out, 0, size(p->count * p->dtype.size()), stream_));
  }

  void broadcast(const DevicePart* parts, int n, int root) override {
    const OnGpu now(gpu_);
    check_state(now);
    Group group;
    for (const DevicePart* p = parts; p < parts + n; ++p)
      if (p->count)
        check(ncclBroadcast(p->in, p->out, size(p->count * p->dtype.size()), ncclUint8, root, comm_, stream_));
    group.end();
  }

  void all_gather(const void* in, void* out, const std::int64_t* bytes) override {
    const OnGpu now(gpu_);
    check_state(now);
    if (are_equal(bytes)) {
      if (bytes[0]) check(ncclAllGather(in, out, size(bytes[0]), ncclUint8, comm_, stream_));
      return;
    }
    Group group;
    for (int r = 0; r < size_; out = at(out, bytes[r++]))
      if (bytes[r]) check(ncclBroadcast(in, out, size(bytes[r]), ncclUint8, r, comm_, stream_));
    group.end();
  }

  void reduce_scatter(const DevicePart& all, const std::int64_t* counts, Reduction how, int divisor) override {
    const OnGpu now(gpu_);
    check_state(now);
    pack_all(&all, 1, how);
    const ncclDataType_t type = wire(all, how);
    const std::int64_t element = all.room ? packed_size(all.dtype, how) : all.dtype.size();
    std::int64_t before = 0;  // the elements of the ranks before this one
    for (int r = 0; r < rank_; ++r) before += counts[r];
    // In `room` the result stays where its elements were, which NCCL calls "in place".
    void* mine = all.room ? at(all.room, before * element) : all.out;
    if (are_equal(counts)) {
      if (counts[0]) check(ncclReduceScatter(sent(all), mine, size(counts[0]), type, op_of(how), comm_, stream_));
    } else {
      const void* part = sent(all);
      Group group;
      for (int r = 0; r < size_; part = at(part, counts[r++] * element))
        if (counts[r])
          // `mine` is written on rank r.
          check(ncclReduce(part, mine, size(counts[r]), type, op_of(how), r, comm_, stream_));
      group.end();
    }
    if (counts[rank_] && (all.room || divisor != 1))
      unpack(stream_, all.out, mine, counts[rank_], all.dtype, how, divisor);
  }

  void all_to_all(const void* in, void* out, std::int64_t part_bytes) override {
    const OnGpu now(gpu_);
    check_state(now);
    if (!part_bytes) return;
    Group group;
    for (int r = 0; r < size_; ++r) {
      check(ncclSend(at(in, r * part_bytes), size(part_bytes), ncclUint8, r, comm_, stream_));
      check(ncclRecv(at(out, r * part_bytes), size(part_bytes), ncclUint8, r, comm_, stream_));
    }
    group.end();
  }

  void* record_event() override {
    const OnGpu now(gpu_);
    check(now.error);
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventRecord(event, stream_));
    return event;
  }
  bool event_passed(void* recorded) override {
    const OnGpu now(gpu_);  // or else CUDA may start on another one for this thread
    const auto event = static_cast<cudaEvent_t>(recorded);
    // Other errors are reported by whoever waits for the stream.
    if (cudaEventQuery(event) == cudaErrorNotReady) return false;
    cudaEventDestroy(event);
    return true;
  }
  std::string failure() override {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    if (asked != ncclSuccess) state = asked;
    return state == ncclSuccess || state == ncclInProgress ? std::string() : words_of(state);
  }

 private:
  void check_state(const OnGpu& now) {
    check(now.error);
    if (const std::string why = failure(); !why.empty()) throw std::runtime_error(why);
  }
  bool are_equal(const std::int64_t* counts) const {
    for (int r = 1; r < size_; ++r)
      if (counts[r] != counts[0]) return false;
    return true;
  }

  static ncclDataType_t wire(const DevicePart& p, Reduction how) { return type_of(packed_dtype(p.dtype, how)); }
  static const void* sent(const DevicePart& p) { return p.room ? p.room : p.in; }
  static void* received(const DevicePart& p) { return p.room ? p.room : p.out; }
  void pack_all(const DevicePart* parts, int n, Reduction how) {
    for (const DevicePart* p = parts; p < parts + n; ++p)
      if (p->room) pack(stream_, p->room, p->in, p->count, p->dtype, how);
  }
  void unpack_all(const DevicePart* parts, int n, Reduction how, int divisor) {
    for (const DevicePart* p = parts; p < parts + n; ++p)
      if (p->count && (p->room || divisor != 1))
        unpack(stream_, p->out, received(*p), p->count, p->dtype, how, divisor);
  }

  const ncclComm_t comm_;
  const int rank_, size_, gpu_;
  const cudaStream_t stream_;
};

/// run(), whose error goes to `why`.
template <class F>
auto caught(char* why, int why_bytes, F run) -> decltype(run()) {
  try {
    return run();
  } catch (const std::exception& e) {
    std::snprintf(why, static_cast<std::size_t>(why_bytes), "%s", e.what());
    return {};
  }
}

bool name_gpu(int index, char* name, char* why, int why_bytes) {
  return caught(why, why_bytes, [&] {
    check(cudaDeviceGetPCIBusId(name, DeviceTransport::kNameBytes, index));
    return true;
  });
}

bool new_id(void* id, char* why, int why_bytes) {
  static_assert(sizeof(ncclUniqueId) == DeviceTransport::kIdBytes);
  return caught(why, why_bytes, [&] {
    ncclUniqueId made;
    check(ncclGetUniqueId(&made));
    std::memcpy(id, &made, sizeof made);
    return true;
  });
}

DeviceCommunicator* join(const void* id, int rank, int size, int gpu, void* stream, char* why, int why_bytes) {
  return caught(why, why_bytes, [&]() -> DeviceCommunicator* {
    ncclUniqueId given;
    std::memcpy(&given, id, sizeof given);
    if (!cuda::find_driver()) throw std::runtime_error("the CUDA driver lacks functions that this library needs");
    const OnGpu now(gpu);
    check(now.error);
    ncclComm_t comm;
    check(ncclCommInitRank(&comm, size, given, rank));
    return new NcclCommunicator(comm, rank, size, gpu, static_cast<cudaStream_t>(stream));
  });
}

const char* describe() {
  static char words[32];
  int version = 0;
  ncclGetVersion(&version);  // 22809 is 2.28.9
  std::snprintf(words, sizeof words, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  return words;
}

constexpr DeviceTransport kTransport{kDeviceTransportAbi, name_gpu, new_id, join, describe};

}  // namespace
}  // namespace kassette::nccl

extern "C" __attribute__((visibility("default"))) const kassette::devices::DeviceTransport* kassette_nccl_transport() {
  return &kassette::nccl::kTransport;
}

// tests/emulated_cuda/nccl.cpp - an NCCL whose ranks are processes of one machine.
//
// All calls are built from messages: each pair of ranks has a mailbox in shared memory, which holds a piece of one
// message. A collective call is a message from each sending to each receiving rank, and each rank combines the data it
// has received in the order of ranks, so that all have the same bits. The sends and receives of a group progress
// together, a piece at a time.
#include "nccl.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kPiece = 32 << 10;

/// The header that both ends of a message state; if they are not equal, the calls of the ranks differ.
struct Label {
  int call, root, type, op;
  std::size_t n;
  bool operator==(const Label&) const = default;
};

/// Holds one piece of a message from one rank to another.
struct Mailbox {
  std::atomic<int> full;
  Label label;
  std::byte bytes[kPiece];
};

[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "emulated NCCL: %s\n", why);
  std::abort();
}
[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}
void wait_a_little() { usleep(20); }

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16: return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 4;
  }
}

template <class T>
T combine(T a, T b, ncclRedOp_t op) {
  // Integers wrap around. As in NCCL, the maximum and minimum of floats ignore NaN.
  if (op == ncclMax) return b > a ? b : a;
  if (op == ncclMin) return b < a ? b : a;
  return static_cast<T>(op == ncclProd ? a * b : a + b);
}
template <class T>
void combine_all(void* to, const void* from, std::size_t n, ncclRedOp_t op) {
  auto* a = static_cast<T*>(to);
  auto* b = static_cast<const T*>(from);
  for (std::size_t i = 0; i < n; ++i) a[i] = combine(a[i], b[i], op);
}
void combine_all(void* to, const void* from, std::size_t n, ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: return combine_all<std::int8_t>(to, from, n, op);
    case ncclUint8: return combine_all<std::uint8_t>(to, from, n, op);
    case ncclInt32: return combine_all<std::int32_t>(to, from, n, op);
    case ncclUint32: return combine_all<std::uint32_t>(to, from, n, op);
    case ncclInt64: return combine_all<std::int64_t>(to, from, n, op);
    case ncclUint64: return combine_all<std::uint64_t>(to, from, n, op);
    case ncclFloat32: return combine_all<float>(to, from, n, op);
    case ncclFloat64: return combine_all<double>(to, from, n, op);
    default: die("a reduction of a type that it does not have");
  }
}

int number_in(const char* variable) {
  const char* set = std::getenv(variable);
  return set ? std::atoi(set) : 0;
}

}  // namespace

struct EmulatedComm {
  int rank, size;
  std::atomic<int>* joined;
  Mailbox* boxes;  // from rank a to rank b: boxes[a * size + b]
  int calls = 0;
  std::atomic<bool> failed{false};
  Mailbox& box(int from, int to) const { return boxes[from * size + to]; }
};

namespace {

/// A message in transit, as its sender or its receiver sees it.
struct Transfer {
  int peer;
  bool sends;
  Label label;
  std::byte* data;
  std::size_t bytes;
  std::size_t done = 0;
  bool begun = false;
  bool ended() const { return begun && done == bytes; }  // an empty message is one piece of 0 bytes

  /// Moves the next piece, if the mailbox is free (or full, for the receiver); returns true if it did.
  bool step(const EmulatedComm& comm) {
    Mailbox& box = sends ? comm.box(comm.rank, peer) : comm.box(peer, comm.rank);
    if (ended() || box.full.load(std::memory_order_acquire) != (sends ? 0 : 1)) return false;
    const std::size_t piece = std::min(kPiece, bytes - done);
    if (sends) {
      box.label = label;
      std::memcpy(box.bytes, data + done, piece);
    } else {
      if (box.label != label) die("the ranks' calls differ");
      std::memcpy(data + done, box.bytes, piece);
    }
    done += piece;
    begun = true;
    box.full.store(sends ? 1 : 0, std::memory_order_release);
    return true;
  }
};

void run(const EmulatedComm& comm, std::vector<Transfer> transfers) {
  for (bool all = false; !all;) {
    bool moved = false;
    all = true;
    // Messages between the same two ranks go one after the other.
    std::vector<bool> busy(static_cast<std::size_t>(2 * comm.size));
    for (Transfer& t : transfers) {
      if (t.ended()) continue;
      all = false;
      const auto lane = static_cast<std::size_t>(2 * t.peer + t.sends);
      if (!busy[lane]) moved |= t.step(comm);
      busy[lane] = true;
    }
    if (!moved && !all) wait_a_little();
  }
}

enum Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, message };

/// A call: a collective, or a message of a send or a receive.
struct Op {
  Kind kind;
  const void* in;
  void* out;
  std::size_t n;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;  // or the peer
  bool sends;
  ncclComm_t comm;
  cudaStream_t stream;
};

/// Executes a collective call, in the thread that runs the stream.
void run(const Op& o) {
  const EmulatedComm& comm = *o.comm;
  const int me = comm.rank;
  const std::size_t bytes = o.n * bytes_of(o.type);
  const Label label{o.kind, o.root, o.type, o.op, o.n};
  auto* in = const_cast<std::byte*>(static_cast<const std::byte*>(o.in));
  auto* out = static_cast<std::byte*>(o.out);

  const bool gives = o.kind != broadcast || me == o.root, gets = o.kind != reduce || me == o.root;
  const bool combines = o.kind == all_reduce || o.kind == reduce || o.kind == reduce_scatter;
  std::vector<std::byte> given(static_cast<std::size_t>(comm.size) * bytes);  // the data of all ranks
  std::vector<Transfer> transfers;
  for (int r = 0; r < comm.size; ++r) {
    if (gives && (o.kind != reduce || r == o.root))
      transfers.push_back(
          {r, true, label, o.kind == reduce_scatter ? in + static_cast<std::size_t>(r) * bytes : in, bytes});
    if (gets && (o.kind != broadcast || r == o.root))
      transfers.push_back({r, false, label, given.data() + static_cast<std::size_t>(r) * bytes, bytes});
  }
  run(comm, std::move(transfers));
  if (!gets || !bytes) return;
  const std::byte* first = given.data() + (o.kind == broadcast ? static_cast<std::size_t>(o.root) * bytes : 0);
  if (!combines) {
    std::memcpy(out, first, o.kind == all_gather ? given.size() : bytes);
    return;
  }
  for (int r = 1; r < comm.size; ++r)
    combine_all(given.data(), given.data() + static_cast<std::size_t>(r) * bytes, o.n, o.type, o.op);
  std::memcpy(out, given.data(), bytes);
}

thread_local int depth = 0;
thread_local std::vector<Op> pending;

/// Enqueues the calls of a group: first its collective calls, one by one, then its messages together.
void enqueue(std::vector<Op> ops) {
  if (ops.empty()) return;
  const cudaStream_t stream = ops[0].stream;
  EmulatedBlocks blocks;
  for (const Op& o : ops) {
    const std::size_t bytes = o.n * bytes_of(o.type), all = bytes * static_cast<std::size_t>(o.comm->size);
    if (o.in) blocks.add(o.in, o.kind == reduce_scatter ? all : bytes, stream, "a collective call");
    if (o.out) blocks.add(o.out, o.kind == all_gather ? all : bytes, stream, "a collective call");
  }
  emulated_enqueue(
      stream, std::move(blocks),
      [ops = std::move(ops)] {
        EmulatedComm& comm = *ops[0].comm;
        ++comm.calls;
        static const int stuck = number_in("EMULATED_NCCL_STUCK"), fault = number_in("EMULATED_NCCL_FAULT");
        if (comm.calls == fault) comm.failed = true;
        if (comm.calls == fault || comm.calls == stuck) wait_for_ever();
        std::vector<Transfer> messages;
        for (const Op& o : ops)
          if (o.kind != message) run(o);
          else
            messages.push_back(
                {o.root,
                 o.sends,
                 {o.kind, 0, o.type, 0, o.n},
                 o.sends ? const_cast<std::byte*>(static_cast<const std::byte*>(o.in)) : static_cast<std::byte*>(o.out),
                 o.n * bytes_of(o.type)});
        run(comm, std::move(messages));
      },
      /*for_others=*/true);
  emulated_start(stream);
}

ncclResult_t add(const Op& op) {
  if (op.root < 0 || op.root >= op.comm->size) return ncclInvalidArgument;
  pending.push_back(op);
  if (depth == 0) enqueue(std::exchange(pending, {}));
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) { return *version = 20700, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an emulated error";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device draw;
  std::snprintf(id->internal, sizeof id->internal, "/emulated_nccl_%08x%08x", draw(), draw());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  const std::size_t bytes = 64 + sizeof(Mailbox) * static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  const int file = shm_open(id.internal, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes))) return ncclSystemError;
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared == MAP_FAILED) return ncclSystemError;
  auto* made = new EmulatedComm{rank, size, static_cast<std::atomic<int>*>(shared),
                                reinterpret_cast<Mailbox*>(static_cast<std::byte*>(shared) + 64)};
  ++*made->joined;  // fresh memory is zero
  while (*made->joined < size) wait_a_little();
  shm_unlink(id.internal);
  *comm = made;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return *error = comm->failed ? ncclRemoteError : ncclSuccess, ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--depth == 0) enqueue(std::exchange(pending, {}));
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return add({all_reduce, in, out, n, type, op, 0, false, comm, stream});
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return add({reduce, in, out, n, type, op, root, false, comm, stream});
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return add({broadcast, in, out, n, type, ncclSum, root, false, comm, stream});
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add({all_gather, in, out, n, type, ncclSum, 0, false, comm, stream});
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return add({reduce_scatter, in, out, n, type, op, 0, false, comm, stream});
}
ncclResult_t ncclSend(const void* in, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({message, in, nullptr, n, type, ncclSum, peer, true, comm, stream});
}
ncclResult_t ncclRecv(void* out, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add({message, nullptr, out, n, type, ncclSum, peer, false, comm, stream});
}

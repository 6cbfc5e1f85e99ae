// devices/mpi/shared_memory.cpp - all_reduce through memory that the ranks of one machine share.
//
// Note [Shared memory]
// Each rank has two blocks in a segment that all of them map, and a flag, the number of rounds that it has begun. In a
// round each rank copies a piece of its elements into a block, raises its flag, waits for the flags of the others, and
// combines the blocks of all ranks into its result: in the order of ranks, so that all have the same bits. Rounds use
// the two blocks in turn. A rank overwrites a block two rounds later, when all others have raised their flags for the
// round in between, and so have read the block. The pieces are small enough to stay in the cache.
//
// A rank that waits spins for some microseconds, then leaves its core to other threads, and then sleeps until the flag
// is raised: where more threads than cores want to run, spinning takes from those for whom it waits. MPI moves messages
// only while it is called, so the sleeper wakes now and then for that.
#include "devices/mpi/shared_memory.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "core/cpu_pause.h"

namespace kassette::mpi {
using devices::Reduction;
namespace {

constexpr std::int64_t kBlock = std::int64_t(256)
                                << 10;  // bytes; two of each rank fit into a cache of the second level

constexpr auto kSpin = std::chrono::microseconds(3), kYield = std::chrono::microseconds(50);
constexpr long kNap = 1000000;  // nanoseconds

bool is_turned_off() {
  const char* set = std::getenv("KASSETTE_MPI_SHARED_MEMORY");
  return set && !std::strcmp(set, "0");
}

template <class T>
T combined(T a, T b, Reduction how) {
  return how == Reduction::min ? std::min(a, b) : a + b;
}

template <class T>
void combine(const T* a, const T* b, T* out, std::int64_t n, Reduction how) {
  if (how == Reduction::min) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = combined(a[i], b[i], Reduction::min);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = combined(a[i], b[i], Reduction::sum);
  }
}

}  // namespace

struct SharedMemory::Flag {
  alignas(64) std::atomic<std::uint32_t> round;  // how many rounds this rank has begun
  std::atomic<std::uint32_t> sleepers;           // how many ranks sleep until that changes
};

SharedMemory* SharedMemory::make(MPI_Comm comm) {
  MPI_Comm here;
  int size = 0, local = 0;
  MPI_Comm_size(comm, &size);
  if (size < 2 || size > kMaxRanks) return nullptr;
  if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS) return nullptr;
  MPI_Comm_size(here, &local);
  auto* memory = new SharedMemory;
  memory->size_ = size;
  MPI_Comm_rank(comm, &memory->rank_);
  // Open MPI aligns the parts of a window to 8 bytes. Pages are mapped whole, so that all ranks see the same remainder.
  constexpr MPI_Aint kBytes = alignof(Flag) + sizeof(Flag) + 2 * kBlock;
  void* mine = nullptr;
  MPI_Win window;
  int made = local == size && !is_turned_off();
  // All ranks have the same `local` here, or else one has another and `made` is 0 there.
  MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, comm);
  if (made) {
    MPI_Comm_set_errhandler(here, MPI_ERRORS_RETURN);
    made = MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, here, &mine, &window) == MPI_SUCCESS;
    for (int r = 0; made && r < size; ++r) {
      MPI_Aint bytes = 0;
      int unit = 1;
      void* base = nullptr;
      made = MPI_Win_shared_query(window, r, &bytes, &unit, &base) == MPI_SUCCESS && bytes >= kBytes;
      std::size_t room = static_cast<std::size_t>(bytes);
      if (made) base = std::align(alignof(Flag), sizeof(Flag), base, room);
      memory->flags_[r] = static_cast<Flag*>(base);
      memory->blocks_[r] = static_cast<std::byte*>(base) + sizeof(Flag);
    }
    if (made) new (memory->flags_[memory->rank_]) Flag{};
    MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, comm);
  }
  if (made) return memory;
  delete memory;
  return nullptr;
}

bool SharedMemory::takes(DType dtype, Reduction how) {
  if (how == Reduction::sum || how == Reduction::mean)
    return dtype.code() == DType::kFloat32 || dtype.code() == DType::kFloat64;
  return how == Reduction::min && dtype.code() == DType::kInt64;  // the comparison of calls
}

void SharedMemory::announce() {
  Flag& mine = *flags_[rank_];
  mine.round.store(round_, std::memory_order_seq_cst);
  if (mine.sleepers.load(std::memory_order_seq_cst))
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&mine.round), FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
}

void SharedMemory::wait_for(int rank, const std::function<bool()>& progress) {
  using Clock = std::chrono::steady_clock;
  Flag& theirs = *flags_[rank];
  auto raised = [&] { return static_cast<std::int32_t>(theirs.round.load(std::memory_order_acquire) - round_) >= 0; };
  constexpr int kChecks = 64;
  for (int i = 0; i < kChecks; ++i) {
    if (raised()) return;
    cpu_pause();
  }
  const auto begin = Clock::now();
  for (auto waited = Clock::duration(0); waited < kYield; waited = Clock::now() - begin) {
    if (raised()) return;
    if (waited < kSpin) cpu_pause();
    else ::sched_yield();
  }
  while (!raised()) {
    if (progress()) {
      ::sched_yield();
      continue;
    }
    theirs.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = theirs.round.load(std::memory_order_seq_cst);
    if (static_cast<std::int32_t>(seen - round_) < 0) {
      const timespec nap{0, kNap};
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&theirs.round), FUTEX_WAIT, seen, &nap, nullptr, 0);
    }
    theirs.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

template <class T>
void SharedMemory::reduce_block(const T* in, T* out, std::int64_t n, Reduction how,
                                const std::function<bool()>& progress) {
  ++round_;
  auto block = [&](int r) { return reinterpret_cast<T*>(blocks_[r] + (round_ & 1) * kBlock); };
  std::memcpy(block(rank_), in, static_cast<std::size_t>(n) * sizeof(T));
  announce();
  for (int r = 0; r < size_; ++r)
    if (r != rank_) wait_for(r, progress);
  combine(block(0), block(1), out, n, how);
  for (int r = 2; r < size_; ++r) combine(out, block(r), out, n, how);
}

void SharedMemory::all_reduce(const void* in, void* out, std::int64_t count, DType dtype, Reduction how,
                              const std::function<bool()>& progress) {
  auto each = [&](auto zero) {
    using T = decltype(zero);
    constexpr std::int64_t kPiece = kBlock / sizeof(T);
    for (std::int64_t first = 0; first < count; first += kPiece)
      reduce_block(static_cast<const T*>(in) + first, static_cast<T*>(out) + first, std::min(kPiece, count - first),
                   how, progress);
  };
  if (dtype.code() == DType::kFloat32) each(0.0f);
  else if (dtype.code() == DType::kFloat64) each(0.0);
  else each(std::int64_t(0));
}

}  // namespace kassette::mpi

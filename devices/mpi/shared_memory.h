// devices/mpi/shared_memory.h - all_reduce through memory that the ranks of one machine share.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <functional>

#include <kassette/dtype.h>

#include "devices/reduction.h"

namespace kassette::mpi {

/// The shared memory of a group of ranks of one machine: Note [Shared memory].
class SharedMemory {
 public:
  static constexpr int kMaxRanks = 4;
  /// Returns null on all ranks if one of them cannot share memory with the others, or if they are too many. All ranks
  /// of `comm` call it.
  static SharedMemory* make(MPI_Comm comm);
  /// Whether it takes these reductions; the same on all ranks.
  static bool takes(DType dtype, devices::Reduction how);
  /// Combines `in` over the ranks, in the order of ranks, into `out`, which may be `in`. `progress` is called now and
  /// then while it waits, without a pause as long as it returns true.
  void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, devices::Reduction how,
                  const std::function<bool()>& progress);

 private:
  struct Flag;
  SharedMemory() = default;
  void announce();
  void wait_for(int rank, const std::function<bool()>& progress);
  template <class T>
  void reduce_block(const T* in, T* out, std::int64_t n, devices::Reduction how, const std::function<bool()>& progress);

  int rank_ = 0, size_ = 1;
  std::uint32_t round_ = 0;
  Flag* flags_[kMaxRanks] = {};
  std::byte* blocks_[kMaxRanks] = {};
};

}  // namespace kassette::mpi

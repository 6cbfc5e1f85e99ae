// devices/ranks.h - the ranks of a job: groups of them, and what guards their calls.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <kassette/device.h>

#include "devices/transport.h"

namespace kassette {

class DeviceCommunicator;  // devices/device_transport.h

/// How the ranks of a group exchange between their GPUs, once they have met: devices/gpu_ranks.h.
struct GpuRanks {
  std::atomic<bool> met{false};
  DeviceCommunicator* comm = nullptr;  // null: by way of the host
  Device device;                       // this rank's
};

/// A group of ranks, with the communicator that they share. Groups live until the process ends.
struct RankGroup {
  Communicator* comm = nullptr;  // null: this process alone
  int rank = 0, size = 1;
  int id = 0;
  std::mutex mutex;        // one thread at a time
  std::int64_t calls = 0;  // that this rank has begun
  RankGroup* background = nullptr;
  GpuRanks gpus;
};

/// All ranks of the job. Starts the transport at the first call, where the process was started by mpirun or the like, or runs MPI
/// itself. Throws RuntimeError where that cannot be done.
RankGroup& all_ranks();
RankGroup& rank_group(int id);
/// The ranks of `group` that give the same colour, ordered by key, then rank; null for -1.
RankGroup* split_ranks(RankGroup& group, int colour, int key);
/// This rank among those of its machine.
int local_rank();
/// "Open MPI 4.1.4"; "one rank" where there is no transport.
std::string transport_name();

/// A group of the same ranks for a second thread. Made at the first call, by all ranks.
RankGroup& background_of(RankGroup& group);
/// Whether a second thread is to exchange while the first computes: where there are several machines, whose network takes time of its
/// own, or KASSETTE_RANKS_OVERLAP is 1. Between ranks of one machine an exchange is work of the cores that compute.
bool ranks_overlap();

/// From now on the program ends its part of the job before the libraries that are loaded now end theirs: what is enqueued on a GPU, which
/// others wait for, is computed first.
void end_ranks_before_libraries();

/// Whether MPI moves bytes from GPU to GPU by itself.
bool transport_takes_gpu_memory();

/// Seconds that a call may wait for other ranks before it ends the job with a line that names it; 0: for ever.
void set_ranks_timeout(double seconds);
double ranks_timeout();

/// A number for a call that is described by `text`, the same on every rank.
std::uint64_t call_number(const std::string& text);

/// One call that all ranks of a group make. It holds the group, throws RuntimeError on every rank where their calls differ, and is
/// named should it get stuck. Nothing of it costs in a group of one.
class RankCall {
 public:
  /// `call`: a number that equal calls have in common. `describe` says in one line what this rank calls; it has to outlive the object.
  /// Without `watched` it may wait for ever, unless it is interrupted.
  RankCall(RankGroup& group, std::uint64_t call, const std::function<std::string()>& describe, bool watched = true);
  /// A call of two ranks, which nobody checks.
  RankCall(RankGroup& group, const std::function<std::string()>& describe);
  ~RankCall();
  RankCall(const RankCall&) = delete;
  RankCall& operator=(const RankCall&) = delete;

 private:
  void compare(std::uint64_t call);
  RankGroup& group_;
  const std::function<std::string()>& describe_;
  std::unique_lock<std::mutex> lock_;
  int watched_ = -1;
};

/// Within a call: whether `holds` is true on all ranks.
bool holds_on_all(const RankGroup& group, bool holds);

/// Inside a catch: what a transport throws (std::runtime_error) as a RuntimeError, all else as it is.
[[noreturn]] void rethrow_transport_error();

/// Tells the ranks that wait in a call that this one will not come: they throw, naming `why`.
void refuse_call(RankGroup& group, const std::string& why) noexcept;

}  // namespace kassette

// devices/ranks.h - the ranks of a job, groups of ranks, and checks that all ranks of a group make the same calls.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <kassette/device.h>

#include "devices/transport.h"

namespace kassette::devices {

class DeviceCommunicator;  // devices/device_transport.h

/// The GPU communicator of a group, set up by connect_gpus() (devices/gpu_ranks.h).
struct GpuRanks {
  std::atomic<bool> connected{false};
  DeviceCommunicator* comm = nullptr;  // null: data goes through host memory
  Device device;                       // this rank's
};

/// A group of ranks and its communicator. Groups live until the process ends.
struct RankGroup {
  Communicator* comm = nullptr;  // null: this process alone
  int rank = 0, size = 1;
  int id = 0;
  std::mutex mutex;                    // one thread at a time
  std::atomic<std::int64_t> calls{0};  // number of calls of all ranks that this rank has begun
  /// How many of them have thrown on every rank, since the ranks' calls differed.
  std::int64_t differed = 0;
  RankGroup* background = nullptr;
  GpuRanks gpus;
};

/// All ranks of the job. The first call starts the transport if the process was started by mpirun or the like, or has
/// initialized MPI itself. Throws RuntimeError if that fails.
RankGroup& all_ranks();
RankGroup& rank_group(int id);
/// Splits a group as MPI_Comm_split does: the ranks that pass the same colour, ordered by key, then by rank. Returns
/// null for colour -1.
RankGroup* split_ranks(RankGroup& group, int colour, int key);
/// This process's index among the ranks of its machine.
int local_rank();
/// "Open MPI 4.1.4"; "one rank" if there is no transport.
std::string transport_name();

/// A second group of the same ranks, for use by a background thread. The first call makes it, and all ranks have to
/// make that call.
RankGroup& background_of(RankGroup& group);
/// True if gradients are exchanged by a second thread while this one computes. The transport must be safe for two
/// threads, and KASSETTE_RANKS_OVERLAP not 0 or, if it is unset, the ranks on several machines: within one machine it
/// does not pay, as the exchange itself keeps the cores busy that compute.
bool ranks_overlap();

/// Registers the end of this rank's part of the job, so that at exit it comes before the destructors of the libraries
/// loaded so far: work enqueued on a GPU, which other ranks wait for, is completed first.
void end_ranks_before_libraries();

/// Whether MPI accepts pointers to GPU memory.
bool transport_takes_gpu_memory();

/// How many seconds a call may wait for other ranks before the job is ended with a message that names the call; 0: no
/// limit.
void set_ranks_timeout(double seconds);
double ranks_timeout();

/// A hash of `text`, the description of a call: the same on every rank.
std::uint64_t call_number(const std::string& text);

/// A scope around a call that all ranks of a group make. It locks the group, throws RuntimeError on every rank if their
/// calls differ, and lets the watch thread name the call if it gets stuck. In a group of one it only takes the lock.
class RankCall {
 public:
  /// `call`: a number that is equal for equal calls, see call_number(). `describe` returns a line that says what this
  /// rank calls; it must outlive this object. If not `watched`, the call may wait for ever, unless it is interrupted.
  RankCall(RankGroup& group, std::uint64_t call, const std::function<std::string()>& describe, bool watched = true);
  /// A call between two ranks (send, recv), which is not compared with that of others. `awaited`: the rank that it
  /// waits for, until has_arrived(); -1: none.
  RankCall(RankGroup& group, const std::function<std::string()>& describe, int awaited);
  ~RankCall();
  void has_arrived();
  RankCall(const RankCall&) = delete;
  RankCall& operator=(const RankCall&) = delete;

 private:
  void refuse_in_fork() const;
  void compare(std::uint64_t call);
  RankGroup& group_;
  const std::function<std::string()>& describe_;
  std::unique_lock<std::mutex> lock_;
  int watched_ = -1;
};

/// Whether `holds` is true on all ranks. Call it within a RankCall.
bool holds_on_all(const RankGroup& group, bool holds);

/// In a catch clause: rethrows a transport's std::runtime_error as a RuntimeError, any other exception unchanged.
[[noreturn]] void rethrow_transport_error();

/// Tells the ranks that wait in a call that this one will not take part: they throw an error that contains `why`.
void refuse_call(RankGroup& group, const std::string& why) noexcept;

/// Tells the other ranks of all groups that this one has ended, so that those which wait for it end with a line that
/// says so. Called by the watch thread.
void tell_end_of_rank();

}  // namespace kassette::devices

// devices/ranks.cpp - starting the transport, groups of ranks, and comparing their calls.
#include "devices/ranks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <cstdio>
#include <deque>
#include <exception>
#include <stdexcept>

#include "core/log.h"
#include "core/storage.h"
#include "core/text.h"
#include "devices/cpu/cpus.h"
#include "devices/launcher.h"
#include "devices/plugin_file.h"
#include "devices/watch.h"

namespace kassette::devices {
namespace {

bool announce(RankGroup& group, const std::string& what, bool watched) noexcept;

constexpr const char* kTransportFile = "libkassette_mpi.so";

struct Job {
  std::mutex mutex;
  std::deque<RankGroup> groups;  // a deque, so that addresses stay valid
  std::atomic<bool> started{false};
  const Transport* transport = nullptr;  // null: one rank
  bool compares = true;
  bool ended = false;
  std::string refused;              // why the ranks that MPI has found are not used
  std::atomic<bool> forked{false};  // this process is a fork of a rank, and none itself
};
Job& job() {
  static Job* j = new Job;  // never destroyed: threads may wait in it
  return *j;
}

/// Whether the program has started MPI itself.
bool runs_mpi() {
  auto initialized = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  int flag = 0;
  return initialized && initialized(&flag) == 0 && flag;
}

const Transport* load_transport() {
  std::string why;
  void* library = open_next_to_library(kTransportFile, &why);
  if (!library)
    fail<RuntimeError>({"init"}, "this process is one of several ranks, and the library for MPI does not load: ", why,
                       kRemedy, "install libopenmpi-dev (or libmpich-dev) and build kassette again");
  using Entry = const Transport* (*)();
  auto entry = reinterpret_cast<Entry>(dlsym(library, "kassette_mpi_transport"));
  const Transport* transport = entry ? entry() : nullptr;
  if (!transport || transport->abi != kTransportAbi)
    fail<RuntimeError>({"init"}, kTransportFile, " is of another version of kassette", kRemedy,
                       "build or install both together");
  return transport;
}

/// Whether a rank that waits leaves its core to other threads: unless the machine has cores for all ranks and their
/// threads, and one to spare. A call of sched_yield costs some 0.3 us.
bool yields() { return launched_here(std::getenv) * num_threads() >= available_cpus(); }

/// Starts the transport. Throws if the process was started as one of more ranks than that finds.
Communicator* start(Job& j, const Transport& transport) {
  char why[512] = "it does not start";
  if (j.refused.empty()) {
    Communicator* comm = transport.start(yields(), why, sizeof why);
    if (!comm) fail<RuntimeError>({"init"}, why);
    const std::string promised = missing_ranks(std::getenv, comm->size());
    if (promised.empty()) return comm;
    j.refused = text("the launcher's ", promised, ", and ", transport.describe(), " has found ", comm->size(),
                     comm->size() == 1 ? " rank" : " ranks");
    transport.finish();
  }
  fail<RuntimeError>({"init"}, j.refused, kExpected, "it must be a launcher of the MPI that kassette was built with",
                     kRemedy,
                     "take its mpirun (srun: --mpi=pmix or pmi2), or unset that variable if no more ranks are wanted");
}

void abort_job(int status) { abort_in_turn(*job().transport, job().groups.front().rank, status); }

void write_line(const std::string& words) {
  const std::string line = text("kassette: ", words, "\n");
  [[maybe_unused]] ssize_t written = ::write(2, line.data(), line.size());
}

/// Waits for the work enqueued on GPUs; errors are ignored here: they have been reported by waits for results.
void finish_enqueued(Device gpu) noexcept {
  try {
    device_api(gpu).synchronize();
  } catch (...) {
  }
}

/// Takes part in the calls that other ranks still make, which throw an error there, until all have ended.
void await_others(RankGroup& every) {
  if (!every.mutex.try_lock()) return;  // another thread is in a call
  every.mutex.unlock();
  while (!announce(every, "the end of the program", /*watched=*/false)) {
  }
}

/// Runs at the end of the program. A status other than 0 ends all ranks, since they may be waiting for this one; with
/// status 0, ranks that wait for this one get an error.
void end_job(int status, void*) {
  Job& j = job();
  if (j.ended || j.forked.load(std::memory_order_relaxed)) return;
  j.ended = true;
  if (status) {
    std::fflush(nullptr);
    abort_job(status);
    return;
  }
  for (RankGroup& group : j.groups)  // no other thread makes a world by now
    if (group.gpus.comm) finish_enqueued(group.gpus.device);
  watch_end();
  await_others(j.groups.front());
  char why[160];
  if (!j.transport->await_end(why, sizeof why)) {
    std::fflush(nullptr);
    write_line(text("rank ", j.groups.front().rank, ": ", why));
    abort_job(1);
    return;
  }
  stop_watching();
  j.transport->finish();
}

/// The terminate handler: prints an uncaught exception in one line, and ends all ranks.
void end_uncaught() {
  std::string what = "an exception";
  try {
    if (std::current_exception()) throw;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  std::fflush(nullptr);
  const bool forked = job().forked.load(std::memory_order_relaxed);
  write_line(text(forked ? "a fork of rank " : "rank ", job().groups.front().rank, ": ", what));
  if (!forked) abort_job(1);
  std::abort();
}

RankGroup& add_group(Job& j, Communicator* comm) {
  RankGroup& g = j.groups.emplace_back();
  g.comm = comm;
  g.id = static_cast<int>(j.groups.size()) - 1;
  if (comm) {
    g.rank = comm->rank();
    g.size = comm->size();
  }
  return g;
}

}  // namespace

RankGroup& all_ranks() {
  Job& j = job();
  if (j.started.load(std::memory_order_acquire)) return j.groups.front();
  std::lock_guard<std::mutex> lock(j.mutex);
  if (j.started.load(std::memory_order_relaxed)) return j.groups.front();
  Communicator* comm = nullptr;
  if (is_launched(std::getenv) || runs_mpi()) {
    const Transport* transport = load_transport();
    comm = start(j, *transport);
    j.transport = transport;
    const char* set = std::getenv("KASSETTE_RANKS_CHECK");
    j.compares = !set || std::strcmp(set, "0") != 0;
    watch_ranks(*transport, comm->rank());
    on_exit(end_job, nullptr);
    pthread_atfork(nullptr, nullptr, [] { job().forked.store(true, std::memory_order_relaxed); });
    // A program's own terminate handler is kept.
    if (std::get_terminate() == __gnu_cxx::__verbose_terminate_handler) std::set_terminate(end_uncaught);
    log_debug(text("rank ", comm->rank(), " of ", comm->size(), ", ", transport->describe()));
  }
  RankGroup& every = add_group(j, comm);
  j.started.store(true, std::memory_order_release);
  return every;
}

RankGroup& rank_group(int id) {
  if (id == 0) return all_ranks();
  Job& j = job();
  std::lock_guard<std::mutex> lock(j.mutex);
  return j.groups[id];
}

RankGroup* split_ranks(RankGroup& group, int colour, int key) {
  Job& j = job();
  if (!group.comm) {
    if (colour < 0) return nullptr;
    std::lock_guard<std::mutex> lock(j.mutex);
    return &add_group(j, nullptr);
  }
  const std::function<std::string()> describe = [&] { return std::string("split"); };
  RankCall call(group, call_number("split"), describe);
  Communicator* part = group.comm->split(colour, key);
  std::lock_guard<std::mutex> lock(j.mutex);
  return part ? &add_group(j, part) : nullptr;
}

RankGroup& background_of(RankGroup& group) {
  if (!group.background) group.background = split_ranks(group, 0, group.rank);
  return *group.background;
}

bool ranks_overlap() {
  const Transport* t = job().transport;
  if (!t || !t->concurrent()) return false;
  static const char* set = std::getenv("KASSETTE_RANKS_OVERLAP");
  return set ? std::strcmp(set, "0") != 0 : t->local_size() < job().groups.front().size;
}

// Exit handlers run in reverse order of registration; CUDA's were registered when its libraries were loaded.
void end_ranks_before_libraries() {
  static const int registered = on_exit(end_job, nullptr);
  static_cast<void>(registered);
}

bool transport_takes_gpu_memory() {
  const Transport* t = job().transport;
  static const bool takes = t && t->takes_gpu_memory();  // asked for when ranks have begun to exchange
  return takes;
}

int local_rank() {
  all_ranks();
  const Transport* t = job().transport;
  return t ? t->local_rank() : 0;
}

std::string transport_name() {
  all_ranks();
  const Transport* t = job().transport;
  return t ? t->describe() : "one rank";
}

bool holds_on_all(const RankGroup& group, bool holds) {
  std::int64_t least = holds;
  if (group.comm) group.comm->all_reduce(&least, &least, 1, DType(DType::kInt64), Reduction::min);
  return least;
}

void rethrow_transport_error() {
  try {
    throw;
  } catch (const std::runtime_error& e) {
    fail<RuntimeError>({}, e.what());
  }
}

std::uint64_t call_number(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// --- one call --------------------------------------------------------------------------------------------------------

RankCall::RankCall(RankGroup& group, std::uint64_t call, const std::function<std::string()>& describe, bool watched)
    : group_(group), describe_(describe), lock_(group.mutex) {
  if (!group.comm) return;
  refuse_in_fork();
  ++group.calls;
  const bool at_end = job().ended;  // then it answers what others call
  watched_ = watch(&describe_, at_end ? Awaited{} : Awaited{&group, group.calls, -1}, /*timed=*/watched);
  try {
    if (job().compares) compare(call);
  } catch (...) {
    unwatch(watched_);
    rethrow_transport_error();
  }
}
RankCall::RankCall(RankGroup& group, const std::function<std::string()>& describe, int awaited)
    : group_(group), describe_(describe), lock_(group.mutex) {
  if (!group.comm) return;
  refuse_in_fork();
  watched_ = watch(&describe_, awaited < 0 ? Awaited{} : Awaited{&group, 0, awaited});
}
RankCall::~RankCall() { unwatch(watched_); }
void RankCall::has_arrived() { watch_joined(watched_); }

void RankCall::refuse_in_fork() const {
  if (job().forked.load(std::memory_order_relaxed))
    fail<RuntimeError>({}, describe_(), ": this process is a fork of rank ", job().groups.front().rank, kExpected,
                       "only the process that has called init exchanges with other ranks");
}

// Every rank passes the number of its call and its negative: all numbers are equal if and only if the two minima add up
// to 0. The ranks exchange the descriptions of their calls only if they differ.
void RankCall::compare(std::uint64_t call) {
  const auto number = static_cast<std::int64_t>(call >> 1);
  std::int64_t least[2] = {number, -number};
  group_.comm->all_reduce(least, least, 2, DType(DType::kInt64), Reduction::min);
  if (least[0] == -least[1]) return;
  ++group_.differed;
  constexpr std::int64_t kText = 240;
  char mine[kText] = {};
  std::strncpy(mine, describe_().c_str(), kText - 1);
  std::string every(kText * group_.size, '\0');
  const std::vector<std::int64_t> sizes(group_.size, kText);
  group_.comm->all_gather(mine, every.data(), sizes.data());
  auto words = [&](int r) { return std::string(every.data() + r * kText); };
  // There may be thousands of ranks: the message shows the first, and the first that differs from it.
  int other = 1;
  while (other + 1 < group_.size && words(other) == words(0)) ++other;
  fail<RuntimeError>({}, "the ranks' calls differ: rank 0 has ", words(0), ", rank ", other, " has ", words(other),
                     kExpected, "all ranks must make the same calls in the same order");
}

namespace {

/// Tells ranks that are in another call about this rank's call: they throw an error that names it. Returns false if
/// there were such ranks.
bool announce(RankGroup& group, const std::string& what, bool watched) noexcept {
  if (!group.comm || !job().compares) return true;
  const std::int64_t before = group.differed;
  try {
    const std::function<std::string()> describe = [&] { return what; };
    RankCall call(group, call_number(what), describe, watched);
  } catch (...) {  // the other ranks report the error
  }
  return group.differed == before;
}

}  // namespace

void refuse_call(RankGroup& group, const std::string& why) noexcept {
  announce(group, "an error: " + why, /*watched=*/true);
}

void tell_end_of_rank() {
  Job& j = job();
  std::lock_guard<std::mutex> lock(j.mutex);
  for (RankGroup& group : j.groups)
    if (group.comm) group.comm->tell_end(group.calls);
}

}  // namespace kassette::devices

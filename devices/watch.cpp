// devices/watch.cpp - a thread that ends the job if a call waits too long for other ranks, or is interrupted.
//
// A call that waits inside MPI cannot be cancelled alone: the other ranks would wait for this one. A waiting call does
// not check for a request to stop (Note [Interrupts]) until the other ranks have come; if a request stays pending while
// a call waits, all ranks end.
#include "devices/watch.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/check_interrupt.h"
#include "core/log.h"
#include "core/text.h"
#include "devices/device_transport.h"
#include "devices/ranks.h"

namespace kassette::devices {
namespace {

using Clock = std::chrono::steady_clock;

/// A slot for a thread that waits.
struct WaitSlot {
  std::mutex mutex;
  const std::function<std::string()>* describe = nullptr;  // null: free
  Clock::time_point since;
  bool timed = true;
  Awaited awaited;
};
constexpr int kSlots = 16;

/// Work enqueued on a GPU that waits for other ranks, whether or not its thread waits.
struct Enqueued {
  DeviceCommunicator* comm;
  void* event;
  std::string words;
  Clock::time_point since;
};

struct Watch {
  WaitSlot slots[kSlots];
  std::mutex mutex;
  std::deque<Enqueued> enqueued;  // in order
  std::atomic<double> seconds{600};
  std::mutex transport_mutex;  // held while the thread calls the transport
  bool stopped = false;        // it must not any more
  std::atomic<bool> ending{false};
};
Watch& state() {
  static Watch* w = new Watch;  // the thread runs until the process ends
  return *w;
}

constexpr int kInterruptedStatus = 130;  // the status that shells use for an end by Ctrl-C

[[noreturn]] void end_job(const Transport& transport, int rank, const std::string& why, int status) {
  const std::string line = text("kassette: rank ", rank, why, "\n");
  [[maybe_unused]] ssize_t written = ::write(2, line.data(), line.size());
  if (transport.concurrent()) abort_in_turn(transport, rank, status);
  ::_exit(status);
}

/// Removes entries from the front as long as their work has run.
void drop_passed(std::deque<Enqueued>& enqueued) {
  while (!enqueued.empty() && enqueued.front().comm->event_passed(enqueued.front().event)) enqueued.pop_front();
}

/// How long a rank waits before it looks whether another has ended, and an ended rank before it tells the others:
/// mostly all end at about the same time, and there may be thousands.
constexpr auto kPatience = std::chrono::seconds(1);

/// The ranks that have ended, as they have told this one.
class EndedRanks {
 public:
  /// A rank that has ended without joining a call, which waits `since` then; -1 if there is none.
  std::int64_t missing_in(const Awaited& awaited, Clock::time_point since, Clock::time_point now) {
    if (!awaited.group || now - since < kPatience) return -1;
    std::vector<Heard>& heard = heard_[awaited.group];
    for (const Communicator::EndedRank& e : awaited.group->comm->heard_ends()) heard.push_back({e, now});
    for (const Heard& h : heard) {
      const bool joined = awaited.rank >= 0 ? awaited.rank != h.ended.rank : h.ended.calls >= awaited.call;
      if (!joined && now - h.when >= kPatience) return h.ended.rank;  // what it sent before has arrived by then
    }
    return -1;
  }

 private:
  struct Heard {
    Communicator::EndedRank ended;
    Clock::time_point when;
  };
  std::map<const RankGroup*, std::vector<Heard>> heard_;
};

/// Calls f unless the transport has been stopped.
template <class F>
void with_transport(const Transport& transport, F f) {
  std::lock_guard<std::mutex> lock(state().transport_mutex);
  if (transport.concurrent() && !state().stopped) f();
}

void run(const Transport& transport, int rank) {
  constexpr auto kPause = std::chrono::milliseconds(200);
  EndedRanks ended;
  Clock::time_point end_since = Clock::time_point::max();     // when this rank was first seen at its end
  Clock::time_point wanted_since = Clock::time_point::max();  // when the pending request to stop was first seen
  for (;;) {
    std::this_thread::sleep_for(kPause);
    const Clock::time_point now = Clock::now();
    wanted_since =
        interrupt_wanted.load(std::memory_order_relaxed) ? std::min(wanted_since, now) : Clock::time_point::max();
    const bool interrupted = wanted_since < now;
    const double seconds = state().seconds.load(std::memory_order_relaxed);
    auto check = [&](Clock::time_point since, bool timed, auto words) {
      if (interrupted && since <= wanted_since)
        end_job(transport, rank, text(" was interrupted while it waited in ", words()), kInterruptedStatus);
      if (timed && seconds > 0 && now - since > std::chrono::duration<double>(seconds))
        end_job(transport, rank,
                text(" has waited for ", seconds, " s in ", words(),
                     "; the other ranks did not join (KASSETTE_RANKS_TIMEOUT sets the limit)"),
                1);
    };
    for (WaitSlot& p : state().slots) {
      std::lock_guard<std::mutex> lock(p.mutex);
      if (!p.describe) continue;
      check(p.since, p.timed, *p.describe);
      std::int64_t missing = -1;
      with_transport(transport, [&] { missing = ended.missing_in(p.awaited, p.since, now); });
      if (missing >= 0)
        end_job(transport, rank,
                text(" waits in ", (*p.describe)(), " for rank ", missing, p.awaited.group->id ? " of that world" : "",
                     ", which has ended its program"),
                1);
    }
    if (state().ending.load(std::memory_order_relaxed)) {
      if (end_since == Clock::time_point::max()) end_since = now;
      if (now - end_since >= kPatience) {
        with_transport(transport, tell_end_of_rank);
        end_since = Clock::time_point::max();
        state().ending.store(false, std::memory_order_relaxed);
      }
    }
    std::lock_guard<std::mutex> lock(state().mutex);
    drop_passed(state().enqueued);
    for (const Enqueued& e : state().enqueued) {
      if (const std::string failure = e.comm->failure(); !failure.empty())
        end_job(transport, rank, text(": ", e.words, ": ", failure), 1);
      check(e.since, /*timed=*/true, [&] { return e.words; });
    }
  }
}

}  // namespace

void abort_in_turn(const Transport& transport, int rank, int status) {
  constexpr int kMicroseconds = 100000, kMost = 20;
  // The wait also gives mpirun time to pass messages on first.
  ::usleep(static_cast<useconds_t>(kMicroseconds * (1 + std::min(rank, kMost))));
  transport.abort(status);
}

void watch_ranks(const Transport& transport, int rank) {
  if (const char* set = std::getenv("KASSETTE_RANKS_TIMEOUT")) {
    const char* last = set + std::strlen(set);
    double seconds = -1;
    const auto [end, error] = std::from_chars(set, last, seconds);
    if (error == std::errc() && end == last && seconds >= 0) set_ranks_timeout(seconds);
    else
      log_warning(
          text("KASSETTE_RANKS_TIMEOUT is \"", set, "\"; it must be a number of seconds; using ", ranks_timeout()));
  }
  std::thread(run, std::cref(transport), rank).detach();
}

int watch(const std::function<std::string()>* describe, const Awaited& awaited, bool timed) {
  for (int i = 0; i < kSlots; ++i) {
    WaitSlot& p = state().slots[i];
    std::lock_guard<std::mutex> lock(p.mutex);
    if (p.describe) continue;
    p.describe = describe;
    p.since = Clock::now();
    p.timed = timed;
    p.awaited = awaited;
    return i;
  }
  return -1;
}

void unwatch(int slot) {
  if (slot < 0) return;
  WaitSlot& p = state().slots[slot];
  std::lock_guard<std::mutex> lock(p.mutex);
  p.describe = nullptr;
}

void watch_joined(int slot) {
  if (slot < 0) return;
  WaitSlot& p = state().slots[slot];
  std::lock_guard<std::mutex> lock(p.mutex);
  p.awaited = {};
}

void watch_end() { state().ending.store(true, std::memory_order_relaxed); }
void stop_watching() {
  std::lock_guard<std::mutex> lock(state().transport_mutex);
  state().stopped = true;
}

void watch_enqueued(DeviceCommunicator& comm, std::string words) {
  Watch& w = state();
  std::lock_guard<std::mutex> lock(w.mutex);
  drop_passed(w.enqueued);
  w.enqueued.push_back({&comm, comm.record_event(), std::move(words), Clock::now()});
}

void set_ranks_timeout(double seconds) { state().seconds.store(seconds, std::memory_order_relaxed); }
double ranks_timeout() { return state().seconds.load(std::memory_order_relaxed); }

}  // namespace kassette::devices

// devices/watch.cpp - a thread that ends the job where a call waits for other ranks for too long, or is interrupted.
//
// A call that waits inside MPI cannot be given up by itself: the other ranks would wait for this one. It takes a request to stop (Note
// [Interrupts]) only when they have come and its rank computes on, so where one stays untaken while a call waits, all ranks end.
#include "devices/watch.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/check_interrupt.h"
#include "core/log.h"
#include "core/text.h"
#include "devices/ranks.h"

namespace kassette {
namespace {

using Clock = std::chrono::steady_clock;

/// A thread that waits.
struct Place {
  std::mutex mutex;
  const std::function<std::string()>* describe = nullptr;   // null: free
  Clock::time_point since;
  bool timed = true;
};
constexpr int kPlaces = 16;

struct Watch {
  Place places[kPlaces];
  std::atomic<double> seconds{600};
};
Watch& state() {
  static Watch* w = new Watch;   // the thread runs until the process ends
  return *w;
}

constexpr int kInterruptedStatus = 130;   // what shells call an end by Ctrl-C

[[noreturn]] void end_job(const Transport& transport, int rank, const std::string& why, int status) {
  const std::string line = text("kassette: rank ", rank, why, "\n");
  [[maybe_unused]] ssize_t written = ::write(2, line.data(), line.size());
  if (transport.concurrent()) transport.abort(status);
  ::_exit(status);
}

void run(const Transport& transport, int rank) {
  constexpr auto kPause = std::chrono::milliseconds(200);
  Clock::time_point wanted_since = Clock::time_point::max();   // when a request to stop was first seen that nobody has taken yet
  for (;;) {
    std::this_thread::sleep_for(kPause);
    const Clock::time_point now = Clock::now();
    wanted_since = interrupt_wanted.load(std::memory_order_relaxed) ? std::min(wanted_since, now) : Clock::time_point::max();
    const bool interrupted = wanted_since < now;
    const double seconds = state().seconds.load(std::memory_order_relaxed);
    for (Place& p : state().places) {
      std::lock_guard<std::mutex> lock(p.mutex);
      if (!p.describe) continue;
      if (interrupted && p.since <= wanted_since)
        end_job(transport, rank, text(" was interrupted while it waited in ", (*p.describe)()), kInterruptedStatus);
      if (p.timed && seconds > 0 && now - p.since > std::chrono::duration<double>(seconds))
        end_job(transport, rank,
                text(" has waited for ", seconds, " s in ", (*p.describe)(), "; the other ranks do not come (KASSETTE_RANKS_TIMEOUT sets the seconds)"), 1);
    }
  }
}

}  // namespace

void watch_ranks(const Transport& transport, int rank) {
  if (const char* set = std::getenv("KASSETTE_RANKS_TIMEOUT")) {
    char* end = nullptr;
    const double seconds = std::strtod(set, &end);
    if (end != set && !*end && seconds >= 0) set_ranks_timeout(seconds);
    else log_warning(text("KASSETTE_RANKS_TIMEOUT is \"", set, "\", expected a number of seconds; it stays ", ranks_timeout()));
  }
  std::thread(run, std::cref(transport), rank).detach();
}

int watch(const std::function<std::string()>* describe, bool timed) {
  for (int i = 0; i < kPlaces; ++i) {
    Place& p = state().places[i];
    std::lock_guard<std::mutex> lock(p.mutex);
    if (p.describe) continue;
    p.describe = describe;
    p.since = Clock::now();
    p.timed = timed;
    return i;
  }
  return -1;
}

void unwatch(int place) {
  if (place < 0) return;
  Place& p = state().places[place];
  std::lock_guard<std::mutex> lock(p.mutex);
  p.describe = nullptr;
}

void set_ranks_timeout(double seconds) { state().seconds.store(seconds, std::memory_order_relaxed); }
double ranks_timeout() { return state().seconds.load(std::memory_order_relaxed); }

}  // namespace kassette

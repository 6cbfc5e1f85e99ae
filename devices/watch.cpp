// devices/watch.cpp - a thread that ends the job where a call waits for other ranks for too long.
#include "devices/watch.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

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

[[noreturn]] void end_job(const Transport& transport, int rank, const std::string& what, double seconds) {
  const std::string line = text("kassette: rank ", rank, " has waited for ", seconds, " s in ", what,
                                "; the other ranks do not come (KASSETTE_RANKS_TIMEOUT sets the seconds)\n");
  [[maybe_unused]] ssize_t written = ::write(2, line.data(), line.size());
  if (transport.concurrent()) transport.abort(1);
  ::_exit(1);
}

void run(const Transport& transport, int rank) {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double seconds = state().seconds.load(std::memory_order_relaxed);
    if (seconds <= 0) continue;
    for (Place& p : state().places) {
      std::lock_guard<std::mutex> lock(p.mutex);
      if (p.describe && Clock::now() - p.since > std::chrono::duration<double>(seconds)) end_job(transport, rank, (*p.describe)(), seconds);
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

int watch(const std::function<std::string()>* describe) {
  for (int i = 0; i < kPlaces; ++i) {
    Place& p = state().places[i];
    std::lock_guard<std::mutex> lock(p.mutex);
    if (p.describe) continue;
    p.describe = describe;
    p.since = Clock::now();
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

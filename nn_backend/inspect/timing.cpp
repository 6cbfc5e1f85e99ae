// nn_backend/inspect/timing.cpp - timeit() and memory(): the time of a call, and the memory of the process.
#include <kassette/inspect.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <vector>

#include "core/print/decimal.h"
#include "core/storage.h"
#include "core/text.h"
#include "devices/bytes_text.h"
#include "devices/plugin.h"
#include "nn_backend/inspect/time_text.h"

namespace kassette {
using namespace inspect;
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The time of n calls in seconds, including the work that they enqueue on a device.
double run(Callable<Device()>& call, std::int64_t n) {
  auto start = Clock::now();
  Device last = cpu;
  for (std::int64_t i = 0; i < n; ++i) last = call();
  if (last != cpu && last.given()) device_api(last).synchronize();
  return seconds_since(start);
}

/// The number of calls that take about 5 ms, a power of ten or half of one. A measurement that seems long is repeated
/// once, as the machine may have paused; one that is far longer is not, as nobody wants to wait for it twice.
std::int64_t loops_for(Callable<Device()>& call) {
  constexpr double kLong = 5e-3, kTooLong = 1;
  std::int64_t n = 1;
  while (n < 1000000000) {
    double took = run(call, n);
    if (took >= kTooLong || (took >= kLong && run(call, n) >= kLong)) break;
    n *= std::to_string(n)[0] == '1' ? 5 : 2;
  }
  return n;
}

double quantile(const std::vector<double>& sorted, double q) {
  double at = q * static_cast<double>(sorted.size() - 1);
  auto i = static_cast<std::size_t>(at);
  double next = sorted[std::min(i + 1, sorted.size() - 1)];
  return sorted[i] + (at - static_cast<double>(i)) * (next - sorted[i]);
}

std::int64_t resident_bytes() {
  long pages = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<std::int64_t>(pages) * sysconf(_SC_PAGESIZE);
}

}  // namespace

std::string inspect::time_text(double seconds) {
  constexpr struct {
    double unit;
    const char* name;
  } kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const auto& u : kUnits)
    if (seconds >= u.unit) return general_text(seconds / u.unit, 3) + ' ' + u.name;
  return general_text(seconds / 1e-9, 3) + " ns";
}

Timing detail::timed(Callable<Device()> call, const TimeitOptions& o) {
  if (o.runs < 0 || o.loops < 0 || !(o.seconds >= 0))
    fail<ValueError>({"timeit", "options"}, "hold runs ", o.runs, ", loops ", o.loops, ", seconds ", o.seconds,
                     kExpected, "none may be negative");
  Timing t;
  run(call, 1);  // fills caches, chooses kernels
  t.loops = o.loops ? o.loops : loops_for(call);
  std::vector<double> times;
  MemoryStats before = memory_stats();
  std::int64_t nodes = live_nodes(), most = o.runs ? o.runs : 1000, least = o.runs ? o.runs : 5;
  times.reserve(most);
  for (auto start = Clock::now(); t.runs < most && (t.runs < least || seconds_since(start) < o.seconds); ++t.runs)
    times.push_back(run(call, t.loops) / static_cast<double>(t.loops));
  MemoryStats after = memory_stats();
  std::int64_t calls = t.runs * t.loops;
  t.allocations = (after.allocations - before.allocations + calls - 1) / calls;
  t.kept_bytes = (after.live - before.live) / calls;
  t.kept_nodes = (live_nodes() - nodes) / calls;
  std::sort(times.begin(), times.end());
  t.least = times.front();
  t.median = quantile(times, 0.5);
  t.spread = quantile(times, 0.75) - quantile(times, 0.25);
  return t;
}

std::ostream& operator<<(std::ostream& os, const Timing& t) {
  std::string s = text(time_text(t.median), " a call (least ", time_text(t.least), ", half of the runs within ",
                       time_text(t.spread), "; ", t.runs, " runs of ", t.loops, ')');
  if (t.allocations)
    s += text(", ", t.allocations, t.allocations == 1 ? " block" : " blocks", " of memory from the system");
  if (t.kept_bytes > 0 || t.kept_nodes > 0)
    s += text(", leaves ", t.kept_nodes, t.kept_nodes == 1 ? " node and " : " nodes and ",
              devices::bytes_text(std::max<std::int64_t>(t.kept_bytes, 0)), " alive");
  return os << s;
}

MemoryReport memory() {
  MemoryReport m;
  m.host = memory_stats();
  Device cuda(Device::kCuda, 0);
  m.has_device = devices::device_in_use(cuda);
  if (m.has_device) m.device = memory_stats(cuda);
  m.nodes = live_nodes();
  m.saved = saved_bytes();
  m.resident = resident_bytes();
  return m;
}

std::ostream& operator<<(std::ostream& os, const MemoryReport& m) {
  std::string s = text("cpu: ", m.host, '\n');
  if (m.has_device) s += text("cuda:0: ", m.device, '\n');
  s += text("tape: ", m.nodes, m.nodes == 1 ? " node, " : " nodes, ", devices::bytes_text(m.saved),
            " kept for gradients and replays");
  if (m.resident) s += "\nprocess: " + devices::bytes_text(m.resident) + " in memory";
  return os << s;
}

}  // namespace kassette

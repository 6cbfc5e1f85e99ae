// devices/cpu/threads.cpp - the thread pool.
#include "devices/cpu/numbered_threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/ceil_div.h"
#include "core/check_interrupt.h"
#include "core/cpu_pause.h"
#include "core/log.h"
#include "core/text.h"
#include "devices/cpu/cpus.h"

namespace kassette::devices {
namespace {

constexpr int kMaxThreads = 256;
constexpr std::int64_t kSpinNs = 300'000;           // how long a worker spins after its work before it sleeps
constexpr std::int64_t kCrowdedSpinNs = 2'000;      // the same if there are more threads than CPUs
constexpr std::int64_t kSpinBeforeYieldNs = 8'000;  // how long the caller spins before it yields
constexpr std::int64_t kPartsPerThread = 4;  // so that other threads can take over parts from one that was held up

// Note [The pool's hand-over]
// The caller writes the job, opens the gate and increments the epoch; workers spin or sleep on the epoch. A worker
// enters by a compare-and-swap on the gate, which counts the workers inside and fails once the gate is shut. So the
// caller waits only for workers that have entered, and no worker reads a job that is being rewritten. Each participant
// owns a slice of the range, takes parts from one end of it, and then helps with the slices of others: unless a thread
// is held up, each touches the same memory in every op.
struct alignas(64) Slice {
  std::atomic<std::int64_t> next{0};
  std::int64_t begin = 0, end = 0;
};

struct Job {
  NumberedRangeFn f = {};
  From from = From::front;
  std::int64_t part = 1;  // size of the parts
  int slices = 0;
  InterruptPolicy on_interrupt;
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set `failed`
};

struct Pool {
  // gate: job number << 32 | open << 31 | slices << 16 | workers inside
  alignas(64) std::atomic<std::uint64_t> gate{0};
  alignas(64) std::atomic<std::uint32_t> epoch{0};
  std::atomic<std::int32_t> sleepers{0};
  alignas(64) std::atomic<std::uint32_t> finished{0};  // number of workers that have done their part
  std::atomic<bool> caller_sleeps{false};
  alignas(64) std::atomic<bool> busy{false};  // some thread's job is running
  std::atomic<int> workers{0};                // threads that exist, written by the owner of `busy`
  std::atomic<std::int64_t> spin_ns{kSpinNs};
  Job job;
  Slice slice[kMaxThreads];
};
constexpr std::uint64_t kOpen = std::uint64_t(1) << 31;

// Zero bytes until first use: no constructor runs when the library is loaded, no destructor when the process ends.
alignas(Pool) unsigned char pool_bytes[sizeof(Pool)];
pthread_once_t pool_once = PTHREAD_ONCE_INIT;
Pool& pool() { return *reinterpret_cast<Pool*>(pool_bytes); }

std::atomic<int> threads_wanted{0};  // 0: not yet determined
__thread bool in_part __attribute__((tls_model("initial-exec"))) = false;
__thread bool sharing __attribute__((tls_model("initial-exec"))) = false;  // this thread's job is running

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word, int n) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, n, nullptr, nullptr, 0);
}

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// Spins until done() is true or `ns` have passed; returns done(). After a while it yields the CPU: the thread that it
/// waits for may be queued there.
template <class Done>
bool spin(std::int64_t ns, Done done) {
  std::int64_t start = 0;
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      cpu_pause();
    }
    std::int64_t now = now_ns();
    if (!start) start = now;
    if (now - start >= ns) return done();
    if (now - start >= kSpinBeforeYieldNs) sched_yield();
  }
}

/// Where the next part of [first, last) starts, if taking parts from the front has reached `begin`.
std::int64_t place(From from, std::int64_t begin, std::int64_t first, std::int64_t last, std::int64_t part) {
  return from == From::front ? begin : first + (last - 1 - begin) / part * part;
}

void run_slice(Job& job, Slice& s, int self) {
  while (!job.failed.load(std::memory_order_relaxed)) {
    std::int64_t begin = s.next.fetch_add(job.part, std::memory_order_relaxed);
    if (begin >= s.end) return;
    try {
      check_interrupt();
      const std::int64_t at = place(job.from, begin, s.begin, s.end, job.part);
      job.f.call(job.f.object, at, std::min(at + job.part, s.end), self);
    } catch (...) {
      if (!job.failed.exchange(true)) job.error = std::current_exception();
    }
  }
}

void take_part(Pool& p, int self) {
  in_part = true;
  InterruptPolicyScope as_the_caller(p.job.on_interrupt);
  for (int i = 0; i < p.job.slices; ++i) run_slice(p.job, p.slice[(self + i) % p.job.slices], self);
  in_part = false;
}

/// Enters the open job if it is not `last` and has a slice for this worker.
bool enter(Pool& p, int self, std::uint32_t* last) {
  std::uint64_t gate = p.gate.load(std::memory_order_acquire);
  while ((gate & kOpen) && self < static_cast<int>(gate >> 16 & 0x7fff) &&
         static_cast<std::uint32_t>(gate >> 32) != *last) {
    if (p.gate.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      *last = static_cast<std::uint32_t>(gate >> 32);
      return true;
    }
  }
  return false;
}

void* work(void* argument) {
  Pool& p = pool();
  const int self = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  std::uint32_t last = 0;
  for (;;) {
    std::uint32_t epoch = p.epoch.load(std::memory_order_acquire);
    if (enter(p, self, &last)) {
      take_part(p, self);
      p.finished.fetch_add(1, std::memory_order_seq_cst);
      if (p.caller_sleeps.load(std::memory_order_seq_cst)) futex_wake(p.finished, 1);
      continue;
    }
    auto changed = [&] { return p.epoch.load(std::memory_order_relaxed) != epoch; };
    if (spin(p.spin_ns.load(std::memory_order_relaxed), changed)) continue;
    p.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (p.epoch.load(std::memory_order_seq_cst) == epoch) futex_wait(p.epoch, epoch);
    p.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
  return nullptr;
}

/// Starts workers until there are `n`, or as many as the system allows. Workers block all signals, which go to the
/// user's threads.
void start_workers(Pool& p, int n) {
  int have = p.workers.load(std::memory_order_relaxed);
  if (have >= n) return;
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  for (; have < n; ++have) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, reinterpret_cast<void*>(static_cast<std::intptr_t>(have + 1))) != 0)
      break;
    char name[32];
    std::snprintf(name, sizeof name, "kassette-%d", have + 1);
    pthread_setname_np(thread, name);
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  p.workers.store(have, std::memory_order_relaxed);
}

// The child of a fork has only the calling thread: it starts over without workers and without a job.
void start_over_in_child() {
  std::int64_t spin_ns = pool().spin_ns.load(std::memory_order_relaxed);
  (new (pool_bytes) Pool)->spin_ns.store(spin_ns, std::memory_order_relaxed);
}
void make_pool() {
  new (pool_bytes) Pool;
  pthread_atfork(nullptr, nullptr, start_over_in_child);
}

/// The unit in which a range is shared out. It is smaller than a grain of many elements, so that two threads divide 2.5
/// grains evenly, not into 2 and 0.5.
std::int64_t unit_of(std::int64_t grain) { return grain < 1024 ? grain : grain / 1024 * 64; }

void share_out(Pool& p, std::int64_t n, std::int64_t grain, NumberedRangeFn f, From from, int slices) {
  const std::int64_t unit = unit_of(grain), units = ceil_div(n, unit);
  p.job.f = f;
  p.job.from = from;
  p.job.slices = slices;
  p.job.on_interrupt = policy_for_parts();
  // A few grains of several elements make one part per thread: a part taken over by another thread would leave the
  // cache that holds it. A grain of one element (a tile, a sample) is enough work to be taken over.
  const std::int64_t each = ceil_div(ceil_div(n, grain), slices);
  p.job.part = grain > 1 && each < 2 * kPartsPerThread
                   ? ceil_div(units, slices) * unit
                   : ceil_div(std::max<std::int64_t>(1, each / kPartsPerThread) * grain, unit) * unit;
  p.job.failed.store(false, std::memory_order_relaxed);
  for (int i = 0; i < slices; ++i) {
    p.slice[i].begin = units * i / slices * unit;
    p.slice[i].next.store(p.slice[i].begin, std::memory_order_relaxed);
    p.slice[i].end = std::min(n, units * (i + 1) / slices * unit);
  }
  p.finished.store(0, std::memory_order_relaxed);
  std::uint64_t number = (p.gate.load(std::memory_order_relaxed) >> 32) + 1;
  if (static_cast<std::uint32_t>(number) == 0) number = 1;  // 0: no job, as a new worker has it
  p.gate.store(number << 32 | kOpen | static_cast<std::uint64_t>(slices) << 16, std::memory_order_release);
  p.epoch.fetch_add(1, std::memory_order_seq_cst);
  if (p.sleepers.load(std::memory_order_seq_cst) > 0)
    futex_wake(p.epoch, p.workers.load(std::memory_order_relaxed) < slices ? slices - 1 : INT_MAX);
}

/// Shuts the gate and waits for the workers inside.
void close_gate_and_wait(Pool& p) {
  std::uint64_t gate = p.gate.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto inside = static_cast<std::uint32_t>(gate & 0xffff);
  auto all_finished = [&] { return p.finished.load(std::memory_order_acquire) == inside; };
  if (spin(p.spin_ns.load(std::memory_order_relaxed), all_finished)) return;
  p.caller_sleeps.store(true, std::memory_order_seq_cst);
  for (std::uint32_t n; (n = p.finished.load(std::memory_order_seq_cst)) != inside;) futex_wait(p.finished, n);
  p.caller_sleeps.store(false, std::memory_order_relaxed);
}

/// Runs the whole range on this thread; a long one in pieces, so that it can be interrupted.
void run_alone(std::int64_t n, std::int64_t grain, NumberedRangeFn f, From from) {
  constexpr std::int64_t kGrains = 64;  // a grain is worth a thread: some 10 us
  const std::int64_t piece = grain > n / kGrains ? n : kGrains * grain;
  for (std::int64_t begin = 0; begin < n; begin += piece) {
    check_interrupt();
    const std::int64_t at = place(from, begin, 0, n, piece);
    f.call(f.object, at, std::min(n, at + piece), 0);
  }
}

int default_threads() {
  int cpus = std::min(available_cpus(), kMaxThreads);
  const char* text = std::getenv("KASSETTE_NUM_THREADS");
  if (!text || !*text) return cpus;
  char* end;
  long n = std::strtol(text, &end, 10);
  if (*end == 0 && n >= 1 && n <= kMaxThreads) return static_cast<int>(n);
  log_warning(kassette::text("KASSETTE_NUM_THREADS is \"", text, "\"; it must be a number from 1 to ", kMaxThreads,
                             "; using ", cpus));
  return cpus;
}

void use_threads(int n) {
  pthread_once(&pool_once, make_pool);
  pool().spin_ns.store(n > available_cpus() ? kCrowdedSpinNs : kSpinNs, std::memory_order_relaxed);
  threads_wanted.store(n, std::memory_order_release);
}

}  // namespace

bool sharing_work() noexcept { return sharing; }

void parallel_parts(std::int64_t n, std::int64_t grain, RangeFn f, From from) {
  auto call = [](void* o, std::int64_t begin, std::int64_t end, int) {
    auto& of = *static_cast<RangeFn*>(o);
    of.call(of.object, begin, end);
  };
  numbered_parts(n, grain, {&f, call}, from, kMaxThreads);
}

void numbered_parts(std::int64_t n, std::int64_t grain, NumberedRangeFn f, From from, int most) {
  if (n <= 0) return;
  grain = std::max<std::int64_t>(1, grain / grain_divisor);
  int slices = static_cast<int>(std::min<std::int64_t>(std::min(num_threads(), most), n / grain));
  Pool& p = pool();
  // If a job of another user thread is running, this thread does its work alone: both make progress, and the CPUs are
  // busy anyway.
  if (slices <= 1 || in_part || p.busy.exchange(true, std::memory_order_acquire)) {
    run_alone(n, grain, f, from);
    return;
  }
  sharing = true;
  start_workers(p, slices - 1);
  share_out(p, n, grain, f, from, slices);
  take_part(p, 0);
  close_gate_and_wait(p);
  sharing = false;
  std::exception_ptr error;
  std::swap(error, p.job.error);
  p.busy.store(false, std::memory_order_release);
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
    cancel_interrupt();
    throw;
  }
}

}  // namespace kassette::devices

namespace kassette {
using namespace devices;

int num_threads() {
  int n = threads_wanted.load(std::memory_order_acquire);
  if (n == 0) use_threads(n = default_threads());
  return n;
}

void set_num_threads(int n) {
  if (n < 0 || n > kMaxThreads)
    fail<ValueError>({"set_num_threads", "n"}, "is ", n, kExpected, "it must be 0 to ", kMaxThreads);
  use_threads(n ? n : std::min(available_cpus(), kMaxThreads));
}

}  // namespace kassette

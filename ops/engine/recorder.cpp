// ops/engine/recorder.cpp - events, by thread.
#include "ops/engine/recorder.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <kassette/runtime.h>

#include "core/text.h"
#include "devices/plugin.h"
#include "ops/engine/observe.h"

namespace kassette::ops {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::size_t kMostEvents = std::size_t(1) << 21;  // of a thread: about 300 MB
constexpr std::size_t kMostPending = 1024;                 // pairs of marks that wait for their times
constexpr std::int64_t kBetweenSamples = 20000;            // ns: reading the counters takes a lock

/// An event on an accelerator whose times are not known yet.
struct Pending {
  std::size_t event;
  Device device;
  void* marks[2];
};

/// The events of one thread. Others read them when a profile ends.
struct ThreadLog {
  std::mutex mutex;
  std::vector<RecordedEvent> events;
  std::vector<std::int64_t> shapes;
  std::vector<MemorySample> memory;
  std::deque<Pending> pending;
  std::int64_t left_out = 0, sampled = 0;
  int number = 0;
  bool ended = false;  // the thread has
};

/// Relates the time of an accelerator to that of the host.
struct DeviceClock {
  void* mark;         // on the accelerator
  std::int64_t host;  // when it was passed, by the host's clock
};

struct Recorder {
  std::mutex mutex;
  int active = 0, threads = 0;
  std::vector<std::unique_ptr<ThreadLog>> logs;
  std::atomic<DeviceClock*> clocks[256] = {};  // by the index of the device
  std::set<std::string> names;
};
Recorder& recorder() {
  static auto* r = new Recorder;  // never destroyed: threads may outlive static objects
  return *r;
}

/// Tells the recorder that the thread has ended.
struct LogOfThread {
  ThreadLog* log = nullptr;
  ~LogOfThread();
};
LogOfThread::~LogOfThread() {
  if (!log) return;
  const ObserverLock lock(recorder().mutex);
  log->ended = true;
}
thread_local LogOfThread own;

ThreadLog& log_of_thread() {
  if (own.log) return *own.log;
  Recorder& r = recorder();
  const ObserverLock lock(r.mutex);
  auto made = std::make_unique<ThreadLog>();
  made->number = ++r.threads;
  r.logs.push_back(std::move(made));
  return *(own.log = r.logs.back().get());
}

// ---- accelerators ---------------------------------------------------------------------------------------------------

/// Gives back what is left of an event's marks.
void drop_marks(OpenEvent& e) {
  for (void*& mark : e.marks)
    if (mark) devices::cuda_device_api(e.event.device).drop(std::exchange(mark, nullptr));
}

void* mark_on(Device device) { return device == cpu ? nullptr : devices::cuda_device_api(device).mark(); }

/// The first mark on a device, made once its work so far has run; null during a capture.
const DeviceClock* clock_of(Device device) {
  std::atomic<DeviceClock*>& clock = recorder().clocks[device.index()];
  if (DeviceClock* made = clock.load(std::memory_order_acquire)) return made;
  const ObserverLock lock(recorder().mutex);
  if (DeviceClock* made = clock.load(std::memory_order_relaxed)) return made;
  devices::CudaDeviceApi& api = devices::cuda_device_api(device);
  void* mark = api.mark();
  if (!mark) return nullptr;
  api.synchronize();
  auto* made = new DeviceClock{mark, now()};  // one for each device and profile: never freed, others may read it
  clock.store(made, std::memory_order_release);
  return made;
}

/// Fills in the times of the events whose work has run; `wait`: of all.
void settle(ThreadLog& log, bool wait) {
  while (!log.pending.empty()) {
    const Pending& p = log.pending.front();
    devices::CudaDeviceApi& api = devices::cuda_device_api(p.device);
    if (!api.passed(p.marks[1], wait)) return;
    RecordedEvent& e = log.events[p.event];
    if (const DeviceClock* clock = recorder().clocks[p.device.index()].load(std::memory_order_acquire)) {
      e.device_begin = clock->host + static_cast<std::int64_t>(api.seconds_between(clock->mark, p.marks[0]) * 1e9);
      e.device_end = e.device_begin + static_cast<std::int64_t>(api.seconds_between(p.marks[0], p.marks[1]) * 1e9);
    }
    for (void* mark : p.marks) api.drop(mark);
    log.pending.pop_front();
  }
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

/// A shape and dtype as numbers: its rank and dtype, then its sizes.
void put_spec(std::vector<std::int64_t>& to, const TensorSpec& spec) {
  to.push_back(spec.rank * 256 + static_cast<std::int64_t>(spec.dtype.code()));
  for (int i = 0; i < spec.rank; ++i) to.push_back(spec.dims[i]);
}
TensorSpec take_spec(const std::int64_t*& from) {
  TensorSpec spec;
  spec.rank = static_cast<std::int8_t>((*from & ~std::int64_t(255)) / 256);
  spec.dtype = DType(static_cast<DType::Code>(*from++ & 255));
  for (int i = 0; i < spec.rank; ++i) spec.dims[i] = *from++;
  return spec;
}

void sample_memory(ThreadLog& log, const RecordedEvent& e) {
  if (e.end - log.sampled < kBetweenSamples) return;
  log.sampled = e.end;
  log.memory.push_back({e.end, memory_stats(cpu).live, cpu});
  if (e.device != cpu) log.memory.push_back({e.end, memory_stats(e.device).live, e.device});
}

void record(OpenEvent& open) {
  ThreadLog& log = log_of_thread();
  RecordedEvent& e = open.event;
  const ObserverLock lock(log.mutex);
  if (log.events.size() == kMostEvents) {
    ++log.left_out;
    return;
  }
  e.thread = log.number;
  e.shapes = static_cast<std::int64_t>(log.shapes.size());
  for (const TensorSpec& spec : open.specs) {
    put_spec(log.shapes, spec);
    if (spec.known()) e.bytes += spec.bytes();
  }
  log.events.push_back(e);
  if (open.marks[0] && open.marks[1]) {
    log.pending.push_back({log.events.size() - 1, e.device, {open.marks[0], open.marks[1]}});
    open.marks[0] = open.marks[1] = nullptr;
  }
  if (e.kind != RecordedEvent::scope) sample_memory(log, e);
  if (log.pending.size() > kMostPending) settle(log, /*wait=*/false);
}

}  // namespace

std::string Recording::shapes_text(const RecordedEvent& e) const {
  PlainStream os;
  const std::int64_t* at = shapes.data() + e.shapes;
  for (int i = 0; i < e.n_in + e.n_out; ++i) {
    if (i) os << (i == e.n_in ? " -> " : ", ");
    else if (!e.n_in) os << "-> ";
    const TensorSpec spec = take_spec(at);
    os << shape_text(spec) << ' ' << spec.dtype;
  }
  return os.str();
}

const char* kept_name(const std::string& name) {
  Recorder& r = recorder();
  const ObserverLock lock(r.mutex);
  return r.names.insert(name).first->c_str();
}

void begin_event(OpenEvent& e) noexcept {
  e.exceptions = std::uncaught_exceptions();
  e.event.depth = tls_observed.depth++;
  e.origin_around = tls_observed.origin;
  if (e.event.device != cpu && e.event.kind != RecordedEvent::scope) try {
      if (clock_of(e.event.device)) e.marks[0] = mark_on(e.event.device);
    } catch (...) {  // the op itself will say what is wrong with the device
    }
  e.event.begin = now();
}

void end_event(OpenEvent& e) noexcept {
  e.event.end = now();
  e.event.depth = tls_observed.depth = tls_observed.depth - 1;
  tls_observed.origin = e.origin_around;
  e.event.failed = std::uncaught_exceptions() > e.exceptions;
  try {
    if (e.marks[0]) e.marks[1] = mark_on(e.event.device);
    record(e);
  } catch (...) {  // no memory for it
  }
  drop_marks(e);  // if there was no room for the event, or no second mark
}

void cancel_event(OpenEvent& e) noexcept {
  --tls_observed.depth;
  tls_observed.origin = e.origin_around;
  drop_marks(e);
}

std::int64_t start_recording() {
  Recorder& r = recorder();
  const ObserverLock lock(r.mutex);
  if (r.active++ == 0) {
    for (auto& clock : r.clocks) clock.store(nullptr, std::memory_order_relaxed);
    start_observing(kProfile);
  }
  return now();
}

namespace {

/// To be called under the recorder's lock.
Recording collect(std::int64_t begin) {
  Recording all;
  all.begin = begin;
  all.end = now();
  for (const auto& log : recorder().logs) {
    const ObserverLock of_thread(log->mutex);
    try {
      settle(*log, /*wait=*/true);
    } catch (...) {  // the device has failed: its times are not known
      log->pending.clear();
    }
    const std::size_t before = all.events.size();
    for (const RecordedEvent& e : log->events) {
      if (e.begin < begin) continue;
      all.events.push_back(e);
      all.events.back().shapes = static_cast<std::int64_t>(all.shapes.size());
      const std::int64_t* at = log->shapes.data() + e.shapes;
      for (int i = 0; i < e.n_in + e.n_out; ++i) put_spec(all.shapes, take_spec(at));
    }
    all.n_threads += all.events.size() > before;
    for (const MemorySample& s : log->memory)
      if (s.time >= begin) all.memory.push_back(s);
    all.left_out += log->left_out;
  }
  return all;
}

/// Forgets all events: nobody profiles any more.
void clear_logs(Recorder& r) {
  for (const auto& log : r.logs) {
    const ObserverLock of_thread(log->mutex);
    log->events = {};
    log->shapes = {};
    log->memory = {};
    log->left_out = 0;
  }
  std::erase_if(r.logs, [](const auto& log) { return log->ended; });
}

}  // namespace

Recording recorded_since(std::int64_t begin) {
  const ObserverLock lock(recorder().mutex);
  return collect(begin);
}

Recording stop_recording(std::int64_t begin) {
  Recorder& r = recorder();
  const ObserverLock lock(r.mutex);
  const bool last = --r.active == 0;
  if (last) stop_observing(kProfile);
  Recording all = collect(begin);
  if (last) clear_logs(r);
  return all;
}

}  // namespace kassette::ops

// tests/emulated_cuda/runtime.cpp - device memory and streams.
#include "cuda.h"
#include "cuda_runtime.h"

#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct EmulatedStream {
  int device;
  std::deque<std::function<void()>> work;
};
/// What an event stands for: a place in a stream. Whoever waits for it keeps it, for events are recorded anew and destroyed.
struct Place {
  EmulatedStream* stream;
  std::atomic<bool> passed{false};
};
struct EmulatedEvent {
  std::shared_ptr<Place> place;
};
struct EmulatedContext {
  int device;
};

namespace {

constexpr std::size_t kArena = std::size_t(1) << 30, kPage = 4096;
constexpr int kDevices = 8;
EmulatedContext contexts[kDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local EmulatedContext* current_context = nullptr;
constexpr unsigned char kFresh = 0xff, kCanary = 0xa5;   // floats of fresh memory are NaN
constexpr std::size_t kFilled = 64 << 10;   // the beginning of a block; what was never touched costs mprotect nothing

std::atomic<std::int64_t> host_copies{0}, frees{0};
int current() { return current_context ? current_context->device : 0; }

[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "emulated CUDA device: %s\n", why);
  std::abort();
}

/// Blocks are whole pages; what a block does not use of its last page, and the page after it, is not to be written.
struct State {
  std::recursive_mutex mutex;
  std::byte* arena = nullptr;
  std::size_t used = 0;                             // bytes of the arena that were ever handed out
  struct Block {
    std::size_t bytes;   // asked for
    int device;
  };
  std::map<std::size_t, Block> blocks;              // by place
  std::multimap<std::size_t, std::size_t> free;     // pages' bytes, place
  std::vector<EmulatedStream*> streams;
  bool open = false;                                // the host could touch the arena
  std::int64_t runs = 0;

  State() {
    void* p = mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) die("no address space");
    arena = static_cast<std::byte*>(p);
  }
  void set_open(bool wanted) {
    if (open != wanted && used && mprotect(arena, used, wanted ? PROT_READ | PROT_WRITE : PROT_NONE)) die("mprotect failed");
    open = wanted;
  }
  /// Runs what waits, with the device's memory in reach. It goes out of reach each time at first, and later, since mprotect is
  /// slower than the kernels of tests, every eighth time: every op is called often enough.
  void run(EmulatedStream& stream) {
    if (stream.work.empty()) return;
    set_open(true);
    run_until(stream, nullptr);
    ++runs;
    close();
  }
  /// In order, up to the place if there is one. Another stream that waits for it may be what runs this one.
  static void run_until(EmulatedStream& stream, const Place* place) {
    while (!stream.work.empty() && !(place && place->passed)) {
      std::function<void()> next = std::move(stream.work.front());
      stream.work.pop_front();
      next();
    }
  }
  void close() {
    static const bool stays = std::getenv("EMULATED_CUDA_OPEN") != nullptr;
    if (!stays && (runs < 1000 || runs % 8 == 0)) set_open(false);
  }
  static std::size_t pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage + kPage; }
  void check_canary(std::size_t place, std::size_t bytes) {
    for (std::size_t i = bytes; i < pages(bytes); ++i)
      if (arena[place + i] != std::byte{kCanary}) die("a kernel wrote past the end of a block");
  }
};
State& state() {
  static State* s = new State;
  return *s;
}
using Lock = std::lock_guard<std::recursive_mutex>;
std::atomic<std::int64_t> waits;
cudaError_t fault() { return std::getenv("EMULATED_CUDA_FAULT") ? cudaErrorIllegalAddress : cudaSuccess; }

/// Runs streams beside the threads that enqueue.
struct Runner {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<EmulatedStream*> streams;
  Runner() {
    std::thread([this] {
      for (;;) {
        std::unique_lock<std::mutex> lock(mutex);
        more.wait(lock, [&] { return !streams.empty(); });
        EmulatedStream* stream = streams.front();
        streams.pop_front();
        lock.unlock();
        State& s = state();
        Lock held(s.mutex);
        s.run(*stream);
      }
    }).detach();
  }
};

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    default: return "an emulated error";
  }
}
cudaError_t cudaGetDeviceCount(int* count) { return *count = kDevices, cudaSuccess; }
cudaError_t cudaSetDevice(int index) {
  if (index >= kDevices) return cudaErrorInvalidDevice;
  current_context = &contexts[index];
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) { return *index = current(), cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int index) {
  if (index >= kDevices) return cudaErrorInvalidDevice;
  const char* set = std::getenv("EMULATED_CUDA_CAPABILITY");
  const int capability = set ? std::atoi(set) : 90;
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  if (index >= kDevices) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated GPU %d", index);
  properties->totalGlobalMem = kArena;
  cudaDeviceGetAttribute(&properties->major, cudaDevAttrComputeCapabilityMajor, index);
  return cudaDeviceGetAttribute(&properties->minor, cudaDevAttrComputeCapabilityMinor, index);
}

namespace {

CUresult retain_context(CUcontext* context, CUdevice device) {
  if (device < 0 || device >= kDevices) return 101;
  return *context = &contexts[device], CUDA_SUCCESS;
}
CUresult get_context(CUcontext* context) { return *context = current_context, CUDA_SUCCESS; }
CUresult set_context(CUcontext context) { return current_context = context, CUDA_SUCCESS; }

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, cudaDriverEntryPointQueryResult* found) {
  const std::pair<const char*, void*> all[] = {{"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(retain_context)},
                                               {"cuCtxGetCurrent", reinterpret_cast<void*>(get_context)},
                                               {"cuCtxSetCurrent", reinterpret_cast<void*>(set_context)}};
  *found = cudaDriverEntryPointSymbolNotFound;
  for (const auto& [name, f] : all)
    if (!std::strcmp(name, symbol)) *function = f, *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return fault(); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* block) {
  State& s = state();
  Lock lock(s.mutex);
  auto found = s.blocks.find(static_cast<std::size_t>(static_cast<const std::byte*>(block) - s.arena));
  if (found == s.blocks.end()) return cudaErrorInvalidDevice;
  attributes->device = found->second.device;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** block, std::size_t bytes) {
  if (cudaError_t error = fault()) return error;
  State& s = state();
  Lock lock(s.mutex);
  std::size_t place, size = State::pages(bytes);
  if (auto fits = s.free.find(size); fits != s.free.end()) {
    place = fits->second;
    s.free.erase(fits);
    s.set_open(true);
  } else {
    if (size > kArena - s.used) return cudaErrorMemoryAllocation;
    place = s.used;
    s.set_open(true);
    s.used += size;
    mprotect(s.arena + place, size, PROT_READ | PROT_WRITE);
  }
  s.blocks[place] = {bytes, current()};
  std::memset(s.arena + place, kFresh, std::min(bytes, kFilled));
  std::memset(s.arena + place + bytes, kCanary, size - bytes);
  s.close();
  *block = s.arena + place;
  return cudaSuccess;
}

cudaError_t cudaFree(void* block) {
  if (!block) return cudaSuccess;
  ++frees;
  State& s = state();
  Lock lock(s.mutex);
  for (EmulatedStream* stream : s.streams) s.run(*stream);
  auto place = static_cast<std::size_t>(static_cast<std::byte*>(block) - s.arena);
  auto found = s.blocks.find(place);
  if (found == s.blocks.end()) die("cudaFree of what cudaMalloc did not give");
  if (found->second.device != current()) die("cudaFree while another device is current");
  std::size_t size = State::pages(found->second.bytes);
  s.set_open(true);
  s.check_canary(place, found->second.bytes);
  madvise(s.arena + place, size, MADV_DONTNEED);
  s.close();
  s.blocks.erase(found);
  s.free.emplace(size, place);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  State& s = state();
  Lock lock(s.mutex);
  s.streams.push_back(*stream = new EmulatedStream{current(), {}});
  return cudaSuccess;
}

namespace {

/// The stream behind a handle; null where there is none.
EmulatedStream* behind(cudaStream_t handle) {
  static EmulatedStream* legacy[kDevices] = {};
  State& s = state();
  Lock lock(s.mutex);
  if (handle == cudaStreamLegacy) {
    EmulatedStream*& made = legacy[current()];
    if (!made) s.streams.push_back(made = new EmulatedStream{current(), {}});
    return made;
  }
  return std::find(s.streams.begin(), s.streams.end(), handle) != s.streams.end() ? handle : nullptr;
}

}  // namespace

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  ++waits;
  State& s = state();
  Lock lock(s.mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  s.run(*stream);
  return fault();
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Lock lock(state().mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (cudaError_t error = fault()) return error;
  return stream->work.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  State& s = state();
  Lock lock(s.mutex);
  if (!behind(stream)) return cudaErrorInvalidResourceHandle;
  s.run(*stream);
  s.streams.erase(std::find(s.streams.begin(), s.streams.end(), stream));   // the rest stays, for the places in it
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  ++waits;
  State& s = state();
  Lock lock(s.mutex);
  for (EmulatedStream* stream : s.streams)
    if (stream->device == current()) s.run(*stream);
  return fault();
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) { return *can = device - peer == 1 || peer - device == 1, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  static bool enabled[kDevices][kDevices];
  Lock lock(state().mutex);
  return std::exchange(enabled[current()][peer], true) ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
}
void emulated_enqueue(cudaStream_t handle, std::function<void()> work) {
  Lock lock(state().mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) die("work for a stream that there is not");
  if (stream->device != current()) die("work for a stream while another device is current");
  stream->work.push_back(std::move(work));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  State& s = state();
  auto here = [&](const void* p) { return p >= s.arena && p < s.arena + kArena; };
  if (here(to) != (kind != cudaMemcpyDeviceToHost) || here(from) != (kind != cudaMemcpyHostToDevice)) die("cudaMemcpy the wrong way");
  if (kind != cudaMemcpyDeviceToDevice) ++host_copies;
  if (kind == cudaMemcpyDeviceToHost) ++waits;
  emulated_enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes, cudaStream_t stream) {
  State& s = state();
  Lock lock(s.mutex);
  auto lies_on = [&](const void* p, int device) {
    auto after = s.blocks.upper_bound(static_cast<std::size_t>(static_cast<const std::byte*>(p) - s.arena));
    return after != s.blocks.begin() && std::prev(after)->second.device == device;
  };
  if (!lies_on(to, to_device) || !lies_on(from, from_device)) die("cudaMemcpyPeer of memory of another device");
  emulated_enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  emulated_enqueue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
void emulated_start(cudaStream_t stream) {
  static Runner* runner = new Runner;   // its thread runs until the process ends
  std::lock_guard<std::mutex> lock(runner->mutex);
  if (std::find(runner->streams.begin(), runner->streams.end(), stream) == runner->streams.end()) runner->streams.push_back(stream);
  runner->more.notify_one();
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int index) {
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", index);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** block, std::size_t bytes) {
  *block = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  return *block ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* block) { return std::free(block), cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new EmulatedEvent, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  Lock lock(state().mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  event->place = std::make_shared<Place>();
  event->place->stream = stream;
  emulated_enqueue(handle, [place = event->place] { place->passed = true; });
  return cudaSuccess;
}
/// Without the lock, which the stream holds while it runs, and it may be waiting for another process.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!event->place || event->place->passed) return cudaSuccess;
  emulated_start(event->place->stream);
  return cudaErrorNotReady;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  Lock lock(state().mutex);
  if (!event->place) return cudaSuccess;
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  // Any device's stream may wait for any other's.
  stream->work.push_back([place = event->place] { State::run_until(*place->stream, place.get()); });
  return cudaSuccess;
}

// ---- what tests ask ----------------------------------------------------------------------------------------------------

std::int64_t emulated_waits() { return waits; }
std::int64_t emulated_host_copies() { return host_copies; }
std::int64_t emulated_frees() { return frees; }
int emulated_context() { return current_context ? current_context->device : -1; }
void emulated_set_context(int device) { current_context = device < 0 ? nullptr : &contexts[device]; }

// tests/emulated_cuda/runtime.cpp - device memory and streams, in one piece: running a stream makes memory accessible,
// under one lock.
#include "cuda.h"
#include "cuda_runtime.h"
#include "draws.h"
#include "symbols.h"

#include <signal.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

/// The position in a stream that an event stands for. Work that waits for it keeps it alive: events may be recorded
/// again or destroyed.
struct Place {
  EmulatedStream* stream;
  std::atomic<bool> passed{false};
  std::chrono::steady_clock::time_point when = {};  // it was passed
};
/// An element of a stream's queue: work to run, or an event to wait for.
struct Work {
  std::function<void()> run;
  EmulatedBlocks blocks;
  std::shared_ptr<Place> after;  // or null
  bool waits;                    // it waits for other processes
};
struct EmulatedStream {
  int device;
  std::deque<Work> work;
  std::int64_t number;
  bool held = false;  // what is enqueued waits
};
struct EmulatedEvent {
  std::shared_ptr<Place> place;
};
struct EmulatedContext {
  int device;
};

namespace {

constexpr std::size_t kArena = std::size_t(1) << 30, kPage = 4096;
constexpr std::size_t kAlignment = 16;  // bytes of the widest load of a thread
constexpr int kDevices = 8;
EmulatedContext contexts[kDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local EmulatedContext* current_context = nullptr;
constexpr unsigned char kFresh = 0xff;     // floats of fresh memory are NaN
constexpr std::size_t kFilled = 64 << 10;  // bytes of a block to fill: mprotect is fast for pages that are not touched

std::atomic<std::int64_t> host_copies{0}, frees{0}, peer_questions{0}, context_calls{0}, pageable_copies{0};
int current() { return current_context ? current_context->device : 0; }

/// True if the host may access device memory: EMULATED_CUDA_OPEN.
bool stays_open() {
  static const bool stays = std::getenv("EMULATED_CUDA_OPEN") != nullptr;
  return stays;
}
std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// The guard pattern around blocks: NaN if it is read as halves, floats or doubles. Kernels must not write there.
struct Pattern {
  std::uint8_t bytes[kPage + 1];
  Pattern() {
    for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = i % 2 ? 0xff : 0xc1;
  }
};
const Pattern pattern;

/// All memory and streams. Each block has pages of its own. It is at their end, aligned to 16 bytes (less than in
/// CUDA), in front of a page that is never accessible. The rest of its pages holds the guard pattern.
struct State {
  struct Block {
    std::size_t begin;  // offset of its pages in the arena
    std::size_t bytes;  // the size that was requested
    int device;
    bool open;  // accessible
    std::size_t place() const { return end() - round_up(bytes, kAlignment); }
    std::size_t end() const { return begin + round_up(bytes, kPage); }
    std::size_t size() const { return round_up(bytes, kPage) + kPage; }
  };
  std::recursive_mutex mutex;
  std::byte* arena = nullptr;
  std::size_t used = 0;                          // bytes of the arena that have ever been allocated
  std::map<std::size_t, Block> blocks;           // by place
  std::multimap<std::size_t, std::size_t> free;  // bytes of the pages, begin
  std::map<std::uintptr_t, std::size_t> pinned;  // memory of the host that devices may use: begin, bytes
  std::vector<EmulatedStream*> streams, ended;
  std::int64_t n_streams = 0;
  std::vector<std::size_t> opened;  // places of blocks
  EmulatedDraws draws{emulated_seed()};

  State() {
    void* p = mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) emulated_die("no address space");
    arena = static_cast<std::byte*>(p);
  }
  void protect(const Block& b, int how) {
    if (b.bytes && mprotect(arena + b.begin, b.end() - b.begin, how)) emulated_die("mprotect failed");
  }
  void open(std::size_t place) {
    Block& b = blocks.at(place);
    if (std::exchange(b.open, true)) return;
    opened.push_back(place);
    protect(b, PROT_READ | PROT_WRITE);
  }
  void close() {
    if (stays_open()) return;
    for (std::size_t place : opened) {
      Block& b = blocks.at(place);
      b.open = false;
      protect(b, PROT_NONE);
    }
    opened.clear();
  }

  /// Runs all work of the stream and, in between, random work of other streams. Blocks are accessible meanwhile if they
  /// were passed to that work.
  void run(EmulatedStream& stream) {
    while (!stream.work.empty() && !stream.held)
      if (draws.below(2) == 0) step(stream, /*asked=*/true);
      else step(*streams[draws.below(static_cast<unsigned>(streams.size()))], /*asked=*/false);
    close();
  }
  /// Runs some work although nothing waits for it, as a real device does; at random.
  void run_ahead() {
    if (draws.below(16) != 15) return;
    for (unsigned n = draws.below(16); n > 0; --n)
      step(*streams[draws.below(static_cast<unsigned>(streams.size()))], /*asked=*/false);
    close();
  }
  /// Runs the next work of the stream, or of a stream that it waits for. Work that waits for other processes may never
  /// end: it runs only if `asked`.
  void step(EmulatedStream& stream, bool asked) {
    EmulatedStream* s = &stream;
    while (!s->work.empty() && s->work.front().after && !s->work.front().after->passed)
      s = s->work.front().after->stream;
    if (s->work.empty() || s->held || (s->work.front().waits && !asked)) return;
    const Work next = std::move(s->work.front());
    s->work.pop_front();
    for (std::size_t place : next.blocks.places) open(place);
    if (next.run) next.run();
  }

  /// Calls f(place, bytes) for the parts of the block's pages before and behind it; the pages must be accessible.
  template <class F>
  static void around(const Block& b, F f) {
    f(b.begin, b.place() - b.begin);
    f(b.place() + b.bytes, b.end() - b.place() - b.bytes);
  }
  bool is_intact(const Block& b) const {
    bool intact = true;
    around(b, [&](std::size_t from, std::size_t bytes) {
      intact &= std::memcmp(arena + from, pattern.bytes + from % 2, bytes) == 0;
    });
    return intact;
  }
  /// The block whose pages, or the page behind them, contain the address; blocks.end() if there is none.
  std::map<std::size_t, Block>::const_iterator block_at(std::size_t place) const {
    auto found = blocks.upper_bound(place);
    if (found != blocks.end() && place >= found->second.begin) return found;
    if (found == blocks.begin() || place >= std::prev(found)->second.begin + std::prev(found)->second.size())
      return blocks.end();
    return std::prev(found);
  }
  bool is_pinned(std::uintptr_t address) const {
    auto after = pinned.upper_bound(address);
    return after != pinned.begin() && address - std::prev(after)->first < std::prev(after)->second;
  }
};
State& state() {
  static State* s = [] {
    emulated_catch_faults();
    // A fork waits for the work of other threads: its child has none of them, and could wait for ever for what they
    // hold.
    pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                   [] { new (&state().mutex) std::recursive_mutex; });
    return new State;
  }();
  return *s;
}
using Lock = std::lock_guard<std::recursive_mutex>;
std::atomic<std::int64_t> waits;
cudaError_t fault() { return std::getenv("EMULATED_CUDA_FAULT") ? cudaErrorIllegalAddress : cudaSuccess; }

/// A thread that runs streams in the background.
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
CUresult get_context(CUcontext* context) { return ++context_calls, *context = current_context, CUDA_SUCCESS; }
CUresult set_context(CUcontext context) { return ++context_calls, current_context = context, CUDA_SUCCESS; }

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* found) {
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
  emulated_beside_capture();
  if (cudaError_t error = fault()) return error;
  State& s = state();
  Lock lock(s.mutex);
  State::Block made{0, bytes, current(), false};
  const std::size_t size = made.size();
  if (auto fits = s.free.find(size); fits != s.free.end()) {
    made.begin = fits->second;
    s.free.erase(fits);
  } else {
    if (size > kArena - s.used) return cudaErrorMemoryAllocation;
    made.begin = s.used;
    s.used += size;
  }
  const std::size_t place = made.place();
  s.blocks[place] = made;
  s.open(place);
  std::memset(s.arena + place, kFresh, std::min(bytes, kFilled));
  State::around(made,
                [&](std::size_t from, std::size_t n) { std::memcpy(s.arena + from, pattern.bytes + from % 2, n); });
  s.close();
  *block = s.arena + place;
  return cudaSuccess;
}

cudaError_t cudaFree(void* block) {
  if (!block) return cudaSuccess;
  emulated_beside_capture();
  ++frees;
  State& s = state();
  Lock lock(s.mutex);
  for (EmulatedStream* stream : s.streams) s.run(*stream);
  const auto place = static_cast<std::size_t>(static_cast<std::byte*>(block) - s.arena);
  auto found = s.blocks.find(place);
  if (found == s.blocks.end()) emulated_die("cudaFree of what cudaMalloc did not give");
  if (found->second.device != current()) emulated_die("cudaFree while another device is current");
  const State::Block freed = found->second;
  s.open(place);
  if (!s.is_intact(freed)) emulated_die("somebody wrote past the end of a block");
  madvise(s.arena + freed.begin, freed.size(), MADV_DONTNEED);
  s.close();
  if (stays_open()) s.protect(freed, PROT_NONE);
  s.blocks.erase(place);
  s.free.emplace(freed.size(), freed.begin);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  State& s = state();
  Lock lock(s.mutex);
  if (s.ended.empty()) s.ended.push_back(new EmulatedStream{});
  *stream = s.ended.back();
  s.ended.pop_back();
  **stream = {current(), {}, ++s.n_streams};
  s.streams.push_back(*stream);
  return cudaSuccess;
}

namespace {

/// The stream behind a handle; null if there is none.
EmulatedStream* behind(cudaStream_t handle) {
  static EmulatedStream* legacy[kDevices] = {};
  State& s = state();
  Lock lock(s.mutex);
  if (handle == cudaStreamLegacy) {
    EmulatedStream*& made = legacy[current()];
    if (!made) s.streams.push_back(made = new EmulatedStream{current(), {}, 0});
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
  emulated_not_captured(stream, 0);
  s.run(*stream);
  return fault();
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Lock lock(state().mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  emulated_not_captured(stream, 0);
  if (cudaError_t error = fault()) return error;
  return stream->work.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  State& s = state();
  Lock lock(s.mutex);
  if (!behind(stream)) return cudaErrorInvalidResourceHandle;
  s.run(*stream);
  s.streams.erase(std::find(s.streams.begin(), s.streams.end(), stream));
  s.ended.push_back(stream);  // not deleted: a Place may refer to it
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  ++waits;
  State& s = state();
  Lock lock(s.mutex);
  emulated_not_captured(nullptr, current());
  for (EmulatedStream* stream : s.streams)
    if (stream->device == current()) s.run(*stream);
  return fault();
}

// ---- arguments of kernels -------------------------------------------------------------------------------------------

namespace {

const EmulatedLaunch* running = nullptr;

bool is_of_devices(const void* p) { return p >= state().arena && p < state().arena + kArena; }

/// The reason why a kernel of that device cannot access these bytes; null if it can.
const char* why_not(const void* from, std::size_t bytes, int device) {
  State& s = state();
  Lock lock(s.mutex);
  if (!is_of_devices(from)) return s.is_pinned(reinterpret_cast<std::uintptr_t>(from)) ? nullptr : "memory of the host";
  const auto place = static_cast<std::size_t>(static_cast<const std::byte*>(from) - s.arena);
  const auto found = s.block_at(place);
  if (found == s.blocks.end()) return "memory that is not allocated";
  const auto& [at, block] = *found;
  if (bytes && (place < at || place + bytes > at + block.bytes)) return "memory beyond the end of a block";
  return block.device == device ? nullptr : "memory of another device";
}
void add_block(EmulatedBlocks& blocks, const void* from, std::size_t bytes, int device, const char* what) {
  if (bytes == 0) return;
  if (const char* why = why_not(from, bytes, device)) emulated_die(std::string(what) + " of " + why);
  State& s = state();
  Lock lock(s.mutex);
  if (is_of_devices(from))
    blocks.places.push_back(s.block_at(static_cast<std::size_t>(static_cast<const std::byte*>(from) - s.arena))->first);
}
int device_of(cudaStream_t handle) {
  Lock lock(state().mutex);
  const EmulatedStream* stream = behind(handle);
  if (!stream) emulated_die("work for a stream that there is not");
  return stream->device;
}
bool is_mapped(std::uintptr_t address) {
  unsigned char resident;
  return mincore(reinterpret_cast<void*>(address / kPage * kPage), 1, &resident) == 0;
}

/// Reports a faulting access after the test framework has named the test. The framework raises the signal again,
/// without its cause (si_code): then this returns once, and the access faults again.
void say_fault(int signal, siginfo_t* info, void*) {
  static bool sent = false;
  if (info->si_code <= 0 && !std::exchange(sent, true)) return;
  ::signal(signal, SIG_DFL);
  const bool ours = is_of_devices(info->si_addr);
  if (running)
    emulated_die(ours ? "it touches memory that no block of its arguments has"
                      : "it loads or stores what is not aligned as its type, or not where memory is");
  if (ours) emulated_die("the host touched memory of a device");
  raise(signal);
}

}  // namespace

void emulated_catch_faults() {
  struct sigaction action = {};
  action.sa_sigaction = say_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGTRAP}) sigaction(signal, &action, nullptr);
}
void emulated_die(const std::string& why) {
  std::fprintf(stderr, "emulated CUDA device: %s%s%s (EMULATED_CUDA_SEED=%llu)\n",
               running ? emulated_name(running->kernel).c_str() : "", running ? ": " : "", why.c_str(),
               static_cast<unsigned long long>(emulated_seed()));
  std::abort();
}
std::uint64_t emulated_seed() {
  static const std::uint64_t seed = [] {
    const char* set = std::getenv("EMULATED_CUDA_SEED");
    return set ? std::strtoull(set, nullptr, 10) : 1;
  }();
  return seed;
}

void EmulatedBlocks::add(const void* from, std::size_t bytes, cudaStream_t stream, const char* what) {
  add_block(*this, from, bytes, device_of(stream), what);
}

void EmulatedLaunch::take(const void* argument, std::size_t bytes, bool pointer) {
  State& s = state();
  Lock lock(s.mutex);
  const int number = arguments++, device = device_of(stream);
  for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= bytes; i += sizeof(std::uintptr_t)) {
    std::uintptr_t word;
    std::memcpy(&word, static_cast<const char*>(argument) + i, sizeof word);
    const auto* to = reinterpret_cast<const std::byte*>(word);
    // Integers are small, the bits of doubles large, and addresses between them. A word of a struct that looks like a
    // stale address of device memory may still be two numbers, and is accepted: if it is an address, the kernel faults
    // when it uses it. A word with small low bits may be a number before padding that was not cleared.
    const bool is_address =
        word >> 40 && word >> 47 == 0 && static_cast<std::uint32_t>(word) >= 1 << 16 && is_mapped(word);
    if (word == 0 || !(is_of_devices(to) || pointer || is_address)) continue;
    if (const char* why = why_not(to, 0, device)) {
      if (!pointer && is_of_devices(to)) continue;
      running = this;  // it is what emulated_die names
      emulated_die("argument " + std::to_string(number) + (pointer ? "" : ", byte " + std::to_string(i)) +
                   ": a pointer to " + why);
    }
    if (is_of_devices(to)) blocks.places.push_back(s.block_at(static_cast<std::size_t>(to - s.arena))->first);
  }
}

void EmulatedLaunch::run(dim3 grid, dim3 block, const std::function<void()>& thread) const {
  State& s = state();
  running = this;
  emulated_run_grid(kernel, grid, block, thread);
  for (std::size_t place : blocks.places)
    if (!s.is_intact(s.blocks.at(place))) emulated_die("it wrote beyond the end, or before the beginning, of a block");
  running = nullptr;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return ++peer_questions, *can = device - peer == 1 || peer - device == 1, cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  static bool enabled[kDevices][kDevices];
  Lock lock(state().mutex);
  return std::exchange(enabled[current()][peer], true) ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
}
int emulated_device_of(cudaStream_t stream) { return stream->device; }
std::int64_t emulated_stream_number(cudaStream_t handle) {
  Lock lock(state().mutex);
  const EmulatedStream* stream = behind(handle);
  return stream ? stream->number : -1;
}
cudaError_t emulated_enqueue(cudaStream_t handle, EmulatedBlocks blocks, std::function<void()> work, bool for_others,
                             EmulatedNode kind) {
  State& s = state();
  Lock lock(s.mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) emulated_die("work for a stream that there is not");
  if (stream->device != current()) emulated_die("work for a stream while another device is current");
  cudaError_t error = cudaSuccess;
  if (emulated_captures(stream, kind, blocks, work, error)) return error;
  stream->work.push_back({std::move(work), std::move(blocks), nullptr, for_others});
  s.run_ahead();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  EmulatedBlocks blocks;
  auto check = [&](const void* p, bool of_device) {
    if (of_device) blocks.add(p, bytes, stream, "cudaMemcpy");
    else if (is_of_devices(p)) emulated_die("cudaMemcpy the wrong way");
  };
  check(to, kind != cudaMemcpyDeviceToHost);
  check(from, kind != cudaMemcpyHostToDevice);
  if (kind != cudaMemcpyDeviceToDevice) ++host_copies;
  if (kind != cudaMemcpyDeviceToDevice) {
    Lock lock(state().mutex);
    pageable_copies += !state().is_pinned(reinterpret_cast<std::uintptr_t>(kind == cudaMemcpyHostToDevice ? from : to));
  }
  if (kind == cudaMemcpyDeviceToHost) ++waits;
  constexpr EmulatedNode kinds[] = {EmulatedNode::copy_in, EmulatedNode::copy_out, EmulatedNode::copy};
  return emulated_enqueue(
      stream, std::move(blocks), [=] { std::memcpy(to, from, bytes); }, /*for_others=*/false, kinds[kind]);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  EmulatedBlocks blocks;
  add_block(blocks, to, bytes, to_device, "cudaMemcpyPeer");
  add_block(blocks, from, bytes, from_device, "cudaMemcpyPeer");
  return emulated_enqueue(stream, std::move(blocks), [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  EmulatedBlocks blocks;
  blocks.add(to, bytes, stream, "cudaMemset");
  return emulated_enqueue(
      stream, std::move(blocks), [=] { std::memset(to, value, bytes); }, /*for_others=*/false, EmulatedNode::zero);
}
void emulated_start(cudaStream_t stream) {
  static Runner* runner = new Runner;  // its thread runs until the process ends
  std::lock_guard<std::mutex> lock(runner->mutex);
  if (std::find(runner->streams.begin(), runner->streams.end(), stream) == runner->streams.end())
    runner->streams.push_back(stream);
  runner->more.notify_one();
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int index) {
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", index);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** block, std::size_t bytes) {
  emulated_beside_capture();
  *block = std::aligned_alloc(kPage, round_up(bytes, kPage));
  if (!*block) return cudaErrorMemoryAllocation;
  State& s = state();
  Lock lock(s.mutex);
  s.pinned[reinterpret_cast<std::uintptr_t>(*block)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) {
  State& s = state();
  Lock lock(s.mutex);
  if (block && !s.pinned.erase(reinterpret_cast<std::uintptr_t>(block)))
    emulated_die("cudaFreeHost of what cudaMallocHost did not give");
  return std::free(block), cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new EmulatedEvent, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  Lock lock(state().mutex);
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  emulated_not_captured(stream, 0);
  event->place = std::make_shared<Place>();
  event->place->stream = stream;
  emulated_enqueue(handle, {}, [place = event->place] {
    place->when = std::chrono::steady_clock::now();
    place->passed = true;
  });
  return cudaSuccess;
}
/// Does not lock: a running stream holds the lock, and may be waiting for another process.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  emulated_beside_capture();
  if (!event->place || event->place->passed) return cudaSuccess;
  emulated_start(event->place->stream);
  return cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++waits;
  if (!event->place) return cudaSuccess;
  State& s = state();
  Lock lock(s.mutex);
  if (!event->place->passed) s.run(*event->place->stream);
  return fault();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  if (!first->place || !second->place) return cudaErrorInvalidResourceHandle;
  if (!first->place->passed || !second->place->passed) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(second->place->when - first->place->when).count();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  Lock lock(state().mutex);
  if (!event->place) return cudaSuccess;
  EmulatedStream* stream = behind(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  emulated_not_captured(stream, 0);
  // Any device's stream may wait for any other's.
  stream->work.push_back({nullptr, {}, event->place, false});
  return cudaSuccess;
}

// ---- what tests ask -------------------------------------------------------------------------------------------------

std::int64_t emulated_waits() { return waits; }
std::int64_t emulated_host_copies() { return host_copies; }
std::int64_t emulated_frees() { return frees; }
EMULATED_ASKED std::int64_t emulated_peer_questions() { return peer_questions; }
void* emulated_new_stream(int device) {
  EmulatedContext* const before = std::exchange(current_context, &contexts[device]);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  current_context = before;
  return stream;
}
void emulated_hold_stream(void* stream, bool held) {
  Lock lock(state().mutex);
  static_cast<cudaStream_t>(stream)->held = held;
}
void emulated_end_stream(void* stream) { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }
std::int64_t emulated_pageable_copies() { return pageable_copies; }
std::int64_t emulated_context_calls() { return context_calls; }
int emulated_context() { return current_context ? current_context->device : -1; }
void emulated_set_context(int device) { current_context = device < 0 ? nullptr : &contexts[device]; }

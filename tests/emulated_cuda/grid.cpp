// tests/emulated_cuda/grid.cpp - the threads of a block, on fibers: each runs until a barrier stops it.
#undef _FORTIFY_SOURCE  // it treats a jump to another stack as an error
#include "cuda_runtime.h"
#include "draws.h"
#include "symbols.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <unordered_map>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr unsigned kMaxThreads = 1024, kWarps = kMaxThreads / 32;
constexpr std::size_t kStack = 256 << 10;  // pages that a kernel does not need are never touched
constexpr unsigned char kPoison = 0xff;    // floats are NaN

enum class Waits : std::uint8_t { idle, nothing, warp, block };

/// The stack and the state of a thread that has started.
struct Fiber {
  ucontext_t start;
  jmp_buf place;  // switching by setjmp costs no system call
  bool made = false;
  Waits waits = Waits::idle;
  unsigned thread = 0, turn = 0;
};
/// The state of a warp of the running block.
struct Warp {
  unsigned next, end;  // range in `order` of the threads that have not started
  unsigned live;
  Fiber* waiting[32];
  Waits waits;  // what all its threads wait for; `nothing`: some can run, or they wait for different things
};

Fiber fibers[kMaxThreads];
Fiber* spare[kMaxThreads];
unsigned spares, made;
jmp_buf scheduler;
Fiber* current;
Warp* warp;  // the running one
Warp warps[kWarps];
std::uint64_t slots[2][kMaxThreads];  // the values that shuffles exchange; two sets: a thread may be one shuffle ahead
unsigned order[kMaxThreads];          // the threads of a block in the order in which they start
const std::function<void()>* body;

// ---- orders ---------------------------------------------------------------------------------------------------------
EmulatedDraws draws{emulated_seed()};

/// A random permutation of 0..n-1: forward, backward, or in steps that are coprime to n.
struct Order {
  std::uint64_t n, step, first;
  explicit Order(unsigned n_) : n(n_), step(1), first(0) {
    const unsigned kind = draws.below(3);
    if (n < 2 || kind == 0) return;
    first = kind == 1 ? n - 1 : draws.below(n_);
    step = kind == 1 ? n - 1 : 1 + draws.below(n_ - 1);
    for (auto common =
             [](std::uint64_t a, std::uint64_t b) {
               while (b) a = std::exchange(b, a % b);
               return a;
             };
         common(step, n) != 1;)
      step = step % n + 1;
  }
  unsigned operator()(unsigned i) const { return static_cast<unsigned>((first + i * step) % n); }
};

// ---- __shared__ -----------------------------------------------------------------------------------------------------
/// The __shared__ variables of all kernels, poisoned except while a block runs. Since there are many, some launches of
/// a kernel determine which of them it writes, and only these are poisoned after each block.
class Shared {
 public:
  explicit Shared(const void* kernel) : kernel_(kernels_[kernel]) {
    if (!memory_) {
      memory_ = emulated_memory_of_thread();
      for (const EmulatedSymbol& v : variables()) poison(v);
    }
    looks_ = (kernel_.launches & (kernel_.launches - 1)) == 0;  // 0, 1, 2, 4, 8, ...
    ++kernel_.launches;
  }
  /// Called after the first and the last block of a launch that is examined.
  void find_written() {
    if (!looks_) return;
    for (const EmulatedSymbol& v : variables())
      if (is_written(v) && std::find(kernel_.written.begin(), kernel_.written.end(), &v) == kernel_.written.end())
        kernel_.written.push_back(&v);
  }
  void poison() const {
    for (const EmulatedSymbol* v : kernel_.written) poison(*v);
  }

 private:
  struct Kernel {
    std::int64_t launches = 0;
    std::vector<const EmulatedSymbol*> written;
  };
  static const std::vector<EmulatedSymbol>& variables() {
    static const std::vector<EmulatedSymbol> found = emulated_shared();
    return found;
  }
  static void poison(const EmulatedSymbol& v) { std::memset(memory_ + v.place, kPoison, v.bytes); }
  static bool is_written(const EmulatedSymbol& v) {
    const char* at = memory_ + v.place;
    return static_cast<unsigned char>(*at) != kPoison || std::memcmp(at, at + 1, v.bytes - 1) != 0;
  }
  static thread_local char* memory_;
  static std::unordered_map<const void*, Kernel> kernels_;
  Kernel& kernel_;
  bool looks_;
};
thread_local char* Shared::memory_;
std::unordered_map<const void*, Shared::Kernel> Shared::kernels_;

// ---- fibers ---------------------------------------------------------------------------------------------------------
void leave(Waits what) {
  current->waits = what;
  if (!_setjmp(current->place)) _longjmp(scheduler, 1);
}

/// Runs the threads of a warp one after the other until one has to wait: a kernel without barriers needs a single
/// fiber.
void work() {
  for (;;) {
    while (warp->next < warp->end) {
      threadIdx.x = current->thread = order[warp->next++];
      current->turn = 0;
      slots[0][current->thread] = slots[1][current->thread] = ~std::uint64_t(0);
      (*body)();
      --warp->live;
    }
    leave(Waits::idle);
  }
}

void resume(Fiber& f) {
  current = &f;
  f.waits = Waits::nothing;
  threadIdx.x = f.thread;
  if (_setjmp(scheduler)) return;
  if (f.made) _longjmp(f.place, 1);
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) std::abort();
  getcontext(&f.start);
  f.start.uc_stack.ss_sp = stack;
  f.start.uc_stack.ss_size = kStack;
  f.start.uc_link = nullptr;
  makecontext(&f.start, work, 0);
  f.made = true;
  setcontext(&f.start);
}

/// Runs each thread of the warp up to its next barrier.
void run_warp(Warp& w) {
  warp = &w;
  unsigned waiting = 0, at_warp = 0;
  auto ran = [&](Fiber* f) {
    if (f->waits == Waits::idle) return void(spare[spares++] = f);
    w.waiting[waiting++] = f;
    at_warp += f->waits == Waits::warp;
  };
  if (w.next < w.end) {
    while (w.next < w.end) {
      Fiber* f = spares ? spare[--spares] : &fibers[made++];
      resume(*f);
      ran(f);
    }
  } else {
    const unsigned n = w.live;
    for (unsigned i = 0; i < n; ++i) {
      Fiber* f = w.waiting[i];
      resume(*f);
      ran(f);
    }
  }
  w.waits = w.live == 0 ? Waits::idle : at_warp == w.live ? Waits::warp : at_warp == 0 ? Waits::block : Waits::nothing;
}

/// Runs the warps in random order, one as far ahead of the others as barriers allow.
void run_block(unsigned threads) {
  const unsigned n = (threads + 31) / 32;
  for (unsigned i = 0; i < n; ++i) {
    const unsigned begin = 32 * i, end = std::min(threads, begin + 32);
    warps[i] = {begin, end, end - begin, {}, Waits::warp};
  }
  for (;;) {
    unsigned ready[kWarps], count = 0, at_block = 0, idle = 0;
    for (unsigned i = 0; i < n; ++i) {
      if (warps[i].waits == Waits::warp) ready[count++] = i;
      at_block += warps[i].waits == Waits::block;
      idle += warps[i].waits == Waits::idle;
    }
    if (count) {
      run_warp(warps[ready[count > 1 ? draws.below(count) : 0]]);
      continue;
    }
    if (idle == n) return;
    if (at_block + idle != n) emulated_die("the threads of a block wait at different barriers");
    for (unsigned i = 0; i < n; ++i)
      if (warps[i].waits == Waits::block) warps[i].waits = Waits::warp;
  }
}

}  // namespace

void __syncthreads() { leave(Waits::block); }
void __syncwarp(unsigned) { leave(Waits::warp); }
int emulated_lane() { return static_cast<int>(current->thread % 32); }
std::uint64_t emulated_shuffle(std::uint64_t bits, int lane) {
  std::uint64_t* shown = slots[current->turn++ % 2];
  shown[current->thread] = bits;
  leave(Waits::warp);
  return shown[current->thread / 32 * 32 + static_cast<unsigned>(lane)];
}

void emulated_run_grid(const void* kernel, dim3 grid, dim3 block, const std::function<void()>& thread) {
  if (block.x == 0 || block.x > kMaxThreads || block.y != 1 || block.z != 1 || grid.x == 0 || grid.y == 0 ||
      grid.y > 65535 || grid.z != 1)
    emulated_die("a launch that CUDA would refuse, or that has more axes than ours");
  const unsigned fewer = draws.below(3);
  if (fewer) grid.x = fewer == 1 ? 1 : 1 + draws.below(grid.x);
  gridDim = grid;
  blockDim = block;
  body = &thread;
  const Order of_rows(grid.y), of_blocks(grid.x), of_lanes(32);
  for (unsigned i = 0; i < block.x; ++i) {
    const unsigned lanes = std::min(32u, block.x - i / 32 * 32);
    order[i] = i / 32 * 32 + (lanes == 32 ? of_lanes(i % 32) : i % 32);
  }
  Shared shared(kernel);
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx.y = of_rows(y);
      blockIdx.x = of_blocks(x);
      run_block(block.x);
      if (y + x == 0) shared.find_written();
      shared.poison();
    }
  shared.find_written();
  shared.poison();
}

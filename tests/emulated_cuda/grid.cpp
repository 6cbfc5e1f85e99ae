// tests/emulated_cuda/grid.cpp - the threads of a block, on fibers: each runs until a barrier stops it.
#include "cuda_runtime.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr std::size_t kStack = 256 << 10;   // touched as far as a kernel needs it

enum class Waits : std::uint8_t { idle, nothing, warp, block };

struct Fiber {
  ucontext_t context;
  bool made = false;
  Waits waits = Waits::idle;
  unsigned thread = 0;
};
Fiber fibers[kMaxThreads];
ucontext_t scheduler;
Fiber* current;
std::uint64_t slots[kMaxThreads];   // what the threads show each other

struct Block {
  const std::function<void()>* body;
  unsigned threads, next;
};
Block running;

/// Takes thread after thread of a block while none of them has to wait: a kernel without barriers needs one fiber.
void work() {
  for (;;) {
    while (running.next < running.threads) {
      threadIdx.x = current->thread = running.next++;
      (*running.body)();
    }
    current->waits = Waits::idle;
    swapcontext(&current->context, &scheduler);
  }
}

void resume(Fiber& f) {
  current = &f;
  if (!f.made) {
    void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = stack;
    f.context.uc_stack.ss_size = kStack;
    f.context.uc_link = nullptr;
    makecontext(&f.context, work, 0);
    f.made = true;
  }
  threadIdx.x = f.thread;
  f.waits = Waits::nothing;
  swapcontext(&scheduler, &f.context);
}

void wait(Waits what) {
  current->waits = what;
  swapcontext(&current->context, &scheduler);
}

/// Lets go the warps, else the block, whose threads have all come to the barrier. False where nobody waits.
bool release(unsigned n) {
  unsigned live[kMaxThreads / 32] = {}, at_warp[kMaxThreads / 32] = {}, all = 0, at_block = 0;
  for (unsigned i = 0; i < n; ++i) {
    if (fibers[i].waits == Waits::idle) continue;
    ++all;
    ++live[fibers[i].thread / 32];
    at_block += fibers[i].waits == Waits::block;
    at_warp[fibers[i].thread / 32] += fibers[i].waits == Waits::warp;
  }
  if (all == 0) return false;
  bool any = false;
  for (unsigned i = 0; i < n; ++i) {
    unsigned warp = fibers[i].thread / 32;
    if (fibers[i].waits == Waits::idle || !(at_block == all || at_warp[warp] == live[warp])) continue;
    fibers[i].waits = Waits::nothing;
    any = true;
  }
  if (any) return true;
  std::fputs("emulated CUDA device: the threads of a block wait at different barriers\n", stderr);
  std::abort();
}

void run_block(unsigned threads, const std::function<void()>& body) {
  running = {&body, threads, 0};
  unsigned n = 0;
  while (running.next < threads) resume(fibers[n++]);
  while (release(n))
    for (unsigned i = 0; i < n; ++i)
      if (fibers[i].waits == Waits::nothing) resume(fibers[i]);
}

}  // namespace

void __syncthreads() { wait(Waits::block); }
void __syncwarp(unsigned) { wait(Waits::warp); }
int emulated_lane() { return static_cast<int>(current->thread % 32); }
std::uint64_t emulated_shuffle(std::uint64_t bits, int lane) {
  slots[current->thread] = bits;
  wait(Waits::warp);
  bits = slots[current->thread / 32 * 32 + static_cast<unsigned>(lane)];
  wait(Waits::warp);
  return bits;
}

void emulated_run_grid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  if (block.x == 0 || block.x > kMaxThreads || block.y != 1 || block.z != 1 || grid.x == 0 || grid.y == 0 || grid.y > 65535 || grid.z != 1) {
    std::fputs("emulated CUDA device: a launch that CUDA would refuse, or that has more axes than ours\n", stderr);
    std::abort();
  }
  gridDim = grid;
  blockDim = block;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) run_block(block.x, thread);
}

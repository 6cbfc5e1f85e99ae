// devices/cuda/faults.cpp - the fault word of a device, as the host sees it.
#include "devices/cuda/faults.h"

#include <new>

#include "devices/cuda/cuda.h"

namespace kassette::cuda {

void FaultBox::open() {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(FaultWord)), "cuda");
  word_ = new (memory) FaultWord{};
}

Faults FaultBox::next() {
  std::uint32_t launch = launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  return {word_, launch ? launch : 1};
}

void FaultBox::throw_reported(bool asynchronous) {
  volatile FaultWord* w = word_;
  if (w->launch == 0) return;
  std::int32_t refusal;
  std::int64_t numbers[devices::kFaultNumbers];
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // Meanwhile a kernel on another stream may find a bad value that is to be reported instead, and write it.
    std::uint32_t launch;
    std::int64_t position;
    do {
      launch = w->launch;
      std::atomic_thread_fence(std::memory_order_acquire);
      if (launch == 0) return;  // another thread reports it, or the next wait does
      position = w->position;
      refusal = w->refusal;
      for (int i = 0; i < devices::kFaultNumbers; ++i) numbers[i] = w->numbers[i];
      std::atomic_thread_fence(std::memory_order_acquire);
    } while (w->launch != launch || w->position != position);
    w->launch = 0;
  }
  host_services().refuse(refusal, numbers, asynchronous);
}

}  // namespace kassette::cuda

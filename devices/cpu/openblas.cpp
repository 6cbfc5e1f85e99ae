// devices/cpu/openblas.cpp - what surrounds each call of OpenBLAS, and products by it.
#include "devices/cpu/openblas.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include <cblas.h>

#include "core/storage.h"
#include "devices/bytes_text.h"

// The function that OpenBLAS itself calls to get a buffer; it is exported.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace kassette::devices {
namespace {

// Note [OpenBLAS' buffers]
// OpenBLAS packs operands in buffers of its own. It makes one for each concurrent call, and keeps them. If it cannot
// map one it retries for ever, holding a lock. So before its first call each thread checks that there is room for a
// buffer, gives back cached memory and then throws MemoryError if not, and has OpenBLAS make the buffer at once. A
// thread makes one call at a time, so from then on there are as many buffers as concurrent calls.

// 32 << 22 in OpenBLAS' common_x86_64.h; grown by as much with 0.3.21
constexpr std::int64_t kBuffer = std::int64_t(128) << 20;
constexpr std::size_t kMaxBuffers = 64;  // OpenBLAS ends the process if it has to make too many

/// A thread that calls OpenBLAS, from its first call until it ends.
struct Caller {
  bool known = false;
  std::atomic<bool> inside{false};  // a call of OpenBLAS
};

class Buffers {
 public:
  void enter(Caller* caller) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (callers_.size() == made_.size() && made_.size() < kMaxBuffers) {
      made_.reserve(made_.size() + 1);
      std::vector<void*> held;
      held.reserve(made_.size() + 1);
      // At the first call OpenBLAS' own threads may take a buffer as well.
      check_room(made_.empty() ? 2 * kBuffer : kBuffer);
      if (blas_memory_alloc && blas_memory_free) make(held);
    }
    if (process_ != getpid()) callers_.clear();  // the child of a fork has none of its parent's other threads
    process_ = getpid();
    callers_.push_back(caller);
  }
  void leave(Caller* caller) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase(callers_, caller);
  }
  /// Whether f holds for a caller other than `self`.
  template <class F>
  bool any_other(const Caller* self, F f) {
    if (process_ != getpid()) return false;  // and the lock may be that of a thread that is not here
    std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(callers_.begin(), callers_.end(), [&](const Caller* c) { return c != self && f(*c); });
  }

 private:
  static bool has_room(std::int64_t bytes) {
    void* p =
        mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    munmap(p, static_cast<std::size_t>(bytes));
    return true;
  }
  static void check_room(std::int64_t bytes) {
    if (has_room(bytes)) return;
    empty_cache(cpu);
    if (!has_room(bytes)) fail_memory(cpu, bytes, memory_stats(cpu));
  }
  /// OpenBLAS reuses idle buffers first, so holding one more than exist makes a new one.
  void make(std::vector<void*>& held) {
    for (bool known = true; known;) {
      void* buffer = blas_memory_alloc(0);
      if (!buffer) break;
      known = std::find(made_.begin(), made_.end(), buffer) != made_.end();
      if (!known) made_.push_back(buffer);
      held.push_back(buffer);
    }
    for (void* buffer : held) blas_memory_free(buffer);
  }

  std::mutex mutex_;
  std::vector<Caller*> callers_;
  std::atomic<pid_t> process_{0};
  std::vector<void*> made_;
};
/// Never destroyed: threads may end after main.
Buffers& buffers() {
  static auto* all = new Buffers;
  return *all;
}

// Its end is noticed by a key of pthreads and not by a destructor: where there is no memory to register that of a
// thread_local object, glibc ends the process.
constinit thread_local Caller caller;
pthread_key_t leaving;
bool has_key = false;

void leave(void* p) {
  auto* self = static_cast<Caller*>(p);
  buffers().leave(self);
  self->known = false;  // another destructor of the thread may multiply
}
void enter(Caller& self) {
  if (!has_key || pthread_setspecific(leaving, &self) != 0) throw std::bad_alloc();
  buffers().enter(&self);
  self.known = true;
}

/// Before OpenBLAS' first call: sets it to one thread per call, whatever the environment says.
void prepare() {
  openblas_set_num_threads(1);
  has_key = pthread_key_create(&leaving, leave) == 0;
}
pthread_once_t once = PTHREAD_ONCE_INIT;

// Note [Products while the process ends]
// When a process ends, OpenBLAS unmaps its buffers, whoever uses them. Threads that nobody has joined still run then.
// So before that, close_blas() waits for the calls of other threads to return, a tenth of a second or so, and has each
// thread that begins another call wait for the end of the process. A call says that it is inside by a plain store,
// before it looks whether it may. A barrier between the two would cost each product some 6 ns; instead close_blas()
// gives a store that others do not see yet, by far, the time to reach them.
constinit std::atomic<Caller*> closed_by{nullptr};
constexpr int kLookMicroseconds = 200, kMostLooks = 10'000;  // a thread that is inside after two seconds is held up

[[gnu::cold, gnu::noinline]] void wait_for_end() {
  if (closed_by.load(std::memory_order_acquire) == &caller)
    return;  // what still runs then belongs to no thread of ours
  caller.inside.store(false, std::memory_order_release);
  for (;;) pause();
}

[[gnu::destructor]] void close_blas() {
  if (!buffers().any_other(&caller, [](const Caller&) { return true; })) return;
  closed_by.store(&caller, std::memory_order_seq_cst);
  for (int i = 0; i < kMostLooks; ++i) {
    usleep(kLookMicroseconds);
    if (!buffers().any_other(&caller, [](const Caller& c) { return c.inside.load(std::memory_order_acquire); })) return;
  }
}

void begin_call() {
  if (!caller.known) enter(caller);
  caller.inside.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(closed_by.load(std::memory_order_relaxed) != nullptr, 0)) wait_for_end();
}
void end_call() { caller.inside.store(false, std::memory_order_release); }

bool openblas_multiplies() {
  static const bool chosen = [] {
    const char* name = std::getenv("KASSETTE_PRODUCTS");
    return name && std::string_view(name) == "openblas";
  }();
  return chosen;
}

template <class T, class F>
bool multiply(F gemm, const GemmShape& p, const T* a, const T* b, T* out, bool add) {
  if (!openblas_multiplies() || std::max({p.m, p.n, p.k, p.lda, p.ldb, p.ldo}) > INT_MAX) return false;
  const OpenBlasCall call;
  auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
  // Where a matrix has one row, the distance between rows may be anything; BLAS wants at least a row's length.
  gemm(CblasRowMajor, p.ta ? CblasTrans : CblasNoTrans, p.tb ? CblasTrans : CblasNoTrans, narrow(p.m), narrow(p.n),
       narrow(p.k), T(1), a, narrow(std::max(p.lda, p.ta ? p.m : p.k)), b, narrow(std::max(p.ldb, p.tb ? p.k : p.n)),
       add ? T(1) : T(0), out, narrow(std::max(p.ldo, p.n)));
  return true;
}

}  // namespace

OpenBlasCall::OpenBlasCall() {
  pthread_once(&once, prepare);
  begin_call();
}
OpenBlasCall::~OpenBlasCall() { end_call(); }

bool multiply_by_openblas(const GemmShape& p, const float* a, const float* b, float* out, bool add) {
  return multiply(cblas_sgemm, p, a, b, out, add);
}
bool multiply_by_openblas(const GemmShape& p, const double* a, const double* b, double* out, bool add) {
  return multiply(cblas_dgemm, p, a, b, out, add);
}

}  // namespace kassette::devices

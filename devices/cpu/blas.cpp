// devices/cpu/blas.cpp - matrix products on the CPU.
#include "devices/cpu/blas.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <mutex>
#include <new>
#include <vector>

#include <cblas.h>

#include "core/ceil_div.h"
#include "core/check_interrupt.h"
#include "core/storage.h"
#include "devices/bytes_text.h"
#include "devices/cpu/gemv.h"
#include "devices/cpu/threads.h"

// The function that OpenBLAS itself calls to get a buffer; it is exported.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

namespace kassette::devices {
namespace {

// Sizes are counted in multiply-adds. Measured with OpenBLAS 0.3.21 (core Cooperlake, 2 cores): its small-matrix path
// ends at 10^6 and does some 100 a nanosecond.
constexpr std::int64_t kTiny = 64;  // own loop: a call of OpenBLAS costs more
constexpr std::int64_t kLeastTile = std::int64_t(1) << 17;
constexpr std::int64_t kWorthAThread = std::int64_t(1) << 18;  // Note [Worth a thread]
constexpr std::int64_t kSmallPath = 1'000'000;
constexpr std::int64_t kSmallTile = std::int64_t(1) << 19;
// up to this size, tiles for the small-matrix path are faster
constexpr std::int64_t kCutToSmall = std::int64_t(1) << 22;
// Note [Strips]
// Each call of OpenBLAS packs its operands again (its own threads would share them): compared with one call, 1024 cubed
// takes 3.5 % more time of one thread in two tiles, 7 % in 2 x 2, 14 % in 4 x 4. So a large product is cut between rows
// only, into as many strips as there are threads. A cut at a multiple of 24 rows changes no bit: OpenBLAS is
// column-major, so our rows are the last index of its loops, which it takes in groups of three times its unroll, at
// most 8. Whole products and strips were compared for float32 and float64, 324 products of random shapes and
// transposes, up to 60,000 rows, with the cores Prescott, Core2, Penryn, Nehalem, Sandybridge, Haswell, SkylakeX,
// Cooperlake, Barcelona, Bobcat, Zen and Atom of 0.3.21: there was no difference. At multiples of 12 Nehalem differs,
// and so do SkylakeX' float64 kernels if a strip is small enough for the small-matrix path. Cuts between columns change
// bits with Haswell's float32 and SkylakeX' float64 kernels, so these depend on the shape alone.
constexpr std::int64_t kRowUnit = 24;
constexpr std::int64_t kFewestRows = 128;  // of a strip
// A strip takes at most a tenth of a second, unless that would be too few rows: other threads can take over strips from
// one that is held up, and interrupts are checked between strips.
constexpr std::int64_t kLongStrip = std::int64_t(1) << 33;
constexpr std::int64_t kRowsOfLong = 512;
constexpr std::int64_t kLargeTile = std::int64_t(1) << 28;  // 1024 cubed: 6.2 ms in 32 tiles, 5.6 in 4
// A tile takes at most about 0.1 s, so that a product can be interrupted.
constexpr std::int64_t kLongestTile = std::int64_t(1) << 32;
// Right operands of up to this many elements stay in a second-level cache: tiles for the small-matrix path may then be
// whole rows, each of which reads all of the operand, and are as fast (32 x 512 with 128: 8 x 512, 16 x 256 and 32 x
// 128 all take 18.7 us; 32 x 128 with 512 transposed: 18.9 in rows, 20.1 in columns).
constexpr std::int64_t kCached = 1 << 16;
constexpr std::int64_t kLeastRows = 8;  // of such a tile
// Bytes of a matrix that no cache holds: reading four rows at once is 12 % faster than OpenBLAS' gemv (4096 x 4096
// floats, two threads: 0.94 ms against 1.08).
constexpr std::int64_t kPastCaches = 8 << 20;
constexpr std::int64_t kInnerBlock = 1024;  // least length of a part of a long inner axis
// Greatest length of one. OpenBLAS adds up blocks of some hundred elements one after another in the type of the
// operands: over 10^9 float32 the error grows to percents. The sums of parts are added in float64.
constexpr std::int64_t kLongestInner = std::int64_t(1) << 13;
constexpr std::int64_t kLongestSlice = std::int64_t(1) << 17;  // where the result is large
constexpr std::int64_t kLongInner = std::int64_t(1) << 20;     // from here on, products of a batch are cut one by one
// OpenBLAS sums over an inner axis in blocks of at least 192 (Prescott, float64: bits differ from a length of 200 on).
// Up to this length a sum is complete in registers before it is added to the output.
constexpr std::int64_t kOneBlock = 128;

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

/// Surrounds each call of OpenBLAS: ensures that there is a buffer for this thread, and that it stays.
class BlasCall {
 public:
  BlasCall() { begin_call(); }
  ~BlasCall() { end_call(); }
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;
};

enum class Into { fresh, sum };

void blas_gemm(const GemmShape& p, const float* a, const float* b, float* out, Into into) {
  const BlasCall call;
  cblas_sgemm(CblasRowMajor, p.ta ? CblasTrans : CblasNoTrans, p.tb ? CblasTrans : CblasNoTrans, static_cast<int>(p.m),
              static_cast<int>(p.n), static_cast<int>(p.k), 1.0f, a, static_cast<int>(p.lda), b,
              static_cast<int>(p.ldb), into == Into::sum ? 1.0f : 0.0f, out, static_cast<int>(p.ldo));
}
void blas_gemm(const GemmShape& p, const double* a, const double* b, double* out, Into into) {
  const BlasCall call;
  cblas_dgemm(CblasRowMajor, p.ta ? CblasTrans : CblasNoTrans, p.tb ? CblasTrans : CblasNoTrans, static_cast<int>(p.m),
              static_cast<int>(p.n), static_cast<int>(p.k), 1.0, a, static_cast<int>(p.lda), b, static_cast<int>(p.ldb),
              into == Into::sum ? 1.0 : 0.0, out, static_cast<int>(p.ldo));
}
/// y = a x or a^T x for a row-major (rows x cols).
void blas_gemv(bool t, std::int64_t rows, std::int64_t cols, const float* a, std::int64_t lda, const float* x,
               std::int64_t incx, float* y, std::int64_t incy) {
  const BlasCall call;
  cblas_sgemv(CblasRowMajor, t ? CblasTrans : CblasNoTrans, static_cast<int>(rows), static_cast<int>(cols), 1.0f, a,
              static_cast<int>(lda), x, static_cast<int>(incx), 1.0f, y, static_cast<int>(incy));
}
void blas_gemv(bool t, std::int64_t rows, std::int64_t cols, const double* a, std::int64_t lda, const double* x,
               std::int64_t incx, double* y, std::int64_t incy) {
  const BlasCall call;
  cblas_dgemv(CblasRowMajor, t ? CblasTrans : CblasNoTrans, static_cast<int>(rows), static_cast<int>(cols), 1.0, a,
              static_cast<int>(lda), x, static_cast<int>(incx), 1.0, y, static_cast<int>(incy));
}

template <class T>
void tiny(const GemmShape& p, const T* a, const T* b, T* out) {
  std::int64_t ai = p.ta ? 1 : p.lda, ak = p.ta ? p.lda : 1, bk = p.tb ? 1 : p.ldb, bj = p.tb ? p.ldb : 1;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) sum += a[i * ai + k * ak] * b[k * bk + j * bj];
      out[i * p.ldo + j] = sum;
    }
}

/// A product with a vector: reads the matrix once.
template <class T>
void vector_product(const GemmShape& p, const T* a, const T* b, T* out) {
  std::int64_t incy = p.n == 1 ? p.ldo : 1;
  for (std::int64_t i = 0, n = std::max(p.m, p.n); i < n; ++i)
    out[i * incy] = 0;  // gemv then adds: it never reads what was there
  if (p.n == 1) {
    std::int64_t incx = p.tb ? 1 : p.ldb;
    if (p.ta) blas_gemv(true, p.k, p.m, a, p.lda, b, incx, out, incy);
    else blas_gemv(false, p.m, p.k, a, p.lda, b, incx, out, incy);
  } else {
    std::int64_t incx = p.ta ? p.lda : 1;
    if (p.tb) blas_gemv(false, p.n, p.k, b, p.ldb, a, incx, out, incy);
    else blas_gemv(true, p.k, p.n, b, p.ldb, a, incx, out, incy);
  }
}

RowsByVector<float> rows_by_vector(float) { return KASSETTE_PICK(gemv_table).f32; }
RowsByVector<double> rows_by_vector(double) { return KASSETTE_PICK(gemv_table).f64; }

/// True for the product of a large matrix and a vector with a layout that can be read row by row.
template <class T>
bool long_rows(const GemmShape& p) {
  bool rows = p.n == 1 ? !p.ta && (p.tb || p.ldb == 1) : p.m == 1 && p.tb && (!p.ta || p.lda == 1);
  std::int64_t bytes = p.m * p.n * p.k * static_cast<std::int64_t>(sizeof(T));
  return rows && std::max(p.m, p.n) >= kFewestRows && p.k >= kFewestRows && bytes >= kPastCaches;
}
template <class T>
void long_rows_tile(const GemmShape& p, const T* a, const T* b, T* out) {
  if (p.n == 1) rows_by_vector(T())(p.m, p.k, a, p.lda, b, out, p.ldo);
  else rows_by_vector(T())(p.n, p.k, b, p.ldb, a, out, 1);
}

/// The matrices of one row, as they lie in memory. The distance between rows then means nothing, and may be too large
/// for BLAS.
struct Idle {
  bool a, b, out;
  explicit Idle(const GemmShape& p) : a(p.ta ? p.k == 1 : p.m == 1), b(p.tb ? p.n == 1 : p.k == 1), out(p.m == 1) {}
};

template <class T>
void one_tile(const GemmShape& p, const T* a, const T* b, T* out) {
  if (p.m * p.n * p.k <= kTiny) return tiny(p, a, b, out);
  GemmShape q = p;
  const Idle idle(p);
  if (idle.a) q.lda = p.ta ? p.m : p.k;
  if (idle.b) q.ldb = p.tb ? p.k : p.n;
  if (idle.out) q.ldo = p.n;
  if (p.m == 1 || p.n == 1) vector_product(q, a, b, out);
  else blas_gemm(q, a, b, out, Into::fresh);
}

/// How a product is divided: into tiles of rows and columns, or into strips of rows.
struct Tiles {
  std::int64_t m, rows, cols, down, across;
  bool strips = false;
  Tiles(std::int64_t all_ops, std::int64_t n, std::int64_t tile_rows, std::int64_t tile_cols)
      : m(all_ops), rows(tile_rows), cols(tile_cols), down((m + rows - 1) / rows), across((n + cols - 1) / cols) {}
  static Tiles into_strips(std::int64_t m, std::int64_t n, std::int64_t count) {
    Tiles t(m, n, (m + count - 1) / count, n);
    t.down = count;
    t.strips = true;
    return t;
  }
  std::int64_t row(std::int64_t i) const {
    if (!strips) return std::min(m, i * rows);
    return i == down ? m : (m * i / down + kRowUnit / 2) / kRowUnit * kRowUnit;
  }
};

std::int64_t part_of(std::int64_t n, std::int64_t parts, std::int64_t multiple) {
  std::int64_t part = (n + parts - 1) / parts;
  return std::max<std::int64_t>(1, std::min(n, (part + multiple - 1) / multiple * multiple));
}

/// The grid of tiles with the least memory traffic: each row of tiles reads all of b, each column of tiles all of a.
Tiles grid(const GemmShape& p, std::int64_t tiles) {
  std::int64_t best_down = 1, best = 0;
  for (std::int64_t down = 1; down <= tiles; down *= 2) {
    std::int64_t across = tiles / down, cost = across * p.m + down * p.n;
    if (down > p.m || across > p.n) continue;
    if (!best || cost < best) best = cost, best_down = down;
  }
  std::int64_t across = std::max<std::int64_t>(1, tiles / best_down);
  return {p.m, p.n, part_of(p.m, best_down, 4), part_of(p.n, across, 16)};
}

/// Tiles for the small-matrix path.
Tiles small_grid(const GemmShape& p, std::int64_t tiles) {
  if (p.n * p.k > kCached) return grid(p, tiles);
  std::int64_t down = 1;
  while (down < tiles && 2 * down * kLeastRows <= p.m) down *= 2;
  const std::int64_t across = std::max<std::int64_t>(1, std::min(tiles / down, p.n));
  return {p.m, p.n, part_of(p.m, down, 4), part_of(p.n, across, 16)};
}

std::int64_t power_of_two(std::int64_t n) {
  std::int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

/// The number of strips; 0 if other tiles suit the shape better. No strip is small enough for the small-matrix path.
std::int64_t strips_of(const GemmShape& p, std::int64_t products) {
  std::int64_t work = p.m * p.n * p.k;
  if (work <= kCutToSmall || p.n == 1 || p.m < 2 * kFewestRows || 2 * p.m < p.n) return 0;
  std::int64_t threads = num_threads();
  if (products >= 4 * threads) return 1;
  std::int64_t turns = (std::min(work / kLongStrip, p.m / kRowsOfLong) + threads - 1) / threads;
  return std::min(
      {threads * std::max({std::int64_t(1), turns, p.m >> 30}), p.m / kFewestRows, work / (2 * kSmallPath)});
}

Tiles tiles_of(const GemmShape& p, std::int64_t products) {
  std::int64_t work = p.m * p.n * p.k;
  if (std::int64_t strips = strips_of(p, products)) return Tiles::into_strips(p.m, p.n, strips);
  if (p.m == 1 || p.n == 1) {
    std::int64_t most = std::max<std::int64_t>(256, kLeastTile / std::max<std::int64_t>(1, p.k));
    return {p.m, p.n, std::min(p.m, most), std::min(p.n, most)};
  }
  if (work < 2 * kLeastTile) return {p.m, p.n, p.m, p.n};
  if (work <= kSmallPath) return small_grid(p, power_of_two(work / (2 * kLeastTile)) * 2);
  if (work <= kCutToSmall) return small_grid(p, power_of_two(work / kSmallTile));
  return grid(p, std::clamp<std::int64_t>(power_of_two(work / kLargeTile), 4,
                                          std::max<std::int64_t>(64, power_of_two(work / kLongestTile))));
}

/// Calls one(part, a, b, out) for a tile of a product.
template <class T, class F>
void with_tile(const GemmShape& p, const Tiles& t, std::int64_t tile, const T* a, const T* b, T* out, F&& one) {
  const std::int64_t down = tile / t.across, row = t.row(down), col = tile % t.across * t.cols;
  GemmShape part = p;
  part.m = t.row(down + 1) - row;
  part.n = std::min(t.cols, p.n - col);
  one(part, a + (p.ta ? row : row * p.lda), b + (p.tb ? col * p.ldb : col), out + row * p.ldo + col);
}

/// Calls it for every tile of every product of a batch.
template <class T, class F>
void for_each_tile(const GemmShape& p, const BatchStrides& batch, const T* a, const T* b, T* out, F&& one) {
  const Tiles t = tiles_of(p, batch.count);
  const std::int64_t per_product = t.down * t.across;
  const std::int64_t tile_work = std::max<std::int64_t>(1, t.rows * t.cols * p.k),
                     call = 1024;  // the overhead of a call of OpenBLAS
  parallel_for(batch.count * per_product, (kWorthAThread + tile_work) / (tile_work + call),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   if (i > begin && tile_work > kSmallPath) check_interrupt();
                   const BatchStrides::Offsets first = batch.offsets(i / per_product);
                   with_tile(p, t, i % per_product, a + first.a, b + first.b, out + first.out, one);
                 }
               });
}

bool in_inner_parts(const GemmShape& p) {
  return p.m * p.n <= 128 * 128 && p.k >= 2 * kInnerBlock && p.m * p.n * p.k > kSmallPath;
}

/// For a small result with a long inner axis: computes parts of that axis separately, then sums them in order.
template <class T>
bool run_inner_parts(const GemmShape& p, const T* a, const T* b, T* out) {
  if (!in_inner_parts(p)) return false;
  const std::int64_t parts = std::max(std::min<std::int64_t>(16, p.k / kInnerBlock), ceil_div(p.k, kLongestInner));
  const std::int64_t length = part_of(p.k, parts, 16), n_parts = (p.k + length - 1) / length;
  Ref<Storage> partial = Storage::allocate(n_parts * p.m * p.n * static_cast<std::int64_t>(sizeof(T)), cpu);
  T* sums = static_cast<T*>(partial->data);
  parallel_for(n_parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t at = i * length;
      GemmShape part = p;
      part.k = std::min(length, p.k - at);
      part.ldo = p.n;
      one_tile(part, a + (p.ta ? at * p.lda : at), b + (p.tb ? at : at * p.ldb), sums + i * p.m * p.n);
    }
  });
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = sums[i * p.n + j];
      for (std::int64_t part = 1; part < n_parts; ++part) sum += sums[(part * p.m + i) * p.n + j];
      out[i * p.ldo + j] = static_cast<T>(sum);
    }
  return true;
}

/// For a large result with a long inner axis: adds up the products over parts of that axis.
template <class T>
void run_inner_slices(const GemmShape& p, const T* a, const T* b, T* out) {
  const std::int64_t n_parts = ceil_div(p.k, kLongestSlice), length = part_of(p.k, n_parts, 16);
  Ref<Storage> partial = Storage::allocate(p.m * p.n * static_cast<std::int64_t>(sizeof(T)), cpu);
  T* more = static_cast<T*>(partial->data);
  for (std::int64_t at = 0; at < p.k; at += length) {
    GemmShape part = p;
    part.k = std::min(length, p.k - at);
    if (at > 0) part.ldo = p.n;
    for_each_tile(part, BatchStrides(), a + (p.ta ? at * p.lda : at), b + (p.tb ? at : at * p.ldb), at > 0 ? more : out,
                  one_tile<T>);
    if (at == 0) continue;
    parallel_for(p.m, std::max<std::int64_t>(1, kWorthAThread / p.n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) out[i * p.ldo + j] += more[i * p.n + j];
    });
  }
}

/// Whether a distance between rows exceeds BLAS' 32-bit integers. Sizes that do are cut: the inner axis by
/// run_inner_parts() and run_inner_slices(), the others into tiles.
bool too_far(const GemmShape& p) {
  const Idle idle(p);
  return (!idle.a && p.lda > INT_MAX) || (!idle.b && p.ldb > INT_MAX) || (!idle.out && p.ldo > INT_MAX);
}

/// A product whose rows are too far apart for BLAS: sums of float64.
template <class T>
void far_product(const GemmShape& p, const T* a, const T* b, T* out) {
  constexpr std::int64_t kColumns = 256;
  const std::int64_t ai = p.ta ? 1 : p.lda, ak = p.ta ? p.lda : 1, bk = p.tb ? 1 : p.ldb, bj = p.tb ? p.ldb : 1,
                     across = ceil_div(p.n, kColumns);
  parallel_for(p.m * across, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t i = tile / across, j = tile % across * kColumns, width = std::min(kColumns, p.n - j);
      double sums[kColumns] = {};
      for (std::int64_t k = 0; k < p.k; ++k) {
        const auto x = static_cast<double>(a[i * ai + k * ak]);
        for (std::int64_t c = 0; c < width; ++c) sums[c] += x * static_cast<double>(b[k * bk + (j + c) * bj]);
      }
      for (std::int64_t c = 0; c < width; ++c) out[i * p.ldo + j + c] = static_cast<T>(sums[c]);
    }
  });
}

template <class T>
void one_product(const GemmShape& p, const T* a, const T* b, T* out) {
  if (too_far(p)) return far_product(p, a, b, out);
  if (run_inner_parts(p, a, b, out)) return;
  if (p.k > kLongInner) return run_inner_slices(p, a, b, out);
  for_each_tile(p, BatchStrides(), a, b, out, one_tile<T>);
}

template <class T>
void multiply_any(const GemmShape& p, const BatchStrides& batch, const T* a, const T* b, T* out) {
  if (batch.count == 1 && p.m * p.n * p.k <= kTiny) {
    tiny(p, a, b, out);
    return;
  }
  pthread_once(&once, prepare);
  if (p.k == 0) {
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const std::int64_t first = batch.offsets(i).out;
      for (std::int64_t row = 0; row < p.m; ++row) std::fill_n(out + first + row * p.ldo, p.n, T(0));
    }
    return;
  }
  if (long_rows<T>(p)) {
    for_each_tile(p, batch, a, b, out, long_rows_tile<T>);
    return;
  }
  if (batch.count > 1 && p.k <= kLongInner && !too_far(p)) {
    for_each_tile(p, batch, a, b, out, one_tile<T>);
    return;
  }
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const BatchStrides::Offsets first = batch.offsets(i);
    one_product(p, a + first.a, b + first.b, out + first.out);
  }
}

/// Whether gemm can add each tile to the output with the bits of a separate addition: see kOneBlock.
bool adds_up(const GemmShape& p) {
  if (p.m < 2 || p.n < 2 || p.k < 1 || p.k > kOneBlock || p.m * p.n * p.k <= kTiny ||
      std::max({p.lda, p.ldb, p.ldo}) > INT_MAX)
    return false;
  const Tiles t = tiles_of(p, 1);
  const std::int64_t rows = p.m - t.row(t.down - 1), cols = (p.n - 1) % t.cols + 1;  // of the last tile
  return rows > 1 && cols > 1 && rows * cols * p.k > kTiny;                          // or it would not use gemm
}

template <class T>
bool add_any(const GemmShape& p, const T* a, const T* b, T* out) {
  if (!adds_up(p)) return false;
  pthread_once(&once, prepare);
  for_each_tile(p, BatchStrides(), a, b, out,
                [](const GemmShape& part, const T* x, const T* y, T* sum) { blas_gemm(part, x, y, sum, Into::sum); });
  return true;
}

}  // namespace

void multiply(const GemmShape& p, const BatchStrides& batch, const float* a, const float* b, float* out) {
  multiply_any(p, batch, a, b, out);
}
void multiply(const GemmShape& p, const BatchStrides& batch, const double* a, const double* b, double* out) {
  multiply_any(p, batch, a, b, out);
}
bool add_product(const GemmShape& p, const float* a, const float* b, float* out) { return add_any(p, a, b, out); }
bool add_product(const GemmShape& p, const double* a, const double* b, double* out) { return add_any(p, a, b, out); }

OpenBlasCall::OpenBlasCall() {
  pthread_once(&once, prepare);
  begin_call();
}
OpenBlasCall::~OpenBlasCall() { end_call(); }

}  // namespace kassette::devices

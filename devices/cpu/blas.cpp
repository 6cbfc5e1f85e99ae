// devices/cpu/blas.cpp - matrix products on the CPU, divided into tiles, each of which one thread of our pool computes.
#include "devices/cpu/blas.h"

#include <algorithm>
#include <cstddef>

#include "core/ceil_div.h"
#include "core/check_interrupt.h"
#include "core/storage.h"
#include "devices/cpu/gemm.h"
#include "devices/cpu/gemv.h"
#include "devices/cpu/numbered_threads.h"
#include "devices/cpu/openblas.h"

namespace kassette::devices {
namespace {

// Sizes are counted in multiply-adds.
constexpr std::int64_t kTiny = 64;  // own loop
constexpr std::int64_t kLeastTile = std::int64_t(1) << 17;
constexpr std::int64_t kWorthAThread = std::int64_t(1) << 18;  // Note [Worth a thread]
// Products of this size and twice as many zeros take several tiles for each thread, so that others can take over what a
// thread that is held up has not begun; smaller ones take less time than that would cost.
constexpr std::int64_t kTwoTurns = std::int64_t(1) << 24, kFourTurns = std::int64_t(1) << 28;
// A tile takes at most about 0.1 s, so that a product can be interrupted.
constexpr std::int64_t kLongestTile = std::int64_t(1) << 32;
constexpr std::int64_t kCopied = 10;  // copying an element of an operand takes about as long as so many multiply-adds
constexpr std::int64_t kInnerParts = 1'000'000;  // from this size on, a long inner axis is divided among threads
constexpr std::int64_t kInnerBlock = 1024;       // least length of a part of a long inner axis
// Greatest length of one. Sums over blocks of some hundred elements are added up one after another in the type of the
// operands: over 10^9 float32 the error grows to percents. The sums of parts are added in float64.
constexpr std::int64_t kLongestInner = std::int64_t(1) << 13;
constexpr std::int64_t kLongestSlice = std::int64_t(1) << 17;  // where the result is large
constexpr std::int64_t kLongInner = std::int64_t(1) << 20;     // from here on, products of a batch are cut one by one

const GemvLoops<float>& gemv_loops(float) { return KASSETTE_PICK(gemv_table).f32; }
const GemvLoops<double>& gemv_loops(double) { return KASSETTE_PICK(gemv_table).f64; }

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

/// Memory for the tiles of a product, one part for each thread: cached memory of the device, which a ThreadScratch
/// would keep for itself. The thread that begins the product takes it, as others may find none where address space is
/// limited.
class Workspace {
 public:
  Workspace(std::int64_t bytes, int threads) : each_(bytes <= kOnStack ? 0 : ceil_div(bytes, 64) * 64) {
    if (each_ > 0) memory_ = Storage::allocate(each_ * threads, cpu);
  }
  /// The memory of a thread, or `here` if that is enough.
  std::byte* of(int thread, std::byte* here) const {
    return each_ == 0 ? here : static_cast<std::byte*>(memory_->data) + thread * each_;
  }
  static constexpr std::int64_t kOnStack = 8192;

 private:
  std::int64_t each_;
  Ref<Storage> memory_;
};

/// How an element is summed. That depends on the whole product and is the same for all of its tiles. If A or B is a
/// vector, the other matrix is read once: row by row as it is stored, each a sum by itself or added to all sums.
enum class Way { tiny, sum_rows_of_a, add_rows_of_a, sum_rows_of_b, add_rows_of_b, blocks };

Way way_of(const GemmShape& p) {
  if (p.m * p.n * p.k <= kTiny) return Way::tiny;
  if (p.n == 1 && (p.tb || p.ldb == 1)) {  // the vector's elements lie side by side
    if (!p.ta) return Way::sum_rows_of_a;
    if (p.ldo == 1) return Way::add_rows_of_a;
  }
  if (p.m == 1) {
    if (!p.tb) return Way::add_rows_of_b;
    if (!p.ta || p.lda == 1) return Way::sum_rows_of_b;
  }
  return Way::blocks;
}

template <class T>
void one_tile(Way way, const GemmShape& p, const T* a, const T* b, T* out, const Finish<T>& finish, std::byte* work) {
  const GemvLoops<T>& vector = gemv_loops(T());
  switch (way) {
    case Way::tiny: return tiny(p, a, b, out);
    case Way::sum_rows_of_a: return vector.sum_rows(p.m, p.k, a, p.lda, b, out, p.ldo);
    case Way::add_rows_of_a: return vector.add_rows(p.k, p.m, a, p.lda, b, 1, out);
    case Way::sum_rows_of_b: return vector.sum_rows(p.n, p.k, b, p.ldb, a, out, 1);
    case Way::add_rows_of_b: return vector.add_rows(p.k, p.n, b, p.ldb, a, p.ta ? p.lda : 1, out);
    case Way::blocks: break;
  }
  if (!finish.bias && !finish.relu && multiply_by_openblas(p, a, b, out, finish.add)) return;
  gemm_loops<T>().multiply(p, a, b, out, finish, work);
}

/// Runs f(i, memory) for 0 <= i < n on several threads, with `bytes` of memory.
template <class F>
void for_tiles(std::int64_t bytes, std::int64_t n, std::int64_t grain, F f) {
  const int threads = threads_for(n, grain);
  const Workspace work(bytes, threads);
  numbered_for(n, grain, threads, [&](std::int64_t begin, std::int64_t end, int thread) {
    alignas(64) std::byte here[Workspace::kOnStack];
    for (std::int64_t i = begin; i < end; ++i) f(i, work.of(thread, here));
  });
}

/// A grid of tiles.
struct Tiles {
  std::int64_t m, n, down = 1, across = 1, unit = 1;  // columns are cut at multiples of `unit`
  std::int64_t row(std::int64_t i) const { return m * i / down; }
  std::int64_t column(std::int64_t j) const { return j == across ? n : n * j / across / unit * unit; }
};

Tiles tiles_of(Way way, const GemmShape& p, std::int64_t products, std::int64_t unit) {
  Tiles best{p.m, p.n};
  const std::int64_t work = p.m * p.n * p.k, threads = num_threads();
  if (work < 2 * kLeastTile) return best;
  if (way != Way::blocks) {
    const std::int64_t most = std::max<std::int64_t>(256, kLeastTile / p.k);
    best.down = ceil_div(p.m, most);
    best.across = ceil_div(p.n, most);
    return best;
  }
  best.unit = unit;
  const std::int64_t turns = work < kTwoTurns ? 1 : work < kFourTurns ? 2 : 4;
  std::int64_t count = products >= 4 * threads ? 1 : std::min(threads * turns, work / kLeastTile);
  count = std::max(count, ceil_div(work, kLongestTile));
  std::int64_t least = 0;
  for (std::int64_t down = 1; down <= count; ++down) {
    if (count % down != 0) continue;
    const std::int64_t d = std::min(down, p.m), a = std::min(count / down, ceil_div(p.n, unit)),
                       rows = ceil_div(p.m, d), columns = ceil_div(p.n, a);
    const std::int64_t time = ceil_div(d * a, threads) * (rows * columns + kCopied * (rows + columns));
    if (least != 0 && time >= least) continue;
    least = time;
    best.down = d;
    best.across = a;
  }
  return best;
}

/// Computes every tile of every product of a batch. Only sums in blocks have a `finish`.
template <class T>
void run_tiles(const GemmShape& p, const BatchStrides& batch, const T* a, const T* b, T* out,
               const Finish<T>& finish = {}) {
  const Way way = way_of(p);
  const Tiles t = tiles_of(way, p, batch.count, gemm_loops<T>().columns);
  GemmShape largest = p;
  largest.m = ceil_div(p.m, t.down);
  largest.n = std::min(p.n, ceil_div(p.n, t.across) + t.unit);
  const std::int64_t per_product = t.down * t.across, work = largest.m * largest.n * p.k,
                     call = 1024;  // what beginning a tile costs
  for_tiles(way == Way::blocks ? gemm_loops<T>().workspace(largest) : 0, batch.count * per_product,
            (kWorthAThread + work) / (work + call), [&](std::int64_t i, std::byte* memory) {
              if (work > kLeastTile) check_interrupt();
              const BatchStrides::Offsets first = batch.offsets(i / per_product);
              const std::int64_t down = i % per_product / t.across, across = i % t.across, row = t.row(down),
                                 column = t.column(across);
              GemmShape part = p;
              part.m = t.row(down + 1) - row;
              part.n = t.column(across + 1) - column;
              if (part.m == 0 || part.n == 0) return;
              one_tile(way, part, a + first.a + (p.ta ? row : row * p.lda),
                       b + first.b + (p.tb ? column * p.ldb : column), out + first.out + row * p.ldo + column,
                       finish.from(column), memory);
            });
}

bool in_inner_parts(const GemmShape& p) {
  return p.m * p.n <= 128 * 128 && p.k >= 2 * kInnerBlock && p.m * p.n * p.k > kInnerParts;
}

/// The length of parts of k that are multiples of 16, about as many as `parts`.
std::int64_t part_of(std::int64_t k, std::int64_t parts) { return std::min(k, ceil_div(ceil_div(k, parts), 16) * 16); }

/// For a small result with a long inner axis: computes parts of that axis separately, then sums them in order.
template <class T>
bool run_inner_parts(const GemmShape& p, const T* a, const T* b, T* out) {
  if (!in_inner_parts(p)) return false;
  const std::int64_t parts = std::max(std::min<std::int64_t>(16, p.k / kInnerBlock), ceil_div(p.k, kLongestInner));
  const std::int64_t length = part_of(p.k, parts), n_parts = ceil_div(p.k, length);
  Ref<Storage> partial = Storage::allocate(n_parts * p.m * p.n * static_cast<std::int64_t>(sizeof(T)), cpu);
  T* sums = static_cast<T*>(partial->data);
  GemmShape longest = p;
  longest.k = length;
  longest.ldo = p.n;
  for_tiles(gemm_loops<T>().workspace(longest), n_parts, 1, [&](std::int64_t i, std::byte* memory) {
    const std::int64_t at = i * length;
    GemmShape part = longest;
    part.k = std::min(length, p.k - at);
    one_tile(way_of(part), part, a + (p.ta ? at * p.lda : at), b + (p.tb ? at : at * p.ldb), sums + i * p.m * p.n, {},
             memory);
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
  const std::int64_t n_parts = ceil_div(p.k, kLongestSlice), length = part_of(p.k, n_parts);
  Ref<Storage> partial = Storage::allocate(p.m * p.n * static_cast<std::int64_t>(sizeof(T)), cpu);
  T* more = static_cast<T*>(partial->data);
  for (std::int64_t at = 0; at < p.k; at += length) {
    GemmShape part = p;
    part.k = std::min(length, p.k - at);
    if (at > 0) part.ldo = p.n;
    run_tiles(part, BatchStrides(), a + (p.ta ? at * p.lda : at), b + (p.tb ? at : at * p.ldb), at > 0 ? more : out);
    if (at == 0) continue;
    parallel_for(p.m, std::max<std::int64_t>(1, kWorthAThread / p.n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) out[i * p.ldo + j] += more[i * p.n + j];
    });
  }
}

template <class T>
void multiply_any(const GemmShape& p, const BatchStrides& batch, const T* a, const T* b, T* out) {
  if (batch.count == 1 && p.m * p.n * p.k <= kTiny) {
    tiny(p, a, b, out);
    return;
  }
  if (p.k == 0) {
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const std::int64_t first = batch.offsets(i).out;
      for (std::int64_t row = 0; row < p.m; ++row) std::fill_n(out + first + row * p.ldo, p.n, T(0));
    }
    return;
  }
  if (batch.count > 1 && p.k <= kLongInner) {
    run_tiles(p, batch, a, b, out);
    return;
  }
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const BatchStrides::Offsets first = batch.offsets(i);
    const T *x = a + first.a, *y = b + first.b;
    T* z = out + first.out;
    if (run_inner_parts(p, x, y, z)) continue;
    if (p.k > kLongInner) run_inner_slices(p, x, y, z);
    else run_tiles(p, {}, x, y, z);
  }
}

template <class T>
bool add_any(const GemmShape& p, const T* a, const T* b, T* out) {
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.k > kOneChain || way_of(p) != Way::blocks) return false;
  run_tiles(p, {}, a, b, out, {.add = true});
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
bool takes_bias(const GemmShape& p) {
  return p.m > 0 && p.n > 0 && p.k > 0 && p.k <= kLongInner && way_of(p) == Way::blocks && !in_inner_parts(p);
}
void multiply_with_bias(const GemmShape& p, const float* a, const float* b, const float* bias, bool relu, float* out) {
  run_tiles(p, {}, a, b, out, {.bias = bias, .relu = relu});
}
void multiply_with_bias(const GemmShape& p, const double* a, const double* b, const double* bias, bool relu,
                        double* out) {
  run_tiles(p, {}, a, b, out, {.bias = bias, .relu = relu});
}

}  // namespace kassette::devices

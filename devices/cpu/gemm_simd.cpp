// devices/cpu/gemm_simd.cpp - the product of two matrices on one thread; compiled once per CPU level.
//
// Note [How a product runs]
// A block of the output, of kRows rows and kVectors vectors, is summed in registers: for each k, a row of B is loaded,
// and each element of a column of A is multiplied by all of it. The operands are copied first, into the order in which
// this reads them: B into panels of as many columns as a block has, A into strips of as many rows. k is divided into
// parts of at most kOneChain, so that a panel of B stays in the first cache while the strips of A pass by, and
// kStripRows rows of A stay in the second. What is small, or read only a few times, is not copied but read where it
// lies, and so are rows of A unless they fall into one set of a cache.
//
// An element of the output is the sum, in order, of those over the parts of k, each of them a chain of multiply-adds.
// So its bits depend on k and on the level alone: not on the other sizes, nor on strides, on where it lies in the
// output or on the number of threads.
#include "devices/cpu/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/ceil_div.h"
#include "devices/cpu/simd_fma.h"
#include "devices/cpu/simd_transpose.h"
#include "devices/cpu/simd_vector.h"
#include "devices/cpu/xsimd.h"

namespace kassette::devices {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 14;  // 28 of 32 registers hold sums
#elif defined(__AVX2__)
constexpr int kRows = 6;  // 12 of 16
#elif defined(__aarch64__)
constexpr int kRows = 12;  // 24 of 32
#else
constexpr int kRows = 4;
#endif
constexpr int kVectors = 2;
constexpr std::int64_t kStripStride = kOneChain + 16;     // from row to row of a strip: not all in one set of a cache
constexpr std::int64_t kStripRows = 280 / kRows * kRows;  // rows of A that are copied at a time
constexpr std::int64_t kPanelColumns = 2048;              // columns of B that are copied at a time
constexpr std::int64_t kSmall = std::int64_t(1) << 14;    // elements of an operand that the caches hold as it lies
constexpr std::int64_t kMedium = std::int64_t(1) << 18;   // elements of B that the second cache holds
constexpr int kAhead = 12;                                // rows of a panel that are fetched ahead

/// An operand: element (i, j) is data[i * down + j * across].
template <class T>
struct View {
  const T* data;
  std::int64_t down, across;
  const T* at(std::int64_t i, std::int64_t j) const { return data + i * down + j * across; }
};

/// Rows of A, `step` apart, by few pointers: an address is a pointer and one scaled register.
template <class T, int R>
struct Rows {
  static constexpr int kGroups = (R + 3) / 4;
  const T* first[kGroups];
  std::int64_t step, three;
  inline __attribute__((always_inline)) Rows(const T* a, std::int64_t a_step) : step(a_step), three(3 * a_step) {
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) first[g] = a + 4 * g * a_step;
  }
  inline __attribute__((always_inline)) T at(int i) const {
    const T* p = first[i / 4];
    return *(i % 4 == 0 ? p : i % 4 == 1 ? p + step : i % 4 == 2 ? p + 2 * step : p + three);
  }
  inline __attribute__((always_inline)) void next() {
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) ++first[g];
  }
};
/// As much of a column of A.
template <class T>
struct Column {
  const T* a;
  std::int64_t step;
  T at(int i) const { return a[i]; }
  void next() { a += step; }
};

/// A block of R rows of V vectors, in registers.
template <class T, int R, int V, bool by_columns>
void block(const GemmBlock<T>& t) {
  using Batch = xsimd::batch<T>;
  constexpr auto kWidth = static_cast<std::int64_t>(Batch::size);
  Batch sum[R][V];
  auto each = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) f(sum[i][v], i, v);
  };
  each([&](Batch & s, int i, int v) __attribute__((always_inline)) {
    s = Batch(T(0));
    __builtin_prefetch(t.out + i * t.out_step + v * kWidth, 1);
  });
  for (std::int64_t r = 0; r < t.runs; ++r) {
    const T* b = t.b + r * t.b_run;
    std::conditional_t<by_columns, Column<T>, Rows<T, R>> a{t.a_runs ? t.a + t.a_runs[r] : t.a, t.a_step};
    for (std::int64_t l = 0; l < t.run; ++l) {
      Batch row[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        row[v] = Batch::load_unaligned(b + v * kWidth);
        __builtin_prefetch(b + kAhead * t.b_step + v * kWidth);
      }
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const Batch x(a.at(i));
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(x, row[v], sum[i][v]);
      }
      a.next();
      b += t.b_step;
    }
  }
  auto finish = [&](auto whole) __attribute__((always_inline)) {
    auto part = [&](int v) __attribute__((always_inline)) { return Part<T>{whole ? kWidth : t.columns - v * kWidth}; };
    if (t.finish.add)
      each([&](Batch & s, int i, int v)
               __attribute__((always_inline)) { s = part(v).load(t.out + i * t.out_step + v * kWidth) + s; });
    if (t.finish.bias)
      each([&](Batch & s, int, int v)
               __attribute__((always_inline)) { s = s + part(v).load(t.finish.bias + v * kWidth); });
    if (t.finish.relu)
      each([&](Batch & s, int, int)
               __attribute__((always_inline)) { s = xsimd::select(s < Batch(T(0)), Batch(T(0)), s); });
    each([&](Batch & s, int i, int v)
             __attribute__((always_inline)) { part(v).store(t.out + i * t.out_step + v * kWidth, s); });
  };
  if (t.columns == V * kWidth) finish(std::true_type());
  else finish(std::false_type());
}

/// block() for 1 to kRows rows, and one or two vectors.
template <class T, bool by_columns, int... i>
constexpr std::array<void (*)(const GemmBlock<T>&), sizeof...(i)> blocks_of(std::integer_sequence<int, i...>) {
  return {block<T, i / kVectors + 1, i % kVectors + 1, by_columns>...};
}
template <class T>
void run_block(const GemmBlock<T>& t, std::int64_t rows) {
  constexpr auto all = std::make_integer_sequence<int, kRows * kVectors>();
  static constexpr auto by_rows = blocks_of<T, false>(all), by_columns = blocks_of<T, true>(all);
  const auto i = static_cast<std::size_t>((rows - 1) * kVectors + (t.columns - 1) / Vec<T>::kWidth);
  (t.by_columns ? by_columns : by_rows)[i](t);
}

template <class T>
struct Product {
  using Batch = xsimd::batch<T>;
  static constexpr std::int64_t kWidth = Batch::size, kColumns = kVectors * kWidth, kItem = sizeof(T);

  /// The columns of a panel for n columns of B: whole vectors.
  static std::int64_t panel_width(std::int64_t n) { return n > kWidth ? kColumns : kWidth; }

  /// Copies k_end rows of n columns of B into a panel, with zeros beside them.
  static void pack_panel(const View<T>& b, std::int64_t k_end, std::int64_t n, T* panel) {
    const std::int64_t width = panel_width(n), whole = n / kWidth * kWidth;
    std::int64_t first = 0;  // row that is not copied yet
    if (b.across == 1) {
      for (; first < k_end; ++first) {
        const T* from = b.data + first * b.down;
        T* to = panel + first * width;
        for (std::int64_t j = 0; j < whole; j += kWidth) Batch::load_unaligned(from + j).store_unaligned(to + j);
        if (whole == width) continue;
        Batch(T(0)).store_unaligned(to + whole);
        for (std::int64_t j = whole; j < n; ++j) to[j] = from[j];
      }
      return;
    }
    if (b.down == 1)
      for (; first + kWidth <= k_end; first += kWidth)
        for (std::int64_t j = 0; j < width; j += kWidth) {
          Batch square[kWidth];
          for (std::int64_t q = 0; q < kWidth; ++q)
            square[q] = j + q < n ? Batch::load_unaligned(b.at(first, j + q)) : Batch(T(0));
          transpose(square);
          for (std::int64_t q = 0; q < kWidth; ++q) square[q].store_unaligned(panel + (first + q) * width + j);
        }
    for (; first < k_end; ++first)
      for (std::int64_t j = 0; j < width; ++j) panel[first * width + j] = j < n ? *b.at(first, j) : T(0);
  }

  /// Elements of the panels of B that are copied at a time: if it is read where it lies, the last one at most.
  static std::int64_t panels_size(const GemmShape& p) {
    const std::int64_t columns = reads_b_directly(p) ? kColumns : std::min(p.n, kPanelColumns);
    return std::min(p.k, kOneChain) * ceil_div(columns, kColumns) * kColumns;
  }
  /// Rows that lie side by side, or a multiple of a page apart, which is one set of the first cache for all of them,
  /// are copied where they are read often.
  static bool reads_a_directly(const GemmShape& p) {
    return p.m * p.k <= kSmall || p.n <= 2 * kColumns || (!p.ta && p.lda * kItem % 4096 != 0);
  }
  static bool reads_b_directly(const GemmShape& p) {
    const std::int64_t size = p.k * p.n, often = size <= kSmall ? p.m : size <= kMedium ? 6 * kRows : 2 * kRows;
    return !p.tb && p.m <= often;
  }

  /// Not less than for a part of the product.
  static std::int64_t workspace(const GemmShape& p) {
    const std::int64_t strips = reads_a_directly(p) ? 0 : std::min(p.m, kStripRows) * kStripStride;
    return kItem * (panels_size(p) + strips);
  }

  /// Copies rows of A, and says where they are then.
  static View<T> pack_rows(const View<T>& a, bool by_columns, std::int64_t height, std::int64_t k_end, T* to) {
    const auto bytes = static_cast<std::size_t>(by_columns ? height : k_end) * sizeof(T);
    if (by_columns) {
      for (std::int64_t k = 0; k < k_end; ++k) std::memcpy(to + k * height, a.at(0, k), bytes);
      return {to, 1, height};
    }
    for (std::int64_t i = 0; i < height; ++i) std::memcpy(to + i * kStripStride, a.at(i, 0), bytes);
    return {to, kStripStride, 1};
  }

  /// Multiplies `height` rows of A by a panel.
  static void multiply_panel(GemmBlock<T> t, const View<T>& a, std::int64_t height) {
    const std::int64_t count = ceil_div(height, kRows);
    T* const out = t.out;
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t first = height * s / count;
      t.a = a.at(first, 0);
      t.out = out + first * t.out_step;
      run_block(t, height * (s + 1) / count - first);
    }
  }

  static void multiply(const GemmShape& p, const T* a_data, const T* b_data, T* out, const Finish<T>& finish,
                       std::byte* work) {
    const View<T> a{a_data, p.ta ? 1 : p.lda, p.ta ? p.lda : 1}, b{b_data, p.tb ? 1 : p.ldb, p.tb ? p.ldb : 1};
    const bool direct_a = reads_a_directly(p), direct_b = reads_b_directly(p);
    const std::int64_t parts = ceil_div(p.k, kOneChain);
    T* const panels = reinterpret_cast<T*>(work);
    T* const strips = panels + panels_size(p);
    for (std::int64_t j0 = 0; j0 < p.n; j0 += kPanelColumns) {
      const std::int64_t width = std::min(kPanelColumns, p.n - j0);
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t k0 = p.k * part / parts, k_end = p.k * (part + 1) / parts - k0;
        auto finish_of = [&](std::int64_t j) {
          Finish<T> f = part + 1 == parts ? finish.from(j0 + j) : Finish<T>();
          f.add = finish.add || part > 0;
          return f;
        };
        // Where the panel of column j is; of those that are read directly, the last may have to be copied.
        auto is_packed = [&](std::int64_t j) { return !direct_b || width - j < kColumns; };
        auto panel = [&](std::int64_t j) { return direct_b ? panels : panels + j * k_end; };
        for (std::int64_t j = 0; j < width; j += kColumns)
          if (is_packed(j))
            pack_panel({b.at(k0, j0 + j), b.down, b.across}, k_end, std::min(kColumns, width - j), panel(j));
        for (std::int64_t i0 = 0; i0 < p.m; i0 += kStripRows) {
          const std::int64_t height = std::min(kStripRows, p.m - i0);
          View<T> left{a.at(i0, k0), a.down, a.across};
          if (!direct_a) left = pack_rows(left, p.ta, height, k_end, strips);
          for (std::int64_t j = 0; j < width; j += kColumns) {
            const std::int64_t n = std::min(kColumns, width - j);
            multiply_panel({.a = nullptr,
                            .a_step = p.ta ? left.across : left.down,
                            .b = is_packed(j) ? panel(j) : b.at(k0, j0 + j),
                            .b_step = is_packed(j) ? panel_width(n) : b.down,
                            .run = k_end,
                            .out = out + i0 * p.ldo + j0 + j,
                            .out_step = p.ldo,
                            .columns = n,
                            .by_columns = p.ta,
                            .finish = finish_of(j)},
                           left, height);
          }
        }
      }
    }
  }
};

}  // namespace

constinit const GemmTable KASSETTE_LEVEL_NAME(gemm_table) = {
    {kRows, Product<float>::kColumns, run_block<float>, Product<float>::workspace, Product<float>::multiply},
    {kRows, Product<double>::kColumns, run_block<double>, Product<double>::workspace, Product<double>::multiply}};

}  // namespace kassette::devices

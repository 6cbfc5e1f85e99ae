// ops/shape/strided.cpp - copying between two strided layouts.
#include "ops/shape/strided.h"

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ceil_div.h"
#include "devices/cpu/threads.h"
#include "devices/plugin.h"
#include "ops/engine/coalesce.h"
#include "ops/engine/op.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrainBytes = 3 << 16;  // bytes that are worth another thread

/// Drops axes of size 1, sorts the rest by descending stride of writing, and joins neighbours where both strides allow
/// it.
Strided coalesced(const Strided& l) {
  Strided s;
  for (int i = 0; i < l.rank; ++i)
    if (l.dims[i] != 1) s.push(l.dims[i], l.from[i], l.to[i]);
  for (int i = 1; i < s.rank; ++i)
    for (int j = i; j > 0 && std::abs(s.to[j - 1]) < std::abs(s.to[j]); --j) {
      std::swap(s.dims[j - 1], s.dims[j]);
      std::swap(s.from[j - 1], s.from[j]);
      std::swap(s.to[j - 1], s.to[j]);
    }
  Strided out;
  for (int i = 0; i < s.rank; ++i)
    push_coalesced(out.rank, out.dims, s.dims[i], 2, [&](int k) {
      return k == 0 ? Along{out.from, s.from[i]} : Along{out.to, s.to[i]};
    });
  if (out.rank == 0) out.push(1, 1, 1);
  return out;
}

/// Iterates over [begin, end) of the row-major indices of all axes but the last `inner` ones; calls f(from, to) with
/// offsets in elements.
template <class F>
void walk(const Strided& s, int inner, std::int64_t begin, std::int64_t end, F&& f) {
  int outer = s.rank - inner;
  std::int64_t index[Strided::kAxes] = {}, from = 0, to = 0, rest = begin;
  for (int i = outer - 1; i >= 0; --i) {
    index[i] = rest % s.dims[i];
    rest /= s.dims[i];
    from += index[i] * s.from[i];
    to += index[i] * s.to[i];
  }
  for (std::int64_t at = begin; at < end; ++at) {
    f(from, to);
    for (int i = outer - 1; i >= 0; --i) {
      from += s.from[i];
      to += s.to[i];
      if (++index[i] < s.dims[i]) break;
      from -= s.from[i] * s.dims[i];
      to -= s.to[i] * s.dims[i];
      index[i] = 0;
    }
  }
}

template <class T>
void copy_run(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, n, *from);
  } else if (to_stride == 1 && from_stride == -1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

/// Transposes squares of elements whose rows are vectors of 16 bytes.
template <class T>
struct Square {
  static constexpr int kSide = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));

  template <int... i>
  static Vector low(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (i % 2 * kSide + i / 2)...);
  }
  template <int... i>
  static Vector high(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (i % 2 * kSide + i / 2 + kSide / 2)...);
  }
  static void store(T* to, const Vector& v) { std::memcpy(to, &v, 16); }
#if defined(__SSE2__)
  /// Stores past the caches; `to` is aligned to a vector.
  static void stream(T* to, const Vector& v) {
    __m128i bits;
    std::memcpy(&bits, &v, 16);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), bits);
  }
#endif
  /// Interleaves the first half of the rows with the second, log2(kSide) times.
  template <void (*put)(T*, const Vector&) = store>
  static void transpose(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
    constexpr auto all = std::make_integer_sequence<int, kSide>();
    Vector v[kSide], w[kSide];
    for (int i = 0; i < kSide; ++i) std::memcpy(&v[i], from + i * from_stride, 16);
    for (int step = 1; step < kSide; step *= 2) {
      for (int i = 0; i < kSide / 2; ++i) {
        w[2 * i] = low(v[i], v[i + kSide / 2], all);
        w[2 * i + 1] = high(v[i], v[i + kSide / 2], all);
      }
      for (int i = 0; i < kSide; ++i) v[i] = w[i];
    }
    for (int i = 0; i < kSide; ++i) put(to + i * to_stride, v[i]);
  }
};

/// `to`[r][c] = `from`[c][r] for a block.
template <class T>
void transpose_small(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                     std::int64_t columns) {
  constexpr std::int64_t kSide = Square<T>::kSide;
  std::int64_t r = 0;
  for (; r + kSide <= rows; r += kSide) {
    std::int64_t c = 0;
    for (; c + kSide <= columns; c += kSide)
      Square<T>::transpose(from + c * from_stride + r, from_stride, to + r * to_stride + c, to_stride);
    for (; c < columns; ++c)
      for (std::int64_t i = r; i < r + kSide; ++i) to[i * to_stride + c] = from[c * from_stride + i];
  }
  for (; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * to_stride + c] = from[c * from_stride + r];
}

/// Copies whole cache lines past the caches: results that are not read again soon do not evict other data, and lines
/// are not read before they are overwritten.
void stream_line(void* to, const void* from, std::int64_t bytes) {
#if defined(__SSE2__)
  if (reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && bytes % 64 == 0) {
    for (std::int64_t i = 0; i < bytes; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(static_cast<char*>(to) + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + i)));
    return;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Prefetches the cache lines at n addresses, `step` elements apart, from `at` on. They may be past the end of the
/// array.
template <class T>
void prefetch_lines(const T* at, std::int64_t step, std::int64_t n) {
  auto address = reinterpret_cast<std::uintptr_t>(at);
  for (std::int64_t i = 0; i < n; ++i, address += static_cast<std::uintptr_t>(step) * sizeof(T))
    __builtin_prefetch(reinterpret_cast<const void*>(address));
}

/// Transposes a rows x columns block past the caches, in tiles of one cache line by kColumns columns of `from`. A line
/// that is read is used completely at once, and results are written in pieces of 256 bytes, so that strides which map
/// to the same sets of the caches do no harm. There are too many lines for the CPU's own prefetching, so the lines two
/// tiles ahead are prefetched: (32, 64, 56, 56) permuted to (0, 2, 3, 1) takes 0.71 ms, and 1.08 ms without. A plain
/// copy past the caches takes 0.73.
template <class T>
void transpose_block(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                     std::int64_t columns) {
  // For bytes 192 columns: the buffer is on the stack of whoever calls.
  constexpr std::int64_t kRows = 64 / sizeof(T), kColumns = sizeof(T) == 1 ? 192 : 256 / sizeof(T),
                         kSide = Square<T>::kSide;
  constexpr std::int64_t kAhead = 2 * kRows;
  // Squares of bytes have 16 rows: more lines would be partly written at a time than the CPU has write-combining
  // buffers.
  [[maybe_unused]] bool whole_lines = kSide <= 8 && reinterpret_cast<std::uintptr_t>(to) % 64 == 0 &&
                                      to_stride % kRows == 0 && columns % kRows == 0 && rows % kSide == 0;
  alignas(64) T buffer[kRows * kColumns];
  for (std::int64_t c = 0; c < columns; c += kColumns) {
    std::int64_t n = std::min(kColumns, columns - c);
    for (std::int64_t r = 0; r < rows; r += kRows) {
      std::int64_t m = std::min(kRows, rows - r);
      const T* corner = from + c * from_stride + r;
#if defined(__SSE2__)
      // If the result consists of whole lines, the vectors of neighbouring squares fill each line, and no buffer is
      // needed.
      if (whole_lines) {
        for (std::int64_t k = 0; k < n; k += kRows) {
          prefetch_lines(corner + k * from_stride + kAhead, from_stride, kRows);
          for (std::int64_t i = 0; i < m; i += kSide)
            for (std::int64_t j = k; j < k + kRows; j += kSide)
              Square<T>::template transpose<Square<T>::stream>(corner + j * from_stride + i, from_stride,
                                                               to + (r + i) * to_stride + c + j, to_stride);
        }
        continue;
      }
#endif
      prefetch_lines(corner + kAhead, from_stride, n);
      transpose_small(corner, from_stride, buffer, kColumns, m, n);
      for (std::int64_t i = 0; i < m; ++i)
        stream_line(to + (r + i) * to_stride + c, buffer + i * kColumns, n * static_cast<std::int64_t>(sizeof(T)));
    }
  }
  end_stream();
}

/// Smaller results are written to the caches.
constexpr std::int64_t kStreamBytes = 1 << 20;
constexpr std::int64_t kPage = 4096;
/// Like kGrainBytes: a thread that takes over a part of a transposition has none of the source in its cache.
constexpr std::int64_t kTransposeGrain = 3 << 17;

/// For layouts whose last axis is contiguous in writing, and axis `a` in reading: transposes blocks of the two.
template <class T>
void copy_transposed(Strided s, int a, const T* from, T* to) {
  int last = s.rank - 1;
  // Axis a becomes the last but one.
  for (std::int64_t* axes : {s.dims, s.from, s.to}) std::rotate(axes + a, axes + a + 1, axes + last);
  std::int64_t rows = s.dims[last - 1], columns = s.dims[last], outer = 1;
  for (int i = 0; i < last - 1; ++i) outer *= s.dims[i];
  constexpr std::int64_t kSize = sizeof(T), kStrip = 1024 / kSize;  // rows per step: whole cache lines are read
  constexpr std::int64_t kPiece = 256 / kSize;                      // columns that are written together
  const std::int64_t strips = ceil_div(rows, kStrip), row_bytes = std::min(rows, kStrip) * kSize;
  // A tall matrix is a single strip, so strips are divided too, into equal parts that are worth a thread.
  const std::int64_t most = std::max<std::int64_t>(1, columns * row_bytes / kTransposeGrain),
                     part = std::min(columns, ceil_div(ceil_div(columns, most), kPiece) * kPiece),
                     parts = ceil_div(columns, part);
  // Where the rows of the result are in different pages and those of the source are not, writing past the caches takes
  // two to three times as long.
  const bool scatters = s.to[last - 1] * kSize >= kPage && s.from[last] * kSize < kPage;
  bool stream = !scatters && outer * rows * columns * kSize >= kStreamBytes;
  auto* block = stream ? transpose_block<T> : transpose_small<T>;
  devices::parallel_for(outer * strips * parts, std::max<std::int64_t>(1, kTransposeGrain / (row_bytes * part)),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t at = begin; at < end; ++at) {
                            const std::int64_t r = at / parts % strips * kStrip, c = at % parts * part,
                                               matrix = at / (parts * strips);
                            walk(s, 2, matrix, matrix + 1, [&](std::int64_t f, std::int64_t t) {
                              block(from + f + r + c * s.from[last], s.from[last], to + t + r * s.to[last - 1] + c,
                                    s.to[last - 1], std::min(kStrip, rows - r), std::min(part, columns - c));
                            });
                          }
                        });
}

template <int kColumns, class T>
void copy_columns(const Strided& s, const T* from, T* to, std::int64_t rows) {
  int last = s.rank - 1;
  std::int64_t f1 = s.from[last - 1], t1 = s.to[last - 1], f2 = s.from[last], t2 = s.to[last];
  for (std::int64_t i = 0; i < rows; ++i)
    for (int k = 0; k < kColumns; ++k) to[i * t1 + k * t2] = from[i * f1 + k * f2];
}

/// For a last axis of two to four elements: one loop for the last two axes.
template <class T>
void copy_narrow(const Strided& s, const T* from, T* to) {
  int last = s.rank - 1;
  std::int64_t rows = s.dims[last - 1], outer = 1, n = s.dims[last];
  auto* columns = n == 2 ? copy_columns<2, T> : n == 3 ? copy_columns<3, T> : copy_columns<4, T>;
  for (int i = 0; i < last - 1; ++i) outer *= s.dims[i];
  if (outer == 1) {
    devices::parallel_for(rows, kGrainBytes / 16, [&](std::int64_t begin, std::int64_t end) {
      columns(s, from + begin * s.from[last - 1], to + begin * s.to[last - 1], end - begin);
    });
    return;
  }
  std::int64_t row_bytes = rows * n * static_cast<std::int64_t>(sizeof(T));
  devices::parallel_for(
      outer, std::max<std::int64_t>(1, kGrainBytes / row_bytes), [&](std::int64_t begin, std::int64_t end) {
        walk(s, 2, begin, end, [&](std::int64_t f, std::int64_t t) { columns(s, from + f, to + t, rows); });
      });
}

template <class T>
void copy_elements(const Strided& s, const std::byte* from_bytes, std::byte* to_bytes) {
  auto* from = reinterpret_cast<const T*>(from_bytes);
  auto* to = reinterpret_cast<T*>(to_bytes);
  int last = s.rank - 1;
  if (s.to[last] == 1 && s.from[last] != 1 && s.from[last] != 0 && s.dims[last] >= 4)
    for (int a = 0; a < last; ++a)
      if (s.from[a] == 1 && s.dims[a] >= 4) {
        copy_transposed(s, a, from, to);
        return;
      }
  std::int64_t n = s.dims[last], outer = 1;
  for (int i = 0; i < last; ++i) outer *= s.dims[i];
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (outer == 1) {
    devices::parallel_for(n, kGrainBytes / kSize, [&](std::int64_t begin, std::int64_t end) {
      copy_run(from + begin * s.from[last], s.from[last], to + begin * s.to[last], s.to[last], end - begin);
    });
    return;
  }
  if (n <= 4 && s.dims[last - 1] > n) {
    copy_narrow(s, from, to);
    return;
  }
  devices::parallel_for(
      outer, std::max<std::int64_t>(1, kGrainBytes / (n * kSize)), [&](std::int64_t begin, std::int64_t end) {
        walk(s, 1, begin, end,
             [&](std::int64_t f, std::int64_t t) { copy_run(from + f, s.from[last], to + t, s.to[last], n); });
      });
}

}  // namespace

void row_strides(const TensorSpec& s, std::int64_t* strides) {
  std::int64_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    strides[i] = step;
    step *= s.dims[i];
  }
}

devices::DeviceMoves& device_moves() {
  static constinit devices::DeviceMoves moves = {};
  return moves;
}

void copy_strided(const OpCall& call, const Strided& layout, const std::byte* from, std::byte* to, int size) {
  if (call.device.type() == Device::kCpu) return copy_strided(layout, from, to, size);
  for (int i = 0; i < layout.rank; ++i)
    if (layout.dims[i] == 0) return;
  device_moves().copy_strided(call, coalesced(layout), from, to, size);
}
void zero_bytes(const OpCall& call, std::byte* to, std::int64_t n) {
  if (call.device.type() == Device::kCpu) zero_bytes(to, n);
  else if (n > 0) device_moves().zero(call, to, n);
}

void fill_elements(Device device, std::byte* to, std::int64_t n, const void* element, int size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(size));
  if (n > 0) device_moves().fill(device, to, n, bits, size);
}

void copy_strided(const Strided& layout, const std::byte* from, std::byte* to, int size) {
  for (int i = 0; i < layout.rank; ++i)
    if (layout.dims[i] == 0) return;
  Strided s = coalesced(layout);
  switch (size) {
    case 1: copy_elements<std::uint8_t>(s, from, to); break;
    case 2: copy_elements<std::uint16_t>(s, from, to); break;
    case 4: copy_elements<std::uint32_t>(s, from, to); break;
    default: copy_elements<std::uint64_t>(s, from, to); break;
  }
}

void zero_bytes(std::byte* to, std::int64_t n) {
  devices::parallel_for(n, kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace kassette::ops

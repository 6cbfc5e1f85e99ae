// ops/strided.cpp - copying between two strided layouts.
#include "ops/strided.h"

#include <algorithm>
#include <cstring>

#include "devices/cpu/threads.h"

namespace kassette {
namespace {

constexpr std::int64_t kGrainBytes = 1 << 16;   // bytes that are worth a thread

/// Drops axes of size 1, orders the rest by the stride that is written, large to small, and joins neighbours.
Strided simplified(const Strided& l) {
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
  for (int i = 0; i < s.rank; ++i) {
    int k = out.rank - 1;
    if (k >= 0 && out.from[k] == s.from[i] * s.dims[i] && out.to[k] == s.to[i] * s.dims[i]) {
      out.dims[k] *= s.dims[i];
      out.from[k] = s.from[i];
      out.to[k] = s.to[i];
    } else {
      out.push(s.dims[i], s.from[i], s.to[i]);
    }
  }
  if (out.rank == 0) out.push(1, 1, 1);
  return out;
}

/// Walks the axes before the last `inner` ones; calls f(from, to) with offsets in elements.
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

/// A rows x columns block transposed: `from` is contiguous along rows, `to` along columns. Square tiles keep the lines of
/// both sides in the first cache.
template <class T>
void transpose_block(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                     std::int64_t columns) {
  constexpr std::int64_t kTile = 64 / sizeof(T) < 16 ? 16 : 64 / sizeof(T);
  for (std::int64_t r = 0; r < rows; r += kTile)
    for (std::int64_t c = 0; c < columns; c += kTile) {
      std::int64_t r_end = std::min(rows, r + kTile), c_end = std::min(columns, c + kTile);
      for (std::int64_t i = r; i < r_end; ++i)
        for (std::int64_t j = c; j < c_end; ++j) to[i * to_stride + j] = from[j * from_stride + i];
    }
}

/// The last axis is contiguous on the side written, axis `a` on the side read: blocks of the two are transposed.
template <class T>
void copy_transposed(Strided s, int a, const T* from, T* to) {
  int last = s.rank - 1;
  for (int i = a; i < last - 1; ++i) {   // axis a next to the last
    std::swap(s.dims[i], s.dims[i + 1]);
    std::swap(s.from[i], s.from[i + 1]);
    std::swap(s.to[i], s.to[i + 1]);
  }
  std::int64_t rows = s.dims[last - 1], columns = s.dims[last], outer = 1;
  for (int i = 0; i < last - 1; ++i) outer *= s.dims[i];
  constexpr std::int64_t kStrip = 64;   // rows that one step takes: whole lines of what is read
  std::int64_t strips = (rows + kStrip - 1) / kStrip;
  std::int64_t strip_bytes = std::min(rows, kStrip) * columns * static_cast<std::int64_t>(sizeof(T));
  parallel_for(outer * strips, std::max<std::int64_t>(1, kGrainBytes / strip_bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      std::int64_t strip = at % strips;
      walk(s, 2, at / strips, at / strips + 1, [&](std::int64_t f, std::int64_t t) {
        std::int64_t r = strip * kStrip;
        transpose_block(from + f + r, s.from[last], to + t + r * s.to[last - 1], s.to[last - 1],
                        std::min(kStrip, rows - r), columns);
      });
    }
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
    parallel_for(n, kGrainBytes / kSize, [&](std::int64_t begin, std::int64_t end) {
      copy_run(from + begin * s.from[last], s.from[last], to + begin * s.to[last], s.to[last], end - begin);
    });
    return;
  }
  parallel_for(outer, std::max<std::int64_t>(1, kGrainBytes / (n * kSize)), [&](std::int64_t begin, std::int64_t end) {
    walk(s, 1, begin, end, [&](std::int64_t f, std::int64_t t) { copy_run(from + f, s.from[last], to + t, s.to[last], n); });
  });
}

}  // namespace

void row_strides(const Spec& s, std::int64_t* strides) {
  std::int64_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    strides[i] = step;
    step *= s.dims[i];
  }
}

void copy_strided(const Strided& layout, const std::byte* from, std::byte* to, int size) {
  for (int i = 0; i < layout.rank; ++i)
    if (layout.dims[i] == 0) return;
  Strided s = simplified(layout);
  switch (size) {
    case 1: copy_elements<std::uint8_t>(s, from, to); break;
    case 2: copy_elements<std::uint16_t>(s, from, to); break;
    case 4: copy_elements<std::uint32_t>(s, from, to); break;
    default: copy_elements<std::uint64_t>(s, from, to); break;
  }
}

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t n) {
  parallel_for(n, kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}
void zero_bytes(std::byte* to, std::int64_t n) {
  parallel_for(n, kGrainBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace kassette

// ops/reduce/reduce_runs.h - reductions (sum, product, extremes) over runs of memory on the CPU.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "devices/cpu/threads.h"
#include "ops/engine/axes.h"
#include "ops/elementwise/cast.h"
#include "ops/reduce/reduce_loops.h"

namespace kassette::ops {

/// The loops for an element type: float, double, or an integer type (which wraps).
template <class T>
const ReduceLoops<T>& reduce_loops(Reduction how);

/// The reduction of no elements.
template <class T>
T reduce_identity(Reduction how);

/// A buffer of n elements for the duration of a kernel, not initialised.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t n) : storage_(Storage::allocate(n * static_cast<std::int64_t>(sizeof(T)), cpu)) {}
  T* get() const { return static_cast<T*>(storage_->data); }

 private:
  Ref<Storage> storage_;
};

// Note [Blocks of reductions]
// A reduction is cut into blocks whose sizes depend on the shape alone. Vector accumulators reduce each block, and the
// results of the blocks are reduced in the same way. So the bits do not depend on the number of threads, and rounding
// errors grow as in pairwise summation.
inline constexpr std::int64_t kReduceRow = 4096;    // elements of a row in a block; the bits of results depend on it
inline constexpr std::int64_t kReduceColumn = 256;  // elements of a column in a block; the bits of results depend on it
inline constexpr std::int64_t kReduceWidth = 1024;  // columns in a block; the bits do not depend on it
// Elements that are worth a thread: Note [Worth a thread]. Two threads take 0.64 of one's time for a sum of 2^18, the
// least that is divided, and took 1.45 for 2^17 (benchmarks/results/2026-11-26-threads.md).
inline constexpr std::int64_t kReduceGrain = 1 << 17;

/// out[o, i] = reduction of x[o, :, i], where x has the shape (outer, n, inner), all sizes >= 1. Blocks of x are
/// reduced by first_rows(o, at, to, count, n) if inner is 1 (`count` rows of n elements, the first at element `at`, of
/// index o), else by first_columns(o, column, at, to, n, width) (`width` columns, the first at element `at`). `loops`
/// reduce the results of the blocks. Each part that a thread takes uses its own copies of the two functions.
template <class T, class Rows, class Columns>
void reduce_blocks(const ReduceLoops<T>& loops, Rows first_rows, Columns first_columns, T* out, std::int64_t outer,
                   std::int64_t n, std::int64_t inner);
/// reduce_blocks() of x in memory: `loops` reduce the blocks as well as their results.
template <class T>
void reduce_middle(const ReduceLoops<T>& loops, const T* x, T* out, std::int64_t outer, std::int64_t n,
                   std::int64_t inner) {
  reduce_blocks(
      loops,
      [&](std::int64_t, std::int64_t at, T* to, std::int64_t count, std::int64_t m) {
        loops.rows(x + at, to, count, m);
      },
      [&](std::int64_t, std::int64_t, std::int64_t at, T* to, std::int64_t m, std::int64_t width) {
        loops.columns(x + at, to, m, inner, width);
      },
      out, outer, n, inner);
}
template <class T, class Rows, class Columns>
void reduce_blocks(const ReduceLoops<T>& loops, Rows first_rows, Columns first_columns, T* out, std::int64_t outer,
                   std::int64_t n, std::int64_t inner) {
  if (inner == 1) {
    std::int64_t blocks = (n + kReduceRow - 1) / kReduceRow;
    if (blocks == 1) {
      devices::parallel_for(outer, std::max<std::int64_t>(1, kReduceGrain / n),
                            [&](std::int64_t begin, std::int64_t end) {
                              Rows rows = first_rows;
                              rows(begin, begin * n, out + begin, end - begin, n);
                            });
      return;
    }
    Scratch<T> partial(outer * blocks);
    devices::parallel_for(outer * blocks, kReduceGrain / kReduceRow, [&](std::int64_t begin, std::int64_t end) {
      Rows rows = first_rows;
      for (std::int64_t u = begin; u < end; ++u) {
        std::int64_t o = u / blocks, at = u % blocks * kReduceRow;
        rows(o, o * n + at, partial.get() + u, 1, std::min(kReduceRow, n - at));
      }
    });
    reduce_middle(loops, partial.get(), out, outer, blocks, 1);
    return;
  }
  std::int64_t blocks = (n + kReduceColumn - 1) / kReduceColumn, chunks = (inner + kReduceWidth - 1) / kReduceWidth;
  if (outer * blocks * chunks == 1) {
    first_columns(0, 0, 0, out, n, inner);
    return;
  }
  auto reduce_to = [&](T* to) {
    std::int64_t unit = std::min(n, kReduceColumn) * std::min(inner, kReduceWidth);
    devices::parallel_for(outer * blocks * chunks, std::max<std::int64_t>(1, kReduceGrain / unit),
                          [&](std::int64_t begin, std::int64_t end) {
                            Columns columns = first_columns;
                            for (std::int64_t u = begin; u < end; ++u) {
                              std::int64_t column = u % chunks * kReduceWidth, ob = u / chunks,
                                           row = ob % blocks * kReduceColumn, o = ob / blocks;
                              columns(o, column, (o * n + row) * inner + column, to + ob * inner + column,
                                      std::min(kReduceColumn, n - row), std::min(kReduceWidth, inner - column));
                            }
                          });
  };
  if (blocks == 1) {
    reduce_to(out);
    return;
  }
  Scratch<T> partial(outer * blocks * inner);
  reduce_to(partial.get());
  reduce_middle(loops, partial.get(), out, outer, blocks, inner);
}

/// Memory that a function of a thread allocates at its first use; a copy of it has its own.
template <class T>
class OwnScratch {
 public:
  OwnScratch() = default;
  OwnScratch(const OwnScratch&) {}
  OwnScratch& operator=(const OwnScratch&) = delete;
  T* get(std::int64_t n) {
    if (!storage_) storage_ = Storage::allocate(n * static_cast<std::int64_t>(sizeof(T)), cpu);
    return static_cast<T*>(storage_->data);
  }

 private:
  Ref<Storage> storage_;
};

/// The elements of a reduction in T: of that type in memory, or of another dtype.
template <class T>
struct ReduceInput {
  const std::byte* data;
  DType dtype, as = dtype_of(static_cast<const T*>(nullptr));  // `as`: that of T, or bool for bytes 0 and 1
  ReduceInput(const T* x) : data(reinterpret_cast<const std::byte*>(x)), dtype(dtype_of(x)) {}
  ReduceInput(const std::byte* x, DType of) : data(x), dtype(of) {}
  bool converts() const { return dtype != as; }
  const T* elements() const { return reinterpret_cast<const T*>(data); }
  /// n elements from `at` on, as T.
  void read(T* to, std::int64_t at, std::int64_t n) const { cast_elements(to, as, data + at * dtype.size(), dtype, n); }
  /// The same: where they are, or converted into memory for `most`.
  const T* block(OwnScratch<T>& memory, std::int64_t most, std::int64_t at, std::int64_t n) const {
    if (!converts()) return elements() + at;
    T* to = memory.get(most);
    read(to, at, n);
    return to;
  }
};

/// reduce_blocks() of x by rows(elements, o, to, count, n) and columns(elements, stride, o, column, to, n, width). If x
/// has another dtype, blocks are converted one after the other, so that no copy of x is made; the bits are those of
/// converting all of x before.
template <class T, class Rows, class Columns>
void reduce_input(const ReduceLoops<T>& loops, const ReduceInput<T>& x, Rows rows, Columns columns, T* out,
                  std::int64_t outer, std::int64_t n, std::int64_t inner) {
  constexpr std::int64_t kWidth = 256;  // columns that are converted at once
  if (!x.converts()) {
    reduce_blocks(
        loops,
        [&](std::int64_t o, std::int64_t at, T* to, std::int64_t count, std::int64_t m) {
          rows(x.elements() + at, o, to, count, m);
        },
        [&](std::int64_t o, std::int64_t column, std::int64_t at, T* to, std::int64_t m, std::int64_t width) {
          columns(x.elements() + at, inner, o, column, to, m, width);
        },
        out, outer, n, inner);
    return;
  }
  reduce_blocks(
      loops,
      [&, room = OwnScratch<T>()](std::int64_t o, std::int64_t at, T* to, std::int64_t count, std::int64_t m) mutable {
        T* block = room.get(kReduceRow);
        for (std::int64_t i = 0, some; i < count; i += some) {
          some = std::min(count - i, kReduceRow / m);
          x.read(block, at + i * m, some * m);
          rows(static_cast<const T*>(block), o + i, to + i, some, m);
        }
      },
      [&, room = OwnScratch<T>()](std::int64_t o, std::int64_t column, std::int64_t at, T* to, std::int64_t m,
                                  std::int64_t width) mutable {
        T* block = room.get(kReduceColumn * kWidth);
        for (std::int64_t c = 0, some; c < width; c += some) {
          some = std::min(width - c, kWidth);
          if (some == inner) x.read(block, at, m * inner);
          else
            for (std::int64_t r = 0; r < m; ++r) x.read(block + r * some, at + r * inner + c, some);
          columns(static_cast<const T*>(block), some, o, column + c, to + c, m, some);
        }
      },
      out, outer, n, inner);
}
/// reduce_middle() of elements in memory, or of another dtype.
template <class T>
void reduce_middle(const ReduceLoops<T>& loops, const ReduceInput<T>& x, T* out, std::int64_t outer, std::int64_t n,
                   std::int64_t inner) {
  reduce_input(
      loops, x,
      [&](const T* block, std::int64_t, T* to, std::int64_t count, std::int64_t m) { loops.rows(block, to, count, m); },
      [&](const T* block, std::int64_t stride, std::int64_t, std::int64_t, T* to, std::int64_t m, std::int64_t width) {
        loops.columns(block, to, m, stride, width);
      },
      out, outer, n, inner);
}

/// Reduces x along its marked runs, from the last to the first; `out` has the shape of the other runs.
template <class T>
void reduce_runs(const ReduceLoops<T>& loops, T identity, std::type_identity_t<ReduceInput<T>> x, T* out,
                 CoalescedAxes runs) {
  std::int64_t n_out = 1, n_in = 1;
  int todo = 0;
  for (int i = 0; i < runs.n; ++i) {
    n_in *= runs.size[i];
    if (runs.marked[i]) ++todo;
    else n_out *= runs.size[i];
  }
  if (n_out == 0) return;
  if (n_in == 0) {
    std::fill_n(out, n_out, identity);
    return;
  }
  if (todo == 0) {
    x.read(out, 0, n_out);
    return;
  }
  Ref<Storage> held;  // owns x if it is a partial result
  for (; todo > 0; --todo) {
    int i = runs.n - 1;
    while (!runs.marked[i]) --i;
    std::int64_t outer = runs.product(0, i), inner = runs.product(i + 1, runs.n);
    Ref<Storage> next;
    T* to = out;
    if (todo > 1) {
      next = Storage::allocate(outer * inner * static_cast<std::int64_t>(sizeof(T)), cpu);
      to = static_cast<T*>(next->data);
    }
    reduce_middle(loops, x, to, outer, runs.size[i], inner);
    held = std::move(next);
    x = ReduceInput<T>(to);
    CoalescedAxes rest;
    for (int k = 0; k < runs.n; ++k)
      if (k != i) rest.push(runs.size[k], runs.marked[k]);
    runs = rest;
  }
}

template <class T>
void reduce_runs(Reduction how, std::type_identity_t<ReduceInput<T>> x, T* out, const CoalescedAxes& runs) {
  reduce_runs(reduce_loops<T>(how), reduce_identity<T>(how), x, out, runs);
}

}  // namespace kassette::ops

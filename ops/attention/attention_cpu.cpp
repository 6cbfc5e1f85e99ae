// ops/attention/attention_cpu.cpp - attention and its gradient on the CPU, in tiles of queries and keys: the memory is
// linear in their numbers.
//
// Note [Tiles of attention]
// For a tile of queries the keys come tile after tile. The largest score so far is subtracted from all of them, and
// what was summed before is scaled when it grows (Milakov and Gimelshein 2018; Dao et al. 2022). The gradient computes
// a tile's weights again, from the logarithms of the sums of exponentials that the first pass has kept. Tiles depend on
// the sizes alone, and each result is summed by one thread, so that the bits do not depend on their number.
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/blas.h"
#include "devices/cpu/threads.h"
#include "ops/attention/attention_shape.h"
#include "ops/elementwise/half_compute.h"
#include "ops/elementwise/unary.h"
#include "ops/engine/cotangent.h"
#include "ops/reduce/reduce_runs.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kTileQueries = 64, kTileKeys = 256;  // the bits of results depend on them
constexpr std::int64_t kAttentionGrain = 1 << 18;           // products that are worth a thread: Note [Worth a thread]

/// A tile: `rows` queries from `first` on, `columns` keys from `from` on, of head h of sample b.
struct Tile {
  std::int64_t b, h, first, rows, from, columns;
};

/// What a pass over tiles shares.
template <class T>
struct Pass {
  AttentionShape sizes;
  const T *q, *k, *v;
  const std::byte* mask;

  const T* query(const Tile& t) const { return q + sizes.row(t.b, t.first, t.h, sizes.queries, sizes.width); }
  const T* key(const Tile& t) const { return k + sizes.row(t.b, t.from, t.h, sizes.keys, sizes.width); }
  const T* value(const Tile& t) const { return v + sizes.row(t.b, t.from, t.h, sizes.keys, sizes.value_width); }

  /// The scores of a tile, -inf where a key is not seen.
  void scores(const Tile& t, T* out) const {
    const std::int64_t ld = sizes.heads * sizes.width;
    devices::multiply({t.rows, t.columns, sizes.width, false, true, ld, ld, t.columns}, {}, query(t), key(t), out);
    const T scale = static_cast<T>(sizes.scale), unseen = -std::numeric_limits<T>::infinity();
    for (std::int64_t i = 0; i < t.rows; ++i) {
      T* row = out + i * t.columns;
      for (std::int64_t j = 0; j < t.columns; ++j) row[j] *= scale;
      if (mask) {
        const std::int64_t at = sizes.mask_at(t.b, t.h, t.first + i, t.from), step = sizes.mask_strides[3];
        if (sizes.additive)
          for (std::int64_t j = 0; j < t.columns; ++j) row[j] += reinterpret_cast<const T*>(mask)[at + j * step];
        else
          for (std::int64_t j = 0; j < t.columns; ++j)
            if (mask[at + j * step] == std::byte(0)) row[j] = unseen;
      }
      for (std::int64_t j = std::max<std::int64_t>(0, sizes.seen(t.first + i) - t.from); j < t.columns; ++j)
        row[j] = unseen;
    }
  }
  /// The keys that some query of a tile sees.
  std::int64_t last_key(const Tile& t) const { return sizes.seen(t.first + t.rows - 1); }
};

template <class T>
void exponentials(T* x, std::int64_t n) {
  const void* in[1] = {x};
  unary_op<Exp>().loops->find(dtype_of(x))->by[0](in, x, n, Attrs());
}
/// 0 in place of -inf: scores that are all -inf stay so if it is subtracted.
template <class T>
T base_of(T most) {
  return most == -std::numeric_limits<T>::infinity() ? T(0) : most;
}

template <class T>
struct Forward : Pass<T> {
  T *y, *logs;

  void tile(Tile t) const {
    const AttentionShape& s = this->sizes;
    const std::int64_t width = s.value_width;
    const Scratch<T> scores(t.rows * kTileKeys), sums(t.rows * width), part(t.rows * width);
    T most[kTileQueries], total[kTileQueries], tile_most[kTileQueries], tile_total[kTileQueries];
    std::fill_n(most, t.rows, -std::numeric_limits<T>::infinity());
    std::fill_n(total, t.rows, T(0));
    std::fill_n(sums.get(), t.rows * width, T(0));
    for (const std::int64_t end = this->last_key(t); t.from < end; t.from += kTileKeys) {
      t.columns = std::min(kTileKeys, end - t.from);
      T* p = scores.get();
      this->scores(t, p);
      reduce_loops<T>(Reduction::max).rows(p, tile_most, t.rows, t.columns);
      T shrink[kTileQueries];
      for (std::int64_t i = 0; i < t.rows; ++i) {
        const T before = most[i];
        if (!(tile_most[i] <= before)) most[i] = tile_most[i];
        const T base = base_of(most[i]);
        shrink[i] = std::exp(before - base);
        for (std::int64_t j = 0; j < t.columns; ++j) p[i * t.columns + j] -= base;
      }
      exponentials(p, t.rows * t.columns);
      reduce_loops<T>(Reduction::sum).rows(p, tile_total, t.rows, t.columns);
      devices::multiply({t.rows, width, t.columns, false, false, t.columns, s.heads * width, width}, {}, p,
                        this->value(t), part.get());
      for (std::int64_t i = 0; i < t.rows; ++i) {
        total[i] = total[i] * shrink[i] + tile_total[i];
        T* sum = sums.get() + i * width;
        for (std::int64_t c = 0; c < width; ++c) sum[c] = sum[c] * shrink[i] + part.get()[i * width + c];
      }
    }
    for (std::int64_t i = 0; i < t.rows; ++i) {
      const T by = total[i] == 0 ? T(0) : 1 / total[i];
      T* to = y + s.row(t.b, t.first + i, t.h, s.queries, width);
      for (std::int64_t c = 0; c < width; ++c) to[c] = sums.get()[i * width + c] * by;
      logs[(t.b * s.heads + t.h) * s.queries + t.first + i] = base_of(most[i]) + std::log(total[i]);
    }
  }
  void run() const {
    const AttentionShape& s = this->sizes;
    const std::int64_t tiles = (s.queries + kTileQueries - 1) / kTileQueries;
    const std::int64_t work = std::min(s.queries, kTileQueries) * s.keys * (s.width + s.value_width) + 1;
    devices::parallel_for(
        s.batch * s.heads * tiles, std::max<std::int64_t>(1, kAttentionGrain / work),
        [&](std::int64_t begin, std::int64_t end) {
          for (; begin < end; ++begin) {
            const std::int64_t head = begin / tiles, first = begin % tiles * kTileQueries;
            tile({head / s.heads, head % s.heads, first, std::min(kTileQueries, s.queries - first), 0, 0});
          }
        });
  }
};

/// A product of matrices in which zeros of one factor count as zeros, whatever they are multiplied by.
template <class T>
void multiply_nonzeros(const devices::GemmShape& p, const T* a, const T* b, T* out, Cotangent cotangent) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      T sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const T x = a[p.ta ? l * p.lda + i : i * p.lda + l], y = b[p.tb ? j * p.ldb + l : l * p.ldb + j];
        sum += cotangent == Cotangent::a ? m::mul_no_nan(x, y) : m::mul_no_nan(y, x);
      }
      out[i * p.ldo + j] = sum;
    }
}
template <class T>
bool has_nan(const T* x, std::int64_t n) {
  return std::any_of(x, x + n, [](T v) { return v != v; });
}

/// to += a part, elementwise.
template <class T>
void add(T* to, const T* part, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += part[i];
}

template <class T>
struct Backward : Pass<T> {
  const T *dy, *y, *logs;
  T *dq, *dk, *dv;

  /// A product with a cotangent. If `careful`, its zeros count as zeros (Note [Zero cotangents]).
  static void multiply(const devices::GemmShape& p, const T* a, const T* b, T* out, Cotangent cotangent, bool careful) {
    if (careful) multiply_nonzeros(p, a, b, out, cotangent);
    else devices::multiply(p, {}, a, b, out);
  }
  /// n rows of `from`, times `by`, as those of one head of a result.
  void put(const T* from, T by, T* to, std::int64_t n, std::int64_t width) const {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < width; ++c) to[i * this->sizes.heads * width + c] = from[i * width + c] * by;
  }
  /// Scratch memory for the gradients of one head.
  struct Held {
    Scratch<T> p, ds, part, dq, dk, dv;
    Held(const AttentionShape& s, std::int64_t rows)
        : p(rows * kTileKeys), ds(rows * kTileKeys), part(kTileKeys * std::max(s.width, s.value_width)),
          dq(rows * s.width), dk(s.keys * s.width), dv(s.keys * s.value_width) {}
  };
  void tile(const Tile& t, const T* inner, const Held& held, bool careful) const {
    const AttentionShape& s = this->sizes;
    const std::int64_t ld = s.heads * s.width, value_ld = s.heads * s.value_width;
    const T* cotangent = dy + s.row(t.b, t.first, t.h, s.queries, s.value_width);
    T *p = held.p.get(), *ds = held.ds.get(), *part = held.part.get();
    this->scores(t, p);
    for (std::int64_t i = 0; i < t.rows; ++i) {
      const T log = logs[(t.b * s.heads + t.h) * s.queries + t.first + i];
      // A query that has seen no key has the weights 0.
      const T base = log == -std::numeric_limits<T>::infinity() ? -log : log;
      for (std::int64_t j = 0; j < t.columns; ++j) p[i * t.columns + j] -= base;
    }
    exponentials(p, t.rows * t.columns);
    multiply({t.rows, t.columns, s.value_width, false, true, value_ld, value_ld, t.columns}, cotangent, this->value(t),
             ds, Cotangent::a, careful);
    multiply({t.columns, s.value_width, t.rows, true, false, t.columns, value_ld, s.value_width}, p, cotangent, part,
             Cotangent::b, careful);
    add(held.dv.get() + t.from * s.value_width, part, t.columns * s.value_width);
    for (std::int64_t i = 0; i < t.rows; ++i)
      for (std::int64_t j = i * t.columns; j < (i + 1) * t.columns; ++j)
        ds[j] = careful ? m::mul_no_nan(ds[j] - inner[i], p[j]) : p[j] * (ds[j] - inner[i]);
    multiply({t.rows, s.width, t.columns, false, false, t.columns, ld, s.width}, ds, this->key(t), part, Cotangent::a,
             careful);
    add(held.dq.get(), part, t.rows * s.width);
    multiply({t.columns, s.width, t.rows, true, false, t.columns, ld, s.width}, ds, this->query(t), part, Cotangent::a,
             careful);
    add(held.dk.get() + t.from * s.width, part, t.columns * s.width);
  }
  /// Puts the gradients of a head. Returns false, with some of them put, if one is NaN and not `careful`.
  bool head(std::int64_t b, std::int64_t h, const Held& held, bool careful) const {
    const AttentionShape& s = this->sizes;
    std::fill_n(held.dk.get(), s.keys * s.width, T(0));
    std::fill_n(held.dv.get(), s.keys * s.value_width, T(0));
    for (std::int64_t first = 0; first < s.queries; first += kTileQueries) {
      Tile t{b, h, first, std::min(kTileQueries, s.queries - first), 0, 0};
      T inner[kTileQueries];
      for (std::int64_t i = 0; i < t.rows; ++i) {
        const std::int64_t at = s.row(b, first + i, h, s.queries, s.value_width);
        inner[i] = 0;
        for (std::int64_t c = 0; c < s.value_width; ++c) inner[i] += m::mul_no_nan(dy[at + c], y[at + c]);
      }
      std::fill_n(held.dq.get(), t.rows * s.width, T(0));
      for (const std::int64_t end = this->last_key(t); t.from < end; t.from += kTileKeys) {
        t.columns = std::min(kTileKeys, end - t.from);
        tile(t, inner, held, careful);
      }
      if (!careful && has_nan(held.dq.get(), t.rows * s.width)) return false;
      put(held.dq.get(), scale(), dq + s.row(b, first, h, s.queries, s.width), t.rows, s.width);
    }
    if (!careful && (has_nan(held.dk.get(), s.keys * s.width) || has_nan(held.dv.get(), s.keys * s.value_width)))
      return false;
    put(held.dk.get(), scale(), dk + s.row(b, 0, h, s.keys, s.width), s.keys, s.width);
    put(held.dv.get(), T(1), dv + s.row(b, 0, h, s.keys, s.value_width), s.keys, s.value_width);
    return true;
  }
  T scale() const { return static_cast<T>(this->sizes.scale); }
  void run() const {
    const AttentionShape& s = this->sizes;
    const std::int64_t work = s.queries * s.keys * (3 * s.width + 2 * s.value_width) + 1;
    devices::parallel_for(s.batch * s.heads, std::max<std::int64_t>(1, kAttentionGrain / work),
                          [&](std::int64_t begin, std::int64_t end) {
                            const Held held(s, std::min(s.queries, kTileQueries));
                            for (; begin < end; ++begin)
                              if (const std::int64_t b = begin / s.heads, h = begin % s.heads; !head(b, h, held, false))
                                head(b, h, held, true);
                          });
  }
};

/// Calls f with a null pointer to the type that is computed in.
template <class F>
void in_wide(DType dtype, F f) {
  if (dtype == float64) f(static_cast<double*>(nullptr));
  else f(static_cast<float*>(nullptr));
}
/// The mask as it is read: numbers in the type that is computed in.
template <class T>
class MaskInput {
 public:
  MaskInput(const OpCall& call, int i, bool given) {
    if (!given) return;
    at_ = call.in[i].data;
    if (!call.spec(i).dtype.is_float()) return;
    wide_ = WideInput<T>(call, i);
    at_ = reinterpret_cast<const std::byte*>(wide_.get());
  }
  const std::byte* get() const { return at_; }

 private:
  const std::byte* at_ = nullptr;
  WideInput<T> wide_;
};

}  // namespace

void attention_kernel(const OpCall& call) {
  const auto& attrs = call.attrs.as<AttentionAttrs>();
  in_wide(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideInput<T> q(call, 0), k(call, 1), v(call, 2);
    const MaskInput<T> mask(call, 3, attrs.masked);
    const WideOutput<T> y(*call.out[0]);
    const AttentionShape s(call.spec(0), call.spec(1), call.spec(2), attrs.masked ? &call.spec(3) : nullptr, attrs);
    Forward<T>{{s, q.get(), k.get(), v.get(), mask.get()}, y.get(), call.out_as<T>(1)}.run();
    y.store();
  });
}
void attention_grad_kernel(const OpCall& call) {
  const auto& attrs = call.attrs.as<AttentionAttrs>();
  in_wide(call.spec(1).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideInput<T> dy(call, 0), q(call, 1), k(call, 2), v(call, 3), y(call, 4);
    const MaskInput<T> mask(call, 6, attrs.masked);
    const WideOutput<T> dq(*call.out[0]), dk(*call.out[1]), dv(*call.out[2]);
    const AttentionShape s(call.spec(1), call.spec(2), call.spec(3), attrs.masked ? &call.spec(6) : nullptr, attrs);
    Backward<T>{
        {s, q.get(), k.get(), v.get(), mask.get()}, dy.get(), y.get(), call.in[5].as<T>(), dq.get(), dk.get(), dv.get()}
        .run();
    dq.store();
    dk.store();
    dv.store();
  });
}

}  // namespace kassette::ops

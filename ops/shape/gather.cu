// ops/shape/gather.cu - gather by integer indices, its adjoint, one_hot, and the adjoints of repeat_elements and tile
// on CUDA.
#include <cub/device/device_radix_sort.cuh>

#include <iterator>

#include "core/rank.h"
#include "devices/cuda/faults.cuh"
#include "ops/engine/refusals.h"
#include "ops/shape/moving.cuh"
#include "ops/shape/put.h"
#include "ops/shape/shaping.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

/// The tensor that is indexed.
struct Parts : GatherSplit {
  Divider by_inner;
  Parts(const TensorSpec& x, const GatherAttrs& how)
      : GatherSplit(x, from_front(how.axis, x.rank), how.joined), by_inner(inner) {}  // the rule has checked the axis
};
/// The position of element t of a tensor of `outer` blocks of parts: element `i` of part `k` of block `o`.
struct Spot {
  std::int64_t o, k, i;
  __device__ Spot(const Parts& p, const Divider& by_parts, std::int64_t t) {
    const std::int64_t part = p.by_inner(t);
    i = t - part * p.inner;
    o = by_parts(part);
    k = part - o * by_parts.by;
  }
};

/// Indices along an axis of `size`. Those out of range are reported as faults.
template <class I>
struct Indices {
  const I* ids;
  std::int64_t size;
  bool wraps;  // negative ones count from the end
  Faults faults;
  Indices(const OpCall& call, std::int64_t size_)
      : ids(call.in[1].as<I>()), size(size_), wraps(call.attrs.as<GatherAttrs>().wrap == Wrap::negative),
        faults(device_of(call.device).faults()) {}
  /// Returns index k counted from the front, or -1 if it is out of range.
  __device__ std::int64_t operator[](std::int64_t k) const { return checked(k, ids[k]); }
  /// The same for ids[k] that was read before.
  __device__ std::int64_t checked(std::int64_t k, I id) const {
    const auto at = static_cast<std::int64_t>(id);
    if (at >= 0 && at < size) return at;
    if (wraps && at < 0 && at >= -size) return at + size;
    report(faults, wraps ? Refusal::index : Refusal::gather_index, k, at, size);
    return -1;
  }
};
/// Calls f(Indices<I>) with the integer type of input 1.
template <class F>
void with_indices(const OpCall& call, std::int64_t size, F f) {
  if (call.spec(1).dtype == int64) f(Indices<std::int64_t>(call, size));
  else f(Indices<std::int32_t>(call, size));
}

/// Writes the keys and values of a sort by index. Indices out of range get the key `size`, so that they come last.
template <class I>
__global__ void list_indices(Indices<I> indices, std::int64_t n, std::uint64_t* keys, std::int64_t* places) {
  for (std::int64_t k = Thread::first(); k < n; k += Thread::step()) {
    const std::int64_t at = indices[k];
    keys[k] = static_cast<std::uint64_t>(at < 0 ? indices.size : at);
    places[k] = k;
  }
}
template <class I>
__global__ void check_indices(Indices<I> indices, std::int64_t n) {
  for (std::int64_t k = Thread::first(); k < n; k += Thread::step()) indices[k];
}

template <class T, class I>
__global__ void gather_each(Parts p, Divider by_n, const T* x, Indices<I> indices, T* out) {
  const std::int64_t total = p.outer * by_n.by * p.inner, step = Thread::step();
  for (std::int64_t t = Thread::first(); t < total; t += kAtOnce * step) {
    std::int64_t k[kAtOnce], from[kAtOnce];
    I id[kAtOnce];
    T v[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const Spot s(p, by_n, t + u * step < total ? t + u * step : t);
      k[u] = s.k;
      from[u] = s.o * p.n * p.inner + s.i;
      id[u] = indices.ids[s.k];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const std::int64_t at = indices.checked(k[u], id[u]);
      from[u] = at < 0 ? -1 : from[u] + at * p.inner;
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) v[u] = from[u] < 0 ? T(0) : x[from[u]];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (t + u * step < total) out[t + u * step] = v[u];
  }
}
void run_gather(const OpCall& call) {
  const Parts p(call.spec(0), call.attrs.as<GatherAttrs>());
  const std::int64_t n = call.spec(1).numel(), total = call.out[0]->numel();
  if (n == 0) return;
  CudaDevice& device = device_of(call.device);
  with_indices(call, p.n, [&](const auto& indices) {
    using I = std::remove_const_t<std::remove_pointer_t<decltype(indices.ids)>>;
    if (total == 0) return launch(call.op.name, device, blocks_for(n), check_indices<I>, indices, n);
    for_size(call.out[0]->dtype.size(), [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      launch(call.op.name, device, blocks_for(ceil_div(total, kAtOnce)), gather_each<T, I>, p, Divider(n),
             call.in[0].as<T>(), indices, call.out_as<T>());
    });
  });
}

// Note [Adding back in order]
// Atomic additions happen in any order, and the rounding of a float sum depends on it. So the indices are sorted
// stably: `order` lists the positions that go to row 0, then those that go to row 1, ...; those of row r are
// order[start[r]] to order[start[r + 1] - 1]. One thread then adds all that goes to one element in the order of the
// indices: each element is written once, with the bits of the CPU.
//
// An embedding may send half of a batch to one row, that of its padding, and one thread would take long to add all of
// that. So the list is cut into pieces whose length depends only on the length of the list. A piece that belongs to a
// single row is summed beforehand, in parallel with all others, and the thread of that row adds this sum as one number.
// Bits differ from the CPU's only in rows with such a piece.

/// Sets start[r] to the position of the first of the n sorted keys that is at least r.
__global__ void find_starts(const std::uint64_t* keys, std::int64_t n, std::int64_t rows, std::int64_t* start) {
  for (std::int64_t r = Thread::first(); r <= rows; r += Thread::step()) {
    std::int64_t low = 0, high = n;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (keys[middle] < static_cast<std::uint64_t>(r)) low = middle + 1;
      else high = middle;
    }
    start[r] = low;
  }
}
/// The length of a piece: about the square root of n, so that the sum over a piece takes about as long as the sum over
/// the pieces of a row.
std::int64_t piece_of(std::int64_t n) {
  std::int64_t piece = 64;
  while (piece * piece < n) piece *= 2;
  return piece;
}
/// The parts of dy, in the order in which they are added.
template <class T>
struct Listed {
  const T* dy;
  const std::int64_t* order;
  std::int64_t n, inner;
  /// Adds an element of parts [first, last) to `sum`; `from` is its offset in the first part of its block.
  __device__ void add(Wide<T>& sum, std::int64_t from, std::int64_t first, std::int64_t last) const {
#pragma unroll 4
    for (std::int64_t k = first; k < last; ++k) sum = static_cast<Wide<T>>(sum + load(dy + from + order[k] * inner));
  }
};
/// `sums` has `outer` times `by_pieces.by` parts. Only the sums of pieces that belong to a single row are written.
template <class T>
__global__ void add_pieces(Parts p, Divider by_pieces, std::int64_t piece, Listed<T> parts, const std::uint64_t* keys,
                           Wide<T>* sums) {
  const std::int64_t total = p.outer * by_pieces.by * p.inner;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const Spot s(p, by_pieces, t);
    const std::int64_t first = s.k * piece, last = first + piece;
    if (keys[first] != keys[last - 1]) continue;
    Wide<T> sum = Wide<T>(0);
    parts.add(sum, s.o * parts.n * p.inner + s.i, first, last);
    sums[t] = sum;
  }
}
template <class T>
__global__ void add_back(Parts p, Divider by_size, std::int64_t n_pieces, Divider by_piece, Listed<T> parts,
                         const std::int64_t* start, const Wide<T>* sums, T* out) {
  const std::int64_t total = p.outer * p.n * p.inner;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const Spot s(p, by_size, t);
    const std::int64_t from = s.o * parts.n * p.inner + s.i, first = start[s.k], last = start[s.k + 1];
    // Pieces [piece, end) belong to this row alone.
    const std::int64_t piece = by_piece(first + by_piece.by - 1), end = by_piece(last);
    const bool cut = piece < end;
    Wide<T> sum = Wide<T>(0);
    parts.add(sum, from, first, cut ? piece * by_piece.by : last);
#pragma unroll 4
    for (std::int64_t j = piece; j < end; ++j)
      sum = static_cast<Wide<T>>(sum + sums[(s.o * n_pieces + j) * p.inner + s.i]);
    if (cut) parts.add(sum, from, end * by_piece.by, last);
    store(out + t, sum);
  }
}

/// `start` and `order` of Note [Adding back in order], for the indices, input 1.
class Order {
 public:
  Order(const OpCall& call, std::int64_t size)
      : device_(device_of(call.device)), n_(call.spec(1).numel()), starts_(device_, (size + 1) * 8),
        lists_(device_, 4 * n_ * 8) {
    if (n_ > 0) {
      with_indices(call, size, [&](const auto& indices) {
        using I = std::remove_const_t<std::remove_pointer_t<decltype(indices.ids)>>;
        launch(call.op.name, device_, blocks_for(n_), list_indices<I>, indices, n_, list(0), places(2));
      });
      sort(call.op.name, size);
    }
    launch(call.op.name, device_, blocks_for(size + 1), find_starts, keys(), n_, size, starts());
  }
  std::int64_t* starts() const { return static_cast<std::int64_t*>(starts_.get()); }
  const std::int64_t* order() const { return places(3); }
  /// The sorted keys: position i of order() belongs to row keys()[i].
  const std::uint64_t* keys() const { return list(1); }

 private:
  std::uint64_t* list(int i) const {
    return static_cast<std::uint64_t*>(lists_.get()) + i * n_;
  }  // keys, sorted keys, places, sorted places
  std::int64_t* places(int i) const { return static_cast<std::int64_t*>(lists_.get()) + i * n_; }
  void sort(const char* what, std::int64_t size) {
    const DeviceGuard now(device_);  // CUB launches on the current device
    int bits = 1;
    while (size >> bits) ++bits;
    auto run = [&](void* memory, std::size_t& bytes) {
      device_.check(cub::DeviceRadixSort::SortPairs(memory, bytes, static_cast<const std::uint64_t*>(list(0)), list(1),
                                                    static_cast<const std::int64_t*>(places(2)), places(3), n_, 0, bits,
                                                    device_.current().handle),
                    what);
    };
    std::size_t bytes = 0;
    run(nullptr, bytes);
    const DeviceScratch scratch(device_, static_cast<std::int64_t>(bytes));
    run(scratch.get(), bytes);
    device_.launched(what);
  }
  CudaDevice& device_;
  const std::int64_t n_;
  const DeviceScratch starts_, lists_;
};

void run_gather_grad(const OpCall& call) {
  const TensorSpec& out = *call.out[0];
  if (out.numel() == 0) return;
  const Parts p(out, call.attrs.as<GatherAttrs>());
  const Order order(call, p.n);
  CudaDevice& device = device_of(call.device);
  const std::int64_t n = call.spec(1).numel(), piece = piece_of(n), n_pieces = n / piece;
  for_dtype<Domain::anything>(out.dtype, [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    using C = Wide<T>;
    const Listed<T> parts{call.in[0].as<T>(), order.order(), n, p.inner};
    const std::int64_t n_sums = p.outer * n_pieces * p.inner;
    const DeviceScratch held(device, n_sums * static_cast<std::int64_t>(sizeof(C)));
    C* sums = static_cast<C*>(held.get());
    if (n_sums > 0)
      launch(call.op.name, device, blocks_for(n_sums), add_pieces<T>, p, Divider(n_pieces), piece, parts, order.keys(),
             sums);
    launch(call.op.name, device, blocks_for(out.numel()), add_back<T>, p, Divider(p.n), n_pieces, Divider(piece), parts,
           static_cast<const std::int64_t*>(order.starts()), static_cast<const C*>(sums), call.out_as<T>());
  });
}

// ---- values at positions --------------------------------------------------------------------------------------------
/// Each element takes all of its values in their order; half types are rounded after each, as on the CPU.
template <Put kPut, class T>
__global__ void put_each(Parts p, Divider by_size, Listed<T> parts, std::int64_t step, const std::int64_t* start,
                         const T* x, T* out) {
  const std::int64_t total = p.outer * p.n * p.inner;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const Spot s(p, by_size, t);
    const std::int64_t first = start[s.k], last = start[s.k + 1], from = s.o * parts.n * p.inner + s.i;
    T value = x[t];
    for (std::int64_t k = kPut == Put::set && last > first ? last - 1 : first; k < last; ++k) {
      const T* v = parts.dy + (from + parts.order[k] * p.inner) * step;
      if constexpr (kPut == Put::set) value = *v;
      else store(&value, put_together<kPut>(load(&value), load(v)));
    }
    out[t] = value;
  }
}
template <Put kPut>
void run_put(const OpCall& call) {
  const TensorSpec& out = *call.out[0];
  if (out.numel() == 0) return;
  const Parts p(out, call.attrs.as<GatherAttrs>());
  const Order order(call, p.n);
  for_dtype<Domain::anything>(out.dtype, [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    const Listed<T> parts{call.in[2].as<T>(), order.order(), call.spec(1).numel(), p.inner};
    launch(call.op.name, device_of(call.device), blocks_for(out.numel()), put_each<kPut, T>, p, Divider(p.n), parts,
           std::int64_t(call.spec(2).rank ? 1 : 0), static_cast<const std::int64_t*>(order.starts()),
           call.in[0].as<T>(), call.out_as<T>());
  });
}

/// `order` and `start` as above: the last position of a row is the last of its part of the list.
template <class T>
__global__ void take_last_each(Parts p, Divider by_n, const std::int64_t* positions, const std::int64_t* order,
                               const std::int64_t* start, const T* x, T* out) {
  const std::int64_t total = p.outer * by_n.by * p.inner;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const Spot s(p, by_n, t);
    const std::int64_t at = positions[s.k];
    out[t] = order[start[at + 1] - 1] == s.k ? x[(s.o * p.n + at) * p.inner + s.i] : T(0);
  }
}
void run_take_last(const OpCall& call) {
  const std::int64_t total = call.out[0]->numel(), n = call.spec(1).numel();
  if (total == 0) return;
  const Parts p(call.spec(0), call.attrs.as<GatherAttrs>());
  const Order order(call, p.n);
  for_size(call.out[0]->dtype.size(), [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    launch(call.op.name, device_of(call.device), blocks_for(total), take_last_each<T>, p, Divider(n),
           call.in[1].as<std::int64_t>(), order.order(), static_cast<const std::int64_t*>(order.starts()),
           call.in[0].as<T>(), call.out_as<T>());
  });
}

// ---- one_hot --------------------------------------------------------------------------------------------------------
template <class I>
__global__ void one_hot_each(std::int64_t n, Divider by_classes, const I* ids, float* out) {
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t k = by_classes(t);
    out[t] = static_cast<std::int64_t>(ids[k]) == t - k * by_classes.by;
  }
}
void run_one_hot(const OpCall& call) {
  const std::int64_t n = call.out[0]->numel();
  if (n == 0) return;
  for_dtype<Domain::integers>(call.spec(0).dtype, [&](auto* p) {
    using I = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(n), one_hot_each<I>, n,
           Divider(call.attrs.as<OneHotAttrs>().classes), call.in[0].as<I>(), call.out_as<float>());
  });
}

// ---- adjoints of repeat_elements and tile: sums over the copies, in their order -------------------------------------
template <class T>
__global__ void sum_each(AxesLayout kept, AxesLayout copies, const T* from, T* out) {
  using C = std::conditional_t<std::is_same_v<T, bool>, int, Wide<T>>;
  for (std::int64_t t = Thread::first(); t < kept.n; t += Thread::step()) {
    const std::int64_t at = kept[t];
    C sum = C(0);
#pragma unroll 4
    for (std::int64_t c = 0; c < copies.n; ++c) sum = static_cast<C>(sum + load(from + at + copies[c]));
    store(out + t, sum);
  }
}

}  // namespace

void sum_copies(const OpCall& call, const Strided& kept, const Strided& copies) {
  const TensorSpec& out = *call.out[0];
  AxesLayout of_kept, of_copies;
  for (int d = 0; d < kept.rank; ++d) of_kept.push(kept.dims[d], kept.from[d]);
  for (int d = 0; d < copies.rank; ++d) of_copies.push(copies.dims[d], copies.from[d]);
  for_dtype<Domain::anything>(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(out.numel()), sum_each<T>, of_kept, of_copies,
           call.in[0].as<T>(), call.out_as<T>());
  });
}

namespace {
const PluginKernel kernels[] = {
    {"gather", run_gather},           {"gather_grad_like", run_gather_grad}, {"one_hot", run_one_hot},
    {"index_set", run_put<Put::set>}, {"index_add", run_put<Put::add>},      {"index_multiply", run_put<Put::multiply>},
    {"index_min", run_put<Put::min>}, {"index_max", run_put<Put::max>},      {"take_last", run_take_last}};
}  // namespace

Kernels gather_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

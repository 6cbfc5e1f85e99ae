// ops/order/order.cu - sorts, the largest elements, places along an axis and search on CUDA.
#include <cub/device/device_radix_sort.cuh>

#include <iterator>
#include <utility>

#include "core/rank.h"
#include "devices/cuda/faults.cuh"
#include "ops/engine/refusals.h"
#include "ops/engine/teams.cuh"
#include "ops/order/keys.h"
#include "ops/order/order.h"
#include "ops/shape/moving.cuh"

namespace kassette::cuda {
namespace {

// Note [Sorts on CUDA]
// All rows are sorted at once, by one key: the number of the row above the key of the element. If both together have
// more than 64 bits, a first sort is by the key of the element and a second one by the row. CUB's radix sort is stable,
// so the result is that of the CPU.

/// Element t of (outer, n, inner) is element `place` of row `row`.
struct Rows {
  std::int64_t n, inner;
  Divider by_n, by_inner;
  explicit Rows(const AxisSplit& s) : n(s.n), inner(s.inner), by_n(s.n), by_inner(s.inner) {}
  struct Spot {
    std::int64_t row, place;
  };
  __device__ Spot operator()(std::int64_t t) const {
    const std::int64_t part = by_inner(t), o = by_n(part);
    return {o * inner + (t - part * inner), part - o * n};
  }
  /// The element of a row's place in a tensor of `size` places.
  __device__ std::int64_t element(std::int64_t row, std::int64_t place, std::int64_t size) const {
    const std::int64_t o = by_inner(row);
    return (o * size + place) * inner + (row - o * inner);
  }
};

template <class U>
__global__ void list_keys(Rows rows, SortKeys<U> keys, const U* x, std::int64_t total, int row_shift, std::uint64_t* to,
                          std::int64_t* elements) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const auto row = row_shift < 64 ? static_cast<std::uint64_t>(rows(t).row) << row_shift : 0;
    to[t] = row | static_cast<std::uint64_t>(keys(x[t]));
    elements[t] = t;
  }
}
__global__ void list_rows(Rows rows, const std::int64_t* elements, std::int64_t total, std::uint64_t* to) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step())
    to[t] = static_cast<std::uint64_t>(rows(elements[t]).row);
}

/// The elements of a tensor sorted by row and key.
class Sorted {
 public:
  Sorted(const OpCall& call, const AxisSplit& s, bool descending)
      : call_(call), device_(device_of(call.device)), total_(call.spec(0).numel()), lists_(device_, 4 * total_ * 8) {
    const TensorSpec& x = call.spec(0);
    const Rows rows(s);
    const int bits = 8 * x.dtype.size();
    int row_bits = 0;
    while ((s.outer * s.inner - 1) >> row_bits) ++row_bits;
    const bool once = bits + row_bits <= 64;
    for_size(x.dtype.size(), [&](auto* p) {
      using U = std::make_unsigned_t<std::remove_pointer_t<decltype(p)>>;
      launch(call.op.name, device_, blocks_for(total_), list_keys<U>, rows, ops::sort_keys<U>(x.dtype, descending),
             call.in[0].as<U>(), total_, once ? bits : 64, keys(0), elements(2));
    });
    sort(2, 3, once ? bits + row_bits : bits);
    if (once) return;
    launch(call.op.name, device_, blocks_for(total_), list_rows, rows, static_cast<const std::int64_t*>(elements(3)),
           total_, keys(0));
    sort(3, 2, row_bits);
    order_ = 2;
  }
  const std::int64_t* order() const { return elements(order_); }

 private:
  std::uint64_t* keys(int i) const { return static_cast<std::uint64_t*>(lists_.get()) + i * total_; }
  std::int64_t* elements(int i) const { return static_cast<std::int64_t*>(lists_.get()) + i * total_; }
  void sort(int from, int to, int bits) {
    const DeviceGuard now(device_);  // CUB launches on the current device
    auto run = [&](void* memory, std::size_t& bytes) {
      device_.check(cub::DeviceRadixSort::SortPairs(memory, bytes, static_cast<const std::uint64_t*>(keys(0)), keys(1),
                                                    static_cast<const std::int64_t*>(elements(from)), elements(to),
                                                    total_, 0, bits, device_.current().handle),
                    call_.op.name);
    };
    std::size_t bytes = 0;
    run(nullptr, bytes);
    const DeviceScratch scratch(device_, static_cast<std::int64_t>(bytes));
    run(scratch.get(), bytes);
    device_.launched(call_.op.name);
  }
  const OpCall& call_;
  CudaDevice& device_;
  const std::int64_t total_;
  const DeviceScratch lists_;  // keys, sorted keys, elements, sorted elements
  int order_ = 3;
};

/// Writes the elements at the first k places of each row, or their places in it.
template <class T>
__global__ void write_values(Rows rows, const std::int64_t* order, std::int64_t total, const T* x, T* out) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const std::int64_t row = rows.by_n(t);
    out[rows.element(row, t - row * rows.n, rows.n)] = x[order[t]];
  }
}
__global__ void write_places(Rows rows, const std::int64_t* order, std::int64_t total, Divider by_k,
                             std::int64_t* out) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const std::int64_t row = by_k(t), rank = t - row * by_k.by;
    out[rows.element(row, rank, by_k.by)] = rows(order[row * rows.n + rank]).place;
  }
}

void run_sort(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  const auto& attrs = call.attrs.as<SortAttrs>();
  const AxisSplit s(x, from_front(attrs.axis, x.rank));
  const Sorted sorted(call, s, attrs.descending);
  for_size(x.dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(x.numel()), write_values<T>, Rows(s), sorted.order(),
           x.numel(), call.in[0].as<T>(), call.out_as<T>());
  });
}
void run_places(const OpCall& call, std::int64_t given_axis, std::int64_t k, bool descending) {
  const TensorSpec& x = call.spec(0);
  const std::int64_t total = call.out[0]->numel();
  if (total == 0) return;
  const AxisSplit s(x, from_front(given_axis, x.rank));
  const Sorted sorted(call, s, descending);
  launch(call.op.name, device_of(call.device), blocks_for(total), write_places, Rows(s), sorted.order(), total,
         Divider(k < 0 ? s.n : k), call.out_as<std::int64_t>());
}
void run_argsort(const OpCall& call) {
  const auto& attrs = call.attrs.as<SortAttrs>();
  run_places(call, attrs.axis, /*k=*/-1, attrs.descending);
}
void run_top_k(const OpCall& call) {
  const auto& attrs = call.attrs.as<TopKAttrs>();
  run_places(call, attrs.axis, attrs.k, /*descending=*/true);
}

// ---- places ---------------------------------------------------------------------------------------------------------
template <class T>
__global__ void take_each(Rows few, std::int64_t size, const std::int64_t* places, std::int64_t total, const T* x,
                          T* out) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step())
    out[t] = x[few.element(few(t).row, places[t], size)];
}
template <class T>
__global__ void put_each(Rows few, std::int64_t size, const std::int64_t* places, std::int64_t total, const T* x,
                         T* out) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step())
    out[few.element(few(t).row, places[t], size)] = x[t];
}
template <bool kPut>
void run_at_places(const OpCall& call) {
  const TensorSpec &places = call.spec(1), &whole = kPut ? *call.out[0] : call.spec(0);
  const std::int64_t total = places.numel();
  if (kPut && total != whole.numel())  // places differ: as many as there are elements reach all of them
    fill(device_of(call.device), call.out[0]->data(), whole.numel(), /*bits=*/0, whole.dtype.size());
  if (total == 0) return;
  const int axis = from_front(call.attrs.as<AxisAttrs>().axis, places.rank);
  const AxisSplit few(places, axis);
  for_size(whole.dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(total), kPut ? put_each<T> : take_each<T>, Rows(few),
           whole.dims[axis], call.in[1].as<std::int64_t>(), total, call.in[0].as<T>(), call.out_as<T>());
  });
}

/// Indices out of range are reported, and give 0.
__global__ void flatten_each(Rows few, std::int64_t size, const std::int64_t* indices, std::int64_t total,
                             Faults faults, std::int64_t* out) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const std::int64_t given = indices[t], place = given < 0 ? given + size : given;
    const bool there = place >= 0 && place < size;
    if (!there) report(faults, Refusal::index, t, given, size);
    out[t] = there ? few.element(few(t).row, place, size) : 0;
  }
}
void run_flat_places(const OpCall& call) {
  const TensorSpec &indices = call.spec(0), &x = call.spec(1);
  if (indices.numel() == 0) return;
  const int axis = from_front(call.attrs.as<AxisAttrs>().axis, indices.rank);
  CudaDevice& device = device_of(call.device);
  launch(call.op.name, device, blocks_for(indices.numel()), flatten_each, Rows(AxisSplit(indices, axis)), x.dims[axis],
         call.in[0].as<std::int64_t>(), indices.numel(), device.faults(), call.out_as<std::int64_t>());
}

// ---- searchsorted ---------------------------------------------------------------------------------------------------
template <class U>
__global__ void search_each(SortKeys<U> keys, bool right, const U* a, std::int64_t n, Divider by_row, const U* v,
                            std::int64_t total, std::int64_t* out) {
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const U* row = a + by_row(t) * n;
    const U value = keys(v[t]);
    std::int64_t low = 0, high = n;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      const U key = keys(row[middle]);
      if (right ? key <= value : key < value) low = middle + 1;
      else high = middle;
    }
    out[t] = low;
  }
}
void run_search(const OpCall& call) {
  const TensorSpec &a = call.spec(0), &v = call.spec(1);
  if (v.numel() == 0) return;
  for_size(a.dtype.size(), [&](auto* p) {
    using U = std::make_unsigned_t<std::remove_pointer_t<decltype(p)>>;
    launch(call.op.name, device_of(call.device), blocks_for(v.numel()), search_each<U>,
           ops::sort_keys<U>(a.dtype, /*descending=*/false), call.attrs.as<SearchAttrs>().right, call.in[0].as<U>(),
           a.dims[a.rank - 1], Divider(a.rank == 1 ? v.numel() : v.dims[v.rank - 1]), call.in[1].as<U>(), v.numel(),
           call.out_as<std::int64_t>());
  });
}

const PluginKernel kernels[] = {{"sort", run_sort},
                                {"argsort", run_argsort},
                                {"top_k", run_top_k},
                                {"take_places", run_at_places<false>},
                                {"put_places_like", run_at_places<true>},
                                {"flat_places", run_flat_places},
                                {"searchsorted", run_search}};

}  // namespace

Kernels order_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

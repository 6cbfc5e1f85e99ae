// ops/gather.cu - selecting along an axis by integers, adding back, one_hot, and the adjoints of repeat_elements and tile on CUDA.
#include <iterator>

#include "core/rank.h"
#include "ops/ids.cuh"
#include "ops/teams.cuh"

namespace kassette::cuda {
namespace {

/// `outer` times `size` parts of `inner` elements, as in gather.cpp.
struct Parts {
  std::int64_t outer = 1, size, inner = 1;
  Parts(const Spec& x, std::int64_t raw_axis) {
    const int axis = from_front(raw_axis, x.rank);   // the rule has looked at it
    for (int i = 0; i < axis; ++i) outer *= x.dims[i];
    size = x.dims[axis];
    for (int i = axis + 1; i < x.rank; ++i) inner *= x.dims[i];
  }
};

/// Input 1 in memory of the device, as int64 counted from the front; attrs.b: whether negative ones do so from the end.
std::vector<std::int64_t> checked_ids(const Call& call, std::int64_t size) {
  std::vector<std::int64_t> ids = read_ids(call, 1);
  const bool wraps = call.attrs.b != 0;
  for (std::int64_t& at : ids) {
    if (at < (wraps ? -size : 0) || at >= size)
      fail<ValueError>(wraps ? "index" : "gather", ": index ", at, " is out of range for an axis of size ", size);
    if (at < 0) at += size;
  }
  return ids;
}

template <class T, class I>
__global__ void gather_each(Parts p, std::int64_t n, const T* x, const I* ids, T* out) {
  const std::int64_t total = p.outer * n * p.inner;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const std::int64_t part = t / p.inner, i = t - part * p.inner, o = part / n;
    std::int64_t at = static_cast<std::int64_t>(ids[part - o * n]);
    if (at < 0) at += p.size;
    out[t] = x[(o * p.size + at) * p.inner + i];
  }
}
void run_gather(const Call& call) {
  const Parts p(call.spec(0), call.attrs.a);
  const std::int64_t n = call.spec(1).numel();
  checked_ids(call, p.size);
  if (call.out[0]->numel() == 0) return;
  for_size(call.out[0]->dtype.size(), [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    auto with = [&](auto* ids) {
      using I = std::remove_const_t<std::remove_pointer_t<decltype(ids)>>;
      launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), gather_each<T, I>, p, n, call.in[0].as<T>(), ids, call.out_as<T>());
    };
    if (call.spec(1).dtype == int64) with(call.in[1].as<std::int64_t>());
    else with(call.in[1].as<std::int32_t>());
  });
}

// Note [Adding back in order]
// Atomic additions come in any order, and floats depend on it. So the host, which has to look at the indices anyway, sorts them
// stably: `order` lists the positions that go to row 0, those that go to row 1, ..., and row r's are start[r] to start[r + 1]. A
// thread then adds what goes to one element in the order of the indices: the same bits as on the CPU, and each element is written
// once.
template <class T>
__global__ void add_back(Parts p, std::int64_t n, const T* dy, const std::int64_t* start, const std::int64_t* order, T* out) {
  const std::int64_t total = p.outer * p.size * p.inner;
  for (std::int64_t t = Thread::first(); t < total; t += Thread::step()) {
    const std::int64_t part = t / p.inner, i = t - part * p.inner, o = part / p.size, row = part - o * p.size;
    Wide<T> sum = Wide<T>(0);
    for (std::int64_t k = start[row]; k < start[row + 1]; ++k) sum = static_cast<Wide<T>>(sum + load(dy + (o * n + order[k]) * p.inner + i));
    store(out + t, sum);
  }
}
void run_gather_grad(const Call& call) {
  const Spec& out = *call.out[0];
  const Parts p(out, call.attrs.a);
  const std::vector<std::int64_t> ids = checked_ids(call, p.size);
  if (out.numel() == 0) return;
  const auto n = static_cast<std::int64_t>(ids.size());
  std::vector<std::int64_t> table(static_cast<std::size_t>(p.size + 1 + n)), next(static_cast<std::size_t>(p.size + 1));
  for (std::int64_t at : ids) ++table[static_cast<std::size_t>(at + 1)];
  for (std::int64_t r = 0; r < p.size; ++r) table[static_cast<std::size_t>(r + 1)] += table[static_cast<std::size_t>(r)];
  std::copy_n(table.begin(), p.size + 1, next.begin());
  for (std::int64_t k = 0; k < n; ++k) table[static_cast<std::size_t>(p.size + 1 + next[static_cast<std::size_t>(ids[static_cast<std::size_t>(k)])]++)] = k;
  CudaBackend& device = device_of(call.device);
  Scratch held(device, static_cast<std::int64_t>(table.size()) * 8);
  device.copy_from_host(held.get(), table.data(), static_cast<std::int64_t>(table.size()) * 8);
  const auto* start = static_cast<const std::int64_t*>(held.get());
  for_dtype<Domain::anything>(out.dtype, [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    launch(call.op.name, device, blocks_for(out.numel()), add_back<T>, p, n, call.in[0].as<T>(), start, start + p.size + 1, call.out_as<T>());
  });
}

// ---- one_hot -----------------------------------------------------------------------------------------------------------
template <class I>
__global__ void one_hot_each(std::int64_t n, std::int64_t classes, const I* ids, float* out) {
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) out[t] = static_cast<std::int64_t>(ids[t / classes]) == t % classes;
}
void run_one_hot(const Call& call) {
  const std::int64_t n = call.out[0]->numel();
  if (n == 0) return;
  for_dtype<Domain::integers>(call.spec(0).dtype, [&](auto* p) {
    using I = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(n), one_hot_each<I>, n, call.attrs.a, call.in[0].as<I>(), call.out_as<float>());
  });
}

// ---- adjoints of repeat_elements and tile: sums over the copies, in their order ---------------------------------------------
template <class T>
__global__ void sum_each(Strided kept, Strided copies, std::int64_t n, std::int64_t n_copies, const T* from, T* out) {
  using C = std::conditional_t<std::is_same_v<T, bool>, int, Wide<T>>;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    std::int64_t at = 0, rest = t;
    for (int d = kept.rank - 1; d >= 0; --d) {
      at += rest % kept.dims[d] * kept.from[d];
      rest /= kept.dims[d];
    }
    C sum = C(0);
    for (std::int64_t c = 0; c < n_copies; ++c) {
      std::int64_t offset = at;
      rest = c;
      for (int d = copies.rank - 1; d >= 0; --d) {
        offset += rest % copies.dims[d] * copies.from[d];
        rest /= copies.dims[d];
      }
      sum = static_cast<C>(sum + load(from + offset));
    }
    store(out + t, sum);
  }
}

}  // namespace

void sum_copies(const Call& call, const Strided& kept, const Strided& copies) {
  const Spec& out = *call.out[0];
  std::int64_t n_copies = 1;
  for (int d = 0; d < copies.rank; ++d) n_copies *= copies.dims[d];
  for_dtype<Domain::anything>(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(out.numel()), sum_each<T>, kept, copies, out.numel(), n_copies, call.in[0].as<T>(),
           call.out_as<T>());
  });
}

namespace {
const PluginKernel kernels[] = {{"gather", run_gather}, {"gather_grad_like", run_gather_grad}, {"one_hot", run_one_hot}};
}  // namespace

Kernels gather_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

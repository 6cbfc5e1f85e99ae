// ops/reduce/scan.cu - running sums, products and recurrences on CUDA. Note [Scans] in scan.cpp defines them.
#include <iterator>
#include <utility>

#include "ops/engine/packs.cuh"
#include "ops/reduce/scan_attrs.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

/// The type of a running value: double for floats, so that each element of a float32 result rounds once; integers wrap.
template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class R>
__device__ R shuffle_up(R v, int by) {
  return static_cast<R>(__shfl_up_sync(~0u, v, static_cast<unsigned>(by)));
}

// Note [Scans on CUDA]
// Each element is a step, a function of the running value, and steps compose. If there are few groups, each is cut into
// parts, depending on the shape alone. One launch composes the steps of each part; a second one scans the parts, each
// starting from the composed steps of the parts before it. That is two reads and a write. A scan with look-back between
// blocks needs one read, but the order of its sums, and so the bits, would depend on the order in which blocks finish.
// An op has start(), the value before the first element; the step of an element, of(x, here) where that depends on one
// element of its input x, else step(here, before) (before < 0 for the first one); none(), the identity; after(p, q),
// the step that applies p, then q; apply(step, value); out(value before, value), the element of its result y.

/// Returns the composed steps of the block's threads before this one; sets `all` to those of the whole block.
template <class Op, class S>
__device__ S scan_block(S v, S& all) {
  __shared__ S of_warp[kThreads / kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
  for (int by = 1; by < kWarp; by *= 2) {
    const S before = shuffle_up(v, by);
    if (lane >= by) v = Op::after(before, v);
  }
  S before = shuffle_up(v, 1);
  if (lane == 0) before = Op::none();
  __syncthreads();  // all threads have read the values of the last scan
  if (lane == kWarp - 1) of_warp[warp] = v;
  __syncthreads();
  all = Op::none();
#pragma unroll
  for (int i = 0; i < kThreads / kWarp; ++i) {
    if (i == warp) before = Op::after(all, before);
    all = Op::after(all, of_warp[i]);
  }
  return before;
}

constexpr int kItems = 4;  // adjacent elements that a thread of a block processes at a time

/// Members [begin, end) of a group, in the order of the scan.
struct Stretch {
  std::int64_t at, begin, end;
  bool reverse;
  bool packed;  // every kItems of them are a pack
  __device__ std::int64_t place(const AxesLayout& along, std::int64_t i) const {
    return at + along[reverse ? along.n - 1 - i : i];
  }
  /// Where the pack of members [i, i + kItems) is.
  __device__ std::int64_t pack(const AxesLayout& along, std::int64_t i) const {
    return at + (reverse ? along.n - kItems - i : i);
  }
};
template <class Op>
constexpr bool kOneInput = requires(Op op) {
  op.x;
};
template <class Op>
__device__ auto step_of(const Op& op, const Stretch& m, const AxesLayout& along, std::int64_t i) {
  const std::int64_t here = m.place(along, i);
  if constexpr (kOneInput<Op>) return op.of(op.x[here], here);
  else return op.step(here, i == 0 ? -1 : m.place(along, i - 1));
}

/// For a single thread: compose() returns the composed steps, write_values() writes the values that start from s.
template <class Op, class S>
__device__ S compose(Thread, const Op& op, const Stretch& m, const AxesLayout& along) {
  S all = Op::none();
#pragma unroll 4
  for (std::int64_t i = m.begin; i < m.end; ++i) all = Op::after(all, step_of(op, m, along, i));
  return all;
}
template <class Op, class R>
__device__ void write_values(Thread, const Op& op, const Stretch& m, const AxesLayout& along, R s) {
  constexpr int kAhead = 8;  // elements that are read before the first is stored, past which a load is not moved
  for (std::int64_t first = m.begin; first < m.end; first += kAhead) {
    decltype(Op::none()) steps[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) steps[k] = first + k < m.end ? step_of(op, m, along, first + k) : Op::none();
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (first + k >= m.end) continue;
      const R next = Op::apply(steps[k], s);
      store(op.y + m.place(along, first + k), op.out(s, next));
      s = next;
    }
  }
}
/// The same for a block.
template <class Op, class S>
__device__ S items_of(const Op& op, const Stretch& m, const AxesLayout& along, std::int64_t first, S (&steps)[kItems]) {
  S mine = Op::none();
  auto one_by_one = [&] {
#pragma unroll
    for (int k = 0; k < kItems; ++k) steps[k] = first + k < m.end ? step_of(op, m, along, first + k) : Op::none();
  };
  if constexpr (kOneInput<Op>) {
    if (m.packed && first + kItems <= m.end) {
      const std::int64_t at = m.pack(along, first);
      const auto pack = *reinterpret_cast<const Packed<typename Op::T, kItems>*>(op.x + at);
#pragma unroll
      for (int k = 0; k < kItems; ++k)
        steps[k] = m.reverse ? op.of(pack.v[kItems - 1 - k], at + kItems - 1 - k) : op.of(pack.v[k], at + k);
    } else {
      one_by_one();
    }
  } else {
    one_by_one();
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) mine = Op::after(mine, steps[k]);
  return mine;
}
template <class Op, class S>
__device__ S compose(Block, const Op& op, const Stretch& m, const AxesLayout& along) {
  S made = Op::none();
  for (std::int64_t first = m.begin; first < m.end; first += kThreads * kItems) {
    S steps[kItems], all;
    scan_block<Op>(items_of(op, m, along, first + threadIdx.x * kItems, steps), all);
    made = Op::after(made, all);
  }
  return made;
}
template <class Op, class R>
__device__ void write_values(Block, const Op& op, const Stretch& m, const AxesLayout& along, R s) {
  using S = decltype(Op::none());
  for (std::int64_t first = m.begin; first < m.end; first += kThreads * kItems) {
    S steps[kItems], all;
    const std::int64_t mine = first + threadIdx.x * kItems;
    R value = Op::apply(scan_block<Op>(items_of(op, m, along, mine, steps), all), s);
    Packed<std::remove_pointer_t<decltype(op.y)>, kItems> out;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const R next = Op::apply(steps[k], value);
      store(&out.v[k], op.out(value, next));
      value = next;
    }
    if (m.packed && mine + kItems <= m.end) {
      auto in_order = out;
#pragma unroll
      for (int k = 0; k < kItems; ++k) in_order.v[k] = m.reverse ? out.v[kItems - 1 - k] : out.v[k];
      *reinterpret_cast<decltype(out)*>(op.y + m.pack(along, mine)) = in_order;
    } else {
#pragma unroll
      for (int k = 0; k < kItems; ++k)
        if (mine + k < m.end) op.y[m.place(along, mine + k)] = out.v[k];
    }
    s = Op::apply(all, s);
  }
}
/// The running value at the beginning of this part: the steps of the parts before it, applied to the start.
template <class Op, class S>
__device__ auto carry(Thread, const Op& op, const S* steps, std::int64_t next) {
  typename Op::R s = op.start();
#pragma unroll 4
  for (unsigned p = 0; p < blockIdx.y; ++p) s = Op::apply(steps[p * next], s);
  return s;
}
template <class Op, class S>
__device__ auto carry(Block, const Op& op, const S* steps, std::int64_t next) {
  const unsigned each = (blockIdx.y + kThreads - 1) / kThreads, first = threadIdx.x * each;
  S mine = Op::none(), all;
  for (unsigned p = first; p < first + each && p < blockIdx.y; ++p) mine = Op::after(mine, steps[p * next]);
  scan_block<Op>(mine, all);
  return Op::apply(all, op.start());
}

/// Each team composes or scans part blockIdx.y of a group.
template <class Team, bool kWrites, class Op, class S>
__global__ void __launch_bounds__(kThreads)
    scan_parts(Groups g, Op op, bool reverse, bool packed, S* steps, std::int64_t length) {
  const std::int64_t begin = blockIdx.y * length, end = begin + length < g.along.n ? begin + length : g.along.n;
  for (std::int64_t o = Team::first(); o < g.kept.n; o += Team::step()) {
    const Stretch m{g.kept[o], begin, end, reverse, packed};
    if constexpr (kWrites) {
      write_values(Team(), op, m, g.along, carry(Team(), op, steps + o, g.kept.n));
    } else {
      const S all = compose<Op, S>(Team(), op, m, g.along);
      if (Team::lane() == 0) steps[blockIdx.y * g.kept.n + o] = all;
    }
  }
}

template <class E>
struct CumSum {
  using T = E;
  using R = Running<T>;
  const T* x;
  T* y;
  bool shifted;
  __device__ static R none() { return R(0); }
  __device__ static R after(R p, R q) { return p + q; }
  __device__ static R apply(R step, R s) { return s + step; }
  __device__ R start() const { return R(0); }
  __device__ R of(const T& v, std::int64_t) const { return static_cast<R>(load(&v)); }
  __device__ R out(R, R s) const { return s; }
};
template <class E>
struct CumProd {
  using T = E;
  using R = Running<T>;
  const T* x;
  T* y;
  bool shifted;
  __device__ static R none() { return R(1); }
  __device__ static R after(R p, R q) { return p * q; }
  __device__ static R apply(R step, R s) { return s * step; }
  __device__ R start() const { return R(1); }
  __device__ R of(const T& v, std::int64_t) const { return static_cast<R>(load(&v)); }
  __device__ R out(R before, R s) const { return shifted ? before : s; }
};

/// The step s -> a * s + b. If a is 0 the result is b even if s is not finite: so the first element of a group starts
/// it. If s is 0 it is b even if a is not finite. after(none(), q) is q even if q.a is infinite: inf * 0 is not
/// computed.
template <class R>
struct Affine {
  R a, b;
};
template <class R>
__device__ Affine<R> shuffle_up(Affine<R> v, int by) {
  return {shuffle_up(v.a, by), shuffle_up(v.b, by)};
}
template <class T>
struct Recurrence {
  using R = Running<T>;
  using S = Affine<R>;
  const T *a, *b;
  T* y;
  bool shifted;
  __device__ static S none() { return {R(1), R(0)}; }
  __device__ static S after(S p, S q) {
    return {p.a == R(0) || q.a == R(0) ? R(0) : q.a * p.a, q.a == R(0) || p.b == R(0) ? q.b : q.a * p.b + q.b};
  }
  __device__ static R apply(S step, R s) { return step.a == R(0) || s == R(0) ? step.b : step.b + step.a * s; }
  __device__ R start() const { return R(0); }
  __device__ S step(std::int64_t here, std::int64_t before) const {
    return {before < 0 ? R(0) : static_cast<R>(load(a + (shifted ? before : here))), static_cast<R>(load(b + here))};
  }
  __device__ R out(R, R s) const { return s; }
};

/// The extreme of some elements and the first place of it; at < 0: of none.
template <class V>
struct ExtremeAt {
  V value;
  std::int64_t at;
};
template <class V>
__device__ ExtremeAt<V> shuffle_up(ExtremeAt<V> v, int by) {
  return {shuffle_up(v.value, by), shuffle_up(v.at, by)};
}
template <class E, bool kMax>
struct Extremes {
  using T = E;
  using V = Wide<T>;
  using S = ExtremeAt<V>;
  using R = S;
  const T* x;
  std::int64_t* y;
  __device__ static S none() { return {V(0), -1}; }
  __device__ static S after(S p, S q) {
    if (p.at < 0 || q.at < 0) return p.at < 0 ? q : p;
    const bool larger = p.value == p.value && ((kMax ? q.value > p.value : q.value < p.value) || q.value != q.value);
    return larger ? q : p;
  }
  __device__ static S apply(S step, S s) { return after(s, step); }
  __device__ S start() const { return none(); }
  __device__ S of(const T& v, std::int64_t here) const { return {load(&v), here}; }
  __device__ std::int64_t out(S, S s) const { return s.at; }
};

/// True if packs of kItems are aligned in the arrays of an op.
template <class Op>
bool packs_for(const Op& op) {
  auto aligned = [](auto* p) {
    return reinterpret_cast<std::uintptr_t>(p) % alignof(Packed<std::remove_pointer_t<decltype(p)>, kItems>) == 0;
  };
  if constexpr (kOneInput<Op>) return aligned(op.x) && aligned(op.y);
  else return aligned(op.y);
}

template <class Op>
void launch_scan(const OpCall& call, Op op) {
  using S = decltype(Op::none());
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  const Groups g(x, call.attrs.as<ScanAttrs>().axes.mask(x.rank));
  const bool reverse = call.attrs.as<ScanAttrs>().reverse;
  CudaDevice& device = device_of(call.device);
  with_team(g, [&](auto team) {
    using Team = decltype(team);
    constexpr bool kAlone = Team::kSize == 1;
    constexpr std::int64_t kBusy = kAlone ? 512 : 2048, kMost = 1024, kLeast = kAlone ? 64 : 4 * kThreads * kItems;
    const std::int64_t blocks = ceil_div(g.kept.n * Team::kSize, kThreads);
    const auto most = std::clamp<std::int64_t>(std::min(kBusy / blocks, g.along.n / kLeast), 1, kMost),
               length = ceil_div(ceil_div(g.along.n, most), kItems) * kItems, parts = ceil_div(g.along.n, length);
    const bool packed = g.along.rank == 1 && g.along.dense() &&
                        (g.along.n % kItems == 0 || (g.kept.n == 1 && !reverse)) && packs_for(op);
    DeviceScratch held(device, (parts - 1) * g.kept.n * static_cast<std::int64_t>(sizeof(S)));
    S* steps = static_cast<S*>(held.get());
    if (parts > 1)
      launch(call.op.name, device, dim3(blocks_of<Team>(g), static_cast<unsigned>(parts - 1)),
             scan_parts<Team, false, Op, S>, g, op, reverse, packed, steps, length);
    launch(call.op.name, device, dim3(blocks_of<Team>(g), static_cast<unsigned>(parts)), scan_parts<Team, true, Op, S>,
           g, op, reverse, packed, steps, length);
  });
}
template <template <class> class Op>
void run(const OpCall& call) {
  for_dtype<Domain::numbers>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_scan(call, Op<T>{call.in[0].as<T>(), call.out_as<T>(), call.attrs.as<ScanAttrs>().shifted});
  });
}
void run_recurrence(const OpCall& call) {
  for_dtype<Domain::numbers>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_scan(call, Recurrence<T>{call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>(),
                                    call.attrs.as<ScanAttrs>().shifted});
  });
}

template <bool kMax>
void run_extremes(const OpCall& call) {
  for_dtype<Domain::numbers>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_scan(call, Extremes<T, kMax>{call.in[0].as<T>(), call.out_as<std::int64_t>()});
  });
}

/// Writes the element before each, 0 for the first. There is no running value, so all elements are independent.
template <class T>
__global__ void shift_each(Groups g, Divider by, bool reverse, const T* x, T* y) {
  const std::int64_t n = g.kept.n * g.along.n;
  const bool rows = g.along.dense();  // adjacent elements are members of the same group
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t outer = by(t), inner = t - outer * by.by;
    const std::int64_t o = rows ? outer : inner, i = rows ? inner : outer, before = reverse ? i + 1 : i - 1;
    const std::int64_t at = g.kept[o];
    y[at + g.along[i]] = before < 0 || before >= g.along.n ? T{} : x[at + g.along[before]];
  }
}
void run_shift(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  for_size(x.dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Groups g(x, call.attrs.as<ScanAttrs>().axes.mask(x.rank));
    launch(call.op.name, device_of(call.device), blocks_for(x.numel()), shift_each<T>, g,
           Divider(g.along.dense() ? g.along.n : g.kept.n), call.attrs.as<ScanAttrs>().reverse, call.in[0].as<T>(),
           call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"cumsum", run<CumSum>},
                                {"cumprod", run<CumProd>},
                                {"recurrence", run_recurrence},
                                {"shift", run_shift},
                                {"cummax_places", run_extremes<true>},
                                {"cummin_places", run_extremes<false>}};

}  // namespace

Kernels scan_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

// ops/scan.cu - running sums, products and recurrences on CUDA. What they mean: Note [Scans] in scan.cpp.
#include <iterator>
#include <utility>

#include "ops/teams.cuh"

namespace kassette::cuda {
namespace {

constexpr std::int64_t kReverse = 1, kShifted = 2;   // attrs.b, as in scan.cpp

/// What a running value is kept in: double for floats, so that float32 rounds once an element; integers wrap.
template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class R>
__device__ R shuffle_up(R v, int by) {
  return static_cast<R>(__shfl_up_sync(~0u, v, static_cast<unsigned>(by)));
}

/// All steps of the block's threads up to each; `all` is those of the whole block.
template <class Op, class S>
__device__ S scan_block(S v, S& all) {
  __shared__ S of_warp[kThreads / kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int by = 1; by < kWarp; by *= 2) {
    const S before = shuffle_up(v, by);
    if (lane >= by) v = Op::after(before, v);
  }
  __syncthreads();
  if (lane == kWarp - 1) of_warp[warp] = v;
  __syncthreads();
  for (int i = warp - 1; i >= 0; --i) v = Op::after(of_warp[i], v);
  all = of_warp[0];
  for (int i = 1; i < kThreads / kWarp; ++i) all = Op::after(all, of_warp[i]);
  return v;
}

/// Op: start(), the value before the first element; step(here, before), what an element does to the running value (before < 0 at the
/// start); none(), the step that does nothing; after(p, q), first p, then q; apply(step, value); write(here, value before, value).
template <class Op>
struct Scan {
  Op op;
  bool reverse;
  template <class Team>
  __device__ void run(std::int64_t, std::int64_t at, const Walk& along) const {
    using R = typename Op::R;
    auto place = [&](std::int64_t i) { return at + along[reverse ? along.n - 1 - i : i]; };
    R s = op.start();
    if constexpr (Team::kSize == 1) {
      for (std::int64_t i = 0, before = -1; i < along.n; ++i) {
        const std::int64_t here = place(i);
        const R next = Op::apply(op.step(here, before), s);
        op.write(here, s, next);
        s = next;
        before = here;
      }
    } else {
      for (std::int64_t first = 0; first < along.n; first += kThreads) {
        const std::int64_t i = first + threadIdx.x, here = i < along.n ? place(i) : -1;
        using S = decltype(Op::none());
        S all;
        const S upto = scan_block<Op, S>(here < 0 ? Op::none() : op.step(here, i == 0 ? -1 : place(i - 1)), all);
        // The value before: what the thread to the left has; shared memory is free again after the next barrier.
        __shared__ R values[kThreads + 1];
        __syncthreads();
        values[threadIdx.x + 1] = Op::apply(upto, s);
        if (threadIdx.x == 0) values[0] = s;
        __syncthreads();
        if (here >= 0) op.write(here, values[threadIdx.x], values[threadIdx.x + 1]);
        s = Op::apply(all, s);
      }
    }
  }
};

template <class T>
struct CumSum {
  using R = Running<T>;
  const T* x;
  T* y;
  bool shifted;
  __device__ static R none() { return R(0); }
  __device__ static R after(R p, R q) { return p + q; }
  __device__ static R apply(R step, R s) { return s + step; }
  __device__ R start() const { return R(0); }
  __device__ R step(std::int64_t here, std::int64_t) const { return static_cast<R>(load(x + here)); }
  __device__ void write(std::int64_t here, R, R s) const { store(y + here, static_cast<Wide<T>>(s)); }
};
template <class T>
struct CumProd {
  using R = Running<T>;
  const T* x;
  T* y;
  bool shifted;
  __device__ static R none() { return R(1); }
  __device__ static R after(R p, R q) { return p * q; }
  __device__ static R apply(R step, R s) { return s * step; }
  __device__ R start() const { return R(1); }
  __device__ R step(std::int64_t here, std::int64_t) const { return static_cast<R>(load(x + here)); }
  __device__ void write(std::int64_t here, R before, R s) const { store(y + here, static_cast<Wide<T>>(shifted ? before : s)); }
};

/// s becomes a * s + b; where a is 0, b, whatever s is: so the first element of a group starts it.
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
  __device__ static S after(S p, S q) { return {p.a == R(0) || q.a == R(0) ? R(0) : q.a * p.a, q.a == R(0) ? q.b : q.a * p.b + q.b}; }
  __device__ static R apply(S step, R s) { return step.a == R(0) ? step.b : step.b + step.a * s; }
  __device__ R start() const { return R(0); }
  __device__ S step(std::int64_t here, std::int64_t before) const {
    return {before < 0 ? R(0) : static_cast<R>(load(a + (shifted ? before : here))), static_cast<R>(load(b + here))};
  }
  __device__ void write(std::int64_t here, R, R s) const { store(y + here, static_cast<Wide<T>>(s)); }
};

template <class Op>
void launch_scan(const Call& call, Op op) {
  const Spec& x = call.spec(0);
  if (x.numel() == 0) return;
  const Groups g(x, mask_of(call.attrs.a, x));
  const Scan<Op> scan{op, (call.attrs.b & kReverse) != 0};
  CudaBackend& device = device_of(call.device);
  with_team(g, [&](auto team) {
    // A warp would need a scan of its own, for little: a block does its groups.
    using Team = std::conditional_t<std::is_same_v<decltype(team), Thread>, Thread, Block>;
    launch(call.op.name, device, blocks_of<Team>(g), run_groups<Team, Scan<Op>>, g, scan);
  });
}
template <template <class> class Op>
void run(const Call& call) {
  for_dtype<Domain::numbers>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_scan(call, Op<T>{call.in[0].as<T>(), call.out_as<T>(), (call.attrs.b & kShifted) != 0});
  });
}
void run_recurrence(const Call& call) {
  for_dtype<Domain::numbers>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_scan(call, Recurrence<T>{call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>(), (call.attrs.b & kShifted) != 0});
  });
}

/// The element before, 0 at the start. All elements at once: nothing runs along.
template <class T>
__global__ void shift_each(Groups g, bool reverse, const T* x, T* y) {
  const std::int64_t n = g.kept.n * g.along.n;
  const bool rows = g.along.dense();   // neighbours are members of one group
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t o = rows ? t / g.along.n : t % g.kept.n, i = rows ? t % g.along.n : t / g.kept.n, before = reverse ? i + 1 : i - 1;
    const std::int64_t at = g.kept[o];
    y[at + g.along[i]] = before < 0 || before >= g.along.n ? T{} : x[at + g.along[before]];
  }
}
void run_shift(const Call& call) {
  const Spec& x = call.spec(0);
  if (x.numel() == 0) return;
  for_size(x.dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(x.numel()), shift_each<T>, Groups(x, mask_of(call.attrs.a, x)),
           (call.attrs.b & kReverse) != 0, call.in[0].as<T>(), call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"cumsum", run<CumSum>}, {"cumprod", run<CumProd>}, {"recurrence", run_recurrence}, {"shift", run_shift}};

}  // namespace

Kernels scan_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

// ops/reduce.cu - reductions over axes on CUDA: sum, prod, mean, max, min, var, std, and sum_to_like.
#include <iterator>
#include <limits>

#include <kassette/error.h>

#include "ops/axes.h"
#include "ops/elementwise.cuh"

namespace kassette::cuda {
namespace {

/// The axes of x in two groups, each with joined neighbours: those that stay and those that are folded.
struct Folding {
  struct Group {
    int rank = 0;
    std::int64_t n = 1, dims[kMaxRank], strides[kMaxRank];
    void push(std::int64_t size, std::int64_t stride) {
      n *= size;
      if (size == 1) return;
      if (rank > 0 && strides[rank - 1] == stride * size) {
        dims[rank - 1] *= size;
        strides[rank - 1] = stride;
      } else {
        dims[rank] = size;
        strides[rank++] = stride;
      }
    }
    __device__ std::int64_t offset(std::int64_t i) const {
      std::int64_t at = 0;
      for (int d = rank - 1; d > 0; --d) {
        std::int64_t rest = i / dims[d];
        at += (i - rest * dims[d]) * strides[d];
        i = rest;
      }
      return rank ? at + i * strides[0] : 0;
    }
  } kept, folded;

  Folding(const Spec& x, unsigned mask) {
    std::int64_t stride = x.numel();
    for (int i = 0; i < x.rank; ++i) {
      stride = x.dims[i] ? stride / x.dims[i] : 0;
      (mask >> i & 1 ? folded : kept).push(x.dims[i], stride);
    }
  }
};

unsigned mask_of(std::int64_t code, int rank) {
  if (code & kAllAxes) return (1u << rank) - 1;
  unsigned mask = 0;
  for (int i = 0; i < rank; ++i)
    if ((code >> i & 1) || (code >> (8 + rank - 1 - i) & 1)) mask |= 1u << i;
  return mask;
}

template <class T>
struct Limits {
  static T lowest() { return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest(); }
  static T highest() { return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max(); }
};

template <class C>
struct Sum {
  C identity = C(0);
  __device__ C operator()(C a, C b) const { return static_cast<C>(a + b); }
};
template <class C>
struct Prod {
  C identity = C(1);
  __device__ C operator()(C a, C b) const { return static_cast<C>(a * b); }
};
template <class C>
struct Max {
  C identity = Limits<C>::lowest();
  __device__ C operator()(C a, C b) const { return a != a ? a : b > a || b != b ? b : a; }
};
template <class C>
struct Min {
  C identity = Limits<C>::highest();
  __device__ C operator()(C a, C b) const { return a != a ? a : b < a || b != b ? b : a; }
};

template <class C, class Fold>
__device__ C fold_block(Fold fold, C value) {
  __shared__ C shared[kThreads];
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) shared[threadIdx.x] = fold(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  return shared[0];
}

/// One block for a part of one result: blockIdx.y is the part. With one part the result is written, else what it gave.
template <class T, class C, class Fold>
__global__ void fold_parts(Folding f, Fold fold, const T* x, T* out, C* partial, std::int64_t length, C divisor) {
  for (std::int64_t o = blockIdx.x; o < f.kept.n; o += gridDim.x) {
    const T* from = x + f.kept.offset(o);
    const std::int64_t begin = blockIdx.y * length, end = min(begin + length, f.folded.n);
    C value = fold.identity;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) value = fold(value, static_cast<C>(load(from + f.folded.offset(i))));
    value = fold_block(fold, value);
    if (threadIdx.x) continue;
    if (gridDim.y == 1) store(out + o, static_cast<C>(value / divisor));
    else partial[o * gridDim.y + blockIdx.y] = value;
  }
}
template <class T, class C, class Fold>
__global__ void fold_partial(std::int64_t n_out, Fold fold, const C* partial, T* out, int parts, C divisor) {
  std::int64_t o = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (o >= n_out) return;
  C value = fold.identity;
  for (int i = 0; i < parts; ++i) value = fold(value, partial[o * parts + i]);
  store(out + o, static_cast<C>(value / divisor));
}
/// One thread for each result: short folds.
template <class T, class C, class Fold>
__global__ void fold_short(Folding f, Fold fold, const T* x, T* out, C divisor) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t o = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; o < f.kept.n; o += step) {
    const T* from = x + f.kept.offset(o);
    C value = fold.identity;
    for (std::int64_t i = 0; i < f.folded.n; ++i) value = fold(value, static_cast<C>(load(from + f.folded.offset(i))));
    store(out + o, static_cast<C>(value / divisor));
  }
}

constexpr std::int64_t kShort = 32;      // folds that one thread does
constexpr std::int64_t kPart = 1 << 14;  // elements of a part, fixed by the shape: the same bits on every device

template <class T, class Fold>
void fold(const Call& call, unsigned mask, Fold f, Wide<T> divisor) {
  using C = Wide<T>;
  CudaBackend& device = device_of(call.device);
  cudaStream_t stream = static_cast<cudaStream_t>(device.stream());
  Folding shape(call.spec(0), mask);
  if (shape.kept.n == 0) return;
  const T* x = call.in[0].as<T>();
  T* out = call.out_as<T>();
  if (shape.folded.n <= kShort) {
    fold_short<T, C, Fold><<<blocks_for(shape.kept.n), kThreads, 0, stream>>>(shape, f, x, out, divisor);
  } else {
    const int parts = static_cast<int>(std::min<std::int64_t>((shape.folded.n + kPart - 1) / kPart, 256));
    const std::int64_t length = (shape.folded.n + parts - 1) / parts;
    Scratch partial(device, parts > 1 ? shape.kept.n * parts * static_cast<std::int64_t>(sizeof(C)) : 0);
    dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(shape.kept.n, 1 << 16)), static_cast<unsigned>(parts));
    fold_parts<T, C, Fold><<<grid, kThreads, 0, stream>>>(shape, f, x, out, static_cast<C*>(partial.get()), length, divisor);
    if (parts > 1)
      fold_partial<T, C, Fold><<<static_cast<unsigned>((shape.kept.n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
          shape.kept.n, f, static_cast<const C*>(partial.get()), out, parts, divisor);
  }
  check(cudaGetLastError(), call.op.name);
}

template <template <class> class Fold, bool kMean = false>
void run(const Call& call) {
  const Spec& x = call.spec(0);
  unsigned mask = mask_of(call.attrs.a, x.rank);
  for_dtype<Domain::numbers>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    C divisor = C(1);
    if constexpr (kMean) divisor = static_cast<C>(Folding(x, mask).folded.n);
    if constexpr (!kMean || std::is_floating_point_v<C>) fold<T>(call, mask, Fold<C>{}, divisor);
  });
}

/// One block a result, two passes: the mean, then the mean of the squared deviations.
template <class T, class C, bool kRoot>
__global__ void var_block(Folding f, const T* x, T* out) {
  const C count = static_cast<C>(f.folded.n);
  for (std::int64_t o = blockIdx.x; o < f.kept.n; o += gridDim.x) {
    const T* from = x + f.kept.offset(o);
    C sum = C(0), squares = C(0);
    for (std::int64_t i = threadIdx.x; i < f.folded.n; i += kThreads) sum += load(from + f.folded.offset(i));
    const C mean = fold_block(Sum<C>{}, sum) / count;
    for (std::int64_t i = threadIdx.x; i < f.folded.n; i += kThreads) {
      C gap = load(from + f.folded.offset(i)) - mean;
      squares += gap * gap;
    }
    C value = fold_block(Sum<C>{}, squares) / count;
    if (threadIdx.x == 0) store(out + o, kRoot ? m::sqrt(value) : value);
  }
}
template <bool kRoot>
void run_var(const Call& call) {
  const Spec& x = call.spec(0);
  Folding shape(x, mask_of(call.attrs.a, x.rank));
  if (shape.kept.n == 0) return;
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    auto blocks = static_cast<unsigned>(std::min<std::int64_t>(shape.kept.n, 1 << 16));
    var_block<T, Wide<T>, kRoot><<<blocks, kThreads, 0, static_cast<cudaStream_t>(device_of(call.device).stream())>>>(
        shape, call.in[0].as<T>(), call.out_as<T>());
    check(cudaGetLastError(), call.op.name);
  });
}

void run_sum_to_like(const Call& call) {
  const Spec &x = call.spec(0), &like = call.spec(1);
  if (x.numel() == like.numel()) {
    host_services().share_input(call, 0);
    return;
  }
  int lead = x.rank - like.rank;
  bool fits = lead >= 0;
  unsigned mask = fits ? (1u << lead) - 1 : 0;
  for (int i = 0; fits && i < like.rank; ++i) {
    if (like.dims[i] == x.dims[lead + i]) continue;
    fits = like.dims[i] == 1;
    mask |= 1u << (lead + i);
  }
  if (!fits) throw ValueError("sum_to_like: the shapes do not broadcast");
  host_services().allocate_output(*call.out[0], call.device);
  for_dtype<Domain::numbers>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    fold<T>(call, mask, Sum<Wide<T>>{}, Wide<T>(1));
  });
}

const PluginKernel kernels[] = {{"sum", run<Sum>}, {"prod", run<Prod>},        {"max", run<Max>},          {"min", run<Min>}, {"mean", run<Sum, true>},
                                {"var", run_var<false>}, {"std", run_var<true>}, {"sum_to_like", run_sum_to_like}};

}  // namespace

Kernels reduce_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

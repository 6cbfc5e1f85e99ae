// ops/random.cu - random draws and dropout on CUDA: the bits of the CPU's, from the same arithmetic (draws.h).
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "ops/between.h"
#include "ops/draws.h"
#include "ops/integer_range.h"
#include "ops/philox.h"
#include "ops/teams.cuh"

namespace kassette::cuda {
namespace {

RandomKey key_of(const Call& call, int i) {
  RandomKey key;
  std::memcpy(&key, call.in[i].data, sizeof key);
  return key;
}
/// Size i of a shape argument: a tensor of any integers on the host.
std::int64_t size_at(const Call& call, int input, std::int64_t i) {
  std::int64_t size = 0;
  for_dtype<Domain::integers>(call.spec(input).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    size = static_cast<std::int64_t>(call.in[input].as<T>()[i]);
  });
  return size;
}
/// The words below it, of 2^32, are a share p of all.
std::uint64_t words_below(double p) {
  if (!(p > 0)) return 0;
  return p >= 1 ? std::uint64_t(1) << 32 : static_cast<std::uint64_t>(std::ceil(p * 0x1p32));
}

/// A thread for each philox block: its words are kGroupBlocks apart, so that neighbouring threads write neighbours. Emit makes kEach
/// elements of a block: emit(words, first element, n).
template <class Emit>
__global__ void draw(RandomKey key, std::int64_t n, Emit emit) {
  constexpr std::int64_t kGroup = kGroupBlocks * Emit::kEach;
  const std::int64_t blocks = (n + kGroup - 1) / kGroup * kGroupBlocks;
  for (std::int64_t t = Thread::first(); t < blocks; t += Thread::step())
    emit(random_block(key, static_cast<std::uint64_t>(t)), t / kGroupBlocks * kGroup + t % kGroupBlocks, n);
}
template <class Emit>
void launch_draw(const Call& call, int key, Emit emit) {
  const std::int64_t n = call.out[0]->numel();
  if (n == 0) return;
  launch(call.op.name, device_of(call.device), blocks_for((n + Emit::kEach - 1) / Emit::kEach + kGroupBlocks), draw<Emit>, key_of(call, key), n, emit);
}

struct Scalar32 {
  using F = float;
  using U = std::uint32_t;
  using I = std::int32_t;
  static constexpr int kBits = 32;
  KASSETTE_FN static F real(I v) { return static_cast<F>(v); }
  KASSETTE_FN static F root(F x) { return m::sqrt(x); }
};
struct Scalar64 {
  using F = double;
  using U = std::uint64_t;
  static constexpr int kBits = 64;
  KASSETTE_FN static F root(F x) { return m::sqrt(x); }
};

/// v * scale + shift, at most `top`.
template <class C>
struct Formed {
  C scale, shift, top;
  __device__ C operator()(C v) const {
    v = v * scale + shift;
    return v > top ? top : v;   // NaN stays
  }
};
__device__ inline std::uint64_t wide_word(const PhiloxWords& b, int k) { return std::uint64_t(b.w[2 * k]) << 32 | b.w[2 * k + 1]; }

enum class Law { uniform, normal, truncated };

template <class T, Law kLaw>
struct Floats {
  using C = Wide<T>;
  static constexpr int kEach = sizeof(C) == 4 ? 4 : 2;
  T* out;
  Formed<C> formed;
  __device__ void operator()(const PhiloxWords& b, std::int64_t first, std::int64_t n) const {
    C v[kEach];
    if constexpr (kEach == 4) {
      using D = draws::Singles<Scalar32>;
      for (int k = 0; k < 4; ++k) {
        if constexpr (kLaw == Law::uniform) v[k] = D::uniform(b.w[k]);
        if constexpr (kLaw == Law::truncated) v[k] = D::truncated(b.w[k]);
      }
      if constexpr (kLaw == Law::normal) {
        D::normals(b.w[0], b.w[1], v[0], v[1]);
        D::normals(b.w[2], b.w[3], v[2], v[3]);
      }
    } else {
      using D = draws::Doubles<Scalar64>;
      for (int k = 0; k < 2; ++k) {
        if constexpr (kLaw == Law::uniform) v[k] = D::uniform(wide_word(b, k));
        if constexpr (kLaw == Law::truncated) v[k] = D::truncated(wide_word(b, k));
      }
      if constexpr (kLaw == Law::normal) D::normals(wide_word(b, 0), wide_word(b, 1), v[0], v[1]);
    }
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t i = first + k * kGroupBlocks;
      if (i < n) store(out + i, formed(v[k]));
    }
  }
};
template <Law kLaw>
void run_floats(const Call& call) {
  // Attributes as random.cpp has them: bounds and the bits of the largest number below the upper one, or mean and deviation.
  const double x = call.attrs.x, y = call.attrs.y;
  const bool uniform = kLaw == Law::uniform;
  for_dtype<Domain::floats>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    const double scale = uniform ? y - x : y, top = uniform ? std::bit_cast<double>(call.attrs.b) : INFINITY;
    launch_draw(call, 0, Floats<T, kLaw>{call.out_as<T>(), {static_cast<C>(scale), static_cast<C>(x), static_cast<C>(top)}});
  });
}

template <class T>
struct Masks {
  static constexpr int kEach = 4;
  T* out;
  std::uint64_t below;
  __device__ void operator()(const PhiloxWords& b, std::int64_t first, std::int64_t n) const {
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t i = first + k * kGroupBlocks;
      if (i < n) store(out + i, static_cast<Wide<T>>(b.w[k] < below));
    }
  }
};
void run_bernoulli(const Call& call) {
  for_dtype<Domain::anything>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_draw(call, 0, Masks<T>{call.out_as<T>(), words_below(call.attrs.x)});
  });
}

template <class T>
struct Integers {
  static constexpr int kEach = 2;
  T* out;
  std::uint64_t low, range;
  __device__ void operator()(const PhiloxWords& b, std::int64_t first, std::int64_t n) const {
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t i = first + k * kGroupBlocks;
      if (i < n) out[i] = static_cast<T>(low + __umul64hi(wide_word(b, k), range));
    }
  }
};
void run_integers(const Call& call) {
  const IntegerRange range = integer_range(call);
  for_dtype<Domain::integers>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_draw(call, 0, Integers<T>{call.out_as<T>(), range.low, range.size});
  });
}

// ---- between bounds that are tensors -----------------------------------------------------------------------------------------
template <class T>
struct Between {
  RandomKey key;
  // Operand 2 is the numbers: it has no bytes, only a place for each.
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[3], std::int64_t i) const {
    using C = Wide<T>;
    C u;
    if constexpr (sizeof(C) == 4) u = draws::Singles<Scalar32>::uniform(random_word(key, at[2]));
    else u = draws::Doubles<Scalar64>::uniform(random_word64(key, at[2]));
    const C low = load(o.operand<T>(0) + at[0]), high = load(o.operand<T>(1) + at[1]);
    T y, last;
    store(&y, position(u, low, high));
    store(&last, below<T>(high));
    store(o.result<T>() + i, within(static_cast<C>(load(&y)), static_cast<C>(load(&last)), low, high));
  }
};
void run_between(const Call& call) {
  Spec drawn;
  drawn.rank = static_cast<std::int8_t>(call.spec(1).dims[0]);
  for (int i = 0; i < drawn.rank; ++i) drawn.dims[i] = size_at(call, 1, i);
  Operands o = broadcast<3>({&call.spec(2), &call.spec(3), &drawn}, *call.out[0]);
  o.in[0] = call.in[2].data;
  o.in[1] = call.in[3].data;
  o.out = call.out[0]->data();
  for_dtype<Domain::floats>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_each<3>(call, Between<T>{key_of(call, 0)}, o);
  });
}

// ---- dropout: the mask from the key, the same words as on the CPU ------------------------------------------------------
template <class T>
struct Kept {
  double scale;
  std::uint64_t below;
  __device__ void operator()(T* to, const T* from, std::uint32_t word) const {
    if (word < below) store(to, static_cast<Wide<T>>(load(from) * static_cast<Wide<T>>(scale)));
    else *to = T{};
  }
};
/// A word of the mask for each element: one Philox block, of four words, serves four.
template <class T>
struct DropEach {
  static constexpr int kEach = 4;
  const T* x;
  T* out;
  Kept<T> kept;
  __device__ void operator()(const PhiloxWords& b, std::int64_t first, std::int64_t n) const {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t i = first + k * kGroupBlocks;
      if (i < n) kept(out + i, x + i, b.w[k]);
    }
  }
};
/// A mask that is repeated along axes.
template <class T>
struct Drop {
  RandomKey key;
  Kept<T> kept;
  // Operand 1 is the mask: it has no bytes, only a place for each of its words.
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t i) const {
    kept(o.result<T>() + i, o.operand<T>(0) + at[0], random_word(key, at[1]));
  }
};
void run_dropout(const Call& call) {
  const Spec& x = call.spec(0);
  Operands o{};
  o.in[0] = call.in[0].data;
  o.out = call.out[0]->data();
  o.n = x.numel();
  if (o.n == 0) return;
  // The mask's shape (the third input, on the host): -1 stands for the size of x.
  std::int64_t mask[kMaxRank], step = 1, stride[2][kMaxRank];
  bool same = true;   // the mask has an element for each of x
  const int given = call.n_in > 2 ? static_cast<int>(call.spec(2).dims[0]) : x.rank;
  for (int i = 0; i < x.rank; ++i) {
    int j = i - (x.rank - given);
    std::int64_t n = call.n_in > 2 ? (j < 0 ? 1 : size_at(call, 2, j)) : -1;
    mask[i] = n < 0 ? x.dims[i] : n;
    same = same && mask[i] == x.dims[i];
  }
  for (int i = x.rank - 1; i >= 0; --i) {
    stride[1][i] = mask[i] == 1 ? 0 : step;
    step *= mask[i];
  }
  step = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    stride[0][i] = step;
    step *= x.dims[i];
  }
  for (int i = 0; i < x.rank; ++i) push_axis<2>(o, x.dims[i], {stride[0][i], stride[1][i]});
  if (o.rank == 0) o.dims[o.rank++] = 1;
  const double level = call.attrs.x;
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Kept<T> kept{1 / (1 - level), (std::uint64_t(1) << 32) - words_below(level)};
    if (same) launch_draw(call, 1, DropEach<T>{call.in[0].as<T>(), call.out_as<T>(), kept});
    else launch_each<2>(call, Drop<T>{key_of(call, 1), kept}, o);
  });
}

const PluginKernel kernels[] = {{"random_uniform", run_floats<Law::uniform>},
                                {"random_between", run_between},
                                {"random_normal", run_floats<Law::normal>},
                                {"truncated_normal", run_floats<Law::truncated>},
                                {"random_integers", run_integers},
                                {"bernoulli", run_bernoulli},
                                {"dropout", run_dropout}};

}  // namespace

Kernels random_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda

// ops/random/random.cu - random draws and dropout on CUDA, with the same bits as on the CPU: both use the arithmetic of
// draws.h.
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "ops/random/between.h"
#include "ops/random/draws.h"
#include "ops/random/integer_range.h"
#include "ops/random/philox.h"
#include "ops/random/random_attrs.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

RandomKey key_of(const OpCall& call, int i) {
  RandomKey key;
  std::memcpy(&key, call.in[i].data, sizeof key);
  return key;
}
/// Size i of a shape argument: a tensor of any integer dtype on the host.
std::int64_t size_at(const OpCall& call, int input, std::int64_t i) {
  std::int64_t size = 0;
  for_dtype<Domain::integers>(call.spec(input).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    size = static_cast<std::int64_t>(call.in[input].as<T>()[i]);
  });
  return size;
}
/// The bound that a random word of 32 bits is below with probability p.
std::uint64_t words_below(double p) {
  if (!(p > 0)) return 0;
  return p >= 1 ? std::uint64_t(1) << 32 : static_cast<std::uint64_t>(std::ceil(p * 0x1p32));
}

/// One thread per Philox block. The elements of a block are kGroupBlocks apart, so that neighbouring threads write
/// neighbouring elements. emit(words, first element, n) writes the kEach elements of a block.
template <class Emit>
__global__ void draw(RandomKey key, std::int64_t n, Emit emit) {
  constexpr std::int64_t kGroup = kGroupBlocks * Emit::kEach;
  const std::int64_t blocks = (n + kGroup - 1) / kGroup * kGroupBlocks;
  for (std::int64_t t = Thread::first(); t < blocks; t += Thread::step())
    emit(random_block(key, static_cast<std::uint64_t>(t)), t / kGroupBlocks * kGroup + t % kGroupBlocks, n);
}
/// Draws n elements. `key` is the number of the input that is the key.
template <class Emit>
void launch_draw(const OpCall& call, int key, std::int64_t n, Emit emit) {
  if (n == 0) return;
  launch(call.op.name, device_of(call.device), blocks_for((n + Emit::kEach - 1) / Emit::kEach + kGroupBlocks),
         draw<Emit>, key_of(call, key), n, emit);
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

/// min(v * scale + shift, top).
template <class C>
struct Formed {
  C scale, shift, top;
  __device__ C operator()(C v) const {
    v = v * scale + shift;
    return v > top ? top : v;  // keeps NaN
  }
};
__device__ inline std::uint64_t wide_word(const PhiloxWords& b, int k) {
  return std::uint64_t(b.w[2 * k]) << 32 | b.w[2 * k + 1];
}

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
void run_floats(const OpCall& call) {
  double scale, offset, top = INFINITY;
  if constexpr (kLaw == Law::uniform) {
    const UniformAttrs& u = call.attrs.as<UniformAttrs>();
    scale = u.high - u.low, offset = u.low, top = u.top;
  } else {
    const NormalAttrs& n = call.attrs.as<NormalAttrs>();
    scale = n.stddev, offset = n.mean;
  }
  for_dtype<Domain::floats>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    launch_draw(
        call, 0, call.out[0]->numel(),
        Floats<T, kLaw>{call.out_as<T>(), {static_cast<C>(scale), static_cast<C>(offset), static_cast<C>(top)}});
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
void run_bernoulli(const OpCall& call) {
  for_dtype<Domain::anything>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_draw(call, 0, call.out[0]->numel(),
                Masks<T>{call.out_as<T>(), words_below(call.attrs.as<BernoulliAttrs>().p)});
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
void run_integers(const OpCall& call) {
  const IntegerRange range = integer_range(call);
  for_dtype<Domain::integers>(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_draw(call, 0, call.out[0]->numel(), Integers<T>{call.out_as<T>(), range.low, range.size});
  });
}

// ---- between bounds that are tensors --------------------------------------------------------------------------------
/// Writes a sample from a uniform number. Operands 0 and 1 are the bounds.
template <class T>
struct Placed {
  using C = Wide<T>;
  __device__ static void place(const Operands& o, std::int64_t low_at, std::int64_t high_at, std::int64_t i, C u) {
    const C low = load(o.operand<T>(0) + low_at), high = load(o.operand<T>(1) + high_at);
    T y, last;
    store(&y, position(u, low, high));
    store(&last, below<T>(high));
    store(o.result<T>() + i, within(static_cast<C>(load(&y)), static_cast<C>(load(&last)), low, high));
  }
};
/// For draws in which each number is used once.
template <class T>
struct BetweenEach {
  using C = Wide<T>;
  static constexpr int kEach = sizeof(C) == 4 ? 4 : 2;
  Operands o;
  __device__ void operator()(const PhiloxWords& b, std::int64_t first, std::int64_t n) const {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t i = first + k * kGroupBlocks;
      if (i >= n) continue;
      std::int64_t at[2];
      locate<2>(o, i, at);
      C u;
      if constexpr (kEach == 4) u = draws::Singles<Scalar32>::uniform(b.w[k]);
      else u = draws::Doubles<Scalar64>::uniform(wide_word(b, k));
      Placed<T>::place(o, at[0], at[1], i, u);
    }
  }
};
/// Operand 2 holds uniform numbers that several bounds share; they were drawn beforehand.
template <class T>
struct BetweenShared {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[3], std::int64_t i) const {
    Placed<T>::place(o, at[0], at[1], i, o.operand<Wide<T>>(2)[at[2]]);
  }
};
void run_between(const OpCall& call) {
  const TensorSpec& out = *call.out[0];
  TensorSpec drawn;
  drawn.rank = static_cast<std::int8_t>(call.spec(1).dims[0]);
  for (int i = 0; i < drawn.rank; ++i) drawn.dims[i] = size_at(call, 1, i);
  Operands o = broadcast<3>({&call.spec(2), &call.spec(3), &drawn}, out);
  o.in[0] = call.in[2].data;
  o.in[1] = call.in[3].data;
  o.out = call.out[0]->data();
  const std::int64_t n = drawn.numel();
  for_dtype<Domain::floats>(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    if (n == out.numel()) return launch_draw(call, 0, n, BetweenEach<T>{o});
    const DeviceScratch numbers(device_of(call.device), n * static_cast<std::int64_t>(sizeof(C)));
    launch_draw(call, 0, n, Floats<C, Law::uniform>{static_cast<C*>(numbers.get()), {C(1), C(0), C(2)}});
    o.in[2] = numbers.get();
    launch_each<3>(call, BetweenShared<T>{}, o);
  });
}

// ---- dropout: the mask from the key, the same words as on the CPU ---------------------------------------------------
template <class T>
struct KeepOrZero {
  double scale;
  std::uint64_t below;
  __device__ Wide<T> operator()(Wide<T> x, bool kept) const { return kept ? x * static_cast<Wide<T>>(scale) : 0; }
};
/// One random word per element: a Philox block of four words serves four elements.
template <class T>
struct DropEach {
  static constexpr int kEach = 4;
  const T* x;
  T* out;
  KeepOrZero<T> put;
  __device__ void operator()(const PhiloxWords& b, std::int64_t first, std::int64_t n) const {
    auto place = [&](int k) { return first + k * kGroupBlocks; };
    Wide<T> v[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) v[k] = load(x + (place(k) < n ? place(k) : 0));  // `first` may be beyond x
#pragma unroll
    for (int k = 0; k < kEach; ++k)
      if (place(k) < n) store(out + place(k), put(v[k], b.w[k] < put.below));
  }
};
/// Operand 1 is a mask that broadcasts; it was computed beforehand.
template <class T>
struct Drop {
  KeepOrZero<T> put;
  __device__ Wide<T> operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t) const {
    return put(load(o.operand<T>(0) + at[0]), o.operand<bool>(1)[at[1]]);
  }
};
/// The shape of the mask: the third input, on the host, in which -1 stands for x's size. Without it x's shape.
TensorSpec mask_shape(const OpCall& call) {
  TensorSpec mask;
  mask.set(call.spec(0));
  if (call.n_in < 3) return mask;
  const int more = mask.rank - static_cast<int>(call.spec(2).dims[0]);
  for (int i = 0; i < mask.rank; ++i) {
    const std::int64_t n = i < more ? 1 : size_at(call, 2, i - more);
    if (n >= 0) mask.dims[i] = n;
  }
  return mask;
}
void run_dropout(const OpCall& call) {
  const TensorSpec &x = call.spec(0), mask = mask_shape(call);
  const std::int64_t n = mask.numel();
  if (x.numel() == 0) return;
  const double level = call.attrs.as<DropoutAttrs>().level;
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const KeepOrZero<T> put{1 / (1 - level), (std::uint64_t(1) << 32) - words_below(level)};
    if (n == x.numel()) return launch_draw(call, 1, n, DropEach<T>{call.in[0].as<T>(), call.out_as<T>(), put});
    const DeviceScratch words(device_of(call.device), n);
    launch_draw(call, 1, n, Masks<bool>{static_cast<bool*>(words.get()), put.below});
    Operands o = broadcast<2>({&x, &mask}, x);
    o.in[0] = call.in[0].data;
    o.in[1] = words.get();
    o.out = call.out[0]->data();
    launch_store<2, T>(call, Drop<T>{put}, o);
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

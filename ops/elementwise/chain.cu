// ops/elementwise/chain.cu - the kernel that interprets the code of a chain of elementwise ops. See Note [Chains].
#include <tuple>

#include "ops/elementwise/device_chain.h"
#include "ops/elementwise/elementwise.cuh"
#include "ops/shape/moving.cuh"
#include "ops/engine/packs.cuh"

namespace kassette::cuda {
namespace {

// Values stay in registers from one opcode to the next, and each opcode is decoded once for all elements of a thread,
// one or two packs. The bits are those of the separate ops, since both are compiled from one source.
static_assert(sizeof(DeviceChain) + sizeof(Divider) + sizeof(std::int64_t) <= 4096);  // arguments of a kernel

template <int k, class... Ops>
std::tuple_element_t<k, std::tuple<Ops...>>* op_at(OpList<Ops...>);
/// Calls f with a null pointer to op `at` of the `kCount` ops of the list from kFirst on. It is found by halving, since
/// one comparison for each op before it would take longer than most ops.
template <class List, int kFirst = 0, int kCount = List::size, class F>
__device__ inline void with_op(int at, F f) {
  if constexpr (kCount == 1) {
    f(decltype(op_at<kFirst>(List{}))());
  } else {
    constexpr int kHalf = kCount / 2;
    if (at < kFirst + kHalf) with_op<List, kFirst, kHalf>(at, f);
    else with_op<List, kFirst + kHalf, kCount - kHalf>(at, f);
  }
}

/// The first pack becomes the last.
template <class T, int n>
__device__ inline void rotate(T (&v)[n]) {
  T first[kPack<T>];
#pragma unroll
  for (int k = 0; k < kPack<T>; ++k) first[k] = v[k];
#pragma unroll
  for (int k = 0; k < n; ++k) v[k] = k + kPack<T> < n ? v[k + kPack<T>] : first[k + kPack<T> - n];
}
/// acc = f(acc, other) for each element, or f(acc). Op says whether f is cheap; if not, its code is there for one pack
/// only, and the packs take turns: an array that is indexed in a loop would be in local memory.
template <class Op, class T, int n, class F, class... Other>
__device__ inline void each_pack(T (&acc)[n], F f, Other&... other) {
  constexpr int kUnrolled = requires { Op::cheap; }
  ? n : kPack<T>;
#pragma unroll 1
  for (int u = 0; u < n; u += kUnrolled) {
#pragma unroll
    for (int k = 0; k < kUnrolled; ++k) acc[k] = f(acc[k], other[k]...);
    if constexpr (kUnrolled < n) {
      rotate(acc);
      (rotate(other), ...);
    }
  }
}
template <class T, int n>
__device__ inline void unary(int at, T (&acc)[n], const ChainAttrs& attrs) {
  with_op<UnaryOps>(at, [&](auto* op) {
    using Op = std::remove_pointer_t<decltype(op)>;
    if constexpr (has_type<T>(Op::takes)) each_pack<Op>(acc, UnaryFunction<Op>(attrs));
  });
}
template <class T, int n>
__device__ inline void binary(int at, T (&acc)[n], T (&other)[n], bool reversed) {
  if (reversed) {
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const T second = acc[k];
      acc[k] = other[k];
      other[k] = second;
    }
  }
  with_op<BinaryOps>(at, [&](auto* op) {
    using Op = std::remove_pointer_t<decltype(op)>;
    if constexpr (has_type<T>(Op::takes))
      each_pack<Op>(
          acc, [](T a, T b) { return Op::value(a, b); }, other);
  });
}

/// Up to `kKept` intermediate values of each element are kept in local memory: they are indexed at run time, which
/// registers cannot be. If `packed`, a thread has kPacks packs, else as many elements; those of neighbouring threads
/// are neighbours. The launch bounds limit a thread to 64 (float) and 128 (double) registers.
template <class T, int kKept, int kPacks>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 ? 4 : 2)
    interpret(DeviceChain c, Divider by_width, bool packed) {
  constexpr int kSize = kPack<T>, kEach = kPacks * kSize;
  const int width = packed ? kSize : 1;  // neighbours among the elements of a thread
  const std::int64_t step = std::int64_t(gridDim.x) * kThreads * kEach;
  for (std::int64_t first = std::int64_t(blockIdx.x) * kThreads * kEach + threadIdx.x * width; first < c.n;
       first += step) {
    T acc[kEach], kept[kKept][kEach];
    auto nth = [&](int j) { return first + (packed ? j / kSize * kThreads * kSize + j % kSize : j * kThreads); };
    const bool whole = packed && nth(kEach - 1) < c.n;
    auto place = [&](const DeviceChain::Operand& o, std::int64_t i) {
      return reinterpret_cast<T*>(o.base + (o.row_gap ? by_width(i) * o.row_gap : 0)) + i;
    };
    auto bring = [&](const DeviceChain::Code& code, T(&to)[kEach]) {
      if (code.where == DeviceChain::kKept) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) to[j] = kept[code.index][j];
      } else if (code.where == DeviceChain::kOne) {
        const auto* one = reinterpret_cast<const T*>(c.operands[code.index].base);
        const T v = one ? *one : T(0);
#pragma unroll
        for (int j = 0; j < kEach; ++j) to[j] = v;
      } else if (whole) {
        Packed<T> packs[kPacks];
#pragma unroll
        for (int u = 0; u < kPacks; ++u)
          packs[u] = *reinterpret_cast<const Packed<T>*>(place(c.operands[code.index], nth(u * kSize)));
#pragma unroll
        for (int j = 0; j < kEach; ++j) to[j] = packs[j / kSize].v[j % kSize];
      } else {
        // For elements past the end a thread reads its first element again; they are not stored.
#pragma unroll
        for (int j = 0; j < kEach; ++j) to[j] = *place(c.operands[code.index], nth(j) < c.n ? nth(j) : first);
      }
    };
    for (int k = 0; k < c.n_code; ++k) {
      const DeviceChain::Code code = c.code[k];
      if (code.opcode == DeviceChain::kLoad) {
        bring(code, acc);
      } else if (code.opcode == DeviceChain::kStore) {
        if (code.where == DeviceChain::kKept) {
#pragma unroll
          for (int j = 0; j < kEach; ++j) kept[code.index][j] = acc[j];
        } else if (whole) {
#pragma unroll
          for (int u = 0; u < kPacks; ++u) {
            Packed<T> pack;
#pragma unroll
            for (int e = 0; e < kSize; ++e) pack.v[e] = acc[u * kSize + e];
            *reinterpret_cast<Packed<T>*>(place(c.operands[code.index], nth(u * kSize))) = pack;
          }
        } else {
#pragma unroll
          for (int j = 0; j < kEach; ++j)
            if (nth(j) < c.n) *place(c.operands[code.index], nth(j)) = acc[j];
        }
      } else if (code.opcode < DeviceChain::kBinary) {
        unary(code.opcode - DeviceChain::kUnary, acc, c.attrs[code.index]);
      } else {
        T other[kEach];
        bring(code, other);
        binary(code.opcode - DeviceChain::kBinary, acc, other, code.reversed);
      }
    }
  }
}

/// True if packs of every operand are aligned, and none is in two rows.
template <class T>
bool packs_of(const DeviceChain& c) {
  constexpr std::int64_t kBytes = sizeof(Packed<T>);
  for (int k = 0; k < c.n_code; ++k) {
    if (c.code[k].where != DeviceChain::kMemory) continue;
    const DeviceChain::Operand& o = c.operands[c.code[k].index];
    if (!packs_at(reinterpret_cast<const T*>(o.base)) || (o.row_gap && (c.width % kPack<T> || o.row_gap % kBytes)))
      return false;
  }
  return true;
}

template <class T>
void run(CudaDevice& device, const DeviceChain& chain) {
  // The driver reserves local memory for all threads that a device holds, at the first launch and for good: more than
  // 130 MiB of an H100 for the largest kernel. So a thread that keeps many values has one pack, and there is a size
  // between.
  constexpr int kFew = 4, kSome = 8;
  const bool few = chain.n_kept <= kFew;
  const auto kernel = few                     ? interpret<T, kFew, 2>
                      : chain.n_kept <= kSome ? interpret<T, kSome, 1>
                                              : interpret<T, DeviceChain::kMaxKept, 1>;
  launch("function", device, blocks_for(ceil_div(chain.n, (few ? 2 : 1) * kPack<T>)), kernel, chain,
         Divider(chain.width), packs_of<T>(chain));
}

}  // namespace

void run_chain(Device device, const DeviceChain& chain) {
  CudaDevice& on = device_of(device);
  if (chain.is_double) run<double>(on, chain);
  else run<float>(on, chain);
}

}  // namespace kassette::cuda

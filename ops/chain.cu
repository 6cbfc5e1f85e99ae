// ops/chain.cu - a chain of elementwise ops as one kernel, which interprets its program. See Note [Chains].
#include "ops/device_chain.h"
#include "ops/elementwise.cuh"

namespace kassette::cuda {
namespace {

// Values stay in registers from one instruction to the next, and each instruction is read once for so many elements of a thread. By
// count, not by measurement: decoding ten instructions takes about a tenth of the time in which memory brings their operands, so code compiled
// at run time would gain little; and the bits are those of the ops alone, since both are compiled from one source.
constexpr int kEach = 4;

/// acc = op(acc, operand), for the op with that code.
template <class T, class... Ops>
__device__ inline void unary(OpList<Ops...>, int code, T (&acc)[kEach], const Params& p) {
  auto run = [&](auto* op) {
    using Op = std::remove_pointer_t<decltype(op)>;
    if (code != DeviceChain::kUnary + IndexOf<Op, UnaryOps>::value) return false;
    for (T& v : acc) v = Op::value(v, p);
    return true;
  };
  static_cast<void>((run(static_cast<Ops*>(nullptr)) || ...));
}
template <class T, class... Ops>
__device__ inline void binary(OpList<Ops...>, int code, T (&acc)[kEach], const T (&other)[kEach], bool turned) {
  auto run = [&](auto* op) {
    using Op = std::remove_pointer_t<decltype(op)>;
    if (code != DeviceChain::kBinary + IndexOf<Op, BinaryOps>::value) return false;
    for (int j = 0; j < kEach; ++j) {
      const T a = turned ? other[j] : acc[j], b = turned ? acc[j] : other[j];
      acc[j] = Op::value(a, b);
    }
    return true;
  };
  static_cast<void>((run(static_cast<Ops*>(nullptr)) || ...));
}

/// `kKept` values are kept of each element, in local memory: indexed at run time, they are in no registers.
template <class T, int kKept>
__global__ void run_program(DeviceChain c) {
  const std::int64_t step = std::int64_t(gridDim.x) * kThreads * kEach;
  for (std::int64_t first = std::int64_t(blockIdx.x) * kThreads * kEach + threadIdx.x; first < c.n; first += step) {
    T acc[kEach], kept[kKept][kEach];
    auto inside = [&](int j) { return first + j * kThreads < c.n; };
    // A thread past the end does as if it were at the first element of its own, and stores nothing.
    auto place = [&](const DeviceChain::Operand& o, int j) {
      const std::int64_t i = inside(j) ? first + j * kThreads : first;
      return reinterpret_cast<T*>(o.base + (o.skip ? i / c.width * o.skip : 0)) + i;
    };
    auto bring = [&](const DeviceChain::Instruction& code, T (&to)[kEach]) {
      for (int j = 0; j < kEach; ++j)
        to[j] = code.where == DeviceChain::kKept     ? kept[code.index][j]
                : code.where == DeviceChain::kMemory ? *place(c.operands[code.index], j)
                                                     : *reinterpret_cast<const T*>(c.operands[code.index].base);
    };
    for (int k = 0; k < c.n_code; ++k) {
      const DeviceChain::Instruction code = c.code[k];
      if (code.code == DeviceChain::kLoad) {
        bring(code, acc);
      } else if (code.code == DeviceChain::kStore) {
        for (int j = 0; j < kEach; ++j) {
          if (code.where == DeviceChain::kKept) kept[code.index][j] = acc[j];
          else if (inside(j)) *place(c.operands[code.index], j) = acc[j];
        }
      } else if (code.code < DeviceChain::kBinary) {
        unary(UnaryOps{}, code.code, acc, c.params[code.index]);
      } else {
        T other[kEach];
        bring(code, other);
        binary(BinaryOps{}, code.code, acc, other, code.turned);
      }
    }
  }
}

template <class T>
void run(CudaBackend& device, const DeviceChain& chain) {
  constexpr int kFew = 4;
  launch("function", device, blocks_for((chain.n + kEach - 1) / kEach), chain.n_kept <= kFew ? run_program<T, kFew> : run_program<T, DeviceChain::kMostKept>, chain);
}

}  // namespace

void run_chain(Device device, const DeviceChain& chain) {
  CudaBackend& on = device_of(device);
  if (chain.is_double) run<double>(on, chain);
  else run<float>(on, chain);
}

}  // namespace kassette::cuda

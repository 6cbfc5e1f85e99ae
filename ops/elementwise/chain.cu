// ops/elementwise/chain.cu - the kernel that interprets the code of a chain of elementwise ops. See Note [Chains].
#include "ops/elementwise/device_chain.h"
#include "ops/elementwise/elementwise.cuh"
#include "ops/shape/moving.cuh"
#include "ops/engine/packs.cuh"

namespace kassette::cuda {
namespace {

// Values stay in registers from one opcode to the next, and each opcode is decoded once for all kEach elements of a
// thread. By estimate, not by measurement, decoding ten opcodes takes about a tenth of the time that memory takes to
// deliver their operands, so code compiled at run time would gain little. The bits are those of the separate ops, since
// both are compiled from one source.
constexpr int kEach = 4;
static_assert(sizeof(DeviceChain) + sizeof(Divider) + sizeof(std::int64_t) <= 4096);  // arguments of a kernel

/// acc = op(acc, operand), for the op with that code.
template <class T, class... Ops>
__device__ inline void unary(OpList<Ops...>, int code, T (&acc)[kEach], const ChainAttrs& attrs) {
  auto run = [&](auto* op) {
    using Op = std::remove_pointer_t<decltype(op)>;
    if constexpr (!has_type<T>(Op::takes)) return false;
    else {
      if (code != DeviceChain::kUnary + IndexOf<Op, UnaryOps>::value) return false;
      const UnaryFunction<Op> f(attrs);
      for (T& v : acc) v = f(v);
      return true;
    }
  };
  static_cast<void>((run(static_cast<Ops*>(nullptr)) || ...));
}
template <class T, class... Ops>
__device__ inline void binary(OpList<Ops...>, int code, T (&acc)[kEach], const T (&other)[kEach], bool reversed) {
  auto run = [&](auto* op) {
    using Op = std::remove_pointer_t<decltype(op)>;
    if constexpr (!has_type<T>(Op::takes)) return false;
    else {
      if (code != DeviceChain::kBinary + IndexOf<Op, BinaryOps>::value) return false;
      for (int j = 0; j < kEach; ++j) {
        const T a = reversed ? other[j] : acc[j], b = reversed ? acc[j] : other[j];
        acc[j] = Op::value(a, b);
      }
      return true;
    }
  };
  static_cast<void>((run(static_cast<Ops*>(nullptr)) || ...));
}

/// Up to `kKept` intermediate values of each element are kept in local memory: they are indexed at run time, which
/// registers cannot be. If `packed`, the elements of a thread are neighbours, otherwise those of neighbouring threads
/// are. The launch bounds limit a thread to 48 (float) and 80 (double) registers.
template <class T, int kKept>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 ? 5 : 3)
    interpret(DeviceChain c, Divider by_width, bool packed) {
  const std::int64_t each = packed ? 1 : kThreads;  // from one element of a thread to the next
  const std::int64_t step = std::int64_t(gridDim.x) * kThreads * kEach;
  for (std::int64_t first = std::int64_t(blockIdx.x) * kThreads * kEach + threadIdx.x * (packed ? kEach : 1);
       first < c.n; first += step) {
    T acc[kEach], kept[kKept][kEach];
    const bool whole = packed && first + kEach <= c.n;
    auto inside = [&](int j) { return first + j * each < c.n; };
    auto place = [&](const DeviceChain::Operand& o, std::int64_t i) {
      return reinterpret_cast<T*>(o.base + (o.row_gap ? by_width(i) * o.row_gap : 0)) + i;
    };
    auto bring = [&](const DeviceChain::Code& code, T(&to)[kEach]) {
      if (code.where == DeviceChain::kKept) {
        for (int j = 0; j < kEach; ++j) to[j] = kept[code.index][j];
      } else if (code.where == DeviceChain::kOne) {
        const auto* one = reinterpret_cast<const T*>(c.operands[code.index].base);
        for (T& v : to) v = one ? *one : T(0);
      } else if (whole) {
        const auto* from = reinterpret_cast<const Packed<T>*>(place(c.operands[code.index], first));
        for (int u = 0; u < kEach / kPack<T>; ++u) {
          const Packed<T> pack = from[u];
          for (int k = 0; k < kPack<T>; ++k) to[u * kPack<T> + k] = pack.v[k];
        }
      } else {
        // For elements past the end a thread reads its first element again; they are not stored.
        for (int j = 0; j < kEach; ++j) to[j] = *place(c.operands[code.index], inside(j) ? first + j * each : first);
      }
    };
    for (int k = 0; k < c.n_code; ++k) {
      const DeviceChain::Code code = c.code[k];
      if (code.opcode == DeviceChain::kLoad) {
        bring(code, acc);
      } else if (code.opcode == DeviceChain::kStore) {
        if (code.where == DeviceChain::kKept) {
          for (int j = 0; j < kEach; ++j) kept[code.index][j] = acc[j];
        } else if (whole) {
          auto* to = reinterpret_cast<Packed<T>*>(place(c.operands[code.index], first));
          for (int u = 0; u < kEach / kPack<T>; ++u) {
            Packed<T> pack;
            for (int e = 0; e < kPack<T>; ++e) pack.v[e] = acc[u * kPack<T> + e];
            to[u] = pack;
          }
        } else {
          for (int j = 0; j < kEach; ++j)
            if (inside(j)) *place(c.operands[code.index], first + j * each) = acc[j];
        }
      } else if (code.opcode < DeviceChain::kBinary) {
        unary(UnaryOps{}, code.opcode, acc, c.attrs[code.index]);
      } else {
        T other[kEach];
        bring(code, other);
        binary(BinaryOps{}, code.opcode, acc, other, code.reversed);
      }
    }
  }
}

/// True if packs of every operand are aligned.
template <class T>
bool packs_of(const DeviceChain& c) {
  constexpr std::int64_t kBytes = sizeof(Packed<T>);
  for (int k = 0; k < c.n_code; ++k) {
    if (c.code[k].where != DeviceChain::kMemory) continue;
    const DeviceChain::Operand& o = c.operands[c.code[k].index];
    if (!packs_at(reinterpret_cast<const T*>(o.base)) || (o.row_gap && (c.width % kEach || o.row_gap % kBytes)))
      return false;
  }
  return true;
}

template <class T>
void run(CudaDevice& device, const DeviceChain& chain) {
  constexpr int kFew = 4;
  launch("function", device, blocks_for((chain.n + kEach - 1) / kEach),
         chain.n_kept <= kFew ? interpret<T, kFew> : interpret<T, DeviceChain::kMaxKept>, chain, Divider(chain.width),
         packs_of<T>(chain));
}

}  // namespace

void run_chain(Device device, const DeviceChain& chain) {
  CudaDevice& on = device_of(device);
  if (chain.is_double) run<double>(on, chain);
  else run<float>(on, chain);
}

}  // namespace kassette::cuda

// devices/nccl/packing.cu - conversion of elements to a dtype that NCCL can combine, and back.
#include "devices/nccl/packing.h"

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/convert.h"
#include "devices/cuda/element.cuh"

namespace kassette::nccl {
using namespace devices;
namespace {

using cuda::load;
using cuda::store;

/// Why elements are packed: to be added or multiplied, for the minimum, for the maximum.
enum class Order { none, least, most };

Order order_of(Reduction how) {
  return how == Reduction::min ? Order::least : how == Reduction::max ? Order::most : Order::none;
}

/// The type in which elements are combined: float for half types, 32 bits for 16-bit integers, else the type itself.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T> && sizeof(T) == 2, std::int32_t, cuda::Wide<T>>;

/// An integer as wide as V.
template <class V>
using Bits = std::conditional_t<sizeof(V) == 8, std::int64_t, std::int32_t>;
template <class V>
constexpr Bits<V> kMagnitude = std::numeric_limits<Bits<V>>::max();  // all bits but the sign

/// Floats as integers in the same order, -0 before +0. NaN comes last for the maximum and first for the minimum, so
/// that it wins.
template <class V>
__device__ inline Bits<V> key(V v, Order order) {
  if (v != v) return order == Order::most ? kMagnitude<V> : ~kMagnitude<V>;
  const Bits<V> bits = std::bit_cast<Bits<V>>(v);
  return bits < 0 ? bits ^ kMagnitude<V> : bits;
}
template <class V>
__device__ inline V value(Bits<V> key) {
  if (key == kMagnitude<V> || key == ~kMagnitude<V>) return std::numeric_limits<V>::quiet_NaN();
  return std::bit_cast<V>(key < 0 ? key ^ kMagnitude<V> : key);
}

/// Whether elements of T are compared by their keys.
template <class T>
constexpr bool has_key(Order order) {
  return order != Order::none && std::is_floating_point_v<Wide<T>>;
}

template <class T, Order order>
__global__ void pack_each(std::int64_t n, const T* from, void* packed) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    const Wide<T> v = static_cast<Wide<T>>(load(from + i));
    if constexpr (has_key<T>(order)) static_cast<Bits<Wide<T>>*>(packed)[i] = key(v, order);
    else static_cast<Wide<T>*>(packed)[i] = v;
  }
}

template <class T, Order order>
__global__ void unpack_each(std::int64_t n, const void* packed, T* to, Wide<T> divisor) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    if constexpr (has_key<T>(order)) store(to + i, value<Wide<T>>(static_cast<const Bits<Wide<T>>*>(packed)[i]));
    else store(to + i, static_cast<Wide<T>>(static_cast<const Wide<T>*>(packed)[i] / divisor));
  }
}

template <class... P, class... A>
void launch(cudaStream_t stream, std::int64_t n, void (*kernel)(P...), A... arguments) {
  constexpr std::int64_t kThreads = 256, kBlocks = 4096;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(std::min((n + kThreads - 1) / kThreads, kBlocks)));
  config.blockDim = dim3(static_cast<unsigned>(kThreads));
  config.stream = stream;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA says: ") + cudaGetErrorString(error));
}

/// Calls f with a null pointer of the dtype's C++ type, for the dtypes that are packed or divided: floats and 16-bit
/// integers.
template <class F>
void for_type(DType dtype, F f) {
  dispatch(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (!std::is_integral_v<T> || sizeof(T) == 2) f(p);
    else throw std::logic_error("pack: a dtype that NCCL has");
  });
}

}  // namespace

DType packed_dtype(DType dtype, Reduction how) {
  if (packed_size(dtype, how) == 0) return dtype;
  if (dtype.is_float() && order_of(how) == Order::none) return DType(DType::kFloat32);
  return DType(packed_size(dtype, how) == 8 ? DType::kInt64 : DType::kInt32);
}

void pack(cudaStream_t stream, void* packed, const void* from, std::int64_t n, DType dtype, Reduction how) {
  for_type(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Order order = order_of(how);
    const auto kernel = order == Order::least  ? pack_each<T, Order::least>
                        : order == Order::most ? pack_each<T, Order::most>
                                               : pack_each<T, Order::none>;
    launch(stream, n, kernel, n, static_cast<const T*>(from), packed);
  });
}

void unpack(cudaStream_t stream, void* to, const void* packed, std::int64_t n, DType dtype, Reduction how,
            int divisor) {
  for_type(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    // All keys are read in the same way.
    const auto kernel = order_of(how) == Order::none ? unpack_each<T, Order::none> : unpack_each<T, Order::most>;
    launch(stream, n, kernel, n, packed, static_cast<T*>(to), static_cast<Wide<T>>(divisor));
  });
}

}  // namespace kassette::nccl

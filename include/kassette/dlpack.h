// include/kassette/dlpack.h - tensors of other libraries in the same process, not copied: DLPack. Opt-in:
// <kassette/dlpack.h>.
//
// The structs are those of DLPack's specification, so that a pointer from any library fits; they stand in a namespace
// of ours, so that a program can include DLPack's own header as well.
#ifndef KASSETTE_DLPACK_H
#define KASSETTE_DLPACK_H
#include <cstdint>
#include <type_traits>

#include <kassette/tensor.h>

namespace kassette {
namespace dlpack {

/// The kind of device that holds the elements: those of DLPack's kinds that kassette knows.
enum DLDeviceType : std::int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };
/// A device and its number.
struct DLDevice {
  DLDeviceType device_type;
  std::int32_t device_id;
};
/// What kind of number an element is.
enum DLDataTypeCode : std::uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};
/// An element type: a DLDataTypeCode, its bits, and how many numbers an element holds (1 for tensors).
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
/// An array of another library: memory, shape and strides, which it does not own.
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};
/// A DLTensor and its owner's deleter, which the receiver calls once.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

/// The version of the structs that a producer wrote.
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
/// Flags of DLManagedTensorVersioned.
inline constexpr std::uint64_t kReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY
inline constexpr std::uint64_t kIsCopied = 2;  // DLPACK_FLAG_BITMASK_IS_COPIED
/// The same as DLManagedTensor, with a version and flags.
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

}  // namespace dlpack

/// The tensor that DLPack describes, over the same memory; the producer's deleter is called once, when the last tensor
/// over it is gone, on whichever thread that happens. Memory that a tensor cannot share (strided, misaligned, or with a
/// bool that is neither 0 nor 1) is copied on the CPU, and the deleter is called at once. The elements must have been
/// computed already and must not change. Throws TypeError for dtypes that tensors do not support and for vectors
/// (lanes), DeviceError for devices other than CPU and CUDA, ValueError for invalid structs; `managed` then still
/// belongs to the caller.
KASSETTE_API Tensor from_dlpack(dlpack::DLManagedTensor* managed);
KASSETTE_API Tensor from_dlpack(dlpack::DLManagedTensorVersioned* managed);

/// The tensor's elements for another library, on the device where they are. They are kept until it calls the deleter,
/// on any thread. They must not be written to; only the versioned struct can say so. `stream`, a cudaStream_t, is the
/// consumer's stream on a CUDA device: work that is enqueued on it from now on sees the elements, and their memory is
/// reused only after all work that is on the stream when the deleter is called. Without a stream, this call and the
/// deleter wait for the device. Throws ValueError for a symbolic or sparse tensor.
KASSETTE_API dlpack::DLManagedTensor* to_dlpack(const Tensor& x, void* stream = nullptr);
KASSETTE_API dlpack::DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& x, void* stream = nullptr);

namespace detail {
template <class M, class = void>
struct OursOf {
  using type = dlpack::DLManagedTensor;
};
template <class M>
struct OursOf<M, std::void_t<decltype(std::declval<M&>().flags)>> {
  using type = dlpack::DLManagedTensorVersioned;
};
}  // namespace detail

/// The same with the structs of DLPack's own header: from_dlpack(managed), to_dlpack<::DLManagedTensor>(x).
template <class M, class = decltype(std::declval<M&>().dl_tensor)>
Tensor from_dlpack(M* managed) {
  using Ours = typename detail::OursOf<M>::type;
  static_assert(sizeof(M) == sizeof(Ours), "from_dlpack: a DLPack of another layout");
  return from_dlpack(reinterpret_cast<Ours*>(managed));
}
template <class M, class = decltype(std::declval<M&>().dl_tensor)>
M* to_dlpack(const Tensor& x, void* stream = nullptr) {
  using Ours = typename detail::OursOf<M>::type;
  static_assert(sizeof(M) == sizeof(Ours), "to_dlpack: a DLPack of another layout");
  if constexpr (std::is_same<Ours, dlpack::DLManagedTensor>::value) return reinterpret_cast<M*>(to_dlpack(x, stream));
  else return reinterpret_cast<M*>(to_dlpack_versioned(x, stream));
}

}  // namespace kassette

#endif  // KASSETTE_DLPACK_H

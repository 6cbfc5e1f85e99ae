// include/kassette/device.h - where a tensor's bytes are.
#ifndef KASSETTE_DEVICE_H
#define KASSETTE_DEVICE_H
#include <kassette/dtype.h>

namespace kassette {

/// "cpu" or "cuda:N". Device() means "not given". Throws DeviceError on another name; whether the device exists is
/// checked when a tensor is put on it.
class KASSETTE_API Device {
 public:
  enum Type : std::uint8_t { kNone, kCpu, kCuda };
  constexpr Device() : type_(kNone), index_(0) {}
  constexpr Device(NoneType) : type_(kNone), index_(0) {}
  constexpr Device(Type type, std::uint8_t index) : type_(type), index_(index) {}
  Device(const Device&) = default;
  Device& operator=(const Device&) & = default;
  void operator=(const Device&) && = delete;  // x.device() = d would change nothing: x = x.to(d)
  template <class N, class = decltype(Name(std::declval<const N&>()))>
  Device(const N& name) : Device(parse(Name(name))) {}
  constexpr Type type() const { return static_cast<Type>(type_); }
  constexpr int index() const { return index_; }
  constexpr bool given() const { return type_ != kNone; }
  friend constexpr bool operator==(Device a, Device b) { return a.type_ == b.type_ && a.index_ == b.index_; }
  friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, Device device);

 private:
  static Device parse(Name name);
  std::uint8_t type_, index_;
};
inline constexpr Device cpu{Device::kCpu, 0};

/// How a tensor is copied to another device.
struct ToOptions {
  /// The host does not wait for a copy if it need not: from pinned memory (<kassette/stream.h>) to a CUDA device.
  bool non_blocking = false;
};

/// The number of CUDA devices; "cuda:0" is the first. 0 if there is no driver or no library for them.
KASSETTE_API int device_count();
/// The maker's name for a device, such as "NVIDIA H100 80GB HBM3"; "cpu" for the CPU. The text stays valid. Throws
/// DeviceError if there is no such device.
KASSETTE_API const char* device_name(Device device);
/// Waits until a device has done all work that this process has enqueued. Throws DeviceError if any of it failed.
KASSETTE_API void synchronize(Device device);
/// Whether products of float32 on CUDA devices, those of convolutions included, may be computed in TF32: on tensor
/// cores, with 10 of the 23 mantissa bits of each factor. Initially false unless KASSETTE_ALLOW_TF32 is 1.
KASSETTE_API bool allow_tf32();
KASSETTE_API void set_allow_tf32(bool allow);
/// Whether cuDNN, where it is installed, computes convolution and pooling on CUDA devices, by deterministic algorithms.
/// Initially true unless KASSETTE_CUDNN is 0.
KASSETTE_API bool allow_cudnn();
KASSETTE_API void set_allow_cudnn(bool allow);

}  // namespace kassette

#endif  // KASSETTE_DEVICE_H

// core/device.h - where a tensor's bytes are.
#ifndef KASSETTE_DEVICE_H
#define KASSETTE_DEVICE_H
#include <kassette/dtype.h>

namespace kassette {

/// "cpu" or "cuda:N". Zero means "not given". Throws DeviceError on another name; whether the device exists is checked
/// when a tensor is put on it.
class KASSETTE_API Device {
 public:
  enum Type : std::uint8_t { kNone, kCpu, kCuda };
  constexpr Device() : type_(kNone), index_(0) {}
  constexpr Device(NoneType) : type_(kNone), index_(0) {}
  constexpr Device(Type type, std::uint8_t index) : type_(type), index_(index) {}
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

}  // namespace kassette

#endif  // KASSETTE_DEVICE_H

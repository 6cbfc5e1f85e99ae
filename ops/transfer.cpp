// ops/transfer.cpp - the same value on another device.
#include <map>
#include <mutex>
#include <tuple>

#include "core/sparse.h"
#include "ops/elementwise.h"
#include "ops/shaping.h"

#include "core/text.h"

namespace kassette {
namespace {

Device target(const Attrs& attrs) {
  return Device(static_cast<Device::Type>(attrs.a), static_cast<std::uint8_t>(attrs.b));
}

void kernel(const Call& call) {
  Body& out = *call.out[0];
  const Body& in = *call.in[0].body;
  Device to = target(call.attrs);
  std::int64_t bytes = out.bytes();
  allocate_output(out, to);
  out.device = to;
  if (bytes == 0) return;
  if (in.device == cpu) {
    backend_of(to).copy_from_host(out.data(), call.in[0].data, bytes);
  } else if (to == cpu) {
    backend_of(in.device).copy_to_host(out.data(), call.in[0].data, bytes);
  } else {   // between two accelerators: by way of the host
    Ref<Storage> landed = Storage::allocate(bytes, cpu);
    backend_of(in.device).copy_to_host(landed->data, call.in[0].data, bytes);
    backend_of(to).copy_from_host(out.data(), landed->data, bytes);
  }
}

void gradient(const Rewind& r) { r.din(0) = r.dy().to(r.node.in()[0].device); }

/// Numbers on accelerators, by device, dtype and bits.
struct Numbers {
  static constexpr std::size_t kMost = 1024;
  std::mutex mutex;
  std::map<std::tuple<int, int, std::uint64_t>, Tensor> held;
};
Numbers& numbers() {
  static Numbers* all = new Numbers;   // never destroyed: the device may be gone before static objects are
  return *all;
}

}  // namespace

Tensor scalar_on(const Body& scalar, Device device) {
  if (scalar.node || scalar.flags || !scalar.storage) return Access::wrap(scalar).to(device);
  std::uint64_t bits = 0;
  std::memcpy(&bits, scalar.data(), static_cast<std::size_t>(scalar.dtype.size()));
  Numbers& n = numbers();
  std::lock_guard<std::mutex> lock(n.mutex);
  if (n.held.size() == Numbers::kMost) n.held.clear();   // what tensors still use stays with them
  Tensor& t = n.held[{device.index(), scalar.dtype.code(), bits}];
  if (!t.defined()) t = Access::wrap(scalar).to(device);
  return t;
}
void forget_scalars() {
  Numbers& n = numbers();
  std::lock_guard<std::mutex> lock(n.mutex);
  n.held.clear();
}

// The kernel runs on the host whichever end is the accelerator, so it fills both columns.
constinit const OpDef to_row{
    .name = "to", .rule = same_rule, .cpu = kernel, .vjp = gradient, .traits = kView, .cuda = kernel};

Tensor Tensor::to(Device device) const {
  if (!defined()) fail<ValueError>("to: an empty Tensor (an uninitialised variable?)");
  if (!device.given()) fail<ValueError>("to: no device given; there are 'cpu' and 'cuda:N'");
  if (device == this->device()) return *this;
  if (is_sparse(*this)) return with_values(*this, sparse_part(*this, kValues).to(device));
  backend_of(device);   // an absent device is said here, on symbolic tensors too
  Attrs attrs;
  attrs.a = device.type();
  attrs.b = device.index();
  Tensor out = apply1(to_row, attrs, {*this});
  Access::body(out).device = device;
  return out;
}

}  // namespace kassette

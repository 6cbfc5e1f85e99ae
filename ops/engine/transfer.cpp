// ops/engine/transfer.cpp - Tensor::to, scalars cached on accelerators, and pin_memory.
#include <kassette/stream.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/convert.h"
#include "core/sparse.h"
#include "core/text.h"
#include "devices/plugin.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

struct TransferAttrs {
  static constexpr const char* attrs_name = "to";
  Device device;
  bool non_blocking;
};

void kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  const TensorDesc& in = *call.in[0].desc;
  Device to = call.attrs.as<TransferAttrs>().device;
  std::int64_t bytes = out.bytes();
  allocate_output(out, to);
  out.device = to;
  if (bytes == 0) return;
  if (to == cpu) {
    device_api(in.device).copy_to_host(out.data(), call.in[0].data, bytes);
  } else if (in.device != cpu) {
    devices::cuda_device_api(to).copy_from(devices::cuda_device_api(in.device), out.data(), call.in[0].data, bytes);
  } else if (bytes == out.dtype.size()) {  // a number
    fill_elements(to, out.data(), 1, call.in[0].data, out.dtype.size());
  } else if (call.attrs.as<TransferAttrs>().non_blocking && in.storage) {
    // A descriptor without storage is a variable, whose cell may have another value by now.
    Ref<Storage> held = in.storage;
    const Owner keep{[](void* storage) { Ref<Storage>::adopt(static_cast<Storage*>(storage)); }, held.release()};
    devices::cuda_device_api(to).copy_from_host_later(out.data(), call.in[0].data, bytes, keep);
  } else {
    device_api(to).copy_from_host(out.data(), call.in[0].data, bytes);
  }
}

void gradient(const VjpContext& ctx) { ctx.din(0) = ctx.dy().to(ctx.node.in()[0].device); }

/// A cache of scalars on accelerators. The stream is part of the key: a copy made on one may not have arrived when
/// another reads it.
struct Numbers {
  static constexpr std::size_t kMost = 1024;
  std::mutex mutex;
  std::map<void*, std::map<std::pair<int, std::uint64_t>, Tensor>> held;
};
Numbers& numbers() {
  static Numbers* all = new Numbers;  // never destroyed: the device may be gone before static objects are
  return *all;
}

}  // namespace

Tensor scalar_on(const TensorDesc& scalar, Device device) {
  if (scalar.node || scalar.flags || !scalar.storage) return Access::wrap(scalar).to(device);
  std::uint64_t bits = 0;
  std::memcpy(&bits, scalar.data(), static_cast<std::size_t>(scalar.dtype.size()));
  const devices::NotCaptured now(devices::cuda_device_api(device));
  Numbers& n = numbers();
  std::lock_guard<std::mutex> lock(n.mutex);
  auto& held = n.held[device_api(device).stream()];
  if (held.size() == Numbers::kMost) held.clear();  // scalars in use are kept alive by their tensors
  Tensor& t = held[{scalar.dtype.code(), bits}];
  if (!t.defined()) t = Access::wrap(scalar).to(device);
  return t;
}
Tensor number_on(const Tensor& t, Device device) {
  const TensorDesc& b = Access::desc(t);
  return b.device == cpu && device != cpu && b.rank == 0 ? scalar_on(b, device) : t;
}
void clear_scalar_cache() {
  Numbers& n = numbers();
  std::lock_guard<std::mutex> lock(n.mutex);
  n.held.clear();
}

Placement placement(const Attrs& attrs) { return {DType(), attrs.as<TransferAttrs>().device}; }

// The kernel runs on the host, whether the source or the target of the copy is the accelerator, so it serves as both
// cpu and cuda kernel. Functions find chains by the devices of values before any kernel runs, so the device of the
// result is given by `placement`, not by the input.
constinit const OpDef to_op{.name = "to",
                            .rule = same_rule,
                            .cpu = kernel,
                            .vjp = gradient,
                            .traits = kView,
                            .anywhere = true,
                            .placement = placement,
                            .cuda = kernel};

}  // namespace kassette::ops

namespace kassette {
using namespace ops;

Tensor Tensor::to(Device device, ToOptions options) const {
  if (!defined()) fail_empty({"to"});
  if (!device.given()) fail<ValueError>({"to", "device"}, "is None", kExpected, "there are 'cpu' and 'cuda:N'");
  if (device == this->device()) return *this;
  if (is_sparse(*this)) return with_values(*this, sparse_part(*this, kValues).to(device, options));
  device_api(device);  // throws if the device is absent, for symbolic tensors too
  return apply1(to_op, TransferAttrs{device, options.non_blocking}, {*this});
}

Tensor pin_memory(const Tensor& x) {
  if (!x.defined()) fail_empty({"pin_memory"});
  const TensorDesc& b = Access::desc(x);
  if (is_sparse(b)) fail<ValueError>({"pin_memory"}, "a sparse tensor", kRemedy, "K::to_dense makes it dense");
  if (x.symbolic()) fail<ValueError>({"pin_memory"}, "a symbolic tensor, which has no value");
  const Device place = context().default_device == cpu ? Device(Device::kCuda, 0) : context().default_device;
  if (device_absent(place)) return x;
  const Tensor here = x.device() == cpu ? x : x.to(cpu);
  const std::int64_t bytes = b.bytes();
  if (bytes == 0) return here.detach();
  struct Pinned {
    void* data;
    std::int64_t bytes;
  };
  auto pinned = std::make_unique<Pinned>(Pinned{device_moves().allocate_pinned(bytes), bytes});
  if (!pinned->data) fail<MemoryError>({"pin_memory"}, bytes, " bytes cannot be pinned");
  const Value value = concrete_value(Access::desc(here), "pin_memory");
  std::memcpy(pinned->data, static_cast<std::byte*>(value.storage->data) + value.offset,
              static_cast<std::size_t>(bytes));
  TensorDesc out;
  out.set(b);
  out.device = cpu;
  out.storage = Storage::borrow(pinned->data, bytes,
                                {[](void* state) {
                                   std::unique_ptr<Pinned> held(static_cast<Pinned*>(state));
                                   device_moves().release_pinned(held->data, held->bytes);
                                 },
                                 pinned.get()});
  static_cast<void>(pinned.release());  // the storage owns it
  return Access::wrap(std::move(out));
}

}  // namespace kassette

// core/dlpack.cpp - sharing tensors with other libraries in the process, without copies (DLPack).
#include <kassette/dlpack.h>
#include <kassette/stream.h>

#include <memory>

#include "core/convert.h"
#include "core/sparse.h"
#include "core/rank.h"

namespace kassette {
namespace {

using namespace dlpack;

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80,
              "DLPack's layout");

DLDataType exported_dtype(DType dtype) {
  DLDataTypeCode code = dtype.is_bool()       ? kDLBool
                        : dtype == bfloat16   ? kDLBfloat
                        : dtype.is_float()    ? kDLFloat
                        : dtype.is_unsigned() ? kDLUInt
                                              : kDLInt;
  return {code, static_cast<std::uint8_t>(8 * dtype.size()), 1};
}

// ---- in -------------------------------------------------------------------------------------------------------------

DType imported_dtype(DLDataType t) {
  if (t.lanes != 1)
    fail<TypeError>({"from_dlpack"}, "elements of ", t.lanes, " lanes", kExpected, "a tensor's have one");
  for (DType dtype : kAllDTypes)
    if (const DLDataType d = exported_dtype(dtype); d.code == t.code && d.bits == t.bits) return dtype;
  constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  std::string name = t.code < std::size(kNames) ? kNames[t.code] : text("type code ", int(t.code), " of bits ");
  fail<TypeError>({"from_dlpack"}, "a tensor has no dtype ", name, int(t.bits));
}

Device imported_device(DLDevice d) {
  if (d.device_type == kDLCPU || d.device_type == kDLCUDAHost) return cpu;
  if (d.device_type != kDLCUDA)
    fail<DeviceError>({"from_dlpack"}, "device type ", int(d.device_type), kExpected,
                      "it must be CPU (1, 3) or CUDA (2)");
  if (d.device_id < 0 || d.device_id > 255) fail<DeviceError>({"from_dlpack"}, "CUDA device ", d.device_id);
  Device device(Device::kCuda, static_cast<std::uint8_t>(d.device_id));
  device_api(device);  // throws if it is absent
  return device;
}

TensorSpec imported_spec(const DLTensor& t) {
  TensorSpec spec(imported_dtype(t.dtype), {});
  const std::int8_t rank = checked_rank("from_dlpack", t.ndim);
  if (t.ndim && !t.shape) fail<ValueError>({"from_dlpack"}, t.ndim, " axes and no shape");
  spec.rank = rank;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) fail<ValueError>({"from_dlpack"}, "a size of ", t.shape[i], " along axis ", i);
    spec.dims[i] = t.shape[i];
  }
  if (spec.checked_bytes("from_dlpack") && !t.data)
    fail<ValueError>({"from_dlpack"}, "a null pointer for the shape ", spec);
  return spec;
}

bool is_row_major(const DLTensor& t, const TensorSpec& spec) {
  if (!t.strides) return true;
  std::int64_t expected = 1;
  for (int i = t.ndim; i-- > 0;) {
    if (spec.dims[i] != 1 && t.strides[i] != expected) return false;
    expected *= spec.dims[i];
  }
  return true;
}

TensorDesc copied(const DLTensor& t, const TensorSpec& spec, const std::byte* from) {
  TensorDesc b;
  b.set(spec);
  b.device = cpu;
  b.storage = Storage::allocate(spec.bytes(), cpu);
  copy_strided(b.data(), spec, from, t.strides);
  return b;
}

template <class M>
void let_go(M* managed) {
  if (managed->deleter) managed->deleter(managed);
}
template <class M>
void release(void* managed) {
  let_go(static_cast<M*>(managed));
}
/// Once the deleter has been called, the producer may reuse the memory at once, on a stream of its own.
template <class M>
void release_on_device(void* managed) {
  auto* m = static_cast<M*>(managed);
  try {
    device_api(Device(Device::kCuda, static_cast<std::uint8_t>(m->dl_tensor.device.device_id))).synchronize();
  } catch (const Error&) {  // a device that failed has nothing under way, and this may run while the program ends
  }
  let_go(m);
}

template <class M>
Tensor imported(M* managed) {
  const DLTensor& t = managed->dl_tensor;
  const TensorSpec spec = imported_spec(t);
  const Device device = imported_device(t.device);
  const bool on_cpu = device == cpu, empty = spec.numel() == 0;
  const std::byte* data = empty ? nullptr : static_cast<const std::byte*>(t.data) + t.byte_offset;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(spec.dtype.size()) == 0;
  const bool row_major = empty || is_row_major(t, spec);
  if (!on_cpu && !(row_major && aligned))
    fail<ValueError>({"from_dlpack"}, spec, " ", spec.dtype, " on ", device, " is not row-major in one aligned piece",
                     kRemedy, "make it contiguous first");
  TensorDesc b;
  if (on_cpu && !(row_major && aligned && (!spec.dtype.is_bool() || holds_bools(data, spec.numel())))) {
    b = copied(t, spec, data);
    let_go(managed);
  } else {
    b.set(spec);
    b.device = device;
    b.storage = Storage::borrow(data, spec.bytes(), {on_cpu ? release<M> : release_on_device<M>, managed});
    b.storage->device = device;
  }
  return Access::wrap(std::move(b));
}

// ---- out ------------------------------------------------------------------------------------------------------------

template <class M>
struct Exported {
  M managed{};
  Ref<Storage> storage;
  std::int64_t shape[kMaxRank], strides[kMaxRank];
  Device device;
  void* stream = nullptr;

  /// We reuse the memory in the order of our stream, which therefore has to wait for the consumer's work.
  ~Exported() {
    if (device.type() != Device::kCuda) return;
    try {
      if (stream) current_stream(device).wait_for(Stream(device, stream));
      else synchronize(device);
    } catch (const Error&) {  // a device that failed has nothing under way, and this may run while the program ends
    }
  }
};

template <class M>
M* exported(const Tensor& x, void* stream, const char* what) {
  if (!x.defined()) fail_empty({what});
  const TensorDesc& b = Access::desc(x);
  if (is_sparse(b)) fail<ValueError>({what}, "a sparse tensor", kRemedy, "K::to_dense makes it dense");
  Value v = concrete_value(b, what);
  if (b.device != cpu && stream) Stream(b.device, stream).wait_for(current_stream(b.device));
  else if (b.device != cpu) synchronize(b.device);  // the consumer may use any stream
  auto e = std::make_unique<Exported<M>>();
  DLTensor& t = e->managed.dl_tensor;
  std::int64_t stride = 1;
  for (int i = b.rank; i-- > 0;) {
    e->shape[i] = b.dims[i];
    e->strides[i] = stride;
    stride *= b.dims[i];
  }
  t.data = stride ? static_cast<std::byte*>(v.storage->data) + v.offset : nullptr;
  t.device = {b.device == cpu ? kDLCPU : kDLCUDA, b.device.index()};
  t.ndim = b.rank;
  t.dtype = exported_dtype(b.dtype);
  t.shape = e->shape;
  t.strides = e->strides;
  e->storage = std::move(v.storage);
  e->device = b.device;
  e->stream = stream;
  e->managed.manager_ctx = e.get();
  e->managed.deleter = [](M* self) { delete static_cast<Exported<M>*>(self->manager_ctx); };
  return &e.release()->managed;
}

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed) {
  if (!managed) fail<ValueError>({"from_dlpack"}, "a null pointer");
  return imported(managed);
}
Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  if (!managed) fail<ValueError>({"from_dlpack"}, "a null pointer");
  // In another major version only the version and the deleter are sure to be at these offsets.
  if (managed->version.major != 1)
    fail<ValueError>({"from_dlpack"}, "DLPack version ", managed->version.major, ".", managed->version.minor, kExpected,
                     "it must be 1.x");
  return imported(managed);
}

DLManagedTensor* to_dlpack(const Tensor& x, void* stream) { return exported<DLManagedTensor>(x, stream, "to_dlpack"); }
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& x, void* stream) {
  auto* m = exported<DLManagedTensorVersioned>(x, stream, "to_dlpack_versioned");
  m->version = {1, 0};
  m->flags = kReadOnly;
  return m;
}

}  // namespace kassette

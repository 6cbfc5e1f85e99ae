// core/tensor.cpp - Tensor and Tensors: reference counts, properties, reading values.
#include <kassette/tensor.h>

#include <algorithm>
#include <new>

#include "core/convert.h"
#include "core/external_backend_access.h"
#include "core/large_vector.h"
#include "core/sparse.h"
#include "core/text.h"

namespace kassette {
namespace {

const TensorDesc& desc_of(const Tensor& t, const char* what) {
  if (!t.defined()) fail_empty({what});
  return Access::desc(t);
}

}  // namespace

Operand::Operand(std::initializer_list<Operand> items)
    : Scalar(kList, DType(), items.size(), static_cast<const void*>(items.begin())) {}

Index::Index(Name text, int)
    : kind_(kText), has_(0), start_(0), stop_(static_cast<std::int64_t>(text.size())), step_(1), pointer_(text.data()) {
}

Tensor::Tensor(const Tensor& other) noexcept : impl_(other.impl_) {
  if (impl_) impl_->count.fetch_add(1, std::memory_order_relaxed);
}
Tensor& Tensor::operator=(const Tensor& other) & noexcept {
  Tensor copy(other);
  std::swap(impl_, copy.impl_);
  return *this;
}
Tensor::~Tensor() { Ref<TensorImpl>::drop(impl_); }

Shape Tensor::shape() const { return desc_of(*this, "shape").shape(); }
int Tensor::ndim() const { return desc_of(*this, "ndim").rank; }
std::int64_t Tensor::size() const {
  const TensorDesc& b = desc_of(*this, "size");
  if (!b.known()) fail<ValueError>({"size"}, b.shape(), " has an unknown size", kRemedy, "use K::size(x)");
  return b.numel();
}
DType Tensor::dtype() const { return desc_of(*this, "dtype").dtype; }
Device Tensor::device() const { return desc_of(*this, "device").device; }
bool Tensor::symbolic() const { return impl_ && impl_->desc.symbolic(); }

const void* Tensor::data(DType dtype) const& {
  const TensorDesc& b = desc_of(*this, "data");
  if (b.dtype != dtype) fail<TypeError>({"data"}, "the tensor is ", b.dtype, ", asked for as ", dtype);
  if (b.device.type() != Device::kCpu)
    fail<DeviceError>({"data"}, "the tensor is on ", b.device, kRemedy, "use .to(\"cpu\")");
  Value v = concrete_value(b, "data");
  return static_cast<const std::byte*>(v.storage->data) + v.offset;
}
namespace {

/// host_copy for the function `what`, which error messages name.
Tensor copied_for(const char* what, const Tensor& x, DType dtype) {
  const TensorDesc& b = desc_of(x, what);
  Value v = concrete_value(b, what);
  std::int64_t n = b.numel();
  TensorDesc out;
  out.set(b);
  out.dtype = dtype;
  out.device = cpu;
  out.storage = Storage::allocate(n * dtype.size(), cpu);
  const std::byte* from = static_cast<const std::byte*>(v.storage->data) + v.offset;
  Ref<Storage> landed;
  if (b.device.type() != Device::kCpu && n) {
    landed = Storage::allocate(n * b.dtype.size(), cpu);
    device_api(b.device).copy_to_host(landed->data, from, n * b.dtype.size());
    from = static_cast<const std::byte*>(landed->data);
  }
  convert(out.data(), dtype, from, b.dtype, n);
  return Access::wrap(std::move(out));
}

}  // namespace

Tensor host_copy(const Tensor& x, DType dtype) { return copied_for("to_vector", x, dtype); }

void Tensor::item(void* value, DType dtype) const {
  const TensorDesc& b = desc_of(*this, "item");
  if (!b.known() || b.numel() != 1)
    fail<ValueError>({"item"}, "a tensor of shape ", b.shape(), " has not exactly one element");
  Tensor host = copied_for("item", *this, dtype);
  std::memcpy(value, Access::desc(host).data(), static_cast<std::size_t>(dtype.size()));
}
Tensor Tensor::detach() const {
  const TensorDesc& b = desc_of(*this, "detach");
  if (is_sparse(b) && !b.symbolic()) {
    Tensor values = sparse_part(*this, kValues).detach();
    return make_sparse(sparse_part(*this, kIndices), values, sparse_part(*this, kDenseShape), b);
  }
  Value v = concrete_value(b, "detach");
  TensorDesc d;
  d.set(b);
  d.device = b.device;
  d.storage = std::move(v.storage);
  d.offset = v.offset;
  return Access::wrap(std::move(d));
}

Value concrete_value(const TensorDesc& b, const char* what) {
  if (b.flags & kForeign) fail_foreign(what, b);
  if (is_sparse(b)) fail_sparse({what}, b);
  if (b.symbolic())
    fail<ValueError>({what}, "the tensor ", b.shape(), " is symbolic: it depends on a placeholder or was built in a ",
                     "symbolic scope", kRemedy, "K::function or K::eval gives its value");
  if (b.storage) return {b.storage, b.offset};
  if (!(b.flags & kLeaf)) fail<RuntimeError>({what}, "the value of the tensor ", b.shape(), " was not kept");
  Value v = b.node->cell->load();
  if (!v.storage) fail_unset({what}, *b.node->cell);
  return v;
}

// --- lists -----------------------------------------------------------------------------------------------------------

namespace {

// Every call makes lists, so their blocks are pooled.
Tensor* list_block(std::int64_t n) {
  std::size_t bytes = sizeof(Tensor) * n;
  return static_cast<Tensor*>(bytes <= kMaxPooled ? pool_allocate(context(), bytes) : list_memory(bytes));
}
void free_list_block(Tensor* data, std::int64_t n) {
  if (!data) return;
  std::size_t bytes = sizeof(Tensor) * n;
  if (bytes <= kMaxPooled) pool_free(context(), data, bytes);
  else free_list_memory(data, bytes);
}

}  // namespace

Tensors::Tensors(const Tensor& one) : Tensors() {
  reserve(1);
  push_back(one);
}
Tensors::Tensors(const Tensors& other) : Tensors() {
  reserve(other.size_);
  for (const Tensor& t : other) push_back(t);
}
Tensors& Tensors::operator=(const Tensors& other) {
  if (this != &other) *this = Tensors(other);
  return *this;
}
Tensors& Tensors::operator=(Tensors&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}
Tensors::~Tensors() {
  clear();
  free_list_block(data_, capacity_);
}
void Tensors::clear() {
  for (std::int64_t i = 0; i < size_; ++i) data_[i].~Tensor();
  size_ = 0;
}
void Tensors::reserve(std::int64_t n) {
  if (n <= capacity_) return;
  Tensor* data = list_block(n);
  for (std::int64_t i = 0; i < size_; ++i) {
    new (data + i) Tensor(std::move(data_[i]));
    data_[i].~Tensor();
  }
  free_list_block(data_, capacity_);
  data_ = data;
  capacity_ = n;
}
void Tensors::push_back(Tensor tensor) {
  if (size_ == capacity_) reserve(std::max<std::int64_t>(4, size_ * 2));
  new (data_ + size_++) Tensor(std::move(tensor));
}
namespace {
std::int64_t place(std::int64_t i, std::int64_t n) {
  std::int64_t at = i < 0 ? i + n : i;
  if (at < 0 || at >= n) fail<ValueError>({"Tensors"}, "index ", i, " of a list of ", n);
  return at;
}
}  // namespace
const Tensor& Tensors::operator[](std::int64_t i) const& { return data_[place(i, size_)]; }
Tensor& Tensors::operator[](std::int64_t i) & { return data_[place(i, size_)]; }
Tensor Tensors::operator[](std::int64_t i) && { return data_[place(i, size_)]; }

}  // namespace kassette

// tests/core/dlpack_test.cpp - tensors of other libraries in the same process.
#include <kassette/dlpack.h>

#include <kassette/backend.h>
#include <kassette/borrow.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "core/convert.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>

#include <cstddef>
#define KASSETTE_HAS_DLPACK
#endif

using namespace kassette;
using kassette::test::place;
namespace dl = kassette::dlpack;
namespace K = kassette::backend;

namespace {

/// A tensor as another library would export it; counts the calls of its deleter.
template <class M>
struct Producer {
  std::vector<std::int64_t> shape, strides;
  M managed{};
  int deleted = 0;
  Producer(void* data, dl::DLDataType dtype, const std::vector<std::int64_t>& dims,
           const std::vector<std::int64_t>& steps = {}, std::uint64_t byte_offset = 0)
      : shape(dims), strides(steps) {
    managed.dl_tensor = {data,       {dl::kDLCPU, 0}, static_cast<std::int32_t>(shape.size()),
                         dtype,      shape.data(),    steps.empty() ? nullptr : strides.data(),
                         byte_offset};
    managed.manager_ctx = this;
    managed.deleter = [](M* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 1};
  }
};
using Classic = Producer<dl::DLManagedTensor>;
using Versioned = Producer<dl::DLManagedTensorVersioned>;
constexpr dl::DLDataType kFloats{dl::kDLFloat, 32, 1}, kInts{dl::kDLInt, 32, 1}, kBools{dl::kDLBool, 8, 1};

std::vector<double> list(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("an imported tensor lies over the producer's memory, which is released once", "[dlpack]") {
  std::vector<float> v{1, 2, 3, 4, 5, 6};
  Classic classic(v.data(), kFloats, {2, 3});
  Tensor t = from_dlpack(&classic.managed);
  CHECK(t.data<float>() == v.data());
  CHECK(t.shape() == Shape{2, 3});
  CHECK(t.dtype() == float32);
  Tensor again = t.detach();
  t = Tensor();
  CHECK(classic.deleted == 0);
  std::thread([again = std::move(again)]() mutable { again = Tensor(); }).join();
  CHECK(classic.deleted == 1);

  Versioned versioned(v.data(), kFloats, {6}, {1}, 8);
  versioned.managed.flags = dl::kReadOnly;
  versioned.managed.dl_tensor.shape[0] = 4;
  t = from_dlpack(&versioned.managed);
  CHECK(t.data<float>() == v.data() + 2);
  t = Tensor();
  CHECK(versioned.deleted == 1);
}

TEST_CASE("an update of a variable does not write into imported memory", "[dlpack]") {
  std::vector<float> v{1, 2, 3};
  Classic p(v.data(), kFloats, {3});
  Tensor w = K::variable(from_dlpack(&p.managed));
  K::update_add(w, K::constant({1, 1, 1}));
  CHECK(list(w) == std::vector<double>{2, 3, 4});
  CHECK(v == std::vector<float>{1, 2, 3});
}

TEST_CASE("strides, broadcast axes and negative steps are copied in order", "[dlpack]") {
  std::vector<std::int32_t> v{1, 2, 3, 4, 5, 6};
  Classic transposed(v.data(), kInts, {3, 2}, {1, 3});
  Tensor t = from_dlpack(&transposed.managed);
  CHECK(transposed.deleted == 1);
  CHECK(list(t) == std::vector<double>{1, 4, 2, 5, 3, 6});
  Classic broadcast(v.data(), kInts, {2, 3}, {0, 1});
  CHECK(list(from_dlpack(&broadcast.managed)) == std::vector<double>{1, 2, 3, 1, 2, 3});
  Classic backwards(v.data() + 5, kInts, {6}, {-1});
  CHECK(list(from_dlpack(&backwards.managed)) == std::vector<double>{6, 5, 4, 3, 2, 1});
  Classic single(v.data(), kInts, {1, 6}, {77, 1});  // the step of an axis of size 1 means nothing
  CHECK(place<std::int32_t>(from_dlpack(&single.managed)) == v.data());
}

TEST_CASE("a misaligned address is copied", "[dlpack]") {
  alignas(8) char bytes[1 + 3 * 4];
  std::int32_t v[3] = {7, -8, 9};
  std::memcpy(bytes + 1, v, sizeof v);
  Classic p(bytes, kInts, {3}, {}, 1);
  CHECK(list(from_dlpack(&p.managed)) == std::vector<double>{7, -8, 9});
  CHECK(p.deleted == 1);
}

TEST_CASE("bools lie over the producer's memory unless a byte is neither 0 nor 1", "[dlpack]") {
  std::vector<std::uint8_t> v{0, 1, 1, 0};
  Classic clean(v.data(), kBools, {4});
  CHECK(place<bool>(from_dlpack(&clean.managed)) == static_cast<void*>(v.data()));
  v[2] = 200;
  Classic other(v.data(), kBools, {2, 2}, {2, 1});
  Tensor t = from_dlpack(&other.managed);
  CHECK(other.deleted == 1);
  std::uint8_t bytes[4];
  std::memcpy(bytes, t.data<bool>(), 4);
  CHECK(std::vector<int>(bytes, bytes + 4) == std::vector<int>{0, 1, 1, 0});
}

TEST_CASE("rank 0 and empty tensors are imported", "[dlpack]") {
  double v = 5;
  Classic one(&v, {dl::kDLFloat, 64, 1}, {});
  CHECK(from_dlpack(&one.managed).item<double>() == 5);
  Classic none(nullptr, kFloats, {2, 0}, {7, 7});
  CHECK(from_dlpack(&none.managed).shape() == Shape{2, 0});
  CHECK(none.deleted == 1);
}

TEST_CASE("what cannot be imported is one line, and still belongs to the caller", "[dlpack]") {
  std::vector<float> v(6);
  auto refuse = [&](auto&& edit, const char* message) {
    Versioned p(v.data(), kFloats, {2, 3}, {3, 1});
    edit(p.managed);
    CHECK_THROWS_WITH(from_dlpack(&p.managed), message);
    CHECK(p.deleted == 0);
  };
  refuse([](auto& m) { m.dl_tensor.dtype.lanes = 4; }, "from_dlpack: elements of 4 lanes; a tensor's have one");
  refuse([](auto& m) { m.dl_tensor.dtype = {dl::kDLComplex, 64, 1}; }, "from_dlpack: a tensor has no dtype complex64");
  refuse([](auto& m) { m.dl_tensor.dtype = {dl::kDLUInt, 4, 1}; }, "from_dlpack: a tensor has no dtype uint4");
  refuse([](auto& m) { m.dl_tensor.dtype = {dl::kDLBool, 1, 1}; }, "from_dlpack: a tensor has no dtype bool1");
  for (std::uint8_t code : {7, 10}) {  // 7: the first that has no name
    const std::string message = "from_dlpack: a tensor has no dtype type code " + std::to_string(code) + " of bits 8";
    refuse([code](auto& m) { m.dl_tensor.dtype = {code, 8, 1}; }, message.c_str());
  }
  refuse([](auto& m) { m.dl_tensor.device.device_type = static_cast<dl::DLDeviceType>(10); },
         "from_dlpack: device type 10; it must be CPU (1, 3) or CUDA (2)");
  refuse([](auto& m) { m.dl_tensor.ndim = 9; }, "from_dlpack: rank 9; a tensor has 0 to 8 axes");
  refuse([](auto& m) { m.dl_tensor.ndim = -1; }, "from_dlpack: rank -1; a tensor has 0 to 8 axes");
  refuse([](auto& m) { m.dl_tensor.shape = nullptr; }, "from_dlpack: 2 axes and no shape");
  refuse([](auto& m) { m.dl_tensor.shape[1] = -3; }, "from_dlpack: a size of -3 along axis 1");
  refuse([](auto& m) { m.dl_tensor.data = nullptr; }, "from_dlpack: a null pointer for the shape (2, 3)");
  refuse([](auto& m) { m.version = {2, 0}; }, "from_dlpack: DLPack version 2.0; it must be 1.x");
  Versioned huge(v.data(), kFloats, {std::int64_t(1) << 40, std::int64_t(1) << 40});
  CHECK_THROWS_AS(from_dlpack(&huge.managed), ValueError);
  CHECK_THROWS_WITH(from_dlpack(static_cast<dl::DLManagedTensor*>(nullptr)), "from_dlpack: a null pointer");
  CHECK_THROWS_WITH(to_dlpack(Tensor()),
                    "to_dlpack: an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_AS(to_dlpack(K::placeholder({2})), ValueError);
  CHECK_THROWS_AS(to_dlpack_versioned(K::to_sparse(K::constant({0, 1}))), ValueError);
}

TEST_CASE("an exported tensor is kept until its deleter is called", "[dlpack]") {
  std::vector<float> v{1, 2, 3, 4, 5, 6};
  int released = 0;
  Tensor t = borrow(v, {2, 3}, [&released] { ++released; });
  dl::DLManagedTensor* classic = to_dlpack(t);
  dl::DLManagedTensorVersioned* versioned = to_dlpack_versioned(t);
  t = Tensor();
  CHECK(versioned->version.major == 1);
  CHECK(versioned->flags == dl::kReadOnly);
  for (const dl::DLTensor* d : {&classic->dl_tensor, &versioned->dl_tensor}) {
    CHECK(d->data == v.data());
    CHECK(d->device.device_type == dl::kDLCPU);
    CHECK(d->device.device_id == 0);
    CHECK(std::vector<std::int64_t>(d->shape, d->shape + d->ndim) == std::vector<std::int64_t>{2, 3});
    CHECK(std::vector<std::int64_t>(d->strides, d->strides + d->ndim) == std::vector<std::int64_t>{3, 1});
    CHECK(d->byte_offset == 0);
  }
  std::thread([=] { classic->deleter(classic); }).join();
  CHECK(released == 0);
  versioned->deleter(versioned);
  CHECK(released == 1);
}

TEST_CASE("every dtype goes out and comes back over the same memory", "[dlpack]") {
  for (DType dtype : kAllDTypes) {
    CAPTURE(dtype.name());
    Tensor x = K::cast(K::constant({{1, 0, 3}, {4, 5, 6}}), dtype);
    dl::DLManagedTensor* m = to_dlpack(x);
    CHECK(m->dl_tensor.dtype.bits == 8 * dtype.size());
    CHECK(m->dl_tensor.dtype.lanes == 1);
    Tensor y = from_dlpack(m);
    CHECK(y.dtype() == dtype);
    CHECK(y.data(dtype) == x.data(dtype));
    Tensor z = from_dlpack(to_dlpack_versioned(x[1]));
    CHECK(list(z) == list(x[1]));
  }
  CHECK(from_dlpack(to_dlpack(K::constant(5))).shape() == Shape{});
  CHECK(from_dlpack(to_dlpack(K::zeros({3, 0}))).shape() == Shape{3, 0});
}

TEST_CASE("what was exported of a variable stays as it was", "[dlpack]") {
  Tensor v = K::variable({1, 2, 3});
  Tensor held = from_dlpack(to_dlpack(v));
  K::update_add(v, K::constant({10, 10, 10}));
  CHECK(list(held) == std::vector<double>{1, 2, 3});
  CHECK(list(v) == std::vector<double>{11, 12, 13});
}

TEST_CASE("a tensor on a CUDA device goes out and comes back there", "[dlpack][device]") {
  if (!test::has_device("cuda")) return;
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}).to("cuda");
  auto* m = to_dlpack_versioned(x);
  CHECK(m->dl_tensor.device.device_type == dl::kDLCUDA);
  Tensor y = from_dlpack(m);
  CHECK(y.device() == x.device());
  CHECK(list(y * 2) == std::vector<double>{2, 4, 6, 8, 10, 12});
  auto* strided = to_dlpack(x);
  std::swap(strided->dl_tensor.shape[0], strided->dl_tensor.shape[1]);
  std::swap(strided->dl_tensor.strides[0], strided->dl_tensor.strides[1]);
  CHECK_THROWS_WITH(
      from_dlpack(strided),
      "from_dlpack: (3, 2) float32 on cuda:0 is not row-major in one aligned piece; make it contiguous first");
  strided->deleter(strided);
}

#ifdef KASSETTE_HAS_DLPACK
#define KASSETTE_SAME(type, member) static_assert(offsetof(dl::type, member) == offsetof(::type, member), #member)
static_assert(sizeof(dl::DLManagedTensor) == sizeof(::DLManagedTensor));
static_assert(sizeof(dl::DLTensor) == sizeof(::DLTensor));
static_assert(sizeof(dl::DLDataType) == sizeof(::DLDataType));
KASSETTE_SAME(DLTensor, data);
KASSETTE_SAME(DLTensor, device);
KASSETTE_SAME(DLTensor, ndim);
KASSETTE_SAME(DLTensor, dtype);
KASSETTE_SAME(DLTensor, shape);
KASSETTE_SAME(DLTensor, strides);
KASSETTE_SAME(DLTensor, byte_offset);
KASSETTE_SAME(DLManagedTensor, manager_ctx);
KASSETTE_SAME(DLManagedTensor, deleter);
static_assert(int(dl::kDLCUDA) == int(::kDLCUDA) && int(dl::kDLCUDAHost) == int(::kDLCUDAHost));
static_assert(int(dl::kDLBfloat) == int(::kDLBfloat) && int(dl::kDLComplex) == int(::kDLComplex));
#if defined(DLPACK_MAJOR_VERSION) && DLPACK_MAJOR_VERSION >= 1
static_assert(sizeof(dl::DLManagedTensorVersioned) == sizeof(::DLManagedTensorVersioned));
KASSETTE_SAME(DLManagedTensorVersioned, version);
KASSETTE_SAME(DLManagedTensorVersioned, deleter);
KASSETTE_SAME(DLManagedTensorVersioned, flags);
KASSETTE_SAME(DLManagedTensorVersioned, dl_tensor);
static_assert(int(dl::kDLBool) == int(::kDLBool) && dl::kReadOnly == DLPACK_FLAG_BITMASK_READ_ONLY);
#endif

TEST_CASE("the structs of DLPack's own header are taken and given", "[dlpack]") {
  Tensor x = K::constant({1, 2, 3});
  ::DLManagedTensor* m = to_dlpack<::DLManagedTensor>(x);
  CHECK(m->dl_tensor.ndim == 1);
  CHECK(m->dl_tensor.dtype.code == ::kDLFloat);
  CHECK(list(from_dlpack(m)) == std::vector<double>{1, 2, 3});
}
#endif

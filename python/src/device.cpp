// python/src/device.cpp - devices, and tensors of other libraries through DLPack: Python's array API standard, 2023.12.
#include <kassette/dlpack.h>
#include <kassette/runtime.h>
#include <kassette/stream.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <sstream>

#include "convert.h"

namespace kassette {
namespace python {
namespace {

using dlpack::DLManagedTensor, dlpack::DLManagedTensorVersioned;

/// The name of a capsule says which of the two structs it holds, and whether a consumer has taken it.
template <class M>
struct Capsule {
  static constexpr bool kVersioned = sizeof(M) == sizeof(DLManagedTensorVersioned);
  static constexpr const char *kName = kVersioned ? "dltensor_versioned" : "dltensor",
                              *kUsed = kVersioned ? "used_dltensor_versioned" : "used_dltensor";

  static nb::object make(M* managed) {
    PyObject* made = PyCapsule_New(managed, kName, [](PyObject* self) {
      if (!PyCapsule_IsValid(self, kName)) return;  // its consumer lets go
      auto* m = static_cast<M*>(PyCapsule_GetPointer(self, kName));
      m->deleter(m);
    });
    if (made) return nb::steal(made);
    managed->deleter(managed);
    throw nb::python_error();
  }
  static bool is(nb::handle capsule) { return PyCapsule_IsValid(capsule.ptr(), kName); }
  static Tensor take(nb::handle capsule) {
    auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    Tensor x;
    {
      Computing on;  // the producer's deleter may be called, and asks for Python's lock itself
      x = from_dlpack(m);
    }
    PyCapsule_SetName(capsule.ptr(), kUsed);
    return x;
  }
};

Device to_device(nb::handle name, const char* what) {
  if (!PyUnicode_Check(name.ptr()))
    throw TypeError(prefixed(what, "a device such as 'cpu' or 'cuda:0' is expected, not " + type_of(name)).c_str());
  return Device(nb::cast<std::string>(name));
}
std::string name_of_device(Device device) {
  std::ostringstream name;
  name << device;
  return name.str();
}
std::pair<int, int> number_of(Device device) {
  return {device == cpu ? dlpack::kDLCPU : dlpack::kDLCUDA, device.index()};
}

[[noreturn]] void fail_buffer(const std::string& why) {
  PyErr_SetString(PyExc_BufferError, ("__dlpack__: " + why).c_str());
  throw nb::python_error();
}

/// The consumer's cudaStream_t. The standard has numbers for CUDA's two default streams, which are the handles that
/// CUDA gives them, and -1 where the consumer needs no order. Null where it is not known: then to_dlpack and the
/// deleter wait.
void* consumer_stream(nb::handle stream, Device device) {
  if (device == cpu) {
    if (!stream.is_none()) fail_buffer("a tensor on the CPU has no stream");
    return nullptr;
  }
  if (stream.is_none()) return nullptr;
  const std::int64_t number = to_int(stream, "__dlpack__: stream");
  if (number == -1) return current_stream(device).native();  // behind itself
  if (number <= 0)
    throw ValueError("__dlpack__", "stream", ("is " + std::to_string(number)).c_str(),
                     "on a CUDA device it must be None, -1, 1, 2 or a cudaStream_t");
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

nb::object to_capsule(const Tensor& x, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                      nb::handle copy) {
  if (!dl_device.is_none() && nb::cast<std::pair<int, int>>(dl_device) != number_of(x.device()))
    fail_buffer("the tensor is on " + name_of_device(x.device()) + "; Tensor.to copies it to another device");
  const bool copied = !copy.is_none() && nb::cast<bool>(copy);
  if (copied && x.device() != cpu) fail_buffer("no copy is made on a CUDA device");
  void* of_consumer = consumer_stream(stream, x.device());
  const bool versioned = !max_version.is_none() && nb::cast<std::pair<int, int>>(max_version).first >= 1;
  DLManagedTensor* plain = nullptr;
  DLManagedTensorVersioned* managed = nullptr;
  {
    Computing on;
    const Tensor given = copied ? from_memory(x.data(x.dtype()), x.dtype(), x.shape()) : x;
    if (versioned) managed = to_dlpack_versioned(given, of_consumer);
    else plain = to_dlpack(given, of_consumer);
  }
  if (copied && versioned) managed->flags = dlpack::kIsCopied;  // nobody else sees it: its owner may write
  return versioned ? Capsule<DLManagedTensorVersioned>::make(managed) : Capsule<DLManagedTensor>::make(plain);
}

Tensor from_capsule(nb::handle capsule) {
  if (Capsule<DLManagedTensorVersioned>::is(capsule)) return Capsule<DLManagedTensorVersioned>::take(capsule);
  if (Capsule<DLManagedTensor>::is(capsule)) return Capsule<DLManagedTensor>::take(capsule);
  throw TypeError("from_dlpack", "", "what __dlpack__ gave is no capsule of DLPack, or was taken before");
}
Tensor from_array(nb::handle array) {
  if (const Tensor* t = tensor_of(array)) return *t;
  if (!nb::hasattr(array, "__dlpack__") || !nb::hasattr(array, "__dlpack_device__"))
    throw TypeError(
        ("from_dlpack: an object with __dlpack__ and __dlpack_device__ is expected, not " + type_of(array)).c_str());
  const auto [type, index] = nb::cast<std::pair<int, int>>(array.attr("__dlpack_device__")());
  nb::dict asked;
  if (type == dlpack::kDLCUDA) {
    if (index < 0 || index >= device_count())
      throw DeviceError("from_dlpack", "", ("CUDA device " + std::to_string(index)).c_str(),
                        ("there are " + std::to_string(device_count())).c_str());
    const Device device(Device::kCuda, static_cast<std::uint8_t>(index));
    asked["stream"] = reinterpret_cast<std::uintptr_t>(current_stream(device).native());
  }
  const nb::object give = array.attr("__dlpack__");
  try {
    nb::dict more = nb::cast<nb::dict>(asked.attr("copy")());
    more["max_version"] = nb::make_tuple(1, 0);
    return from_capsule(give(**more));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;  // a producer from before versions
  }
  return from_capsule(give(**asked));
}

nb::dict stats_of(Device device) {
  const MemoryStats s = memory_stats(device);
  nb::dict stats;
  stats["live"] = s.live, stats["cached"] = s.cached, stats["peak"] = s.peak, stats["limit"] = s.limit,
  stats["allocations"] = s.allocations;
  return stats;
}

}  // namespace

void bind_devices(nb::module_& m) {
  // The class is there, with what belongs to tensors alone.
  nb::object type = m.attr("Tensor");
  auto method = [&](const char* name, auto f, const auto&... extra) {
    type.attr(name) = nb::cpp_function(f, nb::name(name), nb::scope(type), nb::is_method(), extra...);
  };
  method(
      "to",
      [](const Tensor& x, nb::handle device) {
        const Device to = to_device(device, "to");
        Computing on;
        return x.to(to);
      },
      nb::arg("device"), "The tensor on another device: 'cpu', 'cuda:0', ...");
  method("__dlpack__", &to_capsule, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
         nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none());
  method("__dlpack_device__", [](const Tensor& x) { return number_of(x.device()); });
  type.attr("device") =
      nb::module_::import_("builtins")
          .attr("property")(nb::cpp_function([](const Tensor& x) { return name_of_device(x.device()); },
                                             "The name of the device that it is on."));

  m.def("from_dlpack", &from_array, nb::arg("x"),
        "A tensor over the memory of an array of another library, on its device.");
  m.def("device_count", &device_count, "How many CUDA devices there are; 'cuda:0' is the first.");
  m.def(
      "device_name", [](nb::handle device) { return std::string(device_name(to_device(device, "device_name"))); },
      nb::arg("device"), "What its maker calls it; 'cpu' for the CPU.");
  m.def(
      "synchronize",
      [](nb::handle device) {
        const Device on = to_device(device, "synchronize");
        Computing computing;
        synchronize(on);
      },
      nb::arg("device"), "Waits until a device has done all that this process has enqueued.");
  m.def(
      "memory_stats", [](nb::handle device) { return stats_of(to_device(device, "memory_stats")); },
      nb::arg("device") = "cpu", "Bytes of tensors on a device: live, cached, peak, limit; and allocations.");
  m.def(
      "reset_peak_memory", [](nb::handle device) { reset_peak_memory(to_device(device, "reset_peak_memory")); },
      nb::arg("device") = "cpu");
  m.def(
      "empty_cache", [](nb::handle device) { empty_cache(to_device(device, "empty_cache")); },
      nb::arg("device") = "cpu");
}

}  // namespace python
}  // namespace kassette

// tests/devices/devices.h - running a test on every device that is present.
#pragma once
#include <dlfcn.h>

#include <string>
#include <vector>

#include "core/impl.h"
#include "tests/catch.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

namespace kassette::test {

/// True for "cpu" and for a CUDA device that is present; otherwise skips the test: `skipped: no CUDA device (reason)`.
inline bool has_device(const std::string& name) {
  const char* why = device_absent(Device(name));
  if (why) skip("no CUDA device (" + std::string(why) + ")");
  return !why;
}

/// A function that the emulated CUDA device exports; null on a real GPU.
template <class F>
F* emulated(const char* name) {
  void* library = emulated_cuda_library() ? dlopen(emulated_cuda_library(), RTLD_NOW | RTLD_NOLOAD) : nullptr;
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

inline std::vector<float> floats(const Tensor& t) { return t.to(cpu).to_vector<float>(); }

/// Checks that the tensors are on `device` and have the bits of those computed on the CPU.
inline void check_same_on(const Device& device, const Tensors& got, const Tensors& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    INFO("tensor " << i);
    CHECK(got[i].device() == device);
    CHECK(same_bits(backend::eval(got[i]).to(cpu), backend::eval(wanted[i])));
  }
}

}  // namespace kassette::test
